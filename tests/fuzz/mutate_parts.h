// Random changes of the parts of a model: operators, attributes, tensors, bytes.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace sgtc::fuzz {

/// Draws from a generator.
class Random {
 public:
  explicit Random(std::mt19937& generator) : generator_(generator) {}

  /// Both ends included.
  int64_t integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator_);
  }
  bool chance(double probability) { return std::bernoulli_distribution(probability)(generator_); }
  /// In [0, size); `size` is positive.
  int index(int size) { return static_cast<int>(integer(0, size - 1)); }
  template <typename T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(index(static_cast<int>(list.size())))];
  }
  /// The size of a dimension: mostly small, at times 0, at times huge.
  int64_t size();
  /// A number that attributes have: small, negative, at times at the ends of 64 bits.
  int64_t number();

 private:
  std::mt19937& generator_;
};

int random_dtype(Random& random);

/// An operator of ONNX that may stand in the node's place: mostly one with as many inputs.
std::string random_operator(Random& random, const onnx::NodeProto& node);
std::string random_unary(Random& random);
std::string random_binary(Random& random);

/// Gives the node an attribute that its operator has, with the default or a random value.
void add_attribute(Random& random, onnx::NodeProto& node);
void mutate_attribute(Random& random, onnx::AttributeProto& attribute);

/// Changes values or shape; the bytes fit the new shape, but for one change in ten.
void mutate_tensor(Random& random, onnx::TensorProto& tensor);

/// Changes one to three bytes of the model's file; a result that is no model any more is dropped.
void mutate_bytes(Random& random, onnx::ModelProto& model);

}  // namespace sgtc::fuzz
