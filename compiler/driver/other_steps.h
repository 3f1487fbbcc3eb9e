// Other ways to do the work of a step that does not fit into memory.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "driver/options.h"
#include "import/model.h"
#include "mesh/mesh.h"
#include "search/fit_memory.h"

namespace sgtc {

using Dims = std::vector<std::pair<std::string, int64_t>>;

/// Fits the step of other options; nothing if they do not compile.
using StepFitter =
    std::function<std::optional<FittedStep>(const Options&, const Dims&, const Mesh&)>;

/// With recomputation, where that is off; with 1F1B instead of GPipe; on 2, 4 and 8 times as many
/// stages; and, where the model leaves the number of rows open, with 2, 4 and 8 times as many
/// micro-batches of fewer rows.
std::vector<OtherStep> other_steps(const Options& options, const OnnxModel& model, const Dims& dims,
                                   const Mesh& mesh, const StepFitter& fit);

}  // namespace sgtc
