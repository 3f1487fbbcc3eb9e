// Simulations as text and as timelines.
#include "simulate/report.h"

#include <nlohmann/json.hpp>

#include "pipeline_plan.h"
#include "support/catch.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a report shows step, bubble, positions and links") {
  const plan::Plan plan = pipeline_plan(PipelineSchedule::kGPipe, 2, 3, 2);
  const Hardware hardware = test_cpu(4, 4);
  const std::string text = report_text(plan, hardware, simulate(plan, hardware));
  CHECK_THAT(text, ContainsSubstring("simulation of train on test (4 cores, 4 ranks per host)\n"));
  CHECK_THAT(text, ContainsSubstring("  mesh          pp=2,dp=2,tp=1 (4 ranks, 2 simulated)\n"));
  CHECK_THAT(text, ContainsSubstring("  step          1200.0 s\n"));
  CHECK_THAT(text, ContainsSubstring("  bubble        25.0%\n"));
  CHECK_THAT(text, ContainsSubstring("    pp.forward                  0     1         3"));
}

TEST_CASE("a report shows the links that carry most and the sum of the others") {
  const plan::Plan plan = pipeline_plan(PipelineSchedule::kGPipe, 12, 1);
  const Hardware hardware = test_cpu(12, 12);
  const std::string text = report_text(plan, hardware, simulate(plan, hardware));
  // 22 links of 8 bytes.
  CHECK_THAT(text,
             ContainsSubstring("    and 6 more                                  6          48 B"));
}

TEST_CASE("a timeline has an event per entry and a counter of live bytes") {
  const plan::Plan plan = pipeline_plan(PipelineSchedule::k1F1B, 2, 2);
  const auto json = nlohmann::json::parse(trace_json(plan, simulate(plan, test_cpu(2, 2))));
  size_t events = 0;
  size_t counters = 0;
  for (const auto& item : json.at("traceEvents")) {
    events += item.at("ph") == "X" ? 1 : 0;
    counters += item.at("ph") == "C" ? 1 : 0;
    if (item.at("ph") != "X" || item.at("name") != "backward") continue;
    CHECK(item.at("dur") == 200e6);
  }
  size_t entries = 0;
  for (const plan::Position& position : plan.positions) {
    entries += position.schedules.at("train").size();
  }
  CHECK(events == entries);
  CHECK(counters > 0);
}
