#include "gpu/matmul_problem.h"

#include <cstdio>
#include <cstdlib>

#include "gpu/helpers.h"
#include "gpu/random_elements.h"

namespace sgtc::testing {

using kernels::MatmulForm;
using kernels::MatmulSchedule;

namespace {

constexpr uint32_t kSeedA = 1, kSeedB = 2, kSeedBias = 3, kSeedResidual = 4;
// Products of some hundred to some ten thousand terms become numbers around 1.
constexpr float kScaleA = 1, kScaleB = 1.0f / 16;

int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

double number(uint16_t bits) {
  return static_cast<double>(__builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16));
}

size_t bytes_of(int64_t elements) { return static_cast<size_t>(elements) * 2; }

constexpr Launch kHelperLaunch = {1024, kHelperThreads, 0, 1};

MatmulSchedule schedule_of(const MatmulProblem& problem, const MatmulOptions& options) {
  const MatmulSizes& s = problem.sizes();
  return schedule_matmul(parse_variant(options.kernel).form,
                         {s.batch, s.rows, s.columns, s.depth, options.blocks, options.raster_group,
                          options.split_depth});
}

hopper::TensorMap map_of(const Operand& operand, DeviceAddress address, const MatmulForm& form,
                         bool is_a) {
  const int64_t inner = operand.line_major ? operand.lines : operand.depth;
  const TensorBox tensor = {{inner, operand.outer(), operand.batch},
                            {operand.stride(), operand.stride() * operand.outer()},
                            {64, matmul_box_lines(form, is_a, operand.line_major)}};
  return encode_tensor_map(address, tensor);
}

}  // namespace

int64_t Operand::stride() const { return round_up(line_major ? lines : depth, 16); }

double Operand::value(int64_t batch_index, int64_t line, int64_t k) const {
  const int64_t index =
      (batch_index * outer() + (line_major ? k : line)) * stride() + (line_major ? line : k);
  return number(random_element(seed, static_cast<uint64_t>(index), scale));
}

MatmulVariant parse_variant(const std::string& name) {
  const size_t end = name.rfind('_');
  const std::string form = name.substr(0, end);
  MatmulVariant variant = {};
  if (form == "pingpong") {
    variant.form = kernels::kPingPong;
  } else if (form == "pingpong_pair") {
    variant.form = kernels::kPingPongPair;
  } else if (form == "cooperative") {
    variant.form = kernels::kCooperative;
  } else if (form == "cooperative_pair") {
    variant.form = kernels::kCooperativePair;
  } else {
    std::fprintf(stderr, "%s: no such kernel\n", name.c_str());
    std::exit(1);
  }
  variant.line_major_a = name[end + 1] == 'l';
  variant.line_major_b = name[end + 2] == 'l';
  return variant;
}

MatmulProblem::MatmulProblem(const std::string& folder, const MatmulSizes& sizes, bool line_major_a,
                             bool line_major_b)
    : helpers_(folder + "/helpers.cubin"),
      sizes_(sizes),
      a_{sizes.batch, sizes.rows, sizes.depth, line_major_a, kSeedA, kScaleA},
      b_{sizes.batch, sizes.columns, sizes.depth, line_major_b, kSeedB, kScaleB},
      stride_(round_up(sizes.columns, 16)),
      a_memory_(bytes_of(a_.elements())),
      b_memory_(bytes_of(b_.elements())),
      result_(bytes_of(sizes.batch * sizes.rows * stride_)),
      // As large as a result, or the floats of a bias.
      second_(bytes_of(2 * stride_ + sizes.batch * sizes.rows * stride_)) {
  fill(a_memory_, kSeedA, kScaleA);
  fill(b_memory_, kSeedB, kScaleB);
}

void MatmulProblem::fill(DeviceMemory& memory, uint32_t seed, float scale) const {
  Kernel(helpers_, "fill_random")
      .start(kHelperLaunch, FillParameters{reinterpret_cast<uint16_t*>(memory.address()),
                                           memory.bytes() / 2, seed, scale});
  synchronize_device();
}

void MatmulProblem::prepare(const std::string& visitor) {
  result_.set(kPoisonWord);
  second_.set(kPoisonWord);
  if (visitor == "residual") fill(second_, kSeedResidual, 1);
  if (visitor == "bias" || visitor == "bias_gelu") {
    std::vector<float> values;
    for (int64_t i = 0; i < stride_; ++i) values.push_back(static_cast<float>(bias(i)));
    second_.write(values.data(), values.size() * sizeof(float));
  }
}

double MatmulProblem::product(int64_t batch, int64_t row, int64_t column) const {
  double sum = 0;
  for (int64_t k = 0; k < sizes_.depth; ++k) {
    sum += a_.value(batch, row, k) * b_.value(batch, column, k);
  }
  return sum;
}

double MatmulProblem::bias(int64_t column) const {
  return number(random_element(kSeedBias, static_cast<uint64_t>(column), 1));
}

double MatmulProblem::residual(int64_t batch, int64_t row, int64_t column) const {
  const int64_t index = (batch * sizes_.rows + row) * stride_ + column;
  return number(random_element(kSeedResidual, static_cast<uint64_t>(index), 1));
}

MatmulProblem::Poison MatmulProblem::count_poison(const DeviceMemory& tensor) const {
  DeviceMemory counts(16);
  counts.set(0);
  Kernel(helpers_, "count_poison")
      .start(kHelperLaunch,
             PoisonParameters{reinterpret_cast<const uint16_t*>(tensor.address()),
                              static_cast<uint64_t>(sizes_.batch * sizes_.rows),
                              static_cast<uint64_t>(sizes_.columns), static_cast<uint64_t>(stride_),
                              reinterpret_cast<uint64_t*>(counts.address())});
  Poison poison = {};
  counts.read(&poison, sizeof(poison));
  return poison;
}

uint64_t MatmulProblem::count_differences(const DeviceMemory& x, const DeviceMemory& y) const {
  DeviceMemory counts(8);
  counts.set(0);
  Kernel(helpers_, "count_differences")
      .start(kHelperLaunch,
             DifferenceParameters{reinterpret_cast<const uint32_t*>(x.address()),
                                  reinterpret_cast<const uint32_t*>(y.address()), x.bytes() / 4,
                                  reinterpret_cast<uint64_t*>(counts.address())});
  uint64_t differences = 0;
  counts.read(&differences, sizeof(differences));
  return differences;
}

MatmulRun::MatmulRun(const std::string& folder, MatmulProblem& problem,
                     const MatmulOptions& options)
    : kernel_(folder + "/" + options.visitor + ".cubin", options.kernel),
      maps_(2 * sizeof(hopper::TensorMap)),
      items_(schedule_of(problem, options).items.size() * sizeof(kernels::MatmulItem)),
      partial_sums_(static_cast<size_t>(schedule_of(problem, options).slots) * 4 *
                    kernels::kMatmulPartialFloats * sizeof(float)),
      flags_(static_cast<size_t>(schedule_of(problem, options).slots + 1) * 4 * sizeof(uint32_t)) {
  const MatmulForm form = parse_variant(options.kernel).form;
  const MatmulSizes& s = problem.sizes();
  const MatmulSchedule schedule = schedule_of(problem, options);
  const hopper::TensorMap maps[] = {map_of(problem.a(), problem.a_address(), form, true),
                                    map_of(problem.b(), problem.b_address(), form, false)};
  maps_.write(maps, sizeof(maps));
  items_.write(schedule.items.data(), items_.bytes());
  flags_.set(0);
  launch_ = {static_cast<uint32_t>(options.blocks), kernels::kMatmulThreads,
             matmul_shared_bytes(form), form.cluster};
  parameters_.shape = {s.rows, s.columns,
                       (s.depth + kernels::kMatmulDepth - 1) / kernels::kMatmulDepth,
                       schedule.rounds};
  parameters_.tensors.a = reinterpret_cast<const void*>(maps_.address());
  parameters_.tensors.b =
      reinterpret_cast<const void*>(maps_.address() + sizeof(hopper::TensorMap));
  parameters_.tensors.items = reinterpret_cast<const kernels::MatmulItem*>(items_.address());
  parameters_.tensors.partial_sums = reinterpret_cast<float*>(partial_sums_.address());
  parameters_.tensors.flags = reinterpret_cast<uint32_t*>(flags_.address());
  parameters_.result = reinterpret_cast<void*>(problem.result().address());
  parameters_.second = reinterpret_cast<void*>(problem.second().address());
  parameters_.stride = problem.stride();
  parameters_.batch_rows = s.rows;
}

void MatmulRun::start() const { kernel_.start(launch_, parameters_); }

}  // namespace sgtc::testing
