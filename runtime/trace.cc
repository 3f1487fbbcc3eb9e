#include "trace.h"

#include <time.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "durable_file.h"

namespace sgtc::runtime {

Trace::Trace(int64_t capacity) : events_(static_cast<size_t>(capacity)) {}

int64_t Trace::now() const { return monotonic_nanoseconds(); }

void Trace::add(const Event& event) {
  events_[static_cast<size_t>(added_) % events_.size()] = event;
  ++added_;
}

MaybeFailure Trace::write(const std::string& path) const {
  DurableFile file;
  if (MaybeFailure failure = file.create(path)) return failure;
  const int64_t capacity = static_cast<int64_t>(events_.size());
  std::string text = "{\"traceEvents\":[";
  const int64_t first = std::max<int64_t>(added_ - capacity, 0);
  for (int64_t i = first; i < added_; ++i) {
    const Event& event = events_[static_cast<size_t>(i % capacity)];
    const nlohmann::json item = {
        {"name", *event.task},
        {"ph", "X"},
        {"pid", 0},
        {"tid", event.stream},
        {"ts", static_cast<double>(event.begin) * 1e-3},
        {"dur", static_cast<double>(event.end - event.begin) * 1e-3},
        {"args", {{"stage", event.stage}, {"micro_batch", event.micro_batch}}}};
    text += (i == first ? "\n" : ",\n") + item.dump();
  }
  text += "\n]}\n";
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
