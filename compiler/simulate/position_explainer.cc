#include "simulate/position_explainer.h"

#include <algorithm>
#include <set>

#include "plan/quantities.h"

namespace sgtc {
namespace {

constexpr size_t kSharers = 3;
const std::string kAgain = "again.";

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int64_t end_of(const plan::Buffer& buffer) {
  return buffer.offset + (buffer.count - 1) * buffer.stride + buffer.bytes;
}

}  // namespace

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

PositionExplainer::PositionExplainer(const plan::Plan& plan, const plan::Position& position,
                                     const KernelClock& clock)
    : plan_(plan), position_(position), clock_(clock) {
  for (const plan::Kernel& kernel : plan.kernels) kernels_[kernel.symbol] = &kernel;
  for (const plan::Buffer& buffer : position.buffers) buffers_[buffer.name] = &buffer;
  find_tasks();
  for (size_t t = 0; t < tasks_.size(); ++t) {
    for (const auto* arguments : {&tasks_[t]->inputs, &tasks_[t]->outputs}) {
      visit({t, 0}, *arguments);
    }
    for (size_t c = 0; c < tasks_[t]->calls.size(); ++c) visit({t, c}, call({t, c}).arguments);
  }
}

std::string PositionExplainer::name_of(const CallId& id) const {
  const plan::Task& task = *tasks_[id.task];
  return task.calls.empty() ? task.name : task.name + " call " + std::to_string(id.call);
}

void PositionExplainer::find_tasks() {
  std::map<std::string, const plan::Task*> all;
  for (const plan::Task& task : position_.tasks) all[task.name] = &task;
  std::set<std::string> known;
  for (const char* schedule : {"train", "evaluate"}) {
    const auto entries = position_.schedules.find(schedule);
    if (entries == position_.schedules.end()) continue;
    for (const plan::Entry& entry : entries->second) {
      if (known.insert(entry.task).second) tasks_.push_back(all.at(entry.task));
    }
  }
}

void PositionExplainer::visit(const CallId& id, const std::vector<plan::Argument>& arguments) {
  for (const plan::Argument& argument : arguments) {
    Life& life = lives_[argument.buffer];
    if (!life.is_used) life.first = id;
    life.last = id;
    life.is_used = true;
  }
}

double PositionExplainer::seconds_of(const plan::Call& call) const {
  const plan::Kernel& kernel = *kernels_.at(call.kernel);
  std::vector<std::string> dtypes;
  for (const plan::Argument& argument : call.arguments) {
    dtypes.push_back(buffers_.at(argument.buffer)->dtype);
  }
  return clock_
      .time({kernel.symbol, kernel.kind, rated_dtype(dtypes), kernel.flops, kernel.bytes,
             kernel.blocks})
      .seconds;
}

CallText PositionExplainer::call_text(const CallId& id) const {
  const plan::Call& call = this->call(id);
  const plan::Kernel& kernel = *kernels_.at(call.kernel);
  CallText text;
  text.work = "  " + name_of(id) + " of " + std::to_string(tasks_[id.task]->calls.size()) + ": " +
              kernel.kind + " kernel " + kernel.symbol + ", " + count_text(kernel.flops) +
              " operations, " + bytes_text(kernel.bytes) + ", " + plural(kernel.blocks, "block") +
              ", predicted " + seconds_text(seconds_of(call)) + "\n";
  std::vector<std::string> reads, writes;
  for (size_t a = 0; a < call.arguments.size(); ++a) {
    const std::string& buffer = call.arguments[a].buffer;
    const bool is_read = kernel.access[a] == "read";
    (is_read ? reads : writes).push_back(buffer);
    const bool is_tensor = buffers_.at(buffer)->dtype != "u8" && buffer != "status";
    if (!is_read && is_tensor) text.written.push_back(buffer);
  }
  text.uses = "    reads " + (reads.empty() ? "nothing" : list_text(reads)) + "; writes " +
              list_text(writes) + "\n";
  return text;
}

std::string PositionExplainer::communication_text(const plan::Task& task) const {
  const auto parts_text = [&](const std::vector<plan::Argument>& parts) {
    int64_t bytes = 0;
    std::vector<std::string> names;
    for (const plan::Argument& part : parts) {
      bytes += part.bytes > 0 ? part.bytes : buffers_.at(part.buffer)->bytes;
      if (!has(names, part.buffer)) names.push_back(part.buffer);
    }
    return bytes_text(bytes) + " of " + list_text(names) + "\n";
  };
  std::string text = "  " + task.name + ": " + task.kind + " on " + task.communicator;
  if (task.kind == "send") text += " to position " + std::to_string(task.peer);
  if (task.kind == "receive") text += " from position " + std::to_string(task.peer);
  text += "\n";
  if (!task.inputs.empty()) text += "    reads " + parts_text(task.inputs);
  if (!task.outputs.empty()) text += "    writes " + parts_text(task.outputs);
  return text;
}

std::string PositionExplainer::name_text(const std::string& name) const {
  std::string text;
  std::vector<std::string> tensors;
  for (size_t t = 0; t < tasks_.size(); ++t) {
    for (size_t c = 0; c < tasks_[t]->calls.size(); ++c) {
      std::vector<std::string> nodes = call({t, c}).nodes;
      if (std::erase(nodes, name) == 0) continue;
      const CallText parts = call_text({t, c});
      text += parts.work;
      if (!nodes.empty()) text += "    one kernel with " + list_text(nodes) + "\n";
      text += parts.uses;
      for (const std::string& tensor : parts.written) {
        if (!has(tensors, tensor)) tensors.push_back(tensor);
      }
    }
  }
  if (buffers_.count(name) != 0 && !has(tensors, name)) tensors.push_back(name);
  for (const std::string& tensor : tensors) text += buffer_text(*buffers_.at(tensor));
  return text;
}

std::string PositionExplainer::buffer_text(const plan::Buffer& buffer) const {
  const std::string times = buffer.count > 1 ? " in " + plural(buffer.count, "instance") : "";
  std::string text = "  tensor " + buffer.name + ": " + buffer.dtype + ", " +
                     bytes_text(buffer.bytes) + times + ", " + need_of(buffer) + "\n";
  const std::vector<const plan::Buffer*> sharers = sharers_of(buffer);
  text += "    from byte " + exact_text(buffer.offset) + " of the arena of " +
          bytes_text(position_.arena_bytes);
  if (buffer.scope != "persistent" && sharers.empty()) text += ", which nothing else uses";
  for (size_t s = 0; s < std::min(sharers.size(), kSharers); ++s) {
    const Life& life = lives_.at(sharers[s]->name);
    text += std::string(s == 0 ? ", shared with " : ", ") + sharers[s]->name + " (" +
            name_of(life.first) + " to " + name_of(life.last) + ")";
  }
  if (sharers.size() > kSharers) {
    text += " and " + std::to_string(sharers.size() - kSharers) + " more";
  }
  return text + "\n";
}

std::string PositionExplainer::need_of(const plan::Buffer& buffer) const {
  for (const plan::State& state : plan_.states) {
    if (state.buffer == buffer.name) return state.role + ", there all along";
  }
  const auto found = lives_.find(buffer.name);
  if (found == lives_.end()) return "not used by kernels";
  const Life& life = found->second;
  const std::string span = " from " + name_of(life.first) + " to " + name_of(life.last);
  if (buffer.name.rfind(kAgain, 0) == 0) {
    return "computed again, needed" + span + ": " + buffer.name.substr(kAgain.size()) +
           " is not kept, which saves its bytes in between for each micro-batch in flight";
  }
  const bool crosses = buffer.scope == "slot" && life.first.task != life.last.task;
  return (crosses ? "kept for the backward phase," : "needed") + span;
}

// The largest first.
std::vector<const plan::Buffer*> PositionExplainer::sharers_of(const plan::Buffer& buffer) const {
  std::vector<const plan::Buffer*> sharers;
  for (const plan::Buffer& other : position_.buffers) {
    const bool overlaps = other.offset < end_of(buffer) && buffer.offset < end_of(other);
    if (overlaps && &other != &buffer && lives_.count(other.name) != 0) sharers.push_back(&other);
  }
  std::stable_sort(sharers.begin(), sharers.end(),
                   [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  return sharers;
}

}  // namespace sgtc
