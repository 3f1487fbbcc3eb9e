// Random changes of ONNX models.
#pragma once

#include <cstdint>
#include <random>

#include "onnx/onnx_pb.h"

namespace sgtc::fuzz {

/// Changes models at random places. Changes know what nodes, attributes, tensors and names are, so
/// that most models stay ones that can be imported; a few change any field to anything.
class ModelMutator {
 public:
  explicit ModelMutator(uint32_t seed) : random_(seed) {}

  /// One to three changes.
  void mutate(onnx::ModelProto& model);
  /// Copies nodes of `other` into `model`, with the initializers that they use.
  void cross(onnx::ModelProto& model, const onnx::ModelProto& other);

 private:
  std::mt19937 random_;
};

}  // namespace sgtc::fuzz
