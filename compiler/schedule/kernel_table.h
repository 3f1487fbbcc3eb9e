// The kernels of a plan.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/format.h"
#include "schedule/storage.h"

namespace sgtc {

/// Collects kernels as calls name them. Calls of equal kernels share one entry, which names the
/// nodes of all of them.
class KernelTable {
 public:
  /// `graph` is that of the call's program.
  void add(const Graph& graph, const StepCall& call);
  const plan::Kernel& kernel(const std::string& symbol) const {
    return kernels_[index_.at(symbol)];
  }

  std::vector<plan::Kernel>& kernels() { return kernels_; }
  /// The code of `kernels()`, in that order.
  std::vector<KernelSpec>& specs() { return specs_; }

 private:
  std::vector<plan::Kernel> kernels_;
  std::vector<KernelSpec> specs_;
  std::map<std::string, size_t> index_;
};

}  // namespace sgtc
