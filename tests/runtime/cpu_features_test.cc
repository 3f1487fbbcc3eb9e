#include "runtime/cpu_features.h"

#include "support/catch.h"

namespace sgtc::runtime {

TEST_CASE("every x86-64 CPU has SSE2") {
  CHECK_FALSE(check_cpu_features({}, "x86-64"));
  CHECK_FALSE(check_cpu_features({"sse2", "cx8", "cmov", "64bit"}, "x86-64"));
}

TEST_CASE("all missing features are named") {
  const MaybeFailure failure = check_cpu_features({"sse2", "avx9000", "amx-next"}, "future");
  REQUIRE(failure);
  CHECK(failure->problem ==
        "this program was compiled for future, and this CPU lacks avx9000, amx-next");
}

TEST_CASE("the check agrees with the compiler's") {
  CHECK(!check_cpu_features({"avx2"}, "") == (__builtin_cpu_supports("avx2") != 0));
  CHECK(!check_cpu_features({"fma"}, "") == (__builtin_cpu_supports("fma") != 0));
  CHECK(!check_cpu_features({"avx512f"}, "") == (__builtin_cpu_supports("avx512f") != 0));
}

}  // namespace sgtc::runtime
