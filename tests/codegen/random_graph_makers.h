// One function per differentiable operator that draws operands and attributes for it.
#pragma once

#include <optional>
#include <vector>

#include "codegen/random_graph.h"

namespace sgtc::test {

/// Appends the operator to a random graph; kNone when no value suits it.
using Maker = ValueId (*)(RandomGraph&);

struct MakerOf {
  Op op;
  Maker make;
};

const std::vector<MakerOf>& makers();

}  // namespace sgtc::test
