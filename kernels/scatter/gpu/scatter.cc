// Scatters on GPUs: data with updates combined into the positions that indices name, in the order
// of the indices and without atomic operations on elements, so that every run gives the same bits.
//
// The problem of scatter_add and scatter_nd, which scatter rows: indices are known only now, and
// may be very uneven (the most frequent words of a text). A block owns some hundred rows of the
// result and 128 of their columns. It reads all indices, lists those that name its rows in their
// order, and then each warp goes over the list for its rows, one after the other, with the sums in
// registers. A row that many indices name is summed by all warps of the block, each over a part of
// the list; the parts' sums are added in order. Left out: sorting the indices first, which needs
// several launches; reading all indices costs a block about 15 µs for 32 Ki of them.
#include "element.h"
#include "gpu/instructions.h"
#include "gpu/launch.h"
#include "scatter/combined.h"
#include "shapes.h"
#include "status.h"

namespace sgtc::gpu {
namespace {

using namespace sgtc::kernels;

constexpr uint32_t kThreads = kScatterThreads;
constexpr uint32_t kWarps = kThreads / kWarpThreads;
constexpr uint32_t kReads = 8;  // indices per thread and turn
constexpr uint32_t kTurn = kThreads * kReads;
constexpr uint32_t kListed = 2 * kTurn;  // length of the list
constexpr uint32_t kColumnsOfLane = kScatterColumns / kWarpThreads;
constexpr uint32_t kManyUpdates = 64;  // of a row: for all warps
constexpr uint32_t kInFlight = 4;      // updates read at once

/// The shared memory of a block.
struct ScatterMemory {
  uint32_t updates[kListed];  // the list: which update…
  uint16_t rows[kListed];     // … goes to which row of the block
  uint32_t counts[kScatterRows];
  uint32_t found[kWarps];
  double partial_sums[kWarps][kScatterColumns];
};
static_assert(sizeof(ScatterMemory) <= kScatterSharedBytes);
using Memory = SGTC_SHARED ScatterMemory;

SGTC_DEVICE uint32_t lowest_bit(uint32_t bits) { return __builtin_ctz(bits); }

/// The rows and columns of a block, and the tensors from its slice `outer` on.
template <typename T>
struct RowBlock {
  const T* data;
  const T* updates;
  T* result;
  int64_t inner;       // elements of a row
  uint32_t row, rows;  // of this block
  uint32_t column;     // first of the block's
  uint32_t indices;
};

template <typename T, ScatterReduction Reduction>
class RowScatter {
 public:
  using A = ArithmeticOf<T>;

  SGTC_METHOD RowScatter(const RowBlock<T>& block)
      : block_(block),
        memory_(*shared_memory<ScatterMemory>()),
        warp_(thread_index() / kWarpThreads),
        lane_(thread_index() % kWarpThreads) {}

  /// row_of(i) is the row of the tensor that update i goes to, negative for none.
  template <typename RowOf>
  SGTC_METHOD void run(RowOf row_of) {
    uint32_t begin = 0;
    bool is_first = true;
#pragma clang loop unroll(disable)
    do {
      const uint32_t listed = list_updates(begin, row_of);
      combine_rows(listed, is_first ? block_.data : block_.result);
      if constexpr (kSplits) combine_long_rows(listed, is_first ? block_.data : block_.result);
      is_first = false;
    } while (begin < block_.indices);
  }

 private:
  static constexpr bool kSplits = Reduction == ScatterReduction::kAdd;

  /// Fills the list from index `begin` on, and moves `begin` to the first one that is left.
  template <typename RowOf>
  SGTC_METHOD uint32_t list_updates(uint32_t& begin, RowOf row_of) {
    synchronize_block();
    for (uint32_t row = thread_index(); row < block_.rows; row += kThreads) {
      memory_.counts[row] = 0;
    }
    uint32_t listed = 0;
#pragma clang loop unroll(disable)
    for (; begin < block_.indices && listed + kTurn <= kListed; begin += kTurn) {
      listed = list_turn(begin, listed, row_of);
    }
    synchronize_block();
    return listed;
  }

  template <typename RowOf>
  SGTC_METHOD uint32_t list_turn(uint32_t begin, uint32_t listed, RowOf row_of) {
    const uint32_t first = begin + warp_ * kWarpThreads * kReads + lane_;
    uint32_t rows[kReads], matches[kReads], found = 0;
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < kReads; ++i) {
      const uint32_t update = first + i * kWarpThreads;
      const int64_t row = update < block_.indices ? row_of(update) - block_.row : -1;
      rows[i] = static_cast<uint32_t>(row);
      matches[i] = lanes_where(row >= 0 && row < block_.rows);
      found += __builtin_popcount(matches[i]);
    }
    synchronize_block();
    if (lane_ == 0) memory_.found[warp_] = found;
    synchronize_block();
    uint32_t at = listed;
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < kWarps; ++i) {
      if (i < warp_) at += memory_.found[i];
      listed += memory_.found[i];
    }
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < kReads; ++i) {
      if ((matches[i] >> lane_ & 1) != 0) {
        const uint32_t place = at + __builtin_popcount(matches[i] & ((1u << lane_) - 1));
        memory_.updates[place] = first + i * kWarpThreads;
        memory_.rows[place] = static_cast<uint16_t>(rows[i]);
        add_one(&memory_.counts[rows[i]]);
      }
      at += __builtin_popcount(matches[i]);
    }
    return listed;
  }

  /// Each warp takes every eighth row.
  SGTC_METHOD void combine_rows(uint32_t listed, const T* from) const {
#pragma clang loop unroll(disable)
    for (uint32_t row = warp_; row < block_.rows; row += kWarps) {
      const uint32_t count = memory_.counts[row];
      if (kSplits && count > kManyUpdates) continue;
      if (count == 0 && from == block_.result) continue;
      A values[kColumnsOfLane];
      read(values, from, block_.row + row);
      if (count > 0) combine_listed(values, row, 0, listed);
      write(values, row);
    }
  }

  /// Combines the updates of `row` that the list has from `begin` to `end`.
  SGTC_METHOD void combine_listed(A (&values)[kColumnsOfLane], uint32_t row, uint32_t begin,
                                  uint32_t end) const {
#pragma clang loop unroll(disable)
    for (uint32_t base = begin; base < end; base += kWarpThreads) {
      const bool matches = base + lane_ < end && memory_.rows[base + lane_] == row;
      uint32_t lanes = lanes_where(matches);
#pragma clang loop unroll(disable)
      while (lanes != 0) combine_some(values, base, lanes);
    }
  }

  /// The updates at the first few of the places `base` + bit of `lanes`, which it takes away.
  SGTC_METHOD void combine_some(A (&values)[kColumnsOfLane], uint32_t base, uint32_t& lanes) const {
    A updates[kInFlight][kColumnsOfLane];
    uint32_t count = 0;
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < kInFlight; ++i) {
      const uint32_t update = memory_.updates[base + (lanes != 0 ? lowest_bit(lanes) : 0)];
      read(updates[i], block_.updates, update);
      count += lanes != 0 ? 1 : 0;
      lanes &= lanes - 1;
    }
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < kInFlight; ++i) {
#pragma clang loop unroll(full)
      for (uint32_t j = 0; j < kColumnsOfLane; ++j) {
        if (i < count) values[j] = combined_values(values[j], updates[i][j], Reduction);
      }
    }
  }

  /// Rows with many updates, one after the other.
  SGTC_METHOD void combine_long_rows(uint32_t listed, const T* from) {
    const uint32_t part = (listed + kWarps - 1) / kWarps;
    const uint32_t begin = warp_ * part;
    const uint32_t end = begin + part < listed ? begin + part : listed;
#pragma clang loop unroll(disable)
    for (uint32_t row = 0; row < block_.rows; ++row) {
      if (memory_.counts[row] <= kManyUpdates) continue;
      A values[kColumnsOfLane] = {};
      combine_listed(values, row, begin, end);
#pragma clang loop unroll(full)
      for (uint32_t j = 0; j < kColumnsOfLane; ++j) {
        partial_sums(warp_)[lane_ + j * kWarpThreads] = values[j];
      }
      synchronize_block();
      if (warp_ == 0) add_partial_sums(row, from);
      synchronize_block();
    }
  }

  SGTC_METHOD SGTC_SHARED A* partial_sums(uint32_t warp) const {
    return reinterpret_cast<SGTC_SHARED A*>(memory_.partial_sums[warp]);
  }

  SGTC_METHOD void add_partial_sums(uint32_t row, const T* from) const {
    A values[kColumnsOfLane];
    read(values, from, block_.row + row);
#pragma clang loop unroll(full)
    for (uint32_t j = 0; j < kColumnsOfLane; ++j) {
      for (uint32_t warp = 0; warp < kWarps; ++warp) {
        values[j] = add_elements(values[j], partial_sums(warp)[lane_ + j * kWarpThreads]);
      }
    }
    write(values, row);
  }

  /// The block's columns of a row of a tensor; those outside are zeros.
  SGTC_METHOD void read(A (&values)[kColumnsOfLane], const T* from, uint32_t row) const {
    const T* at = from + row * block_.inner + block_.column;
#pragma clang loop unroll(full)
    for (uint32_t j = 0; j < kColumnsOfLane; ++j) {
      const uint32_t column = lane_ + j * kWarpThreads;
      values[j] = block_.column + column < block_.inner ? widened(at[column]) : A{};
    }
  }

  SGTC_METHOD void write(const A (&values)[kColumnsOfLane], uint32_t row) const {
    T* to = block_.result + (block_.row + row) * block_.inner + block_.column;
#pragma clang loop unroll(full)
    for (uint32_t j = 0; j < kColumnsOfLane; ++j) {
      const uint32_t column = lane_ + j * kWarpThreads;
      if (block_.column + column < block_.inner) to[column] = narrowed<T>(values[j]);
    }
  }

  const RowBlock<T> block_;
  Memory& memory_;
  const uint32_t warp_, lane_;
};

/// The block's share of `size` rows in each of `outer` slices; blocks of the same columns follow
/// each other. Sets `outer`; false if there is nothing for it.
template <typename T>
SGTC_DEVICE bool locate(RowBlock<T>& block, uint32_t& outer, int64_t outer_count, int64_t size,
                        int64_t inner, int64_t rows_per_block) {
  const auto row_blocks = static_cast<uint32_t>(maximum(1, ceil_divide(size, rows_per_block)));
  const auto column_blocks = static_cast<uint32_t>(ceil_divide(inner, kScatterColumns));
  if (outer_count * column_blocks == 0) return false;
  const uint32_t index = block_index();
  outer = index / row_blocks / column_blocks;
  block.inner = inner;
  block.row = index % row_blocks * static_cast<uint32_t>(rows_per_block);
  block.rows = static_cast<uint32_t>(minimum(rows_per_block, size - block.row));
  block.column = index / row_blocks % column_blocks * kScatterColumns;
  return true;
}

template <typename T>
SGTC_DEVICE void scatter_add(const ScatterAddShape& s, void* const* tensors) {
  RowBlock<T> block;
  uint32_t outer;
  if (!locate(block, outer, s.outer, s.size, s.inner, s.rows_per_block)) return;
  block.data = static_cast<const T*>(tensors[0]) + outer * s.size * s.inner;
  block.updates = static_cast<const T*>(tensors[2]) + outer * s.indices * s.inner;
  block.result = static_cast<T*>(tensors[3]) + outer * s.size * s.inner;
  block.indices = static_cast<uint32_t>(s.indices);
  void* const status = block_index() == 0 ? tensors[4] : nullptr;
  RowScatter<T, ScatterReduction::kAdd>(block).run([&](uint32_t i) SGTC_LAMBDA {
    return checked_index(read_index(tensors[1], i, s.index_bytes), s.size, status, s.checked_node);
  });
}

template <typename T, ScatterReduction Reduction>
SGTC_DEVICE void scatter_rows(const ScatterNdShape& s, const RowBlock<T>& block,
                              void* const* tensors) {
  void* const status = block_index() == 0 ? tensors[4] : nullptr;
  RowScatter<T, Reduction>(block).run([&](uint32_t i) SGTC_LAMBDA {
    int64_t row = 0;
    for (int64_t d = 0; d < s.depth; ++d) {
      const int64_t index = checked_index(read_index(tensors[1], i * s.depth + d, s.index_bytes),
                                          s.extents[d], status, s.checked_node);
      if (index < 0) return int64_t{-1};
      row += index * (s.strides[d] / s.slice);
    }
    return row;
  });
}

template <typename T>
SGTC_DEVICE void scatter_nd(const ScatterNdShape& s, void* const* tensors) {
  if (s.elements == 0) return;
  RowBlock<T> block;
  uint32_t outer;
  if (!locate(block, outer, 1, s.elements / s.slice, s.slice, s.rows_per_block)) return;
  block.data = static_cast<const T*>(tensors[0]);
  block.updates = static_cast<const T*>(tensors[2]);
  block.result = static_cast<T*>(tensors[3]);
  block.indices = static_cast<uint32_t>(s.tuples);
  switch (s.reduction) {
    case ScatterReduction::kAdd:
      return scatter_rows<T, ScatterReduction::kAdd>(s, block, tensors);
    case ScatterReduction::kMultiply:
      return scatter_rows<T, ScatterReduction::kMultiply>(s, block, tensors);
    case ScatterReduction::kMax:
      return scatter_rows<T, ScatterReduction::kMax>(s, block, tensors);
    case ScatterReduction::kMin:
      return scatter_rows<T, ScatterReduction::kMin>(s, block, tensors);
    default:
      return scatter_rows<T, ScatterReduction::kNone>(s, block, tensors);
  }
}

/// A thread owns a line of the result along the axis, or one of `axis_parts` parts of it.
struct ScatterLine {
  int64_t data, indices;  // of the line's first elements
  bool has_updates;
};

SGTC_DEVICE ScatterLine line_at(const ScatterElementsShape& s, uint32_t line) {
  ScatterLine at = {0, 0, true};
  int64_t data_stride = 1, index_stride = 1;
  for (int64_t d = s.rank - 1; d >= 0; --d) {
    const auto size = static_cast<uint32_t>(d == s.axis ? 1 : s.data[d]);
    const uint32_t coordinate = line % size;
    line /= size;
    at.data += coordinate * data_stride;
    at.indices += coordinate * index_stride;
    at.has_updates = at.has_updates && coordinate < s.indices[d];
    data_stride *= s.data[d];
    index_stride *= s.indices[d];
  }
  return at;
}

SGTC_DEVICE int64_t stride_within(const int64_t (&sizes)[kMaxDims], int64_t rank, int64_t axis) {
  int64_t stride = 1;
  for (int64_t d = axis + 1; d < rank; ++d) stride *= sizes[d];
  return stride;
}

template <typename T>
SGTC_DEVICE void scatter_elements(const ScatterElementsShape& s, void* const* tensors) {
  int64_t lines = 1;
  for (int64_t d = 0; d < s.rank; ++d) lines *= d == s.axis ? 1 : s.data[d];
  const uint32_t thread = block_index() * thread_count() + thread_index();
  if (thread >= lines * s.axis_parts) return;
  const ScatterLine line = line_at(s, thread % static_cast<uint32_t>(lines));
  const int64_t part = thread / static_cast<uint32_t>(lines);
  const int64_t size = s.data[s.axis], rows = ceil_divide(size, s.axis_parts);
  const int64_t begin = part * rows, end = minimum(size, begin + rows);
  const int64_t stride = stride_within(s.data, s.rank, s.axis);
  const int64_t update_stride = stride_within(s.indices, s.rank, s.axis);
  const T* data = static_cast<const T*>(tensors[0]) + line.data;
  T* result = static_cast<T*>(tensors[3]) + line.data;
  for (int64_t i = begin; i < end && data != result; ++i) result[i * stride] = data[i * stride];
  const T* updates = static_cast<const T*>(tensors[2]) + line.indices;
  const int64_t count = line.has_updates ? s.indices[s.axis] : 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t named = read_index(tensors[1], line.indices + i * update_stride, s.index_bytes);
    const int64_t index =
        checked_index(named, size, part == 0 ? tensors[4] : nullptr, s.checked_node);
    if (index < begin || index >= end) continue;
    result[index * stride] =
        combined(result[index * stride], updates[i * update_stride], s.reduction);
  }
}

}  // namespace
}  // namespace sgtc::gpu

#define SGTC_SCATTER(entry, shape_type, name, type)                                            \
  SGTC_EXPORT void sgtc_##entry##_##name(const sgtc::kernels::shape_type* shape, void* const*, \
                                         void* const* tensors) {                               \
    sgtc::gpu::entry<type>(*shape, tensors);                                                   \
  }
#define SGTC_SCATTERS(name, type)                                  \
  SGTC_SCATTER(scatter_add, ScatterAddShape, name, type)           \
  SGTC_SCATTER(scatter_elements, ScatterElementsShape, name, type) \
  SGTC_SCATTER(scatter_nd, ScatterNdShape, name, type)
SGTC_FOR_EACH_NUMBER(SGTC_SCATTERS)
