// Compares what a kernel touches with what the plan says that it touches.
//
// Lifetimes, the order of launches and communication beside kernels all rest on one claim of the
// plan: a kernel reads and writes its arguments, in the way that is said of each, and no other
// byte. A kernel that does more mostly gives right results until something else lies there, or runs
// at the same time.
//
// So each call runs twice from the same memory. After the first run no byte may have changed but
// those that it writes. Before the second, NaN is put into everything that
// it is not said to read; what it writes has to come out the same. Bytes that it leaves alone in
// what it writes, such as padding, keep what they held before each run.
//
// The arena is copied several times per call, so this is for small models.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/format.h"
#include "plan_memory.h"

namespace sgtc::runtime {

/// The arena of a device, as seen from the host.
class CheckedMemory {
 public:
  virtual ~CheckedMemory() = default;
  /// Both take all bytes of the arena and return when they are there.
  virtual void read(unsigned char* to) const = 0;
  virtual void write(const unsigned char* from) const = 0;
};

/// What is checked, for one call of a kernel.
struct CheckedCall {
  const plan::Kernel& kernel;
  const std::string& task;
  const std::vector<MemoryRange>& arguments;  // in the host's arena
};

class AccessCheck {
 public:
  /// All must outlive this. `arena` is the host's; `memory` may be it too.
  AccessCheck(const CheckedMemory& memory, const Arena& arena, const plan::Position& position);

  /// `run` runs the call and waits for it. Dies if it touches more than the plan says.
  template <typename Run>
  void check(const CheckedCall& call, const Run& run) {
    begin();
    run();
    compare_untouched(call);
    run();
    compare_written(call);
  }

 private:
  // Bytes of the arena, from and to.
  struct Piece {
    int64_t begin = 0;
    int64_t end = 0;
  };
  using Bytes = std::vector<unsigned char>;

  void begin();
  void compare_untouched(const CheckedCall& call);
  void compare_written(const CheckedCall& call);
  std::vector<Piece> arguments_with(const CheckedCall& call, const char* access) const;
  std::vector<Piece> all_but(const std::vector<Piece>& pieces) const;
  [[noreturn]] void die_at(const CheckedCall& call, const char* what, int64_t byte) const;

  const CheckedMemory& memory_;
  const Arena& arena_;
  const plan::Position& position_;
  Bytes before_;
  Bytes after_;   // the first run
  Bytes second_;  // the second run's memory
};

}  // namespace sgtc::runtime
