#include "session.h"

#include <cmath>
#include <cstring>

#include "element_type.h"
#include "failure.h"
#include "launch/job.h"

namespace sgtc::runtime {
namespace {

// While it lives the device works, or is waited for.
class DeviceTurn {
 public:
  explicit DeviceTurn(Job* job) : job_(job) {
    if (job_) job_->begin_device();
  }
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;
  ~DeviceTurn() {
    if (job_) job_->end_device();
  }

 private:
  Job* const job_;
};

}  // namespace

Session::Session(const Program& program, const plan::Plan& plan, const SessionOptions& options)
    : plan_(plan),
      options_(options),
      arena_(plan.positions[static_cast<size_t>(options.coordinates.pp)].arena_bytes,
             host_bytes(plan, options.coordinates.pp)),
      memory_(plan.positions[static_cast<size_t>(options.coordinates.pp)], arena_),
      states_(plan, memory_, options.coordinates),
      device_(
          make_device({program, plan, options_.coordinates, arena_, memory_, states_,
                       options.communicators, options.peers, options.threads, options.local_rank,
                       options.local_size, options.poison, options.check_accesses})) {
  find_control();
  if (const plan::Buffer* buffer = memory_.find("status")) {
    if (buffer->bytes < plan::kStatusBytes) die_of_bad_plan("the status buffer is too small");
    status_ = device_->observe({memory_.address(*buffer), plan::kStatusBytes});
  }
  loss_ = observe_result("loss");
  gradient_norm_ = observe_result("grad_norm");
  finite_ = observe_result("finite");
}

void Session::find_control() {
  for (const plan::Control& control : plan_.control) {
    const plan::Buffer& buffer = memory_.buffer("control");
    if (control.offset < 0 || control.offset + size_of_element(control.dtype) > buffer.bytes) {
      die_of_bad_plan("control value " + control.name + " lies outside its buffer");
    }
    control_.push_back({&control, memory_.address(buffer) + control.offset});
  }
}

Session::ResultSource Session::observe_result(const char* name) {
  for (const plan::Result& result : plan_.results) {
    if (result.name != name || result.position != coordinates().pp) continue;
    unsigned char* data = memory_.address(memory_.buffer(result.buffer));
    return {result.dtype, device_->observe({data, size_of_element(result.dtype)})};
  }
  return {};
}

void Session::upload_states() {
  for (const MemoryRange& range : states_.lasting()) device_->upload(range);
}

void Session::download_states() {
  for (const MemoryRange& range : states_.lasting()) device_->download(range);
}

double Session::ResultSource::read() const { return data ? read_element(dtype, data) : 0; }

void Session::write_control(const StepControl& control) {
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

void Session::await_inputs() {
  const DeviceTurn turn(options_.job);
  device_->await_inputs();
}

void Session::start_step(const StepControl& control) {
  write_control(control);
  const DeviceTurn turn(options_.job);
  device_->start(ScheduleKind::train, control.step);
}

StepResult Session::finish_step() {
  finish();
  StepResult result;
  result.has_loss = loss_.data != nullptr;
  result.loss = loss_.read();
  result.has_gradient_norm = gradient_norm_.data != nullptr;
  result.gradient_norm = gradient_norm_.read();
  result.finite = finite_.data ? finite_.read() != 0 : std::isfinite(result.loss);
  return result;
}

void Session::evaluate(const StepControl& control) {
  write_control(control);
  {
    const DeviceTurn turn(options_.job);
    device_->start(ScheduleKind::evaluate, control.step);
  }
  finish();
}

void Session::finish() {
  {
    const DeviceTurn turn(options_.job);
    device_->finish();
  }
  check_status();
}

const unsigned char* Session::fetch(const plan::Buffer& buffer, int64_t instance) {
  unsigned char* data = memory_.address(buffer, instance);
  device_->download({data, buffer.bytes});
  return data;
}

}  // namespace sgtc::runtime
