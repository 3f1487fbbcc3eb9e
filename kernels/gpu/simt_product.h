// The core of contractions without tensor cores: one tile of C = A B by a block of threads, for any
// type and any layout of the operands.
//
// The problem: a multiply-add needs two operands, and neither memory nor shared memory delivers
// them at the rate of the arithmetic units. The known answer is taken (Volkov and Demmel,
// "Benchmarking GPUs to tune dense linear algebra", 2008): k-blocks of both operands in shared
// memory, 64 sums in the registers of each thread, and the next k-block on its way from memory
// while one is multiplied. Choices:
// - An operand is a function get(line, k) of its element, so matrices of any strides and the
//   windows of a convolution share this file. Elements are read one by one: neighbouring threads
//   read neighbouring elements, and there are 64 multiply-adds for each element read.
// - A thread's lines of an operand lie in shared memory in units of 16 bytes, the units of all
//   threads before the next units: neighbouring threads then read neighbouring units, while a
//   thread's columns are still neighbours, as the tile visitor wants them.
// - A chain of additions is as long as a block's part of the depth (gpu/depth_parts.h).
#pragma once

#include "element.h"
#include "gpu/depth_parts.h"
#include "gpu/instructions.h"
#include "gpu/launch.h"
#include "gpu/tile_visitor.h"

namespace sgtc::gpu {

using namespace sgtc::kernels;

/// The type in which products of elements of type T are summed; integers wrap.
template <typename T>
struct SumType {
  using Type = T;
};
template <>
struct SumType<_Float16> {
  using Type = float;
};
template <>
struct SumType<BFloat16> {
  using Type = float;
};
template <typename T>
  requires(!kIsFloat<T> && sizeof(T) <= 4)
struct SumType<T> {
  using Type = uint32_t;
};
template <typename T>
  requires(!kIsFloat<T> && sizeof(T) == 8)
struct SumType<T> {
  using Type = uint64_t;
};
template <typename T>
using SumTypeOf = typename SumType<T>::Type;

/// A tile of Own * Side rows and columns for Side * Side threads with Own * Own sums each.
template <typename E_, uint32_t Side_, uint32_t Own_>
struct SimtTile {
  using E = E_;
  static constexpr uint32_t kSide = Side_;
  static constexpr uint32_t kOwn = Own_;
  static constexpr uint32_t kThreads = kSide * kSide;
  static constexpr uint32_t kLines = kOwn * kSide;
  static constexpr uint32_t kDepth = 32 / sizeof(E);              // of a k-block
  static constexpr uint32_t kReads = kLines * kDepth / kThreads;  // per thread and operand
  static constexpr uint32_t kUnit = 16 / sizeof(E);               // elements
  static constexpr uint32_t kUnits = kOwn / kUnit;                // of a thread's lines
  static constexpr uint32_t kUnitStride = (kSide + 4) * kUnit;    // padded to spread banks
  static constexpr uint32_t kPitch = kUnits * kUnitStride + kUnit;
  static constexpr uint32_t kOperand = kDepth * kPitch;
  static_assert(kSide % 8 == 0 && kThreads % kDepth == 0 && kThreads % kLines == 0);
  static_assert(4 * kOperand * sizeof(E) <= kSimtSharedBytes);

  using Sums = E[kOwn][kOwn];
};

/// Tiles of 128 and 64 lines in single precision; one of 64 lines for all other types.
template <typename E>
using LargeTile = SimtTile<E, 16, 8>;
template <typename E>
using SmallTile =
    SimtTile<E, sizeof(E) == 4 && kIsFloat<E> ? 8 : 16, sizeof(E) == 4 && kIsFloat<E> ? 8 : 4>;

/// Where a thread is in its tile: a warp has 4 x 8 threads.
template <typename Tile>
struct TilePosition {
  uint32_t row, column;  // of the thread's first elements

  SGTC_DEVICE TilePosition of(uint32_t thread) {
    constexpr uint32_t kWarpColumns = Tile::kSide / 8;
    const uint32_t warp = thread / kWarpThreads, lane = thread % kWarpThreads;
    return {Tile::kOwn * (warp / kWarpColumns * 4 + lane / 8),
            Tile::kOwn * (warp % kWarpColumns * 8 + lane % 8)};
  }
};

/// Which elements of a k-block of an operand a thread reads: neighbouring threads have neighbouring
/// lines, or else neighbouring elements of the depth.
template <typename Tile>
struct ReadPattern {
  uint32_t line, k, line_step, k_step;

  SGTC_DEVICE ReadPattern of(uint32_t thread, bool line_major) {
    if (line_major) {
      return {thread % Tile::kLines, thread / Tile::kLines, 0, Tile::kThreads / Tile::kLines};
    }
    return {thread / Tile::kDepth, thread % Tile::kDepth, Tile::kThreads / Tile::kDepth, 0};
  }
};

template <typename Tile>
SGTC_DEVICE uint32_t place_of_line(uint32_t line) {
  return line % Tile::kOwn / Tile::kUnit * Tile::kUnitStride + line / Tile::kOwn * Tile::kUnit +
         line % Tile::kUnit;
}

/// What a thread has read of one operand on its way to shared memory.
template <typename Tile>
struct Fetched {
  using E = typename Tile::E;
  E elements[Tile::kReads];

  /// The k-block from `k` on; beyond `end` it is zeros. get is never called beyond.
  template <typename Get>
  SGTC_METHOD void fetch(const ReadPattern<Tile>& at, uint32_t k, uint32_t end, Get get) {
    if (k + Tile::kDepth <= end) {
#pragma clang loop unroll(full)
      for (uint32_t i = 0; i < Tile::kReads; ++i) {
        elements[i] = get(at.line + i * at.line_step, k + at.k + i * at.k_step);
      }
    } else {
#pragma clang loop unroll(full)
      for (uint32_t i = 0; i < Tile::kReads; ++i) {
        const uint32_t own = k + at.k + i * at.k_step;
        const E element = get(at.line + i * at.line_step, own < end ? own : end - 1);
        elements[i] = own < end ? element : E{};
      }
    }
  }

  SGTC_METHOD void place(SGTC_SHARED E* to, const ReadPattern<Tile>& at) const {
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < Tile::kReads; ++i) {
      to[(at.k + i * at.k_step) * Tile::kPitch + place_of_line<Tile>(at.line + i * at.line_step)] =
          elements[i];
    }
  }
};

template <typename E>
SGTC_DEVICE E multiply_add(E a, E b, E sum) {
  if constexpr (kIsFloat<E>) {
    return __builtin_elementwise_fma(a, b, sum);
  } else {
    return a * b + sum;
  }
}

/// The elements of a thread's lines in one row of a k-block.
template <typename Tile>
SGTC_DEVICE void read_lines(typename Tile::E (&to)[Tile::kOwn],
                            const SGTC_SHARED typename Tile::E* from) {
  using E = typename Tile::E;
  typedef E Unit __attribute__((vector_size(16)));
#pragma clang loop unroll(full)
  for (uint32_t i = 0; i < Tile::kUnits; ++i) {
    const Unit unit = *reinterpret_cast<const SGTC_SHARED Unit*>(from + i * Tile::kUnitStride);
#pragma clang loop unroll(full)
    for (uint32_t j = 0; j < Tile::kUnit; ++j) to[i * Tile::kUnit + j] = unit[j];
  }
}

/// sums += a b for one k-block.
template <typename Tile>
SGTC_DEVICE void multiply_block(typename Tile::Sums& sums, const SGTC_SHARED typename Tile::E* a,
                                const SGTC_SHARED typename Tile::E* b) {
#pragma clang loop unroll(full)
  for (uint32_t k = 0; k < Tile::kDepth; ++k) {
    typename Tile::E rows[Tile::kOwn], columns[Tile::kOwn];
    read_lines<Tile>(rows, a + k * Tile::kPitch);
    read_lines<Tile>(columns, b + k * Tile::kPitch);
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < Tile::kOwn; ++i) {
#pragma clang loop unroll(full)
      for (uint32_t j = 0; j < Tile::kOwn; ++j) {
        sums[i][j] = multiply_add(rows[i], columns[j], sums[i][j]);
      }
    }
  }
}

/// One operand of a tile.
template <typename Get>
struct Operand {
  bool line_major;  // whether neighbouring lines, not neighbouring k, lie next to each other
  Get get;          // (line of the tile, k): the element in the type of the sums
};
template <typename Get>
Operand(bool, Get) -> Operand<Get>;

/// sums = a b over depths `begin` to `end`. Uses the shared memory.
template <typename Tile, typename GetA, typename GetB>
SGTC_DEVICE void multiply_tile(typename Tile::Sums& sums, const Operand<GetA>& a,
                               const Operand<GetB>& b, uint32_t begin, uint32_t end) {
  using E = typename Tile::E;
  const uint32_t thread = thread_index();
  const auto from = TilePosition<Tile>::of(thread);
  const auto at_a = ReadPattern<Tile>::of(thread, a.line_major);
  const auto at_b = ReadPattern<Tile>::of(thread, b.line_major);
  SGTC_SHARED E* stage = shared_memory<E>();
  SGTC_SHARED E* other = stage + 2 * Tile::kOperand;
  Fetched<Tile> next_a, next_b;
#pragma clang loop unroll(full)
  for (uint32_t i = 0; i < Tile::kOwn; ++i) {
#pragma clang loop unroll(full)
    for (uint32_t j = 0; j < Tile::kOwn; ++j) sums[i][j] = E{};
  }
  // Each turn reads block k and multiplies the one before.
#pragma clang loop unroll(disable)
  for (uint32_t k = begin; k < end + Tile::kDepth; k += Tile::kDepth) {
    if (k < end) {
      next_a.fetch(at_a, k, end, a.get);
      next_b.fetch(at_b, k, end, b.get);
    }
    if (k > begin) {
      multiply_block<Tile>(sums, other + place_of_line<Tile>(from.row),
                           other + Tile::kOperand + place_of_line<Tile>(from.column));
    }
    if (k < end) {
      next_a.place(stage, at_a);
      next_b.place(stage + Tile::kOperand, at_b);
    }
    synchronize_block();
    SGTC_SHARED E* const filled = stage;
    stage = other;
    other = filled;
  }
}

/// sums = a b over the whole depth, of which the block has a part. False for blocks that leave the
/// tile to another one.
template <typename Tile, typename GetA, typename GetB>
SGTC_DEVICE bool sum_tile(typename Tile::Sums& sums, const Operand<GetA>& a, const Operand<GetB>& b,
                          uint32_t depth, const DepthPart& part) {
  multiply_tile<Tile>(sums, a, b, part.begin(depth), part.end(depth));
  return part.count == 1 || join_parts<Tile::kThreads>(sums, part);
}

/// The result of a contraction: [batch, rows, columns] of elements of type T.
template <typename T>
struct TileResult {
  void* const* args;  // of the visitor
  T* elements;        // for types that no visitor takes: f64 and integers
  int64_t rows, columns;
};

/// Puts a thread's sums into the result, from its element (batch, row, column) on; `row_end` and
/// `column_end` bound what belongs to the tile.
template <typename Tile, typename T>
SGTC_DEVICE void store_tile(const typename Tile::Sums& sums, const TileResult<T>& result,
                            int64_t batch, int64_t row, int64_t column, int64_t row_end,
                            int64_t column_end) {
#pragma clang loop unroll(full)
  for (uint32_t i = 0; i < Tile::kOwn; ++i) {
    const bool inside = row + i < row_end && column < column_end;
    const int64_t lanes = inside ? minimum(Tile::kOwn, column_end - column) : 0;
    if constexpr (__is_same(typename Tile::E, float)) {
      V8f values;
#pragma clang loop unroll(full)
      for (uint32_t j = 0; j < Tile::kOwn; ++j) values[j] = sums[i][j];
      sgtc_tile_store(result.args, batch, row + i, column, values, lanes);
    } else {
      T* to = result.elements + (batch * result.rows + row + i) * result.columns + column;
#pragma clang loop unroll(full)
      for (uint32_t j = 0; j < Tile::kOwn; ++j) {
        if (j < lanes) to[j] = static_cast<T>(sums[i][j]);
      }
    }
  }
}

}  // namespace sgtc::gpu
