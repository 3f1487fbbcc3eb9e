// All stages of a compilation, in order.
#pragma once

#include <string>
#include <vector>

#include "driver/options.h"
#include "support/diagnostics.h"

namespace sgtc {

/// A point where `--stop-after` can end the compilation.
struct PhaseInfo {
  std::string name;
  std::string what;
};
const std::vector<PhaseInfo>& phases();

/// Compiles `options.model` and writes what was asked for. Throws Error for what the user did
/// wrong; warnings are left in `diagnostics`. Writes no output file unless it succeeds, but for
/// `--emit=ptx`, which writes the loop kernels of a model even if others have no code for the GPU.
void compile(const Options& options, Diagnostics& diagnostics);

}  // namespace sgtc
