#include "cost/kernel_time.h"

#include <algorithm>
#include <cmath>

namespace sgtc {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t units_for(int64_t blocks, int64_t units) { return std::clamp<int64_t>(blocks, 1, units); }

double squares(const Hardware& hardware, const std::string& kind, const KernelRate& rate) {
  double sum = 0;
  for (const auto& [symbol, kernel] : hardware.kernels) {
    if (kernel.kind != kind || kernel.seconds <= 0) continue;
    const double predicted =
        roofline_seconds(rate, kernel.flops, kernel.bytes, units_for(kernel.blocks, kernel.units),
                         hardware.memory_bytes_per_second);
    const double error = std::log(predicted / kernel.seconds);
    sum += error * error;
  }
  return sum;
}

}  // namespace

std::string rated_dtype(const std::vector<std::string>& arguments) {
  for (const std::string& dtype : arguments) {
    if (dtype == "bf16" || dtype == "f16") return dtype;
  }
  return arguments.empty() ? "" : arguments.front();
}

double roofline_seconds(const KernelRate& rate, int64_t flops, int64_t bytes, int64_t units,
                        double memory_bytes_per_second) {
  const auto count = static_cast<double>(units);
  double bandwidth = count * rate.bytes_per_second;
  if (memory_bytes_per_second > 0) bandwidth = std::min(bandwidth, memory_bytes_per_second);
  const double compute = static_cast<double>(flops) / (count * rate.flops_per_second);
  const double memory = static_cast<double>(bytes) / bandwidth;
  return std::max(compute, memory) + rate.seconds_per_call;
}

KernelRate fit_rate(const Hardware& hardware, const std::string& kind, const KernelRate& start) {
  KernelRate best = start;
  double least = squares(hardware, kind, best);
  for (double factor = 4; factor > 1.005; factor = std::sqrt(factor)) {
    for (bool improves = true; improves;) {
      improves = false;
      for (double KernelRate::* field :
           {&KernelRate::flops_per_second, &KernelRate::bytes_per_second,
            &KernelRate::seconds_per_call}) {
        for (const double change : {factor, 1 / factor}) {
          KernelRate trial = best;
          trial.*field *= change;
          const double error = squares(hardware, kind, trial);
          if (error >= least * (1 - 1e-9)) continue;
          best = trial;
          least = error;
          improves = true;
        }
      }
    }
  }
  return best;
}

KernelClock::KernelClock(const Hardware& hardware, int64_t units)
    : hardware_(hardware), units_(units), rates_(hardware.rates) {
  const KernelRate start =
      rates_.count("") != 0 ? rates_.at("") : hardware_preset("cpu").rates.at("");
  rates_.emplace("", start);
  for (const auto& [symbol, kernel] : hardware.kernels) {
    if (rates_.count(kernel.kind) != 0) continue;
    rates_[kernel.kind] = fit_rate(hardware, kernel.kind, start);
  }
}

const KernelRate& KernelClock::rate_of(const KernelWork& work) const {
  const auto typed = rates_.find(work.kind + " " + work.dtype);
  if (typed != rates_.end()) return typed->second;
  const auto found = rates_.find(work.kind);
  return found != rates_.end() ? found->second : rates_.at("");
}

KernelTime KernelClock::time(const KernelWork& work) const {
  const int64_t units = units_for(work.blocks, units_);
  const auto measured = hardware_.kernels.find(work.symbol);
  if (measured != hardware_.kernels.end()) {
    const MeasuredKernel& kernel = measured->second;
    // A unit that has more of the blocks than one had then takes as much longer.
    const double then = static_cast<double>(ceil_div(kernel.blocks, kernel.units));
    const double now = static_cast<double>(ceil_div(std::max<int64_t>(work.blocks, 1), units_));
    return {kernel.seconds * now / then, units};
  }
  return {roofline_seconds(rate_of(work), work.flops, work.bytes, units,
                           hardware_.memory_bytes_per_second),
          units};
}

KernelRate KernelClock::rate(const std::string& kind) const {
  KernelWork work;
  work.kind = kind;
  const auto units = static_cast<double>(units_);
  KernelRate rate = rate_of(work);
  rate.flops_per_second *= units;
  rate.bytes_per_second *= units;
  const double memory = hardware_.memory_bytes_per_second;
  if (memory > 0) rate.bytes_per_second = std::min(rate.bytes_per_second, memory);
  return rate;
}

}  // namespace sgtc
