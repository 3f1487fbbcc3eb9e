#include "safetensors.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "element_type.h"

namespace sgtc::runtime {
namespace {

using Json = nlohmann::json;

struct TypeName {
  std::string_view file;
  std::string_view plan;
};

constexpr TypeName kTypeNames[] = {
    {"BOOL", "bool"}, {"I8", "i8"},   {"I16", "i16"}, {"I32", "i32"}, {"I64", "i64"},
    {"U8", "u8"},     {"U16", "u16"}, {"U32", "u32"}, {"U64", "u64"}, {"F16", "f16"},
    {"BF16", "bf16"}, {"F32", "f32"}, {"F64", "f64"},
};

std::string plan_name(std::string_view file_name) {
  for (const TypeName& type : kTypeNames) {
    if (type.file == file_name) return std::string(type.plan);
  }
  return {};
}

std::string file_name(std::string_view plan_name) {
  for (const TypeName& type : kTypeNames) {
    if (type.plan == plan_name) return std::string(type.file);
  }
  return {};
}

// Reads a JSON array of non-negative integers.
bool read_integers(const Json& json, std::vector<int64_t>& values) {
  if (!json.is_array()) return false;
  for (const Json& item : json) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > INT64_MAX) return false;
    values.push_back(item.get<int64_t>());
  }
  return true;
}

// Reads one entry of the header. `data` and `size`: everything behind the header. Returns what is
// wrong with it, empty if nothing is.
std::string read_entry(const Json& entry, const unsigned char* data, int64_t size,
                       TensorView& tensor) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets") || !entry["dtype"].is_string()) {
    return "has no dtype, shape and data_offsets";
  }
  const std::string dtype = entry["dtype"].get<std::string>();
  tensor.dtype = plan_name(dtype);
  if (tensor.dtype.empty()) return "has the unknown element type " + dtype;
  std::vector<int64_t> offsets;
  if (!read_integers(entry["shape"], tensor.shape) ||
      !read_integers(entry["data_offsets"], offsets) || offsets.size() != 2) {
    return "has an unreadable shape or data_offsets";
  }
  if (offsets[0] > offsets[1] || offsets[1] > size) return "lies outside the file";
  tensor.bytes = offsets[1] - offsets[0];
  const int64_t element = size_of_element(tensor.dtype);
  const int64_t count = element_count(tensor.shape);
  if (count < 0 || tensor.bytes / element != count || tensor.bytes % element != 0) {
    return "has " + std::to_string(tensor.bytes) + " bytes, which is not shape " +
           shape_text(tensor.shape) + " of " + tensor.dtype;
  }
  tensor.data = data + offsets[0];
  return {};
}

}  // namespace

MaybeFailure SafetensorsFile::open(const std::string& path) {
  tensors_.clear();
  if (MaybeFailure failure = file_.open(path)) return failure;
  uint64_t length = 0;
  if (file_.size() >= 8) std::memcpy(&length, file_.data(), sizeof length);
  if (file_.size() < 8 || length > static_cast<uint64_t>(file_.size() - 8)) {
    return Failure{path, "is not a safetensors file, or is cut off inside its header", {}};
  }
  const char* text = reinterpret_cast<const char*>(file_.data()) + 8;
  const Json header = Json::parse(text, text + length, nullptr, false);
  if (!header.is_object()) {
    return Failure{path, "is not a safetensors file: its header is not a JSON object", {}};
  }
  const int64_t begin = 8 + static_cast<int64_t>(length);
  for (auto item = header.begin(); item != header.end(); ++item) {
    if (item.key() == "__metadata__") continue;
    TensorView tensor;
    const std::string problem =
        read_entry(item.value(), file_.data() + begin, file_.size() - begin, tensor);
    if (!problem.empty()) {
      return Failure{path, "tensor " + item.key() + " " + problem, "write the file again"};
    }
    tensors_[item.key()] = tensor;
  }
  return {};
}

std::string safetensors_header(const TensorMap& tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", file_name(tensor.dtype)},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + tensor.bytes}}};
    offset += tensor.bytes;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

MaybeFailure write_safetensors(DurableFile& file, const TensorMap& tensors) {
  const std::string header = safetensors_header(tensors);
  if (MaybeFailure failure = file.write(header.data(), static_cast<int64_t>(header.size()))) {
    return failure;
  }
  for (const auto& [name, tensor] : tensors) {
    if (MaybeFailure failure = file.write(tensor.data, tensor.bytes)) return failure;
  }
  return {};
}

}  // namespace sgtc::runtime
