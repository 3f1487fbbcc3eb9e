#include "message.h"

#include <algorithm>
#include <cstring>

namespace sgtc::runtime {

Message::Message(const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    if (part.bytes == 0) continue;
    parts_.push_back(part);
    ends_.push_back(bytes() + part.bytes);
  }
}

Part Message::from(int64_t offset) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), offset);
  const Part& part = parts_[static_cast<size_t>(end - ends_.begin())];
  const int64_t left = *end - offset;
  return {part.data + part.bytes - left, left};
}

void Message::read(int64_t offset, int64_t count, unsigned char* target) const {
  while (count > 0) {
    const Part part = from(offset);
    const int64_t bytes = std::min(part.bytes, count);
    std::memcpy(target, part.data, static_cast<size_t>(bytes));
    target += bytes;
    offset += bytes;
    count -= bytes;
  }
}

void Message::write(int64_t offset, int64_t count, const unsigned char* source) const {
  while (count > 0) {
    const Part part = from(offset);
    const int64_t bytes = std::min(part.bytes, count);
    std::memcpy(part.data, source, static_cast<size_t>(bytes));
    source += bytes;
    offset += bytes;
    count -= bytes;
  }
}

void Message::copy(const Message& source, int64_t offset, int64_t count) const {
  while (count > 0) {
    const Part to = from(offset);
    const Part part = source.from(offset);
    const int64_t bytes = std::min({to.bytes, part.bytes, count});
    if (to.data != part.data) std::memmove(to.data, part.data, static_cast<size_t>(bytes));
    offset += bytes;
    count -= bytes;
  }
}

Message Message::slice(int64_t offset, int64_t count) const {
  std::vector<Part> parts;
  while (count > 0) {
    Part part = from(offset);
    part.bytes = std::min(part.bytes, count);
    parts.push_back(part);
    offset += part.bytes;
    count -= part.bytes;
  }
  return Message(parts);
}

std::vector<Message> cut(const Message& message, int64_t pieces, int64_t element_bytes) {
  const int64_t elements = message.bytes() / element_bytes;
  std::vector<Message> result;
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t begin = elements * i / pieces * element_bytes;
    const int64_t end = elements * (i + 1) / pieces * element_bytes;
    result.push_back(message.slice(begin, end - begin));
  }
  return result;
}

std::vector<Message> cut_each(const std::vector<Part>& parts, int64_t pieces) {
  std::vector<Message> result;
  for (int64_t i = 0; i < pieces; ++i) {
    std::vector<Part> list;
    for (const Part& part : parts) {
      const int64_t bytes = part.bytes / pieces;
      list.push_back({part.data + i * bytes, bytes});
    }
    result.push_back(Message(list));
  }
  return result;
}

}  // namespace sgtc::runtime
