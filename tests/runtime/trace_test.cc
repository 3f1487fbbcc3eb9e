#include "trace.h"

#include <nlohmann/json.hpp>

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

const std::string kCompute = "forward";
const std::string kReduce = "reduce";

Trace::Event compute(int64_t begin, int64_t end, int64_t latency = 0) {
  Trace::Event event;
  event.task = &kCompute;
  event.begin = begin;
  event.end = end;
  event.latency = latency;
  return event;
}

Trace::Event reduce(int64_t begin, int64_t end) {
  Trace::Event event = compute(begin, end);
  event.task = &kReduce;
  event.stream = 2;
  event.communicates = true;
  return event;
}

std::vector<nlohmann::json> items_of(const Trace& trace, const std::string& category) {
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& item : nlohmann::json::parse("[" + trace.items() + "]")) {
    if (item.value("cat", "") == category) found.push_back(item);
  }
  return found;
}

}  // namespace

TEST_CASE("a trace tells what communication cost each step") {
  Trace trace(100, 3);
  for (const int64_t step : {5, 6}) {
    trace.add(compute(1000, 3000));
    trace.add(reduce(2000, 5000));
    trace.end_step(step);
  }
  const std::vector<nlohmann::json> steps = items_of(trace, "step");
  REQUIRE(steps.size() == 2);
  CHECK(steps[0]["name"] == "step 5");
  CHECK(steps[1]["pid"] == 3);
  CHECK(steps[1]["ts"] == 1);
  CHECK(steps[1]["dur"] == 4);
  CHECK(steps[1]["args"]["communication_us"] == 3);
  CHECK(steps[1]["args"]["exposed_us"] == 2);
  CHECK(steps[1]["args"]["overlap"].get<double>() == Approx(1.0 / 3));
  CHECK(items_of(trace, "communication").size() == 2);
  CHECK(items_of(trace, "compute")[0]["name"] == "forward");
  CHECK(trace.overlap().steps == 1);  // the first is left out
}

TEST_CASE("what a kernel needs to begin is not for communication to answer for") {
  Trace trace(100);
  trace.add(compute(1000, 2000));
  trace.add(compute(2500, 3000, 500));
  trace.add(reduce(1500, 2800));
  trace.end_step(1);
  CHECK(items_of(trace, "step")[0]["args"]["exposed_us"] == 0);
  CHECK(items_of(trace, "compute")[1]["ts"] == 2.5);
}

TEST_CASE("the events that came last are kept, and the figures of all steps") {
  Trace trace(4);
  for (int64_t step = 0; step < 50; ++step) {
    trace.add(compute(step * 100, step * 100 + 50));
    trace.add(reduce(step * 100 + 40, step * 100 + 60));
    trace.end_step(step);
  }
  CHECK(items_of(trace, "compute").size() == 2);
  CHECK(items_of(trace, "step").size() == 4);
  CHECK(trace.overlap().steps == 49);
  CHECK(trace.overlap().exposed == Approx(10e-9));
}

TEST_CASE("a step of more events than are kept has no figures") {
  Trace trace(2);
  for (int64_t i = 0; i < 3; ++i) trace.add(compute(i, i + 1));
  trace.end_step(1);
  CHECK(items_of(trace, "step").empty());
  CHECK(items_of(trace, "compute").size() == 2);
}

}  // namespace sgtc::runtime
