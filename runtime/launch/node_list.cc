#include "launch/node_list.h"

#include <cctype>
#include <string_view>

namespace sgtc::runtime {
namespace {

constexpr size_t kMostDigits = 18;  // fits in int64_t

struct Range {
  int64_t first = 0;
  int64_t last = 0;
  size_t width = 0;  // digits at least, filled up with zeros
};

// Literal text, or the ranges of a bracket if there are any.
struct Part {
  std::string text;
  std::vector<Range> ranges;
};

using Item = std::vector<Part>;

bool is_literal(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  // False if the text does not follow the grammar.
  bool parse(std::vector<Item>& items) {
    do {
      if (!parse_item(items.emplace_back())) return false;
    } while (take(','));
    return position_ == text_.size();
  }

 private:
  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }

  bool take(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }

  bool parse_item(Item& item) {
    for (;;) {
      if (take('[')) {
        if (!parse_bracket(item.emplace_back())) return false;
      } else if (is_literal(peek())) {
        std::string& text = item.emplace_back().text;
        while (is_literal(peek())) text += text_[position_++];
      } else {
        return !item.empty();
      }
    }
  }

  bool parse_bracket(Part& part) {
    do {
      Range& range = part.ranges.emplace_back();
      if (!parse_number(range.first, range.width)) return false;
      range.last = range.first;
      size_t width = 0;
      if (take('-') && !parse_number(range.last, width)) return false;
      if (range.last < range.first) return false;
    } while (take(','));
    return take(']');
  }

  bool parse_number(int64_t& value, size_t& width) {
    value = 0;
    for (width = 0; std::isdigit(static_cast<unsigned char>(peek())); ++width) {
      if (width == kMostDigits) return false;
      value = 10 * value + (text_[position_++] - '0');
    }
    return width > 0;
  }

  std::string_view text_;
  size_t position_ = 0;
};

std::string padded(int64_t number, size_t width) {
  const std::string digits = std::to_string(number);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

MaybeFailure parse_node_list(const std::string& list, std::vector<Item>& items) {
  if (Parser(list).parse(items)) return {};
  return Failure{"node list '" + list + "'", "cannot be read",
                 "expected host names and numeric ranges such as node[01-04],login"};
}

// The hosts of an item; false if `hosts` would grow beyond `limit`.
bool expand(const Item& item, size_t limit, std::vector<std::string>& hosts) {
  std::vector<std::string> names = {""};
  for (const Part& part : item) {
    if (part.ranges.empty()) {
      for (std::string& name : names) name += part.text;
      continue;
    }
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const Range& range : part.ranges) {
        for (int64_t number = range.first; number <= range.last; ++number) {
          if (longer.size() + hosts.size() == limit) return false;
          longer.push_back(name + padded(number, range.width));
        }
      }
    }
    names = std::move(longer);
  }
  hosts.insert(hosts.end(), names.begin(), names.end());
  return hosts.size() <= limit;
}

}  // namespace

MaybeFailure first_host(const std::string& list, std::string& host) {
  std::vector<Item> items;
  if (MaybeFailure failure = parse_node_list(list, items)) return failure;
  host.clear();
  for (const Part& part : items.front()) {
    host += part.ranges.empty() ? part.text
                                : padded(part.ranges.front().first, part.ranges.front().width);
  }
  return {};
}

MaybeFailure expand_node_list(const std::string& list, int64_t limit,
                              std::vector<std::string>& hosts) {
  std::vector<Item> items;
  if (MaybeFailure failure = parse_node_list(list, items)) return failure;
  hosts.clear();
  for (const Item& item : items) {
    if (expand(item, static_cast<size_t>(limit), hosts)) continue;
    return Failure{
        "node list '" + list + "'", "has more than " + std::to_string(limit) + " hosts", {}};
  }
  return {};
}

}  // namespace sgtc::runtime
