// Independent work on several threads.
#pragma once

#include <cstdint>
#include <functional>

namespace sgtc {

/// Calls body(0) … body(count - 1), each once, on at most `jobs` threads, and returns when all are
/// done. The order of calls is not defined. If calls throw, the exception of the lowest index among
/// those that ran is thrown again, and calls that had not begun are left out.
void parallel_for(int64_t count, int jobs, const std::function<void(int64_t)>& body);

}  // namespace sgtc
