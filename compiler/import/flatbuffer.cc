#include "import/flatbuffer.h"

#include <cstring>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr size_t kIdentifierPosition = 4;
constexpr size_t kIdentifierSize = 4;
constexpr size_t kVtableHeader = 4;  // sizes of vtable and table

[[noreturn]] void fail(size_t position) {
  throw Error("is damaged: the structure at byte " + std::to_string(position) +
              " leads out of the file; copy the file again");
}

}  // namespace

template <typename T>
T FlatTable::read(size_t position) const {
  if (position > file_.size() || sizeof(T) > file_.size() - position) fail(position);
  T value;
  std::memcpy(&value, file_.data() + position, sizeof value);
  return value;
}

FlatTable::FlatTable(std::span<const std::byte> file, size_t position)
    : file_(file), position_(position) {
  const auto distance = static_cast<int64_t>(read<int32_t>(position));
  const int64_t vtable = static_cast<int64_t>(position) - distance;
  if (vtable < 0) fail(position);
  vtable_ = static_cast<size_t>(vtable);
  vtable_size_ = read<uint16_t>(vtable_);
  if (vtable_size_ < kVtableHeader || vtable_size_ > file_.size() - vtable_) fail(vtable_);
}

FlatTable FlatTable::root(std::span<const std::byte> file, const std::string& identifier) {
  const bool fits = file.size() >= kIdentifierPosition + kIdentifierSize;
  const std::string found =
      fits ? std::string(reinterpret_cast<const char*>(file.data()) + kIdentifierPosition,
                         kIdentifierSize)
           : "";
  if (found != identifier) {
    throw Error("expected a file with the identifier \"" + identifier + "\", found another format");
  }
  uint32_t offset = 0;
  std::memcpy(&offset, file.data(), sizeof offset);
  return {file, offset};
}

size_t FlatTable::position_of(int field) const {
  const size_t entry = kVtableHeader + 2 * static_cast<size_t>(field);
  if (entry + 2 > vtable_size_) return 0;
  const uint16_t offset = read<uint16_t>(vtable_ + entry);
  return offset == 0 ? 0 : position_ + offset;
}

size_t FlatTable::target_of(size_t position) const { return position + read<uint32_t>(position); }

int64_t FlatTable::integer32(int field, int64_t otherwise) const {
  const size_t position = position_of(field);
  return position == 0 ? otherwise : read<int32_t>(position);
}

int64_t FlatTable::integer64(int field, int64_t otherwise) const {
  const size_t position = position_of(field);
  return position == 0 ? otherwise : read<int64_t>(position);
}

bool FlatTable::flag(int field) const {
  const size_t position = position_of(field);
  return position != 0 && read<uint8_t>(position) != 0;
}

std::pair<size_t, size_t> FlatTable::vector(int field, size_t element_size) const {
  const size_t position = position_of(field);
  if (position == 0) return {0, 0};
  const size_t start = target_of(position);
  const size_t count = read<uint32_t>(start);
  const size_t first = start + sizeof(uint32_t);
  if (count > (file_.size() - first) / element_size) fail(start);
  return {first, count};
}

std::span<const std::byte> FlatTable::bytes(int field) const {
  const auto [first, count] = vector(field, 1);
  return file_.subspan(first, count);
}

std::string FlatTable::text(int field) const {
  const std::span<const std::byte> characters = bytes(field);
  return {reinterpret_cast<const char*>(characters.data()), characters.size()};
}

std::vector<int64_t> FlatTable::integers64(int field) const {
  const auto [first, count] = vector(field, sizeof(int64_t));
  std::vector<int64_t> values;
  for (size_t i = 0; i < count; ++i) values.push_back(read<int64_t>(first + i * sizeof(int64_t)));
  return values;
}

std::optional<FlatTable> FlatTable::table(int field) const {
  const size_t position = position_of(field);
  if (position == 0) return std::nullopt;
  return FlatTable(file_, target_of(position));
}

std::vector<FlatTable> FlatTable::tables(int field) const {
  const auto [first, count] = vector(field, sizeof(uint32_t));
  std::vector<FlatTable> tables;
  for (size_t i = 0; i < count; ++i) {
    tables.push_back(FlatTable(file_, target_of(first + i * sizeof(uint32_t))));
  }
  return tables;
}

}  // namespace sgtc
