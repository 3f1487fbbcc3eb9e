#include "schedule/lifetimes.h"

#include <algorithm>
#include <array>
#include <set>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr size_t kPhases = 5;

// The part of a step that is repeated as a whole: the prologue alone (with what comes before it,
// once), forward with backward, the update (once).
int part_of(Phase phase) {
  if (phase <= Phase::kPrologue) return 0;
  return phase == Phase::kUpdate ? 2 : 1;
}

struct Use {
  std::array<bool, kPhases> phases{};
  std::set<size_t> tasks;
  bool transferred = false;  // by a send or receive of forward or backward
  bool collected = false;    // by a collective
  int64_t first = INT64_MAX;
  int64_t last = -1;
  bool in(Phase phase) const { return phases[static_cast<size_t>(phase)]; }
  bool outside_passes() const {
    return in(Phase::kSetup) || in(Phase::kPrologue) || in(Phase::kUpdate);
  }
  bool in_one_phase() const { return std::count(phases.begin(), phases.end(), true) == 1; }
};

struct Part {
  int64_t first = INT64_MAX;
  int64_t last = -1;
};

bool is_leaf(const Storage& storage) {
  return storage.kind != Storage::Kind::kResult && storage.kind != Storage::Kind::kWorkspace;
}

class LifetimeFinder {
 public:
  LifetimeFinder(const StepCalls& step, const std::vector<StepTask>& tasks, const PassInfo& passes)
      : step_(step), passes_(passes), uses_(step.storages.size()) {
    for (size_t t = 0; t < tasks.size(); ++t) {
      for (const size_t call : tasks[t].calls) add_uses(call, t);
    }
    for (size_t c = 0; c < step.calls.size(); ++c) {
      Part& part = part_at(static_cast<int64_t>(c));
      part.first = std::min(part.first, static_cast<int64_t>(c));
      part.last = static_cast<int64_t>(c);
    }
  }

  std::vector<Lifetime> run() {
    std::vector<Lifetime> lifetimes(step_.storages.size());
    for (size_t s = 0; s < step_.storages.size(); ++s) {
      if (uses_[s].last >= 0) lifetimes[s] = lifetime_of(step_.storages[s], uses_[s]);
    }
    return lifetimes;
  }

 private:
  void add_uses(size_t c, size_t task) {
    const StepCall& call = step_.calls[c];
    for (const StorageId argument : call.arguments) {
      Use& use = uses_[static_cast<size_t>(argument)];
      use.phases[static_cast<size_t>(call.phase)] = true;
      use.tasks.insert(task);
      const bool transfer =
          call.kind == StepCall::Kind::kSend || call.kind == StepCall::Kind::kReceive;
      use.transferred |= transfer && call.phase != Phase::kUpdate;
      use.collected |= is_collective(call.kind) && call.round == 0;
      use.first = std::min(use.first, static_cast<int64_t>(c));
      use.last = std::max(use.last, static_cast<int64_t>(c));
    }
  }

  Part& part_at(int64_t time) {
    return parts_[static_cast<size_t>(part_of(step_.calls[static_cast<size_t>(time)].phase))];
  }

  std::string scope_of(const Storage& storage, const Use& use) const {
    if (storage.kind == Storage::Kind::kFeed) return "micro_batch";
    if (is_leaf(storage)) return "persistent";
    if (storage.stacked) return "step";
    const bool once = passes_.micro_batches == 1 || use.in(Phase::kSetup) ||
                      (use.in_one_phase() && use.in(Phase::kUpdate));
    if (storage.output) return once && !passes_.is_evaluation ? "step" : "micro_batch";
    const bool crosses = use.in(Phase::kForward) && use.in(Phase::kBackward);
    const bool outside = use.outside_passes();
    if (use.tasks.size() == 1) return "task";
    if (!outside && crosses) return "slot";
    if (!outside && use.transferred) return "ring";
    SGTC_CHECK(once || use.in_one_phase(),
               "value \"" + storage.name +
                   "\" of one micro-batch is used where only sums over micro-batches exist");
    return "step";
  }

  static bool is_in_passes(const Storage& storage, const Use& use, const std::string& scope) {
    const bool outside = use.outside_passes();
    return !is_leaf(storage) && !outside && !storage.stacked && !storage.output &&
           scope != "ring" && !use.collected;
  }

  Lifetime lifetime_of(const Storage& storage, const Use& use) {
    Lifetime lifetime;
    lifetime.used = true;
    lifetime.scope = scope_of(storage, use);
    lifetime.first = use.first;
    lifetime.last = use.last;
    if (is_in_passes(storage, use, lifetime.scope)) lifetime.in_frame = {use.first, use.last};
    const bool lasting =
        passes_.micro_batches > 1 && (storage.stacked || storage.output || use.in(Phase::kSetup));
    const bool kept = lifetime.scope == "slot" && passes_.slots > 1;
    if (lasting || kept) {
      lifetime.first = part_at(use.first).first;
      if (!use.in(Phase::kUpdate)) lifetime.last = part_at(use.last).last;
    }
    // A reduction writes its result while the backward phase goes on.
    if (use.collected && use.in_one_phase() && use.in(Phase::kUpdate)) {
      lifetime.first = std::min(lifetime.first, parts_[1].first);
    }
    if (use.transferred && !kept) {
      lifetime.first = 0;
      lifetime.last = std::max(lifetime.last, static_cast<int64_t>(step_.calls.size()) - 1);
      lifetime.beside_passes = !is_leaf(storage) && !storage.stacked && !storage.output;
    }
    if (storage.output) lifetime.last = static_cast<int64_t>(step_.calls.size());
    return lifetime;
  }

  const StepCalls& step_;
  const PassInfo& passes_;
  std::vector<Use> uses_;
  std::array<Part, 3> parts_;
};

}  // namespace

std::vector<Lifetime> find_lifetimes(const StepCalls& step, const std::vector<StepTask>& tasks,
                                     const PassInfo& passes) {
  return LifetimeFinder(step, tasks, passes).run();
}

}  // namespace sgtc
