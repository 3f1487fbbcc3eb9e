// Tables of a FlatBuffers file, read without generated code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sgtc {

/// A table of a FlatBuffers file: fields by their number in the schema, each of which may be left
/// out. Layout (flatbuffers.dev, "FlatBuffer internals"): a table begins with the signed distance
/// back to its vtable, which holds its own size, the table's, and one 16-bit offset per field;
/// strings, vectors and tables are reached by unsigned distances forward. Every access is checked
/// against the file; what lies outside throws Error without naming the file.
class FlatTable {
 public:
  /// The root of a file with this identifier (four characters).
  static FlatTable root(std::span<const std::byte> file, const std::string& identifier);

  int64_t integer32(int field, int64_t otherwise) const;
  int64_t integer64(int field, int64_t otherwise) const;
  bool flag(int field) const;
  std::string text(int field) const;
  /// A nested table; nothing when it is left out.
  std::optional<FlatTable> table(int field) const;
  /// Vectors; empty when they are left out.
  std::vector<FlatTable> tables(int field) const;
  std::vector<int64_t> integers64(int field) const;
  std::span<const std::byte> bytes(int field) const;

 private:
  FlatTable(std::span<const std::byte> file, size_t position);

  template <typename T>
  T read(size_t position) const;
  /// Where the field is, 0 when it is left out.
  size_t position_of(int field) const;
  /// The position that the distance at `position` leads to.
  size_t target_of(size_t position) const;
  /// First element and number of elements of a vector field.
  std::pair<size_t, size_t> vector(int field, size_t element_size) const;

  std::span<const std::byte> file_;
  size_t position_ = 0;
  size_t vtable_ = 0;
  size_t vtable_size_ = 0;
};

}  // namespace sgtc
