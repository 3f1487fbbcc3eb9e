#include "simulate/explain.h"

#include <algorithm>
#include <cctype>
#include <compare>
#include <map>
#include <set>
#include <vector>

#include "cost/kernel_time.h"
#include "plan/quantities.h"
#include "simulate/job.h"
#include "simulate/simulate.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr size_t kSuggestions = 5;
constexpr size_t kSharers = 3;
const std::string kAgain = "again.";

// A call of a task that a position runs, or a communication.
struct CallId {
  size_t task = 0;  // in the order in which a step begins them
  size_t call = 0;
  auto operator<=>(const CallId&) const = default;
};

struct Life {
  CallId first, last;
  bool is_used = false;
};

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

class PositionExplainer {
 public:
  PositionExplainer(const plan::Plan& plan, const plan::Position& position,
                    const KernelClock& clock)
      : plan_(plan), position_(position), clock_(clock) {
    for (const plan::Kernel& kernel : plan.kernels) kernels_[kernel.symbol] = &kernel;
    for (const plan::Buffer& buffer : position.buffers) buffers_[buffer.name] = &buffer;
    find_tasks();
    for (size_t t = 0; t < tasks_.size(); ++t) {
      for (const auto* arguments : {&tasks_[t]->inputs, &tasks_[t]->outputs})
        visit({t, 0}, *arguments);
      for (size_t c = 0; c < tasks_[t]->calls.size(); ++c) visit({t, c}, call({t, c}).arguments);
    }
  }

  // Lines about the node or tensor; nothing if the position has neither.
  std::string run(const std::string& name) {
    std::vector<std::string> written;
    for (size_t t = 0; t < tasks_.size(); ++t) {
      for (size_t c = 0; c < tasks_[t]->calls.size(); ++c) {
        if (has(call({t, c}).nodes, name)) write_call({t, c}, name, written);
      }
    }
    if (buffers_.count(name) != 0 && !has(written, name)) written.push_back(name);
    for (const std::string& buffer : written) write_buffer(*buffers_.at(buffer));
    return std::move(text_);
  }

 private:
  void line(const std::string& text) { text_ += text + "\n"; }

  const plan::Call& call(const CallId& id) const { return tasks_[id.task]->calls[id.call]; }

  std::string name_of(const CallId& id) const {
    const plan::Task& task = *tasks_[id.task];
    return task.calls.empty() ? task.name : task.name + " call " + std::to_string(id.call);
  }

  void find_tasks() {
    std::set<std::string> known;
    for (const char* schedule : {"train", "evaluate"}) {
      const auto entries = position_.schedules.find(schedule);
      if (entries == position_.schedules.end()) continue;
      for (const plan::Entry& entry : entries->second) {
        if (!known.insert(entry.task).second) continue;
        tasks_.push_back(
            &*std::find_if(position_.tasks.begin(), position_.tasks.end(),
                           [&](const plan::Task& task) { return task.name == entry.task; }));
      }
    }
  }

  void visit(const CallId& id, const std::vector<plan::Argument>& arguments) {
    for (const plan::Argument& argument : arguments) {
      Life& life = lives_[argument.buffer];
      if (!life.is_used) life.first = id;
      life.last = id;
      life.is_used = true;
    }
  }

  std::string dtype_of(const plan::Call& call) const {
    std::vector<std::string> dtypes;
    for (const plan::Argument& argument : call.arguments) {
      dtypes.push_back(buffers_.at(argument.buffer)->dtype);
    }
    return rated_dtype(dtypes);
  }

  double seconds_of(const plan::Call& call) const {
    const plan::Kernel& kernel = *kernels_.at(call.kernel);
    return clock_
        .time(
            {kernel.symbol, kernel.kind, dtype_of(call), kernel.flops, kernel.bytes, kernel.blocks})
        .seconds;
  }

  void write_call(const CallId& id, const std::string& name, std::vector<std::string>& written) {
    const plan::Call& call = this->call(id);
    const plan::Kernel& kernel = *kernels_.at(call.kernel);
    line("  " + name_of(id) + " of " + std::to_string(tasks_[id.task]->calls.size()) + ": " +
         kernel.kind + " kernel " + kernel.symbol + ", " + count_text(kernel.flops) +
         " operations, " + bytes_text(kernel.bytes) + ", " + plural(kernel.blocks, "block") +
         ", predicted " + seconds_text(seconds_of(call)));
    std::vector<std::string> others = call.nodes;
    std::erase(others, name);
    if (!others.empty()) line("    one kernel with " + list(others));
    std::vector<std::string> reads, writes;
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const std::string& buffer = call.arguments[a].buffer;
      const bool is_read = kernel.access[a] == "read";
      (is_read ? reads : writes).push_back(buffer);
      const bool is_tensor = buffers_.at(buffer)->dtype != "u8" && buffer != "status";
      if (!is_read && is_tensor && !has(written, buffer)) written.push_back(buffer);
    }
    line("    reads " + (reads.empty() ? "nothing" : list(reads)) + "; writes " + list(writes));
  }

  void write_buffer(const plan::Buffer& buffer) {
    const std::string times = buffer.count > 1 ? " in " + plural(buffer.count, "instance") : "";
    line("  tensor " + buffer.name + ": " + buffer.dtype + ", " + bytes_text(buffer.bytes) + times +
         ", " + need_of(buffer));
    const std::vector<const plan::Buffer*> sharers = sharers_of(buffer);
    std::string text = "    from byte " + exact_text(buffer.offset) + " of the arena of " +
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
    line(text);
  }

  std::string need_of(const plan::Buffer& buffer) const {
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

  static int64_t end_of(const plan::Buffer& buffer) {
    return buffer.offset + (buffer.count - 1) * buffer.stride + buffer.bytes;
  }

  // The largest first.
  std::vector<const plan::Buffer*> sharers_of(const plan::Buffer& buffer) const {
    std::vector<const plan::Buffer*> sharers;
    for (const plan::Buffer& other : position_.buffers) {
      const bool overlaps = other.offset < end_of(buffer) && buffer.offset < end_of(other);
      if (overlaps && &other != &buffer && lives_.count(other.name) != 0) sharers.push_back(&other);
    }
    std::stable_sort(sharers.begin(), sharers.end(),
                     [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
    return sharers;
  }

  const plan::Plan& plan_;
  const plan::Position& position_;
  const KernelClock& clock_;
  std::map<std::string, const plan::Kernel*> kernels_;
  std::map<std::string, const plan::Buffer*> buffers_;
  std::vector<const plan::Task*> tasks_;
  std::map<std::string, Life> lives_;  // by buffer
  std::string text_;
};

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

[[noreturn]] void refuse(const plan::Plan& plan, const std::string& name) {
  std::set<std::string> names;
  for (const plan::Kernel& kernel : plan.kernels) {
    names.insert(kernel.nodes.begin(), kernel.nodes.end());
  }
  std::vector<std::string> alike;
  for (const std::string& known : names) {
    const bool is_alike = lowered(known).find(lowered(name)) != std::string::npos;
    if (is_alike && alike.size() < kSuggestions) alike.push_back(known);
  }
  throw Error("\"" + name + "\": the plan has no kernel of a node and no tensor of that name" +
              (alike.empty() ? "; --emit-plan prints the names" : "; it has " + list(alike)));
}

// Where the stages are cut, and what that was weighed against.
std::string stage_text(const plan::Plan& plan, const Simulation& simulation, size_t p) {
  const plan::Position& position = plan.positions[p];
  std::string text = "position " + std::to_string(p) + " of " +
                     std::to_string(plan.positions.size()) + ", peak " +
                     bytes_text(simulation.positions[p].peak_live_bytes) + " live";
  if (plan.positions.size() == 1) return text + ": the pipeline has one stage\n";
  std::vector<std::string> stages;
  for (const int64_t stage : position.stages) stages.push_back(std::to_string(stage));
  text += ", stage " + list(stages) + ": computes " +
          seconds_text(simulation.positions[p].computing) + " of a step; all stages:";
  for (const SimulatedPosition& other : simulation.positions) {
    text += " " + seconds_text(other.computing);
  }
  return text + ": the forward phase is cut where the slowest stage is fastest\n";
}

}  // namespace

std::string explain(const plan::Plan& plan, const Hardware& hardware, const std::string& name) {
  const KernelClock clock(hardware, hardware.units_of_rank(RankLayout(plan, hardware).size()));
  const Simulation simulation = simulate(plan, hardware);
  std::string text;
  for (size_t p = 0; p < plan.positions.size(); ++p) {
    const std::string found = PositionExplainer(plan, plan.positions[p], clock).run(name);
    if (!found.empty()) text += stage_text(plan, simulation, p) + found;
  }
  if (text.empty()) refuse(plan, name);
  return text;
}

}  // namespace sgtc
