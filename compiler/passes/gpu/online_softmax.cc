#include "passes/gpu/online_softmax.h"

#include "passes/thread_mapping.h"

namespace sgtc::gpu {
namespace {

class Matcher {
 public:
  explicit Matcher(const LoopNest& nest) : nest_(nest) {}

  /// x, the maximum of x and whether exp may be approximate, if `sum` is a sum of exp(x - max x).
  bool match(const Expression& sum) {
    if (sum.kind != Expression::Kind::kReduce || sum.op != Op::kReduceSum) return false;
    if (sum.operands.size() != 1 || sum.dtype != DType::kFloat32) return false;
    const Expression& exponential = at(sum.operands[0]);
    if (!is_compute(exponential, Op::kExp)) return false;
    const Expression& difference = at(exponential.operands[0]);
    if (!is_compute(difference, Op::kSub)) return false;
    const Expression& maximum = at(difference.operands[1]);
    operands = difference.operands;
    approximate = exponential.integer;
    return maximum.kind == Expression::Kind::kReduce && maximum.op == Op::kReduceMax &&
           maximum.operands[0] == operands[0] && maximum.dtype == DType::kFloat32;
  }

  std::vector<ExpressionId> operands;
  int64_t approximate = 0;

 private:
  const Expression& at(ExpressionId id) const { return nest_.expressions[static_cast<size_t>(id)]; }
  static bool is_compute(const Expression& expression, Op op) {
    return expression.kind == Expression::Kind::kCompute && expression.op == op &&
           expression.dtype == DType::kFloat32;
  }

  const LoopNest& nest_;
};

}  // namespace

void join_softmax_sums(LoopNest& nest) {
  if (nest.order != ReductionOrder::kLanes) return;
  const int64_t turns = map_threads(nest).turns();
  if (turns <= kMostKeptTurns || turns > kChainSteps) return;
  bool any = false;
  for (Expression& expression : nest.expressions) {
    Matcher matcher(nest);
    if (!matcher.match(expression)) continue;
    expression.operands = matcher.operands;
    expression.integer = matcher.approximate;
    any = true;
  }
  if (any) finish_nest(nest, false);
}

}  // namespace sgtc::gpu
