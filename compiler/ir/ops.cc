#include "ir/ops.h"

#include <array>
#include <map>

#include "ir/limits.h"
#include "ir/shape_rules.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

namespace rules = shape_rules;

struct Entry {
  OpInfo info;
  std::string_view attributes;  // names that it may have, each between spaces
  rules::Rule rule;
};

constexpr OpKind kElement = OpKind::kElementwise;
constexpr OpKind kMove = OpKind::kMovement;
constexpr OpKind kIndex = OpKind::kIndexing;
constexpr OpKind kReduce = OpKind::kReduction;
constexpr OpKind kContract = OpKind::kContraction;
constexpr OpKind kCompose = OpKind::kComposition;

constexpr Entry unary(std::string_view name, rules::Rule rule, std::string_view attributes = "") {
  return {{name, kElement, 1, 1, 1}, attributes, rule};
}

constexpr Entry binary(std::string_view name, rules::Rule rule, std::string_view attributes = "") {
  return {{name, kElement, 2, 2, 1}, attributes, rule};
}

constexpr std::string_view kConvAttributes = " strides pads dilations groups result ";
// 1 where a GPU may use an approximation (passes/relax_functions.h).
constexpr std::string_view kRelaxed = " approximate ";
constexpr std::string_view kPoolAttributes = " kernel strides pads dilations output ";

// Attributes that may be left out: is_inf's are then 1, top_k's is 1, the others 0.
constexpr std::string_view kFlags =
    " positive negative select_last exclusive reverse largest transpose_a transpose_b"
    " count_include_pad causal approximate ";

// In the order of the enumeration.
const std::array<Entry, kOpCount> kTable = {{
    unary("neg", rules::number_unary),
    unary("abs", rules::number_unary),
    unary("sign", rules::number_unary),
    unary("exp", rules::float_unary, kRelaxed),
    unary("log", rules::float_unary),
    unary("sqrt", rules::float_unary, kRelaxed),
    unary("rsqrt", rules::float_unary, kRelaxed),
    unary("reciprocal", rules::float_unary, kRelaxed),
    unary("sin", rules::float_unary),
    unary("cos", rules::float_unary),
    unary("tan", rules::float_unary),
    unary("asin", rules::float_unary),
    unary("acos", rules::float_unary),
    unary("atan", rules::float_unary),
    unary("sinh", rules::float_unary),
    unary("cosh", rules::float_unary),
    unary("tanh", rules::float_unary, kRelaxed),
    unary("asinh", rules::float_unary),
    unary("acosh", rules::float_unary),
    unary("atanh", rules::float_unary),
    unary("erf", rules::float_unary),
    unary("sigmoid", rules::float_unary, kRelaxed),
    unary("softplus", rules::float_unary),
    unary("floor", rules::float_unary),
    unary("ceil", rules::float_unary),
    unary("round", rules::float_unary),
    unary("logical_not", rules::bool_unary),
    unary("bit_not", rules::integer_unary),
    unary("is_nan", rules::float_test),
    unary("is_inf", rules::float_test, " positive negative "),
    unary("cast", rules::cast, " to "),

    binary("add", rules::number_binary),
    binary("sub", rules::number_binary),
    binary("mul", rules::number_binary),
    binary("div", rules::number_binary, kRelaxed),
    binary("pow", rules::pow),
    binary("mod", rules::number_binary),
    binary("fmod", rules::number_binary),
    binary("max", rules::number_binary),
    binary("min", rules::number_binary),
    binary("equal", rules::equality),
    binary("not_equal", rules::equality),
    binary("less", rules::comparison),
    binary("less_equal", rules::comparison),
    binary("greater", rules::comparison),
    binary("greater_equal", rules::comparison),
    binary("logical_and", rules::bool_binary),
    binary("logical_or", rules::bool_binary),
    binary("logical_xor", rules::bool_binary),
    binary("bit_and", rules::integer_binary),
    binary("bit_or", rules::integer_binary),
    binary("bit_xor", rules::integer_binary),
    binary("shift_left", rules::integer_binary),
    binary("shift_right", rules::integer_binary),
    {{"where", kElement, 3, 3, 1}, "", rules::where},

    {{"reshape", kMove, 1, 1, 1}, " shape ", rules::reshape},
    {{"transpose", kMove, 1, 1, 1}, " perm ", rules::transpose},
    {{"broadcast", kMove, 1, 1, 1}, " shape ", rules::broadcast},
    {{"slice", kMove, 1, 1, 1}, " starts sizes steps ", rules::slice},
    {{"pad", kMove, 2, 2, 1}, " low high ", rules::pad},
    {{"concat", kMove, 1, -1, 1}, " axis ", rules::concat},
    {{"place", kMove, 1, 2, 1}, " shape starts ", rules::place},
    {{"iota", kMove, 0, 0, 1}, " shape axis dtype ", rules::iota},

    {{"gather", kIndex, 2, 2, 1}, " axis padding ", rules::gather},
    {{"gather_elements", kIndex, 2, 2, 1}, " axis ", rules::gather_elements},
    {{"gather_nd", kIndex, 2, 2, 1}, " batch_dims ", rules::gather_nd},
    {{"pick", kIndex, 2, 2, 1}, " axis ", rules::pick},
    {{"scatter_add", kIndex, 3, 3, 1}, " axis ", rules::scatter_add},
    {{"scatter_elements", kIndex, 3, 3, 1}, " axis reduction ", rules::scatter_elements},
    {{"scatter_nd", kIndex, 3, 3, 1}, " reduction ", rules::scatter_nd},

    {{"reduce_sum", kReduce, 1, 1, 1}, " axes ", rules::reduce},
    {{"reduce_max", kReduce, 1, 1, 1}, " axes ", rules::reduce},
    {{"reduce_min", kReduce, 1, 1, 1}, " axes ", rules::reduce},
    {{"reduce_prod", kReduce, 1, 1, 1}, " axes ", rules::reduce},
    {{"arg_max", kReduce, 1, 1, 1}, " axis select_last ", rules::arg_reduce},
    {{"arg_min", kReduce, 1, 1, 1}, " axis select_last ", rules::arg_reduce},
    {{"cum_sum", kReduce, 1, 1, 1}, " axis exclusive reverse ", rules::cum_sum},
    {{"top_k", kReduce, 1, 1, 2}, " axis k largest ", rules::top_k},

    {{"matmul", kContract, 2, 2, 1},
     " transpose_a transpose_b packed_columns result ",
     rules::matmul},
    {{"conv", kContract, 2, 2, 1}, kConvAttributes, rules::conv},
    {{"conv_input_grad", kContract, 2, 2, 1},
     " strides pads dilations groups input result ",
     rules::conv_input_grad},
    {{"conv_weight_grad", kContract, 2, 2, 1},
     " strides pads dilations groups kernel result ",
     rules::conv_weight_grad},
    {{"max_pool", kContract, 1, 1, 1}, kPoolAttributes, rules::max_pool},
    {{"max_pool_grad", kContract, 2, 2, 1}, kPoolAttributes, rules::max_pool_grad},
    {{"average_pool", kContract, 1, 1, 1},
     " kernel strides pads dilations output count_include_pad ",
     rules::average_pool},
    {{"average_pool_grad", kContract, 1, 1, 1},
     " kernel strides pads dilations output count_include_pad input ",
     rules::average_pool_grad},

    {{"softmax", kCompose, 1, 1, 1}, " axis ", rules::softmax},
    {{"log_softmax", kCompose, 1, 1, 1}, " axis ", rules::softmax},
    {{"normalize", kCompose, 1, 1, 3}, " axes epsilon ", rules::normalize},
    {{"attention", kCompose, 3, 4, 3}, " scale causal zero_empty ", rules::attention},
    {{"attention_grad", kCompose, 7, 8, 3}, " scale causal zero_empty ", rules::attention_grad},
    {{"attention_query_grad", kCompose, 7, 8, 2},
     " scale causal zero_empty ",
     rules::attention_query_grad},
    {{"attention_key_grad", kCompose, 5, 6, 2},
     " scale causal zero_empty ",
     rules::attention_key_grad},

    {{"random_uniform", OpKind::kRandom, 2, 2, 1}, " shape stream ", rules::random},
    {{"random_normal", OpKind::kRandom, 2, 2, 1}, " shape stream ", rules::random},

    {{"accumulate", OpKind::kMicroBatch, 2, 2, 1}, "", rules::accumulate},
    {{"accumulate_rows", kIndex, 3, 3, 1}, " axis ", rules::scatter_add},
    {{"stack_micro_batches", OpKind::kMicroBatch, 1, 1, 1},
     " micro_batches ",
     rules::stack_micro_batches},

    {{"all_reduce", OpKind::kCollective, 1, 1, 1}, "", rules::all_reduce},
    {{"all_gather", OpKind::kCollective, 1, 1, 1}, "", rules::all_gather},
    {{"reduce_scatter", OpKind::kCollective, 1, 1, 1}, " replicas ", rules::reduce_scatter},
    {{"shard", OpKind::kCollective, 1, 1, 1}, " replicas ", rules::shard},
    {{"gather_shards", OpKind::kCollective, 1, 1, 1}, " replicas shape ", rules::gather_shards},
}};

const Entry& entry(Op op) { return kTable[static_cast<size_t>(op)]; }

void check_operand_count(const OpInfo& info, size_t count) {
  const auto found = static_cast<int>(count);
  if (found >= info.min_operands && (info.max_operands < 0 || found <= info.max_operands)) return;
  std::string expected = std::to_string(info.min_operands);
  if (info.max_operands < 0) {
    expected += " or more";
  } else if (info.max_operands != info.min_operands) {
    expected += " to " + std::to_string(info.max_operands);
  }
  rules::mismatch(expected + " operands", std::to_string(found));
}

// `names` has a blank before and behind each name.
bool is_among(std::string_view names, std::string_view name) {
  for (size_t at = names.find(name, 1); at < names.size(); at = names.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (names[at - 1] == ' ' && end < names.size() && names[end] == ' ') return true;
  }
  return false;
}

void check_attribute_names(const Entry& entry, const Attributes& attributes) {
  for (const auto& [name, value] : attributes.map()) {
    if (!is_among(entry.attributes, name)) {
      rules::mismatch(entry.attributes.empty() ? "no attributes"
                                               : "attributes among" + std::string(entry.attributes),
                      name);
    }
    const int64_t* flag = std::get_if<int64_t>(&value);
    if (is_among(kFlags, name) && (flag == nullptr || *flag < 0 || *flag > 1)) {
      rules::mismatch("0 or 1 as attribute " + name, "another value");
    }
  }
}

}  // namespace

const OpInfo& info(Op op) { return entry(op).info; }

std::optional<Op> op_from_name(std::string_view name) {
  static const std::map<std::string_view, Op> by_name = [] {
    std::map<std::string_view, Op> map;
    for (int i = 0; i < kOpCount; ++i) map[kTable[static_cast<size_t>(i)].info.name] = Op(i);
    return map;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? std::nullopt : std::optional<Op>(found->second);
}

std::vector<TensorType> infer_types(Op op, const OperandTypes& operands,
                                    const Attributes& attributes) {
  const Entry& e = entry(op);
  try {
    check_operand_count(e.info, operands.size());
    check_attribute_names(e, attributes);
    std::vector<TensorType> results = e.rule({op, operands, attributes});
    for (const TensorType& result : results) check_size(result);
    return results;
  } catch (const Error& error) {
    throw Error(std::string(e.info.name) + ": " + error.what());
  }
}

}  // namespace sgtc
