#include "tensor_files.h"

#include <nlohmann/json.hpp>
#include <set>

#include "durable_file.h"
#include "mapped_file.h"

namespace sgtc::runtime {
namespace {

using Json = nlohmann::json;

MaybeFailure read_index(const std::string& path, WeightMap& files) {
  std::string text;
  if (MaybeFailure failure = read_text(path, text)) return failure;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    return Failure{path, "is not an index of safetensors files: it has no weight_map", {}};
  }
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos) {
      return Failure{path, "tensor " + tensor + " has no name of a file beside the index", {}};
    }
    files[tensor] = file.get<std::string>();
  }
  return {};
}

}  // namespace

std::string tensor_index(const WeightMap& files, int64_t total_bytes) {
  const Json json = {{"metadata", {{"total_size", total_bytes}}}, {"weight_map", Json(files)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

MaybeFailure TensorFiles::open(const std::string& path) {
  files_.clear();
  tensors_.clear();
  return path.ends_with(".json") ? open_index(path) : add_file(path);
}

MaybeFailure TensorFiles::add_file(const std::string& path) {
  files_.push_back(std::make_unique<SafetensorsFile>());
  if (MaybeFailure failure = files_.back()->open(path)) return failure;
  const TensorMap& tensors = files_.back()->tensors();
  tensors_.insert(tensors.begin(), tensors.end());
  return {};
}

MaybeFailure TensorFiles::open_index(const std::string& path) {
  WeightMap map;
  if (MaybeFailure failure = read_index(path, map)) return failure;
  std::set<std::string> names;
  for (const auto& [tensor, file] : map) names.insert(file);
  for (const std::string& name : names) {
    if (MaybeFailure failure = add_file(parent_folder(path) + "/" + name)) return failure;
  }
  for (const auto& [tensor, file] : map) {
    if (tensors_.count(tensor) == 0) {
      return Failure{path, "tensor " + tensor + " is not in " + file, "copy the files again"};
    }
  }
  return {};
}

}  // namespace sgtc::runtime
