// The initial values that an executable carries, as one run of bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/literal.h"

namespace sgtc {

/// Literals at offsets that are multiples of kAlignment; bytes between them are zero. Equal bytes
/// are stored once.
class WeightsBlob {
 public:
  static constexpr int64_t kAlignment = 64;

  struct Segment {
    int64_t offset = 0;
    LiteralPtr literal;
  };

  /// The offset of `literal`, which is appended when it is new.
  int64_t add(const LiteralPtr& literal);

  /// In order of offset.
  const std::vector<Segment>& segments() const { return segments_; }
  /// Bytes of the blob, a multiple of kAlignment.
  int64_t size() const { return size_; }

 private:
  std::vector<Segment> segments_;
  std::map<std::pair<size_t, std::string_view>, int64_t> offsets_;  // by size and bytes
  int64_t size_ = 0;
};

}  // namespace sgtc
