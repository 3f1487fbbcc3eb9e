// Send and receive: each operation is a range of the bytes that ever go through its channel.
#include <algorithm>

#include "message.h"
#include "segment_parts.h"

namespace sgtc::runtime {
namespace {

// The receiver starts on a message when this much of it is there.
constexpr int64_t kGrain = 64 << 10;

class Transfer : public Operation {
 public:
  Transfer(SegmentChannel& channel, const std::vector<Part>& parts)
      : channel_(channel), message_(parts) {}

  void start() override {
    begin_ = channel_.issued;
    channel_.issued += message_.bytes();
  }

 protected:
  int64_t end() const { return begin_ + message_.bytes(); }
  // Bytes that can be moved at once when `available` are, from position `at` of the channel.
  int64_t step(int64_t at, int64_t available) const {
    const int64_t contiguous = channel_.capacity - at % channel_.capacity;
    return std::min({available, contiguous, end() - at, kGrain});
  }
  unsigned char* ring_at(int64_t at) const { return channel_.ring + at % channel_.capacity; }

  SegmentChannel& channel_;
  Message message_;
  int64_t begin_ = 0;
};

class Send : public Transfer {
 public:
  using Transfer::Transfer;

  bool advance() override {
    std::atomic<int64_t>& written = channel_.counters->written;
    int64_t at = written.load(std::memory_order_relaxed);
    if (at < begin_) return false;
    while (at < end()) {
      const int64_t read = channel_.counters->read.load(std::memory_order_acquire);
      const int64_t bytes = step(at, read + channel_.capacity - at);
      if (bytes == 0) return false;
      message_.read(at - begin_, bytes, ring_at(at));
      at += bytes;
      written.store(at, std::memory_order_release);
      channel_.peer->ring();
    }
    return true;
  }
};

class Receive : public Transfer {
 public:
  using Transfer::Transfer;

  bool advance() override {
    std::atomic<int64_t>& read = channel_.counters->read;
    int64_t at = read.load(std::memory_order_relaxed);
    if (at < begin_) return false;
    while (at < end()) {
      const int64_t written = channel_.counters->written.load(std::memory_order_acquire);
      const int64_t bytes = step(at, written - at);
      if (bytes == 0) return false;
      message_.write(at - begin_, bytes, ring_at(at));
      at += bytes;
      read.store(at, std::memory_order_release);
      channel_.peer->ring();
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<Operation> make_transfer(SegmentChannel& channel,
                                         const CommunicationRequest& request) {
  if (request.kind == CommunicationKind::send) {
    return std::make_unique<Send>(channel, request.inputs);
  }
  return std::make_unique<Receive>(channel, request.outputs);
}

}  // namespace sgtc::runtime
