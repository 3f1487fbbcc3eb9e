#include "loopback.h"

#include <sys/mman.h>
#include <unistd.h>

#include "failure.h"
#include "segment_communicator.h"

namespace sgtc::runtime {

Loopback::Loopback(const std::vector<RankGroup>& groups, int64_t ranks) : layout_(groups, ranks) {
  void* memory = mmap(nullptr, static_cast<size_t>(layout_.bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("memory", "cannot reserve a segment: " + system_error());
  base_ = static_cast<unsigned char*>(memory);
  construct_segment(layout_, base_);
}

Loopback::~Loopback() { munmap(base_, static_cast<size_t>(layout_.bytes)); }

std::unique_ptr<RankCommunicators> Loopback::communicators(int64_t rank, Watch& watch) {
  Bell& bell = reinterpret_cast<Bell*>(base_)[rank];
  const bool spins = layout_.ranks <= sysconf(_SC_NPROCESSORS_ONLN);
  auto communicators = std::make_unique<RankCommunicators>(bell, watch, spins);
  add_segment_communicators(layout_, base_, rank, *communicators);
  return communicators;
}

}  // namespace sgtc::runtime
