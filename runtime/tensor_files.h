// Tensors that are spread over several safetensors files, with an index as Hugging Face's tools
// read and write it:
//
//   {"metadata": {"total_size": BYTES}, "weight_map": {TENSOR: FILE, …}}
//
// The files lie beside the index, which is called NAME.safetensors.index.json.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "failure.h"
#include "safetensors.h"

namespace sgtc::runtime {

/// Which file has each tensor.
using WeightMap = std::map<std::string, std::string>;

/// The text of an index over tensors of `total_bytes` in all.
std::string tensor_index(const WeightMap& files, int64_t total_bytes);

class TensorFiles {
 public:
  /// Maps a safetensors file, or with the path of an index (*.json) all the files that it names.
  /// Every tensor of the index has to be in its file.
  MaybeFailure open(const std::string& path);
  const TensorMap& tensors() const { return tensors_; }

 private:
  MaybeFailure add_file(const std::string& path);
  MaybeFailure open_index(const std::string& path);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  TensorMap tensors_;
};

}  // namespace sgtc::runtime
