#include "runtime/element_type.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "support/catch.h"

namespace sgtc::runtime {

TEST_CASE("every half converts to float and back") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = half_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      CHECK((float_to_half(value) & 0x7c00) == 0x7c00);
      continue;
    }
    REQUIRE(float_to_half(value) == bits);
  }
  CHECK(half_to_float(0x3c00) == 1.0F);
  CHECK(half_to_float(0x0001) == std::ldexp(1.0F, -24));
}

TEST_CASE("floats round to the nearest half, ties to even") {
  CHECK(float_to_half(1 + 0x1p-11F) == 0x3c00);
  CHECK(float_to_half(1 + 0x3p-11F) == 0x3c02);
  CHECK(float_to_half(65519.0F) == 0x7bff);
  CHECK(float_to_half(65520.0F) == 0x7c00);
  CHECK(float_to_half(-0.0F) == 0x8000);
}

TEST_CASE("floats round to the nearest bfloat16, ties to even") {
  CHECK(float_to_bfloat(1.0F) == 0x3f80);
  CHECK(float_to_bfloat(1 + 0x1p-8F) == 0x3f80);
  CHECK(float_to_bfloat(1 + 0x3p-8F) == 0x3f82);
  CHECK(std::isnan(bfloat_to_float(float_to_bfloat(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("conversions are the ones that lose nothing") {
  CHECK(lossless_conversion("i32", "i64") != nullptr);
  CHECK(lossless_conversion("f16", "f32") != nullptr);
  CHECK(lossless_conversion("bool", "bool") != nullptr);
  CHECK(lossless_conversion("i64", "i32") == nullptr);
  CHECK(lossless_conversion("f64", "f32") == nullptr);
  CHECK(lossless_conversion("i32", "f32") == nullptr);
  CHECK(lossless_conversion("nonsense", "nonsense") == nullptr);
  const int32_t source[2] = {-5, 7};
  int64_t target[2] = {};
  lossless_conversion("i32", "i64")(reinterpret_cast<const unsigned char*>(source), 2,
                                    reinterpret_cast<unsigned char*>(target));
  CHECK(target[0] == -5);
  CHECK(target[1] == 7);
}

TEST_CASE("elements are written and read by type") {
  unsigned char data[8];
  for (const char* dtype : {"i8", "i32", "i64", "f16", "bf16", "f32", "f64"}) {
    write_element(dtype, -3, data);
    CHECK(read_element(dtype, data) == -3);
  }
}

TEST_CASE("counts of shapes that are too large are refused") {
  CHECK(element_count({}) == 1);
  CHECK(element_count({2, 0, 3}) == 0);
  CHECK(element_count({int64_t{1} << 40, int64_t{1} << 40}) == -1);
  CHECK(element_count({-1}) == -1);
}

}  // namespace sgtc::runtime
