// The own declarations of NCCL's interface, beside those of nccl.h where that is found.
#include "cuda/nccl_functions.h"

#ifdef SGTC_HAS_NCCL_HEADER

#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "support/catch.h"

namespace sgtc::runtime::cuda {
namespace {

// Arguments and results are passed alike if they are of one kind and size.
template <typename Own, typename Theirs>
constexpr bool same_kind =
    sizeof(Own) == sizeof(Theirs) && std::is_pointer_v<Own> == std::is_pointer_v<Theirs> &&
    std::is_class_v<Own> == std::is_class_v<Theirs>;

template <typename OwnResult, typename... Own, typename Result, typename... Theirs>
constexpr bool agree(OwnResult (*)(Own...), Result (*)(Theirs...)) {
  if constexpr (sizeof...(Own) == sizeof...(Theirs)) {
    return same_kind<OwnResult, Result> && (same_kind<Own, Theirs> && ...);
  } else {
    return false;
  }
}

}  // namespace

TEST_CASE("functions of NCCL are declared as in nccl.h") {
  const NcclFunctions own;
#define SGTC_CHECK_AGREES(result, name, parameters) \
  CHECK(agree(decltype(own.name){}, static_cast<decltype(&::name)>(nullptr)));
  SGTC_NCCL_FUNCTIONS(SGTC_CHECK_AGREES)
#undef SGTC_CHECK_AGREES
}

TEST_CASE("structures of NCCL begin as in nccl.h") {
  STATIC_REQUIRE(sizeof(NcclId) == sizeof(ncclUniqueId));
  STATIC_REQUIRE(sizeof(NcclConfiguration) <= sizeof(ncclConfig_t));
  STATIC_REQUIRE(offsetof(NcclConfiguration, magic) == offsetof(ncclConfig_t, magic));
  STATIC_REQUIRE(offsetof(NcclConfiguration, version) == offsetof(ncclConfig_t, version));
  STATIC_REQUIRE(offsetof(NcclConfiguration, blocking) == offsetof(ncclConfig_t, blocking));
  STATIC_REQUIRE(offsetof(NcclConfiguration, cluster) == offsetof(ncclConfig_t, cgaClusterSize));
  STATIC_REQUIRE(offsetof(NcclConfiguration, least_blocks) == offsetof(ncclConfig_t, minCTAs));
  STATIC_REQUIRE(offsetof(NcclConfiguration, most_blocks) == offsetof(ncclConfig_t, maxCTAs));
  STATIC_REQUIRE(offsetof(NcclConfiguration, network) == offsetof(ncclConfig_t, netName));
  STATIC_REQUIRE(offsetof(NcclConfiguration, shares_split) == offsetof(ncclConfig_t, splitShare));
  const NcclConfiguration own;
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  CHECK(own.magic == theirs.magic);
  CHECK(own.version == NCCL_VERSION(2, 18, 0));
  CHECK(own.blocking == theirs.blocking);
  CHECK(own.network == theirs.netName);
}

TEST_CASE("constants of NCCL are those of nccl.h") {
  CHECK(kNcclUndefined == NCCL_CONFIG_UNDEF_INT);
  CHECK(kNcclSuccess == ncclSuccess);
  CHECK(kNcclInProgress == ncclInProgress);
  CHECK(kNcclInt8 == ncclInt8);
  CHECK(kNcclUInt8 == ncclUint8);
  CHECK(kNcclInt32 == ncclInt32);
  CHECK(kNcclUInt32 == ncclUint32);
  CHECK(kNcclInt64 == ncclInt64);
  CHECK(kNcclUInt64 == ncclUint64);
  CHECK(kNcclFloat16 == ncclFloat16);
  CHECK(kNcclFloat32 == ncclFloat32);
  CHECK(kNcclFloat64 == ncclFloat64);
  CHECK(kNcclBFloat16 == ncclBfloat16);
  CHECK(kNcclSum == ncclSum);
  CHECK(kNcclMax == ncclMax);
}

}  // namespace sgtc::runtime::cuda

#endif
