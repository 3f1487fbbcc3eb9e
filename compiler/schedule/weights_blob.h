// The initial values that an executable carries, as one run of bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
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
  /// By size and bytes, which are not looked at where they are the same memory.
  struct Order {
    bool operator()(std::string_view a, std::string_view b) const {
      if (a.size() != b.size() || a.data() == b.data()) return a.size() < b.size();
      return a < b;
    }
  };

  std::vector<Segment> segments_;
  std::map<std::string_view, int64_t, Order> offsets_;
  int64_t size_ = 0;
};

}  // namespace sgtc
