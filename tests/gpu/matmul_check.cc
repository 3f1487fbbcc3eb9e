// Checks the matrix products for sm_90a on a GPU: gpu_matmul_check FOLDER-OF-CUBINS
//
// Every kernel runs twice on random operands of awkward sizes, with few blocks so that each works
// through several tiles. All elements are compared with a product in double precision, the two runs
// bit by bit, and outputs are poisoned: nothing may stay unwritten or be written beside.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "gpu/matmul_problem.h"

using namespace sgtc::testing;

namespace {

constexpr double kTolerance = 2e-3;  // the rounding of results to bfloat16

using Matrix = std::vector<double>;  // [batch, rows, columns]

Matrix values_of(const Operand& operand) {
  Matrix values;
  for (int64_t batch = 0; batch < operand.batch; ++batch) {
    for (int64_t line = 0; line < operand.lines; ++line) {
      for (int64_t k = 0; k < operand.depth; ++k) values.push_back(operand.value(batch, line, k));
    }
  }
  return values;
}

Matrix reference_product(const MatmulProblem& problem) {
  const MatmulSizes& s = problem.sizes();
  const Matrix a = values_of(problem.a()), b = values_of(problem.b());
  Matrix product;
  for (int64_t batch = 0; batch < s.batch; ++batch) {
    for (int64_t row = 0; row < s.rows; ++row) {
      for (int64_t column = 0; column < s.columns; ++column) {
        const double* x = a.data() + (batch * s.rows + row) * s.depth;
        const double* y = b.data() + (batch * s.columns + column) * s.depth;
        double sum = 0;
        for (int64_t k = 0; k < s.depth; ++k) sum += x[k] * y[k];
        product.push_back(sum);
      }
    }
  }
  return product;
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

Matrix reference_result(const MatmulProblem& problem, const std::string& visitor, Matrix product) {
  const MatmulSizes& s = problem.sizes();
  for (size_t i = 0; i < product.size(); ++i) {
    const auto column = static_cast<int64_t>(i) % s.columns;
    const int64_t row = static_cast<int64_t>(i) / s.columns;
    if (visitor == "bias" || visitor == "bias_gelu") product[i] += problem.bias(column);
    if (visitor == "residual") product[i] += problem.residual(0, row, column);
    if (visitor == "bias_gelu" || visitor == "two_results") product[i] = gelu(product[i]);
  }
  return product;
}

// Sums of rows over each 64 columns, [batch * rows, ceil(stride / 64)], zeros where there is no
// column.
Matrix reference_row_sums(const MatmulProblem& problem, const Matrix& product) {
  const auto columns = static_cast<size_t>(problem.sizes().columns);
  const auto blocks = static_cast<size_t>((problem.stride() + 63) / 64);
  Matrix sums(product.size() / columns * blocks);
  for (size_t i = 0; i < product.size(); ++i) {
    sums[i / columns * blocks + i % columns / 64] += product[i];
  }
  return sums;
}

// |x - reference| / |reference|; infinite if x holds a NaN.
double relative_error(const Matrix& x, const Matrix& reference) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    difference += (x[i] - reference[i]) * (x[i] - reference[i]);
    norm += reference[i] * reference[i];
  }
  return std::isnan(difference) ? INFINITY : std::sqrt(difference / norm);
}

Matrix read_result(const MatmulProblem& problem, const DeviceMemory& memory) {
  const MatmulSizes& s = problem.sizes();
  const int64_t rows = s.batch * s.rows;
  std::vector<uint16_t> bits(static_cast<size_t>(rows * problem.stride()));
  memory.read(bits.data(), bits.size() * 2);
  Matrix values;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < s.columns; ++column) {
      const uint32_t word =
          static_cast<uint32_t>(bits[static_cast<size_t>(row * problem.stride() + column)]) << 16;
      values.push_back(static_cast<double>(__builtin_bit_cast(float, word)));
    }
  }
  return values;
}

Matrix read_floats(const DeviceMemory& memory, size_t count) {
  std::vector<float> floats(count);
  memory.read(floats.data(), count * sizeof(float));
  return {floats.begin(), floats.end()};
}

// The error of the visitor's second tensor, if it writes one.
double second_error(MatmulProblem& problem, const std::string& visitor, const Matrix& product) {
  if (visitor == "two_results") {
    return relative_error(read_result(problem, problem.second()), product);
  }
  if (visitor == "row_sums") {
    const Matrix sums = reference_row_sums(problem, product);
    return relative_error(read_floats(problem.second(), sums.size()), sums);
  }
  return 0;
}

std::vector<char> bytes_of(const DeviceMemory& memory) {
  std::vector<char> bytes(memory.bytes());
  memory.read(bytes.data(), bytes.size());
  return bytes;
}

bool check(const std::string& folder, const MatmulSizes& s, const MatmulOptions& options) {
  const MatmulVariant variant = parse_variant(options.kernel);
  MatmulProblem problem(folder, s, variant.line_major_a, variant.line_major_b);
  const MatmulRun run(folder, problem, options);
  problem.prepare(options.visitor);
  run.start();
  synchronize_device();
  const auto first = bytes_of(problem.result()), first_second = bytes_of(problem.second());
  problem.prepare(options.visitor);
  run.start();
  synchronize_device();
  const bool repeats =
      first == bytes_of(problem.result()) && first_second == bytes_of(problem.second());
  const Matrix product = reference_product(problem);
  const double error = relative_error(read_result(problem, problem.result()),
                                      reference_result(problem, options.visitor, product));
  const double second = second_error(problem, options.visitor, product);
  const auto poison = problem.count_poison(problem.result());
  const bool passes = repeats && error < kTolerance && second < kTolerance &&
                      poison.unwritten == 0 && poison.overwritten == 0;
  std::printf("%s %-12s %-20s %lld x %lld x %lld x %lld on %lld%s: error %.2e, second %.2e%s",
              passes ? "ok  " : "FAIL", options.visitor.c_str(), options.kernel.c_str(),
              static_cast<long long>(s.batch), static_cast<long long>(s.rows),
              static_cast<long long>(s.columns), static_cast<long long>(s.depth),
              static_cast<long long>(options.blocks), options.split_depth ? ", split" : "", error,
              second, repeats ? "" : ", another run differs");
  if (poison.unwritten + poison.overwritten > 0) {
    std::printf(", %llu elements unwritten, %llu of the padding written",
                static_cast<unsigned long long>(poison.unwritten),
                static_cast<unsigned long long>(poison.overwritten));
  }
  std::printf("\n");
  std::fflush(stdout);
  return passes;
}

struct Tally {
  int checks = 0, failures = 0;
  void add(bool passes) {
    ++checks;
    failures += !passes;
  }
};

void check_products(const std::string& folder, Tally& tally) {
  const MatmulSizes sizes[] = {{1, 7, 90, 11},    {1, 256, 512, 128}, {1, 300, 200, 100},
                               {2, 257, 391, 72}, {3, 130, 70, 513},  {1, 900, 1100, 640}};
  const char* kernels[] = {"pingpong_dd",         "pingpong_dl",         "pingpong_ld",
                           "pingpong_ll",         "pingpong_pair_dd",    "pingpong_pair_dl",
                           "cooperative_dd",      "cooperative_ll",      "cooperative_pair_dd",
                           "cooperative_pair_dl", "cooperative_pair_ld", "cooperative_pair_ll"};
  for (const char* kernel : kernels) {
    for (const MatmulSizes& s : sizes) tally.add(check(folder, s, {"plain", kernel, 6, 2, false}));
  }
}

void check_split_depth(const std::string& folder, Tally& tally) {
  for (const char* kernel : {"cooperative_ll", "cooperative_pair_ll", "cooperative_pair_ld"}) {
    tally.add(check(folder, {1, 200, 700, 3000}, {"plain", kernel, 16, 8, true}));
    tally.add(check(folder, {1, 600, 700, 1000}, {"plain", kernel, 8, 8, true}));
  }
}

void check_visitors(const std::string& folder, Tally& tally) {
  for (const char* visitor : {"bias", "bias_gelu", "residual", "two_results", "row_sums"}) {
    for (const char* kernel : {"pingpong_dl", "pingpong_pair_dl"}) {
      tally.add(check(folder, {1, 500, 777, 128}, {visitor, kernel, 6, 2, false}));
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: gpu_matmul_check FOLDER-OF-CUBINS\n");
    return 2;
  }
  const Device device = open_hopper_or_skip();
  std::printf("%s, %d multiprocessors\n", device.name.c_str(), device.multiprocessors);
  Tally tally;
  check_products(arguments[1], tally);
  check_split_depth(arguments[1], tally);
  check_visitors(arguments[1], tally);
  std::printf("%d checks, %d failed\n", tally.checks, tally.failures);
  return tally.failures == 0 ? 0 : 1;
}
