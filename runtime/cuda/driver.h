// The one door to the CUDA driver: libcuda.so.1, loaded at run time, every call checked.
//
// The driver and what it creates live as long as the process, which the driver cleans up after;
// nothing is freed here.
#pragma once

#include <functional>
#include <string>

#include "cuda/driver_functions.h"

namespace sgtc::runtime::cuda {

class Driver {
 public:
  /// Loads and initialises the driver. Dies if there is none, it is too old, or it finds no GPU.
  /// SGTC_CUDA_LIBRARY names another library to load.
  Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  Functions functions;

  /// What messages are about from now on, such as "GPU 0 (NVIDIA H200)".
  void set_subject(std::string subject) { subject_ = std::move(subject); }
  const std::string& subject() const { return subject_; }
  /// What is done when a kernel has failed, before the process ends because of that.
  void set_fault_hook(std::function<void()> hook) { fault_hook_ = std::move(hook); }
  /// "12.4": the newest CUDA version that the driver supports.
  std::string version() const;

  /// Dies, naming the call, unless `result` is success.
  void check(int result, const char* call) const;
  /// "out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)"
  std::string text_of(int result) const;

 private:
  void load();

  std::string subject_ = "CUDA driver";
  std::function<void()> fault_hook_;
};

/// Calls a function of the driver: SGTC_CUDA(driver, cuInit(0)).
#define SGTC_CUDA(driver, call) (driver).check((driver).functions.call, #call)

}  // namespace sgtc::runtime::cuda
