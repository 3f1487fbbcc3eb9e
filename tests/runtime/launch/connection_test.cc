#include "runtime/launch/connection.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

struct Pair {
  explicit Pair(size_t most_bytes = 1 << 20) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    a = Connection(Socket(ends[0]), most_bytes);
    b = Connection(Socket(ends[1]), most_bytes);
  }
  Connection a;
  Connection b;
};

}  // namespace

TEST_CASE("values come back as they were written") {
  Writer writer;
  writer.integer(-5).text("abc").text("").integer(int64_t{1} << 62);
  Reader reader(writer.body());
  CHECK(reader.integer() == -5);
  CHECK(reader.text() == "abc");
  CHECK(reader.text().empty());
  CHECK_FALSE(reader.complete());
  CHECK(reader.integer() == int64_t{1} << 62);
  CHECK(reader.complete());
}

TEST_CASE("values that are not there") {
  Reader reader("abc");
  CHECK(reader.integer() == 0);
  CHECK_FALSE(reader.ok());
  Writer writer;
  writer.integer(-1);  // a length
  Reader negative(writer.body());
  CHECK(negative.text().empty());
  CHECK_FALSE(negative.ok());
}

TEST_CASE("frames keep their limits and order") {
  Pair pair;
  pair.a.send(1, "first");
  pair.a.send(2, "");
  REQUIRE(pair.a.flush());
  Frame frame;
  CHECK_FALSE(pair.b.next(frame));
  CHECK(pair.b.receive());
  REQUIRE(pair.b.next(frame));
  CHECK(frame.kind == 1);
  CHECK(frame.body == "first");
  REQUIRE(pair.b.next(frame));
  CHECK(frame.kind == 2);
  CHECK(frame.body.empty());
  CHECK_FALSE(pair.b.next(frame));
}

TEST_CASE("a frame that is larger than the socket's memory arrives in pieces") {
  Pair pair(1 << 24);
  const std::string body(5000000, 'x');
  pair.a.send(1, body);
  Frame frame;
  for (int i = 0; i < 10000 && !pair.b.next(frame); ++i) {
    CHECK(pair.a.flush());
    CHECK(pair.b.receive());
  }
  CHECK(frame.body == body);
  CHECK_FALSE(pair.a.has_unsent());
}

TEST_CASE("frames that came before the end can be read") {
  Pair pair;
  pair.a.send(1, "last");
  pair.a.flush();
  pair.a.close();
  CHECK_FALSE(pair.b.receive());
  Frame frame;
  REQUIRE(pair.b.next(frame));
  CHECK(frame.body == "last");
}

TEST_CASE("a frame that is too long breaks the connection") {
  Pair pair(100);
  pair.a.send(1, std::string(100, 'x'));
  pair.a.flush();
  pair.b.receive();
  Frame frame;
  CHECK_FALSE(pair.b.next(frame));
  CHECK(pair.b.broken());
}

}  // namespace sgtc::runtime
