#include "import/parameters.h"

#include <algorithm>

#include "import/export_record.h"
#include "support/diagnostics.h"
#include "support/glob.h"

namespace sgtc {
namespace {

class RoleAssignment {
 public:
  RoleAssignment(ImportState& state, ValueId loss, const std::vector<std::string>& train,
                 const std::vector<std::string>& freeze)
      : state_(state), train_(train), freeze_(freeze), record_(state.model.proto().graph()) {
    if (loss != kNone) reached_ = states_behind(state.graph, loss);
  }

  void run() {
    for (int i = 0; i < state_.leaves.size(); ++i) assign(state_.leaves[i]);
    check_patterns(train_, "--train");
    check_patterns(freeze_, "--freeze");
    report_unused();
  }

 private:
  // Why the tensor cannot be trained; empty if it can.
  std::string obstacle(const Leaf& leaf) const {
    if (!is_float(leaf.type.dtype)) {
      return "its elements are " + std::string(name_of(leaf.type.dtype)) + ", not floats";
    }
    if (leaf.value == kNone) return "no node uses its values";
    if (state_.statistics.count(leaf.value) != 0) {
      return "it is a running statistic of BatchNormalization";
    }
    if (reached_.count(leaf.value) == 0) return "no differentiable path leads from it to the loss";
    if (leaf.read) return "a node needs to know what it holds when the model is compiled";
    return "";
  }

  bool wanted(const Leaf& leaf) const {
    if (matches_any(freeze_, leaf.name)) return false;
    if (!train_.empty()) return matches_any(train_, leaf.name);
    const auto& trained = state_.model.trained();
    if (trained) return trained->count(leaf.name) != 0;
    return record_.origin(leaf.name) != Origin::kBuffer;
  }

  void assign(const Leaf& leaf) {
    const std::string reason = obstacle(leaf);
    const bool by_name = std::count(train_.begin(), train_.end(), leaf.name) != 0;
    if (by_name && !reason.empty()) {
      state_.diagnostics.error("--train " + leaf.name, "the tensor cannot be trained: " + reason);
    }
    if (leaf.value == kNone || leaf.kind != LeafKind::kState) return;
    StateRole& role = state_.graph.value(leaf.value).role;
    const bool statistic = state_.statistics.count(leaf.value) != 0;
    const bool trained = reason.empty() && wanted(leaf);
    if (state_.training && leaf.read && reached_.count(leaf.value) != 0 && wanted(leaf)) {
      state_.diagnostics.warning(
          "initializer \"" + leaf.name + "\"",
          "is not trained: " + reason + "; --freeze " + leaf.name + " says that it is meant so");
    }
    if (trained) ++trained_;
    const bool follows = statistic || (leaf.varies && is_float(leaf.type.dtype));
    role = trained       ? StateRole::kParameter
           : follows     ? StateRole::kStatistic
           : leaf.varies ? StateRole::kMoment
                         : StateRole::kFrozen;
  }

  void check_patterns(const std::vector<std::string>& patterns, const std::string& option) const {
    for (const std::string& pattern : patterns) {
      bool found = false;
      for (int i = 0; i < state_.leaves.size(); ++i) {
        found = found || matches_any({pattern}, state_.leaves[i].name);
      }
      if (!found) {
        state_.diagnostics.error(option + " " + pattern, "matches no initializer of the model");
      }
    }
  }

  void report_unused() const {
    for (int i = 0; i < state_.leaves.size(); ++i) {
      const Leaf& leaf = state_.leaves[i];
      if (leaf.used || !is_float(leaf.type.dtype)) continue;
      if (state_.model.algorithm().reads.count(leaf.name) != 0) continue;
      state_.diagnostics.warning("initializer \"" + leaf.name + "\"",
                                 "no node uses it; it is left out");
    }
    if (state_.training && trained_ == 0 && !reached_.empty()) {
      state_.diagnostics.warning(state_.model.name(), "no tensor is trained");
    }
  }

  ImportState& state_;
  const std::vector<std::string>& train_;
  const std::vector<std::string>& freeze_;
  ExportRecord record_;
  std::set<ValueId> reached_;
  int trained_ = 0;
};

}  // namespace

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&name](const std::string& pattern) { return glob_matches(pattern, name); });
}

void assign_roles(ImportState& state, ValueId loss, const std::vector<std::string>& train,
                  const std::vector<std::string>& freeze) {
  RoleAssignment(state, loss, train, freeze).run();
}

}  // namespace sgtc
