#include "cuda/launches.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>

#include "failure.h"

namespace sgtc::runtime::cuda {
namespace {

using Ends = std::vector<size_t>;  // the launches after which something is done

class Lister {
 public:
  Lister(const plan::Plan& plan, const Coordinates& coordinates, const PlanMemory& memory)
      : resolver_(plan, coordinates, memory) {
    for (const plan::Kernel& kernel : plan.kernels) kernels_[kernel.symbol] = &kernel;
  }

  std::vector<Launch> run(const std::vector<plan::Entry>& entries) {
    ends_.resize(entries.size());
    for (const size_t index : execution_order(entries)) add_entry(entries[index], index);
    return std::move(launches_);
  }

 private:
  void add_entry(const plan::Entry& entry, size_t index) {
    const plan::Task& task = resolver_.task(entry);
    Ends ends = before(entry);
    if (task.kind == "compute") {
      for (const plan::Call& call : task.calls) {
        add_launch(call, entry, task, std::move(ends));
        ends = {launches_.size() - 1};
      }
    } else {
      add_communication(entry, task, std::move(ends));
      ends = last_communication_;
    }
    ends_[index] = ends;
    stream_ends_[entry.stream] = std::move(ends);
  }

  Ends before(const plan::Entry& entry) {
    Ends all = stream_ends_[entry.stream];
    for (const int64_t wait : entry.waits) {
      const Ends& ends = ends_[static_cast<size_t>(wait)];
      all.insert(all.end(), ends.begin(), ends.end());
    }
    return without_repeats(std::move(all));
  }

  static Ends without_repeats(Ends ends) {
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    return ends;
  }

  void add_launch(const plan::Call& call, const plan::Entry& entry, const plan::Task& task,
                  Ends after) {
    const auto kernel = kernels_.find(call.kernel);
    if (kernel == kernels_.end()) die_of_bad_plan("there is no kernel " + call.kernel);
    Launch launch;
    launch.kernel = kernel->second;
    launch.task = &task.name;
    launch.stream = entry.stream;
    launch.micro_batch = entry.micro_batch;
    launch.global_micro_batch = resolver_.global_micro_batch(entry);
    launch.after = std::move(after);
    for (const plan::Argument& argument : call.arguments) {
      launch.arguments.push_back(resolver_.range(argument, entry));
    }
    launches_.push_back(std::move(launch));
  }

  // An entry of the same group as the one before joins its launch.
  void add_communication(const plan::Entry& entry, const plan::Task& task, Ends after) {
    const bool joins = entry.group >= 0 && entry.group == last_group_;
    last_group_ = entry.group;
    if (!joins) {
      Launch launch;
      launch.task = &task.name;
      launch.stream = entry.stream;
      launch.micro_batch = entry.micro_batch;
      launch.after = last_communication_;
      last_communication_ = {launches_.size()};
      launches_.push_back(std::move(launch));
    }
    const size_t own = last_communication_.front();
    Ends& all = launches_[own].after;
    std::copy_if(after.begin(), after.end(), std::back_inserter(all),
                 [&](size_t end) { return end != own; });
    all = without_repeats(std::move(all));
    launches_[own].communications.push_back({&entry, &task.communicator, resolver_.request(entry)});
  }

  const EntryResolver resolver_;
  std::unordered_map<std::string_view, const plan::Kernel*> kernels_;
  std::vector<Launch> launches_;
  std::vector<Ends> ends_;               // by index of the entry
  std::map<int64_t, Ends> stream_ends_;  // of its last entry
  Ends last_communication_;              // none or one
  int64_t last_group_ = -1;
};

}  // namespace

std::vector<Launch> list_launches(const plan::Plan& plan, const Coordinates& coordinates,
                                  const std::string& name, const PlanMemory& memory) {
  const plan::Position& position = plan.positions[static_cast<size_t>(coordinates.pp)];
  const auto found = position.schedules.find(name);
  if (found == position.schedules.end()) return {};
  return Lister(plan, coordinates, memory).run(found->second);
}

}  // namespace sgtc::runtime::cuda
