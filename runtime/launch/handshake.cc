#include "launch/handshake.h"

#include "launch/connection.h"
#include "launch/hmac.h"

namespace sgtc::runtime::handshake {
namespace {

constexpr std::string_view kMagic = "sgtc rendezvous";

}  // namespace

std::string encode(const Hello& hello) {
  Writer writer;
  writer.text(kMagic).integer(hello.version).integer(hello.rank).text(hello.nonce);
  return writer.body();
}

bool decode(std::string_view body, Hello& hello) {
  Reader reader(body);
  const bool known = reader.text() == kMagic;
  hello.version = reader.integer();
  hello.rank = reader.integer();
  hello.nonce = reader.text();
  return known && reader.complete() && hello.nonce.size() == kNonceBytes;
}

std::string encode(const Challenge& challenge) {
  Writer writer;
  writer.text(kMagic).integer(challenge.version).text(challenge.nonce);
  return writer.body();
}

bool decode(std::string_view body, Challenge& challenge) {
  Reader reader(body);
  const bool known = reader.text() == kMagic;
  challenge.version = reader.integer();
  challenge.nonce = reader.text();
  return known && reader.complete() && challenge.nonce.size() == kNonceBytes;
}

std::string prove(const std::string& secret, std::string_view side, const Hello& hello,
                  const Challenge& challenge) {
  Writer writer;
  writer.text(side).text(encode(hello)).text(encode(challenge));
  return hmac_sha256(secret, writer.body());
}

std::string encode(const Abort& abort) {
  Writer writer;
  writer.integer(abort.code).text(abort.failure.object);
  writer.text(abort.failure.problem).text(abort.failure.remedy);
  return writer.body();
}

bool decode(std::string_view body, Abort& abort) {
  Reader reader(body);
  abort.code = reader.integer();
  abort.failure.object = reader.text();
  abort.failure.problem = reader.text();
  abort.failure.remedy = reader.text();
  return reader.complete();
}

void end(const Abort& abort) {
  if (abort.code == kExitLost) die_lost(abort.failure);
  die(abort.failure);
}

}  // namespace sgtc::runtime::handshake
