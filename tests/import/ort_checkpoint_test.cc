#include "import/ort_checkpoint.h"

#include <cstring>
#include <filesystem>

#include "import/helper.h"
#include "support/catch.h"
#include "support/diagnostics.h"
#include "support/file.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

namespace {

// Writes a FlatBuffer front to back: every part is appended behind those that refer to it, and the
// reference is filled in then.
class Writer {
 public:
  template <typename T>
  size_t append(T value) {
    const size_t at = bytes_.size();
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return at;
  }

  /// Sizes of the fields, 0 for one that is left out; returns where each field is.
  std::vector<size_t> table(const std::vector<uint16_t>& sizes) {
    const size_t vtable = bytes_.size();
    append(static_cast<uint16_t>(4 + 2 * sizes.size()));
    append(uint16_t{0});
    uint16_t offset = 4;
    for (const uint16_t size : sizes) {
      append(size == 0 ? uint16_t{0} : offset);
      offset = static_cast<uint16_t>(offset + size);
    }
    table_ = append(static_cast<int32_t>(bytes_.size() - vtable));
    std::vector<size_t> fields;
    for (const uint16_t size : sizes) {
      fields.push_back(bytes_.size());
      bytes_.append(size, '\0');
    }
    return fields;
  }

  size_t last_table() const { return table_; }

  template <typename T>
  void set(size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }

  void refer(size_t from, size_t to) { set(from, static_cast<uint32_t>(to - from)); }

  void text(size_t from, const std::string& value) {
    refer(from, append(static_cast<uint32_t>(value.size())));
    bytes_ += value;
  }

  template <typename T>
  void vector(size_t from, const std::vector<T>& values) {
    refer(from, append(static_cast<uint32_t>(values.size())));
    for (const T& value : values) append(value);
  }

  std::vector<size_t> references(size_t from, uint32_t count) {
    refer(from, append(count));
    std::vector<size_t> places;
    for (uint32_t i = 0; i < count; ++i) places.push_back(append(uint32_t{0}));
    return places;
  }

  void tensor(size_t from, const std::string& name, const std::vector<float>& values) {
    const std::vector<size_t> fields = table({4, 0, 4, 4, 4});
    refer(from, last_table());
    text(fields[0], name);
    vector<int64_t>(fields[2], {static_cast<int64_t>(values.size())});
    set(fields[3], int32_t{1});
    refer(fields[4], append(static_cast<uint32_t>(4 * values.size())));
    for (const float value : values) append(value);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  size_t table_ = 0;
};

// One trained and one frozen tensor, and the moments of the first after 3 steps.
std::string checkpoint_file(const std::string& second = "frozen") {
  Writer writer;
  writer.append(uint32_t{0});
  for (const char c : {'O', 'D', 'T', 'C'}) writer.append(c);
  const std::vector<size_t> root = writer.table({4, 4, 4});
  writer.refer(0, writer.last_table());
  const std::vector<size_t> module = writer.table({4, 4});
  writer.refer(root[1], writer.last_table());
  writer.tensor(writer.references(module[0], 1)[0], "w", {1, 2});
  writer.tensor(writer.references(module[1], 1)[0], second, {5});
  const size_t group_place = writer.references(root[2], 1)[0];
  const std::vector<size_t> group = writer.table({0, 8, 4, 4});
  writer.refer(group_place, writer.last_table());
  writer.set(group[1], int64_t{3});
  const size_t state_place = writer.references(group[3], 1)[0];
  const std::vector<size_t> state = writer.table({4, 4});
  writer.refer(state_place, writer.last_table());
  writer.text(state[0], "w");
  const std::vector<size_t> moments = writer.references(state[1], 2);
  writer.tensor(moments[0], "momentum0", {0.1f, 0.2f});
  writer.tensor(moments[1], "momentum1", {0.3f, 0.4f});
  return writer.bytes();
}

class File {
 public:
  explicit File(const std::string& contents)
      : path_((std::filesystem::temp_directory_path() / "sgtc_ort_checkpoint_test.ckpt").string()) {
    write_file(path_, contents);
  }
  ~File() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

OrtCheckpoint read(const std::string& contents) {
  return read_ort_checkpoint(File(contents).path());
}

}  // namespace

TEST_CASE("a checkpoint holds parameters and moments") {
  const OrtCheckpoint checkpoint = read(checkpoint_file());
  REQUIRE(checkpoint.trained.size() == 1);
  CHECK(checkpoint.trained[0].name() == "w");
  CHECK(checkpoint.trained[0].dims(0) == 2);
  CHECK(checkpoint.trained[0].raw_data().size() == 8);
  REQUIRE(checkpoint.frozen.size() == 1);
  CHECK(checkpoint.frozen[0].name() == "frozen");
  CHECK(checkpoint.steps == 3);
  CHECK(checkpoint.moments.at("w").size() == 2);
}

TEST_CASE("a checkpoint of another format, or with a name twice, is refused") {
  CHECK_THROWS_WITH(read("not a checkpoint"), ContainsSubstring("identifier \"ODTC\""));
  CHECK_THROWS_WITH(read(checkpoint_file("w")), ContainsSubstring("gives the tensor \"w\" twice"));
  CHECK_THROWS_AS(read_ort_checkpoint("/nonexistent"), Error);
}

TEST_CASE("a damaged checkpoint is read or refused, never more") {
  const std::string whole = checkpoint_file();
  int refused = 0;
  const auto attempt = [&refused](const std::string& contents) {
    try {
      read(contents);
    } catch (const Error&) {
      ++refused;
    }
  };
  for (size_t length = 1; length < whole.size(); length += 3) attempt(whole.substr(0, length));
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[i] = value;
      attempt(changed);
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("tensors of a checkpoint become initializers of the inputs that they name") {
  const OrtCheckpoint checkpoint = read(checkpoint_file());
  onnx::ModelProto proto = sgtc::testing::parse_onnx(
      "<ir_version: 10, opset_import: [\"\" : 21]> g (float[2] x, float[2] w, float[1] frozen) => "
      "(float loss) { a = Mul (x, w) b = Add (a, frozen) loss = ReduceSum <keepdims = 0> (b) }");
  Diagnostics diagnostics;
  const OnnxModel model = OnnxModel::from_proto(proto, "m", ".", diagnostics, &checkpoint);
  const Graph graph = import_graph(model, {}, diagnostics);
  CHECK(graph.feeds.size() == 1);
  CHECK(graph.value(graph.find("w")).role == StateRole::kParameter);
  CHECK(graph.value(graph.find("frozen")).role == StateRole::kFrozen);
  proto.mutable_graph()->mutable_input(1)->set_name("v");
  CHECK_THROWS_WITH(bind_checkpoint(*proto.mutable_graph(), checkpoint),
                    ContainsSubstring("tensor \"w\" is no input of the model"));
  proto = sgtc::testing::parse_onnx(
      "<ir_version: 10, opset_import: [\"\" : 21]> g (float[3] w) => (float[3] y) "
      "{ y = Neg (w) }");
  CHECK_THROWS_WITH(
      bind_checkpoint(*proto.mutable_graph(), checkpoint),
      ContainsSubstring("shape [2]") && ContainsSubstring("differ from the model's input"));
}
