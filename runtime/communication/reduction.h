// Sums and maxima over members, element by element.
#pragma once

#include <cstdint>
#include <string_view>

namespace sgtc::runtime {

enum class Reduction { sum, max };

/// target[i] = ((sources[0][i] ∘ sources[1][i]) ∘ sources[2][i]) ∘ …, for `count` elements of
/// `members` ≥ 1 sources. 16-bit floats are accumulated in f32 and rounded once; integers wrap; a
/// maximum with a NaN is a NaN. The target may be one of the sources.
using Reducer = void (*)(const unsigned char* const* sources, int64_t members, int64_t count,
                         unsigned char* target);

/// Null for a type that is unknown, and for sums of bool.
Reducer find_reducer(std::string_view dtype, Reduction reduction);

}  // namespace sgtc::runtime
