// The graphs whose loop kernels are checked and measured on a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sgtc::testing {

struct LoopCase {
  std::string name;
  std::string text;                  // of the graph
  double tolerance = 2e-6;           // |found - expected| <= tolerance * (1 + |expected|)
  bool in_place = false;             // results take the bytes of the states that they may share
  std::vector<int64_t> status = {};  // of a bad index: checked node, index, extent
};

/// Small ones, compared with the interpreter.
std::vector<LoopCase> checked_loops();

/// Large ones, whose bandwidth is measured.
std::vector<LoopCase> measured_loops();

}  // namespace sgtc::testing
