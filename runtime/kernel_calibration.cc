// A kernel in a step finds caches as the kernels before it left them, and its time varies with what
// else the machine does. A burst of one kernel knows neither: its data is in the caches, and all of
// it falls into a quiet or into a busy moment. So rounds run each kernel once, in the order of the
// schedule, on its calls in turn, and what one costs in a step of many calls is the mean: it counts
// the moments in which the machine was busy, which the median leaves out. Ranks that take turns on
// too few CPUs do so here too, since they take each other's caches; what a kernel costs is then
// its processor time.
#include "kernel_calibration.h"

#include <time.h>
#include <unistd.h>

#include <map>

#include "schedule_entries.h"

namespace sgtc::runtime {
namespace {

constexpr size_t kMostCalls = 64;  // of one kernel, which take turns
constexpr size_t kLeastRounds = 5;
constexpr size_t kMostRounds = 200;
constexpr double kEnoughSeconds = 3;
constexpr int64_t kLine = 64;  // bytes

struct Call {
  std::vector<void*> arguments;
  int64_t micro_batch = 0;
};

struct KernelCalls {
  const plan::Kernel* kernel = nullptr;
  decltype(SgtcKernel::function) function = nullptr;
  std::vector<Call> calls;
};

// Writes to every cache line of one part of a buffer per block.
void sweep(void* const* arguments, int64_t block_begin, int64_t block_end, int64_t) {
  const int64_t bytes = *static_cast<const int64_t*>(arguments[1]);
  unsigned char* begin = static_cast<unsigned char*>(arguments[0]) + block_begin * bytes;
  unsigned char* end = static_cast<unsigned char*>(arguments[0]) + block_end * bytes;
  for (unsigned char* line = begin; line < end; line += kLine) ++*line;
}

// Takes what kernels left in the caches that belong to one core alone.
class CacheSweeper {
 public:
  explicit CacheSweeper(ThreadPool& threads) : threads_(threads) {
    const int64_t cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    bytes_ = 2 * (cache > 0 ? cache : int64_t{1} << 20);
    memory_.resize(static_cast<size_t>(bytes_ * threads.size()));
  }

  void run() {
    void* const arguments[] = {memory_.data(), &bytes_};
    threads_.run(sweep, arguments, threads_.size(), 0);
  }

 private:
  ThreadPool& threads_;
  int64_t bytes_ = 0;  // per thread
  std::vector<unsigned char> memory_;
};

// The kernels of the schedule in the order of their first calls.
std::vector<KernelCalls> collect_calls(const Program& program, const Session& session) {
  const plan::Plan& plan = session.plan();
  std::map<std::string, KernelCalls> known;
  for (const plan::Kernel& kernel : plan.kernels) known[kernel.symbol].kernel = &kernel;
  for (int64_t i = 0; i < program.kernel_count; ++i) {
    const auto found = known.find(program.kernels[i].symbol);
    if (found != known.end()) found->second.function = program.kernels[i].function;
  }
  const EntryResolver resolver(plan, session.coordinates(), session.memory());
  const plan::Position& position = plan.positions[static_cast<size_t>(session.coordinates().pp)];
  const auto schedule = position.schedules.find("train");
  if (schedule == position.schedules.end()) return {};
  std::vector<std::string> order;
  for (const plan::Entry& entry : schedule->second) {
    for (const plan::Call& call : resolver.task(entry).calls) {
      KernelCalls& kernel = known[call.kernel];
      if (!kernel.function) die_of_bad_plan("there is no kernel " + call.kernel);
      if (kernel.calls.empty()) order.push_back(call.kernel);
      if (kernel.calls.size() == kMostCalls) continue;
      Call& added = kernel.calls.emplace_back();
      added.micro_batch = resolver.global_micro_batch(entry);
      for (const plan::Argument& argument : call.arguments) {
        added.arguments.push_back(resolver.range(argument, entry).data);
      }
    }
  }
  std::vector<KernelCalls> result;
  for (const std::string& symbol : order) result.push_back(std::move(known[symbol]));
  return result;
}

double seconds_on(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const KernelCalls& kernel, const Call& call, ThreadPool& threads,
                  clockid_t clock) {
  const double begin = seconds_on(clock);
  threads.run(kernel.function, call.arguments.data(), kernel.kernel->blocks, call.micro_batch);
  return seconds_on(clock) - begin;
}

}  // namespace

std::vector<MeasuredKernel> measure_kernels(const Program& program, const Session& session,
                                            ThreadPool& threads, bool crowded) {
  const clockid_t clock = crowded ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  CacheSweeper sweeper(threads);
  const std::vector<KernelCalls> kernels = collect_calls(program, session);
  std::vector<MeasuredKernel> result;
  for (const KernelCalls& kernel : kernels) result.push_back({kernel.kernel, 0});
  size_t rounds = 0;
  for (double sum = 0; rounds < kLeastRounds || (rounds < kMostRounds && sum < kEnoughSeconds);
       ++rounds) {
    for (size_t i = 0; i < kernels.size(); ++i) {
      const std::vector<Call>& calls = kernels[i].calls;
      sweeper.run();
      const double seconds = seconds_of(kernels[i], calls[rounds % calls.size()], threads, clock);
      result[i].seconds += seconds;
      sum += seconds;
    }
  }
  for (MeasuredKernel& measured : result) measured.seconds /= static_cast<double>(rounds);
  return result;
}

}  // namespace sgtc::runtime
