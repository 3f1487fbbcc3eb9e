#include "passes/nest_body.h"

#include <bit>
#include <utility>

namespace sgtc {

namespace {

class Hash {
 public:
  void add(int64_t number) {
    value_ = (value_ ^ static_cast<uint64_t>(number)) * 0x9e3779b97f4a7c15u;
    value_ ^= value_ >> 32;
  }
  void add(const AffineIndex& index) {
    for (const int64_t coefficient : index.coefficients) add(coefficient);
    for (const AffineIndex::Computed& term : index.computed) {
      add(term.expression);
      add(term.coefficient);
    }
    add(index.constant);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

uint64_t hash_of(const Expression& expression) {
  Hash hash;
  hash.add(static_cast<int64_t>(expression.kind));
  hash.add(static_cast<int64_t>(expression.op));
  hash.add(static_cast<int64_t>(expression.dtype));
  hash.add(expression.argument);
  hash.add(std::bit_cast<int64_t>(expression.real));
  hash.add(expression.integer);
  for (const ExpressionId operand : expression.operands) hash.add(operand);
  hash.add(expression.index);
  for (const Guard& guard : expression.guards) {
    hash.add(guard.index);
    hash.add(guard.low);
    hash.add(guard.high);
  }
  return hash.value();
}

bool are_equal(const Expression& a, const Expression& b) {
  return a.kind == b.kind && a.op == b.op && a.dtype == b.dtype && a.argument == b.argument &&
         std::bit_cast<int64_t>(a.real) == std::bit_cast<int64_t>(b.real) &&
         a.integer == b.integer && a.operands == b.operands && a.index == b.index &&
         a.guards == b.guards;
}

}  // namespace

ExpressionId NestBody::add(Expression expression) {
  const uint64_t hash = hash_of(expression);
  for (size_t id = 0; id < hashes_.size(); ++id) {
    if (hashes_[id] == hash && are_equal(expressions_[id], expression)) {
      return static_cast<ExpressionId>(id);
    }
  }
  hashes_.push_back(hash);
  expressions_.push_back(std::move(expression));
  return static_cast<ExpressionId>(expressions_.size()) - 1;
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
