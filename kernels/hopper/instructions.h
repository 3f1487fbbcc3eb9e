// Instructions of Hopper GPUs (compute capability 9.0, target sm_90a) that C++ cannot spell, one
// function each, beyond those of gpu/instructions.h: registers, barriers between warps and between
// the copy engine and the threads, bulk tensor copies. Their meaning is defined in "Parallel Thread
// Execution ISA", 8.0.
//
// Addresses of shared memory are 32-bit numbers. Everything is inlined: a call between the
// instructions of the tensor cores would serialise them.
#pragma once

#include <stdint.h>

#include "gpu/instructions.h"
#include "hopper/host.h"

namespace sgtc::hopper {

using namespace sgtc::gpu;

inline constexpr uint32_t kWarpgroupThreads = 128;

SGTC_DEVICE uint32_t shared_memory_begin() {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(shared_memory<unsigned char>()));
}

// Threads.

/// Moves registers between warpgroups; all warps of the warpgroup execute it.
template <int Registers>
SGTC_DEVICE void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
SGTC_DEVICE void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

// Named barriers of a block, 0 to 15, for `threads` threads in all.

SGTC_DEVICE void synchronize(uint32_t barrier, uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
SGTC_DEVICE void arrive(uint32_t barrier, uint32_t threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
SGTC_DEVICE void synchronize_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// Barriers in shared memory (mbarrier). A phase ends when all arrivals and all announced bytes have
// come; waiting names the parity of the phase.

SGTC_DEVICE void initialize_barrier(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Makes initialised barriers visible to the copy engine and to the blocks of the cluster.
SGTC_DEVICE void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
}
SGTC_DEVICE void arrive_and_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
SGTC_DEVICE void arrive_at(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// At the barrier of the same address in block `rank` of the cluster. Without `.release.cluster`,
/// which costs a sixth to two fifths of the speed: what is released was read by the tensor cores.
SGTC_DEVICE void arrive_at_block(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 address;\nmapa.shared::cluster.u32 address, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [address];\n}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
SGTC_DEVICE void wait_for(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// Bulk tensor copies into shared memory, executed by one thread.

enum class Keep : uint64_t {  // policies of the L2 cache
  kNormal = 0x1000000000000000,
  kLong = 0x14F0000000000000,
};

/// Copies the box at (x, y, z) of a tensor, x along contiguous elements; elements outside are
/// zeros.
SGTC_DEVICE void copy_box(uint32_t to, const TensorMap* tensor, int32_t x, int32_t y, int32_t z,
                          uint32_t barrier, Keep keep) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(tensor), "r"(x), "r"(y), "r"(z), "r"(barrier), "l"(keep)
      : "memory");
}
/// The same of a tensor of four dimensions.
SGTC_DEVICE void copy_box(uint32_t to, const TensorMap* tensor, int32_t x, int32_t y, int32_t z,
                          int32_t w, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
      "l"(tensor), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
      : "memory");
}
/// The same into each block of the cluster whose bit is set, at the same addresses.
SGTC_DEVICE void copy_box_to_blocks(uint32_t to, const TensorMap* tensor, int32_t x, int32_t y,
                                    int32_t z, uint32_t barrier, uint16_t blocks, Keep keep) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6, %7;" ::"r"(to),
      "l"(tensor), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"(blocks), "l"(keep)
      : "memory");
}

/// Copies contiguous bytes, a multiple of 16.
SGTC_DEVICE void copy_bytes(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

// Memory.

SGTC_DEVICE void store_shared(uint32_t address, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x), "f"(y) : "memory");
}
SGTC_DEVICE void load_shared(uint32_t address, float& x, float& y, float& z, float& w) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
               : "r"(address)
               : "memory");
}
SGTC_DEVICE void load_shared(uint32_t address, float& x, float& y) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(address) : "memory");
}
SGTC_DEVICE void load_shared(uint32_t address, uint32_t (&words)[4]) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address)
               : "memory");
}
SGTC_DEVICE void store_global(float* to, float x, float y, float z, float w) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x), "f"(y), "f"(z), "f"(w)
               : "memory");
}
/// 16 bytes that no one writes while the kernel runs, read anew at each use.
SGTC_DEVICE void load_constant(const void* from, uint32_t (&words)[4]) {
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(from));
}
/// What other blocks have written: not from the L1 cache.
SGTC_DEVICE void load_global(const float* from, float& x, float& y, float& z, float& w) {
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
               : "l"(from)
               : "memory");
}

// Flags between blocks: what a block wrote before raising a flag is visible to who has seen it.

SGTC_DEVICE void raise_flag(uint32_t* flag) {
  asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}
SGTC_DEVICE void lower_flag(uint32_t* flag) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" ::"l"(flag) : "memory");
}
SGTC_DEVICE void wait_for_flag(const uint32_t* flag) {
  uint32_t value;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  } while (value == 0);
}

}  // namespace sgtc::hopper
