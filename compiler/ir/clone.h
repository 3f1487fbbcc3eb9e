// Rebuilding a graph: what every rewriting pass is made of.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sgtc {

/// Copies a source into a new graph, the target, node by node. A pass walks `source().nodes` in
/// order and, for each, either calls `clone(node)` or builds replacements in `target()` and calls
/// `replace`. Leaves are copied first, in order, so feeds and states keep their names.
class Cloner {
 public:
  /// `keep`, indexed by value, leaves out states, constants and controls that are false in it;
  /// empty: all leaves are copied. `source` must outlive the cloner.
  explicit Cloner(const Graph& source, const std::vector<bool>& keep = {});
  /// The same for a source that nobody needs afterwards: what leaves it as it is copies nothing,
  /// and gets it back from `finish`.
  explicit Cloner(Graph&& source, const std::vector<bool>& keep = {});
  Cloner(const Cloner&) = delete;
  Cloner& operator=(const Cloner&) = delete;

  const Graph& source() const { return source_; }
  /// What was cloned or appended, to look at. It may hold more than that: use only values that
  /// `operator[]` or the target have given. Valid until the target is asked for.
  const Graph& made() const { return unchanged_ ? source_ : target_; }
  /// To append to.
  Graph& target();
  /// The new id of an old value; its node must have been cloned or replaced already.
  ValueId operator[](ValueId old) const;
  /// Copies one node with mapped operands, keeping phase, id, sources and result names.
  void clone(const Node& node);
  /// Makes `old` stand for `replacement` (a value of the target) from here on.
  void replace(ValueId old, ValueId replacement);
  /// Sets phase, id and sources of nodes appended to the target to those of `node`.
  void inherit(const Node& node);
  /// Maps outputs and updates and returns the target. The source is no longer valid if it was given
  /// away.
  Graph finish();

 private:
  void copy_leaves(const std::vector<bool>& keep);
  void copy_node(const Node& node);
  const Node& add_retyped(const Node& node, std::vector<ValueId> operands);

  Graph owned_;  // the source, if it was given away
  const Graph& source_;
  Graph target_;
  std::vector<ValueId> map_;  // old to new
  // Whether the first `cloned_` nodes were cloned and nothing else was done. The target is empty
  // then, and would have the ids of the source.
  bool unchanged_ = false;
  size_t cloned_ = 0;
};

}  // namespace sgtc
