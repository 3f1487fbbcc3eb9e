// The messages of rendezvous.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "failure.h"

namespace sgtc::runtime::handshake {

inline constexpr int64_t kVersion = 1;
inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kMostBytes = 256;  // of a frame before the secret is proved

/// How long either side waits for the other's next message, milliseconds.
inline constexpr int64_t kPatience = 3000;

enum Kind : unsigned char {
  kHello = 1,
  kChallenge,
  kProof,
  kAcceptance,
  kRefusal,
  kIntroduce,
  kWelcome,
  kAbort,
};

struct Hello {
  int64_t version = kVersion;
  int64_t rank = 0;
  std::string nonce;
};
std::string encode(const Hello& hello);
bool decode(std::string_view body, Hello& hello);

struct Challenge {
  int64_t version = kVersion;
  std::string nonce;
};
std::string encode(const Challenge& challenge);
bool decode(std::string_view body, Challenge& challenge);

/// The proof of one side, "guest" or "host".
std::string prove(const std::string& secret, std::string_view side, const Hello& hello,
                  const Challenge& challenge);

/// The end of the job before it began: what every rank prints, and its exit code.
struct Abort {
  int64_t code = kExitFailure;
  Failure failure;
};
std::string encode(const Abort& abort);
bool decode(std::string_view body, Abort& abort);

/// Prints and exits.
[[noreturn]] void end(const Abort& abort);

}  // namespace sgtc::runtime::handshake
