// The one block of memory in which a plan places all of its buffers.
#pragma once

#include <cstdint>

namespace sgtc::runtime {

/// What has been changed of poisoned memory.
struct Touched {
  static constexpr int64_t kLine = 64;

  int64_t end = 0;    // bytes up to the last one that has
  int64_t bytes = 0;  // of all lines in which one has

  /// Looks at `count` bytes that begin at `offset`, a multiple of a line.
  void add(const unsigned char* data, int64_t offset, int64_t count);
};

class Arena {
 public:
  /// Reserves zeroed memory, aligned for huge pages, of which `used` bytes will be touched. Dies if
  /// the machine cannot give them.
  Arena(int64_t bytes, int64_t used);
  explicit Arena(int64_t bytes) : Arena(bytes, bytes) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  unsigned char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

  /// Fills everything with 0xFF bytes: NaN for floats, -1 for integers.
  void poison();
  /// After `poison`.
  Touched touched() const;

 private:
  unsigned char* mapping_ = nullptr;
  unsigned char* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t mapped_bytes_ = 0;
};

/// Bytes that this process may still use: the smaller of the free memory of the machine and what
/// its control group leaves.
int64_t available_memory();
/// Memory of the machine.
int64_t total_memory();
/// Largest resident size of this process so far.
int64_t peak_resident_bytes();

}  // namespace sgtc::runtime
