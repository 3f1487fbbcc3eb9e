// Counts the allocations of the test program.
#pragma once

#include <cstdint>

namespace sgtc::runtime {

/// Calls of malloc, calloc and realloc so far; always 0 where a sanitizer owns them.
int64_t allocation_count();

}  // namespace sgtc::runtime
