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
constexpr double kLogTolerance = 1e-5;

struct Outputs {
  std::vector<uint16_t> output;
  std::vector<float> log_sum_exp;
  bool operator==(const Outputs& other) const {
    return output == other.output &&
           std::equal(log_sum_exp.begin(), log_sum_exp.end(), other.log_sum_exp.begin());
  }
};

Outputs run(AttentionProblem& problem, const AttentionRun& attention) {
  problem.poison();
  attention.start();
  synchronize_device();
  Outputs outputs = {std::vector<uint16_t>(problem.output().bytes() / 2),
                     std::vector<float>(problem.log_sum_exp().bytes() / 4)};
  problem.output().read(outputs.output.data(), problem.output().bytes());
  problem.log_sum_exp().read(outputs.log_sum_exp.data(), problem.log_sum_exp().bytes());
  return outputs;
}

struct Errors {
  double output, log_sum_exp;  // relative; infinite for NaN
};

Errors errors_of(const AttentionProblem& problem, const Outputs& outputs) {
  const AttentionSizes& s = problem.sizes();
  double difference = 0, norm = 0, log_difference = 0, log_norm = 0;
  std::vector<double> expected;
  size_t row = 0;
  for (int64_t batch = 0; batch < s.batch; ++batch) {
    for (int64_t head = 0; head < s.heads; ++head) {
      for (int64_t query = 0; query < s.queries; ++query, ++row) {
        const double log = problem.reference(batch, head, query, expected);
        log_difference += std::pow(static_cast<double>(outputs.log_sum_exp[row]) - log, 2);
        log_norm += log * log;
        for (size_t i = 0; i < expected.size(); ++i) {
          const uint32_t word = static_cast<uint32_t>(outputs.output[row * expected.size() + i])
                                << 16;
          const double value = static_cast<double>(__builtin_bit_cast(float, word));
          difference += (value - expected[i]) * (value - expected[i]);
          norm += expected[i] * expected[i];
        }
      }
    }
  }
  const auto relative = [](double x, double y) {
    return std::isnan(x) ? INFINITY : std::sqrt(x / y);
  };
  return {relative(difference, norm), relative(log_difference, log_norm)};
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
  const bool passes = repeats && errors.output < kTolerance && errors.log_sum_exp < kLogTolerance;
  std::printf("%s %-8s %s: %.2e, log %.2e%s\n", passes ? "ok  " : "FAIL", kernel.c_str(),
              name_of(s).c_str(), errors.output, errors.log_sum_exp,
              repeats ? "" : ", another run differs");
  std::fflush(stdout);
  return passes;
}

double relative_error(const std::vector<double>& x, const std::vector<double>& reference) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    difference += (x[i] - reference[i]) * (x[i] - reference[i]);
    norm += reference[i] * reference[i];
  }
  return std::isnan(difference) ? INFINITY : std::sqrt(difference / norm);
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
