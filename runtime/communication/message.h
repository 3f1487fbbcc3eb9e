// Parts of memory as one sequence of bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "communicator.h"

namespace sgtc::runtime {

class Message {
 public:
  Message() = default;
  explicit Message(const std::vector<Part>& parts);

  int64_t bytes() const { return ends_.empty() ? 0 : ends_.back(); }

  /// What is contiguous from byte `offset` < bytes() on; never empty.
  Part from(int64_t offset) const;
  /// Copies bytes [offset, offset + count) to or from contiguous memory.
  void read(int64_t offset, int64_t count, unsigned char* target) const;
  void write(int64_t offset, int64_t count, const unsigned char* source) const;
  /// Copies bytes [offset, offset + count) of another message to the same place of this one.
  void copy(const Message& source, int64_t offset, int64_t count) const;

  /// Bytes [offset, offset + count) as a message.
  Message slice(int64_t offset, int64_t count) const;

 private:
  std::vector<Part> parts_;    // without empty ones
  std::vector<int64_t> ends_;  // of each part, in the message
};

/// Cuts a message of whole elements into `pieces` contiguous ones of almost equal size.
std::vector<Message> cut(const Message& message, int64_t pieces, int64_t element_bytes);

/// Cuts each part into `pieces` equal ones; the i-th message joins the i-th pieces of all parts.
std::vector<Message> cut_each(const std::vector<Part>& parts, int64_t pieces);

}  // namespace sgtc::runtime
