#include "schedule/lifetimes.h"

#include <algorithm>
#include <array>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr size_t kPhases = 4;

// The part of a step that is repeated as a whole: the prologue alone, forward with backward, the
// update (once).
int part_of(Phase phase) {
  if (phase == Phase::kPrologue) return 0;
  return phase == Phase::kUpdate ? 2 : 1;
}

struct Use {
  std::array<bool, kPhases> phases{};
  int64_t first = INT64_MAX;
  int64_t last = -1;
  bool in(Phase phase) const { return phases[static_cast<size_t>(phase)]; }
  bool in_one_phase() const { return std::count(phases.begin(), phases.end(), true) == 1; }
};

struct Part {
  int64_t first = INT64_MAX;
  int64_t last = -1;
};

std::vector<Use> find_uses(const StepCalls& step) {
  std::vector<Use> uses(step.storages.size());
  for (size_t c = 0; c < step.calls.size(); ++c) {
    for (const StorageId argument : step.calls[c].arguments) {
      Use& use = uses[static_cast<size_t>(argument)];
      use.phases[static_cast<size_t>(step.calls[c].phase)] = true;
      use.first = std::min(use.first, static_cast<int64_t>(c));
      use.last = std::max(use.last, static_cast<int64_t>(c));
    }
  }
  return uses;
}

std::array<Part, 3> find_parts(const StepCalls& step) {
  std::array<Part, 3> parts;
  for (size_t c = 0; c < step.calls.size(); ++c) {
    Part& part = parts[static_cast<size_t>(part_of(step.calls[c].phase))];
    part.first = std::min(part.first, static_cast<int64_t>(c));
    part.last = static_cast<int64_t>(c);
  }
  return parts;
}

bool is_leaf(const Storage& storage) {
  return storage.kind != Storage::Kind::kResult && storage.kind != Storage::Kind::kWorkspace;
}

std::string scope_of(const Storage& storage, const Use& use, int64_t micro_batches,
                     bool is_evaluation) {
  if (storage.kind == Storage::Kind::kFeed) return "micro_batch";
  if (is_leaf(storage)) return "persistent";
  if (storage.stacked) return "step";
  const bool once = micro_batches == 1 || (use.in_one_phase() && use.in(Phase::kUpdate));
  if (storage.output) return once && !is_evaluation ? "step" : "micro_batch";
  if (use.in_one_phase()) return "task";
  if (!use.in(Phase::kPrologue) && !use.in(Phase::kUpdate)) return "slot";
  SGTC_CHECK(once, "value \"" + storage.name +
                       "\" of one micro-batch is used where only sums over micro-batches exist");
  return "step";
}

}  // namespace

std::vector<Lifetime> find_lifetimes(const StepCalls& step, int64_t micro_batches,
                                     bool is_evaluation) {
  const std::vector<Use> uses = find_uses(step);
  const std::array<Part, 3> parts = find_parts(step);
  std::vector<Lifetime> lifetimes(step.storages.size());
  for (size_t s = 0; s < step.storages.size(); ++s) {
    const Storage& storage = step.storages[s];
    if (uses[s].last < 0) continue;
    Lifetime& lifetime = lifetimes[s];
    lifetime = {true, scope_of(storage, uses[s], micro_batches, is_evaluation), uses[s].first,
                uses[s].last};
    if (micro_batches > 1 && (storage.stacked || storage.output)) {
      const auto part_at = [&](int64_t position) {
        return parts[static_cast<size_t>(part_of(step.calls[static_cast<size_t>(position)].phase))];
      };
      const bool ends_in_update = uses[s].in(Phase::kUpdate);
      lifetime.first = part_at(uses[s].first).first;
      if (!ends_in_update) lifetime.last = part_at(uses[s].last).last;
    }
    if (storage.output) lifetime.last = static_cast<int64_t>(step.calls.size());
  }
  return lifetimes;
}

}  // namespace sgtc
