// The time of a kernel on a machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cost/hardware.h"

namespace sgtc {

/// What the time of a kernel depends on.
struct KernelWork {
  std::string symbol;
  std::string kind;   // as in a plan: loop, matmul …
  std::string dtype;  // as of `rated_dtype`
  int64_t flops = 0;
  int64_t bytes = 0;
  int64_t blocks = 1;
};

/// The type that a kernel's time goes by, of those of its arguments: the first 16-bit float, since
/// such products have units of their own, else the first. What is added up in f32 may come before
/// the operands.
std::string rated_dtype(const std::vector<std::string>& arguments);

/// A kernel's call on a rank of its own: on so many units it takes so many seconds.
struct KernelTime {
  double seconds = 0;
  int64_t units = 1;
};

/// Predicts kernels: a measured one takes what was measured, any other the larger of computing and
/// memory time at the rates of its kind (roofline; Williams et al., 2009), plus its launch. A kind
/// without rates has those that fit its measured kernels best, else those of "".
class KernelClock {
 public:
  /// `units` are those that a rank computes on: threads of a CPU, multiprocessors. `hardware` must
  /// outlive this.
  KernelClock(const Hardware& hardware, int64_t units);

  KernelTime time(const KernelWork& work) const;

  /// What all units together sustain in kernels of a kind, one call's launch aside.
  KernelRate rate(const std::string& kind) const;

 private:
  const KernelRate& rate_of(const KernelWork& work) const;

  const Hardware& hardware_;
  int64_t units_;
  std::map<std::string, KernelRate> rates_;
};

/// The rates for which the kernels of `kind` are predicted best: the least squares of the
/// logarithms of predicted over measured seconds, found by descent along each rate in turn from
/// `start`. `start` itself if none was measured.
KernelRate fit_rate(const Hardware& hardware, const std::string& kind, const KernelRate& start);

/// Seconds of a kernel of the given rates whose blocks are dealt out to at most `units`.
/// `memory_bytes_per_second` bounds all units together; 0: it does not.
double roofline_seconds(const KernelRate& rate, int64_t flops, int64_t bytes, int64_t units,
                        double memory_bytes_per_second);

}  // namespace sgtc
