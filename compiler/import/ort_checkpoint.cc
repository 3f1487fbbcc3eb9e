// The format is a FlatBuffer (flatbuffer.h) with the tables below; the fields are numbered as in
// ONNX Runtime's schema. Properties of users, the last field of a checkpoint, are not read.
#include "import/ort_checkpoint.h"

#include <algorithm>
#include <set>

#include "import/flatbuffer.h"
#include "import/tensor.h"
#include "support/diagnostics.h"
#include "support/file.h"

namespace sgtc {
namespace {

constexpr const char* kIdentifier = "ODTC";

enum CheckpointField { kVersion, kModuleState, kOptimizerGroups };
enum ModuleField { kTrainedTensors, kFrozenTensors, kIsNominal, kHasExternalData };
enum GroupField { kGroupName, kStep, kInitialLearningRate, kOptimizerStates };
enum StateField { kParameterName, kMoments };
enum TensorField { kName, kDocumentation, kDims, kDataType, kRawData, kTexts, kExternalOffset };

class Reader {
 public:
  explicit Reader(std::span<const std::byte> file)
      : root_(FlatTable::root(file, kIdentifier)), bytes_left_(file.size()) {}

  OrtCheckpoint run() {
    OrtCheckpoint checkpoint;
    const std::optional<FlatTable> module = root_.table(kModuleState);
    if (!module) throw Error("holds no parameters");
    if (module->flag(kIsNominal)) {
      throw Error("only names its parameters; give a checkpoint that holds their values");
    }
    if (module->flag(kHasExternalData)) {
      throw Error("keeps its tensors in another file; save the checkpoint in one file");
    }
    checkpoint.trained = tensors_of(*module, kTrainedTensors);
    checkpoint.frozen = tensors_of(*module, kFrozenTensors);
    read_moments(checkpoint);
    return checkpoint;
  }

 private:
  std::vector<onnx::TensorProto> tensors_of(const FlatTable& module, int field) {
    std::vector<onnx::TensorProto> tensors;
    for (const FlatTable& table : module.tables(field)) {
      tensors.push_back(tensor_of(table));
      if (!names_.insert(tensors.back().name()).second) {
        throw Error("gives the tensor \"" + tensors.back().name() + "\" twice");
      }
    }
    return tensors;
  }

  onnx::TensorProto tensor_of(const FlatTable& table) {
    onnx::TensorProto tensor;
    tensor.set_name(table.text(kName));
    for (int64_t size : table.integers64(kDims)) tensor.add_dims(size);
    tensor.set_data_type(static_cast<int32_t>(table.integer32(kDataType, 0)));
    if (table.integer64(kExternalOffset, -1) >= 0) {
      throw Error("keeps the tensor \"" + tensor.name() + "\" in another file");
    }
    const std::span<const std::byte> bytes = table.bytes(kRawData);
    if (bytes.size() > bytes_left_) throw Error("is damaged: its tensors overlap");
    bytes_left_ -= bytes.size();
    tensor.set_raw_data(bytes.data(), bytes.size());
    return tensor;
  }

  void read_moments(OrtCheckpoint& checkpoint) {
    const std::vector<FlatTable> groups = root_.tables(kOptimizerGroups);
    if (groups.size() > 1) {
      throw Error("has " + std::to_string(groups.size()) +
                  " groups of parameters with an optimizer each; expected one");
    }
    for (const FlatTable& group : groups) {
      checkpoint.steps = group.integer64(kStep, 0);
      for (const FlatTable& state : group.tables(kOptimizerStates)) {
        const std::string name = state.text(kParameterName);
        if (checkpoint.moments.count(name) != 0) {
          throw Error("gives the moments of \"" + name + "\" twice");
        }
        auto& moments = checkpoint.moments[name];
        for (const FlatTable& moment : state.tables(kMoments)) {
          moments.push_back(tensor_of(moment));
        }
      }
    }
  }

  FlatTable root_;
  size_t bytes_left_;  // so that tensors that share bytes cannot fill the memory
  std::set<std::string> names_;
};

bool fits(const onnx::TypeProto::Tensor& declared, const onnx::TensorProto& tensor) {
  if (declared.elem_type() != tensor.data_type()) return false;
  if (!declared.has_shape()) return true;
  const auto& dims = declared.shape().dim();
  return std::equal(dims.begin(), dims.end(), tensor.dims().begin(), tensor.dims().end(),
                    [](const auto& dim, int64_t size) {
                      return !dim.has_dim_value() || dim.dim_value() == size;
                    });
}

void bind(onnx::GraphProto& graph, const onnx::TensorProto& tensor) {
  const std::string object = "tensor \"" + tensor.name() + "\"";
  auto& inputs = *graph.mutable_input();
  const auto input = std::find_if(inputs.begin(), inputs.end(), [&tensor](const auto& candidate) {
    return candidate.name() == tensor.name();
  });
  if (input == inputs.end()) {
    throw Error(object + " is no input of the model; give the checkpoint of this model");
  }
  if (!fits(input->type().tensor_type(), tensor)) {
    throw Error(object + " has the type " + onnx_dtype_name(tensor.data_type()) + " and shape " +
                to_string(Shape(tensor.dims().begin(), tensor.dims().end())) +
                ", which differ from the model's input; give the checkpoint of this model");
  }
  inputs.erase(input);
  *graph.add_initializer() = tensor;
}

}  // namespace

OrtCheckpoint read_ort_checkpoint(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  try {
    OrtCheckpoint checkpoint = Reader(file->bytes()).run();
    checkpoint.path = path;
    return checkpoint;
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
}

void bind_checkpoint(onnx::GraphProto& graph, const OrtCheckpoint& checkpoint) {
  try {
    for (const auto& tensor : checkpoint.trained) bind(graph, tensor);
    for (const auto& tensor : checkpoint.frozen) bind(graph, tensor);
  } catch (const Error& error) {
    throw Error(checkpoint.path + ": " + error.what());
  }
}

}  // namespace sgtc
