// What a rewriting pass left of a graph, as text to compare with.
#pragma once

#include <string>

#include "ir/graph.h"

namespace sgtc {

/// "add(a b ) neg(y ) ": each node's operator and the names of its operands, in order.
inline std::string operators_of(const Graph& graph) {
  std::string operators;
  for (const Node& node : graph.nodes) {
    operators += std::string(name_of(node.op)) + "(";
    for (const ValueId operand : node.operands) operators += graph.value(operand).name + " ";
    operators += ") ";
  }
  return operators;
}

}  // namespace sgtc
