#include "prepared_schedule.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "schedule_entries.h"

namespace sgtc::runtime {
namespace {

struct KernelCode {
  const plan::Kernel* kernel = nullptr;
  decltype(SgtcKernel::function) function = nullptr;
};

using KernelCodes = std::unordered_map<std::string_view, KernelCode>;

// The kernels of the plan with the code that the program holds for them.
KernelCodes resolve_kernels(const plan::Plan& plan, const Program& program) {
  KernelCodes codes;
  for (const plan::Kernel& kernel : plan.kernels) codes[kernel.symbol].kernel = &kernel;
  for (int64_t i = 0; i < program.kernel_count; ++i) {
    const auto found = codes.find(program.kernels[i].symbol);
    if (found != codes.end()) found->second.function = program.kernels[i].function;
  }
  return codes;
}

class Preparation {
 public:
  Preparation(const plan::Plan& plan, const Coordinates& coordinates, const Program& program,
              const PlanMemory& memory, const RankCommunicators* communicators)
      : codes_(resolve_kernels(plan, program)),
        resolver_(plan, coordinates, memory),
        communicators_(communicators) {}

  PreparedSchedule run(const std::vector<plan::Entry>& entries) {
    places_.resize(entries.size());
    for (const size_t index : execution_order(entries)) {
      const plan::Entry& entry = entries[index];
      const plan::Task& task = resolver_.task(entry);
      if (task.kind == "compute") {
        add_computation(entry, task, index);
      } else {
        add_communication(entry, task, index);
      }
      last_of_stream_[entry.stream] = index;
    }
    for (const auto& operation : schedule_.owned_operations) {
      schedule_.operations.push_back(operation.get());
    }
    return std::move(schedule_);
  }

 private:
  // Where an entry went: the how manieth computation or issue it is, from 1.
  struct Place {
    bool communicates = false;
    uint32_t number = 0;
  };

  PreparedSchedule::Entry describe(const plan::Entry& entry, const plan::Task& task) const {
    return {&task.name, task.stage, entry.stream, entry.micro_batch};
  }

  // The last entry of the other thread that `entry` comes after.
  uint32_t last_before(const plan::Entry& entry, bool communicates) const {
    uint32_t last = 0;
    const auto look_at = [&](size_t index) {
      const Place& place = places_[index];
      if (place.communicates != communicates) last = std::max(last, place.number);
    };
    for (const int64_t wait : entry.waits) look_at(static_cast<size_t>(wait));
    const auto before = last_of_stream_.find(entry.stream);
    if (before != last_of_stream_.end()) look_at(before->second);
    return last;
  }

  void add_computation(const plan::Entry& entry, const plan::Task& task, size_t index) {
    schedule_.computations.push_back({describe(entry, task), schedule_.calls.size(),
                                      task.calls.size(), last_before(entry, false)});
    places_[index] = {false, static_cast<uint32_t>(schedule_.computations.size())};
    for (const plan::Call& call : task.calls) add_call(call, entry);
  }

  void add_call(const plan::Call& call, const plan::Entry& entry) {
    const auto code = codes_.find(call.kernel);
    if (code == codes_.end() || !code->second.function) {
      die_of_bad_plan("there is no kernel " + call.kernel);
    }
    schedule_.calls.push_back({code->second.kernel, code->second.function,
                               schedule_.arguments.size(), code->second.kernel->blocks,
                               resolver_.global_micro_batch(entry)});
    for (const plan::Argument& argument : call.arguments) {
      const MemoryRange range = resolver_.range(argument, entry);
      schedule_.arguments.push_back(range.data);
      schedule_.argument_bytes.push_back(range.bytes);
    }
  }

  void add_communication(const plan::Entry& entry, const plan::Task& task, size_t index) {
    const bool joins = entry.group >= 0 && entry.group == last_group_;
    if (!joins) schedule_.issues.push_back({schedule_.communications.size(), 0, 0});
    last_group_ = entry.group;
    PreparedSchedule::Issue& issue = schedule_.issues.back();
    issue.after = std::max(issue.after, last_before(entry, true));
    ++issue.count;
    places_[index] = {true, static_cast<uint32_t>(schedule_.issues.size())};
    schedule_.communications.push_back(describe(entry, task));
    schedule_.owned_operations.push_back(prepare_operation(entry, task));
  }

  std::unique_ptr<Operation> prepare_operation(const plan::Entry& entry, const plan::Task& task) {
    Communicator* communicator = communicators_ ? communicators_->find(task.communicator) : nullptr;
    if (!communicator) {
      die_of_bad_plan("task " + task.name + " communicates over \"" + task.communicator +
                      "\", which this rank is not a member of");
    }
    return communicator->prepare(resolver_.request(entry));
  }

  const KernelCodes codes_;
  const EntryResolver resolver_;
  const RankCommunicators* communicators_;
  PreparedSchedule schedule_;
  std::vector<Place> places_;                 // by index of the entry
  std::map<int64_t, size_t> last_of_stream_;  // index of the entry
  int64_t last_group_ = -1;
};

}  // namespace

PreparedSchedule prepare_schedule(const plan::Plan& plan, const Coordinates& coordinates,
                                  const std::string& name, const Program& program,
                                  const PlanMemory& memory,
                                  const RankCommunicators* communicators) {
  const plan::Position& position = plan.positions[static_cast<size_t>(coordinates.pp)];
  const auto found = position.schedules.find(name);
  if (found == position.schedules.end()) return {};
  return Preparation(plan, coordinates, program, memory, communicators).run(found->second);
}

}  // namespace sgtc::runtime
