// The lists of docs/operators.md, which tests hold against the compiler.
#pragma once

#include <set>
#include <string>

namespace sgtc::testing {

/// The names in the block of text number `block` below the heading "## SECTION" (0 is the first).
/// Throws std::runtime_error when there is none.
std::set<std::string> documented_operators(const std::string& section, int block = 0);

}  // namespace sgtc::testing
