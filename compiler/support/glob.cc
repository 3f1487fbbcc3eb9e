#include "support/glob.h"

namespace sgtc {
namespace {

// The position after the set that starts at `begin`, a '['; npos when it has no end.
size_t set_end(std::string_view pattern, size_t begin) {
  size_t i = begin + 1;
  if (i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^')) ++i;
  if (i < pattern.size() && pattern[i] == ']') ++i;  // a first ']' is a member
  const size_t close = pattern.find(']', i);
  return close == std::string_view::npos ? close : close + 1;
}

// `members` is the text between the brackets.
bool set_has(std::string_view members, char c) {
  const bool inverted = members[0] == '!' || members[0] == '^';
  if (inverted) members.remove_prefix(1);
  bool found = false;
  for (size_t i = 0; i < members.size(); ++i) {
    if (i + 2 < members.size() && members[i + 1] == '-') {
      found = found || (members[i] <= c && c <= members[i + 2]);
      i += 2;
    } else {
      found = found || members[i] == c;
    }
  }
  return found != inverted;
}

// Matches one character against the element of the pattern at `at`, which is not '*'. Returns the
// position after the element, or 0 when it does not match.
size_t match_one(std::string_view pattern, size_t at, char c) {
  if (pattern[at] == '?') return at + 1;
  if (pattern[at] == '[') {
    const size_t end = set_end(pattern, at);
    if (end != std::string_view::npos) {
      return set_has(pattern.substr(at + 1, end - at - 2), c) ? end : 0;
    }
  }
  if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
  return pattern[at] == c ? at + 1 : 0;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = std::string_view::npos;  // the last '*' and where its match ends so far
  size_t star_end = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_end = n;
      continue;
    }
    const size_t next = p < pattern.size() ? match_one(pattern, p, name[n]) : 0;
    if (next != 0) {
      p = next;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++star_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace sgtc
