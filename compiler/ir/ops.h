// The one table of Graph operators.
//
// Conventions that hold for every operator:
// - Elementwise operators with several operands broadcast as NumPy does (right-aligned dimensions,
//   size 1 stretches); operands have the same dtype unless stated.
// - Reductions keep the reduced dimensions with size 1; importers and gradients add a reshape when
//   they want them gone. `axes` are sorted, unique and non-negative.
// - Every value is rounded to its dtype; contraction (fma) happens only inside one node.
// - Out-of-range float-to-integer casts saturate and NaN becomes 0; NaN is true as bool.
// - Attributes are required, except the flags (0 or 1), which are read with `integer_or`: is_inf's
//   positive and negative and top_k's largest are 1 when left out, all other flags 0.
// - Ties: max, min and their reductions pass the gradient to the first operand that attains the
//   bound (one-hot); relu is max(x, 0) with the gradient 0 at 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/attributes.h"
#include "ir/shape.h"
#include "support/dtype.h"
#include "support/inline_vector.h"

namespace sgtc {

enum class Op : uint8_t {
  // Elementwise, one operand. The result has the operand's dtype unless stated.
  kNeg,
  kAbs,
  kSign,  // -1, 0, 1; NaN stays NaN
  kExp,
  kLog,
  kSqrt,
  kRsqrt,  // 1/sqrt(x)
  kReciprocal,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kSigmoid,
  kSoftplus,  // log(1 + exp(x)) without overflow
  kFloor,
  kCeil,
  kRound,       // half to even
  kLogicalNot,  // bool
  kBitNot,      // integers
  kIsNan,       // -> bool
  kIsInf,       // positive=1 negative=1 -> bool
  kCast,        // to=<dtype name>
  // Elementwise, two operands.
  kAdd,
  kSub,
  kMul,
  kDiv,   // integers: truncates towards zero; by zero gives 0
  kPow,   // the exponent may have another dtype; the result has the base's
  kMod,   // sign of the divisor; integers: by zero gives 0
  kFmod,  // sign of the dividend; integers: by zero gives 0
  kMax,   // NaN if either is
  kMin,
  kEqual,  // comparisons -> bool
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kLogicalAnd,  // bool
  kLogicalOr,
  kLogicalXor,
  kBitAnd,  // integers
  kBitOr,
  kBitXor,
  kShiftLeft,   // amounts outside the width give 0
  kShiftRight,  // arithmetic for signed types
  // Elementwise, three operands.
  kWhere,  // (bool condition, a, b); the gradient of the branch not taken is exactly 0
  // Movement of elements.
  kReshape,    // shape=
  kTranspose,  // perm=
  kBroadcast,  // shape=: NumPy broadcast to exactly this shape
  kSlice,      // starts= sizes= steps=, one per dimension; steps may be negative
  kPad,        // low= high= (non-negative), (x, scalar value)
  kConcat,     // axis=
  kPlace,      // (x [, whole]), shape= starts=: whole with x in place of its elements from starts
               //   on. A kernel that can write a part of a tensor does it in place, so nothing else
               //   may use whole; without it all elements but x's are unspecified (0 here)
  kIota,       // shape= axis= dtype=: the index along axis
  // Indexing. Indices are i32 or i64; negative ones count from the end (not in pick); out of range:
  // the step's status block names the node and the run ends.
  kGather,  // (data, indices), axis= padding=: the slice of data at index `padding`, if it is
            //   given, gets no gradient
  kGatherElements,   // (data, indices), axis=
  kGatherNd,         // (data, indices), batch_dims=
  kPick,             // (x, indices), axis=: indices have size 1 along axis; x[.., index, ..]
  kScatterAdd,       // (data, indices, updates), axis=: gradient of gather added to data
  kScatterElements,  // (data, indices, updates), axis= reduction=none|add|mul|max|min
  kScatterNd,        // (data, indices, updates), reduction=none|add|mul|max|min
  // Reductions: axes=.
  kReduceSum,
  kReduceMax,
  kReduceMin,
  kReduceProd,
  kArgMax,  // axis= select_last=: -> i64, size 1 along axis; NaN beats every number
  kArgMin,  // the same
  kCumSum,  // axis= exclusive= reverse=
  kTopK,    // axis= k= largest=: -> values, i64 indices, sorted, ties by lower index; NaN is the
            //   greatest
  // Contractions. Products of bf16 or f16 operands may have result=f32: then sums are not rounded.
  kMatMul,          // (a, b), transpose_a= transpose_b=: rank >= 2, leading dimensions broadcast;
                    //   packed_columns=n: a matrix and b with n columns in panels [P, depth, W] of
                    //   W columns each: column j is [j / W, :, j % W]
  kConv,            // (x[N,C,..], w[O,C/g,..]), strides= pads=(begins, ends) dilations= groups=
  kConvInputGrad,   // (dy, w), the same and input= spatial sizes: dx, and ConvTranspose
  kConvWeightGrad,  // (x, dy), the same and kernel= spatial sizes: dw
  kMaxPool,      // (x), kernel= strides= pads= dilations= output= (spatial sizes): first maximum,
                 //   NaN is the greatest; a window in padding alone gives the lowest value
  kMaxPoolGrad,  // (x, dy), the same
  kAveragePool,  // (x), kernel= strides= pads= dilations= output= count_include_pad=:
                 //   positions beyond the padding never count; a window over nothing gives 0
  kAveragePoolGrad,  // (dy), the same and input= spatial sizes
  // Compositions kept whole until gradients exist; `expand_compositions` then opens them.
  kSoftmax,     // axis=
  kLogSoftmax,  // axis=
  kNormalize,   // (x), axes= epsilon=: -> (x - mean) * rstd, mean, population variance
  kAttention,   // (q[B,H,T,D], k[B,G,S,D], v[B,G,S,E] [, additive mask]), scale= causal=
                //   zero_empty=: -> output[B,H,T,E], maximum m[B,H,T] of the scores and sum[B,H,T]
                //   of exp(score - m) (f32; f64 for f64 operands). Query head h reads key head
                //   h / (H / G); causal: query t sees the keys s <= t; zero_empty: where all scores
                //   are -inf the output is 0 and not NaN, m is 0 and the sum 1
  kAttentionGrad,  // (q, k, v, output, maximum, sum, doutput [, mask]) -> dq, dk, dv
  // The same in two halves, each of which owns what it adds up, for targets that need it so.
  kAttentionQueryGrad,  // (q, k, v, output, maximum, sum, doutput [, mask]) -> dq, and terms of the
                        //   queries for the other half: [B,H,P,2], P is T rounded up to 64, with
                        //   log2(e) m + log2(sum), infinite beyond T, and the sum of output *
                        //   doutput; with a mask [B,H,P,4]: m, log2(sum), that sum, 0 (f32)
  kAttentionKeyGrad,    // (q, k, v, doutput, terms [, mask]) -> dk, dv
  // Random numbers: (seed i64[], step i64[]), shape= stream=: counter-based on
  // (seed, step, stream, global micro-batch, element); f32.
  kRandomUniform,  // [0, 1)
  kRandomNormal,   // mean 0, deviation 1
  // Micro-batches.
  kAccumulate,      // (state, x): state + x in micro-batch order; the result aliases the state
  kAccumulateRows,  // (state, indices, updates), axis=: the same with what scatter_add would add;
                    //   the state's other slices are not touched
  kStackMicroBatches,  // (x), micro_batches=: those of all replicas -> [.., ...], row m written by
                       //   the global micro-batch m
  // Replicas. Each runs once per step, when its operand is complete for all micro-batches.
  kAllReduce,  // (x): the sum over replicas, added in their order
  kAllGather,  // (x[R*n, ...]): replica r knows rows r*n..; the rows of all replicas
  // Shards: replica r has the r-th of `replicas` equal parts of a tensor's elements in their order.
  kReduceScatter,  // (x), replicas=: the replica's shard of the sum, added in the order of replicas
  kShard,          // (state), replicas=: the replica's shard; the result lies within the state
  kGatherShards,   // (shard), replicas= shape=: the whole tensor
};

inline constexpr int kOpCount = static_cast<int>(Op::kGatherShards) + 1;

/// dtype and shape of a value.
struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};

/// How code treats an operator.
enum class OpKind : uint8_t {
  kElementwise,
  kMovement,
  kIndexing,
  kReduction,
  kContraction,
  kComposition,
  kRandom,
  kMicroBatch,
  kCollective,
};

struct OpInfo {
  std::string_view name;  // as in Graph texts: "reduce_sum"
  OpKind kind;
  int min_operands;
  int max_operands;  // -1: any number
  int results;
};

const OpInfo& info(Op op);
inline std::string_view name_of(Op op) { return info(op).name; }
std::optional<Op> op_from_name(std::string_view name);

/// Whether the operator adds to its operand 0, an accumulator, in place.
inline bool accumulates(Op op) { return op == Op::kAccumulate || op == Op::kAccumulateRows; }

using OperandTypes = InlineVector<const TensorType*, 4>;

/// Result types of `op`: the only shape rules of the compiler. Throws Error that states expected
/// and found when operands or attributes do not fit; the caller adds the node's name.
std::vector<TensorType> infer_types(Op op, const OperandTypes& operands,
                                    const Attributes& attributes);

}  // namespace sgtc
