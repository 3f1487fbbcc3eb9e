// The blocks of one thread's part of a kernel call, of which others may take some.
#pragma once

#include <atomic>
#include <cstdint>

namespace sgtc::runtime {

struct Blocks {
  uint32_t begin = 0, end = 0;

  uint32_t size() const { return end - begin; }
};

/// Blocks that nobody has taken yet, in one word: each is taken once, by whoever changes the word.
/// Who takes a block sees what the thread that called `fill` wrote before.
class BlockRange {
 public:
  void fill(Blocks blocks) { word_.store(packed(blocks), std::memory_order_release); }

  uint32_t size() const { return unpacked(word_.load(std::memory_order_relaxed)).size(); }

  /// For the thread whose part it is: three quarters of the blocks, so that what others may take
  /// gets finer towards the end. Empty when all are taken.
  Blocks take_front() {
    return take([](Blocks all) { return Blocks{all.begin, all.end - all.size() / 4}; });
  }

  /// For other threads: the last half.
  Blocks take_back() {
    return take([](Blocks all) { return Blocks{all.begin + all.size() / 2, all.end}; });
  }

 private:
  static uint64_t packed(Blocks blocks) { return uint64_t{blocks.begin} << 32 | blocks.end; }
  static Blocks unpacked(uint64_t word) {
    return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
  }

  // What is taken begins or ends where all do.
  template <typename Choose>
  Blocks take(Choose choose) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      const Blocks all = unpacked(word);
      if (all.size() == 0) return {};
      const Blocks taken = choose(all);
      const Blocks rest =
          taken.begin == all.begin ? Blocks{taken.end, all.end} : Blocks{all.begin, taken.begin};
      if (word_.compare_exchange_weak(word, packed(rest), std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
        return taken;
      }
    }
  }

  alignas(64) std::atomic<uint64_t> word_{0};
};

}  // namespace sgtc::runtime
