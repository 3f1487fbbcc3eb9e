#include "launch/connection.h"

#include <sys/socket.h>

#include <cerrno>

namespace sgtc::runtime {
namespace {

constexpr size_t kHeader = 4;
constexpr size_t kPiece = 4096;

void append_little_endian(std::string& bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
}

uint64_t read_little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

Writer& Writer::integer(int64_t value) {
  append_little_endian(body_, static_cast<uint64_t>(value), 8);
  return *this;
}

Writer& Writer::text(std::string_view value) {
  integer(static_cast<int64_t>(value.size()));
  body_ += value;
  return *this;
}

std::string_view Reader::take(size_t size) {
  if (size > body_.size()) {
    ok_ = false;
    body_ = {};
    return {};
  }
  const std::string_view taken = body_.substr(0, size);
  body_.remove_prefix(size);
  return taken;
}

int64_t Reader::integer() { return static_cast<int64_t>(read_little_endian(take(8))); }

std::string_view Reader::text() { return take(static_cast<size_t>(integer())); }

Connection::Connection(Socket socket, size_t most_bytes)
    : socket_(std::move(socket)), most_bytes_(most_bytes) {
  input_.reserve(kPiece);
  output_.reserve(kPiece);
}

bool Connection::receive() {
  input_.erase(0, std::exchange(read_, 0));
  for (;;) {
    char piece[kPiece];
    const ssize_t count = recv(descriptor(), piece, sizeof piece, 0);
    if (count > 0) input_.append(piece, static_cast<size_t>(count));
    if (count > 0 && input_.size() <= most_bytes_ + kHeader) continue;
    if (count < 0 && errno == EINTR) continue;
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
  }
}

bool Connection::next(Frame& frame) {
  const std::string_view left = std::string_view(input_).substr(read_);
  if (broken_ || left.size() < kHeader) return false;
  const uint64_t length = read_little_endian(left.substr(0, kHeader));
  broken_ = length == 0 || length > most_bytes_;
  if (broken_ || left.size() < kHeader + length) return false;
  frame.kind = static_cast<unsigned char>(left[kHeader]);
  frame.body = left.substr(kHeader + 1, length - 1);
  read_ += kHeader + length;
  return true;
}

void Connection::send(unsigned char kind, std::string_view body) {
  append_little_endian(output_, body.size() + 1, static_cast<int>(kHeader));
  output_ += static_cast<char>(kind);
  output_ += body;
}

bool Connection::flush() {
  while (has_unsent()) {
    const ssize_t count =
        ::send(descriptor(), output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    sent_ += static_cast<size_t>(count);
  }
  output_.clear();
  sent_ = 0;
  return true;
}

}  // namespace sgtc::runtime
