// TCP sockets: one owner each, no waiting without an end.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "failure.h"

namespace sgtc::runtime {

/// Milliseconds of a clock that only goes forward.
int64_t monotonic_milliseconds();

/// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() { close(); }

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  void close();

 private:
  int descriptor_ = -1;
};

/// "HOST:PORT", with brackets around an IPv6 address.
std::string address_text(const std::string& host, int64_t port);

/// Listens at exactly the address of `host`, a name or an address. `port` 0 becomes a free one.
MaybeFailure listen_at(const std::string& host, int64_t& port, Socket& listener);

/// True if only this machine can reach the listener.
bool is_loopback(const Socket& listener);

/// Accepts without waiting; not open if nobody has connected. `peer` is the other side's address.
Socket accept_from(const Socket& listener, std::string& peer);

/// Connects, waiting `milliseconds` at most for each address of `host`. Fails if nobody listens.
MaybeFailure connect_to(const std::string& host, int64_t port, int64_t milliseconds,
                        Socket& socket);

}  // namespace sgtc::runtime
