// HMAC-SHA-256 (FIPS 198-1): proves knowledge of a shared secret without sending it.
#pragma once

#include <string>
#include <string_view>

namespace sgtc::runtime {

/// 32 bytes.
std::string hmac_sha256(std::string_view key, std::string_view message);

/// Equality in a time that does not depend on the contents.
bool equal_secretly(std::string_view a, std::string_view b);

}  // namespace sgtc::runtime
