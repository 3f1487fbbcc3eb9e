#include "runtime/npy.h"

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

std::string file_with(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string text = std::string("\x93NUMPY") + static_cast<char>(version) + '\0';
  text += static_cast<char>(dictionary.size());
  text += static_cast<char>(dictionary.size() >> 8);
  if (version > 1) text += std::string(2, '\0');
  return text + dictionary + data;
}

MaybeFailure parse(const std::string& file, NpyHeader& header) {
  return parse_npy("f.npy", reinterpret_cast<const unsigned char*>(file.data()),
                   static_cast<int64_t>(file.size()), header);
}

// The problem that parsing reports; empty if it works.
std::string problem(const std::string& file) {
  NpyHeader header;
  const MaybeFailure failure = parse(file, header);
  return failure ? failure->problem : "";
}

}  // namespace

TEST_CASE("a header that was written reads back") {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{}, {3}, {2, 3}, {1, 2, 3, 4}, {0, 5}}) {
    const std::string text = npy_header("f32", shape) + std::string(200, '\0');
    NpyHeader header;
    REQUIRE_FALSE(parse(text, header));
    CHECK(header.dtype == "f32");
    CHECK(header.shape == shape);
    CHECK(header.data_offset % 64 == 0);
  }
}

TEST_CASE("format versions 1 to 3 are read") {
  const std::string dictionary = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n";
  for (int version : {1, 2, 3}) {
    NpyHeader header;
    REQUIRE_FALSE(parse(file_with(dictionary, std::string(16, 'x'), version), header));
    CHECK(header.dtype == "i64");
    CHECK(header.shape == std::vector<int64_t>{2});
  }
  CHECK(problem(file_with(dictionary, std::string(16, 'x'), 4)) ==
        "has .npy format version 4, expected 1 to 3");
}

TEST_CASE("what cannot be fed is refused by name") {
  CHECK(problem("hello") == "is not a .npy file");
  CHECK(problem(file_with("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "1234")) ==
        "has element type '>f4', which cannot be fed");
  CHECK(problem(file_with("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }",
                          "12345678")) == "has element type '<c8', which cannot be fed");
  CHECK(problem(file_with("{'descr': '<f4', 'fortran_order': True, 'shape': (1,1), }", "1234")) ==
        "is in Fortran order, expected C order");
  CHECK(problem(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': 3, }", "1234")) ==
        "has no readable shape in its header");
}

TEST_CASE("files that are cut off are refused, wherever it happens") {
  const std::string whole = npy_header("f32", {3, 4}) + std::string(48, 'x');
  NpyHeader header;
  REQUIRE_FALSE(parse(whole, header));
  for (size_t size = 0; size < whole.size(); ++size) CHECK(!problem(whole.substr(0, size)).empty());
  CHECK(problem(whole.substr(0, whole.size() - 1)) ==
        "is cut off: shape [3,4] of f32 needs 48 bytes of data, found 47");
}

TEST_CASE("shapes beyond 2^63 elements are refused") {
  CHECK(problem(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, "
                          "9999999999), }",
                          "1234"))
            .find("is cut off") == 0);
  CHECK(!problem(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': "
                           "(99999999999999999999999,), }",
                           "1234"))
             .empty());
}

}  // namespace sgtc::runtime
