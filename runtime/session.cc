#include "session.h"

#include <cmath>
#include <cstring>

#include "element_type.h"
#include "failure.h"

namespace sgtc::runtime {

Session::Session(const Program& program, const plan::Plan& plan, int64_t threads, bool poison,
                 const Coordinates& coordinates, RankCommunicators* communicators)
    : plan_(plan),
      coordinates_(coordinates),
      position_(plan.positions[static_cast<size_t>(coordinates.pp)]),
      arena_(position_.arena_bytes),
      memory_(position_, arena_),
      threads_(threads),
      train_(prepare_schedule(plan, coordinates, "train", program, memory_, communicators)),
      evaluate_(prepare_schedule(plan, coordinates, "evaluate", program, memory_, communicators)),
      executor_(threads_, communicators),
      states_(plan, memory_, coordinates.pp) {
  if (poison) arena_.poison();
  for (const plan::Control& control : plan.control) {
    const plan::Buffer& buffer = memory_.buffer("control");
    if (control.offset < 0 || control.offset + size_of_element(control.dtype) > buffer.bytes) {
      die_of_bad_plan("control value " + control.name + " lies outside its buffer");
    }
    control_.push_back({&control, memory_.address(buffer) + control.offset});
  }
  if (const plan::Buffer* buffer = memory_.find("status")) {
    if (buffer->bytes < plan::kStatusBytes) die_of_bad_plan("the status buffer is too small");
    status_ = memory_.address(*buffer);
  }
  loss_ = find_result("loss");
  gradient_norm_ = find_result("grad_norm");
  finite_ = find_result("finite");
}

Session::ResultSource Session::find_result(const char* name) const {
  for (const plan::Result& result : plan_.results) {
    if (result.name != name || result.position != coordinates_.pp) continue;
    return {result.dtype, memory_.address(memory_.buffer(result.buffer))};
  }
  return {};
}

double Session::ResultSource::read() const { return data ? read_element(dtype, data) : 0; }

void Session::begin(const StepControl& control) {
  states_.clear_accumulators();
  if (status_) std::memset(status_, 0, plan::kStatusBytes);
  for (const ControlTarget& target : control_) {
    const std::string& name = target.control->name;
    const std::string& dtype = target.control->dtype;
    if (name == "learning_rate") {
      write_element(dtype, control.learning_rate, target.data);
    } else if (name == "seed" && dtype == "i64") {
      std::memcpy(target.data, &control.seed, sizeof control.seed);
    } else if (name == "step") {
      write_element(dtype, static_cast<double>(control.step), target.data);
    } else {
      die_of_bad_plan("there is no control value " + name + " of " + dtype);
    }
  }
}

void Session::check_status() const {
  if (!status_) return;
  int64_t words[3];
  std::memcpy(words, status_, sizeof words);
  if (words[0] == 0) return;
  const size_t node = static_cast<size_t>(words[0] - 1);
  const bool known = node < plan_.checked_nodes.size();
  die("node " + (known ? plan_.checked_nodes[node] : std::to_string(node)),
      format("index %ld is out of range for extent %ld", static_cast<long>(words[1]),
             static_cast<long>(words[2])),
      "check the index data that is fed");
}

StepResult Session::train_step(const StepControl& control) {
  begin(control);
  executor_.run(train_, control.step, trace_);
  check_status();
  StepResult result;
  result.has_loss = loss_.data != nullptr;
  result.loss = loss_.read();
  result.has_gradient_norm = gradient_norm_.data != nullptr;
  result.gradient_norm = gradient_norm_.read();
  result.finite = finite_.data ? finite_.read() != 0 : std::isfinite(result.loss);
  return result;
}

void Session::evaluate(const StepControl& control) {
  begin(control);
  executor_.run(evaluate_, control.step, nullptr);
  check_status();
}

}  // namespace sgtc::runtime
