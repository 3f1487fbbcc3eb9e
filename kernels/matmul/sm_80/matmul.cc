// Matrix products of bfloat16 and half precision on the tensor cores of GPUs from compute
// capability 8.0 on, with sums in single precision.
//
// The problem: a warp's products need both operands in its registers, in pieces of 16 x 16 that no
// layout in memory has. The known answer is taken: k-blocks of both operands are copied to a ring
// of stages in shared memory while earlier ones are multiplied, and come to registers by ldmatrix,
// which transposes where an operand is contiguous along its lines. Four warps have 64 x 64 of a
// tile of 128 x 128. Units of 16 bytes are permuted within rows, so that neither copies nor
// ldmatrix meet in a bank. Two blocks of a multiprocessor hide each other's ends of tiles. Operands
// are read at multiples of 16 bytes: lines, or the depth, have a multiple of 8 elements.
#include "ampere/instructions.h"
#include "gpu/depth_parts.h"
#include "gpu/launch.h"
#include "hopper/staging.h"
#include "shapes.h"

namespace sgtc::ampere {
namespace {

using namespace sgtc::kernels;

constexpr uint32_t kLines = kMmaTileLines;
constexpr uint32_t kThreads = kMmaThreads;
constexpr uint32_t kDepth = 32;  // of a k-block
constexpr uint32_t kStages = 4;
constexpr uint32_t kUnit = 8;  // elements of 16 bytes
constexpr uint32_t kOperandBytes = kLines * kDepth * 2;
constexpr uint32_t kCopies = kOperandBytes / 16 / kThreads;
constexpr uint32_t kWarpLines = 64;
constexpr uint32_t kRasterRows = 16;  // tiles that are walked column by column
static_assert(kStages * 2 * kOperandBytes <= kMmaSharedBytes);
static_assert(kThreads / kWarpThreads * hopper::kStagingBytes <= kMmaSharedBytes);

using Sums = float[kWarpLines / 16][kWarpLines / 2];

/// The lines of one operand that belong to a tile.
template <typename T, bool LineMajor>
struct TileOperand {
  const T* from;  // the first line
  uint32_t lines, depth;
  int64_t stride;  // of lines, or of the depth for LineMajor

  /// Where a unit lies in a stage: row is a line and unit a part of the depth, or the other way
  /// round for LineMajor.
  SGTC_METHOD static uint32_t place(uint32_t row, uint32_t unit) {
    constexpr uint32_t kUnits = (LineMajor ? kLines : kDepth) / kUnit;
    const uint32_t permuted = unit ^ (LineMajor ? row % 8 : row / 2 % 4);
    return (row * kUnits + permuted) * 16;
  }

  SGTC_METHOD void copy(uint32_t to, uint32_t k) const {
    constexpr uint32_t kUnits = (LineMajor ? kLines : kDepth) / kUnit;
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < kCopies; ++i) {
      const uint32_t index = thread_index() + i * kThreads;
      const uint32_t row = index / kUnits, unit = index % kUnits;
      const uint32_t line = LineMajor ? unit * kUnit : row;
      const uint32_t at = k + (LineMajor ? row : unit * kUnit);
      const bool exists = line < lines && at < depth;
      const T* source = from + (LineMajor ? at * stride + line : line * stride + at);
      copy_16_bytes(to + place(row, unit), exists ? source : from, exists);
    }
  }

  /// A piece of 16 lines from `line` on and 16 of the depth from `k` on: matrices of lines 0 to 7
  /// and 8 to 15, or first of both halves of the depth (`DepthFirst`).
  template <bool DepthFirst>
  SGTC_METHOD static void load(uint32_t (&words)[4], uint32_t stage, uint32_t line, uint32_t k) {
    const uint32_t lane = thread_index() % kWarpThreads;
    const uint32_t low = lane / 8 % 2 * 8, high = lane / 16 * 8;
    const uint32_t lines = line + (DepthFirst ? high : low);
    const uint32_t depth = k + (DepthFirst ? low : high);
    const uint32_t at =
        LineMajor ? place(depth + lane % 8, lines / kUnit) : place(lines + lane % 8, depth / kUnit);
    load_matrices<LineMajor>(words, stage + at);
  }
};

template <typename T, bool LineMajorA, bool LineMajorB>
struct Product {
  using A = TileOperand<T, LineMajorA>;
  using B = TileOperand<T, LineMajorB>;
  A a;
  B b;

  SGTC_METHOD static uint32_t stage_at(uint32_t index) {
    return shared_address() + index % kStages * 2 * kOperandBytes;
  }

  SGTC_METHOD void copy(uint32_t index, uint32_t k, uint32_t end) const {
    if (k < end) {
      a.copy(stage_at(index), k);
      b.copy(stage_at(index) + kOperandBytes, k);
    }
    end_copies();
  }

  SGTC_METHOD static void multiply_block(Sums& sums, uint32_t stage, uint32_t row,
                                         uint32_t column) {
#pragma clang loop unroll(full)
    for (uint32_t k = 0; k < kDepth; k += 16) {
      uint32_t rows[kWarpLines / 16][4];
#pragma clang loop unroll(full)
      for (uint32_t i = 0; i < kWarpLines / 16; ++i) {
        A::template load<false>(rows[i], stage, row + 16 * i, k);
      }
#pragma clang loop unroll(full)
      for (uint32_t j = 0; j < kWarpLines / 16; ++j) {
        uint32_t columns[4];
        B::template load<true>(columns, stage + kOperandBytes, column + 16 * j, k);
#pragma clang loop unroll(full)
        for (uint32_t i = 0; i < kWarpLines / 16; ++i) {
          multiply_matrices<T>(sums[i] + 8 * j, rows[i], columns[0], columns[1]);
          multiply_matrices<T>(sums[i] + 8 * j + 4, rows[i], columns[2], columns[3]);
        }
      }
    }
  }

  /// sums of the warp's part of the tile over depths `begin` to `end`.
  SGTC_METHOD void multiply(Sums& sums, uint32_t row, uint32_t column, uint32_t begin,
                            uint32_t end) const {
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < kWarpLines / 16; ++i) {
#pragma clang loop unroll(full)
      for (uint32_t j = 0; j < kWarpLines / 2; ++j) sums[i][j] = 0;
    }
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < kStages - 1; ++i) copy(i, begin + i * kDepth, end);
    uint32_t index = 0;
#pragma clang loop unroll(disable)
    for (uint32_t k = begin; k < end; k += kDepth, ++index) {
      wait_for_copies<kStages - 2>();
      synchronize_block();
      copy(index + kStages - 1, k + (kStages - 1) * kDepth, end);
      multiply_block(sums, stage_at(index), row, column);
    }
    wait_for_copies<0>();
    synchronize_block();
  }
};

/// The tile of a block: columns of kRasterRows rows of tiles, one after the other.
struct TileIndex {
  uint32_t batch, row, column;

  SGTC_DEVICE TileIndex of(const MatmulShape& s, uint32_t tile) {
    const auto rows = static_cast<uint32_t>(ceil_divide(s.rows, kLines));
    const auto columns = static_cast<uint32_t>(ceil_divide(s.columns, kLines));
    const uint32_t of_matrix = tile % (rows * columns);
    const uint32_t first = of_matrix / (kRasterRows * columns) * kRasterRows;
    const uint32_t height = rows - first < kRasterRows ? rows - first : kRasterRows;
    const uint32_t rest = of_matrix - first * columns;
    return {tile / (rows * columns), (first + rest % height) * kLines, rest / height * kLines};
  }
};

/// Puts the sums of a warp into the result, through shared memory.
SGTC_DEVICE void store_sums(const MatmulShape& s, void* const* args, const Sums& sums,
                            uint32_t batch, uint32_t row, uint32_t column) {
  const uint32_t warp = thread_index() / kWarpThreads;
  const uint32_t buffer = shared_address() + warp * hopper::kStagingBytes;
  const auto rows = static_cast<uint32_t>(s.rows), columns = static_cast<uint32_t>(s.columns);
  const auto lanes_at = [=](uint32_t at_row, uint32_t at_column) SGTC_LAMBDA -> int64_t {
    if (at_row >= rows || at_column >= columns) return 0;
    return columns - at_column < 8 ? columns - at_column : 8;
  };
#pragma clang loop unroll(full)
  for (uint32_t part = 0; part < kWarpLines / 8; ++part) {
    hopper::stage_sums(buffer, sums[part / 2] + 2 * (part % 2));
    hopper::visit_staged(sgtc_tile_store, args, batch, row + 8 * part, column, buffer, lanes_at);
  }
}

template <typename T, bool LineMajorA, bool LineMajorB>
SGTC_DEVICE void matmul(const MatmulShape& s, void* const* args, void* const* tensors) {
  const auto parts = static_cast<uint32_t>(s.depth_parts), depth = static_cast<uint32_t>(s.depth);
  const DepthPart part = {block_index() / parts, parts, block_index() % parts, tensors[4],
                          static_cast<uint32_t*>(tensors[5])};
  const TileIndex tile = TileIndex::of(s, part.tile);
  const T* a = static_cast<const T*>(tensors[0]) + tile.row * s.a_row_stride;
  const T* b = static_cast<const T*>(tensors[1]) + tile.column * s.b_column_stride;
  uint32_t rest = tile.batch;
  for (int64_t d = s.batch_rank - 1; d >= 0; --d) {
    const auto size = static_cast<uint32_t>(s.batch[d]);
    a += rest % size * s.a_batch_strides[d];
    b += rest % size * s.b_batch_strides[d];
    rest /= size;
  }
  const Product<T, LineMajorA, LineMajorB> product = {
      {a, static_cast<uint32_t>(s.rows - tile.row), depth,
       LineMajorA ? s.a_depth_stride : s.a_row_stride},
      {b, static_cast<uint32_t>(s.columns - tile.column), depth,
       LineMajorB ? s.b_depth_stride : s.b_column_stride}};
  const uint32_t warp = thread_index() / kWarpThreads;
  const uint32_t row = warp / 2 * kWarpLines, column = warp % 2 * kWarpLines;
  Sums sums;
  product.multiply(sums, row, column, part.begin(depth), part.end(depth));
  if (parts > 1 && !join_parts<kThreads>(sums, part)) return;
  store_sums(s, args, sums, tile.batch, tile.row + row, tile.column + column);
}

}  // namespace
}  // namespace sgtc::ampere

#define SGTC_MATMUL(name, type, a, b, layout)                                                   \
  SGTC_EXPORT void sgtc_matmul_mma_##name##_##layout(const sgtc::kernels::MatmulShape* shape,   \
                                                     void* const* args, void* const* tensors) { \
    sgtc::ampere::matmul<type, a, b>(*shape, args, tensors);                                    \
  }
#define SGTC_MATMULS(name, type)            \
  SGTC_MATMUL(name, type, false, false, dd) \
  SGTC_MATMUL(name, type, false, true, dl)  \
  SGTC_MATMUL(name, type, true, false, ld)  \
  SGTC_MATMUL(name, type, true, true, ll)
SGTC_MATMULS(f16, _Float16)
SGTC_MATMULS(bf16, sgtc::kernels::BFloat16)
