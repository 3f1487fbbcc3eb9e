#include "runtime/reporter.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

StepReport example() {
  StepReport report;
  report.step = 120;
  report.steps = 5000;
  report.has_loss = true;
  report.loss = 3.412345;
  report.has_gradient_norm = true;
  report.gradient_norm = 0.81;
  report.has_learning_rate = true;
  report.learning_rate = 3e-4;
  report.milliseconds = 412.3;
  report.samples = 128;
  report.memory = int64_t{61} << 30;
  report.memory_total = int64_t{79} << 30;
  report.seconds_left = 33 * 60;
  return report;
}

std::string step_line(const StepReport& report) {
  char text[512];
  format_step_line(report, text, sizeof text);
  return text;
}

nlohmann::json log_line(const StepReport& report) {
  char text[512];
  const int length = format_log_line(report, text, sizeof text);
  CHECK(text[length - 1] == '\n');
  return nlohmann::json::parse(text);
}

}  // namespace

TEST_CASE("the step line has its documented form") {
  StepReport report = example();
  CHECK(step_line(report) ==
        "step 120/5000 | loss 3.412345 | gnorm 0.81 | lr 3.0e-04 | 412.3 ms | 310 samples/s | "
        "peak 61.0/79.0 GiB | eta 33m");
  report.tokens = 128 * 1024;
  report.skipped = true;
  report.skipped_total = 2;
  report.seconds_left = 2 * 3600 + 5 * 60;
  CHECK(step_line(report) ==
        "step 120/5000 | loss 3.412345 | gnorm 0.81 | lr 3.0e-04 | 412.3 ms | 317,904 tok/s | "
        "peak 61.0/79.0 GiB | skipped (2 so far) | eta 2h05m");
}

TEST_CASE("what a program does not have is left out") {
  StepReport report = example();
  report.has_gradient_norm = false;
  report.samples = 0;
  report.memory = int64_t{30} << 20;
  report.seconds_left = 7;
  CHECK(step_line(report) ==
        "step 120/5000 | loss 3.412345 | lr 3.0e-04 | 412.3 ms | peak 0.03/79.0 GiB | eta 7s");
}

TEST_CASE("a line that is too long is cut off inside its buffer") {
  char text[16];
  CHECK(format_step_line(example(), text, sizeof text) == 15);
  CHECK(std::string(text) == "step 120/5000 |");
}

TEST_CASE("numbers of the log read back exactly") {
  StepReport report = example();
  for (double loss : {0.1, 1.0 / 3, 1e-300, 5e-324, 123456789.123456789, -0.0}) {
    report.loss = loss;
    CHECK(log_line(report)["loss"].get<double>() == loss);
  }
  const nlohmann::json line = log_line(report);
  CHECK(line["step"] == 120);
  CHECK(line["lr"] == 3e-4);
  CHECK(line["skipped"] == false);
  CHECK(line["samples_per_s"].get<double>() == Approx(128 / 0.4123));
}

TEST_CASE("NaN and infinities are strings in the log") {
  StepReport report = example();
  report.loss = std::nan("");
  report.gradient_norm = std::numeric_limits<double>::infinity();
  CHECK(log_line(report)["loss"] == "NaN");
  CHECK(log_line(report)["grad_norm"] == "Infinity");
}

}  // namespace sgtc::runtime
