// The program's GPU kernels, loaded into the driver.
#pragma once

#include <string>
#include <unordered_map>

#include "cuda/driver.h"
#include "cuda/gpu.h"
#include "plan/format.h"
#include "program.h"

namespace sgtc::runtime::cuda {

/// How a kernel is launched, in the words of the driver. Stays in place, because it points to
/// itself.
class LaunchSettings {
 public:
  explicit LaunchSettings(const plan::Kernel& kernel, Stream stream = nullptr);
  LaunchSettings(const LaunchSettings&) = delete;
  LaunchSettings& operator=(const LaunchSettings&) = delete;

  const LaunchConfiguration& configuration() const { return configuration_; }
  /// Null for blocks without clusters.
  const LaunchAttributeValue* cluster() const {
    return configuration_.attribute_count == 0 ? nullptr : &cluster_.value;
  }

 private:
  LaunchAttribute cluster_ = {};
  LaunchConfiguration configuration_ = {};
};

class Kernels {
 public:
  /// All must outlive this.
  Kernels(const Driver& driver, const Gpu& gpu, const plan::Plan& plan, const Program& program)
      : driver_(driver), gpu_(gpu), plan_(plan), program_(program) {}

  /// Loads what the kernel needs at its first use. Dies if the program has no such kernel, the
  /// driver cannot load it, or its blocks wait for each other and the GPU has no room for all.
  Function find(const plan::Kernel& kernel);
  /// Where they run.
  Context context() const { return gpu_.context; }

 private:
  Function load(const plan::Kernel& kernel);
  Module load(const SgtcGpuImage& image);
  Module compile(const SgtcGpuImage& image);
  void check_room(const plan::Kernel& kernel, Function function) const;

  const Driver& driver_;
  const Gpu& gpu_;
  const plan::Plan& plan_;
  const Program& program_;
  std::unordered_map<const SgtcGpuImage*, Module> modules_;
  std::unordered_map<std::string, Function> functions_;
};

}  // namespace sgtc::runtime::cuda
