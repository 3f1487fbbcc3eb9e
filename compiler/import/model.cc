#include "import/model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "import/restore_parameters.h"
#include "import/tie_copies.h"
#include "support/sha256.h"

namespace sgtc {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMaxProtobufBytes = INT32_MAX;
constexpr std::string_view kLfsPointer = "version https://git-lfs";
// Nesting of protobuf messages: a subgraph takes four levels (node, attribute, graph, and lists).
constexpr int kMaxMessageDepth = 4 * kMaxGraphDepth + 16;

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw Error(path + ": " + reason);
}

// Opens the file after the checks that need no parser.
std::ifstream open_checked(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) refuse(path, "no such file; give the path of an ONNX model");
  if (fs::is_directory(status)) {
    refuse(path, "is a folder, expected an ONNX file; give the path of the .onnx file in it");
  }
  const auto size = static_cast<int64_t>(fs::file_size(path, error));
  if (!error && size == 0) refuse(path, "the file is empty, expected an ONNX model");
  if (!error && size > kMaxProtobufBytes) {
    refuse(path, "the file has " + std::to_string(size) + " bytes, protobuf reads at most " +
                     std::to_string(kMaxProtobufBytes) + "; save it with external data");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, std::string("cannot be opened: ") + std::strerror(errno));
  std::string head(kLfsPointer.size(), '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (head == kLfsPointer) {
    refuse(path, "is a Git LFS pointer, not the model itself; run `git lfs pull`");
  }
  file.clear();
  file.seekg(0);
  return file;
}

onnx::ModelProto parse(const std::string& path) {
  std::ifstream file = open_checked(path);
  google::protobuf::io::IstreamInputStream stream(&file);
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(INT32_MAX);
  coded.SetRecursionLimit(kMaxMessageDepth);
  onnx::ModelProto proto;
  if (!proto.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
    refuse(path,
           "is not an ONNX model, or it is truncated or damaged, or nested too deeply; "
           "check it with onnx.checker or export it again");
  }
  return proto;
}

// Counts nodes and checks names and nesting of a graph and of the graphs in its nodes.
class LimitCheck {
 public:
  explicit LimitCheck(const std::string& path) : path_(path) {}

  void graph(const onnx::GraphProto& graph, int depth) {
    if (depth > kMaxGraphDepth) {
      refuse(path_, "graphs are nested more than " + std::to_string(kMaxGraphDepth) + " deep");
    }
    tensors_ += int64_t{graph.initializer_size()} + graph.sparse_initializer_size() +
                graph.input_size() + graph.output_size();
    if (tensors_ > kMaxTensorsOfFile) {
      refuse(path_, "more than " + std::to_string(kMaxTensorsOfFile) +
                        " initializers, inputs and outputs; join small ones");
    }
    for (const auto& tensor : graph.initializer()) name(tensor.name());
    for (const auto& sparse : graph.sparse_initializer()) name(sparse.values().name());
    for (const auto& input : graph.input()) name(input.name());
    for (const auto& output : graph.output()) name(output.name());
    nodes(graph.node(), depth);
  }

  void nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& list, int depth) {
    count_ += list.size();
    if (count_ > kMaxNodes) {
      refuse(path_, "more than " + std::to_string(kMaxNodes) +
                        " nodes; put what repeats into a Loop or a function");
    }
    for (const onnx::NodeProto& node : list) {
      name(node.name());
      for (const auto& input : node.input()) name(input);
      for (const auto& output : node.output()) name(output);
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) graph(attribute.g(), depth + 1);
        for (const auto& nested : attribute.graphs()) graph(nested, depth + 1);
      }
    }
  }

 private:
  void name(const std::string& text) const {
    if (static_cast<int64_t>(text.size()) > kMaxNameLength) {
      refuse(path_, "a name has " + std::to_string(text.size()) + " characters, the limit is " +
                        std::to_string(kMaxNameLength) + ": \"" + text.substr(0, 40) + "…\"");
    }
  }

  const std::string& path_;
  int64_t count_ = 0, tensors_ = 0;
};

void check_limits(const onnx::ModelProto& proto, const std::string& path) {
  LimitCheck check(path);
  check.graph(proto.graph(), 1);
  for (const auto& function : proto.functions()) check.nodes(function.node(), 1);
  for (const auto& info : proto.training_info()) {
    check.graph(info.initialization(), 1);
    check.graph(info.algorithm(), 1);
  }
}

Opsets opsets_of(const onnx::ModelProto& proto, const std::string& path, Diagnostics& diagnostics) {
  Opsets opsets;
  for (const auto& entry : proto.opset_import()) {
    const std::string domain = canonical_domain(entry.domain());
    const auto [found, is_new] = opsets.emplace(domain, entry.version());
    if (is_new || found->second == entry.version()) continue;
    found->second = std::max(found->second, static_cast<int64_t>(entry.version()));
    diagnostics.warning(path, "the opset of domain \"" + domain + "\" is given more than once; " +
                                  std::to_string(found->second) + ", the highest, is used");
  }
  if (opsets.count("") == 0) {
    diagnostics.warning(path, "no opset is given for the standard operators; 1 is assumed");
    opsets[""] = 1;
  }
  return opsets;
}

// What the training information says is trained: what its algorithm updates by a gradient, or, when
// it has no nodes, the keys of update_binding.
std::optional<std::set<std::string>> recorded_keys(const onnx::ModelProto& proto,
                                                   const TrainingAlgorithm& algorithm) {
  std::set<std::string> keys;
  if (algorithm.present()) {
    for (const NamedGradient& named : algorithm.gradients) keys.insert(named.parameter);
    return keys;
  }
  for (const auto& info : proto.training_info()) {
    for (const auto& binding : info.update_binding()) keys.insert(binding.key());
  }
  if (keys.empty()) return std::nullopt;
  return keys;
}

std::set<std::string> names_of(const std::vector<onnx::TensorProto>& tensors) {
  std::set<std::string> names;
  for (const auto& tensor : tensors) names.insert(tensor.name());
  return names;
}

}  // namespace

std::string canonical_domain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

OnnxModel OnnxModel::load(const std::string& path, Diagnostics& diagnostics,
                          const OrtCheckpoint* checkpoint) {
  const fs::path parent = fs::path(path).parent_path();
  return from_proto(parse(path), path, parent.empty() ? "." : parent.string(), diagnostics,
                    checkpoint);
}

OnnxModel OnnxModel::from_proto(onnx::ModelProto proto, const std::string& name,
                                const std::string& folder, Diagnostics& diagnostics,
                                const OrtCheckpoint* checkpoint) {
  if (!proto.has_graph() || (proto.graph().node_size() == 0 && proto.graph().output_size() == 0)) {
    refuse(name, "has no graph, expected an ONNX model; check it with onnx.checker");
  }
  if (proto.ir_version() < 3) {
    refuse(name, "has IR version " + std::to_string(proto.ir_version()) +
                     ", expected 3 or newer; export the model again");
  }
  check_limits(proto, name);
  OnnxModel model;
  model.name_ = name;
  model.opsets_ = opsets_of(proto, name, diagnostics);
  model.external_ = std::make_shared<ExternalData>(folder);
  model.algorithm_ = merge_algorithm(proto);
  model.trained_ = recorded_keys(proto, model.algorithm_);
  if (checkpoint) {
    bind_checkpoint(*proto.mutable_graph(), *checkpoint);
    model.trained_ = names_of(checkpoint->trained);
    model.weights_ = names_of(checkpoint->frozen);
    model.weights_->insert(model.trained_->begin(), model.trained_->end());
  }
  model.given_gradients_ = take_given_gradients(*proto.mutable_graph());
  restore_parameters(*proto.mutable_graph(), *model.external_, name, diagnostics);
  tie_copies(*proto.mutable_graph(), *model.external_, name, diagnostics);
  model.proto_ = std::make_shared<const onnx::ModelProto>(std::move(proto));
  for (const auto& function : model.proto_->functions()) {
    model.functions_[{canonical_domain(function.domain()), function.name()}] = &function;
  }
  return model;
}

std::string OnnxModel::structure_digest() const {
  Sha256 digest;
  for (const onnx::NodeProto& node : proto_->graph().node()) {
    digest.update(node.SerializeAsString());
  }
  for (const onnx::FunctionProto& function : proto_->functions()) {
    digest.update(function.SerializeAsString());
  }
  for (const UpdateBinding& update : algorithm_.updates) {
    digest.update(update.state + "=" + update.value + "\n");
  }
  for (const NamedGradient& named : algorithm_.gradients) {
    digest.update(named.gradient + "=" + algorithm_.loss + "/" + named.parameter + "\n");
  }
  return digest.hex_digest();
}

const onnx::FunctionProto* OnnxModel::function(const std::string& domain,
                                               const std::string& name) const {
  const auto found = functions_.find({domain, name});
  return found == functions_.end() ? nullptr : found->second;
}

}  // namespace sgtc
