#include "runtime/states.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/element_type.h"
#include "runtime/random.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

// States of one position, one behind the other.
class InitialStates {
 public:
  void add(const std::string& name, const std::string& dtype, int64_t elements,
           const std::string& init, double a = 0, double b = 0, int64_t shards = 1) {
    const int64_t bytes = elements / shards * size_of_element(dtype);
    plan::State state;
    state.name = state.buffer = name;
    state.role = shards == 1 ? "parameter" : "moment";
    state.shards = shards;
    state.dtype = dtype;
    state.shape = {elements};
    state.init = init;
    state.a = a;
    state.b = b;
    plan_.states.push_back(state);
    position_.buffers.push_back(
        {name, "persistent", dtype, {elements / shards}, bytes, bytes_, 0, 1});
    bytes_ += (bytes + 63) / 64 * 64;
  }

  // The bytes of all states, from memory that held something else.
  std::vector<unsigned char> initialized(int64_t threads, int64_t seed = 5,
                                         int64_t replica = 0) const {
    Arena arena(bytes_);
    std::memset(arena.data(), 0x5a, static_cast<size_t>(bytes_));
    const PlanMemory memory(position_, arena);
    ThreadPool pool(threads);
    States(plan_, memory, {0, replica, 0}).initialize(Weights(Program{}), seed, pool);
    return {arena.data(), arena.data() + bytes_};
  }

 private:
  plan::Plan plan_ = [] {
    plan::Plan plan;
    plan.positions.resize(1);
    return plan;
  }();
  plan::Position position_;
  int64_t bytes_ = 0;
};

}  // namespace

TEST_CASE("random initial values are those of their key, with any number of threads") {
  constexpr int64_t kElements = 200001;
  InitialStates states;
  states.add("w", "f32", kElements, "normal", 1, 2);
  std::vector<double> expected(kElements);
  fill_normal(random_key(5, "w"), 1, 2, kElements, expected.data(), 0);
  for (const int64_t threads : {1, 2, 5}) {
    const std::vector<unsigned char> bytes = states.initialized(threads);
    const float* values = reinterpret_cast<const float*>(bytes.data());
    int64_t different = 0;
    for (int64_t i = 0; i < kElements; ++i) {
      different += values[i] != static_cast<float>(expected[static_cast<size_t>(i)]);
    }
    CHECK(different == 0);
  }
}

TEST_CASE("shards of a random state are its parts") {
  constexpr int64_t kElements = 300000;
  InitialStates whole;
  whole.add("m", "f32", kElements, "normal", 1, 2);
  const std::vector<unsigned char> expected = whole.initialized(2);
  InitialStates shard;
  shard.add("m", "f32", kElements, "normal", 1, 2, 3);
  constexpr int64_t kBytes = kElements / 3 * 4;
  for (const int64_t replica : {0, 1, 2}) {
    const std::vector<unsigned char> part = shard.initialized(2, 5, replica);
    CHECK(std::memcmp(part.data(), expected.data() + replica * kBytes, kBytes) == 0);
  }
}

TEST_CASE("states of all kinds are filled to their last element") {
  InitialStates states;
  states.add("zeros", "f32", 70000, "zero");
  states.add("twos", "f64", 3, "fill", 2);
  states.add("between", "f32", 65537, "uniform", -1, 1);
  states.add("nothing", "f32", 0, "normal");
  const std::vector<unsigned char> bytes = states.initialized(3);
  const float* zeros = reinterpret_cast<const float*>(bytes.data());
  CHECK(std::all_of(zeros, zeros + 70000, [](float value) { return value == 0; }));
  const double* twos = reinterpret_cast<const double*>(bytes.data() + 280000);
  CHECK(std::all_of(twos, twos + 3, [](double value) { return value == 2; }));
  const float* between = reinterpret_cast<const float*>(bytes.data() + 280000 + 64);
  CHECK(std::all_of(between, between + 65537,
                    [](float value) { return value >= -1 && value <= 1 && value != 0; }));
  CHECK(states.initialized(1) == bytes);
  CHECK(states.initialized(1, 6) != bytes);
}

}  // namespace sgtc::runtime
