// The shape rules behind `infer_types`, by theme, and what they share. Internal to ir/.
#pragma once

#include <string>
#include <vector>

#include "ir/ops.h"

namespace sgtc::shape_rules {

using Types = std::vector<TensorType>;

/// What a rule sees of a node; operand counts and attribute names are checked already.
struct Call {
  Op op;
  const OperandTypes& operands;
  const Attributes& attributes;

  const TensorType& operand(size_t i) const { return *operands[i]; }
  const Shape& shape(size_t i) const { return operands[i]->shape; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(operands[i]->shape.size()); }
  DType dtype(size_t i) const { return operands[i]->dtype; }

  // Attributes; a missing one or one of another type is an Error.
  int64_t integer(const std::string& name) const;
  double real(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const std::vector<int64_t>& integers(const std::string& name) const;
  DType dtype_attribute(const std::string& name) const;
  /// The attribute `axis`, checked to be in [0, rank).
  int64_t axis(int64_t rank) const;
  /// The attribute `axes`, checked to be sorted, unique and in [0, rank).
  const std::vector<int64_t>& axes(int64_t rank) const;
  /// An integer list with `count` elements that are at least `least`.
  const std::vector<int64_t>& integers(const std::string& name, int64_t count, int64_t least) const;

  // Checks of operands.
  void same_dtypes(size_t first, size_t end) const;
  void need_float(size_t i) const;
  void need_number(size_t i) const;
  void need_integer(size_t i) const;
  void need_bool(size_t i) const;
  void need_index(size_t i) const;
  void need_rank(size_t i, int64_t rank) const;
  void need_shape(size_t i, const Shape& expected) const;
};

/// Throws Error "expected …, found …".
[[noreturn]] void mismatch(const std::string& expected, const std::string& found);

/// What a rule returns for one result; a list in braces would copy the shape.
Types one(DType dtype, Shape shape);

using Rule = Types (*)(const Call& call);

// Elementwise; broadcasting.
Types float_unary(const Call& call);
Types number_unary(const Call& call);
Types bool_unary(const Call& call);
Types integer_unary(const Call& call);
Types float_test(const Call& call);
Types cast(const Call& call);
Types number_binary(const Call& call);
Types pow(const Call& call);
Types equality(const Call& call);
Types comparison(const Call& call);
Types bool_binary(const Call& call);
Types integer_binary(const Call& call);
Types where(const Call& call);

// Movement.
Types reshape(const Call& call);
Types transpose(const Call& call);
Types broadcast(const Call& call);
Types slice(const Call& call);
Types pad(const Call& call);
Types concat(const Call& call);
Types place(const Call& call);
Types iota(const Call& call);

// Indexing.
Types gather(const Call& call);
Types gather_elements(const Call& call);
Types gather_nd(const Call& call);
Types pick(const Call& call);
Types scatter_add(const Call& call);
Types scatter_elements(const Call& call);
Types scatter_nd(const Call& call);

// Reductions and scans.
Types reduce(const Call& call);
Types arg_reduce(const Call& call);
Types cum_sum(const Call& call);
Types top_k(const Call& call);

// Contractions, windows.
Types matmul(const Call& call);
Types conv(const Call& call);
Types conv_input_grad(const Call& call);
Types conv_weight_grad(const Call& call);
Types max_pool(const Call& call);
Types max_pool_grad(const Call& call);
Types average_pool(const Call& call);
Types average_pool_grad(const Call& call);

// Compositions, random numbers, micro-batches.
Types softmax(const Call& call);
Types normalize(const Call& call);
Types attention(const Call& call);
Types attention_grad(const Call& call);
Types attention_query_grad(const Call& call);
Types attention_key_grad(const Call& call);
Types random(const Call& call);
Types accumulate(const Call& call);
Types stack_micro_batches(const Call& call);

// Collectives.
Types all_reduce(const Call& call);
Types all_gather(const Call& call);
Types reduce_scatter(const Call& call);
Types shard(const Call& call);
Types gather_shards(const Call& call);

}  // namespace sgtc::shape_rules
