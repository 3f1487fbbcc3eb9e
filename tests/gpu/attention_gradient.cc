#include "gpu/attention_gradient.h"

#include <algorithm>
#include <cmath>

#include "gpu/helpers.h"

namespace sgtc::testing {

using kernels::AttentionGradientForm;
using kernels::AttentionSchedule;

namespace {

constexpr int64_t kConsumers = kernels::kGradientConsumers;

kernels::AttentionWork work_of(const AttentionSizes& s, int64_t blocks) {
  return {s.batch, s.heads, s.key_heads, s.queries, s.keys, s.causal, blocks};
}

size_t bytes_of(const AttentionSizes& s, int64_t heads, int64_t rows) {
  return static_cast<size_t>(s.batch * heads * rows * s.size) * 2;
}

std::string kernel_of(const AttentionProblem& problem, const char* which) {
  return std::string(which) + "_gradient_d" + std::to_string(problem.sizes().size);
}

Launch launch_of(const AttentionGradientForm& form, uint32_t own, int64_t blocks) {
  return {static_cast<uint32_t>(blocks), attention_threads(kernels::kAttention64),
          attention_gradient_shared_bytes(form, own, false), 1};
}

std::vector<double> read(const DeviceMemory& memory) {
  std::vector<uint16_t> bits(memory.bytes() / 2);
  memory.read(bits.data(), memory.bytes());
  std::vector<double> values;
  for (const uint16_t b : bits) {
    values.push_back(
        static_cast<double>(__builtin_bit_cast(float, static_cast<uint32_t>(b) << 16)));
  }
  return values;
}

double dot(const double* x, const double* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

void add(double* to, double factor, const double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += factor * x[i];
}

// One head's q, k, v, gradient, and where its own gradients belong.
struct Head {
  std::vector<double> q, k, v, g;
  double *dq, *dk, *dv;
};

void add_query(const AttentionSizes& s, const Head& head, int64_t query) {
  const int64_t n = s.size;
  const int64_t keys = s.causal ? std::min(s.keys, query + 1) : s.keys;
  const double scale = 1 / std::sqrt(static_cast<double>(n));
  const double *q = head.q.data() + query * n, *g = head.g.data() + query * n;
  std::vector<double> weights, products;
  double maximum = -INFINITY;
  for (int64_t key = 0; key < keys; ++key) {
    weights.push_back(scale * dot(q, head.k.data() + key * n, n));
    products.push_back(dot(g, head.v.data() + key * n, n));
    maximum = std::max(maximum, weights.back());
  }
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - maximum);
  for (double& weight : weights) weight /= sum;
  const double mean = dot(weights.data(), products.data(), keys);
  for (int64_t key = 0; key < keys; ++key) {
    const auto i = static_cast<size_t>(key);
    const double score = scale * weights[i] * (products[i] - mean);
    add(head.dq + query * n, score, head.k.data() + key * n, n);
    add(head.dk + key * n, score, q, n);
    add(head.dv + key * n, weights[i], g, n);
  }
}

}  // namespace

AttentionGradients reference_gradients(const AttentionProblem& problem) {
  const AttentionSizes& s = problem.sizes();
  const auto zeros = [&](int64_t heads, int64_t rows) {
    return std::vector<double>(static_cast<size_t>(s.batch * heads * rows * s.size));
  };
  AttentionGradients gradients = {zeros(s.heads, s.queries), zeros(s.key_heads, s.keys),
                                  zeros(s.key_heads, s.keys)};
  for (int64_t batch = 0; batch < s.batch; ++batch) {
    for (int64_t i = 0; i < s.heads; ++i) {
      const int64_t key_head = i / (s.heads / s.key_heads);
      const int64_t key_row = (batch * s.key_heads + key_head) * s.keys;
      const Head head = {problem.q().values(batch, i, s.size),
                         problem.k().values(batch, key_head, s.size),
                         problem.v().values(batch, key_head, s.size),
                         problem.gradient().values(batch, i, s.size),
                         gradients.q.data() + (batch * s.heads + i) * s.queries * s.size,
                         gradients.k.data() + key_row * s.size,
                         gradients.v.data() + key_row * s.size};
      for (int64_t query = 0; query < s.queries; ++query) add_query(s, head, query);
    }
  }
  return gradients;
}

AttentionGradientRun::AttentionGradientRun(const std::string& folder, AttentionProblem& problem,
                                           int64_t blocks)
    : query_kernel_(folder + "/attention_gradient.cubin", kernel_of(problem, "query")),
      key_kernel_(folder + "/attention_gradient.cubin", kernel_of(problem, "key")),
      maps_(5 * sizeof(hopper::TensorMap)),
      query_items_(
          kernels::schedule_queries(kConsumers, work_of(problem.sizes(), blocks)).items.size() *
          sizeof(kernels::AttentionItem)),
      key_items_(kernels::schedule_keys(kConsumers, work_of(problem.sizes(), blocks)).items.size() *
                 sizeof(kernels::AttentionItem)),
      terms_(static_cast<size_t>(problem.sizes().batch * problem.sizes().heads *
                                 ((problem.sizes().queries + 63) / 64)) *
             kernels::attention_term_bytes(false)),
      q_(bytes_of(problem.sizes(), problem.sizes().heads, problem.sizes().queries)),
      k_(bytes_of(problem.sizes(), problem.sizes().key_heads, problem.sizes().keys)),
      v_(k_.bytes()) {
  const AttentionSizes& s = problem.sizes();
  const uint32_t rows = kernels::kAttentionRows;
  const hopper::TensorMap maps[] = {problem.map_of(problem.q(), rows),
                                    problem.map_of(problem.k(), rows),
                                    problem.map_of(problem.v(), rows), problem.map_of_output(),
                                    problem.map_of(problem.gradient(), rows)};
  maps_.write(maps, sizeof(maps));
  const AttentionSchedule queries = kernels::schedule_queries(kConsumers, work_of(s, blocks));
  const AttentionSchedule keys = kernels::schedule_keys(kConsumers, work_of(s, blocks));
  query_items_.write(queries.items.data(), query_items_.bytes());
  key_items_.write(keys.items.data(), key_items_.bytes());
  const auto map_at = [&](uint64_t i) {
    return reinterpret_cast<const void*>(maps_.address() + i * sizeof(hopper::TensorMap));
  };
  query_.shape = problem.shape();
  query_.shape.rounds = queries.rounds;
  query_.tensors = {map_at(0),
                    map_at(1),
                    map_at(2),
                    map_at(3),
                    map_at(4),
                    reinterpret_cast<const kernels::AttentionItem*>(query_items_.address()),
                    reinterpret_cast<const float*>(problem.maximum().address()),
                    reinterpret_cast<const float*>(problem.sum().address()),
                    reinterpret_cast<float*>(terms_.address()),
                    nullptr};
  query_.result = reinterpret_cast<void*>(q_.address());
  query_.stride = s.size;
  query_.batch_rows = s.queries;
  key_ = query_;
  key_.shape.rounds = keys.rounds;
  key_.tensors.items = reinterpret_cast<const kernels::AttentionItem*>(key_items_.address());
  key_.result = reinterpret_cast<void*>(k_.address());
  key_.second = reinterpret_cast<void*>(v_.address());
  key_.batch_rows = s.keys;
  const bool small = s.size == 64;
  query_launch_ =
      launch_of(small ? kernels::kQueryGradient64 : kernels::kQueryGradient128, 3, blocks);
  key_launch_ = launch_of(small ? kernels::kKeyGradient64 : kernels::kKeyGradient128, 2, blocks);
}

void AttentionGradientRun::poison() {
  for (DeviceMemory* memory : {&q_, &k_, &v_, &terms_}) memory->set(kPoisonWord);
}

AttentionGradients AttentionGradientRun::gradients() const {
  return {read(q_), read(k_), read(v_)};
}

}  // namespace sgtc::testing
