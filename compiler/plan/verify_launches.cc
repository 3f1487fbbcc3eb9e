// Group 5 of verify_plan: what GPUs demand of launches and of the tensors that they copy.
#include <algorithm>
#include <climits>

#include "plan/verify_parts.h"
#include "support/dtype.h"

namespace sgtc {
namespace {

constexpr int64_t kArgumentAlignment = 16;
constexpr int64_t kSwizzledBytes = 128;  // the longest row of a box
constexpr int64_t kLongestBox = 256;     // elements of a dimension
constexpr int64_t kLargestCluster = 8;   // without asking the driver for more
constexpr int64_t kLargestGrid = INT32_MAX;
constexpr int64_t kMostArguments = 500;  // parameters have 4 KiB
constexpr int64_t kMostBlocks = 32;      // of a communicator, in every version of NCCL

// What an architecture offers.
struct Architecture {
  const char* name;
  int64_t shared_bytes;  // per block
  bool has_clusters;     // and engines that copy tensors
};
constexpr Architecture kArchitectures[] = {{"sm_80", 163 << 10, false},
                                           {"sm_90a", 227 << 10, true}};

std::string between(int64_t low, int64_t high, int64_t found) {
  return std::to_string(low) + " to " + std::to_string(high) + ", found " + std::to_string(found);
}

class LaunchChecker {
 public:
  explicit LaunchChecker(const ResolvedPlan& resolved)
      : resolved_(resolved), plan_(resolved.plan) {}

  PlanFaults run() {
    if (plan_.target == "cpu") {
      check_cpu();
      return std::move(faults_);
    }
    const auto* architecture =
        std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                     [&](const Architecture& known) { return plan_.target == known.name; });
    if (architecture == std::end(kArchitectures)) {
      add("the target is cpu, sm_80 or sm_90a, found \"" + plan_.target + "\"");
      return std::move(faults_);
    }
    if (plan_.multiprocessors < 1) add("a GPU has multiprocessors, found none");
    for (const plan::Communicator& communicator : plan_.communicators) {
      if (communicator.blocks >= 1 && communicator.blocks <= kMostBlocks) continue;
      add("communicator \"" + communicator.name + "\": blocks are from " +
          between(1, kMostBlocks, communicator.blocks));
    }
    for (const plan::Kernel& kernel : plan_.kernels) check_launch(kernel, *architecture);
    if (faults_.empty()) check_calls();
    return std::move(faults_);
  }

 private:
  void add(const std::string& text) { faults_.push_back({-1, "", -1, "", "", text}); }
  void add(const plan::Kernel& kernel, const std::string& text) {
    add("kernel \"" + kernel.symbol + "\": " + text);
  }

  void check_cpu() {
    if (plan_.multiprocessors != 0) add("a CPU has no multiprocessors");
    for (const plan::Kernel& kernel : plan_.kernels) {
      const plan::Launch& launch = kernel.launch;
      if (launch.threads == 0 && launch.shared_bytes == 0 && !launch.indirect &&
          launch.tensor_maps.empty()) {
        continue;
      }
      add(kernel, "is for GPUs, the target is cpu");
    }
  }

  void check_launch(const plan::Kernel& kernel, const Architecture& architecture) {
    const plan::Launch& launch = kernel.launch;
    if (launch.threads < 32 || launch.threads > 1024 || launch.threads % 32 != 0) {
      add(kernel, "threads are a multiple of 32 from " + between(32, 1024, launch.threads));
    }
    if (kernel.blocks < 1 || kernel.blocks > kLargestGrid) {
      add(kernel, "blocks are from " + between(1, kLargestGrid, kernel.blocks));
    }
    if (launch.shared_bytes < 0 || launch.shared_bytes > architecture.shared_bytes) {
      add(kernel, "bytes of shared memory are from " +
                      between(0, architecture.shared_bytes, launch.shared_bytes));
    }
    check_cluster(kernel, architecture);
    if (launch.resident && kernel.blocks > plan_.multiprocessors) {
      add(kernel, "blocks that wait for each other are from " +
                      between(1, plan_.multiprocessors, kernel.blocks));
    }
    if (launch.indirect && !launch.tensor_maps.empty()) {
      add(kernel, "has its arguments in a table, and tensor maps, which only parameters go with");
    }
    if (!launch.indirect && static_cast<int64_t>(kernel.access.size()) > kMostArguments) {
      add(kernel, "arguments that are parameters are from " +
                      between(0, kMostArguments, static_cast<int64_t>(kernel.access.size())));
    }
    if (!launch.tensor_maps.empty() && !architecture.has_clusters) {
      add(kernel, "has tensor maps, which " + plan_.target + " does not know");
    }
    for (const plan::TensorMap& map : launch.tensor_maps) check_map(kernel, map);
  }

  void check_cluster(const plan::Kernel& kernel, const Architecture& architecture) {
    const int64_t cluster = kernel.launch.cluster;
    const int64_t largest = architecture.has_clusters ? kLargestCluster : 1;
    if (cluster < 1 || cluster > largest) {
      add(kernel, "blocks of a cluster are from " + between(1, largest, cluster));
    } else if (kernel.blocks % cluster != 0) {
      add(kernel, "clusters of " + std::to_string(cluster) + " do not divide a grid of " +
                      std::to_string(kernel.blocks));
    }
  }

  void check_map(const plan::Kernel& kernel, const plan::TensorMap& map) {
    const auto fault = [&](const std::string& text) { add(kernel, "tensor map: " + text); };
    if (map.argument < 0 || map.argument >= static_cast<int64_t>(kernel.access.size())) {
      return fault("there is no argument " + std::to_string(map.argument));
    }
    const auto dtype = dtype_from_name(map.dtype);
    if (!dtype) return fault("unknown dtype \"" + map.dtype + "\"");
    const size_t rank = map.sizes.size();
    if (rank < 2 || rank > 5 || map.strides.size() != rank - 1 || map.box.size() != rank) {
      return fault("2 to 5 sizes, as many of the box and a stride less are expected, found " +
                   std::to_string(rank) + ", " + std::to_string(map.box.size()) + " and " +
                   std::to_string(map.strides.size()));
    }
    for (const int64_t size : map.sizes) {
      if (size < 1 || size > UINT32_MAX) fault("sizes are from " + between(1, UINT32_MAX, size));
    }
    for (const int64_t size : map.box) {
      if (size < 1 || size > kLongestBox) {
        fault("sizes of a box are from " + between(1, kLongestBox, size));
      }
    }
    for (const int64_t stride : map.strides) {
      if (stride < 16 || stride >= int64_t{1} << 40 || stride % 16 != 0) {
        fault("strides are multiples of 16 below 2^40, found " + std::to_string(stride));
      }
    }
    if (map.offset < 0 || map.offset % 16 != 0) {
      fault("the offset is a multiple of 16, found " + std::to_string(map.offset));
    }
    const int64_t row = map.box[0] * size_of(*dtype);
    if (row > kSwizzledBytes || row % 16 != 0) {
      fault("a row of the box has up to 128 bytes, a multiple of 16; found " + std::to_string(row));
    }
  }

  void check_calls() {
    for (size_t p = 0; p < plan_.positions.size(); ++p) {
      for (const plan::Task& task : plan_.positions[p].tasks) {
        for (const plan::Call& call : task.calls) check_call(p, task, call);
      }
    }
  }

  void check_call(size_t p, const plan::Task& task, const plan::Call& call) {
    const auto& buffers = resolved_.positions[p].buffers;
    const auto fault = [&](const plan::Argument& argument, const std::string& text) {
      faults_.push_back({static_cast<int64_t>(p), "", -1, task.name, argument.buffer, text});
    };
    for (const plan::Argument& argument : call.arguments) {
      const plan::Buffer& buffer = *buffers.at(argument.buffer);
      const plan::Affine& at = argument.offset;
      for (const int64_t part : {buffer.offset, buffer.stride, at.base, at.dp, at.tp}) {
        if (part % kArgumentAlignment == 0) continue;
        fault(argument, "arguments are multiples of 16 bytes, found " + std::to_string(part));
      }
    }
    for (const plan::TensorMap& map : resolved_.kernels.at(call.kernel)->launch.tensor_maps) {
      const plan::Argument& argument = call.arguments[static_cast<size_t>(map.argument)];
      const int64_t bytes = bytes_of(argument, *buffers.at(argument.buffer));
      const int64_t end = end_of(map);
      if (end <= bytes) continue;
      fault(argument, "a tensor map ends at byte " + std::to_string(end) + " of " +
                          std::to_string(bytes) + " of the argument");
    }
  }

  // Behind the last byte of the tensor; the largest number where that does not fit into one.
  static int64_t end_of(const plan::TensorMap& map) {
    int64_t end = map.sizes[0] * size_of(*dtype_from_name(map.dtype));
    bool overflows = __builtin_add_overflow(end, map.offset, &end);
    for (size_t i = 1; i < map.sizes.size(); ++i) {
      int64_t distance = 0;
      overflows |= __builtin_mul_overflow(map.sizes[i] - 1, map.strides[i - 1], &distance);
      overflows |= __builtin_add_overflow(end, distance, &end);
    }
    return overflows ? INT64_MAX : end;
  }

  const ResolvedPlan& resolved_;
  const plan::Plan& plan_;
  PlanFaults faults_;
};

}  // namespace

PlanFaults find_launch_faults(const ResolvedPlan& plan) { return LaunchChecker(plan).run(); }

}  // namespace sgtc
