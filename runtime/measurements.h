// What a program's kernels and communications take alone, as they were measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/format.h"

namespace sgtc::runtime {

struct MeasuredKernel {
  const plan::Kernel* kernel = nullptr;
  double seconds = 0;  // of one call
};

struct MeasuredCommunication {
  std::string kind;  // of a plan's task; "send" stands for both ends of a transfer
  int64_t members = 2;
  int64_t bytes = 0;  // of the larger side
  double seconds = 0;
};

/// Of a machine's units, cores or multiprocessors, a rank has `units` for its kernels.
struct Measurements {
  std::string hardware;
  int64_t units = 1;
  std::vector<MeasuredKernel> kernels;
  std::vector<MeasuredCommunication> communications;
};

/// The middle value; `values` is not empty.
double median(std::vector<double> values);

/// `values` is not empty.
double mean(const std::vector<double>& values);

}  // namespace sgtc::runtime
