#include "support/layer_name.h"

#include <algorithm>
#include <vector>

namespace sgtc {
namespace {

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (c == '/' || c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  std::erase(parts, std::string());
  return parts;
}

bool is_number(const std::string& part) {
  return std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ".") + part;
  return text;
}

}  // namespace

std::string layer_of(const std::string& name) {
  static const std::string kUpdate = "update of ";
  if (name.compare(0, kUpdate.size(), kUpdate) == 0) return layer_of(name.substr(kUpdate.size()));
  const std::vector<std::string> parts = parts_of(name);
  const auto number = std::find_if(parts.begin(), parts.end(), is_number);
  if (number != parts.end()) return joined({parts.begin(), number + 1});
  return parts.size() > 1 ? parts.front() : kNoLayer;
}

}  // namespace sgtc
