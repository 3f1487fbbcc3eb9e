// Attributes of a node: named integers, reals, texts and integer lists.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace sgtc {

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

/// Ordered by name, so that texts and hashes do not depend on the order of insertion.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> list) : map_(list) {}

  bool has(const std::string& name) const { return map_.count(name) != 0; }
  void set(const std::string& name, Attribute value) { map_[name] = std::move(value); }

  /// The attribute must exist with that type (InternalError otherwise).
  int64_t integer(const std::string& name) const;
  double real(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const std::vector<int64_t>& integers(const std::string& name) const;

  /// With a default for a missing attribute.
  int64_t integer_or(const std::string& name, int64_t otherwise) const;
  double real_or(const std::string& name, double otherwise) const;

  const std::map<std::string, Attribute>& map() const { return map_; }
  bool operator==(const Attributes&) const = default;

 private:
  std::map<std::string, Attribute> map_;
};

}  // namespace sgtc
