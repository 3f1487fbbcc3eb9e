// What kernels are made for, as far as graph passes, fusion and schedules depend on it.
#pragma once

#include <cstdint>
#include <string>

namespace sgtc {

/// The architecture that a plan's kernels run on. Kernels of equal targets are equal, whatever
/// machine compiles them.
struct KernelTarget {
  std::string name = "cpu";  // as for --target: cpu, sm_80, sm_90a
  /// Multiprocessors of a GPU: blocks that wait for each other may not be more, and kernels with a
  /// list of work have one block on each.
  int64_t multiprocessors = 0;

  bool is_gpu() const { return name != "cpu"; }
  bool is_hopper() const { return name == "sm_90a"; }
  bool operator==(const KernelTarget&) const = default;
};

inline const KernelTarget kCpuTarget;
/// H100 SXM, H200.
inline const KernelTarget kHopperTarget = {"sm_90a", 132};
/// A100.
inline const KernelTarget kAmpereTarget = {"sm_80", 108};

}  // namespace sgtc
