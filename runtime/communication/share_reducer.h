// Reduces this member's own bytes with what its peers brought.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "element_type.h"
#include "message.h"

namespace sgtc::runtime {

class ShareReducer {
 public:
  ShareReducer(const CommunicationRequest& request, int64_t member, int64_t members)
      : reducer_(find_reducer(request.dtype, request.reduction)),
        element_bytes_(size_of_element(request.dtype)),
        me_(static_cast<size_t>(member)),
        sources_(static_cast<size_t>(members)) {}

  int64_t element_bytes() const { return element_bytes_; }

  /// Reduces `bytes` from `offset` of `input` and what each other member m has for them at
  /// brought(m), in the order of the members, into the same place of `output`.
  template <class Brought>
  void reduce(const Message& input, const Message& output, int64_t offset, int64_t bytes,
              const Brought& brought) {
    for (int64_t done = 0; done < bytes;) {
      const Part in = input.from(offset + done);
      const Part out = output.from(offset + done);
      const int64_t count = std::min({in.bytes, out.bytes, bytes - done});
      for (size_t m = 0; m < sources_.size(); ++m) {
        sources_[m] = m == me_ ? in.data : brought(static_cast<int64_t>(m)) + done;
      }
      reducer_(sources_.data(), static_cast<int64_t>(sources_.size()), count / element_bytes_,
               out.data);
      done += count;
    }
  }

 private:
  Reducer reducer_;
  int64_t element_bytes_;
  size_t me_;
  std::vector<const unsigned char*> sources_;
};

}  // namespace sgtc::runtime
