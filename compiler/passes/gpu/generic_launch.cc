// The launches of the kernels that run on any GPU.
//
// The problem: results of all sizes have to fill the card. A contraction takes large tiles where
// there are enough of them, since they need half the bytes per product, and small ones elsewhere;
// where even those are too few for the card, several blocks share the depth of a tile. Of the other
// kernels, scatters have a block for some hundred rows, attention one for 64 queries or keys, and
// the rest a thread for each element or line.
#include "passes/gpu/generic_launch.h"

#include <algorithm>
#include <string>

#include "gpu/launch.h"
#include "passes/anchor_geometry.h"
#include "passes/anchor_shapes.h"
#include "support/diagnostics.h"

namespace sgtc::gpu {
namespace {

// Blocks that a multiprocessor holds at once.
constexpr int64_t kLargeTilesAtOnce = 2;
constexpr int64_t kSmallTilesAtOnce = 6;
constexpr int64_t kWideTilesAtOnce = 3;
constexpr int64_t kMmaTilesAtOnce = 2;
constexpr int64_t kUnitElements = 8;  // of 16 bytes, which the copies of mma.sync kernels read
constexpr int64_t kLargeTileRegisters = 128;  // or it would be one large tile at once
// A part of a depth that is worth leaving sums in memory, and one whose chain of additions is long.
constexpr int64_t kLeastPart = 256;
constexpr int64_t kMostPart = 8192;
constexpr int64_t kMostParts = 64;
constexpr int64_t kPartialDepth = 128;  // whose products take as long as leaving and adding sums
constexpr int64_t kPartialWaves = 4;    // of blocks that leave sums, which bounds the workspace
// Each block of a scatter reads all indices.
constexpr int64_t kScatterBlocksAtOnce = 4;
constexpr int64_t kLeastScatterRows = 16;
constexpr int64_t kThreadsPerProcessor = 1024;
constexpr int64_t kMostBlocks = int64_t{1} << 31;

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A contraction of `batch` products.
struct Product {
  int64_t batch, rows, columns, depth;
  DType dtype;
  bool is_single() const { return is_float(dtype) && dtype != DType::kFloat64; }
  int64_t sum_bytes() const { return size_of(dtype) == 8 ? 8 : 4; }
};

struct Tiling {
  int64_t lines, threads, registers, at_once;
  int64_t tiles_of(const Product& p) const {
    return p.batch * ceil_divide(p.rows, lines) * ceil_divide(p.columns, lines);
  }
};
constexpr Tiling kLarge = {kLargeTileLines, kLargeTileThreads, kLargeTileRegisters,
                           kLargeTilesAtOnce};
constexpr Tiling kSmall = {kSmallTileLines, kSmallTileThreads, 0, kSmallTilesAtOnce};
constexpr Tiling kWide = {kSmallTileLines, kWideTileThreads, 0, kWideTilesAtOnce};
constexpr Tiling kMma = {kMmaTileLines, kMmaThreads, 0, kMmaTilesAtOnce};

// Multiply-adds of all tiles, with those outside the result.
int64_t work_of(const Tiling& tiling, const Product& p) {
  return tiling.tiles_of(p) * tiling.lines * tiling.lines;
}

const Tiling& tiling_of(const Product& p, const KernelTarget& target) {
  if (!p.is_single()) return kWide;
  const bool fills = kLarge.tiles_of(p) >= target.multiprocessors;
  const bool fits = 8 * work_of(kLarge, p) <= 9 * work_of(kSmall, p);
  return fills && fits ? kLarge : kSmall;
}

// How many blocks share the depth of a tile: as many as end soonest, each part being charged for
// the sums that it leaves in memory.
int64_t parts_of_depth(const Tiling& tiling, const Product& p, const KernelTarget& target) {
  const int64_t at_once = tiling.at_once * target.multiprocessors;
  const int64_t tiles = std::max<int64_t>(1, tiling.tiles_of(p));
  const int64_t most = std::max<int64_t>(
      1, std::min({p.depth / kLeastPart, kMostParts, kPartialWaves * at_once / tiles}));
  const auto time = [&](int64_t parts) {
    const int64_t depth = ceil_divide(p.depth, parts) + (parts > 1 ? kPartialDepth : 0);
    return ceil_divide(tiles * parts, at_once) * depth;
  };
  int64_t best = std::clamp<int64_t>(ceil_divide(p.depth, kMostPart), 1, most);
  for (int64_t parts = best + 1; parts <= most; ++parts) {
    if (time(parts) < time(best)) best = parts;
  }
  return best;
}

void check_limit(const KernelSpec& spec, int64_t found, int64_t limit, const char* what) {
  if (found < limit) return;
  throw Error(std::string(name_of(spec.anchor)) + " for GPUs: expected fewer than " +
              std::to_string(limit) + " " + what + ", found " + std::to_string(found) +
              "; split the tensor");
}

void set_grid(KernelSpec& spec, int64_t blocks, int64_t threads, int64_t shared_bytes = 0) {
  check_limit(spec, blocks, kMostBlocks, "blocks of work");
  spec.blocks = std::max<int64_t>(1, blocks);
  spec.launch.threads = threads;
  spec.launch.shared_bytes = shared_bytes;
}

// A thread for each of `units`.
void set_units(KernelSpec& spec, int64_t units) {
  set_grid(spec, ceil_divide(units, kUnitThreads), kUnitThreads);
}

// Workspace or flags; without use of them (`bytes` is 0) the entry gets a null pointer.
void append_tensor(KernelSpec& spec, KernelArgument::Kind kind, int64_t bytes) {
  if (bytes == 0) return spec.entry.tensors.push_back({});
  const AccessMode mode =
      kind == KernelArgument::Kind::kFlags ? AccessMode::kUpdate : AccessMode::kWrite;
  spec.arguments.push_back({kind, kNone, mode, {}});
  spec.entry.tensors.push_back(
      {TensorPointer::Kind::kArgument, static_cast<int32_t>(spec.arguments.size()) - 1});
}

// Sets the launch and completes `shape`, a MatmulShape or ConvShape.
template <typename ProductShape>
void set_product(KernelSpec& spec, const Product& p, const Tiling& tiling,
                 const KernelTarget& target, int64_t shared_bytes, ProductShape& shape) {
  check_limit(spec, std::max({p.rows, p.columns, p.depth}), kMostBlocks, "rows, columns or depth");
  const int64_t tiles = tiling.tiles_of(p), parts = parts_of_depth(tiling, p, target);
  shape.block_rows = shape.block_columns = tiling.lines;
  shape.depth_parts = parts;
  set_grid(spec, tiles * parts, tiling.threads, shared_bytes);
  spec.launch.registers = tiling.registers;
  if (parts > 1) {
    spec.workspace_bytes = tiles * parts * tiling.lines * tiling.lines * p.sum_bytes();
    spec.flag_bytes = tiles * size_of(DType::kUInt32);
  }
  append_tensor(spec, KernelArgument::Kind::kWorkspace, spec.workspace_bytes);
  append_tensor(spec, KernelArgument::Kind::kFlags, spec.flag_bytes);
}

int64_t volume(const int64_t (&sizes)[kernels::kSpatial]) { return sizes[0] * sizes[1] * sizes[2]; }

Product product_of(const KernelSpec& spec, const kernels::MatmulShape& shape) {
  const Shape& result = spec.result_types[0].shape;
  const int64_t batch = element_count(Shape(result.begin(), result.end() - 2));
  return {batch, shape.rows, shape.columns, shape.depth, spec.operand_types[0].dtype};
}

std::vector<int64_t> set_matmul(KernelSpec& spec, const KernelTarget& target) {
  kernels::MatmulShape shape = matmul_shape(spec);
  const Product product = product_of(spec, shape);
  set_product(spec, product, tiling_of(product, target), target, kSimtSharedBytes, shape);
  return words_of(shape);
}

std::vector<int64_t> set_convolution(KernelSpec& spec, const KernelTarget& target) {
  kernels::ConvShape shape = convolution_shape(spec);
  const int64_t taps = volume(shape.window.kernel);
  const int64_t pixels = volume(shape.window.input), positions = volume(shape.window.output);
  check_limit(spec, std::max(pixels, positions), kMostBlocks, "elements of an image");
  const DType dtype = spec.operand_types[0].dtype;
  Product product;
  if (spec.anchor == Op::kConv) {
    product = {shape.batch * shape.groups, shape.output_channels, positions,
               shape.input_channels * taps, dtype};
  } else if (spec.anchor == Op::kConvInputGrad) {
    product = {shape.batch * shape.groups, shape.input_channels, pixels,
               shape.output_channels * taps, dtype};
  } else {
    product = {shape.groups, shape.output_channels, shape.input_channels * taps,
               shape.batch * positions, dtype};
  }
  set_product(spec, product, tiling_of(product, target), target, kSimtSharedBytes, shape);
  return words_of(shape);
}

std::vector<int64_t> set_pool(KernelSpec& spec) {
  const bool is_gradient = spec.anchor == Op::kMaxPoolGrad || spec.anchor == Op::kAveragePoolGrad;
  const kernels::PoolShape shape = pool_shape(spec);
  set_units(spec, shape.planes * volume(is_gradient ? shape.window.input : shape.window.output));
  return words_of(shape);
}

std::vector<int64_t> set_axis(KernelSpec& spec) {
  kernels::AxisShape shape = axis_shape(spec);
  const bool has_warps = spec.anchor != Op::kTopK && shape.inner == 1;
  shape.threads_per_line = has_warps ? 32 : 1;
  set_units(spec, shape.outer * shape.inner * shape.threads_per_line);
  return words_of(shape);
}

// Sets the launch of a scatter of rows, and returns the rows of a block.
int64_t set_scatter(KernelSpec& spec, int64_t outer, int64_t size, int64_t inner, int64_t indices,
                    const KernelTarget& target) {
  check_limit(spec, std::max({size, inner, indices}), kMostBlocks, "rows, columns or indices");
  const int64_t columns = outer * ceil_divide(inner, kScatterColumns);
  const int64_t wanted = std::max<int64_t>(
      1, kScatterBlocksAtOnce * target.multiprocessors / std::max<int64_t>(1, columns));
  const int64_t rows = std::clamp(ceil_divide(size, wanted), kLeastScatterRows, kScatterRows);
  set_grid(spec, columns * std::max<int64_t>(1, ceil_divide(size, rows)), kScatterThreads,
           kScatterSharedBytes);
  return rows;
}

std::vector<int64_t> set_scatter_add(KernelSpec& spec, const KernelTarget& target) {
  kernels::ScatterAddShape shape = scatter_add_shape(spec);
  shape.rows_per_block =
      set_scatter(spec, shape.outer, shape.size, shape.inner, shape.indices, target);
  return words_of(shape);
}

std::vector<int64_t> set_scatter_nd(KernelSpec& spec, const KernelTarget& target) {
  kernels::ScatterNdShape shape = scatter_nd_shape(spec);
  const int64_t rows = shape.slice == 0 ? 0 : shape.elements / shape.slice;
  shape.rows_per_block = set_scatter(spec, 1, rows, shape.slice, shape.tuples, target);
  return words_of(shape);
}

std::vector<int64_t> set_scatter_elements(KernelSpec& spec, const KernelTarget& target) {
  kernels::ScatterElementsShape shape = scatter_elements_shape(spec);
  const int64_t size = std::max<int64_t>(1, shape.data[shape.axis]);
  const int64_t lines = element_count(spec.result_types[0].shape) / size;
  const int64_t wanted =
      target.multiprocessors * kThreadsPerProcessor / std::max<int64_t>(1, lines);
  shape.axis_parts = std::clamp<int64_t>(wanted, 1, size);
  check_limit(spec, lines * shape.axis_parts, kMostBlocks, "lines");
  set_units(spec, lines * shape.axis_parts);
  return words_of(shape);
}

int64_t attention_passes(int64_t columns) {
  return std::max<int64_t>(1, ceil_divide(columns, kAttentionTileColumns));
}

std::vector<int64_t> set_attention(KernelSpec& spec) {
  const kernels::AttentionShape s = attention_shape(spec);
  const int64_t queries = s.batch * s.heads * ceil_divide(s.queries, kAttentionTileLines);
  const int64_t keys = s.batch * s.key_heads * ceil_divide(s.keys, kAttentionTileLines);
  check_limit(spec, std::max(s.queries, s.keys), kMostBlocks, "queries or keys");
  const int64_t blocks = spec.anchor == Op::kAttention
                             ? queries * attention_passes(s.value_size)
                             : queries * attention_passes(s.key_size) +
                                   keys * attention_passes(std::max(s.key_size, s.value_size));
  set_grid(spec, blocks, kAttentionThreads, kAttentionSharedBytes);
  return words_of(s);
}

// Sets the launch and returns the entry's shape.
std::vector<int64_t> set_launch(KernelSpec& spec, const KernelTarget& target) {
  switch (spec.anchor) {
    case Op::kMatMul:
      return set_matmul(spec, target);
    case Op::kConv:
    case Op::kConvInputGrad:
    case Op::kConvWeightGrad:
      return set_convolution(spec, target);
    case Op::kMaxPool:
    case Op::kMaxPoolGrad:
    case Op::kAveragePool:
    case Op::kAveragePoolGrad:
      return set_pool(spec);
    case Op::kArgMax:
    case Op::kArgMin:
    case Op::kCumSum:
    case Op::kTopK:
      return set_axis(spec);
    case Op::kScatterAdd:
    case Op::kAccumulateRows:
      return set_scatter_add(spec, target);
    case Op::kScatterElements:
      return set_scatter_elements(spec, target);
    case Op::kScatterNd:
      return set_scatter_nd(spec, target);
    case Op::kAttention:
    case Op::kAttentionGrad:
      return set_attention(spec);
    default:
      internal_error(__FILE__, __LINE__, std::string(name_of(spec.anchor)) + " has no kernel");
  }
}

// Operands, results and status; workspace and flags follow where the kernel has them.
void set_tensors(KernelSpec& spec) {
  const auto append = [&](int32_t argument) {
    const bool exists = argument != kNone;
    spec.entry.tensors.push_back(
        {exists ? TensorPointer::Kind::kArgument : TensorPointer::Kind::kNull, argument});
  };
  for (int32_t argument : spec.operand_arguments) append(argument);
  for (int32_t argument : spec.result_arguments) append(argument);
  const auto status = std::find_if(
      spec.arguments.begin(), spec.arguments.end(),
      [](const auto& argument) { return argument.kind == KernelArgument::Kind::kStatus; });
  append(status == spec.arguments.end() ? kNone
                                        : static_cast<int32_t>(status - spec.arguments.begin()));
}

// Whether the operands of a product can be read in units of 16 bytes.
bool is_in_units(const kernels::MatmulShape& s) {
  const int64_t pitch_a = s.a_row_stride == 1 ? s.a_depth_stride : s.a_row_stride;
  const int64_t pitch_b = s.b_column_stride == 1 ? s.b_depth_stride : s.b_column_stride;
  return pitch_a % kUnitElements == 0 && pitch_b % kUnitElements == 0;
}

}  // namespace

bool set_mma_matmul(KernelSpec& spec, const KernelTarget& target) {
  const DType dtype = spec.operand_types[0].dtype;
  const bool is_half = dtype == DType::kBFloat16 || dtype == DType::kFloat16;
  if (!is_half || spec.operand_types[1].dtype != dtype ||
      !anchor_visits_tiles(spec.anchor, spec.result_types[0].dtype)) {
    return false;
  }
  kernels::MatmulShape shape = matmul_shape(spec);
  const Product product = product_of(spec, shape);
  if (!is_in_units(shape) || kMma.tiles_of(product) * product.depth == 0) return false;
  // Which dimension of an operand is contiguous.
  const auto layout = [](int64_t line_stride) { return line_stride == 1 ? 'l' : 'd'; };
  const std::string layouts = {layout(shape.a_row_stride), layout(shape.b_column_stride)};
  spec.entry.name = "sgtc_matmul_mma_" + std::string(name_of(dtype)) + '_' + layouts;
  set_tensors(spec);
  set_product(spec, product, kMma, target, kMmaSharedBytes, shape);
  spec.entry.shape = words_of(shape);
  return true;
}

bool set_generic_anchor(KernelSpec& spec, const KernelTarget& target) {
  const std::string entry = anchor_entry(spec.anchor, spec.operand_types[0].dtype);
  if (entry.empty()) return false;
  set_tensors(spec);
  spec.entry.name = entry;
  spec.entry.shape = set_launch(spec, target);
  return true;
}

}  // namespace sgtc::gpu
