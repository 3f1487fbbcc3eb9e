#include "passes/nest_cost.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sgtc {
namespace {

constexpr double kCyclesPerCacheByte = 0.0625;
constexpr double kScalarPart = 0.25;    // what one number takes of the time of 16
constexpr double kCyclesPerLane = 2.5;  // of an access that is not a plain vector

enum class Access : uint8_t { kPlain, kBroadcast, kScattered };

// How consecutive lanes reach memory.
Access access_of(const LoopNest& nest, const AffineIndex& index) {
  for (const AffineIndex::Computed& term : index.computed) {
    if (nest.expressions[static_cast<size_t>(term.expression)].level == Level::kElement) {
      return Access::kScattered;
    }
  }
  VectorPattern pattern = vector_pattern(nest, index, true);
  if (pattern.kind == VectorPattern::Kind::kScattered) return Access::kScattered;
  if (pattern.stride == 0) return Access::kBroadcast;
  return pattern.stride == 1 ? Access::kPlain : Access::kScattered;
}

double access_cycles(const LoopNest& nest, const AffineIndex& index, DType dtype, bool cached) {
  double bytes = static_cast<double>(kLanes * size_of(dtype));
  double traffic = bytes * (cached ? kCyclesPerCacheByte : kCyclesPerMemoryByte);
  switch (access_of(nest, index)) {
    case Access::kPlain:
      return traffic;
    case Access::kBroadcast:
      return 2;
    case Access::kScattered:
      return traffic + kCyclesPerLane * kLanes;
  }
  return traffic;
}

double expression_cycles(const LoopNest& nest, const Expression& expression, bool cached) {
  switch (expression.kind) {
    case Expression::Kind::kLoad:
      return access_cycles(nest, expression.index, expression.dtype, cached);
    case Expression::Kind::kCompute:
      return compute_cycles(expression.op);
    case Expression::Kind::kRandom:
      return 80;
    case Expression::Kind::kReduce:
      return 12;
    case Expression::Kind::kConstant:
    case Expression::Kind::kGiven:
      return 0;
    default:
      return 2;
  }
}

double store_cycles(const LoopNest& nest, const Store& store) {
  DType dtype = nest.arguments[static_cast<size_t>(store.argument)].dtype;
  return access_cycles(nest, store.index, dtype, false);
}

}  // namespace

double compute_cycles(Op op) {
  switch (op) {
    case Op::kExp:
    case Op::kLog:
    case Op::kSin:
    case Op::kCos:
    case Op::kTanh:
    case Op::kSigmoid:
      return 25;
    case Op::kTan:
    case Op::kAsin:
    case Op::kAcos:
    case Op::kAtan:
    case Op::kSinh:
    case Op::kCosh:
    case Op::kAsinh:
    case Op::kAcosh:
    case Op::kAtanh:
    case Op::kErf:
    case Op::kSoftplus:
      return 40;
    case Op::kPow:
    case Op::kFmod:
    case Op::kMod:
      return 80;
    case Op::kDiv:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kReciprocal:
      return 10;
    default:
      return 2;
  }
}

double estimate_cycles(const LoopNest& nest) {
  BlockGrid grid = block_grid(nest);
  double vectors = static_cast<double>((grid.columns + kLanes - 1) / kLanes);
  double row_vectors = static_cast<double>(grid.rows);
  double element_vectors = row_vectors * vectors;
  if (nest.order == ReductionOrder::kSequential) {
    row_vectors *= vectors;
    element_vectors = row_vectors * static_cast<double>(reduced_extent(nest));
  } else if (nest.order == ReductionOrder::kLanes) {
    for (int32_t i = 0; i < nest.vector_begin; ++i) {
      const Atom& atom = nest.atoms[static_cast<size_t>(i)];
      if (atom.reduced) element_vectors *= static_cast<double>(atom.extent);
    }
  }
  double cycles = kLaunchCycles;
  // Of each argument the first sweep that reads it: later ones find it in a cache.
  std::vector<size_t> first_sweep(nest.arguments.size(), SIZE_MAX);
  const std::vector<std::vector<ExpressionId>> work = element_work(nest);
  for (size_t sweep = 0; sweep < work.size(); ++sweep) {
    for (ExpressionId id : work[sweep]) {
      const Expression& expression = nest.expressions[static_cast<size_t>(id)];
      bool is_cached = false;
      if (expression.kind == Expression::Kind::kLoad) {
        size_t& first = first_sweep[static_cast<size_t>(expression.argument)];
        first = std::min(first, sweep);
        is_cached = first < sweep;
      }
      cycles += element_vectors * expression_cycles(nest, expression, is_cached);
    }
  }
  for (const Expression& expression : nest.expressions) {
    if (expression.level == Level::kElement) continue;
    const bool is_row = expression.level == Level::kRow;
    const bool is_vector = is_row && nest.order == ReductionOrder::kSequential;
    const double times = (is_row ? row_vectors : 1) * (is_vector ? 1 : kScalarPart);
    cycles += times * expression_cycles(nest, expression, false);
  }
  for (const Store& store : nest.stores) {
    bool is_row = nest.expressions[static_cast<size_t>(store.value)].level != Level::kElement &&
                  nest.order != ReductionOrder::kNone;
    cycles += (is_row ? row_vectors : element_vectors) * store_cycles(nest, store);
  }
  return cycles;
}

}  // namespace sgtc
