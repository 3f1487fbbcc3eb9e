// Messages over a stream socket, without waiting.
//
// A frame is a little-endian uint32 length of what follows, one byte of kind, and a body. Bodies
// are written by Writer and read by Reader: little-endian integers, texts behind their length.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launch/socket.h"

namespace sgtc::runtime {

class Writer {
 public:
  Writer& integer(int64_t value);
  Writer& text(std::string_view value);
  void clear() { body_.clear(); }
  const std::string& body() const { return body_; }

 private:
  std::string body_;
};

/// Reads what a Writer wrote. After the first value that is not there, `ok` is false and all values
/// are 0 or empty.
class Reader {
 public:
  explicit Reader(std::string_view body) : body_(body) {}
  int64_t integer();
  std::string_view text();
  bool ok() const { return ok_; }
  /// True if everything was read and nothing is left.
  bool complete() const { return ok_ && body_.empty(); }

 private:
  std::string_view take(size_t size);

  std::string_view body_;
  bool ok_ = true;
};

struct Frame {
  unsigned char kind = 0;
  std::string_view body;
};

/// One end of a connection. Buffers grow to the largest frame and are then reused.
class Connection {
 public:
  Connection() = default;
  /// Frames that are longer than `most_bytes` break the connection.
  Connection(Socket socket, size_t most_bytes);

  int descriptor() const { return socket_.descriptor(); }
  bool is_open() const { return socket_.is_open(); }
  void close() { socket_.close(); }
  void set_limit(size_t most_bytes) { most_bytes_ = most_bytes; }

  /// Takes in what has arrived. False if the connection has ended or broken; frames that came
  /// before can still be read.
  bool receive();
  /// The next whole frame; it is valid until the next `receive`. False if there is none.
  bool next(Frame& frame);
  /// True if a frame was longer than allowed.
  bool broken() const { return broken_; }

  /// Queues a frame.
  void send(unsigned char kind, std::string_view body);
  /// Sends of the queue what the socket takes. False if the connection has ended.
  bool flush();
  bool has_unsent() const { return sent_ < output_.size(); }

 private:
  Socket socket_;
  size_t most_bytes_ = 0;
  std::string input_;
  size_t read_ = 0;  // bytes of `input_` that were handed out
  std::string output_;
  size_t sent_ = 0;
  bool broken_ = false;
};

}  // namespace sgtc::runtime
