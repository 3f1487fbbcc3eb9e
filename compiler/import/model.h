// An ONNX file in memory.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "import/external_data.h"
#include "import/given_gradients.h"
#include "import/ort_checkpoint.h"
#include "import/training_info.h"
#include "onnx/onnx_pb.h"
#include "support/diagnostics.h"

namespace sgtc {

/// Limits on what a file may ask for; beyond them a file is taken for damaged or hostile.
inline constexpr int64_t kMaxNodes = 1'000'000;
inline constexpr int64_t kMaxTensorsOfFile = 1'000'000;  // initializers, inputs and outputs
inline constexpr int64_t kMaxNameLength = 4096;
inline constexpr int kMaxGraphDepth = 32;

/// Versions of operator sets by domain; "ai.onnx" is the empty domain.
using Opsets = std::map<std::string, int64_t>;

/// The domain with its two spellings of the standard operators made one.
std::string canonical_domain(const std::string& domain);

/// A parsed model whose structure has been checked: sizes, names, nesting, opset entries.
/// Copies share the file's memory; literals made from it keep it alive.
class OnnxModel {
 public:
  /// Reads `path`. Throws Error when it is missing, a folder, empty, a Git LFS pointer, too large,
  /// or not an ONNX model, and for every limit above. Warns about missing or repeated opsets.
  /// With a checkpoint, inputs that it names become initializers with its values.
  static OnnxModel load(const std::string& path, Diagnostics& diagnostics,
                        const OrtCheckpoint* checkpoint = nullptr);
  /// The same checks on a model that is in memory already; external data is looked up in `folder`.
  static OnnxModel from_proto(onnx::ModelProto proto, const std::string& name,
                              const std::string& folder, Diagnostics& diagnostics,
                              const OrtCheckpoint* checkpoint = nullptr);

  const std::string& name() const { return name_; }
  const onnx::ModelProto& proto() const { return *proto_; }
  const std::shared_ptr<const onnx::ModelProto>& shared_proto() const { return proto_; }
  const ExternalData& external_data() const { return *external_; }
  const Opsets& opsets() const { return opsets_; }
  /// The gradients that the graph computes itself; none for most files.
  const std::vector<NamedGradient>& given_gradients() const { return given_gradients_; }
  /// The training algorithm of the file, which its graph contains.
  const TrainingAlgorithm& algorithm() const { return algorithm_; }
  /// The initializers that are trained, if the files record it.
  const std::optional<std::set<std::string>>& trained() const { return trained_; }
  /// Whether a float initializer is a number of the program, since the checkpoint does not have it.
  bool is_number(const std::string& initializer) const {
    return weights_ && weights_->count(initializer) == 0;
  }
  /// SHA-256 of nodes, functions and training algorithm: what the model computes, whatever its
  /// weights and sizes are.
  std::string structure_digest() const;
  /// The model's own function, or null.
  const onnx::FunctionProto* function(const std::string& domain, const std::string& name) const;

 private:
  std::string name_;
  std::shared_ptr<const onnx::ModelProto> proto_;
  std::shared_ptr<const ExternalData> external_;
  Opsets opsets_;
  std::vector<NamedGradient> given_gradients_;
  TrainingAlgorithm algorithm_;
  std::optional<std::set<std::string>> trained_, weights_;
  std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*> functions_;
};

}  // namespace sgtc
