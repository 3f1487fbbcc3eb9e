// libsgtc_gloo.so: messages between processes by Gloo's TCP transport.
//
// Gloo's waits end by completion, by abort, or by a timeout that closes all connections, so a wait
// that is meant to end after a moment has to be aborted by another thread: the interrupter. Gloo
// keeps a completion that an abort overtakes, so the next wait returns it.
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "communication/gloo_plugin.h"

namespace {

using gloo::transport::UnboundBuffer;

constexpr std::chrono::milliseconds kConnectTimeout = std::chrono::seconds(30);
constexpr std::chrono::milliseconds kWaitTimeout = std::chrono::hours(24);
constexpr std::chrono::microseconds kPatience = std::chrono::milliseconds(1);

thread_local std::string error;

// Aborts the wait that is going on, once per kPatience. Sleeps while nobody waits.
class Interrupter {
 public:
  Interrupter() : thread_([this] { run(); }) {}
  ~Interrupter() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  bool wait(UnboundBuffer& buffer, bool sent) {
    set(&buffer, sent);
    bool done = false;
    try {
      done = sent ? buffer.waitSend(kWaitTimeout) : buffer.waitRecv(kWaitTimeout);
    } catch (...) {
      set(nullptr, sent);
      throw;
    }
    set(nullptr, sent);
    return done;
  }

 private:
  void set(UnboundBuffer* buffer, bool sent) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_ = buffer;
    sent_ = sent;
    if (buffer && sleeping_) changed_.notify_one();
  }

  void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopping_) {
      sleeping_ = !waiting_;
      changed_.wait(lock, [this] { return stopping_ || waiting_; });
      sleeping_ = false;
      changed_.wait_for(lock, kPatience, [this] { return stopping_; });
      if (waiting_ && sent_) waiting_->abortWaitSend();
      if (waiting_ && !sent_) waiting_->abortWaitRecv();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  UnboundBuffer* waiting_ = nullptr;
  bool sent_ = false;
  bool sleeping_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

struct Network {
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<gloo::transport::Context> context;
  Interrupter interrupter;
};

struct Buffer {
  Network* network;
  std::unique_ptr<UnboundBuffer> buffer;
};

// Runs what may throw; `failed` stands for an exception.
template <class Result, class Body>
Result guarded(Result failed, const Body& body) {
  try {
    return body();
  } catch (const std::exception& exception) {
    error = exception.what();
  } catch (...) {
    error = "unknown exception";
  }
  return failed;
}

// The numeric address from which datagrams to `host` would leave; nothing is sent.
std::string address_towards(const char* host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host, "9", &hints, &found);
  if (code != 0) throw std::runtime_error(std::string(host) + ": " + gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  const int file = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own = {};
  socklen_t length = sizeof own;
  const bool known = file >= 0 && connect(file, found->ai_addr, found->ai_addrlen) == 0 &&
                     getsockname(file, reinterpret_cast<sockaddr*>(&own), &length) == 0;
  if (file >= 0) close(file);
  char text[NI_MAXHOST];
  if (!known || getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr,
                            0, NI_NUMERICHOST) != 0) {
    throw std::runtime_error(std::string(host) + " cannot be reached");
  }
  return text;
}

void* open_network(const char* interface, const char* reaches, int rank, int size) {
  return guarded<void*>(nullptr, [&] {
    gloo::transport::tcp::attr attributes;
    if (interface) {
      attributes.iface = interface;
    } else {
      attributes.hostname = address_towards(reaches);
    }
    auto network = std::make_unique<Network>();
    network->device = gloo::transport::tcp::CreateDevice(attributes);
    network->context = network->device->createContext(rank, size);
    network->context->setTimeout(kConnectTimeout);
    return network.release();
  });
}

void close_network(void* network) { delete static_cast<Network*>(network); }

int add_peer(void* network, int peer, char* address, int capacity) {
  return guarded(-1, [&] {
    const auto& pair = static_cast<Network*>(network)->context->createPair(peer);
    const std::vector<char> bytes = pair->address().bytes();
    if (bytes.size() > static_cast<size_t>(capacity)) throw std::runtime_error("a long address");
    std::memcpy(address, bytes.data(), bytes.size());
    return static_cast<int>(bytes.size());
  });
}

int connect_peer(void* network, int peer, const char* address, int bytes) {
  return guarded(-1, [&] {
    const std::vector<char> copy(address, address + bytes);
    static_cast<Network*>(network)->context->getPair(peer)->connect(copy);
    return 0;
  });
}

void* make_buffer(void* network, void* data, int64_t bytes) {
  return guarded<void*>(nullptr, [&] {
    Network* owner = static_cast<Network*>(network);
    return new Buffer{owner, owner->context->createUnboundBuffer(data, static_cast<size_t>(bytes))};
  });
}

void free_buffer(void* buffer) { delete static_cast<Buffer*>(buffer); }

int post_send(void* buffer, int peer, uint64_t tag, int64_t bytes) {
  return guarded(-1, [&] {
    static_cast<Buffer*>(buffer)->buffer->send(peer, tag, 0, static_cast<size_t>(bytes));
    return 0;
  });
}

int post_receive(void* buffer, int peer, uint64_t tag, int64_t bytes) {
  return guarded(-1, [&] {
    static_cast<Buffer*>(buffer)->buffer->recv(peer, tag, 0, static_cast<size_t>(bytes));
    return 0;
  });
}

int wait_for(void* buffer, bool sent) {
  return guarded(-1, [&] {
    const Buffer& waiting = *static_cast<Buffer*>(buffer);
    return waiting.network->interrupter.wait(*waiting.buffer, sent) ? 1 : 0;
  });
}

int wait_sent(void* buffer) { return wait_for(buffer, true); }

int wait_received(void* buffer) { return wait_for(buffer, false); }

const char* last_error() { return error.c_str(); }

constexpr SgtcGlooPlugin kPlugin = {kSgtcGlooVersion, last_error,   open_network, close_network,
                                    add_peer,         connect_peer, make_buffer,  free_buffer,
                                    post_send,        post_receive, wait_sent,    wait_received};

}  // namespace

const SgtcGlooPlugin* sgtc_gloo_plugin() { return &kPlugin; }
