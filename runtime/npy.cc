#include "npy.h"

#include <cstring>
#include <string_view>

#include "element_type.h"

namespace sgtc::runtime {
namespace {

struct Descriptor {
  std::string_view descr;
  std::string_view dtype;
};

constexpr Descriptor kDescriptors[] = {
    {"|b1", "bool"}, {"|i1", "i8"},   {"<i2", "i16"}, {"<i4", "i32"}, {"<i8", "i64"},
    {"|u1", "u8"},   {"<u2", "u16"},  {"<u4", "u32"}, {"<u8", "u64"}, {"<f2", "f16"},
    {"<V2", "bf16"}, {"|V2", "bf16"}, {"<f4", "f32"}, {"<f8", "f64"},
};

// What follows `'key':` in the header's dictionary, without leading blanks; empty if absent.
std::string_view value_of(std::string_view text, std::string_view key) {
  for (char quote : {'\'', '"'}) {
    const std::string wanted = quote + std::string(key) + quote;
    size_t position = text.find(wanted);
    if (position == text.npos) continue;
    position = text.find_first_not_of(" \t:", position + wanted.size());
    if (position != text.npos) return text.substr(position);
  }
  return {};
}

// The text between the quotes that `text` begins with; empty if it begins with none.
std::string quoted(std::string_view text) {
  if (text.empty() || (text[0] != '\'' && text[0] != '"')) return {};
  const size_t end = text.find(text[0], 1);
  return end == text.npos ? std::string() : std::string(text.substr(1, end - 1));
}

// Parses "(3, 4)", "(3,)" or "()".
bool parse_shape(std::string_view text, std::vector<int64_t>& shape) {
  if (text.empty() || text[0] != '(') return false;
  int64_t number = -1;
  for (char c : text.substr(1)) {
    if (c >= '0' && c <= '9') {
      if (number > INT64_MAX / 10 - 1) return false;
      number = (number < 0 ? 0 : number) * 10 + (c - '0');
    } else if (c == ',' || c == ')') {
      if (number >= 0) shape.push_back(number);
      number = -1;
      if (c == ')') return true;
    } else if (c != ' ' && c != 'L') {
      return false;
    }
  }
  return false;
}

// Length and position of the header's dictionary; false if the file is too short for it.
bool find_dictionary(const unsigned char* data, int64_t size, int64_t& begin, int64_t& length) {
  if (size < 12) return false;
  if (data[6] == 1) {
    begin = 10;
    length = data[8] | data[9] << 8;
  } else {
    begin = 12;
    uint32_t value;
    std::memcpy(&value, data + 8, sizeof value);
    length = value;
  }
  return begin + length <= size;
}

MaybeFailure check_data(const std::string& path, int64_t size, const NpyHeader& header) {
  const int64_t count = element_count(header.shape);
  const int64_t element = size_of_element(header.dtype);
  int64_t bytes = 0;
  const bool overflow = count < 0 || __builtin_mul_overflow(count, element, &bytes);
  if (overflow || bytes > size - header.data_offset) {
    return Failure{path,
                   "is cut off: shape " + shape_text(header.shape) + " of " + header.dtype +
                       " needs " + (overflow ? "more than 2^63" : std::to_string(bytes)) +
                       " bytes of data, found " + std::to_string(size - header.data_offset),
                   "write the file again"};
  }
  return {};
}

}  // namespace

MaybeFailure parse_npy(const std::string& path, const unsigned char* data, int64_t size,
                       NpyHeader& header) {
  if (size < 10 || std::memcmp(data, "\x93NUMPY", 6) != 0) {
    return Failure{path, "is not a .npy file", "write it with numpy.save"};
  }
  if (data[6] < 1 || data[6] > 3) {
    return Failure{path, format("has .npy format version %d, expected 1 to 3", data[6]), {}};
  }
  int64_t begin = 0;
  int64_t length = 0;
  if (!find_dictionary(data, size, begin, length)) {
    return Failure{path, "is cut off inside its header", "write the file again"};
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + begin,
                              static_cast<size_t>(length));
  const std::string descr = quoted(value_of(text, "descr"));
  header = {};
  header.data_offset = begin + length;
  for (const Descriptor& descriptor : kDescriptors) {
    if (descriptor.descr == descr) header.dtype = descriptor.dtype;
  }
  if (header.dtype.empty()) {
    return Failure{path, "has element type '" + descr + "', which cannot be fed",
                   "convert the array with astype to a little-endian number type"};
  }
  if (!parse_shape(value_of(text, "shape"), header.shape)) {
    return Failure{path, "has no readable shape in its header", "write the file again"};
  }
  if (value_of(text, "fortran_order").starts_with("True") && header.shape.size() > 1) {
    return Failure{path, "is in Fortran order, expected C order",
                   "save numpy.ascontiguousarray(array)"};
  }
  return check_data(path, size, header);
}

std::string npy_header(const std::string& dtype, const std::vector<int64_t>& shape) {
  std::string descr = "<V2";
  for (const Descriptor& descriptor : kDescriptors) {
    if (descriptor.dtype == dtype) {
      descr = descriptor.descr;
      break;
    }
  }
  std::string tuple = "(";
  for (int64_t dimension : shape) tuple += std::to_string(dimension) + ", ";
  if (!shape.empty()) tuple.resize(tuple.size() - (shape.size() == 1 ? 1 : 2));
  std::string text =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + tuple + "), }";
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace sgtc::runtime
