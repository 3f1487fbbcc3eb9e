#include "access_check.h"

#include <algorithm>
#include <cstring>

#include "failure.h"

namespace sgtc::runtime {
namespace {

// NaN in bf16, f16 and f32, and a signalling one in bf16 and f32: no arithmetic has it as a result,
// so where it is found, nothing was written.
unsigned char poison_at(size_t byte) { return byte % 2 == 0 ? 0xA5 : 0x7F; }

// The buffers that have the byte, at some time of the step.
std::string buffers_at(const plan::Position& position, int64_t byte) {
  std::string names;
  for (const plan::Buffer& buffer : position.buffers) {
    const int64_t end = buffer.offset + (buffer.count - 1) * buffer.stride + buffer.bytes;
    if (byte < buffer.offset || byte >= end) continue;
    names += (names.empty() ? "" : ", ") + buffer.name;
  }
  return names.empty() ? "no buffer" : names;
}

}  // namespace

AccessCheck::AccessCheck(const CheckedMemory& memory, const Arena& arena,
                         const plan::Position& position)
    : memory_(memory),
      arena_(arena),
      position_(position),
      before_(static_cast<size_t>(arena.bytes())),
      after_(before_.size()),
      second_(before_.size()) {}

// The bytes of arguments that are accessed so, or "update", in ascending order and apart from each
// other.
std::vector<AccessCheck::Piece> AccessCheck::arguments_with(const CheckedCall& call,
                                                            const char* access) const {
  if (call.kernel.access.size() != call.arguments.size()) {
    die_of_bad_plan("kernel " + call.kernel.symbol + " takes other arguments than task " +
                    call.task + " gives");
  }
  std::vector<Piece> pieces;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const std::string& own = call.kernel.access[i];
    if (own != access && own != "update") continue;
    const int64_t begin = call.arguments[i].data - arena_.data();
    pieces.push_back({begin, begin + call.arguments[i].bytes});
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  std::vector<Piece> apart;
  for (const Piece& piece : pieces) {
    if (!apart.empty() && piece.begin <= apart.back().end) {
      apart.back().end = std::max(apart.back().end, piece.end);
    } else {
      apart.push_back(piece);
    }
  }
  return apart;
}

std::vector<AccessCheck::Piece> AccessCheck::all_but(const std::vector<Piece>& pieces) const {
  std::vector<Piece> rest;
  int64_t begin = 0;
  for (const Piece& piece : pieces) {
    if (piece.begin > begin) rest.push_back({begin, piece.begin});
    begin = piece.end;
  }
  if (begin < arena_.bytes()) rest.push_back({begin, arena_.bytes()});
  return rest;
}

void AccessCheck::begin() { memory_.read(before_.data()); }

void AccessCheck::compare_untouched(const CheckedCall& call) {
  memory_.read(after_.data());
  for (const Piece& piece : all_but(arguments_with(call, "write"))) {
    const auto begin = before_.begin() + piece.begin;
    const auto end = before_.begin() + piece.end;
    const auto changed = std::mismatch(begin, end, after_.begin() + piece.begin).first;
    if (changed != end) die_at(call, "writes", changed - before_.begin());
  }
  second_ = before_;
  for (const Piece& piece : all_but(arguments_with(call, "read"))) {
    for (auto i = static_cast<size_t>(piece.begin); i < static_cast<size_t>(piece.end); ++i) {
      second_[i] = poison_at(i);
    }
  }
  memory_.write(second_.data());
}

void AccessCheck::compare_written(const CheckedCall& call) {
  memory_.read(second_.data());
  for (const Piece& piece : arguments_with(call, "write")) {
    for (auto i = static_cast<size_t>(piece.begin); i < static_cast<size_t>(piece.end); ++i) {
      const bool left = after_[i] == before_[i] && second_[i] == poison_at(i);
      if (after_[i] != second_[i] && !left) {
        die_at(call, "writes something else once other memory has changed,",
               static_cast<int64_t>(i));
      }
    }
  }
  memory_.write(after_.data());
}

void AccessCheck::die_at(const CheckedCall& call, const char* what, int64_t byte) const {
  die("kernel " + call.kernel.symbol + " of task " + call.task,
      std::string("touches more than the plan says: it ") + what +
          format(" at byte %ld of the arena (", static_cast<long>(byte)) +
          buffers_at(position_, byte) + ")",
      "please report this");
}

}  // namespace sgtc::runtime
