#include "executor.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "failure.h"

namespace sgtc::runtime {
namespace {

struct KernelCode {
  const plan::Kernel* kernel = nullptr;
  decltype(SgtcKernel::function) function = nullptr;
};

using KernelCodes = std::unordered_map<std::string_view, KernelCode>;
using Tasks = std::unordered_map<std::string_view, const plan::Task*>;

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

int64_t instance_of(const plan::Buffer& buffer, const plan::Entry& entry) {
  if (buffer.scope == "micro_batch") return entry.micro_batch;
  if (buffer.scope == "slot") return entry.slot;
  if (buffer.scope == "ring") return entry.ring;
  return 0;
}

void* resolve_argument(const plan::Argument& argument, const plan::Entry& entry,
                       const PlanMemory& memory) {
  const plan::Buffer& buffer = memory.buffer(argument.buffer);
  const int64_t offset = argument.offset.at(0, 0);
  if (offset < 0 || argument.bytes < 0 || offset + argument.bytes > buffer.bytes) {
    die_of_bad_plan("an argument lies outside buffer " + buffer.name);
  }
  return memory.address(buffer, instance_of(buffer, entry)) + offset;
}

// Indices of the entries in an order in which each comes after the earlier entries of its stream
// and after those that it waits for. The list's own order is kept where it can be.
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

// Appends one call of `entry`.
void add_call(const plan::Call& call, const plan::Entry& entry, const KernelCodes& codes,
              const PlanMemory& memory, PreparedSchedule& schedule) {
  const auto code = codes.find(call.kernel);
  if (code == codes.end() || !code->second.function) {
    die_of_bad_plan("there is no kernel " + call.kernel);
  }
  // The first rank of the mesh is replica 0, so the global micro-batch is the entry's.
  schedule.calls.push_back({code->second.function, schedule.arguments.size(),
                            code->second.kernel->blocks, entry.micro_batch});
  for (const plan::Argument& argument : call.arguments) {
    schedule.arguments.push_back(resolve_argument(argument, entry, memory));
  }
}

}  // namespace

PreparedSchedule prepare_schedule(const plan::Plan& plan, const plan::Position& position,
                                  const std::string& name, const Program& program,
                                  const PlanMemory& memory) {
  PreparedSchedule schedule;
  const auto found = position.schedules.find(name);
  if (found == position.schedules.end()) return schedule;
  const KernelCodes codes = resolve_kernels(plan, program);
  Tasks tasks;
  for (const plan::Task& task : position.tasks) tasks[task.name] = &task;
  for (size_t index : execution_order(found->second)) {
    const plan::Entry& entry = found->second[index];
    const auto task = tasks.find(entry.task);
    if (task == tasks.end()) die_of_bad_plan("there is no task " + entry.task);
    if (task->second->kind != "compute") {
      die_of_bad_plan("task " + entry.task + " communicates in a program for one rank");
    }
    schedule.entries.push_back({&task->second->name, task->second->stage, entry.stream,
                                entry.micro_batch, schedule.calls.size(),
                                task->second->calls.size()});
    for (const plan::Call& call : task->second->calls) {
      add_call(call, entry, codes, memory, schedule);
    }
  }
  return schedule;
}

void run_schedule(const PreparedSchedule& schedule, ThreadPool& threads, Trace* trace) {
  for (const PreparedSchedule::Entry& entry : schedule.entries) {
    const int64_t begin = trace ? trace->now() : 0;
    for (size_t i = entry.first_call; i < entry.first_call + entry.call_count; ++i) {
      const PreparedSchedule::Call& call = schedule.calls[i];
      threads.run(call.function, schedule.arguments.data() + call.first_argument, call.blocks,
                  call.micro_batch);
    }
    if (trace) {
      trace->add({entry.task, entry.stage, entry.stream, entry.micro_batch, begin, trace->now()});
    }
  }
}

}  // namespace sgtc::runtime
