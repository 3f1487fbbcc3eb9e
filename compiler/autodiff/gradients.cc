#include "autodiff/gradients.h"

#include <array>
#include <utility>

#include "autodiff/gradient_rules.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

using RuleTable = std::array<GradientRule, kOpCount>;

RuleTable make_table() {
  namespace rule = gradient;
  constexpr std::pair<Op, GradientRule> kRules[] = {
      {Op::kNeg, rule::neg},
      {Op::kAbs, rule::abs},
      {Op::kSign, rule::zero},
      {Op::kExp, rule::exp},
      {Op::kLog, rule::log},
      {Op::kSqrt, rule::sqrt},
      {Op::kRsqrt, rule::rsqrt},
      {Op::kReciprocal, rule::reciprocal},
      {Op::kSin, rule::sin},
      {Op::kCos, rule::cos},
      {Op::kTan, rule::tan},
      {Op::kAsin, rule::asin},
      {Op::kAcos, rule::acos},
      {Op::kAtan, rule::atan},
      {Op::kSinh, rule::sinh},
      {Op::kCosh, rule::cosh},
      {Op::kTanh, rule::tanh},
      {Op::kAsinh, rule::asinh},
      {Op::kAcosh, rule::acosh},
      {Op::kAtanh, rule::atanh},
      {Op::kErf, rule::erf},
      {Op::kSigmoid, rule::sigmoid},
      {Op::kSoftplus, rule::softplus},
      {Op::kFloor, rule::zero},
      {Op::kCeil, rule::zero},
      {Op::kRound, rule::zero},
      {Op::kCast, rule::cast},
      {Op::kAdd, rule::add},
      {Op::kSub, rule::sub},
      {Op::kMul, rule::mul},
      {Op::kDiv, rule::div},
      {Op::kPow, rule::pow},
      {Op::kMod, rule::mod},
      {Op::kFmod, rule::mod},
      {Op::kMax, rule::max},
      {Op::kMin, rule::min},
      {Op::kWhere, rule::where},
      {Op::kReshape, rule::reshape},
      {Op::kTranspose, rule::transpose},
      {Op::kBroadcast, rule::broadcast},
      {Op::kSlice, rule::slice},
      {Op::kPad, rule::pad},
      {Op::kConcat, rule::concat},
      {Op::kGather, rule::gather},
      {Op::kGatherElements, rule::gather_elements},
      {Op::kGatherNd, rule::gather_nd},
      {Op::kPick, rule::pick},
      {Op::kScatterAdd, rule::scatter_add},
      {Op::kScatterElements, rule::scatter_elements},
      {Op::kScatterNd, rule::scatter_nd},
      {Op::kReduceSum, rule::reduce_sum},
      {Op::kReduceMax, rule::reduce_max},
      {Op::kReduceMin, rule::reduce_min},
      {Op::kReduceProd, rule::reduce_prod},
      {Op::kCumSum, rule::cum_sum},
      {Op::kTopK, rule::top_k},
      {Op::kMatMul, rule::matmul},
      {Op::kConv, rule::conv},
      {Op::kConvInputGrad, rule::conv_input_grad},
      {Op::kMaxPool, rule::max_pool},
      {Op::kAveragePool, rule::average_pool},
      {Op::kSoftmax, rule::softmax},
      {Op::kLogSoftmax, rule::log_softmax},
      {Op::kNormalize, rule::normalize},
      {Op::kAttention, rule::attention},
      {Op::kAccumulate, rule::accumulate},
  };
  RuleTable table{};
  for (const auto& [op, rule] : kRules) table[static_cast<size_t>(op)] = rule;
  return table;
}

}  // namespace

Backward::Backward(Graph& graph, const Node& node, std::vector<ValueId> upstream,
                   std::vector<bool> needed)
    : Expressions(graph),
      node_(node),
      upstream_(std::move(upstream)),
      needed_(std::move(needed)),
      gradients_(node.operands.size(), kNone) {}

void Backward::give(size_t operand, ValueId gradient) {
  if (!needs(operand)) return;
  ValueId fitted = sum_to(gradient, shape(x(operand)));
  SGTC_CHECK(dtype(fitted) == dtype(x(operand)),
             "gradient of " + std::string(name_of(node_.op)) + " has another dtype");
  gradients_[operand] = fitted;
}

GradientRule gradient_rule(Op op) {
  static const RuleTable table = make_table();
  return table[static_cast<size_t>(op)];
}

void gradient::zero(Backward&) {}

}  // namespace sgtc
