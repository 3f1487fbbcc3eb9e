// Values of the interpreter.
#pragma once

#include <vector>

#include "ir/literal.h"
#include "ir/ops.h"

namespace sgtc {

/// Which numbers the interpreter keeps.
enum class Precision {
  kNative,   // every float value is rounded to its dtype
  kFloat64,  // float values of any dtype are kept in double
};

/// A tensor in row-major order: floats in `reals`, bool and integers in `integers` (u64 as the same
/// 64 bits); the other list is empty.
struct Tensor {
  TensorType type;
  std::vector<double> reals;
  std::vector<int64_t> integers;

  Tensor() = default;
  /// Zeros.
  explicit Tensor(TensorType type);
  explicit Tensor(const Literal& literal);
  /// The given values, converted to the dtype as `Literal::set_double` does.
  Tensor(TensorType type, const std::vector<double>& values);

  bool is_real() const { return is_float(type.dtype); }
  int64_t count() const { return element_count(type.shape); }
  /// Element `i` as a double, whatever the dtype.
  double at(int64_t i) const;
  /// Copies element `from` of `source`, which has the same dtype.
  void copy_element(int64_t to, const Tensor& source, int64_t from);
};

/// `value` rounded to a float dtype; in kFloat64 unchanged.
double round_to(DType dtype, double value, Precision precision);

/// `value` wrapped to the width of an integer dtype, as two's complement arithmetic does.
int64_t wrap_to(DType dtype, int64_t value);

LiteralPtr to_literal(const Tensor& tensor);

}  // namespace sgtc
