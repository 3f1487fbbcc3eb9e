// Attributes of a node: named integers, reals, texts and integer lists.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "support/copy_on_write.h"

namespace sgtc {

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

/// Ordered by name, so that texts and hashes do not depend on the order of insertion. Copies share
/// one map until one of them is changed: most passes copy nodes as they are.
class Attributes {
 public:
  using Map = std::map<std::string, Attribute>;

  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> list)
      : map_(Map(list)) {}

  bool has(const std::string& name) const { return map().count(name) != 0; }
  void set(const std::string& name, Attribute value) { map_.own()[name] = std::move(value); }

  /// The attribute must exist with that type (InternalError otherwise).
  int64_t integer(const std::string& name) const;
  double real(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const std::vector<int64_t>& integers(const std::string& name) const;

  /// With a default for a missing attribute.
  int64_t integer_or(const std::string& name, int64_t otherwise) const;
  double real_or(const std::string& name, double otherwise) const;

  const Map& map() const { return *map_; }
  bool operator==(const Attributes& other) const {
    return map_.shares(other.map_) || map() == other.map();
  }
  bool operator<(const Attributes& other) const {
    return !map_.shares(other.map_) && map() < other.map();
  }

 private:
  CopyOnWrite<Map> map_;
};

}  // namespace sgtc
