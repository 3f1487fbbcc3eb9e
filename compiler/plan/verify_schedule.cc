// Group 2 of verify_plan: the entries of each schedule, one by one.
#include "plan/verify_parts.h"

namespace sgtc {
namespace {

struct Place {
  int64_t position;
  const std::string& schedule;
  const std::vector<plan::Entry>& entries;
};

class ScheduleChecker {
 public:
  explicit ScheduleChecker(const ResolvedPlan& plan) : resolved_(plan) {}

  PlanFaults run() {
    for (size_t p = 0; p < resolved_.positions.size(); ++p) {
      for (const auto& [name, entries] : resolved_.plan.positions[p].schedules) {
        const Place place{static_cast<int64_t>(p), name, entries};
        for (size_t e = 0; e < entries.size(); ++e) check_entry(place, static_cast<int64_t>(e));
      }
    }
    return std::move(faults_);
  }

 private:
  void add(const Place& place, int64_t e, const std::string& text, const std::string& buffer = "") {
    const plan::Entry& entry = place.entries[static_cast<size_t>(e)];
    faults_.push_back({place.position, place.schedule, e, entry.task, buffer, text});
  }

  void check_entry(const Place& place, int64_t e) {
    const plan::Entry& entry = place.entries[static_cast<size_t>(e)];
    const auto& tasks = resolved_.positions[static_cast<size_t>(place.position)].tasks;
    const auto task = tasks.find(entry.task);
    if (task == tasks.end()) return add(place, e, "unknown task");
    if (entry.micro_batch < 0 || entry.micro_batch >= resolved_.plan.micro_batches) {
      add(place, e,
          "micro-batch " + std::to_string(entry.micro_batch) + " of " +
              std::to_string(resolved_.plan.micro_batches));
    }
    if (entry.stream < 0) add(place, e, "stream " + std::to_string(entry.stream));
    for (const int64_t wait : entry.waits) {
      if (wait < 0 || wait >= e) {
        add(place, e, "waits for entry " + std::to_string(wait) + ", which is not an earlier one");
      }
    }
    check_group(place, e, *task->second);
    check_instances(place, e, *task->second);
  }

  // A group is a run of adjacent communications in one stream.
  void check_group(const Place& place, int64_t e, const plan::Task& task) {
    const plan::Entry& entry = place.entries[static_cast<size_t>(e)];
    if (entry.group < 0) return;
    if (!is_communication(task)) add(place, e, "a group holds communications only");
    bool left = false;
    for (int64_t before = e - 1; before >= 0; --before) {
      const plan::Entry& other = place.entries[static_cast<size_t>(before)];
      left |= other.group != entry.group;
      if (other.group != entry.group) continue;
      if (left) return add(place, e, "group " + std::to_string(entry.group) + " is not adjacent");
      if (other.stream != entry.stream) return add(place, e, "a group has one stream");
    }
  }

  void check_instances(const Place& place, int64_t e, const plan::Task& task) {
    for (const plan::Call& call : task.calls) check_arguments(place, e, call.arguments);
    check_arguments(place, e, task.inputs);
    check_arguments(place, e, task.outputs);
  }

  void check_arguments(const Place& place, int64_t e,
                       const std::vector<plan::Argument>& arguments) {
    const plan::Entry& entry = place.entries[static_cast<size_t>(e)];
    for (const plan::Argument& argument : arguments) {
      const plan::Buffer& buffer =
          *resolved_.positions[static_cast<size_t>(place.position)].buffers.at(argument.buffer);
      const bool slot = buffer.scope == "slot";
      const int64_t index = slot ? entry.slot : entry.ring;
      if (!slot && buffer.scope != "ring") continue;
      if (index >= 0 && index < buffer.count) continue;
      add(place, e,
          buffer.scope + " " + std::to_string(index) + " of " + std::to_string(buffer.count),
          buffer.name);
    }
  }

  const ResolvedPlan& resolved_;
  PlanFaults faults_;
};

}  // namespace

PlanFaults find_schedule_faults(const ResolvedPlan& plan) { return ScheduleChecker(plan).run(); }

}  // namespace sgtc
