// ONNX tensors as literals.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "import/external_data.h"
#include "ir/literal.h"
#include "ir/ops.h"
#include "onnx/onnx_pb.h"

namespace sgtc {

/// The dtype for a value of onnx::TensorProto::DataType, if the Graph has it.
std::optional<DType> dtype_from_onnx(int32_t data_type);
/// The inverse.
int32_t onnx_from_dtype(DType dtype);
/// "float", "int4"… or the number for a type that ONNX does not know.
std::string onnx_dtype_name(int32_t data_type);

/// dtype and shape of a tensor. Throws Error when the Graph has no such dtype, when a dimension is
/// negative, or when the number of elements does not fit.
TensorType type_of(const onnx::TensorProto& tensor);
TensorType type_of(const onnx::SparseTensorProto& sparse);

/// The elements of `tensor`, which `owner` keeps alive: views of the bytes in memory or in the
/// mapped external file wherever the layout allows it. Throws Error, without naming the tensor,
/// when the number of bytes or values differs from what the shape asks for.
LiteralPtr literal_of(const onnx::TensorProto& tensor, const ExternalData& external,
                      const std::shared_ptr<const void>& owner);

/// A sparse tensor made dense; null when it has no values at all, which declares a tensor whose
/// contents come from elsewhere. Throws Error for indices out of range.
LiteralPtr literal_of(const onnx::SparseTensorProto& sparse, const ExternalData& external,
                      const std::shared_ptr<const void>& owner);

/// Whether all elements are the same number.
bool is_uniform(const Literal& literal);

/// Whether `a` is `b`, of the same dtype, with its last two dimensions exchanged.
bool is_transpose(const Literal& a, const Literal& b);

}  // namespace sgtc
