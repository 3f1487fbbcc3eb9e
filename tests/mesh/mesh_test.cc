#include "mesh/mesh.h"

#include <string>

#include "support/catch.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_mesh(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a product is pipeline times data") {
  CHECK(parse_mesh("2x4") == Mesh{2, 4, 1});
  CHECK(parse_mesh("1x1").ranks() == 1);
}

TEST_CASE("named axes may leave others at one") {
  CHECK(parse_mesh("pp=2,dp=4") == Mesh{2, 4, 1});
  CHECK(parse_mesh("tp=2") == Mesh{1, 1, 2});
  CHECK(parse_mesh("dp=3,tp=2").ranks() == 6);
}

TEST_CASE("the text form parses back") {
  for (const Mesh& mesh : {Mesh{1, 1, 1}, Mesh{4, 2, 1}, Mesh{2, 2, 2}}) {
    CHECK(parse_mesh(to_string(mesh)) == mesh);
  }
}

TEST_CASE("a mesh that makes no sense is refused by name") {
  CHECK(error_of("2x") ==
        "--mesh 2x: expected a positive number, found ''; write PIPELINExDATA "
        "such as 2x4, or named axes such as pp=2,dp=4,tp=1");
  CHECK(error_of("0x4").find("expected a positive number, found '0'") != std::string::npos);
  CHECK(error_of("2").find("expected two sizes") != std::string::npos);
  CHECK(error_of("2x2x2").find("expected two sizes") != std::string::npos);
  CHECK(error_of("pp=2,xx=2").find("unknown axis 'xx'") != std::string::npos);
  CHECK(error_of("pp=2,pp=2").find("axis 'pp' is there twice") != std::string::npos);
  CHECK(error_of("1048576x2").find("more than 1048576 ranks") != std::string::npos);
  CHECK(error_of("pp=2,").find("expected AXIS=SIZE, found ''") != std::string::npos);
}

}  // namespace
}  // namespace sgtc
