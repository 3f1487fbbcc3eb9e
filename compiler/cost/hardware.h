// What a plan runs on, as far as its time depends on it.
//
// A profile has two layers. *Rates* say what any kernel of a kind and any communication take: they
// come from data sheets and a few measurements, or are fitted. *Measurements* of single kernels and
// communications, as `./train --calibrate` writes them, win over rates where there are some. A
// kernel is known by its symbol, which is a hash of its code's description, so that a measurement
// holds for every program with an equal kernel.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sgtc {

/// Sustained rates of kernels of one kind, on one unit. `bytes` are those that a plan counts:
/// every argument once.
struct KernelRate {
  double flops_per_second = 0;
  double bytes_per_second = 0;
  double seconds_per_call = 0;
  bool operator==(const KernelRate&) const = default;
};

/// A kernel that was measured alone: seconds of one call whose blocks `units` units shared.
struct MeasuredKernel {
  std::string kind;
  int64_t flops = 0;
  int64_t bytes = 0;
  int64_t blocks = 1;
  int64_t units = 1;
  double seconds = 0;
  bool operator==(const MeasuredKernel&) const = default;
};

/// What joins ranks, as one rank sees it in one direction.
struct Link {
  double bytes_per_second = 0;
  double seconds_per_message = 0;
  /// Bytes per second that one block of a communication kernel moves; 0: no such bound.
  double bytes_per_second_per_block = 0;
  bool operator==(const Link&) const = default;
};

/// A communication that was measured alone, between ranks of one host.
struct MeasuredCommunication {
  std::string kind;     // of a plan's task; "send" stands for both ends of a transfer
  int64_t members = 2;  // ranks that take part
  /// Bytes of the larger side of a rank, and seconds; at least one, ascending bytes.
  std::vector<std::pair<int64_t, double>> points;
  bool operator==(const MeasuredCommunication&) const = default;
};

/// A machine. A *unit* runs blocks of kernels: a core of a host's CPU, which all ranks of the host
/// share, or a multiprocessor of a GPU, of which each rank has its own.
struct Hardware {
  std::string name;
  std::string device = "cpu";  // or "gpu"
  int64_t units = 1;
  int64_t ranks_per_host = 0;  // that share the units of a CPU; 0: all ranks are on one host
  double memory_bytes_per_second = 0;  // bound of all units together; 0: none but their rates
  std::map<std::string, KernelRate>
      rates;  // by kind, or kind and type: "matmul bf16"; "" for others
  std::map<std::string, MeasuredKernel> kernels;  // by symbol
  Link host;                                      // between ranks of one host
  Link network;                                   // between hosts
  int64_t communication_blocks = 0;  // units that a communication takes from a GPU's kernels
  std::vector<MeasuredCommunication> communications;
  int64_t eager_bytes = 0;  // up to so many leave a sender before the receiver takes them

  bool is_gpu() const { return device == "gpu"; }

  /// Units that each of so many ranks computes on: those of its GPU, or its share of a host's
  /// cores, at least one. That is what the runtime gives it.
  int64_t units_of_rank(int64_t ranks) const;
  /// The host of a rank, by its number: ranks fill one host after the other.
  int64_t host_of_rank(int64_t rank) const {
    return ranks_per_host > 0 ? rank / ranks_per_host : 0;
  }
};

/// "cpu", "a100", "h100", "h200".
const std::vector<std::string>& hardware_presets();

/// A preset by name. "cpu" is a nominal server with AVX2 that 64 ranks share, one core each; a real
/// one may differ by a factor of a few.
/// The GPUs are SXM boards, eight to a host: "h200" has figures measured on one
/// (docs/performance.md), the other two the same shares of their data sheets' peaks, and were not
/// measured. Throws Error for another name.
Hardware hardware_preset(const std::string& name);

/// The preset that stands for a plan's target: "cpu", "sm_80" or "sm_90a".
Hardware default_hardware(const std::string& target);

}  // namespace sgtc
