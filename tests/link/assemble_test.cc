#include "link/assemble.h"

#include <string>

#include "support/catch.h"

namespace sgtc {
namespace {

TEST_CASE("assembly becomes an ELF object that holds its bytes") {
  const std::string object = assemble(
      ".section .rodata\n.globl greeting\ngreeting:\n"
      ".asciz \"a plan\"\n");
  REQUIRE(object.size() > 64);
  CHECK(object.substr(0, 4) ==
        "\x7f"
        "ELF");
  CHECK(object[16] == 1);  // ET_REL
  CHECK(object.find("a plan") != std::string::npos);
  CHECK(object.find("greeting") != std::string::npos);
}

TEST_CASE("equal assembly gives equal objects") {
  const std::string text = ".data\n.quad 1, 2, 3\n";
  CHECK(assemble(text) == assemble(text));
}

}  // namespace
}  // namespace sgtc
