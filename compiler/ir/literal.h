// A constant tensor held by the compiler: weights, folded constants, initial values.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ir/shape.h"
#include "support/dtype.h"

namespace sgtc {

/// Row-major elements of one dtype. Immutable once shared; `bytes` may view memory owned by
/// `owner` (an ONNX file in memory, a mapped side file), so large weights are never copied.
class Literal {
 public:
  /// Zero-filled, owned.
  Literal(const Literal&) = delete;
  Literal& operator=(const Literal&) = delete;
  Literal(DType dtype, Shape shape);
  /// A view; `owner` keeps `bytes` alive.
  Literal(DType dtype, Shape shape, std::span<const std::byte> bytes,
          std::shared_ptr<const void> owner);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::span<const std::byte> bytes() const { return view_; }
  int64_t element_count() const;

  /// Only for owned literals.
  std::span<std::byte> mutable_bytes();

  /// Element `index` converted to double (bool as 0 or 1).
  double as_double(int64_t index) const;
  /// Element `index` converted to int64; floats are truncated.
  int64_t as_int(int64_t index) const;
  /// Stores `value` converted to the dtype (round to nearest even; saturating for integers,
  /// NaN to 0; non-zero and NaN to true for bool). Only for owned literals.
  void set_double(int64_t index, double value);
  void set_int(int64_t index, int64_t value);

 private:
  DType dtype_;
  Shape shape_;
  std::vector<std::byte> owned_;
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> view_;
};

using LiteralPtr = std::shared_ptr<const Literal>;

/// `value` truncated to an integer dtype, out of range saturated, NaN to 0; u64 as the same 64
/// bits.
int64_t saturate_to(DType dtype, double value);

/// A literal with the given values, converted to `dtype`.
LiteralPtr make_literal(DType dtype, const Shape& shape, std::span<const double> values);
LiteralPtr make_literal(DType dtype, const Shape& shape, std::span<const int64_t> values);
/// A scalar literal.
LiteralPtr scalar_literal(DType dtype, double value);

}  // namespace sgtc
