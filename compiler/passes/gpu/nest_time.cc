#include "passes/gpu/nest_time.h"

#include <algorithm>
#include <set>

#include "passes/thread_mapping.h"

namespace sgtc::gpu {
namespace {

constexpr double kLaunch = 2000;  // and the time until memory is busy
constexpr double kBytesPerNanosecond = 4200;
constexpr double kInstructionsPerNanosecond = 24000;  // of threads
// Threads below which memory is not busy.
constexpr double kWantedThreads = 65536;
constexpr double kSector = 32;
// The price of a byte from a cache, in bytes from memory.
constexpr double kCached = 0.3;
// Of a byte that is not next to the last one: neighbours find the rest of the sector in a cache.
constexpr double kStrided = 4;

double instructions_of(const Expression& expression) {
  const bool is_relaxed = expression.integer != 0;
  switch (expression.op) {
    case Op::kExp:
      return is_relaxed ? 2 : 9;
    case Op::kTanh:
      return is_relaxed ? 10 : 16;
    case Op::kSigmoid:
      return is_relaxed ? 4 : 13;
    case Op::kDiv:
    case Op::kReciprocal:
      return is_relaxed ? 2 : 10;
    case Op::kSqrt:
    case Op::kRsqrt:
      return is_relaxed ? 2 : 20;
    case Op::kLog:
    case Op::kErf:
      return 28;
    case Op::kSoftplus:
      return 45;
    case Op::kSin:
    case Op::kCos:
    case Op::kTan:
    case Op::kAsin:
    case Op::kAcos:
    case Op::kAtan:
    case Op::kSinh:
    case Op::kCosh:
    case Op::kAsinh:
    case Op::kAcosh:
    case Op::kAtanh:
      return 90;
    case Op::kPow:
    case Op::kMod:
    case Op::kFmod:
      return 200;
    default:
      return 1;
  }
}

class Estimate {
 public:
  explicit Estimate(const LoopNest& nest) : nest_(nest), mapping_(map_threads(nest)) {
    const double lanes = static_cast<double>(mapping_.lanes);
    elements_ = static_cast<double>(mapping_.items * mapping_.steps) * lanes;
    const double threads = static_cast<double>(mapping_.items * mapping_.slices);
    const bool is_row = nest.order == ReductionOrder::kLanes;
    rows_ = static_cast<double>(mapping_.items) * (is_row ? 1 : lanes);
    row_evaluations_ = nest.order == ReductionOrder::kSequential ? threads * lanes : threads;
    share_of_gpu_ = std::min(1.0, std::max(1.0, threads) / kWantedThreads);
  }

  double nanoseconds() {
    add_sweeps();
    for (const Expression& expression : nest_.expressions) {
      if (expression.level != Level::kElement) add_row_value(expression);
    }
    for (const Store& store : nest_.stores) add_store(store);
    const double time =
        std::max(bytes_ / kBytesPerNanosecond, instructions_ / kInstructionsPerNanosecond);
    return kLaunch + time / share_of_gpu_;
  }

 private:
  void add_sweeps() {
    std::set<ExpressionId> known;
    std::set<int32_t> cached;  // arguments that an earlier sweep has read
    for (const std::vector<ExpressionId>& sweep : element_work(nest_)) {
      std::set<int32_t> read;
      for (ExpressionId id : sweep) {
        if (mapping_.is_kept && !known.insert(id).second) continue;
        const Expression& expression = nest_.expressions[static_cast<size_t>(id)];
        instructions_ += elements_ * element_instructions(expression);
        if (expression.kind != Expression::Kind::kLoad) continue;
        bytes_ += traffic(expression.index, expression.dtype, expression.argument, elements_,
                          cached.count(expression.argument) != 0);
        read.insert(expression.argument);
      }
      cached.insert(read.begin(), read.end());
    }
    for (const Expression& expression : nest_.expressions) {
      if (expression.kind == Expression::Kind::kReduce) instructions_ += elements_ + rows_ * 32;
    }
  }

  double element_instructions(const Expression& expression) const {
    switch (expression.kind) {
      case Expression::Kind::kLoad:
        return is_scattered(expression.index) ? 6 : 1.5;
      case Expression::Kind::kCompute:
        return instructions_of(expression);
      case Expression::Kind::kRandom:
        return 90;
      case Expression::Kind::kChecked:
        return 8;
      case Expression::Kind::kConstant:
      case Expression::Kind::kGiven:
        return 0;
      default:
        return 2;
    }
  }

  void add_row_value(const Expression& expression) {
    const double times = expression.level == Level::kRow ? row_evaluations_ : 1;
    instructions_ += times * element_instructions(expression);
    if (expression.kind != Expression::Kind::kLoad) return;
    bytes_ += traffic(expression.index, expression.dtype, expression.argument, times, false);
  }

  void add_store(const Store& store) {
    const Expression& value = nest_.expressions[static_cast<size_t>(store.value)];
    const bool is_row = value.level != Level::kElement && nest_.order != ReductionOrder::kNone;
    const double count = is_row ? rows_ : elements_;
    const double size = static_cast<double>(size_of(value.dtype));
    bytes_ += count * size * (is_scattered(store.index) ? kStrided : 1);
    instructions_ += count;
  }

  // Bytes of `count` reads of an argument: each element once from memory, the rest from a cache.
  double traffic(const AffineIndex& index, DType dtype, int32_t argument, double count,
                 bool is_cached) const {
    const double size = static_cast<double>(size_of(dtype));
    if (has_element_index(index)) return count * kSector;
    const NestArgument& read = nest_.arguments[static_cast<size_t>(argument)];
    const double once = is_cached ? 0 : std::min(count, static_cast<double>(read.elements));
    const double price = is_scattered(index) ? kStrided : 1;
    return size * (once * price + (count - once) * kCached);
  }

  bool has_element_index(const AffineIndex& index) const {
    return std::any_of(index.computed.begin(), index.computed.end(), [&](const auto& term) {
      return nest_.expressions[static_cast<size_t>(term.expression)].level == Level::kElement;
    });
  }

  bool is_scattered(const AffineIndex& index) const {
    if (has_element_index(index)) return true;
    const VectorPattern pattern = vector_pattern(nest_, index, true, mapping_.lanes);
    return pattern.kind == VectorPattern::Kind::kScattered || pattern.stride > 1 ||
           pattern.stride < 0;
  }

  const LoopNest& nest_;
  const ThreadMapping mapping_;
  double elements_ = 0;  // of a sweep
  double rows_ = 0;
  double row_evaluations_ = 0;  // of a value of row level
  double share_of_gpu_ = 1;
  double bytes_ = 0;
  double instructions_ = 0;
};

}  // namespace

double estimate_nanoseconds(const LoopNest& nest) { return Estimate(nest).nanoseconds(); }

}  // namespace sgtc::gpu
