// Merging without a schedule.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "passes/gpu/merge_loops.h"

namespace sgtc::testing {

/// Loops of one form as one kernel at the place of the first. Each may read results of earlier
/// forms alone.
inline std::vector<KernelSpec> merge_forms(const std::vector<KernelSpec>& kernels) {
  std::vector<std::pair<std::string, std::vector<const KernelSpec*>>> forms;
  for (const KernelSpec& kernel : kernels) {
    const auto key = gpu::merge_key(kernel);
    const std::string form = key ? key->form : "alone " + std::to_string(forms.size());
    const auto found = std::find_if(forms.begin(), forms.end(),
                                    [&](const auto& known) { return known.first == form; });
    if (found == forms.end()) {
      forms.push_back({form, {&kernel}});
    } else {
      found->second.push_back(&kernel);
    }
  }
  std::vector<KernelSpec> merged;
  for (const auto& [form, members] : forms) {
    merged.push_back(members.size() == 1 ? *members[0] : gpu::merge_loops(members).kernel);
  }
  return merged;
}

}  // namespace sgtc::testing
