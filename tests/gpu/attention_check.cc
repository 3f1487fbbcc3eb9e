// Checks attention for sm_90a on a GPU: gpu_attention_check FOLDER-OF-CUBINS
//
// Every kernel runs twice on random operands of awkward sizes, with few blocks so that each works
// through several items. All outputs and gradients are compared with attention in double precision,
// and the two runs bit by bit.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "gpu/attention_gradient.h"

using namespace sgtc::testing;

namespace {

// Weights are rounded to bfloat16 before they meet the values, and the output once more.
constexpr double kTolerance = 4e-3;
constexpr double kStatisticsTolerance = 1e-5;

struct Outputs {
  std::vector<uint16_t> output;
  std::vector<float> maximum, sum;
  bool operator==(const Outputs&) const = default;
};

template <typename T>
std::vector<T> contents(const DeviceMemory& memory) {
  std::vector<T> values(memory.bytes() / sizeof(T));
  memory.read(values.data(), memory.bytes());
  return values;
}

Outputs run(AttentionProblem& problem, const AttentionRun& attention) {
  problem.poison();
  attention.start();
  synchronize_device();
  return {contents<uint16_t>(problem.output()), contents<float>(problem.maximum()),
          contents<float>(problem.sum())};
}

// Of all elements together.
class RelativeError {
 public:
  void add(double found, double expected) {
    difference_ += (found - expected) * (found - expected);
    norm_ += expected * expected;
  }
  /// Infinite for NaN.
  double value() const {
    return std::isnan(difference_) ? INFINITY : std::sqrt(difference_ / norm_);
  }

 private:
  double difference_ = 0, norm_ = 0;
};

struct Errors {
  RelativeError output, maximum, sum;
};

Errors errors_of(const AttentionProblem& problem, const Outputs& outputs) {
  const AttentionSizes& s = problem.sizes();
  Errors errors;
  size_t row = 0;
  for (int64_t batch = 0; batch < s.batch; ++batch) {
    for (int64_t head = 0; head < s.heads; ++head) {
      for (int64_t query = 0; query < s.queries; ++query, ++row) {
        const auto expected = problem.reference(batch, head, query);
        errors.maximum.add(outputs.maximum[row], expected.maximum);
        errors.sum.add(outputs.sum[row], expected.sum);
        const size_t n = expected.output.size();
        for (size_t i = 0; i < n; ++i) {
          const uint32_t word = static_cast<uint32_t>(outputs.output[row * n + i]) << 16;
          errors.output.add(__builtin_bit_cast(float, word), expected.output[i]);
        }
      }
    }
  }
  return errors;
}

std::string name_of(const AttentionSizes& s) {
  return "size " + std::to_string(s.size) + ", batch " + std::to_string(s.batch) + ", heads " +
         std::to_string(s.heads) + "/" + std::to_string(s.key_heads) + ", " +
         std::to_string(s.queries) + " queries, " + std::to_string(s.keys) + " keys" +
         (s.causal ? ", causal" : "") + (s.packed ? ", packed" : "");
}

bool check(const std::string& folder, const std::string& kernel, const AttentionSizes& s) {
  AttentionProblem problem(folder, s);
  const AttentionRun attention(folder, problem, kernel, 5);
  const Outputs first = run(problem, attention);
  const bool repeats = first == run(problem, attention);
  const Errors errors = errors_of(problem, first);
  const double output = errors.output.value(), maximum = errors.maximum.value(),
               sum = errors.sum.value();
  const bool passes = repeats && output < kTolerance && maximum < kStatisticsTolerance &&
                      sum < kStatisticsTolerance;
  std::printf("%s %-8s %s: %.2e, maximum %.2e, sum %.2e%s\n", passes ? "ok  " : "FAIL",
              kernel.c_str(), name_of(s).c_str(), output, maximum, sum,
              repeats ? "" : ", another run differs");
  std::fflush(stdout);
  return passes;
}

double relative_error(const std::vector<double>& x, const std::vector<double>& reference) {
  RelativeError error;
  for (size_t i = 0; i < reference.size(); ++i) error.add(x[i], reference[i]);
  return error.value();
}

AttentionGradients run(AttentionGradientRun& gradient) {
  gradient.poison();
  gradient.start_queries();
  gradient.start_keys();
  synchronize_device();
  return gradient.gradients();
}

bool check_gradient(const std::string& folder, const AttentionSizes& s) {
  AttentionProblem problem(folder, s);
  const AttentionRun attention(folder, problem, s.size == 64 ? "d64" : "d128", 5);
  attention.start();
  AttentionGradientRun gradient(folder, problem, 5);
  const AttentionGradients first = run(gradient), second = run(gradient);
  const bool repeats = first.q == second.q && first.k == second.k && first.v == second.v;
  const AttentionGradients expected = reference_gradients(problem);
  const double q = relative_error(first.q, expected.q), k = relative_error(first.k, expected.k),
               v = relative_error(first.v, expected.v);
  const bool passes = repeats && q < kTolerance && k < kTolerance && v < kTolerance;
  std::printf("%s gradient %s: q %.2e, k %.2e, v %.2e%s\n", passes ? "ok  " : "FAIL",
              name_of(s).c_str(), q, k, v, repeats ? "" : ", another run differs");
  std::fflush(stdout);
  return passes;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: gpu_attention_check FOLDER-OF-CUBINS\n");
    return 2;
  }
  open_hopper_or_skip();
  int checks = 0, failures = 0;
  for (const char* kernel : {"d64", "d64_wide", "d128"}) {
    const int64_t size = kernel[1] == '6' ? 64 : 128;
    const AttentionSizes sizes[] = {
        {1, 1, 1, 64, 64, size, true, false},   {2, 3, 3, 300, 300, size, true, true},
        {1, 4, 2, 513, 513, size, true, false}, {1, 2, 1, 130, 517, size, false, false},
        {1, 2, 2, 400, 70, size, true, false},  {2, 2, 2, 90, 200, size, true, false}};
    for (const AttentionSizes& s : sizes) {
      ++checks;
      failures += !check(arguments[1], kernel, s);
      if (std::string(kernel) == "d64_wide") continue;
      ++checks;
      failures += !check_gradient(arguments[1], s);
    }
  }
  std::printf("%d checks, %d failed\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
