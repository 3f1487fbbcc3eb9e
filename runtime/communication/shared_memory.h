// A segment in memory that processes of one host share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rank_communicators.h"
#include "segment.h"

namespace sgtc::runtime {

class SharedMemory {
 public:
  /// Maps the segment `name`, which the one process with `creates` makes, and takes the name away
  /// again once all have it, so that nothing is left behind however they end. All processes that
  /// share it call this with the same layout; `barrier` waits for all of them. Dies with a remedy
  /// if the system has no room for it, or if a stranger holds the name.
  SharedMemory(const SegmentLayout& layout, const std::string& name, bool creates,
               const std::function<void()>& barrier);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  Bell& bell(int64_t rank) const;
  /// Adds the communicators of `rank` over the groups of the layout that it is a member of. This
  /// must outlive them.
  void add_communicators(int64_t rank, RankCommunicators& communicators) const;

 private:
  unsigned char* map(int file) const;
  void create(const std::string& name);
  void open(const std::string& name);

  SegmentLayout layout_;
  unsigned char* base_ = nullptr;
};

}  // namespace sgtc::runtime
