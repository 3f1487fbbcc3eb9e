// Shell-style patterns for tensor names.
#pragma once

#include <string_view>

namespace sgtc {

/// Whether `name` as a whole matches `pattern`: `*` any characters (also none, also '/' and '.'),
/// `?` one character, `[abc]`, `[a-z]` and `[!a-z]` one character of a set, `\` the next character
/// itself. A `[` without its `]` stands for itself. Time: at most the product of the lengths.
bool glob_matches(std::string_view pattern, std::string_view name);

}  // namespace sgtc
