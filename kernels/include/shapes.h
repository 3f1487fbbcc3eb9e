// The constants of the written kernels. The compiler fills one of these structures for each kernel
// and stores it as a constant of the kernel's module; inlining then specialises the code. Every
// field has eight bytes, so that the compiler can write them as a list of words.
//
// Every kernel has the entry
//   void sgtc_NAME_TYPE(const SHAPE* shape, void* const* args, void* const* tensors,
//                       int64_t block_begin, int64_t block_end)
// where `tensors` holds the operator's operands, its results and the status block (null if nothing
// is checked), and `args` is passed on to sgtc_tile_store. On GPUs, where the launch says which
// block it is, the entry has no block_begin and block_end, and `tensors` goes on with workspace,
// flags and table (null where there is none).
#pragma once

#include <stdint.h>

namespace sgtc::kernels {

/// Largest tiles of a contraction; tiles have a multiple of 12 rows and of 32 columns.
inline constexpr int64_t kMaxBlockRows = 192;
inline constexpr int64_t kMaxBlockColumns = 128;
/// What a matrix product computes at once, of neighbouring blocks.
inline constexpr int64_t kMaxRegionRows = 384;
inline constexpr int64_t kMaxRegionColumns = 512;
/// The same where no sums are kept, since one slice is the whole depth: all columns, of more rows.
inline constexpr int64_t kMaxSliceRows = 768;
/// Columns of a panel of a packed operand: a multiple of the columns of all register tiles, and a
/// divisor of blocks'.
inline constexpr int64_t kPackedColumns = 32;
inline constexpr int64_t kAttentionRows = 48;
inline constexpr int64_t kMaxDims = 8;
inline constexpr int64_t kSpatial = 3;

/// result[batch, row, column] = sum over depth of a * b, in order. Strides in elements.
struct MatmulShape {
  int64_t batch_rank;
  int64_t batch[kMaxDims];
  int64_t a_batch_strides[kMaxDims];
  int64_t b_batch_strides[kMaxDims];
  int64_t rows, columns, depth;
  int64_t a_row_stride, a_depth_stride, b_depth_stride, b_column_stride;
  int64_t block_rows, block_columns;
  int64_t wide_vectors;  // CPUs
  int64_t depth_parts;   // GPUs: blocks that share the depth of a tile
  /// CPUs: B is packed; its element (k, column) is at [column / kPackedColumns, k, column %
  /// kPackedColumns]. Of its strides none is used then.
  int64_t b_packed;
};

/// Fewer than three spatial dimensions: the first ones have size 1.
struct WindowShape {
  int64_t input[kSpatial];
  int64_t output[kSpatial];
  int64_t kernel[kSpatial];
  int64_t strides[kSpatial];
  int64_t pads[kSpatial];      // before
  int64_t pads_end[kSpatial];  // after
  int64_t dilations[kSpatial];
};

/// A convolution and its gradients.
struct ConvShape {
  int64_t batch, groups;
  int64_t input_channels, output_channels;  // of one group
  WindowShape window;
  int64_t block_rows, block_columns;
  int64_t box[1 + kSpatial];  // CPUs, with channels last: samples and positions of a block; else 0
  int64_t wide_vectors;       // CPUs
  int64_t depth_parts;        // GPUs: blocks that share the depth of a tile
};

struct PoolShape {
  int64_t planes;  // batch * channels
  WindowShape window;
  int64_t count_include_pad;
  int64_t planes_per_block;
};

/// [outer, size, inner] around an axis.
struct AxisShape {
  int64_t outer, size, inner;
  int64_t lines_per_block;     // a line: one position of outer and inner
  int64_t exclusive, reverse;  // cumsum
  int64_t k, largest;          // top_k
  int64_t select_last;         // arg_max, arg_min
  int64_t threads_per_line;    // GPUs: 1 or 32
};

enum class ScatterReduction : int64_t { kNone, kAdd, kMultiply, kMax, kMin };

/// scatter_add: data[outer, size, inner], updates[outer, indices, inner].
struct ScatterAddShape {
  int64_t outer, size, inner, indices;
  int64_t index_bytes;
  int64_t checked_node;
  int64_t columns_per_block;  // CPUs: of inner
  int64_t rows_per_block;     // GPUs: of size
};

/// scatter_elements: dimension `axis` of the position is replaced by the index.
struct ScatterElementsShape {
  int64_t rank, axis;
  int64_t data[kMaxDims];
  int64_t indices[kMaxDims];
  int64_t index_bytes;
  int64_t checked_node;
  ScatterReduction reduction;
  int64_t axis_parts;  // GPUs: threads that share a line
};

/// scatter_nd: `tuples` tuples of `depth` indices select slices of `slice` elements.
struct ScatterNdShape {
  int64_t tuples, depth, slice;
  int64_t extents[kMaxDims];
  int64_t strides[kMaxDims];
  int64_t elements;
  int64_t index_bytes;
  int64_t checked_node;
  ScatterReduction reduction;
  int64_t columns_per_block;  // CPUs: of slice
  int64_t rows_per_block;     // GPUs: slices of the data
};

/// Where row (batch, head, row) of a tensor begins, in elements: offset + batch * strides[0] + head
/// * strides[1] + row * strides[2]. Elements of a row are neighbours.
struct HeadStrides {
  int64_t offset;
  int64_t strides[3];
};

/// q[batch, heads, queries, key_size], k[batch, key_heads, keys, key_size],
/// v[batch, key_heads, keys, value_size]; mask strides are 0 where it broadcasts. On a GPU all
/// tensors are row-major. `q` to `sum` are operands or results, the others those of the gradient.
struct AttentionShape {
  int64_t batch, heads, key_heads, queries, keys, key_size, value_size;
  int64_t causal, has_mask;
  int64_t zero_empty;   // rows without a key give zeros
  int64_t whole_heads;  // gradient: a block has a head of keys, not kAttentionRows queries or keys
  int64_t wide_vectors;
  int64_t mask_offset;
  int64_t mask_strides[4];
  HeadStrides q, k, v, output, maximum, sum, doutput, dq, dk, dv;
  double scale;
};

}  // namespace sgtc::kernels
