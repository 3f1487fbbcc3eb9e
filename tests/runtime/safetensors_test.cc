#include "runtime/safetensors.h"

#include "runtime/temporary_folder.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

std::string with_header(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

std::string problem(const std::string& contents) {
  const TemporaryFolder folder;
  write_file(folder / "f.safetensors", contents);
  SafetensorsFile file;
  const MaybeFailure failure = file.open(folder / "f.safetensors");
  return failure ? failure->problem : "";
}

}  // namespace

TEST_CASE("tensors that were written read back") {
  const TemporaryFolder folder;
  const std::vector<float> w = {1, 2, 3, 4, 5, 6};
  const std::vector<double> s = {7};
  const auto view = [](const auto& values) {
    return reinterpret_cast<const unsigned char*>(values.data());
  };
  DurableFile output;
  REQUIRE_FALSE(output.create(folder / "m.safetensors"));
  REQUIRE_FALSE(write_safetensors(output, {{"w", {"f32", {2, 3}, view(w), 24}},
                                           {"a.scalar", {"f64", {}, view(s), 8}},
                                           {"none", {"f32", {0, 4}, nullptr, 0}}}));
  REQUIRE_FALSE(output.finish());

  SafetensorsFile file;
  REQUIRE_FALSE(file.open(folder / "m.safetensors"));
  REQUIRE(file.tensors().size() == 3);
  const TensorView& tensor = file.tensors().at("w");
  CHECK(tensor.dtype == "f32");
  CHECK(tensor.shape == std::vector<int64_t>{2, 3});
  CHECK(std::string(reinterpret_cast<const char*>(tensor.data), 24) == bytes_of(w));
  CHECK(file.tensors().at("a.scalar").shape.empty());
  const std::string text = read_file(folder / "m.safetensors");
  CHECK(static_cast<unsigned char>(text[0]) % 8 == 0);
  CHECK(text.find("\"__metadata__\":{\"format\":\"pt\"}") != std::string::npos);
}

TEST_CASE("damaged tensor files are refused") {
  CHECK(problem("") == "is not a safetensors file, or is cut off inside its header");
  CHECK(problem(std::string(8, '\xff') + "{}") ==
        "is not a safetensors file, or is cut off inside its header");
  CHECK(problem(with_header("[]", "")).find("its header is not a JSON object") !=
        std::string::npos);
  CHECK(problem(with_header("{\"w\":", "")).find("not a JSON object") != std::string::npos);
  const auto entry = [](const std::string& text, const std::string& data = "12345678") {
    return problem(with_header("{\"w\":" + text + "}", data));
  };
  CHECK(entry("3") == "tensor w has no dtype, shape and data_offsets");
  CHECK(entry(R"({"dtype":"Q7","shape":[],"data_offsets":[0,4]})") ==
        "tensor w has the unknown element type Q7");
  CHECK(entry(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})") ==
        "tensor w has an unreadable shape or data_offsets");
  CHECK(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})") ==
        "tensor w lies outside the file");
  CHECK(entry(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})") ==
        "tensor w has 8 bytes, which is not shape [3] of f32");
  CHECK(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})").empty());
}

}  // namespace sgtc::runtime
