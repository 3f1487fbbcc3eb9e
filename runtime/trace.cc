#include "trace.h"

#include <time.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "durable_file.h"

namespace sgtc::runtime {

namespace {

constexpr int64_t kSteps = 1 << 12;
constexpr int64_t kStepsThread = 1000;  // of the trace; streams are few

double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

// Names a process (the rank) or one of its threads (a stream).
nlohmann::json name_item(const char* what, int64_t rank, int64_t stream, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", stream}, {"args", {{"name", name}}}};
}

nlohmann::json event_item(const Trace::Event& event, int64_t rank) {
  nlohmann::json arguments = {{"stage", event.stage}, {"micro_batch", event.micro_batch}};
  if (event.kernel) arguments["task"] = *event.task;
  return {{"name", event.kernel ? *event.kernel : *event.task},
          {"cat", event.communicates ? "communication" : "compute"},
          {"ph", "X"},
          {"pid", rank},
          {"tid", event.stream},
          {"ts", microseconds(event.begin)},
          {"dur", microseconds(event.end - event.begin)},
          {"args", arguments}};
}

nlohmann::json step_item(int64_t number, const StepOverlap& overlap, int64_t rank) {
  return {{"name", "step " + std::to_string(number)},
          {"cat", "step"},
          {"ph", "X"},
          {"pid", rank},
          {"tid", kStepsThread},
          {"ts", microseconds(overlap.step.begin)},
          {"dur", microseconds(overlap.step.end - overlap.step.begin)},
          {"args",
           {{"communication_us", microseconds(overlap.communication)},
            {"exposed_us", microseconds(overlap.exposed)},
            {"overlap", overlap.ratio()}}}};
}

}  // namespace

Trace::Trace(int64_t capacity, int64_t rank)
    : events_(static_cast<size_t>(capacity)),
      steps_(static_cast<size_t>(std::min(capacity, kSteps))),
      rank_(rank) {}

int64_t Trace::now() const { return monotonic_nanoseconds(); }

void Trace::add(const Event& event) {
  const int64_t number = added_.fetch_add(1, std::memory_order_relaxed);
  events_[static_cast<size_t>(number) % events_.size()] = event;
}

void Trace::end_step(int64_t step) {
  const int64_t first = std::exchange(first_of_step_, added_.load());
  const int64_t capacity = static_cast<int64_t>(events_.size());
  if (first_of_step_ - first > capacity) return;
  std::vector<Span> kernels;
  std::vector<Span> communications;
  for (int64_t i = first; i < first_of_step_; ++i) {
    const Event& event = events_[static_cast<size_t>(i % capacity)];
    (event.communicates ? communications : kernels)
        .push_back({event.begin - event.latency, event.end});
  }
  const StepOverlap overlap = overlap_of(std::move(kernels), std::move(communications));
  steps_[static_cast<size_t>(ended_) % steps_.size()] = {step, overlap};
  if (ended_++ == 0) return;
  record_.add(overlap);
  for (int64_t i = first; i < first_of_step_; ++i) {
    const Event& event = events_[static_cast<size_t>(i % capacity)];
    if (!event.communicates) continue;
    record_.add_start(event.task, event.micro_batch, event.begin - overlap.step.begin);
  }
}

std::string Trace::items() const {
  std::string text = name_item("process_name", rank_, 0, "rank " + std::to_string(rank_)).dump();
  const int64_t added = added_.load();
  const int64_t capacity = static_cast<int64_t>(events_.size());
  std::set<int64_t> streams;
  for (int64_t i = std::max<int64_t>(added - capacity, 0); i < added; ++i) {
    const Event& event = events_[static_cast<size_t>(i % capacity)];
    streams.insert(event.stream);
    text += ",\n" + event_item(event, rank_).dump();
  }
  const int64_t kept = static_cast<int64_t>(steps_.size());
  for (int64_t i = std::max<int64_t>(ended_ - kept, 0); i < ended_; ++i) {
    const Step& step = steps_[static_cast<size_t>(i % kept)];
    text += ",\n" + step_item(step.number, step.overlap, rank_).dump();
  }
  if (ended_ > 0) text += ",\n" + name_item("thread_name", rank_, kStepsThread, "steps").dump();
  for (const int64_t stream : streams) {
    const std::string name = stream == 0 ? "compute" : "stream " + std::to_string(stream);
    text += ",\n" + name_item("thread_name", rank_, stream, name).dump();
  }
  return text;
}

MaybeFailure write_trace(const std::string& path, const std::vector<std::string>& items) {
  std::string text = "{\"traceEvents\":[";
  for (size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "\n" : ",\n") + items[i];
  text += "\n]}\n";
  DurableFile file;
  if (MaybeFailure failure = file.create(path)) return failure;
  if (MaybeFailure failure = file.write(text.data(), static_cast<int64_t>(text.size()))) {
    return failure;
  }
  return file.finish();
}

int64_t monotonic_nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * int64_t{1000000000} + time.tv_nsec;
}

}  // namespace sgtc::runtime
