#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <vector>

#include "support/catch.h"
#include "support/copy_on_write.h"
#include "support/diagnostics.h"
#include "support/dtype.h"
#include "support/file.h"
#include "support/glob.h"
#include "support/half.h"
#include "support/inline_vector.h"
#include "support/layer_name.h"
#include "support/parallel.h"
#include "support/sha256.h"

using namespace sgtc;

namespace {

namespace fs = std::filesystem;

// A folder that is removed with its contents.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "sgtc-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

template <typename Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("sha256 gives the digests of the standard") {
  CHECK(sha256_hex(std::string_view("")) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex(std::string_view("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex(std::string_view("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256 does not depend on how the bytes are cut") {
  const std::string text(300, 'x');
  for (size_t cut = 0; cut <= 130; ++cut) {
    Sha256 hash;
    hash.update(std::string_view(text).substr(0, cut));
    hash.update(std::string_view(text).substr(cut));
    CHECK(hash.hex_digest() == sha256_hex(text));
  }
}

TEST_CASE("every binary16 number survives the way through double") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      if (!std::isnan(half_to_float(half_from_double(value)))) FAIL(bits);
    } else if (half_from_double(value) != half) {
      FAIL(bits);
    }
  }
  SUCCEED();
}

TEST_CASE("binary16 rounds to nearest even, once") {
  CHECK(half_from_double(1.0) == 0x3c00);
  CHECK(half_from_double(65504.0) == 0x7bff);
  CHECK(half_from_double(65519.9) == 0x7bff);
  CHECK(half_from_double(65520.0) == 0x7c00);
  CHECK(half_from_double(0x1p-24) == 1);
  CHECK(half_from_double(0x1p-25) == 0);
  CHECK(half_from_double(0x1.8p-24) == 2);
  CHECK(half_from_double(-0x1.000001p-25) == 0x8001);
  CHECK(half_from_double(1 + 0x1p-11) == 0x3c00);            // a tie goes to even
  CHECK(half_from_double(1 + 0x1p-11 + 0x1p-40) == 0x3c01);  // not a tie in double
  CHECK(half_from_double(1 + 3 * 0x1p-11) == 0x3c02);
  CHECK(half_from_double(-0.0) == 0x8000);
}

TEST_CASE("bfloat16 rounds to nearest even, once") {
  CHECK(bfloat_from_float(1.0f) == 0x3f80);
  CHECK(bfloat_from_float(1 + 0x1p-8f) == 0x3f80);
  CHECK(bfloat_from_float(1 + 3 * 0x1p-8f) == 0x3f82);
  CHECK(bfloat_from_double(1 + 0x1p-8 + 0x1p-40) == 0x3f81);  // a tie after rounding to float
  CHECK(bfloat_from_double(-1 - 0x1p-8 + 0x1p-40) == 0xbf80);
  CHECK(bfloat_from_double(1e39) == 0x7f80);
  CHECK(bfloat_from_double(-std::numeric_limits<double>::infinity()) == 0xff80);
  CHECK(std::isnan(bfloat_to_float(bfloat_from_double(std::nan("")))));
  CHECK(bfloat_from_double(1e-60) == 0);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = bfloat_to_float(static_cast<uint16_t>(bits));
    if (!std::isnan(value) && bfloat_from_double(value) != bits) FAIL(bits);
  }
}

TEST_CASE("patterns match whole names") {
  CHECK(glob_matches("*", ""));
  CHECK(glob_matches("*.weight", "layer.0.weight"));
  CHECK(!glob_matches("*.weight", "layer.0.weight.m"));
  CHECK(glob_matches("h.?.attn*", "h.3.attn/c_proj"));
  CHECK(!glob_matches("h.?.attn*", "h.13.attn"));
  CHECK(glob_matches("[a-c]x[!0-9]", "bxz"));
  CHECK(!glob_matches("[a-c]x[!0-9]", "bx7"));
  CHECK(glob_matches("[]x]", "]"));
  CHECK(glob_matches("a[b", "a[b"));
  CHECK(glob_matches("a\\*", "a*"));
  CHECK(!glob_matches("a\\*", "ab"));
  CHECK(glob_matches("\\", "\\"));
  CHECK(!glob_matches("", "a"));
  CHECK(glob_matches("*a*b*", "xxaxxbxx"));
}

TEST_CASE("a pattern of many stars takes no exponential time") {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  CHECK(!glob_matches(pattern + "b", std::string(2000, 'a')));
}

TEST_CASE("parallel_for runs every index once on any number of threads") {
  for (const int jobs : {0, 1, 3, 16}) {
    std::vector<std::atomic<int>> calls(100);
    parallel_for(100, jobs, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
    for (const auto& count : calls) CHECK(count == 1);
  }
  parallel_for(0, 4, [](int64_t) { FAIL("called"); });
}

TEST_CASE("parallel_for passes an exception on") {
  CHECK(error_of([] {
          parallel_for(20, 4, [](int64_t i) {
            if (i == 3) throw Error("three");
          });
        }) == "three");
}

TEST_CASE("a written file has its contents and permissions and no temporary beside it") {
  const Folder folder;
  write_file(folder / "a", "first");
  write_file(folder / "a", std::string("sec\0nd", 6), 0755);
  CHECK(read_file(folder / "a") == std::string("sec\0nd", 6));
  struct stat status = {};
  REQUIRE(stat((folder / "a").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0755);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a failed write leaves nothing") {
  const Folder folder;
  fs::create_directory(folder / "taken");
  CHECK(error_of([&] { write_file(folder / "taken", "x"); }).find("cannot replace the file") !=
        std::string::npos);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
  CHECK(error_of([&] { write_file(folder / "none/x", "x"); }) ==
        (folder / "none/x") +
            ": cannot create a temporary file beside it: No such file or directory");
}

TEST_CASE("reading names the file and the reason") {
  const Folder folder;
  CHECK(error_of([&] { read_file(folder / "none"); }) ==
        (folder / "none") + ": cannot open the file: No such file or directory");
  CHECK(error_of([&] { read_file(folder.path()); }) ==
        folder.path().string() + ": expected a file, found a directory");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(error_of([&] { MappedFile::open(folder / "pipe"); }) ==
        (folder / "pipe") + ": expected a regular file, found another kind");
}

TEST_CASE("a mapped file shows the bytes, also none") {
  const Folder folder;
  write_file(folder / "a", "abc");
  write_file(folder / "empty", "");
  const auto mapped = MappedFile::open(folder / "a");
  REQUIRE(mapped->bytes().size() == 3);
  CHECK(mapped->bytes()[2] == std::byte{'c'});
  CHECK(MappedFile::open(folder / "empty")->bytes().empty());
}

TEST_CASE("diagnostics are collected and thrown together") {
  Diagnostics diagnostics;
  diagnostics.warning("w", "not an error");
  CHECK_NOTHROW(diagnostics.checkpoint());
  diagnostics.error("node a", "first");
  diagnostics.error("", "second");
  CHECK(error_of([&] { diagnostics.checkpoint(); }) == "node a: first\nsecond");
}

TEST_CASE("dtypes have names and sizes") {
  for (int i = 0; i <= static_cast<int>(DType::kFloat64); ++i) {
    const auto dtype = static_cast<DType>(i);
    CHECK(dtype_from_name(name_of(dtype)) == dtype);
  }
  CHECK(!dtype_from_name("float"));
  CHECK(size_of(DType::kBFloat16) == 2);
  CHECK(is_float(DType::kFloat16));
  CHECK(!is_integer(DType::kBool));
  CHECK(is_unsigned(DType::kUInt8));
}

TEST_CASE("layers are named up to the first number") {
  CHECK(layer_of("/transformer/h.0/attn/MatMul") == "transformer.h.0");
  CHECK(layer_of("transformer.h.11.attn.weight") == "transformer.h.11");
  CHECK(layer_of("fc1.weight") == "fc1");
  CHECK(layer_of("update of m.h.1.weight") == "m.h.1");
  CHECK(layer_of("MatMul_3") == "other");
  CHECK(layer_of("") == "other");
}

TEST_CASE("short lists grow, shrink and are compared like long ones") {
  InlineVector<int, 2> list;
  for (int i = 0; i < 5; ++i) list.push_back(i);
  CHECK(std::vector<int>(list.begin(), list.end()) == std::vector<int>{0, 1, 2, 3, 4});
  const InlineVector<int, 2> copy = list;
  list.erase(list.begin() + 1);
  list.erase(list.begin() + 3);
  CHECK(list == InlineVector<int, 2>{0, 2, 3});
  list.resize(1, 7);
  CHECK(list == InlineVector<int, 2>{0});
  list.push_back(list[0]);
  list.push_back(list[1]);
  CHECK(list == InlineVector<int, 2>(3, 0));
  CHECK(copy.size() == 5);
  CHECK(copy[4] == 4);
  CHECK(InlineVector<int, 2>().empty());
  InlineVector<int, 2> moved = copy;
  const InlineVector<int, 2> target = std::move(moved);
  CHECK(target == copy);
  CHECK(moved.empty());  // NOLINT(bugprone-use-after-move): it says what is left
  CHECK(moved.begin() == moved.end());
}

TEST_CASE("a copy that is changed leaves the others as they are") {
  using Words = CopyOnWrite<std::vector<std::string>>;
  CHECK(Words()->empty());
  Words first(std::vector<std::string>{"a"});
  Words second = first;
  CHECK(first.shares(second));
  second.own().push_back("b");
  CHECK(*first == std::vector<std::string>{"a"});
  CHECK(*second == std::vector<std::string>{"a", "b"});
}
