// Limits that rules of lowering put on numbers of a file, so that 64 bits hold what they compute
// from them and that no list outgrows memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sgtc {

/// Strides, dilations, windows, paddings, repeats and blocks have at most this size. The product of
/// one and the size of a dimension (ir/limits.h) is below 2^63.
inline constexpr int64_t kMaxFactor = int64_t{1} << 20;

/// Positions and weights that a rule lists one by one when the model is compiled.
inline constexpr int64_t kMaxListed = int64_t{1} << 24;

/// Returns `value`. Throws Error when it is not in [least, kMaxFactor]; `what` names it.
int64_t checked_factor(int64_t value, int64_t least, const std::string& what);

/// The product of sizes that are not negative. Throws Error when it is above kMaxListed.
int64_t checked_list_size(const std::vector<int64_t>& sizes, const std::string& what);

}  // namespace sgtc
