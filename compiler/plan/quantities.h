// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace sgtc {

/// "512 B", "1.5 KiB", "12.0 MiB".
std::string bytes_text(int64_t bytes);
/// "12", "3.4 k", "12.0 M", "1.2 G": powers of ten, for operations.
std::string count_text(int64_t count);
/// "1,234,567".
std::string exact_text(int64_t count);
/// "1.23 ms".
std::string seconds_text(double seconds);
/// "1 kernel", "2 kernels".
std::string plural(int64_t count, const std::string& noun);

}  // namespace sgtc
