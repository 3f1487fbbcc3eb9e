#include "schedule/pipeline_order.h"

#include "support/catch.h"

using namespace sgtc;

namespace {

std::string text_of(PipelineSchedule schedule, int64_t stages, int64_t stage, int64_t count) {
  return to_text(pipeline_order(schedule, stages, stage, count));
}

}  // namespace

TEST_CASE("1F1B warms up by the stages that follow") {
  CHECK(text_of(PipelineSchedule::k1F1B, 3, 0, 4) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(text_of(PipelineSchedule::k1F1B, 3, 1, 4) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(text_of(PipelineSchedule::k1F1B, 3, 2, 4) == "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST_CASE("1F1B with fewer micro-batches than stages is all of them") {
  CHECK(text_of(PipelineSchedule::k1F1B, 4, 0, 2) == "F0 F1 B0 B1");
  CHECK(text_of(PipelineSchedule::k1F1B, 4, 3, 2) == "F0 B0 F1 B1");
}

TEST_CASE("GPipe computes backward passes in the order of the micro-batches") {
  CHECK(text_of(PipelineSchedule::kGPipe, 2, 0, 3) == "F0 F1 F2 B0 B1 B2");
}

TEST_CASE("fewer micro-batches in flight keep less and wait longer") {
  const auto order = pipeline_order(PipelineSchedule::k1F1B, 4, 0, 4, 2);
  CHECK(to_text(order) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(slots_of(order) == 2);
  CHECK(to_text(pipeline_order(PipelineSchedule::k1F1B, 4, 3, 3, 2)) == "F0 B0 F1 B1 F2 B2");
}

TEST_CASE("slots are the micro-batches under way") {
  CHECK(slots_of(pipeline_order(PipelineSchedule::k1F1B, 4, 0, 8)) == 4);
  CHECK(slots_of(pipeline_order(PipelineSchedule::k1F1B, 4, 3, 8)) == 1);
  CHECK(slots_of(pipeline_order(PipelineSchedule::kGPipe, 4, 3, 8)) == 8);
  CHECK(slots_of(pipeline_order(PipelineSchedule::k1F1B, 4, 0, 1)) == 1);
}
