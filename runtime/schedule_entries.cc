#include "schedule_entries.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace sgtc::runtime {
namespace {

int64_t instance_of(const plan::Buffer& buffer, const plan::Entry& entry) {
  if (buffer.scope == "micro_batch") return entry.micro_batch;
  if (buffer.scope == "slot") return entry.slot;
  if (buffer.scope == "ring") return entry.ring;
  return 0;
}

CommunicationKind kind_of(const plan::Task& task) {
  static constexpr std::pair<std::string_view, CommunicationKind> kKinds[] = {
      {"send", CommunicationKind::send},
      {"receive", CommunicationKind::receive},
      {"all_reduce", CommunicationKind::all_reduce},
      {"reduce_scatter", CommunicationKind::reduce_scatter},
      {"all_gather", CommunicationKind::all_gather},
      {"broadcast", CommunicationKind::broadcast}};
  for (const auto& [name, kind] : kKinds) {
    if (name == task.kind) return kind;
  }
  die_of_bad_plan("task " + task.name + " is of unknown kind " + task.kind);
}

}  // namespace

std::vector<size_t> execution_order(const std::vector<plan::Entry>& entries) {
  const size_t count = entries.size();
  std::map<int64_t, std::vector<size_t>> streams;
  for (size_t i = 0; i < count; ++i) streams[entries[i].stream].push_back(i);
  std::map<int64_t, size_t> next;
  std::vector<bool> done(count, false);
  std::vector<size_t> order;
  const auto ready = [&](size_t index) {
    return std::all_of(entries[index].waits.begin(), entries[index].waits.end(), [&](int64_t wait) {
      if (wait < 0 || wait >= static_cast<int64_t>(count))
        die_of_bad_plan("a wait is for no entry");
      return done[static_cast<size_t>(wait)];
    });
  };
  while (order.size() < count) {
    size_t best = count;
    for (const auto& [stream, list] : streams) {
      const size_t position = next[stream];
      if (position < list.size() && ready(list[position])) best = std::min(best, list[position]);
    }
    if (best == count) die_of_bad_plan("entries of a schedule wait for each other");
    done[best] = true;
    ++next[entries[best].stream];
    order.push_back(best);
  }
  return order;
}

EntryResolver::EntryResolver(const plan::Plan& plan, const Coordinates& coordinates,
                             const PlanMemory& memory)
    : coordinates_(coordinates),
      first_micro_batch_(coordinates.dp * plan.micro_batches),
      memory_(memory) {
  for (const plan::Task& task : plan.positions[static_cast<size_t>(coordinates.pp)].tasks) {
    tasks_[task.name] = &task;
  }
}

const plan::Task& EntryResolver::task(const plan::Entry& entry) const {
  const auto task = tasks_.find(entry.task);
  if (task == tasks_.end()) die_of_bad_plan("there is no task " + entry.task);
  return *task->second;
}

MemoryRange EntryResolver::range(const plan::Argument& argument, const plan::Entry& entry) const {
  const plan::Buffer& buffer = memory_.buffer(argument.buffer);
  const int64_t offset = argument.offset.at(coordinates_.dp, coordinates_.tp);
  if (offset < 0 || argument.bytes < 0 || offset + argument.bytes > buffer.bytes) {
    die_of_bad_plan("an argument lies outside buffer " + buffer.name);
  }
  return {memory_.address(buffer, instance_of(buffer, entry)) + offset,
          argument.bytes > 0 ? argument.bytes : buffer.bytes - offset};
}

CommunicationRequest EntryResolver::request(const plan::Entry& entry) const {
  const plan::Task& task = this->task(entry);
  CommunicationRequest request;
  request.kind = kind_of(task);
  request.peer = task.peer;
  request.dtype = task.dtype;
  request.reduction = task.reduce == "max" ? Reduction::max : Reduction::sum;
  const auto add = [&](const plan::Argument& argument, std::vector<Part>& parts) {
    const MemoryRange range = this->range(argument, entry);
    parts.push_back({range.data, range.bytes});
  };
  for (const plan::Argument& part : task.inputs) add(part, request.inputs);
  for (const plan::Argument& part : task.outputs) add(part, request.outputs);
  return request;
}

int64_t EntryResolver::global_micro_batch(const plan::Entry& entry) const {
  return first_micro_batch_ + entry.micro_batch;
}

}  // namespace sgtc::runtime
