#include "overlap.h"

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

// Steps with one communication each, which begins so many nanoseconds after its step.
OverlapSummary summary_of_starts(const std::vector<int64_t>& starts) {
  static const std::string task = "reduce.0";
  OverlapRecord record;
  for (const int64_t start : starts) {
    record.add(overlap_of({{0, 1000}}, {{start, start + 10}}));
    record.add_start(&task, 3, start);
  }
  return record.summary();
}

}  // namespace

TEST_CASE("communication is exposed while no kernel runs") {
  // Kernels at [100, 200) and [260, 300); a communication from 150 to 280.
  const StepOverlap overlap = overlap_of({{260, 300}, {100, 200}}, {{150, 280}});
  CHECK(overlap.step.begin == 100);
  CHECK(overlap.step.end == 300);
  CHECK(overlap.communication == 130);
  CHECK(overlap.exposed == 60);
  CHECK(overlap.ratio() == Approx(70.0 / 130));
}

TEST_CASE("spans that overlap count once") {
  const StepOverlap overlap =
      overlap_of({{0, 10}, {5, 20}, {20, 30}}, {{8, 25}, {10, 12}, {24, 40}, {50, 60}});
  CHECK(overlap.communication == 32 + 10);
  CHECK(overlap.exposed == 10 + 10);
  CHECK(overlap.step.end == 60);
}

TEST_CASE("a step without communication exposes none") {
  const StepOverlap overlap = overlap_of({{7, 9}}, {});
  CHECK(overlap.communication == 0);
  CHECK(overlap.exposed == 0);
  CHECK(overlap.ratio() == 1);
  CHECK(overlap.step.begin == 7);
  CHECK(overlap_text({OverlapSummary()}) == "");
}

TEST_CASE("all of it is exposed beside no kernel") {
  CHECK(overlap_of({}, {{3, 5}}).exposed == 2);
  CHECK(overlap_of({}, {{3, 5}}).ratio() == 0);
}

TEST_CASE("jitter is the standard deviation of the start within the step") {
  const OverlapSummary summary = summary_of_starts({100, 200, 300, 400});
  CHECK(summary.steps == 4);
  CHECK(summary.jitter == Approx(129.0994e-9));
  CHECK(summary.varies_most == "reduce.0 of micro-batch 3");
  CHECK(summary_of_starts({100}).varies_most.empty());
  CHECK(summary_of_starts({50, 50, 50}).jitter == 0);
}

TEST_CASE("summaries are means and pass between ranks unchanged") {
  OverlapRecord record;
  record.add(overlap_of({{0, 1000}}, {{900, 1100}}));
  record.add(overlap_of({{0, 3000}}, {{1000, 1400}}));
  const OverlapSummary summary = parse_overlap(to_text(record.summary()));
  CHECK(summary.steps == 2);
  CHECK(summary.step == Approx(2050e-9));
  CHECK(summary.communication == Approx(300e-9));
  CHECK(summary.exposed == Approx(50e-9));
  CHECK(summary.varies_most.empty());
}

TEST_CASE("the rank with most exposed communication is told, and the one that varies most") {
  const OverlapSummary calm = {10, 0.1, 0.02, 0.001, 3e-6, "reduce.0 of micro-batch 0"};
  const OverlapSummary late = {10, 0.1, 0.03, 0.006, 1e-6, "reduce.1 of micro-batch 0"};
  CHECK(overlap_text({calm, late}) ==
        "communication: under way for 30.000 ms of a step of 100.000 ms, 80.0% of that beside "
        "kernels; exposed 6.000 ms, 6.00% of the step (rank 1, the most; means of 10 steps)\n"
        "communication: starts within the step vary by at most 3.0 us (standard deviation; "
        "reduce.0 of micro-batch 0, rank 0)\n");
}

}  // namespace sgtc::runtime
