#include "gpu/attention_problem.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "gpu/helpers.h"
#include "gpu/random_elements.h"

namespace sgtc::testing {

using kernels::AttentionForm;
using kernels::AttentionSchedule;

namespace {

// Scores with a deviation of about 1.3, as those of unit normal vectors.
constexpr float kScale = 2;
constexpr uint32_t kSeedQ = 11, kSeedK = 12, kSeedV = 13, kSeedGradient = 14;

double number(uint16_t bits) {
  return static_cast<double>(__builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16));
}

AttentionOperand separate(int64_t heads, int64_t sequence, int64_t size, uint32_t seed) {
  return {heads, sequence, 0, size, sequence * size, heads * sequence * size, seed};
}

AttentionOperand packed(const AttentionSizes& s, int64_t heads, int64_t first_head) {
  const int64_t row = (s.heads + 2 * s.key_heads) * s.size;
  return {heads, s.keys, first_head * s.size, row, s.size, s.keys * row, kSeedQ};
}

size_t bytes_of(const AttentionSizes& s, const AttentionOperand& operand) {
  return static_cast<size_t>(s.batch * operand.batch_stride) * 2;
}

void fill(const std::string& folder, DeviceMemory& memory, uint32_t seed) {
  Kernel(folder + "/helpers.cubin", "fill_random")
      .start({1024, kHelperThreads, 0, 1},
             FillParameters{reinterpret_cast<uint16_t*>(memory.address()), memory.bytes() / 2, seed,
                            kScale});
  synchronize_device();
}

AttentionSchedule schedule_of(const AttentionSizes& s, const AttentionForm& form, int64_t blocks) {
  return kernels::schedule_queries(
      form.consumers, {s.batch, s.heads, s.key_heads, s.queries, s.keys, s.causal, blocks});
}

}  // namespace

AttentionVariant attention_variant(const std::string& kernel) {
  if (kernel == "d64") return {"attention.cubin", kernels::kAttention64};
  if (kernel == "d128") return {"attention.cubin", kernels::kAttention128};
  if (kernel == "d64_wide") return {"attention_wide.cubin", kernels::kAttention64Wide};
  std::fprintf(stderr, "%s: no such kernel\n", kernel.c_str());
  std::exit(1);
}

double AttentionOperand::value(int64_t batch, int64_t head, int64_t row, int64_t element) const {
  const int64_t index =
      offset + batch * batch_stride + head * head_stride + row * row_stride + element;
  return number(random_element(seed, static_cast<uint64_t>(index), kScale));
}

std::vector<double> AttentionOperand::values(int64_t batch, int64_t head, int64_t size) const {
  std::vector<double> values;
  for (int64_t row = 0; row < sequence; ++row) {
    for (int64_t i = 0; i < size; ++i) values.push_back(value(batch, head, row, i));
  }
  return values;
}

AttentionProblem::AttentionProblem(const std::string& folder, const AttentionSizes& s)
    : sizes_(s),
      q_(s.packed ? packed(s, s.heads, 0) : separate(s.heads, s.queries, s.size, kSeedQ)),
      k_(s.packed ? packed(s, s.key_heads, s.heads)
                  : separate(s.key_heads, s.keys, s.size, kSeedK)),
      v_(s.packed ? packed(s, s.key_heads, s.heads + s.key_heads)
                  : separate(s.key_heads, s.keys, s.size, kSeedV)),
      gradient_(separate(s.heads, s.queries, s.size, kSeedGradient)),
      q_memory_(bytes_of(s, q_)),
      k_memory_(s.packed ? 4 : bytes_of(s, k_)),
      v_memory_(s.packed ? 4 : bytes_of(s, v_)),
      gradient_memory_(bytes_of(s, gradient_)),
      output_(static_cast<size_t>(s.batch * s.heads * s.queries * s.size) * 2),
      maximum_(static_cast<size_t>(s.batch * s.heads * s.queries) * 4),
      sum_(maximum_.bytes()) {
  fill(folder, q_memory_, kSeedQ);
  fill(folder, k_memory_, kSeedK);
  fill(folder, v_memory_, kSeedV);
  fill(folder, gradient_memory_, kSeedGradient);
}

DeviceAddress AttentionProblem::address_of(const AttentionOperand& operand) const {
  const DeviceMemory& memory = &operand == &gradient_             ? gradient_memory_
                               : sizes_.packed || &operand == &q_ ? q_memory_
                               : &operand == &k_                  ? k_memory_
                                                                  : v_memory_;
  return memory.address() + static_cast<uint64_t>(operand.offset) * 2;
}

hopper::TensorMap AttentionProblem::map_of(const AttentionOperand& operand, uint32_t rows) const {
  return encode_tensor_map(address_of(operand),
                           {{sizes_.size, operand.sequence, operand.heads, sizes_.batch},
                            {operand.row_stride, operand.head_stride, operand.batch_stride},
                            {64, rows}});
}

hopper::TensorMap AttentionProblem::map_of_output() const {
  const int64_t head = sizes_.queries * sizes_.size;
  return encode_tensor_map(output_.address(),
                           {{sizes_.size, sizes_.queries, sizes_.heads, sizes_.batch},
                            {sizes_.size, head, head * sizes_.heads},
                            {64, kernels::kAttentionRows}});
}

void AttentionProblem::poison() {
  output_.set(kPoisonWord);
  maximum_.set(kPoisonWord);
  sum_.set(kPoisonWord);
}

kernels::AttentionSm90aShape AttentionProblem::shape() const {
  kernels::AttentionSm90aShape shape = {};
  shape.heads = sizes_.heads;
  shape.key_heads = sizes_.key_heads;
  shape.queries = sizes_.queries;
  shape.keys = sizes_.keys;
  shape.key_size = shape.value_size = sizes_.size;
  shape.causal = sizes_.causal;
  shape.scale = 1 / std::sqrt(static_cast<double>(sizes_.size));
  return shape;
}

AttentionProblem::Reference AttentionProblem::reference(int64_t batch, int64_t head,
                                                        int64_t query) const {
  const int64_t key_head = head / (sizes_.heads / sizes_.key_heads);
  const int64_t keys = sizes_.causal ? std::min(sizes_.keys, query + 1) : sizes_.keys;
  const double scale = 1 / std::sqrt(static_cast<double>(sizes_.size));
  std::vector<double> scores;
  Reference result;
  result.maximum = -INFINITY;
  for (int64_t key = 0; key < keys; ++key) {
    double score = 0;
    for (int64_t i = 0; i < sizes_.size; ++i) {
      score += q_.value(batch, head, query, i) * k_.value(batch, key_head, key, i);
    }
    scores.push_back(score * scale);
    result.maximum = std::max(result.maximum, scores.back());
  }
  for (double& score : scores) result.sum += score = std::exp(score - result.maximum);
  result.output.assign(static_cast<size_t>(sizes_.size), 0);
  for (int64_t key = 0; key < keys; ++key) {
    for (int64_t i = 0; i < sizes_.size; ++i) {
      result.output[static_cast<size_t>(i)] +=
          scores[static_cast<size_t>(key)] / result.sum * v_.value(batch, key_head, key, i);
    }
  }
  return result;
}

AttentionRun::AttentionRun(const std::string& folder, AttentionProblem& problem,
                           const std::string& kernel, int64_t blocks)
    : kernel_(folder + "/" + attention_variant(kernel).cubin, kernel),
      maps_(3 * sizeof(hopper::TensorMap)),
      items_(schedule_of(problem.sizes(), attention_variant(kernel).form, blocks).items.size() *
             sizeof(kernels::AttentionItem)) {
  const AttentionForm form = attention_variant(kernel).form;
  const AttentionSizes& s = problem.sizes();
  const AttentionSchedule schedule = schedule_of(s, form, blocks);
  const hopper::TensorMap maps[] = {problem.map_of(problem.q(), kernels::kAttentionRows),
                                    problem.map_of(problem.k(), form.keys),
                                    problem.map_of(problem.v(), form.keys)};
  maps_.write(maps, sizeof(maps));
  items_.write(schedule.items.data(), items_.bytes());
  launch_ = {static_cast<uint32_t>(blocks), attention_threads(form), attention_shared_bytes(form),
             1};
  parameters_.shape = problem.shape();
  parameters_.shape.rounds = schedule.rounds;
  const auto map_at = [&](uint64_t i) {
    return reinterpret_cast<const void*>(maps_.address() + i * sizeof(hopper::TensorMap));
  };
  parameters_.tensors = {map_at(0),
                         map_at(1),
                         map_at(2),
                         reinterpret_cast<const kernels::AttentionItem*>(items_.address()),
                         reinterpret_cast<float*>(problem.maximum().address()),
                         reinterpret_cast<float*>(problem.sum().address()),
                         nullptr};
  parameters_.result = reinterpret_cast<void*>(problem.output().address());
  parameters_.stride = s.size;
  parameters_.batch_rows = s.queries;
}

void AttentionRun::start() const { kernel_.start(launch_, parameters_); }

}  // namespace sgtc::testing
