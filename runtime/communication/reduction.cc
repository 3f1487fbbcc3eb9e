// A block of elements is accumulated in a local array, which nothing else can point at: the
// compiler may then use vectors although sources and target may be the same memory.
#include "reduction.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "element_type.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kBlock = 256;

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

// What elements of type T are accumulated in; integers wrap as unsigned ones do.
template <class T>
struct Accumulated {
  using Type = T;
};
template <>
struct Accumulated<Half> {
  using Type = float;
};
template <>
struct Accumulated<BFloat> {
  using Type = float;
};

template <class T>
T widen(T value) {
  return value;
}
float widen(Half value) { return half_to_float(value.bits); }
float widen(BFloat value) { return bfloat_to_float(value.bits); }

template <class T>
T narrow(typename Accumulated<T>::Type value) {
  if constexpr (std::is_same_v<T, Half>) {
    return {float_to_half(value)};
  } else if constexpr (std::is_same_v<T, BFloat>) {
    return {float_to_bfloat(value)};
  } else {
    return value;
  }
}

struct Sum {
  template <class T>
  static T combine(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};

struct Max {
  template <class T>
  static T combine(T a, T b) {
    return a < b || b != b ? b : a;
  }
};

// Reads `count` elements, joined to the accumulators unless they are the first.
template <class T, class Operator, bool kFirst>
inline void accumulate(const T* source, int64_t count, typename Accumulated<T>::Type* sums) {
  for (int64_t i = 0; i < count; ++i) {
    const auto value = widen(source[i]);
    sums[i] = kFirst ? value : Operator::combine(sums[i], value);
  }
}

template <class T, class Operator>
void reduce_block(const unsigned char* const* sources, int64_t members, int64_t begin,
                  int64_t count, unsigned char* target) {
  typename Accumulated<T>::Type sums[kBlock];
  T values[kBlock];
  const int64_t offset = begin * static_cast<int64_t>(sizeof(T));
  const size_t bytes = static_cast<size_t>(count) * sizeof(T);
  for (int64_t m = 0; m < members; ++m) {
    std::memcpy(values, sources[m] + offset, bytes);
    if (m == 0) {
      accumulate<T, Operator, true>(values, count, sums);
    } else {
      accumulate<T, Operator, false>(values, count, sums);
    }
  }
  for (int64_t i = 0; i < count; ++i) values[i] = narrow<T>(sums[i]);
  std::memcpy(target + offset, values, bytes);
}

template <class T, class Operator>
void reduce(const unsigned char* const* sources, int64_t members, int64_t count,
            unsigned char* target) {
  int64_t begin = 0;
  for (; begin + kBlock <= count; begin += kBlock) {
    reduce_block<T, Operator>(sources, members, begin, kBlock, target);
  }
  if (begin < count) reduce_block<T, Operator>(sources, members, begin, count - begin, target);
}

struct Entry {
  std::string_view dtype;
  Reducer sum;
  Reducer max;
};

template <class T>
constexpr Entry entry(std::string_view dtype) {
  return {dtype, reduce<T, Sum>, reduce<T, Max>};
}

constexpr Entry kEntries[] = {
    entry<float>("f32"),
    entry<double>("f64"),
    entry<Half>("f16"),
    entry<BFloat>("bf16"),
    entry<int8_t>("i8"),
    entry<int16_t>("i16"),
    entry<int32_t>("i32"),
    entry<int64_t>("i64"),
    entry<uint8_t>("u8"),
    entry<uint16_t>("u16"),
    entry<uint32_t>("u32"),
    entry<uint64_t>("u64"),
    {"bool", nullptr, reduce<uint8_t, Max>},
};

}  // namespace

Reducer find_reducer(std::string_view dtype, Reduction reduction) {
  for (const Entry& entry : kEntries) {
    if (entry.dtype == dtype) return reduction == Reduction::sum ? entry.sum : entry.max;
  }
  return nullptr;
}

}  // namespace sgtc::runtime
