// Tensor files in the safetensors format, as Hugging Face's tools read and write them: eight bytes
// with the header's length, a JSON header, then the tensors without gaps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "durable_file.h"
#include "failure.h"
#include "mapped_file.h"

namespace sgtc::runtime {

/// One tensor of a file, or one to be written.
struct TensorView {
  std::string dtype;  // by the plan's names
  std::vector<int64_t> shape;
  const unsigned char* data = nullptr;
  int64_t bytes = 0;
};

using TensorMap = std::map<std::string, TensorView>;

/// Some bytes of a tensor.
struct TensorPart {
  std::string name;
  const unsigned char* data = nullptr;
  int64_t offset = 0;  // within the tensor
  int64_t bytes = 0;
};

class SafetensorsFile {
 public:
  /// Maps the file and checks its whole header. Tensors of types that no plan has are errors.
  MaybeFailure open(const std::string& path);
  const TensorMap& tensors() const { return tensors_; }

 private:
  MappedFile file_;
  TensorMap tensors_;
};

/// All that comes before the tensors' bytes, which follow in the order of their names.
std::string safetensors_header(const TensorMap& tensors);
/// Writes a whole file.
MaybeFailure write_safetensors(DurableFile& file, const TensorMap& tensors);

}  // namespace sgtc::runtime
