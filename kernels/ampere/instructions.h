// Instructions of GPUs from compute capability 8.0 on for products of tiles: copies into shared
// memory that need no registers, and products of warps (mma.sync). Their meaning is defined in
// "Parallel Thread Execution ISA", 8.0. Addresses of shared memory are 32-bit numbers.
#pragma once

#include <stdint.h>

#include "element.h"
#include "gpu/instructions.h"

namespace sgtc::ampere {

using namespace sgtc::gpu;

SGTC_DEVICE uint32_t shared_address() {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(shared_memory<unsigned char>()));
}

/// Copies 16 bytes to shared memory, or zeros if there is nothing to read.
SGTC_DEVICE void copy_16_bytes(uint32_t to, const void* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(exists ? 16 : 0)
               : "memory");
}
/// Ends a group of copies.
SGTC_DEVICE void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits for all groups of the thread but the last `Pending`.
template <int Pending>
SGTC_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

/// Four 8 x 8 matrices of 16-bit elements: lanes 8 i to 8 i + 7 name the rows of matrix i, and
/// word i of a lane is the elements 2 (lane % 4) and the next of row lane / 4 of matrix i, or of
/// its transpose.
template <bool Transposed>
SGTC_DEVICE void load_matrices(uint32_t (&words)[4], uint32_t address) {
  if constexpr (Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
  }
}

/// sums (16 x 8) += a (16 x 16) b (16 x 8) of a warp: sums are elements 2 (lane % 4) and the next
/// of row lane / 4, and of that row plus 8.
template <typename T>
SGTC_DEVICE void multiply_matrices(float* sums, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (__is_same(T, _Float16)) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    static_assert(__is_same(T, kernels::BFloat16));
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

}  // namespace sgtc::ampere
