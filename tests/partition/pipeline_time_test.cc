// Times of pipelines that are simple enough to add up by hand.
#include "partition/pipeline_time.h"

#include "support/catch.h"

using namespace sgtc;

namespace {

// Links of a second forward and two backward, whose transfers take no time.
Chain chain_of(size_t links) {
  Chain chain;
  for (size_t link = 0; link < links; ++link) chain.links.push_back(link);
  chain.forward_seconds.assign(links, 1);
  chain.backward_seconds.assign(links, 2);
  return chain;
}

Chain::Value sent(int32_t made, std::vector<int32_t> readers) {
  return {made, std::move(readers), 1};
}

Hardware fast_links() {
  Hardware hardware = hardware_preset("cpu");
  hardware.host = {1e30, 0, 0};
  return hardware;
}

double seconds(const Chain& chain, const Cuts& cuts, int64_t micro_batches) {
  const Hardware hardware = fast_links();
  return PipelineTime(chain, hardware, PipelineSchedule::k1F1B, micro_batches).seconds(cuts);
}

}  // namespace

TEST_CASE("a balanced pipeline takes its micro-batches and one for each other stage") {
  Chain chain = chain_of(2);
  chain.values = {sent(0, {1}), sent(1, {0})};
  CHECK(seconds(chain, {1}, 1) == 6);
  CHECK(seconds(chain, {1}, 4) == 15);
}

TEST_CASE("a slow last stage costs more than a slow first one") {
  Chain chain = chain_of(4);
  chain.values = {sent(0, {1}), sent(1, {2, 0}), sent(2, {3, 1}), sent(3, {2})};
  // The last one begins after a forward pass and is followed by a backward pass.
  CHECK(seconds(chain, {1}, 4) == 4 * 9 + 3);
  // The first one waits for its first backward pass, after two forward passes.
  CHECK(seconds(chain, {3}, 4) == 4 * 9);
}

TEST_CASE("fewer micro-batches in flight take longer") {
  Chain chain = chain_of(2);
  chain.values = {sent(0, {1}), sent(1, {0})};
  const Hardware hardware = fast_links();
  const PipelineTime time(chain, hardware, PipelineSchedule::k1F1B, 4);
  CHECK(time.seconds({1}, {{1, 2}, {1, 2}}, 1) == 24);
}

TEST_CASE("what skips a stage waits for room where it is read") {
  Chain chain = chain_of(3);
  chain.forward_seconds = {3, 1, 1};
  chain.backward_seconds = {5, 0, 4};
  chain.values = {sent(0, {1}), sent(1, {2}), sent(2, {0})};
  CHECK(seconds(chain, {1, 2}, 3) == 3 * 8);
  // The third forward pass waits for the first backward pass of the last stage, which ends at 9.
  chain.values[0].readers = {1, 2};
  CHECK(seconds(chain, {1, 2}, 3) == 3 * 8 + 3);
}

TEST_CASE("transfers take the time of their bytes") {
  Chain chain = chain_of(2);
  chain.values = {sent(0, {1}), sent(1, {0})};
  Hardware hardware = fast_links();
  hardware.host = {1, 0, 0};
  CHECK(PipelineTime(chain, hardware, PipelineSchedule::k1F1B, 1).seconds({1}) == 8);
}

TEST_CASE("cuts move alone and together and leave no stage empty") {
  CHECK(neighbours({2, 3}, {1, 2, 3, 4}) == std::vector<Cuts>{{1, 3}, {2, 4}, {1, 2}, {3, 4}});
}
