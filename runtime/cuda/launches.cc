#include "cuda/launches.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "cuda/access_order.h"
#include "failure.h"

namespace sgtc::runtime::cuda {
namespace {

using Ends = std::vector<size_t>;  // the launches after which something is done

void add_all(Ends& all, const Ends& more) {
  all.insert(all.end(), more.begin(), more.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

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
  // The launches of one stream so far.
  struct Stream {
    AccessOrder order;
    Ends waited;  // of other streams
    Ends last;    // that no other launch of the stream follows
  };

  void add_entry(const plan::Entry& entry, size_t index) {
    const plan::Task& task = resolver_.task(entry);
    if (task.kind != "compute") {
      die("task " + task.name, "communicates, which programs for GPUs cannot do",
          "compile with --mesh 1x1 or --target cpu");
    }
    Stream& stream = streams_[entry.stream];
    for (const int64_t wait : entry.waits) add_all(stream.waited, ends_[static_cast<size_t>(wait)]);
    for (const plan::Call& call : task.calls) add_launch(call, entry, task, stream);
    ends_[index] = stream.waited;
    add_all(ends_[index], stream.last);
  }

  // What its memory orders within the stream, and all that the stream waits for.
  Ends order(const Launch& launch, Stream& stream) {
    std::vector<Access> accesses;
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      accesses.push_back({launch.arguments[i], launch.kernel->access[i] != "read"});
    }
    const size_t number = launches_.size();
    Ends after = stream.order.add(number, accesses);
    const auto followed = [&](size_t end) {
      return std::binary_search(after.begin(), after.end(), end);
    };
    stream.last.erase(std::remove_if(stream.last.begin(), stream.last.end(), followed),
                      stream.last.end());
    stream.last.push_back(number);
    add_all(after, stream.waited);
    return after;
  }

  void add_launch(const plan::Call& call, const plan::Entry& entry, const plan::Task& task,
                  Stream& stream) {
    const auto kernel = kernels_.find(call.kernel);
    if (kernel == kernels_.end()) die_of_bad_plan("there is no kernel " + call.kernel);
    Launch launch;
    launch.kernel = kernel->second;
    launch.task = &task.name;
    launch.micro_batch = entry.micro_batch;
    launch.global_micro_batch = resolver_.global_micro_batch(entry);
    for (const plan::Argument& argument : call.arguments) {
      launch.arguments.push_back(resolver_.range(argument, entry));
    }
    if (launch.kernel->access.size() != launch.arguments.size()) {
      die_of_bad_plan("kernel " + call.kernel + " takes other arguments than task " + task.name);
    }
    launch.after = order(launch, stream);
    launches_.push_back(std::move(launch));
  }

  const EntryResolver resolver_;
  std::unordered_map<std::string_view, const plan::Kernel*> kernels_;
  std::vector<Launch> launches_;
  std::vector<Ends> ends_;  // by index of the entry
  std::map<int64_t, Stream> streams_;
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
