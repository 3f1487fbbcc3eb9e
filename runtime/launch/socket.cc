#include "launch/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace sgtc::runtime {
namespace {

constexpr int kBacklog = 1024;

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

MaybeFailure resolve(const std::string& host, int64_t port, Addresses& addresses) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  addresses.reset(found);
  if (error == 0) return {};
  return Failure{"host " + host, std::string("has no address: ") + gai_strerror(error),
                 "give --master the name or address of rank 0's machine"};
}

Socket open_socket(const addrinfo& address) {
  return Socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void set_option(const Socket& socket, int level, int name) {
  const int on = 1;
  setsockopt(socket.descriptor(), level, name, &on, sizeof on);
}

std::string numeric_address(const sockaddr* address, socklen_t size, int64_t* port) {
  char host[NI_MAXHOST] = "";
  char service[NI_MAXSERV] = "";
  getnameinfo(address, size, host, sizeof host, service, sizeof service,
              NI_NUMERICHOST | NI_NUMERICSERV);
  if (port) *port = std::strtoll(service, nullptr, 10);
  return host;
}

std::string own_address(const Socket& socket, int64_t* port) {
  sockaddr_storage local = {};
  socklen_t size = sizeof local;
  getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&local), &size);
  return numeric_address(reinterpret_cast<sockaddr*>(&local), size, port);
}

bool listen_at(const addrinfo& address, Socket& listener) {
  listener = open_socket(address);
  if (!listener.is_open()) return false;
  set_option(listener, SOL_SOCKET, SO_REUSEADDR);
  return bind(listener.descriptor(), address.ai_addr, address.ai_addrlen) == 0 &&
         listen(listener.descriptor(), kBacklog) == 0;
}

// A connection to a free local port can meet itself.
bool is_connected_to_itself(const Socket& socket) {
  sockaddr_storage local = {};
  sockaddr_storage remote = {};
  socklen_t local_size = sizeof local;
  socklen_t remote_size = sizeof remote;
  getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&local), &local_size);
  getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&remote), &remote_size);
  return local_size == remote_size && std::memcmp(&local, &remote, local_size) == 0;
}

// 0 or the error.
int connect_to(const addrinfo& address, int64_t milliseconds, Socket& socket) {
  socket = open_socket(address);
  if (!socket.is_open()) return errno;
  if (connect(socket.descriptor(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    pollfd event = {socket.descriptor(), POLLOUT, 0};
    if (poll(&event, 1, static_cast<int>(milliseconds)) <= 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return error;
  }
  if (is_connected_to_itself(socket)) return ECONNREFUSED;
  set_option(socket, IPPROTO_TCP, TCP_NODELAY);
  return 0;
}

}  // namespace

int64_t monotonic_milliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

std::string address_text(const std::string& host, int64_t port) {
  const bool bare_ipv6 = host.find(':') != host.npos;
  return (bare_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

MaybeFailure listen_at(const std::string& host, int64_t& port, Socket& listener) {
  Addresses addresses;
  if (MaybeFailure failure = resolve(host, port, addresses)) return failure;
  int error = 0;
  for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
    if (listen_at(*address, listener)) {
      own_address(listener, &port);
      return {};
    }
    error = errno;
    // An address of this machine whose port is taken: others would meet at different addresses.
    if (error == EADDRINUSE) break;
  }
  listener.close();
  const std::string remedy =
      error == EADDRINUSE ? "another process listens there; give --master HOST:PORT a free port"
                          : "give --master an address of rank 0's machine";
  return Failure{address_text(host, port), std::string("cannot listen: ") + std::strerror(error),
                 remedy};
}

bool is_loopback(const Socket& listener) {
  const std::string address = own_address(listener, nullptr);
  return address.starts_with("127.") || address == "::1";
}

Socket accept_from(const Socket& listener, std::string& peer) {
  sockaddr_storage remote = {};
  socklen_t size = sizeof remote;
  Socket socket(accept4(listener.descriptor(), reinterpret_cast<sockaddr*>(&remote), &size,
                        SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) return socket;
  set_option(socket, IPPROTO_TCP, TCP_NODELAY);
  peer = numeric_address(reinterpret_cast<sockaddr*>(&remote), size, nullptr);
  return socket;
}

MaybeFailure connect_to(const std::string& host, int64_t port, int64_t milliseconds,
                        Socket& socket) {
  Addresses addresses;
  if (MaybeFailure failure = resolve(host, port, addresses)) return failure;
  int error = 0;
  for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
    error = connect_to(*address, milliseconds, socket);
    if (error == 0) return {};
  }
  socket.close();
  return Failure{
      address_text(host, port), std::string("cannot connect: ") + std::strerror(error), {}};
}

}  // namespace sgtc::runtime
