#include "schedule/weights_blob.h"

namespace sgtc {

int64_t WeightsBlob::add(const LiteralPtr& literal) {
  const std::span<const std::byte> bytes = literal->bytes();
  const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto [place, is_new] = offsets_.try_emplace(view, size_);
  if (!is_new) return place->second;
  segments_.push_back({size_, literal});
  size_ += (static_cast<int64_t>(view.size()) + kAlignment - 1) / kAlignment * kAlignment;
  return place->second;
}

}  // namespace sgtc
