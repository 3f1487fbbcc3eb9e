#include "schedule/merge_calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cost/cost.h"
#include "passes/gpu/merge_loops.h"

namespace sgtc {
namespace {

// Part of the peak by which merging may raise it, so that sums of a few bytes do not decide.
constexpr int64_t kTolerance = 256;

using Slot = std::vector<size_t>;  // calls that run as one, by number

// What a set of calls touches.
struct Effects {
  std::set<StorageId> reads;
  std::set<StorageId> writes;

  // A shard touches the state that it lies in.
  void add(const StepCall& call, const std::vector<Storage>& storages) {
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const StorageId whole = storages[static_cast<size_t>(call.arguments[a])].whole;
      for (const StorageId id : {call.arguments[a], whole}) {
        if (id == kNoStorage) continue;
        if (access_of(call, a) != AccessMode::kWrite) reads.insert(id);
        if (access_of(call, a) != AccessMode::kRead) writes.insert(id);
      }
    }
  }

  // Whether `call` may as well run before all of them as after.
  bool commute_with(const StepCall& call) const {
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const StorageId id = call.arguments[a];
      if (writes.count(id) != 0) return false;
      if (access_of(call, a) != AccessMode::kRead && reads.count(id) != 0) return false;
    }
    return true;
  }
};

class CallMerger {
 public:
  CallMerger(const Graph& graph, StepCalls& step) : graph_(graph), step_(step) {
    for (size_t c = 0; c < step.calls.size(); ++c) {
      keys_.push_back(key_of(step.calls[c]));
      slots_.push_back({c});
    }
  }

  void run() {
    const int64_t peak = peak_bytes(slots_);
    const auto try_all = [&](auto merged_at) {
      for (size_t s = 0; s < slots_.size(); ++s) {
        if (slots_[s].size() > 1 || !keys_[slots_[s][0]]) continue;
        std::vector<Slot> merged = (this->*merged_at)(s);
        if (merged.size() == slots_.size()) continue;
        if (peak_bytes(merged) <= peak + peak / kTolerance) slots_ = std::move(merged);
      }
    };
    try_all(&CallMerger::with_followers);
    try_all(&CallMerger::without);
    std::vector<StepCall> calls;
    for (const Slot& slot : slots_) {
      calls.push_back(slot.size() == 1 ? std::move(step_.calls[slot[0]]) : merged_call(slot));
    }
    step_.calls = std::move(calls);
  }

 private:
  std::optional<gpu::MergeKey> key_of(const StepCall& call) const {
    if (call.kind != StepCall::Kind::kKernel || call.group == nullptr) return {};
    const bool is_alike = call.phase == Phase::kPrologue || call.phase == Phase::kUpdate ||
                          (call.phase == Phase::kForward && reads_states_alone(call));
    return is_alike ? gpu::merge_key(*call.kernel) : std::nullopt;
  }

  bool reads_states_alone(const StepCall& call) const {
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const Storage& storage = step_.storages[static_cast<size_t>(call.arguments[a])];
      if (access_of(call, a) != AccessMode::kWrite && storage.kind != Storage::Kind::kState) {
        return false;
      }
    }
    return true;
  }

  // The slots, where those behind slot `first` that may join it have done so.
  std::vector<Slot> with_followers(size_t first) const {
    const size_t leader = slots_[first][0];
    std::vector<Slot> result(slots_.begin(), slots_.begin() + static_cast<int64_t>(first) + 1);
    std::set<std::string> bodies = {keys_[leader]->body};
    Effects passed;
    passed.add(step_.calls[leader], step_.storages);
    for (size_t s = first + 1; s < slots_.size(); ++s) {
      const bool joins = slots_[s].size() == 1 && can_follow(leader, slots_[s][0], bodies) &&
                         passed.commute_with(step_.calls[slots_[s][0]]);
      if (joins) {
        bodies.insert(keys_[slots_[s][0]]->body);
        result[first].push_back(slots_[s][0]);
      } else {
        result.push_back(slots_[s]);
      }
      for (const size_t call : slots_[s]) passed.add(step_.calls[call], step_.storages);
    }
    return result;
  }

  // The slots, where slot `at` has joined a later one. That of the first large tensor, say, of
  // which the others' partial sums did not exist yet.
  std::vector<Slot> without(size_t at) const {
    const size_t call = slots_[at][0];
    Effects passed;
    for (size_t s = at + 1; s < slots_.size(); ++s) {
      std::set<std::string> bodies;
      for (const size_t member : slots_[s]) {
        passed.add(step_.calls[member], step_.storages);
        if (keys_[member]) bodies.insert(keys_[member]->body);
      }
      if (!passed.commute_with(step_.calls[call])) break;
      if (!can_follow(slots_[s][0], call, bodies)) continue;
      std::vector<Slot> result = slots_;
      result[s].insert(result[s].begin(), call);
      result.erase(result.begin() + static_cast<int64_t>(at));
      return result;
    }
    return slots_;
  }

  bool can_follow(size_t leader, size_t call, const std::set<std::string>& bodies) const {
    const StepCall& first = step_.calls[leader];
    const StepCall& second = step_.calls[call];
    return keys_[leader] && keys_[call] && keys_[call]->form == keys_[leader]->form &&
           first.phase == second.phase && first.round == second.round &&
           (bodies.size() < gpu::kMostBodies || bodies.count(keys_[call]->body) != 0);
  }

  // Of results and workspaces, in the order of the slots.
  int64_t peak_bytes(const std::vector<Slot>& slots) const {
    struct Use {
      size_t first = SIZE_MAX;
      size_t last = 0;
    };
    std::vector<Use> uses(step_.storages.size());
    for (size_t s = 0; s < slots.size(); ++s) {
      for (const size_t call : slots[s]) {
        for (const StorageId id : step_.calls[call].arguments) {
          Use& use = uses[static_cast<size_t>(id)];
          use.first = std::min(use.first, s);
          use.last = step_.storages[static_cast<size_t>(id)].output ? slots.size() : s;
        }
      }
    }
    std::vector<int64_t> change(slots.size() + 2, 0);
    for (size_t i = 0; i < uses.size(); ++i) {
      const Storage& storage = step_.storages[i];
      const bool is_planned =
          storage.kind == Storage::Kind::kResult || storage.kind == Storage::Kind::kWorkspace;
      if (!is_planned || uses[i].first == SIZE_MAX) continue;
      change[uses[i].first] += storage.bytes;
      change[uses[i].last + 1] -= storage.bytes;
    }
    int64_t live = 0;
    int64_t peak = 0;
    for (const int64_t bytes : change) peak = std::max(peak, live += bytes);
    return peak;
  }

  StepCall merged_call(const Slot& slot) {
    std::vector<KernelSpec> costed;
    for (const size_t call : slot) {
      costed.push_back(*step_.calls[call].kernel);
      fill_costs(graph_, *step_.calls[call].group, costed.back());
    }
    std::vector<const KernelSpec*> members;
    for (const KernelSpec& member : costed) members.push_back(&member);
    gpu::MergedKernel merged = gpu::merge_loops(members);
    StepCall call;
    call.phase = step_.calls[slot[0]].phase;
    call.round = step_.calls[slot[0]].round;
    for (const gpu::ArgumentOrigin& origin : merged.origins) {
      call.arguments.push_back(step_.calls[slot[origin.member]].arguments[origin.argument]);
    }
    call.arguments.push_back(add_table(merged.kernel.table));
    step_.own_kernels.push_back(std::move(merged.kernel));
    call.kernel = &step_.own_kernels.back();
    return call;
  }

  StorageId add_table(const LiteralPtr& table) {
    const auto bytes = static_cast<int64_t>(table->bytes().size());
    Storage storage{Storage::Kind::kTable, "table", {DType::kUInt8, {bytes}}, bytes};
    storage.table = table;
    step_.storages.push_back(std::move(storage));
    return static_cast<StorageId>(step_.storages.size()) - 1;
  }

  const Graph& graph_;
  StepCalls& step_;
  std::vector<std::optional<gpu::MergeKey>> keys_;  // of the calls
  std::vector<Slot> slots_;
};

}  // namespace

void merge_calls(const Graph& graph, StepCalls& step) { CallMerger(graph, step).run(); }

}  // namespace sgtc
