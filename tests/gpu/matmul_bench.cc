// Measures the matrix products for sm_90a beside cuBLAS in one run:
//   gpu_matmul_bench FOLDER-OF-CUBINS [--cublas FILE] [--rounds N] [--only WORD]
//
// The GPU is limited by its power, so a kernel's speed depends on what ran before it. All
// candidates of a shape take turns, in another order each round; `burst` are a few milliseconds
// after a pause, `sustained` 90 ms after 60 ms of the same kernel. Printed are medians in TFLOP/s,
// and the ratio to cuBLAS. Each candidate is checked on one element of each 128 x 128 elements of
// the result, at a random place, and two runs of it are compared bit by bit.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/cublas.h"
#include "gpu/matmul_problem.h"
#include "gpu/random_elements.h"

using namespace sgtc::testing;

namespace {

struct Shape {
  const char* name;
  MatmulSizes sizes;
  const char* layout;  // of a and b, as kernels name it
  std::vector<MatmulOptions> candidates;
};

// GPT-2 with 32768 tokens: products of its layers and their gradients, and the vocabulary's with
// its odd number of columns, and padded.
std::vector<Shape> shapes(int64_t blocks) {
  const auto plain = [=](const char* kernel, int64_t group = 8, bool split = false) {
    return MatmulOptions{"plain", kernel, blocks, group, split};
  };
  return {
      {"qkv", {1, 32768, 2304, 768}, "dd", {plain("pingpong_dd"), plain("pingpong_pair_dd")}},
      {"projection", {1, 32768, 768, 768}, "dd", {plain("pingpong_dd"), plain("pingpong_pair_dd")}},
      {"up", {1, 32768, 3072, 768}, "dl", {plain("pingpong_dl"), plain("pingpong_pair_dl")}},
      {"down",
       {1, 32768, 768, 3072},
       "dd",
       {plain("cooperative_dd"), plain("cooperative_pair_dd"), plain("pingpong_pair_dd")}},
      {"vocabulary", {1, 32768, 50257, 768}, "dd", {plain("pingpong_dd", 16)}},
      {"padded",
       {1, 32768, 50304, 768},
       "dd",
       {plain("pingpong_dd", 16), plain("pingpong_pair_dd", 16)}},
      {"dW up",
       {1, 768, 3072, 32768},
       "ll",
       {plain("cooperative_ll", 8, true), plain("cooperative_pair_ll", 8, true)}},
      {"dW qkv",
       {1, 768, 2304, 32768},
       "ll",
       {plain("cooperative_ll", 8, true), plain("cooperative_pair_ll", 8, true)}},
      {"square",
       {1, 8192, 8192, 8192},
       "dd",
       {plain("cooperative_dd"), plain("cooperative_pair_dd")}},
      {"epilogues",
       {1, 32768, 3072, 768},
       "dl",
       {plain("pingpong_dl"),
        {"bias", "pingpong_dl", blocks, 8, false},
        {"bias_gelu", "pingpong_dl", blocks, 8, false},
        {"residual", "pingpong_dl", blocks, 8, false},
        {"two_results", "pingpong_dl", blocks, 8, false},
        {"row_sums", "pingpong_dl", blocks, 8, false}}},
      {"grid",
       {1, 32768, 3072, 768},
       "dl",
       {{"plain", "pingpong_dl", 132, 8, false},
        {"plain", "pingpong_dl", 128, 8, false},
        {"plain", "pingpong_dl", 124, 8, false},
        {"plain", "pingpong_dl", 116, 8, false}}},
  };
}

using Start = std::function<void()>;

struct Candidate {
  std::string name;
  Start start;
  double error = 0;
  bool repeats = true;
  bool complete = true;
  std::vector<double> burst = {}, sustained = {};  // TFLOP/s
};

double seconds_per_start(const Start& start, int count) {
  Stopwatch watch;
  watch.start();
  for (int i = 0; i < count; ++i) start();
  return watch.stop() / count;
}

int starts_in(double seconds, double seconds_each) {
  return std::max(2, static_cast<int>(seconds / seconds_each));
}

void measure(Candidate& candidate, double teraflop) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double first = seconds_per_start(candidate.start, 2);
  const double burst = seconds_per_start(candidate.start, starts_in(5e-3, first));
  candidate.burst.push_back(teraflop / burst);
  seconds_per_start(candidate.start, starts_in(60e-3, burst));
  candidate.sustained.push_back(teraflop /
                                seconds_per_start(candidate.start, starts_in(90e-3, burst)));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Sample {
  int64_t row, column;
  double product;
};

std::vector<Sample> sample(const MatmulProblem& problem) {
  const MatmulSizes& s = problem.sizes();
  std::vector<Sample> samples;
  for (int64_t row = 0; row < s.rows; row += 128) {
    for (int64_t column = 0; column < s.columns; column += 128) {
      const uint32_t bits = random_bits(9, samples.size());
      samples.push_back({std::min(s.rows - 1, row + bits % 128),
                         std::min(s.columns - 1, column + bits / 128 % 128), 0});
    }
  }
  // The largest shape has 100,000 samples: too many for one thread.
  std::vector<std::thread> threads;
  const size_t workers = std::max(1u, std::thread::hardware_concurrency());
  for (size_t worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      for (size_t i = worker; i < samples.size(); i += workers) {
        samples[i].product = problem.product(0, samples[i].row, samples[i].column);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return samples;
}

double sampled_error(const MatmulProblem& problem, const DeviceMemory& result,
                     const std::vector<Sample>& samples) {
  std::vector<uint16_t> bits(result.bytes() / 2);
  result.read(bits.data(), result.bytes());
  double difference = 0, norm = 0;
  for (const Sample& s : samples) {
    const uint32_t word =
        static_cast<uint32_t>(bits[static_cast<size_t>(s.row * problem.stride() + s.column)]) << 16;
    const double error = static_cast<double>(__builtin_bit_cast(float, word)) - s.product;
    difference += error * error;
    norm += s.product * s.product;
  }
  return std::sqrt(difference / norm);
}

// Runs twice; `twin` holds the first result meanwhile. Only the bare product has a sampled
// reference here; gpu_matmul_check checks the other visitors.
void check(Candidate& candidate, const std::string& visitor, MatmulProblem& problem,
           DeviceMemory& twin, const std::vector<Sample>& samples) {
  problem.prepare(visitor);
  candidate.start();
  const auto poison = problem.count_poison(problem.result());
  candidate.complete = poison.unwritten == 0 && poison.overwritten == 0;
  if (visitor == "plain") candidate.error = sampled_error(problem, problem.result(), samples);
  twin.copy_from(problem.result());
  candidate.start();
  synchronize_device();
  candidate.repeats = problem.count_differences(problem.result(), twin) == 0;
}

bool print(const Shape& shape, const std::vector<Candidate>& candidates) {
  bool passes = true;
  const MatmulSizes& s = shape.sizes;
  const double peer_burst = median(candidates[0].burst);
  const double peer_sustained = median(candidates[0].sustained);
  for (const Candidate& c : candidates) {
    const bool ok = c.error < 2e-3 && c.repeats && c.complete;
    std::printf("%-10s %6lld %6lld %6lld  %-36s %5.0f %5.0f  %.3f %.3f  %.2e %s\n", shape.name,
                static_cast<long long>(s.rows), static_cast<long long>(s.columns),
                static_cast<long long>(s.depth), c.name.c_str(), median(c.burst),
                median(c.sustained), median(c.burst) / peer_burst,
                median(c.sustained) / peer_sustained, c.error, ok ? "ok" : "FAIL");
    passes = passes && ok;
  }
  std::fflush(stdout);
  return passes;
}

std::string name_of(const MatmulOptions& options) {
  return options.visitor + " " + options.kernel + " /" + std::to_string(options.raster_group) +
         (options.blocks == 132 ? "" : " on " + std::to_string(options.blocks));
}

struct Options {
  std::string folder, cublas, only;
  int rounds = 3;
};

bool run(const Options& options, const Shape& shape, const Cublas* cublas) {
  MatmulProblem problem(options.folder, shape.sizes, shape.layout[0] == 'l',
                        shape.layout[1] == 'l');
  DeviceMemory twin(problem.result().bytes());
  const std::vector<Sample> samples = sample(problem);
  std::vector<std::unique_ptr<MatmulRun>> runs;
  std::vector<Candidate> candidates;
  if (cublas != nullptr) {
    candidates.push_back({"cuBLAS", [&] { cublas->start(problem); }});
    problem.prepare("plain");
    candidates[0].start();
    candidates[0].error = sampled_error(problem, problem.result(), samples);
  }
  for (const MatmulOptions& one : shape.candidates) {
    runs.push_back(std::make_unique<MatmulRun>(options.folder, problem, one));
    candidates.push_back({name_of(one), [run = runs.back().get()] { run->start(); }});
    check(candidates.back(), one.visitor, problem, twin, samples);
  }
  const double teraflop = 2e-12 * static_cast<double>(shape.sizes.rows) *
                          static_cast<double>(shape.sizes.columns) *
                          static_cast<double>(shape.sizes.depth);
  for (size_t round = 0; round < static_cast<size_t>(options.rounds); ++round) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      measure(candidates[(i + round) % candidates.size()], teraflop);
    }
  }
  return print(shape, candidates);
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word.rfind("--", 0) != 0) {
      options.folder = word;
    } else if (i + 1 < count && word == "--cublas") {
      options.cublas = arguments[++i];
    } else if (i + 1 < count && word == "--only") {
      options.only = arguments[++i];
    } else if (i + 1 < count && word == "--rounds") {
      options.rounds = std::max(1, std::atoi(arguments[++i]));
    } else {
      options.folder.clear();
      break;
    }
  }
  if (options.folder.empty()) {
    std::fprintf(stderr,
                 "usage: gpu_matmul_bench FOLDER-OF-CUBINS [--cublas FILE] [--rounds N] "
                 "[--only WORD]\n");
    std::exit(2);
  }
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  const Device device = open_hopper_or_skip();
  std::unique_ptr<Cublas> cublas;
  if (!options.cublas.empty()) cublas = std::make_unique<Cublas>(options.cublas);
  std::printf("%s, %d multiprocessors\n", device.name.c_str(), device.multiprocessors);
  std::printf("%-10s %6s %6s %6s  %-36s %5s %5s  %-11s  error\n", "", "rows", "columns", "depth",
              "TFLOP/s", "burst", "sust.", "to first");
  bool passes = true;
  for (const Shape& shape : shapes(device.multiprocessors / 2 * 2)) {
    if (std::string(shape.name).find(options.only) == std::string::npos) continue;
    passes = run(options, shape, cublas.get()) && passes;
  }
  return passes ? 0 : 1;
}
