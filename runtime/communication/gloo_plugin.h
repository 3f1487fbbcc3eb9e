// The interface of libsgtc_gloo.so, which carries communication between hosts.
//
// The runtime has no exceptions and no C++ library of its own to share; Gloo is a C++ library that
// throws. Between them stands a table of C functions. The plugin moves messages from one process to
// another and knows nothing of collectives or of sgtc's types.
//
// Functions that can fail return a negative number or null; `last_error` then says why, in the
// thread that called. A network and its buffers are used by one thread.
#pragma once

#include <cstdint>

extern "C" {

inline constexpr int64_t kSgtcGlooVersion = 1;

struct SgtcGlooPlugin {
  int64_t version;
  const char* (*last_error)();

  /// Opens the way to `size` processes, of which this is `rank`. It binds to the address of
  /// `interface`, or, if that is null, to the one from which the host `reaches` is reached.
  void* (*open)(const char* interface, const char* reaches, int rank, int size);
  void (*close)(void* network);

  /// Makes this end of a connection; returns the bytes of its address, at most `capacity`.
  int (*add_peer)(void* network, int peer, char* address, int capacity);
  /// Connects to the address that the peer's add_peer gave for this process.
  int (*connect)(void* network, int peer, const char* address, int bytes);

  /// Memory to send from or receive into; one operation at a time.
  void* (*make_buffer)(void* network, void* data, int64_t bytes);
  void (*free_buffer)(void* buffer);
  /// Posts the first `bytes` of a buffer. The n-th send to a peer with a tag meets its n-th
  /// receive.
  int (*send)(void* buffer, int peer, uint64_t tag, int64_t bytes);
  int (*receive)(void* buffer, int peer, uint64_t tag, int64_t bytes);
  /// 1: what was posted is done; 0: not yet, after waiting for a moment.
  int (*wait_sent)(void* buffer);
  int (*wait_received)(void* buffer);
};

/// The only symbol that the plugin exports.
[[gnu::visibility("default")]] const SgtcGlooPlugin* sgtc_gloo_plugin();
}
