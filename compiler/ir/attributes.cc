#include "ir/attributes.h"

#include "support/diagnostics.h"

namespace sgtc {
namespace {

// The attribute `name` of type T, or null when there is none. Another type is a fault of sgtc.
template <typename T>
const T* find(const Attributes::Map& map, const std::string& name) {
  const auto entry = map.find(name);
  if (entry == map.end()) return nullptr;
  const T* value = std::get_if<T>(&entry->second);
  SGTC_CHECK(value != nullptr, "attribute " + name + " has another type");
  return value;
}

template <typename T>
const T& get(const Attributes::Map& map, const std::string& name) {
  const T* value = find<T>(map, name);
  SGTC_CHECK(value != nullptr, "attribute " + name + " is missing");
  return *value;
}

}  // namespace

int64_t Attributes::integer(const std::string& name) const { return get<int64_t>(map(), name); }

double Attributes::real(const std::string& name) const { return get<double>(map(), name); }

const std::string& Attributes::text(const std::string& name) const {
  return get<std::string>(map(), name);
}

const std::vector<int64_t>& Attributes::integers(const std::string& name) const {
  return get<std::vector<int64_t>>(map(), name);
}

int64_t Attributes::integer_or(const std::string& name, int64_t otherwise) const {
  const int64_t* value = find<int64_t>(map(), name);
  return value != nullptr ? *value : otherwise;
}

double Attributes::real_or(const std::string& name, double otherwise) const {
  const double* value = find<double>(map(), name);
  return value != nullptr ? *value : otherwise;
}

}  // namespace sgtc
