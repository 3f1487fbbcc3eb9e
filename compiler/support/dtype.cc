#include "support/dtype.h"

#include <array>

namespace sgtc {
namespace {

struct Entry {
  std::string_view name;
  int64_t size;
};

constexpr std::array<Entry, 13> kEntries = {{
    {"bool", 1},
    {"i8", 1},
    {"i16", 2},
    {"i32", 4},
    {"i64", 8},
    {"u8", 1},
    {"u16", 2},
    {"u32", 4},
    {"u64", 8},
    {"f16", 2},
    {"bf16", 2},
    {"f32", 4},
    {"f64", 8},
}};

}  // namespace

int64_t size_of(DType dtype) { return kEntries[static_cast<size_t>(dtype)].size; }

std::string_view name_of(DType dtype) { return kEntries[static_cast<size_t>(dtype)].name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kEntries.size(); ++i) {
    if (kEntries[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace sgtc
