#include "passes/nest_body.h"

#include <bit>
#include <utility>

namespace sgtc {

void append_key(const AffineIndex& index, std::vector<int64_t>& key) {
  key.insert(key.end(), index.coefficients.begin(), index.coefficients.end());
  key.push_back(static_cast<int64_t>(index.computed.size()));
  for (const AffineIndex::Computed& term : index.computed) {
    key.push_back(term.expression);
    key.push_back(term.coefficient);
  }
  key.push_back(index.constant);
}

void append_key(const std::vector<Guard>& guards, std::vector<int64_t>& key) {
  key.push_back(static_cast<int64_t>(guards.size()));
  for (const Guard& guard : guards) {
    append_key(guard.index, key);
    key.push_back(guard.low);
    key.push_back(guard.high);
  }
}

namespace {

std::vector<int64_t> key_of(const Expression& expression) {
  std::vector<int64_t> key;
  key.reserve(16 + expression.operands.size() + expression.index.coefficients.size());
  key = {static_cast<int64_t>(expression.kind),           static_cast<int64_t>(expression.op),
         static_cast<int64_t>(expression.dtype),          expression.argument,
         std::bit_cast<int64_t>(expression.real),         expression.integer,
         static_cast<int64_t>(expression.operands.size())};
  key.insert(key.end(), expression.operands.begin(), expression.operands.end());
  append_key(expression.index, key);
  append_key(expression.guards, key);
  return key;
}

}  // namespace

ExpressionId NestBody::add(Expression expression) {
  auto [at, inserted] =
      interned_.try_emplace(key_of(expression), static_cast<ExpressionId>(expressions_.size()));
  if (inserted) expressions_.push_back(std::move(expression));
  return at->second;
}

ExpressionId NestBody::constant(DType dtype, double real, int64_t integer) {
  Expression expression;
  expression.kind = Expression::Kind::kConstant;
  expression.dtype = dtype;
  expression.real = is_float(dtype) ? real : 0;
  expression.integer = is_float(dtype) ? 0 : integer;
  return add(std::move(expression));
}

ExpressionId NestBody::compute(Op op, DType dtype, std::vector<ExpressionId> operands) {
  Expression expression;
  expression.kind = Expression::Kind::kCompute;
  expression.op = op;
  expression.dtype = dtype;
  expression.operands = std::move(operands);
  return add(std::move(expression));
}

ExpressionId NestBody::load(ValueId value, AffineIndex index, std::vector<Guard> guards) {
  Expression expression;
  expression.kind = Expression::Kind::kLoad;
  expression.dtype = graph_.dtype(value);
  expression.argument = argument(value);
  expression.index = std::move(index);
  expression.guards = std::move(guards);
  arguments_[static_cast<size_t>(expression.argument)].read = true;
  return add(std::move(expression));
}

int32_t NestBody::written_argument(ValueId value) {
  int32_t number = argument(value);
  arguments_[static_cast<size_t>(number)].written = true;
  return number;
}

int32_t NestBody::argument(ValueId value) {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].value == value) return static_cast<int32_t>(i);
  }
  arguments_.push_back(
      {value, graph_.dtype(value), element_count(graph_.shape(value)), false, false});
  return static_cast<int32_t>(arguments_.size()) - 1;
}

void NestBody::move_to(LoopNest& nest) {
  nest.expressions = std::move(expressions_);
  nest.arguments = std::move(arguments_);
}

}  // namespace sgtc
