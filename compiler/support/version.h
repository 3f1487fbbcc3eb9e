// The version of sgtc, as `--version` prints it and as its executables carry it.
#pragma once

namespace sgtc {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace sgtc
