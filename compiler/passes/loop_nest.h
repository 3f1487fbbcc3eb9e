// LoopNest: the code of a fused kernel as data.
//
// The problem. Fusion wants to know whether a set of graph nodes can become one loop, what that
// loop would cost, and which memory it touches; code generation wants to emit it for CPU vectors
// now and GPU threads later. Both need more than the list of nodes and less than LLVM IR.
//
// Two known representations are schedules over polyhedra (any affine loop structure, found by an
// integer solver) and nested loop trees (easy to emit, awkward to merge). A LoopNest is less than
// either: one perfect nest over *atoms*, whose body is a DAG of scalar expressions. That covers
// elementwise chains, broadcasts, transposes, slices, pads, concatenations, gathers, and all the
// normalisations and losses of training graphs, whose reductions run over the same elements. What
// it leaves out: contractions and scans (written kernels), reductions of reductions over different
// elements, and stencils whose producers are not recomputed per tap. Those end a group.
//
// How it reads:
// - The domain is the list of atoms, row-major. An atom is parallel or reduced. A nest without
//   reductions has parallel atoms only; all reductions of a nest run over the same reduced atoms.
// - A *row* is one combination of the parallel atoms; a row-level value does not depend on reduced
//   atoms, an element-level value does. The result of a reduction is row-level.
// - Every expression has a depth: how many sweeps over the reduced atoms must be over before it is
//   known. Reduction r of an operand of depth d happens in sweep d, and the result has depth d + 1.
//   An element-level value is computed anew in each sweep that needs it; rows are short enough to
//   stay in cache and recomputing is cheaper than a scratch row.
// - The last atoms, from `vector_begin`, form the vector axis: 16 consecutive positions of their
//   flattened range are computed at once.
//
// Bits. A reduction's order is a rule of its operand's shape and axes, whatever it is fused with:
// - kLanes, when the last dimension of size > 1 is reduced: take the longest suffix of reduced
//   dimensions; element i of its flattened range goes to lane i mod 16; the other reduced
//   dimensions are sequential outside of it; lanes are added as a tree (8, 4, 2, 1 apart).
// - kSequential otherwise: one element after the other in row-major order, vectors lie along kept
//   dimensions.
// Sums of floats start a new accumulator every 64 steps (elements, or vectors of 16 counted over
// all rows), whose results are added in order, so that long sums lose few bits. A nest holds
// reductions of one order only. Values are rounded to their dtype at every expression that stands
// for a graph value, and nothing is contracted or reassociated between expressions, so bits do not
// depend on fusion, blocks or threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/affine_index.h"

namespace sgtc {

inline constexpr int64_t kLanes = 16;
/// Steps of a sum of floats in one accumulator.
inline constexpr int64_t kChainSteps = 64;

enum class ReductionOrder : uint8_t { kNone, kLanes, kSequential };

/// How often an expression is evaluated.
enum class Level : uint8_t {
  kKernel,   // once: depends on no atom
  kRow,      // once per row
  kElement,  // once per vector of elements and sweep
};

/// A tensor that the nest reads, writes or both.
struct NestArgument {
  ValueId value = kNone;  // read: as seen from outside; written: the stored value
  DType dtype = DType::kFloat32;
  int64_t elements = 0;
  bool read = false;
  bool written = false;
};

struct Expression {
  enum class Kind : uint8_t {
    kLoad,      // argument[index] where the guards hold, else 0
    kConstant,  // real (floats) or integer (others)
    kIndex,     // the value of `index`, converted to dtype
    kCompute,   // op(operands), elementwise
    kSelect,    // the guards hold ? operands[0] : operands[1]
    kChecked,   // operands[0] + (negative and op is not pick ? extent : 0), reported and clamped
                // when not in [0, extent); only where the guards hold; i64
    kRandom,    // op(seed, step) at element `index` of the stream
    kReduce,    // op over all reduced atoms of operands[0]; with two: gpu/online_softmax.h
    kGiven,     // the result of the anchor whose epilogue this nest is
  };
  Kind kind = Kind::kConstant;
  Op op = Op::kAdd;                    // kCompute, kRandom, kReduce, kChecked
  DType dtype = DType::kFloat32;       // of the value
  std::vector<ExpressionId> operands;  // earlier expressions
  AffineIndex index;                   // kLoad, kIndex, kRandom
  std::vector<Guard> guards;           // kLoad, kSelect, kChecked
  int32_t argument = kNone;            // kLoad
  double real = 0;                     // kConstant
  int64_t integer = 0;                 // kConstant; kRandom: stream; kChecked: extent;
                        // is_inf: bit 0 positive, bit 1 negative; else 1: approximate
  Level level = Level::kElement;
  int32_t depth = 0;
};

/// argument[index] = value; with `micro_batches` > 0 at
/// index + (micro_batch mod micro_batches) * micro_batch_stride.
struct Store {
  int32_t argument = kNone;
  ExpressionId value = kNone;
  AffineIndex index;
  int64_t micro_batches = 0;
  int64_t micro_batch_stride = 0;
};

struct LoopNest {
  std::vector<Atom> atoms;
  ReductionOrder order = ReductionOrder::kNone;
  std::vector<Expression> expressions;  // operands first
  std::vector<Store> stores;
  std::vector<NestArgument> arguments;
  int32_t vector_begin = 0;  // atoms from here on are the vector axis
  /// Epilogues only: atoms [0, row_begin) are the anchor's batch, [row_begin, vector_begin) its
  /// rows, the rest its columns.
  int32_t row_begin = 0;
  int32_t sweeps = 0;  // loops over the reduced atoms, or 1 without any
  bool empty() const { return stores.empty(); }
};

/// How a nest is cut into blocks: a grid of row ranges by ranges of the vector axis. Depends on
/// shapes alone. Reductions of order kLanes never cut the vector axis.
struct BlockGrid {
  int64_t rows = 1;     // product of the parallel atoms outside of the vector axis
  int64_t columns = 1;  // extent of the vector axis
  int64_t rows_per_block = 1;
  int64_t columns_per_block = 1;
  int64_t row_blocks = 1;
  int64_t column_blocks = 1;
  int64_t blocks() const { return row_blocks * column_blocks; }
};
BlockGrid block_grid(const LoopNest& nest);

/// How an index moves along the vector axis, where every vector starts at a multiple of its lanes.
struct VectorPattern {
  enum class Kind : uint8_t {
    kStride,     // by `stride` from one position of the flattened axis to the next
    kInnermost,  // by `stride` within the innermost atom, which the lanes never leave
    kScattered,  // each lane has an index of its own
  };
  Kind kind = Kind::kStride;
  int64_t stride = 0;
};
/// Computed indices are left out. `is_aligned` is false for epilogues whose vectors start anywhere.
VectorPattern vector_pattern(const LoopNest& nest, const AffineIndex& index, bool is_aligned,
                             int64_t lanes = kLanes);

/// The sweep in which a store is done: the first one in which its value is known.
int32_t sweep_of(const LoopNest& nest, const Store& store);
/// Product of the extents of the reduced atoms; 1 without any.
int64_t reduced_extent(const LoopNest& nest);
/// For each sweep, the element-level expressions that it evaluates, operands first.
std::vector<std::vector<ExpressionId>> element_work(const LoopNest& nest);

/// Joins neighbouring atoms that every access treats as one, chooses the vector axis (unless
/// `row_begin` and `vector_begin` of an epilogue are given), and sets levels, depths and sweeps.
/// `is_epilogue` keeps the borders between batch, rows and columns.
void finish_nest(LoopNest& nest, bool is_epilogue);

/// A canonical text: equal for two nests exactly when their code is equal.
std::string to_text(const LoopNest& nest);

}  // namespace sgtc
