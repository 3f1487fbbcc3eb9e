// Measures attention for sm_90a: gpu_attention_bench FOLDER-OF-CUBINS [ROUNDS]
//
// Kernels of one shape take turns; printed are medians in TFLOP/s of bursts (a few milliseconds
// after a pause) and sustained (80 ms after 50 ms of the same kernel), as
// tests/gpu/attention_peers.py measures others. Causal attention counts half of the products.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/attention_gradient.h"

using namespace sgtc::testing;

namespace {

using Start = std::function<void()>;

double seconds_per_start(const Start& start, int count) {
  Stopwatch watch;
  watch.start();
  for (int i = 0; i < count; ++i) start();
  return watch.stop() / count;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Candidate {
  std::string kernel;
  Start start;
  double teraflop;
  std::vector<double> burst = {}, sustained = {};

  void measure() {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const double first = seconds_per_start(start, 2);
    const auto starts_in = [&](double seconds) {
      return std::max(2, static_cast<int>(seconds / first));
    };
    burst.push_back(teraflop / seconds_per_start(start, starts_in(5e-3)));
    seconds_per_start(start, starts_in(50e-3));
    sustained.push_back(teraflop / seconds_per_start(start, starts_in(80e-3)));
  }
};

void measure(const std::string& folder, const AttentionSizes& s,
             const std::vector<std::string>& kernels, int64_t blocks, int rounds) {
  AttentionProblem problem(folder, s);
  const double teraflop = (s.causal ? 2e-12 : 4e-12) *
                          static_cast<double>(s.batch * s.heads * s.queries) *
                          static_cast<double>(s.keys * s.size);
  std::vector<std::unique_ptr<AttentionRun>> runs;
  std::vector<Candidate> candidates;
  for (const std::string& kernel : kernels) {
    runs.push_back(std::make_unique<AttentionRun>(folder, problem, kernel, blocks));
    candidates.push_back({kernel, [run = runs.back().get()] { run->start(); }, teraflop});
  }
  runs.front()->start();
  AttentionGradientRun gradient(folder, problem, blocks);
  // Five products, of which the kernels compute seven: three and four.
  candidates.push_back({"gradient",
                        [&] {
                          gradient.start_queries();
                          gradient.start_keys();
                        },
                        2.5 * teraflop});
  candidates.push_back({"of queries", [&] { gradient.start_queries(); }, 1.5 * teraflop});
  candidates.push_back({"of keys", [&] { gradient.start_keys(); }, 2 * teraflop});
  for (size_t round = 0; round < static_cast<size_t>(rounds); ++round) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      candidates[(i + round) % candidates.size()].measure();
    }
  }
  for (const Candidate& c : candidates) {
    std::printf("%lld x %lld x %lld x %lld%s  %-10s %5.0f %5.0f\n", static_cast<long long>(s.batch),
                static_cast<long long>(s.heads), static_cast<long long>(s.queries),
                static_cast<long long>(s.size), s.causal ? " causal" : "", c.kernel.c_str(),
                median(c.burst), median(c.sustained));
  }
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: gpu_attention_bench FOLDER-OF-CUBINS [ROUNDS]\n");
    return 2;
  }
  const std::string folder = arguments[1];
  const int rounds = count > 2 ? std::max(1, std::atoi(arguments[2])) : 3;
  const int64_t blocks = open_hopper_or_skip().multiprocessors;
  measure(folder, {32, 12, 12, 1024, 1024, 64, true, true}, {"d64", "d64_wide"}, blocks, rounds);
  measure(folder, {16, 16, 16, 1024, 1024, 128, true, true}, {"d128"}, blocks, rounds);
  measure(folder, {8, 12, 12, 2048, 2048, 64, false, true}, {"d64", "d64_wide"}, blocks, rounds);
  return 0;
}
