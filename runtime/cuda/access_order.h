// Which launches have to follow which, by the memory that they touch.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "plan_memory.h"

namespace sgtc::runtime::cuda {

struct Access {
  MemoryRange range;
  bool writes = false;  // it may read as well
};

/// Takes launches in their order and tells of each which earlier ones it has to follow: those that
/// wrote what it touches, and those that read what it writes.
class AccessOrder {
 public:
  /// Appends a launch that is called `launch`. The result is sorted, and leaves out launches that
  /// others of it follow by the same bytes.
  std::vector<size_t> add(size_t launch, const std::vector<Access>& accesses);

 private:
  // Bytes from the map's key to `end` with the same history.
  struct Segment {
    unsigned char* end = nullptr;
    bool written = false;
    size_t writer = 0;
    std::vector<size_t> readers;  // since it was written
  };
  using Segments = std::map<unsigned char*, Segment>;

  // Makes an address the border of two segments, if it lies inside of one.
  void cut(unsigned char* address);
  // Segments for exactly these bytes.
  Segments::iterator cover(const MemoryRange& range);

  Segments segments_;
};

}  // namespace sgtc::runtime::cuda
