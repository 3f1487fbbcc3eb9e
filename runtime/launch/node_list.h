// Slurm's compressed lists of hosts, such as "login,a[1-3,07],rack[1-2]n[01-04]".
//
//   list   = item {"," item}
//   item   = a sequence of literal characters (letters, digits, "-", "_", ".") and brackets
//   bracket = "[" range {"," range} "]"
//   range  = number | number "-" number        the first number's leading zeros set the width
//
// Of several brackets in an item the last varies fastest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "failure.h"

namespace sgtc::runtime {

/// The first host of a list, without expanding it. A list that does not follow the grammar is
/// refused as a whole.
MaybeFailure first_host(const std::string& list, std::string& host);

/// All hosts of a list in order; more than `limit` are refused.
MaybeFailure expand_node_list(const std::string& list, int64_t limit,
                              std::vector<std::string>& hosts);

}  // namespace sgtc::runtime
