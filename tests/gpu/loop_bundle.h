// Programs of generated kernels with their inputs and expected results, as a file: made where the
// compiler is (pack_loops), run where the GPU is (gpu_loops_check).
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

namespace sgtc::testing {

struct LoopBuffer {
  int64_t bytes = 0;
  std::string pattern;  // repeated from the start; empty: poison
};

/// A tensor map, as the compiler's TensorMap.
struct LoopMap {
  int64_t buffer = 0;
  int64_t offset = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::vector<int64_t> box;
};

struct LoopLaunch {
  std::string symbol;  // the kernel; its code is SYMBOL.cubin or SYMBOL.ptx
  int64_t threads = 0;
  int64_t blocks = 0;
  int64_t any_grid = 0;  // whether fewer blocks compute the same
  int64_t shared_bytes = 0;
  int64_t cluster = 1;
  int64_t indirect = 0;          // whether the kernel gets a table of its arguments' addresses
  std::vector<int64_t> buffers;  // of the arguments
  std::vector<LoopMap> maps;
};

struct LoopExpectation {
  std::string name;
  int64_t buffer = 0;
  std::string dtype;
  std::vector<double> values;
};

struct LoopProgram {
  std::string name;
  double tolerance = 0;     // of |found - expected| / (1 + |expected|)
  double units = 0;         // of |found - expected| in units in the last place of f32, if not 0
  int64_t moved_bytes = 0;  // each tensor once
  int64_t operations = 0;   // arithmetic
  std::vector<LoopBuffer> buffers;
  std::vector<LoopLaunch> launches;
  std::vector<LoopExpectation> expectations;
  std::vector<int64_t> status;  // expected first words of buffer 0, the status block
};

/// Visits every field of a program in order, for writing and for reading.
template <typename Archive, typename Program>
void visit_fields(Archive& archive, Program& program) {
  archive(program.name, program.tolerance, program.units, program.moved_bytes, program.operations,
          program.status);
  archive.list(program.buffers, [&](auto& b) { archive(b.bytes, b.pattern); });
  archive.list(program.launches, [&](auto& l) {
    archive(l.symbol, l.threads, l.blocks, l.any_grid, l.shared_bytes, l.cluster, l.indirect,
            l.buffers);
    archive.list(l.maps, [&](auto& m) { archive(m.buffer, m.offset, m.sizes, m.strides, m.box); });
  });
  archive.list(program.expectations,
               [&](auto& e) { archive(e.name, e.buffer, e.dtype, e.values); });
}

/// Numbers as they lie in memory; lists and strings after their length.
class BundleWriter {
 public:
  template <typename... Fields>
  void operator()(const Fields&... fields) {
    (put(fields), ...);
  }
  template <typename List, typename Visit>
  void list(const List& items, const Visit& visit) {
    put(static_cast<int64_t>(items.size()));
    for (const auto& item : items) visit(item);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  void put(const T& field) {
    if constexpr (std::is_arithmetic_v<T>) {
      bytes_.append(reinterpret_cast<const char*>(&field), sizeof field);
    } else {
      put(static_cast<int64_t>(field.size()));
      for (const auto& element : field) put(element);
    }
  }
  std::string bytes_;
};

class BundleReader {
 public:
  explicit BundleReader(std::string bytes) : bytes_(std::move(bytes)) {}
  template <typename... Fields>
  void operator()(Fields&... fields) {
    (get(fields), ...);
  }
  template <typename List, typename Visit>
  void list(List& items, const Visit& visit) {
    int64_t count = 0;
    get(count);
    items.resize(static_cast<size_t>(count));
    for (auto& item : items) visit(item);
  }

 private:
  template <typename T>
  void get(T& field) {
    if constexpr (std::is_arithmetic_v<T>) {
      bytes_.copy(reinterpret_cast<char*>(&field), sizeof field, at_);
      at_ += sizeof field;
    } else {
      int64_t count = 0;
      get(count);
      field.resize(static_cast<size_t>(count));
      for (auto& element : field) get(element);
    }
  }
  std::string bytes_;
  size_t at_ = 0;
};

inline std::string to_bundle(const std::vector<LoopProgram>& programs) {
  BundleWriter writer;
  writer.list(programs, [&](const LoopProgram& program) { visit_fields(writer, program); });
  return writer.bytes();
}

inline std::vector<LoopProgram> read_bundle(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  BundleReader reader(std::string(std::istreambuf_iterator<char>(stream), {}));
  std::vector<LoopProgram> programs;
  reader.list(programs, [&](LoopProgram& program) { visit_fields(reader, program); });
  return programs;
}

}  // namespace sgtc::testing
