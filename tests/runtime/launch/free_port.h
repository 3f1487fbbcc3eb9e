#pragma once

#include <cstdint>
#include <string>

#include "runtime/launch/socket.h"

namespace sgtc::runtime {

/// A port that nobody uses now.
inline std::string free_port() {
  Socket listener;
  int64_t port = 0;
  listen_at("127.0.0.1", port, listener);
  return std::to_string(port);
}

}  // namespace sgtc::runtime
