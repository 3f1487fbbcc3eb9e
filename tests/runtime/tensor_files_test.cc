#include "runtime/tensor_files.h"

#include "runtime/temporary_folder.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

void write_tensor(const std::string& path, const std::string& name, float value) {
  DurableFile file;
  REQUIRE_FALSE(file.create(path));
  const unsigned char* data = reinterpret_cast<const unsigned char*>(&value);
  REQUIRE_FALSE(write_safetensors(file, {{name, {"f32", {1}, data, 4}}}));
  REQUIRE_FALSE(file.finish());
}

float value_of(const TensorFiles& files, const std::string& name) {
  return *reinterpret_cast<const float*>(files.tensors().at(name).data);
}

// What is wrong with an index of this text beside the files "a" (tensor u) and "b" (tensor v).
std::string problem(const std::string& index) {
  const TemporaryFolder folder;
  write_tensor(folder / "a", "u", 1);
  write_tensor(folder / "b", "v", 2);
  write_file(folder / "m.safetensors.index.json", index);
  TensorFiles files;
  const MaybeFailure failure = files.open(folder / "m.safetensors.index.json");
  return failure ? failure->problem : "";
}

}  // namespace

TEST_CASE("an index leads to the tensors of all its files") {
  const TemporaryFolder folder;
  write_tensor(folder / "a", "u", 1);
  write_tensor(folder / "b", "v", 2);
  write_file(folder / "m.safetensors.index.json", tensor_index({{"u", "a"}, {"v", "b"}}, 8));
  TensorFiles files;
  REQUIRE_FALSE(files.open(folder / "m.safetensors.index.json"));
  CHECK(files.tensors().size() == 2);
  CHECK(value_of(files, "u") == 1);
  CHECK(value_of(files, "v") == 2);
}

TEST_CASE("a single file needs no index") {
  const TemporaryFolder folder;
  write_tensor(folder / "m.safetensors", "u", 3);
  TensorFiles files;
  REQUIRE_FALSE(files.open(folder / "m.safetensors"));
  CHECK(value_of(files, "u") == 3);
}

TEST_CASE("an index has the form of Hugging Face's") {
  CHECK(tensor_index({{"u", "a"}, {"v", "b"}}, 8) ==
        "{\n  \"metadata\": {\n    \"total_size\": 8\n  },\n"
        "  \"weight_map\": {\n    \"u\": \"a\",\n    \"v\": \"b\"\n  }\n}\n");
}

TEST_CASE("indices that do not fit their files are refused") {
  CHECK(problem("[]") == "is not an index of safetensors files: it has no weight_map");
  CHECK(problem("{\"weight_map\": 3}") ==
        "is not an index of safetensors files: it has no weight_map");
  CHECK(problem("{\"weight_map\": {\"u\": 3}}") ==
        "tensor u has no name of a file beside the index");
  CHECK(problem("{\"weight_map\": {\"u\": \"../a\"}}") ==
        "tensor u has no name of a file beside the index");
  CHECK(problem("{\"weight_map\": {\"u\": \"missing\"}}").find("cannot be opened") == 0);
  CHECK(problem("{\"weight_map\": {\"u\": \"a\", \"v\": \"a\"}}") == "tensor v is not in a");
  CHECK(problem("{\"weight_map\": {\"u\": \"a\", \"v\": \"b\"}}").empty());
}

}  // namespace sgtc::runtime
