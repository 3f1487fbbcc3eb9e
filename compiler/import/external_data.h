// Tensor bytes that an ONNX model keeps in files beside it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "onnx/onnx_pb.h"

namespace sgtc {

/// Maps the data files of one model read-only, each once.
///
/// A location is accepted only beneath the model's folder: relative, without "..", and not leaving
/// the folder through a symbolic link, so that opening a model never reads another file.
class ExternalData {
 public:
  struct Bytes {
    std::span<const std::byte> view;
    std::shared_ptr<const void> owner;
  };

  explicit ExternalData(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The `expected` bytes of `tensor`. Throws Error naming the data file when the location is
  /// refused, the file is missing, or offset and length do not fit the file or the shape.
  Bytes bytes_of(const onnx::TensorProto& tensor, int64_t expected) const;

 private:
  Bytes file(const std::string& location) const;

  std::filesystem::path folder_;
  mutable std::map<std::string, Bytes> files_;
};

}  // namespace sgtc
