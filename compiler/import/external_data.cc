#include "import/external_data.h"

#include <charconv>

#include "import/model.h"
#include "support/diagnostics.h"
#include "support/file.h"

namespace sgtc {
namespace fs = std::filesystem;
namespace {

struct Entry {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1;  // -1: not given
};

int64_t parse_count(const std::string& key, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw Error("external data: expected a number of bytes for \"" + key + "\", found \"" + text +
                "\"");
  }
  return value;
}

Entry entry_of(const onnx::TensorProto& tensor) {
  Entry entry;
  for (const auto& pair : tensor.external_data()) {
    if (pair.key() == "location") entry.location = pair.value();
    if (pair.key() == "offset") entry.offset = parse_count("offset", pair.value());
    if (pair.key() == "length") entry.length = parse_count("length", pair.value());
  }
  if (entry.location.empty()) throw Error("external data: the entry names no file");
  if (static_cast<int64_t>(entry.location.size()) > kMaxNameLength) {
    throw Error("external data: the name of the file has " + std::to_string(entry.location.size()) +
                " characters, the limit is " + std::to_string(kMaxNameLength));
  }
  return entry;
}

// Links are followed. A name that cannot be resolved, as one that is too long or a circle of links,
// is refused here, since what it stands for is not known.
bool is_beneath(const fs::path& folder, const fs::path& file) {
  std::error_code fault;
  const fs::path root = fs::canonical(folder, fault);
  const fs::path target = fault ? fs::path() : fs::weakly_canonical(file, fault);
  if (fault) {
    throw Error("external data file \"" + file.filename().string() + "\": " + fault.message() +
                "; put it beside the model and name it relative to the folder");
  }
  const fs::path relative = target.lexically_relative(root);
  return !relative.empty() && *relative.begin() != "..";
}

void refuse_outside(const fs::path& folder, const std::string& location) {
  const fs::path path(location);
  bool outside = path.is_absolute() || location.find('\0') != std::string::npos;
  for (const fs::path& part : path) outside = outside || part == "..";
  if (outside || !is_beneath(folder, folder / path)) {
    throw Error("external data file \"" + location +
                "\" lies outside the model's folder; put it beside the model and name it "
                "relative to the folder");
  }
}

// Another name of a file may lie anywhere, also where the model must not reach. What is no file is
// refused when it is opened.
void refuse_hard_link(const fs::path& path, const std::string& location) {
  std::error_code missing;
  if (!fs::is_regular_file(path, missing)) return;
  const std::uintmax_t names = fs::hard_link_count(path, missing);
  if (missing || names <= 1) return;
  throw Error(
      "external data file \"" + location + "\" has " + std::to_string(names) +
      " names (hard links), so it may lie outside the model's folder; put a copy beside the "
      "model");
}

std::shared_ptr<const MappedFile> map_file(const fs::path& path) {
  try {
    return MappedFile::open(path.string());
  } catch (const Error& error) {
    throw Error(std::string("external data: ") + error.what() + "; put it back beside the model");
  }
}

}  // namespace

ExternalData::Bytes ExternalData::file(const std::string& location) const {
  const auto found = files_.find(location);
  if (found != files_.end()) return found->second;
  refuse_outside(folder_, location);
  refuse_hard_link(folder_ / location, location);
  const std::shared_ptr<const MappedFile> mapped = map_file(folder_ / location);
  return files_[location] = {mapped->bytes(), mapped};
}

ExternalData::Bytes ExternalData::bytes_of(const onnx::TensorProto& tensor,
                                           int64_t expected) const {
  const Entry entry = entry_of(tensor);
  if (entry.length >= 0 && entry.length != expected) {
    throw Error("external data: expected " + std::to_string(expected) +
                " bytes for its shape, found length " + std::to_string(entry.length));
  }
  const Bytes bytes = file(entry.location);
  const auto size = static_cast<int64_t>(bytes.view.size());
  if (entry.offset > size || expected > size - entry.offset) {
    throw Error("external data file \"" + entry.location + "\" is too short: expected " +
                std::to_string(expected) + " bytes at offset " + std::to_string(entry.offset) +
                ", the file has " + std::to_string(size) + "; copy it again");
  }
  return {bytes.view.subspan(static_cast<size_t>(entry.offset), static_cast<size_t>(expected)),
          bytes.owner};
}

}  // namespace sgtc
