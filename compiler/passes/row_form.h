// How operators treat rows: which of them do for a part of a batch what they do for all of it.
//
// The rows of a value are its leading dimensions, whatever their number: [4,256,768] has 1,024 rows
// of 768 elements, and so has [1024,768]. A part of the rows has them in one dimension: [128,768].
#pragma once

#include <optional>
#include <vector>

#include "autodiff/expressions.h"

namespace sgtc {

/// The fewest leading dimensions of `shape` whose sizes multiply to `rows`, or 0.
size_t row_dims(const Shape& shape, int64_t rows);

/// The shape of `part` of the `rows` rows of a value that has them.
Shape shape_of_part(const Shape& shape, int64_t rows, int64_t part);

/// Rows `start` to `start + part` of `x`.
ValueId slice_rows(Expressions& e, ValueId x, int64_t rows, int64_t start, int64_t part);

struct RowForm {
  /// Per operand: rows of the result need these rows of it alone. Of others they need everything.
  std::vector<bool> by_rows;
  /// The result has no rows: it is the sum of what each part of the rows gives.
  bool adds_up = false;
};

/// Nothing for a node that relates rows in another way, or has several results.
std::optional<RowForm> row_form(const Graph& graph, const Node& node, int64_t rows);

/// Appends `node` of `source` for `part` of its `rows` rows to the graph of `e`. Operands that are
/// by rows have the shape of that part, others are whole. The result has the shape of the part, or
/// of the sum; sums of products of bf16 or f16 are f32, so that parts are added up in f32.
ValueId append_part(Expressions& e, const Graph& source, const Node& node, const RowForm& form,
                    int64_t rows, int64_t part, std::vector<ValueId> operands);

}  // namespace sgtc
