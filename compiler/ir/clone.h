// Rebuilding a graph: what every rewriting pass is made of.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sgtc {

/// Copies `source` into a new graph node by node. A pass walks `source.nodes` in order and, for
/// each, either calls `clone(node)` or builds replacements in `target()` and calls `replace`.
/// Leaves are copied at construction, in order, so feeds and states keep their names.
class Cloner {
 public:
  /// `keep`, indexed by value, leaves out states, constants and controls that are false in it;
  /// empty: all leaves are copied. `source` must outlive the cloner.
  explicit Cloner(const Graph& source, const std::vector<bool>& keep = {});

  Graph& target() { return target_; }
  /// The new id of an old value; its node must have been cloned or replaced already.
  ValueId operator[](ValueId old) const;
  /// Copies one node with mapped operands, keeping phase, id, sources and result names.
  void clone(const Node& node);
  /// Makes `old` stand for `replacement` (a value of the target) from here on.
  void replace(ValueId old, ValueId replacement);
  /// Sets phase, id and sources of nodes appended to the target to those of `node`.
  void inherit(const Node& node);
  /// Maps outputs and updates and returns the target.
  Graph finish();

 private:
  const Graph& source_;
  Graph target_;
  std::vector<ValueId> map_;
};

}  // namespace sgtc
