#include "runtime/data_set.h"

#include <cstring>
#include <numeric>

#include "runtime/child.h"
#include "runtime/plan_loader.h"
#include "runtime/temporary_folder.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

plan::Plan plan_with(std::vector<plan::Feed> feeds, int64_t rows, int64_t micro_batches = 1) {
  plan::Plan plan;
  plan.feeds = std::move(feeds);
  plan.micro_batch_rows = rows;
  plan.micro_batches = micro_batches;
  plan.positions.resize(1);
  return plan;
}

std::vector<float> counting(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

// What binding says; "" if it works.
std::string problem(const plan::Plan& plan, const std::vector<NamedFile>& files) {
  const std::vector<DataFile> opened = open_data_files(files);
  DataSet data;
  const MaybeFailure failure = data.bind(plan, opened);
  return failure ? failure->object + ": " + failure->problem + "; " + failure->remedy : "";
}

// Tokens 0 … count-1 as raw uint16, or behind llm.c's header.
std::string write_tokens(const std::string& path, int64_t count, bool header, int32_t promised) {
  std::vector<uint16_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), uint16_t{0});
  std::vector<int32_t> words(256);
  words[0] = 20240520, words[1] = 1, words[2] = promised;
  write_file(path, (header ? bytes_of(words) : std::string()) + bytes_of(tokens));
  return path;
}

}  // namespace

TEST_CASE("samples lie along the first dimension and convert without loss") {
  const TemporaryFolder folder;
  const plan::Plan plan = plan_with({{"x", "f32", {2, 3}, 0, ""}, {"y", "i64", {2}, 0, ""}}, 2);
  write_npy(folder / "x.npy", "f32", {5, 3}, counting(15));
  write_npy<int32_t>(folder / "y.npy", "i32", {5}, {5, 6, 7, 8, 9});
  const auto files = open_data_files({{{"x"}, folder / "x.npy"}, {{"y"}, folder / "y.npy"}});
  DataSet data;
  REQUIRE_FALSE(data.bind(plan, files));
  CHECK(data.samples() == 5);
  CHECK(data.tokens_per_sample() == 0);

  plan::Position position;
  position.arena_bytes = 256;
  position.buffers = {{"x", "micro_batch", "f32", {2, 3}, 24, 0, 64, 2},
                      {"y", "micro_batch", "i64", {2}, 16, 128, 64, 2}};
  const Arena arena(position.arena_bytes);
  const PlanMemory memory(position, arena);
  const Feeder feeder(plan, data, memory);
  feeder.load_row(1, 1, 4, 1);
  float x[3];
  int64_t y;
  std::memcpy(x, arena.data() + 64 + 12, sizeof x);
  std::memcpy(&y, arena.data() + 128 + 64 + 8, sizeof y);
  CHECK(x[0] == 12);
  CHECK(x[2] == 14);
  CHECK(y == 9);
}

TEST_CASE("what does not fit an input is refused with what was expected and found") {
  const TemporaryFolder folder;
  const plan::Plan plan = plan_with({{"x", "f32", {2, 3}, 0, ""}, {"y", "i64", {2}, 0, ""}}, 2);
  const std::string x = write_npy(folder / "x.npy", "f32", {5, 3}, counting(15));
  const std::string y = write_npy<int64_t>(folder / "y.npy", "i64", {5}, {0, 1, 2, 3, 4});
  CHECK(problem(plan, {{{"x"}, x}, {{"y"}, y}}).empty());
  CHECK(problem(plan, {{{"x"}, x}}) ==
        "input y: has no data; give --data y=FILE.npy with i64 of shape [samples]");
  CHECK(problem(plan, {{{"z"}, x}}) == x + ": the program has no input z; its inputs are: x, y");

  const std::string wide = write_npy(folder / "w.npy", "f32", {5, 4}, counting(20));
  CHECK(problem(plan, {{{"x"}, wide}}) ==
        wide +
            ": input x expects shape [samples,3], found [5,4]; the first dimension counts "
            "samples");
  const std::string doubles =
      write_npy<double>(folder / "d.npy", "f64", {5, 3}, std::vector<double>(15));
  CHECK(problem(plan, {{{"x"}, doubles}}) ==
        doubles +
            ": input x expects f32, found f64; convert the array with "
            "astype(numpy.float32)");
  const std::string fewer = write_npy<int64_t>(folder / "f.npy", "i64", {4}, {0, 1, 2, 3});
  CHECK(problem(plan, {{{"x"}, x}, {{"y"}, fewer}}) ==
        "inputs x and y: have 5 and 4 samples; give all inputs equally many");
  const std::string none = write_npy<float>(folder / "n.npy", "f32", {0, 3}, {});
  CHECK(problem(plan, {{{"x"}, none}}).find("has no samples for input x") != std::string::npos);
}

TEST_CASE("a sample may have several rows of an input") {
  const TemporaryFolder folder;
  const plan::Plan plan = plan_with({{"x", "f32", {2, 3}, 0, ""}, {"y", "f32", {6}, 0, ""}}, 2);
  write_npy(folder / "x.npy", "f32", {4, 3}, counting(12));
  write_npy(folder / "y.npy", "f32", {12}, counting(12));
  CHECK(problem(plan, {{{"x"}, folder / "x.npy"}, {{"y"}, folder / "y.npy"}}).empty());
  write_npy(folder / "y.npy", "f32", {13}, counting(13));
  CHECK(problem(plan, {{{"x"}, folder / "x.npy"}, {{"y"}, folder / "y.npy"}})
            .find("expects shape [samples*3], found [13]") != std::string::npos);
}

TEST_CASE("scalars are constants of the run, as shape [] or [1]") {
  const TemporaryFolder folder;
  write_npy(folder / "x.npy", "f32", {5, 3}, counting(15));
  write_npy<float>(folder / "s.npy", "f32", {1}, {2.5F});
  write_npy<float>(folder / "t.npy", "f32", {}, {2.5F});
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{}, {1}}) {
    for (int64_t rows : {1, 2}) {
      const plan::Plan plan =
          plan_with({{"x", "f32", {rows, 3}, 0, ""}, {"s", "f32", shape, 0, ""}}, rows);
      for (const char* name : {"s.npy", "t.npy"}) {
        INFO(shape_text(shape) << " " << rows << " " << name);
        CHECK(problem(plan, {{{"x"}, folder / "x.npy"}, {{"s"}, folder / name}}).empty());
      }
    }
  }
}

TEST_CASE("a token stream gives windows and the same shifted by one") {
  const TemporaryFolder folder;
  const plan::Plan plan =
      plan_with({{"ids", "i64", {2, 4}, 0, ""}, {"next", "i32", {2, 4}, 0, ""}}, 2);
  for (bool header : {false, true}) {
    write_tokens(folder / "t.bin", 14, header, 14);
    const auto files = open_data_files({{{"ids", "next"}, folder / "t.bin"}});
    DataSet data;
    REQUIRE_FALSE(data.bind(plan, files));
    CHECK(data.samples() == 3);
    CHECK(data.tokens_per_sample() == 4);
    int64_t ids[4];
    int32_t next[4];
    const DataSet::Source& x = data.sources()[0];
    const DataSet::Source& y = data.sources()[1];
    x.converter(x.data + 2 * x.stride, 4, reinterpret_cast<unsigned char*>(ids));
    y.converter(y.data + 2 * y.stride, 4, reinterpret_cast<unsigned char*>(next));
    CHECK(ids[0] == 8);
    CHECK(ids[3] == 11);
    CHECK(next[0] == 9);
    CHECK(next[3] == 12);
  }
}

TEST_CASE("token files that are damaged or too short are refused") {
  const TemporaryFolder folder;
  const plan::Plan plan = plan_with({{"a", "i64", {1, 4}, 0, ""}, {"b", "i64", {1, 4}, 0, ""}}, 1);
  const std::string path = write_tokens(folder / "t.bin", 4, false, 0);
  CHECK(problem(plan, {{{"a", "b"}, path}}) ==
        path + ": holds 4 tokens, expected at least 5 for one window of input a; ");
  write_tokens(path, 10, true, 11);
  const ChildResult cut = run_child([&] { return problem(plan, {{{"a", "b"}, path}}).size(); });
  CHECK(cut.errors == "error: " + path + ": is cut off: its header promises 11 tokens, found 10\n");
  write_file(path, "odd");
  const ChildResult odd = run_child([&] { return problem(plan, {{{"a", "b"}, path}}).size(); });
  CHECK(odd.errors.find("has an odd number of bytes") != std::string::npos);
}

TEST_CASE("the plan is chosen whose steps use all samples") {
  const TemporaryFolder folder;
  std::vector<plan::Plan> plans = {plan_with({{"x", "f32", {4, 1}, 0, ""}}, 4),
                                   plan_with({{"x", "f32", {7, 1}, 0, ""}}, 7)};
  plans[0].dims["B"] = 4;
  plans[1].dims["B"] = 7;
  const auto chosen = [&](int64_t samples, const Options& options) {
    write_npy(folder / "x.npy", "f32", {samples, 1}, counting(samples));
    const auto files = open_data_files({{{"x"}, folder / "x.npy"}});
    DataSet data;
    const plan::Plan& plan =
        choose_plan(plans, options.ranks > 0 ? options.ranks : 1, options, files, data);
    CHECK(data.samples() == samples);
    return plan.dims.at("B");
  };
  CHECK(chosen(4, {}) == 4);
  CHECK(chosen(7, {}) == 7);
  CHECK(chosen(8, {}) == 4);
  CHECK(chosen(28, {}) == 7);
  CHECK(chosen(5, {}) == 4);
  Options options;
  options.dims["B"] = 4;
  CHECK(chosen(7, options) == 4);
  options.dims["B"] = 5;
  CHECK(run_child([&] { return static_cast<int>(chosen(7, options)); }).errors ==
        "error: --dim: no plan has this size; compiled are: B=4; B=7\n");
  Options two;
  two.ranks = 2;
  CHECK(run_child([&] {
          return static_cast<int>(chosen(7, two));
        }).errors.find("compiled for 1x1 (1 rank), found 2") != std::string::npos);
}

}  // namespace sgtc::runtime
