// How long all-reduces between processes of this host take.
//
//   all_reduce_bench [PROCESSES [gloo]]    default 2, through shared memory
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/communication/gloo_ranks.h"

namespace sgtc::runtime {
namespace {

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The median of `repeats` times of an operation, in seconds.
double measure(Operation& operation, int repeats, RankCommunicators& communicators) {
  Operation* const list[] = {&operation};
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const double begin = now();
    communicators.complete(list, 1);
    times.push_back(now() - begin);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void measure_size(int64_t bytes, int64_t rank, RankCommunicators& communicators) {
  Bytes data(static_cast<size_t>(bytes), 1);
  const int repeats = static_cast<int>(std::clamp<int64_t>((1 << 28) / bytes, 9, 20000));
  CommunicationRequest request;
  request.kind = CommunicationKind::all_reduce;
  request.dtype = "f32";
  request.inputs = request.outputs = {{data.data(), bytes}};
  Communicator& all = *communicators.find("all");
  const double reduce = measure(*all.prepare(request), repeats, communicators);
  if (rank == 0) {
    std::printf("all-reduce %9ld bytes: %10.1f us\n", static_cast<long>(bytes), reduce * 1e6);
  }
}

}  // namespace
}  // namespace sgtc::runtime

int main(int argument_count, char** arguments) {
  using namespace sgtc::runtime;
  const int64_t ranks = argument_count > 1 ? std::clamp(std::atoi(arguments[1]), 1, 8) : 2;
  const bool gloo = argument_count > 2 && std::string(arguments[2]) == "gloo";
  const auto body = [](int64_t rank, RankCommunicators& communicators) {
    for (const int64_t bytes : {64, 4096, 65536, 1 << 20, 64 << 20}) {
      measure_size(bytes, rank, communicators);
    }
    return Bytes();
  };
  run_processes({group_of_all(ranks, 64 << 20)}, ranks, gloo ? by_gloo() : by_shared_memory(),
                body);
}
