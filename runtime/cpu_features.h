// What the CPU can do, checked before the first kernel runs.
#pragma once

#include <string>
#include <vector>

#include "failure.h"

namespace sgtc::runtime {

/// A failure that names every feature (by LLVM's names: "avx2", "fma", "avx512f"…) of `needed` that
/// this CPU or its operating system lacks. A name that is not known counts as missing.
MaybeFailure check_cpu_features(const std::vector<std::string>& needed, const std::string& target);

}  // namespace sgtc::runtime
