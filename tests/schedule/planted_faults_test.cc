// The checker of plans shares no code with the scheduler. Here it meets plans of random meshes into
// each of which one fault was planted, and has to name the place.
#include <algorithm>
#include <functional>
#include <optional>
#include <random>

#include "mesh_plans.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

using Random = std::mt19937;

size_t below(Random& random, size_t n) { return static_cast<size_t>(random() % n); }

// Where a fault was planted: what a report has to mention.
struct Planted {
  int64_t position = -1;
  std::vector<std::string> tasks;    // one of them
  std::vector<std::string> buffers;  // or one of them
};

const plan::Task& task_of(const plan::Position& position, const std::string& name) {
  return *std::find_if(position.tasks.begin(), position.tasks.end(),
                       [&](const plan::Task& task) { return task.name == name; });
}

// Entries of a position that satisfy a condition.
std::vector<size_t> entries_where(
    const plan::Position& position,
    const std::function<bool(const plan::Entry&, const plan::Task&)>& condition) {
  std::vector<size_t> found;
  const std::vector<plan::Entry>& entries = position.schedules.at("train");
  for (size_t e = 0; e < entries.size(); ++e) {
    if (condition(entries[e], task_of(position, entries[e].task))) found.push_back(e);
  }
  return found;
}

std::vector<plan::Entry>& train_of(plan::Position& position) { return position.schedules["train"]; }

// Removes an entry and keeps the waits of the others.
void remove_entry(std::vector<plan::Entry>& entries, size_t at) {
  const auto gone = static_cast<int64_t>(at);
  entries.erase(entries.begin() + gone);
  for (plan::Entry& entry : entries) {
    std::vector<int64_t> waits;
    for (const int64_t wait : entry.waits) {
      if (wait != gone) waits.push_back(wait > gone ? wait - 1 : wait);
    }
    entry.waits = waits;
  }
}

std::vector<std::string> outputs_of(const plan::Task& task) {
  std::vector<std::string> names;
  for (const plan::Argument& output : task.outputs) names.push_back(output.buffer);
  return names;
}

// A transfer has no partner: its other end is reported, or the next one that no longer fits.
std::optional<Planted> drop_transfer(plan::Plan& plan, Random& random, const std::string& kind) {
  plan::Position& position = plan.positions[below(random, plan.positions.size())];
  const auto found = entries_where(
      position, [&](const plan::Entry&, const plan::Task& task) { return task.kind == kind; });
  if (found.empty()) return std::nullopt;
  const size_t at = found[below(random, found.size())];
  const plan::Task& task = task_of(position, train_of(position)[at].task);
  Planted planted{-1, {task.name}, outputs_of(task)};
  for (const plan::Task& other : plan.positions[static_cast<size_t>(task.peer)].tasks) {
    if (other.communicator == task.communicator) planted.tasks.push_back(other.name);
  }
  remove_entry(train_of(position), at);
  return planted;
}

// Two receives from one peer in the wrong order.
std::optional<Planted> swap_receives(plan::Plan& plan, Random& random) {
  plan::Position& position = plan.positions[below(random, plan.positions.size())];
  const auto found = entries_where(position, [](const plan::Entry&, const plan::Task& task) {
    return task.kind == "receive" && task.communicator != "pp.update";
  });
  if (found.size() < 2) return std::nullopt;
  const size_t at = below(random, found.size() - 1);
  plan::Entry& first = train_of(position)[found[at]];
  plan::Entry& second = train_of(position)[found[at + 1]];
  if (first.task != second.task || first.micro_batch == second.micro_batch) return std::nullopt;
  std::swap(first.micro_batch, second.micro_batch);
  return Planted{-1, {first.task}, {}};
}

// What was received is read without waiting for it.
// Whether a call of `compute` has a buffer as argument that `receive` writes.
bool uses_output(const plan::Task& compute, const plan::Task& receive) {
  return std::any_of(compute.calls.begin(), compute.calls.end(), [&](const plan::Call& call) {
    return std::any_of(call.arguments.begin(), call.arguments.end(), [&](const auto& argument) {
      return std::any_of(receive.outputs.begin(), receive.outputs.end(),
                         [&](const auto& output) { return output.buffer == argument.buffer; });
    });
  });
}

// Whether an earlier entry of the stream of `waiting` waits for the entry `awaited` too, or for a
// later one of its stream.
bool is_awaited_before(const std::vector<plan::Entry>& entries, const plan::Entry& waiting,
                       int64_t awaited) {
  const int64_t stream = entries[static_cast<size_t>(awaited)].stream;
  for (const plan::Entry* entry = entries.data(); entry != &waiting; ++entry) {
    if (entry->stream != waiting.stream) continue;
    for (const int64_t wait : entry->waits) {
      if (wait >= awaited && entries[static_cast<size_t>(wait)].stream == stream) return true;
    }
  }
  return false;
}

std::optional<Planted> drop_wait(plan::Plan& plan, Random& random) {
  plan::Position& position = plan.positions[below(random, plan.positions.size())];
  const std::vector<plan::Entry>& entries = train_of(position);
  const auto found = entries_where(position, [&](const plan::Entry& entry, const plan::Task& task) {
    if (task.kind != "compute" || entry.waits.empty()) return false;
    return std::any_of(entry.waits.begin(), entry.waits.end(), [&](int64_t wait) {
      return task_of(position, entries[static_cast<size_t>(wait)].task).kind == "receive" &&
             !is_awaited_before(entries, entry, wait) &&
             uses_output(task, task_of(position, entries[static_cast<size_t>(wait)].task));
    });
  });
  if (found.empty()) return std::nullopt;
  plan::Entry& entry = train_of(position)[found[below(random, found.size())]];
  entry.waits.clear();
  return Planted{static_cast<int64_t>(&position - plan.positions.data()), {entry.task}, {}};
}

// A buffer lies where another one that is always needed is.
std::optional<Planted> shift_offset(plan::Plan& plan, Random& random) {
  const size_t p = below(random, plan.positions.size());
  plan::Position& position = plan.positions[p];
  std::vector<plan::Buffer*> persistent;
  for (plan::Buffer& buffer : position.buffers) {
    if (buffer.scope == "persistent" && buffer.bytes > 0) persistent.push_back(&buffer);
  }
  plan::Buffer* a = persistent[below(random, persistent.size())];
  plan::Buffer* b = persistent[below(random, persistent.size())];
  if (a == b) return std::nullopt;
  a->offset = b->offset;
  return Planted{static_cast<int64_t>(p), {}, {a->name, b->name}};
}

// A message of another length, a collective of another kind.
std::optional<Planted> shorten_message(plan::Plan& plan, Random& random) {
  plan::Position& position = plan.positions[below(random, plan.positions.size())];
  for (plan::Task& task : position.tasks) {
    if (task.kind != "send" || task.inputs.size() < 2) continue;
    task.inputs.pop_back();
    return Planted{-1, {task.name, "receive_update", "receive_update_1", "receive_update_2"}, {}};
  }
  return std::nullopt;
}

std::optional<Planted> change_reduction(plan::Plan& plan, Random& random) {
  const size_t p = below(random, plan.positions.size());
  for (plan::Task& task : plan.positions[p].tasks) {
    if (task.kind != "all_reduce") continue;
    task.reduce = "mean";
    return Planted{static_cast<int64_t>(p), {task.name}, {}};
  }
  return std::nullopt;
}

// Gradients are reduced before they are complete, without a wait.
std::optional<Planted> reduce_early(plan::Plan& plan, Random& random) {
  const size_t p = below(random, plan.positions.size());
  plan::Position& position = plan.positions[p];
  const auto touches = [&](const plan::Task& task, const std::string& buffer) {
    return std::any_of(task.calls.begin(), task.calls.end(), [&](const plan::Call& call) {
      return std::any_of(call.arguments.begin(), call.arguments.end(),
                         [&](const plan::Argument& part) { return part.buffer == buffer; });
    });
  };
  // Of others an earlier reduction waits long enough.
  const auto found = entries_where(position, [&](const plan::Entry& entry, const plan::Task& task) {
    if (task.name.rfind("reduce_bucket", 0) != 0 || entry.waits.empty()) return false;
    const plan::Entry& last = train_of(position)[static_cast<size_t>(entry.waits.back())];
    const std::vector<std::string> reduced = outputs_of(task);
    return std::any_of(reduced.begin(), reduced.end(), [&](const std::string& buffer) {
      return touches(task_of(position, last.task), buffer);
    });
  });
  if (found.empty()) return std::nullopt;
  plan::Entry& entry = train_of(position)[found[below(random, found.size())]];
  entry.waits.clear();
  std::vector<std::string> touched = outputs_of(task_of(position, entry.task));
  return Planted{static_cast<int64_t>(p), {entry.task}, touched};
}

// A slot that other micro-batches use at the time.
std::optional<Planted> reuse_slot(plan::Plan& plan, Random& random) {
  const size_t p = below(random, plan.positions.size());
  plan::Position& position = plan.positions[p];
  const auto found = entries_where(position, [](const plan::Entry& entry, const plan::Task& task) {
    return task.name == "forward" && entry.slot > 0;
  });
  if (found.empty()) return std::nullopt;
  plan::Entry& entry = train_of(position)[found[below(random, found.size())]];
  entry.slot = 0;
  return Planted{static_cast<int64_t>(p), {}, {}};
}

bool mentions(const PlanFault& fault, const Planted& planted) {
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  if (planted.position >= 0 && fault.position != planted.position) return false;
  if (planted.tasks.empty() && planted.buffers.empty()) return true;
  const bool in_text = std::any_of(
      planted.tasks.begin(), planted.tasks.end(),
      [&](const std::string& task) { return fault.text.find(task) != std::string::npos; });
  return in_text || has(planted.tasks, fault.task) || has(planted.buffers, fault.buffer);
}

}  // namespace

TEST_CASE("a fault that is planted into the plan of a random mesh is named") {
  using Plant = std::function<std::optional<Planted>(plan::Plan&, Random&)>;
  const std::vector<std::pair<std::string, Plant>> faults = {
      {"a dropped send", [](plan::Plan& p, Random& r) { return drop_transfer(p, r, "send"); }},
      {"a dropped receive",
       [](plan::Plan& p, Random& r) { return drop_transfer(p, r, "receive"); }},
      {"swapped receives", swap_receives},
      {"a dropped wait", drop_wait},
      {"a shifted offset", shift_offset},
      {"a shorter message", shorten_message},
      {"an unknown reduction", change_reduction},
      {"an early reduction", reduce_early},
      {"a slot in use", reuse_slot},
  };
  Random random(11);
  std::vector<int> planted_count(faults.size(), 0);
  for (int round = 0; round < 12; ++round) {
    const Mesh mesh{static_cast<int64_t>(1 + below(random, 4)),
                    static_cast<int64_t>(1 + below(random, 3)), 1};
    const plan::Plan sound = plan_on(
        {4 + static_cast<int>(below(random, 4)), mesh, static_cast<int64_t>(1 + below(random, 5)),
         below(random, 2) == 0 ? PipelineSchedule::kGPipe : PipelineSchedule::k1F1B});
    REQUIRE(fault_texts(sound) == "");
    for (size_t f = 0; f < faults.size(); ++f) {
      for (int attempt = 0; attempt < 4; ++attempt) {
        plan::Plan plan = sound;
        const std::optional<Planted> planted = faults[f].second(plan, random);
        if (!planted) continue;
        ++planted_count[f];
        const std::vector<PlanFault> found = verify_plan(plan);
        INFO("round " << round << ", mesh " << to_string(mesh) << ", " << faults[f].first << ": "
                      << (found.empty() ? "nothing found" : to_string(found.front())));
        REQUIRE_FALSE(found.empty());
        CHECK(std::any_of(found.begin(), found.end(),
                          [&](const PlanFault& fault) { return mentions(fault, *planted); }));
      }
    }
  }
  for (size_t f = 0; f < faults.size(); ++f) {
    INFO(faults[f].first);
    CHECK(planted_count[f] > 3);
  }
}
