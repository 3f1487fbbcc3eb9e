#include "schedule/weights_blob.h"

#include <sys/mman.h>

#include "support/catch.h"

using namespace sgtc;

TEST_CASE("equal bytes are stored once and offsets are aligned") {
  WeightsBlob blob;
  const std::vector<double> values = {1, 2, 3};
  CHECK(blob.add(make_literal(DType::kFloat32, {3}, values)) == 0);
  CHECK(blob.add(scalar_literal(DType::kFloat32, 4)) == WeightsBlob::kAlignment);
  CHECK(blob.add(make_literal(DType::kFloat32, {3}, values)) == 0);
  CHECK(blob.size() == 2 * WeightsBlob::kAlignment);
}

TEST_CASE("constants lie beyond 2 GB") {
  // Reserved and never read.
  constexpr size_t kBytes = size_t{3} << 30;
  void* memory =
      mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  {
    WeightsBlob blob;
    const auto large = std::make_shared<Literal>(
        DType::kInt8, Shape{static_cast<int64_t>(kBytes)},
        std::span(static_cast<const std::byte*>(memory), kBytes), nullptr);
    CHECK(blob.add(large) == 0);
    CHECK(blob.add(scalar_literal(DType::kFloat32, 4)) == static_cast<int64_t>(kBytes));
    CHECK(blob.size() == static_cast<int64_t>(kBytes) + WeightsBlob::kAlignment);
  }
  munmap(memory, kBytes);
}
