// Files and models for tests of what is read from disk.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "import/helper.h"
#include "support/catch.h"

namespace sgtc::testing {

// A folder that disappears with the object.
struct TemporaryFolder {
  std::filesystem::path path;
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "sgtc-import-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& contents) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << contents;
    return (path / name).string();
  }
};

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// y = x + w; w is missing.
inline onnx::ModelProto identity_model() {
  return parse_onnx(
      "<ir_version: 10, opset_import: [\"\" : 21]> "
      "g (float[2] x) => (float[2] y) { y = Add (x, w) }");
}

}  // namespace sgtc::testing
