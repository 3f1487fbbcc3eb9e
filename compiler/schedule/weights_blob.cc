#include "schedule/weights_blob.h"

namespace sgtc {

int64_t WeightsBlob::add(const LiteralPtr& literal) {
  const auto [place, is_new] =
      offsets_.try_emplace({literal->bytes().data(), literal->bytes().size()}, size_);
  if (!is_new) return place->second;
  segments_.push_back({size_, literal});
  const auto bytes = static_cast<int64_t>(literal->bytes().size());
  size_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return place->second;
}

}  // namespace sgtc
