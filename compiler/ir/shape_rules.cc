#include "ir/shape_rules.h"

#include <utility>

#include "support/diagnostics.h"

namespace sgtc::shape_rules {
namespace {

template <typename T>
const T& get(const Attributes& attributes, const std::string& name, const char* type) {
  const auto entry = attributes.map().find(name);
  if (entry == attributes.map().end()) mismatch("attribute " + name + " (" + type + ")", "none");
  const T* value = std::get_if<T>(&entry->second);
  if (value == nullptr) mismatch("attribute " + name + " as " + type, "another type");
  return *value;
}

std::string operand_text(size_t i) { return "operand " + std::to_string(i); }

}  // namespace

void mismatch(const std::string& expected, const std::string& found) {
  throw Error("expected " + expected + ", found " + found);
}

Types one(DType dtype, Shape shape) {
  Types types;
  types.push_back({dtype, std::move(shape)});
  return types;
}

int64_t Call::integer(const std::string& name) const {
  return get<int64_t>(attributes, name, "an integer");
}

double Call::real(const std::string& name) const { return get<double>(attributes, name, "a real"); }

const std::string& Call::text(const std::string& name) const {
  return get<std::string>(attributes, name, "a text");
}

const std::vector<int64_t>& Call::integers(const std::string& name) const {
  return get<std::vector<int64_t>>(attributes, name, "a list of integers");
}

DType Call::dtype_attribute(const std::string& name) const {
  const std::optional<DType> dtype = dtype_from_name(text(name));
  if (!dtype) mismatch("the name of a dtype as attribute " + name, '"' + text(name) + '"');
  return *dtype;
}

int64_t Call::axis(int64_t rank) const {
  const int64_t axis = integer("axis");
  if (axis < 0 || axis >= rank) {
    mismatch("an axis from 0 to " + std::to_string(rank - 1), std::to_string(axis));
  }
  return axis;
}

const std::vector<int64_t>& Call::axes(int64_t rank) const {
  const std::vector<int64_t>& axes = integers("axes");
  int64_t last = -1;
  for (const int64_t axis : axes) {
    if (axis <= last || axis >= rank) {
      mismatch("sorted unique axes below " + std::to_string(rank), to_string(axes));
    }
    last = axis;
  }
  return axes;
}

const std::vector<int64_t>& Call::integers(const std::string& name, int64_t count,
                                           int64_t least) const {
  const std::vector<int64_t>& list = integers(name);
  bool fits = static_cast<int64_t>(list.size()) == count;
  for (const int64_t element : list) fits = fits && element >= least;
  if (!fits) {
    mismatch("attribute " + name + " with " + std::to_string(count) + " elements of at least " +
                 std::to_string(least),
             to_string(list));
  }
  return list;
}

void Call::same_dtypes(size_t first, size_t end) const {
  for (size_t i = first + 1; i < end; ++i) {
    if (dtype(i) == dtype(first)) continue;
    mismatch(operand_text(i) + " of type " + std::string(name_of(dtype(first))) + " as " +
                 operand_text(first),
             std::string(name_of(dtype(i))));
  }
}

void Call::need_float(size_t i) const {
  if (!is_float(dtype(i))) {
    mismatch(operand_text(i) + " of a float type", std::string(name_of(dtype(i))));
  }
}

void Call::need_number(size_t i) const {
  if (dtype(i) == DType::kBool) mismatch(operand_text(i) + " of a number type", "bool");
}

void Call::need_integer(size_t i) const {
  if (!is_integer(dtype(i))) {
    mismatch(operand_text(i) + " of an integer type", std::string(name_of(dtype(i))));
  }
}

void Call::need_bool(size_t i) const {
  if (dtype(i) != DType::kBool) {
    mismatch(operand_text(i) + " of type bool", std::string(name_of(dtype(i))));
  }
}

void Call::need_index(size_t i) const {
  if (dtype(i) != DType::kInt32 && dtype(i) != DType::kInt64) {
    mismatch(operand_text(i) + " of type i32 or i64", std::string(name_of(dtype(i))));
  }
}

void Call::need_rank(size_t i, int64_t expected) const {
  if (rank(i) != expected) {
    mismatch(operand_text(i) + " of rank " + std::to_string(expected), to_string(shape(i)));
  }
}

void Call::need_shape(size_t i, const Shape& expected) const {
  if (shape(i) != expected) {
    mismatch(operand_text(i) + " of shape " + to_string(expected), to_string(shape(i)));
  }
}

}  // namespace sgtc::shape_rules
