// Instructions of NVIDIA GPUs from sm_80 on that C++ cannot spell, one function each: threads,
// shared memory, barriers, what blocks tell each other. Their meaning is defined in "Parallel
// Thread Execution ISA", 8.0. Compiled for a host, they are functions of whoever emulates a GPU.
#pragma once

#include <stdint.h>

#define SGTC_DEVICE static inline __attribute__((always_inline))
#define SGTC_METHOD inline __attribute__((always_inline))
#define SGTC_LAMBDA __attribute__((always_inline))
#ifdef __NVPTX__
#define SGTC_SHARED __attribute__((address_space(3)))
#else
#define SGTC_SHARED
#endif

namespace sgtc::gpu {

inline constexpr uint32_t kWarpThreads = 32;

#ifdef __NVPTX__

/// The dynamic shared memory of a block.
extern "C" SGTC_SHARED __attribute__((aligned(1024))) unsigned char sgtc_shared_memory[];

// Threads.

SGTC_DEVICE uint32_t thread_index() { return __nvvm_read_ptx_sreg_tid_x(); }
SGTC_DEVICE uint32_t thread_count() { return __nvvm_read_ptx_sreg_ntid_x(); }
SGTC_DEVICE uint32_t block_index() { return __nvvm_read_ptx_sreg_ctaid_x(); }
SGTC_DEVICE uint32_t block_count() { return __nvvm_read_ptx_sreg_nctaid_x(); }

/// The value of lane `lane`; all lanes of a warp come together here.
SGTC_DEVICE uint32_t word_of_lane(uint32_t value, uint32_t lane) {
  uint32_t result;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, -1;" : "=r"(result) : "r"(value), "r"(lane));
  return result;
}
/// The lanes of the warp for which `condition` holds.
SGTC_DEVICE uint32_t lanes_where(bool condition) {
  uint32_t lanes;
  asm volatile(
      "{\n.reg .pred holds;\nsetp.ne.u32 holds, %1, 0;\n"
      "vote.sync.ballot.b32 %0, holds, -1;\n}"
      : "=r"(lanes)
      : "r"(static_cast<uint32_t>(condition)));
  return lanes;
}
SGTC_DEVICE void synchronize_warp() { asm volatile("bar.warp.sync -1;" ::: "memory"); }
SGTC_DEVICE void synchronize_block() { asm volatile("bar.sync 0;" ::: "memory"); }

/// Adds 1, whatever other threads of the block do meanwhile.
SGTC_DEVICE void add_one(SGTC_SHARED uint32_t* to) {
  asm volatile(
      "red.shared.add.u32 [%0], 1;" ::"r"(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(to)))
      : "memory");
}

// What blocks tell each other.

SGTC_DEVICE void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
/// Adds 1 and returns what was there.
SGTC_DEVICE uint32_t count_up(uint32_t* counter) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
}

// What ptxas has to be told.

/// The index, read anew at each use, for kernels that have no register to keep it in.
SGTC_DEVICE uint32_t thread_index_again() {
  uint32_t index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}

#else

extern unsigned char sgtc_shared_memory[];
uint32_t thread_index();
uint32_t thread_count();
uint32_t block_index();
uint32_t block_count();
uint32_t word_of_lane(uint32_t value, uint32_t lane);
uint32_t lanes_where(bool condition);
void synchronize_warp();
void synchronize_block();
SGTC_DEVICE void add_one(uint32_t* to) { ++*to; }
SGTC_DEVICE void fence_device() {}
SGTC_DEVICE uint32_t count_up(uint32_t* counter) { return (*counter)++; }

#endif

/// The dynamic shared memory from byte `offset` on, as elements of type T.
template <typename T>
SGTC_DEVICE SGTC_SHARED T* shared_memory(uint32_t offset = 0) {
  return reinterpret_cast<SGTC_SHARED T*>(sgtc_shared_memory + offset);
}

/// The first lane's value in all lanes, so that ptxas knows it to be uniform.
SGTC_DEVICE uint32_t of_first_lane(uint32_t value) { return word_of_lane(value, 0); }

/// The value of lane `lane`, of up to 8 bytes.
template <typename T>
SGTC_DEVICE T of_lane(T value, uint32_t lane) {
  if constexpr (sizeof(T) == 8) {
    const auto bits = __builtin_bit_cast(uint64_t, value);
    const uint64_t low = word_of_lane(static_cast<uint32_t>(bits), lane);
    const uint64_t high = word_of_lane(static_cast<uint32_t>(bits >> 32), lane);
    return __builtin_bit_cast(T, high << 32 | low);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(T, word_of_lane(__builtin_bit_cast(uint32_t, value), lane));
  } else {
    return static_cast<T>(word_of_lane(static_cast<uint32_t>(value), lane));
  }
}

}  // namespace sgtc::gpu
