// Products on Hopper's tensor cores (wgmma): a warpgroup multiplies tiles of bfloat16 in shared
// memory and accumulates in single precision in its registers.
//
// Operands lie in shared memory as the copy engine writes them with the 128-byte swizzle, in boxes
// whose rows have 64 elements (128 bytes), at multiples of 1024 bytes. An operand is either
//   depth-major: its rows (or columns) are the box's rows and run along the depth, or
//   line-major: the box's rows run along the operand's rows (or columns), one box of 64 x 64 after
//   the other.
//
// Accumulators of m64nN: thread t of the warpgroup holds the rows 16 (t / 32) + (t % 32) / 4 and
// that plus 8; its elements 4j and 4j + 1 are columns 8j + 2 (t % 4) and the next of the first row,
// 4j + 2 and 4j + 3 of the second.
#pragma once

#include "hopper/instructions.h"

namespace sgtc::hopper {

inline constexpr int kAccumulators = 128;
inline constexpr uint32_t kDepth = 64;         // of one box
inline constexpr uint32_t kProductDepth = 16;  // of one instruction
inline constexpr uint32_t kRowBytes = 128;     // of a box
inline constexpr uint32_t kBoxBytes = 64 * kRowBytes;

/// The descriptor of an operand at a shared address. `BoxBytes` is the distance between line-major
/// boxes. Within a cluster the address carries the block's rank above bit 18, which would leak into
/// the next field.
template <bool LineMajor, uint32_t BoxBytes = kBoxBytes>
SGTC_DEVICE uint64_t operand_descriptor(uint32_t address) {
  constexpr uint64_t kSwizzle128 = 1ull << 62;
  constexpr uint64_t kGroupStride = (8 * kRowBytes / 16ull) << 32;
  constexpr uint64_t kLeading = (LineMajor ? BoxBytes / 16ull : 1ull) << 16;
  return kSwizzle128 | kGroupStride | kLeading | ((address & 0x3ffff) >> 4);
}

/// The same descriptor, unknown to LLVM: else it computes all that is added to it before the loop,
/// and keeps that in registers.
SGTC_DEVICE uint64_t recomputed(uint64_t descriptor) {
  asm volatile("" : "+l"(descriptor));
  return descriptor;
}

/// What to add to a descriptor for the next kProductDepth of the depth.
template <bool LineMajor>
inline constexpr uint64_t kDepthStep =
    (LineMajor ? kProductDepth * kRowBytes : kProductDepth * 2) / 16;

/// Before the first product, and after other accesses to the accumulators.
SGTC_DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
SGTC_DEVICE void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most `Pending` groups of products are unfinished.
template <int Pending>
SGTC_DEVICE void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Lists of operands of inline assembly.
#define SGTC_SUMS_4(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define SGTC_SUMS_16(i) SGTC_SUMS_4(i), SGTC_SUMS_4(i + 4), SGTC_SUMS_4(i + 8), SGTC_SUMS_4(i + 12)
#define SGTC_SUMS_32(i) SGTC_SUMS_16(i), SGTC_SUMS_16(i + 16)
#define SGTC_SUMS_64(i) \
  SGTC_SUMS_16(i), SGTC_SUMS_16(i + 16), SGTC_SUMS_16(i + 32), SGTC_SUMS_16(i + 48)
#define SGTC_NAMES_4(t) "%" t "0, %" t "1, %" t "2, %" t "3"
#define SGTC_NAMES_8(t) SGTC_NAMES_4(t) ", %" t "4, %" t "5, %" t "6, %" t "7"
#define SGTC_NAMES_10(t) SGTC_NAMES_8(t) ", %" t "8, %" t "9, "
#define SGTC_NAMES_32 SGTC_NAMES_10("") SGTC_NAMES_10("1") SGTC_NAMES_10("2") "%30, %31"
#define SGTC_NAMES_60 \
  SGTC_NAMES_10("")   \
  SGTC_NAMES_10("1") SGTC_NAMES_10("2") SGTC_NAMES_10("3") SGTC_NAMES_10("4") SGTC_NAMES_10("5")
#define SGTC_NAMES_64 SGTC_NAMES_60 SGTC_NAMES_4("6")
#define SGTC_NAMES_128                                                                      \
  SGTC_NAMES_60 SGTC_NAMES_10("6") SGTC_NAMES_10("7") SGTC_NAMES_10("8") SGTC_NAMES_10("9") \
      SGTC_NAMES_10("10") SGTC_NAMES_10("11") SGTC_NAMES_8("12")

/// Waits for all products and ties the accumulators to the wait, so that no read of them moves
/// above it.
SGTC_DEVICE void finish_products(float (&sums)[kAccumulators]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : SGTC_SUMS_64(0), SGTC_SUMS_64(64)::"memory");
}

/// sums[First …] (64 x Columns) = (accumulate ? sums : 0) + a b over kProductDepth.
template <int First, int Columns, bool LineMajorA, bool LineMajorB>
SGTC_DEVICE void multiply(float (&sums)[kAccumulators], uint64_t a, uint64_t b, bool accumulate) {
  static_assert(Columns == 128 || Columns == 256);
  if constexpr (Columns == 128) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SGTC_NAMES_64
        "}, %64, %65, accumulate, 1, 1, %67, %68;\n}"
        : SGTC_SUMS_64(First)
        : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(int{LineMajorA}),
          "n"(int{LineMajorB}));
  } else {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" SGTC_NAMES_128
        "}, %128, %129, accumulate, 1, 1, %131, %132;\n}"
        : SGTC_SUMS_64(First), SGTC_SUMS_64(First + 64)
        : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(int{LineMajorA}),
          "n"(int{LineMajorB}));
  }
}

/// sums (64 x Columns, an array of Columns / 2) = (accumulate ? sums : 0) + a b over kProductDepth,
/// for the tiles of attention.
template <bool LineMajorB>
SGTC_DEVICE void multiply(float (&sums)[32], uint64_t a, uint64_t b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SGTC_NAMES_32
      "}, %32, %33, accumulate, 1, 1, 0, %35;\n}"
      : SGTC_SUMS_32(0)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(int{LineMajorB}));
}
template <bool LineMajorB>
SGTC_DEVICE void multiply(float (&sums)[64], uint64_t a, uint64_t b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SGTC_NAMES_64
      "}, %64, %65, accumulate, 1, 1, 0, %67;\n}"
      : SGTC_SUMS_64(0)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(int{LineMajorB}));
}

/// The same with a in registers: elements 2 i and 2 i + 1 of a thread's 8 accumulators of 16
/// columns are the pair a[i].
template <bool LineMajorB>
SGTC_DEVICE void multiply(float (&sums)[32], const uint32_t* a, uint64_t b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SGTC_NAMES_32
      "}, {%32, %33, %34, %35}, %36, accumulate, 1, 1, %38;\n}"
      : SGTC_SUMS_32(0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)),
        "n"(int{LineMajorB}));
}
template <bool LineMajorB>
SGTC_DEVICE void multiply(float (&sums)[64], const uint32_t* a, uint64_t b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SGTC_NAMES_64
      "}, {%64, %65, %66, %67}, %68, accumulate, 1, 1, %70;\n}"
      : SGTC_SUMS_64(0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)),
        "n"(int{LineMajorB}));
}

/// Ties accumulators to this point: nothing that uses them moves across.
SGTC_DEVICE void tie(float (&sums)[32]) { asm volatile("" : SGTC_SUMS_32(0)::"memory"); }
SGTC_DEVICE void tie(float (&sums)[64]) { asm volatile("" : SGTC_SUMS_64(0)::"memory"); }

#undef SGTC_SUMS_4
#undef SGTC_SUMS_16
#undef SGTC_SUMS_32
#undef SGTC_SUMS_64
#undef SGTC_NAMES_4
#undef SGTC_NAMES_8
#undef SGTC_NAMES_10
#undef SGTC_NAMES_32
#undef SGTC_NAMES_60
#undef SGTC_NAMES_64
#undef SGTC_NAMES_128

}  // namespace sgtc::hopper
