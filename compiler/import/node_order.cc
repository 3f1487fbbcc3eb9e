#include "import/node_order.h"

#include <map>

#include "import/gradient_node.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

void collect_inputs(const onnx::GraphProto& graph, std::set<std::string>& names) {
  for (const auto& output : graph.output()) names.insert(output.name());
  for (const auto& node : graph.node()) {
    names.insert(node.input().begin(), node.input().end());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) collect_inputs(attribute.g(), names);
      for (const auto& nested : attribute.graphs()) collect_inputs(nested, names);
    }
  }
}

// Who computes what in a list of nodes.
class NodeOrder {
 public:
  explicit NodeOrder(const NodeList& nodes) : nodes_(nodes) {
    for (int i = 0; i < nodes.size(); ++i) {
      for (const std::string& output : nodes[i].output()) {
        if (output.empty() || producers_.emplace(output, i).second) continue;
        throw Error("two nodes compute \"" + output + "\": " + describe(nodes[producers_[output]]) +
                    " and " + describe(nodes[i]) + "; check the file with onnx.checker");
      }
    }
  }

  // The nodes that the named values need, but for what is behind the known ones.
  std::set<int> behind(const std::vector<std::string>& wanted,
                       const std::set<std::string>& known) const {
    std::set<int> needed;
    std::vector<std::string> open = wanted;
    while (!open.empty()) {
      const std::string name = open.back();
      open.pop_back();
      const auto found = known.count(name) != 0 ? producers_.end() : producers_.find(name);
      if (found == producers_.end() || !needed.insert(found->second).second) continue;
      const std::set<std::string> inputs = inputs_of(nodes_[found->second]);
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return needed;
  }

  // Operands first; of the nodes that are ready the first in the file goes next.
  std::vector<int> sorted(const std::set<int>& needed) const {
    std::map<int, int> missing;
    std::map<int, std::vector<int>> users;
    for (int node : needed) {
      missing[node] = 0;
      for (const std::string& input : inputs_of(nodes_[node])) {
        const auto producer = producers_.find(input);
        if (producer == producers_.end() || needed.count(producer->second) == 0) continue;
        users[producer->second].push_back(node);
        ++missing[node];
      }
    }
    std::set<int> ready;
    for (const auto& [node, count] : missing) {
      if (count == 0) ready.insert(node);
    }
    std::vector<int> order;
    while (!ready.empty()) {
      const int node = *ready.begin();
      ready.erase(ready.begin());
      missing.erase(node);
      order.push_back(node);
      for (int user : users[node]) {
        if (--missing[user] == 0) ready.insert(user);
      }
    }
    if (missing.empty()) return order;
    throw Error(describe(nodes_[missing.begin()->first]) +
                " needs its own result; check the file with onnx.checker");
  }

 private:
  const NodeList& nodes_;
  std::map<std::string, int> producers_;
};

}  // namespace

std::string name_of(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const std::string& output : node.output()) {
    if (!output.empty()) return output;
  }
  return "";
}

std::string describe(const onnx::NodeProto& node, const std::string& prefix) {
  return "node \"" + prefix + name_of(node) + "\" (" + node.op_type() + ")";
}

std::set<std::string> inputs_of(const onnx::NodeProto& node) {
  std::set<std::string> names(node.input().begin(), node.input().end());
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) collect_inputs(attribute.g(), names);
    for (const auto& nested : attribute.graphs()) collect_inputs(nested, names);
    if (is_gradient_node(node) && attribute.name() == "y") names.insert(attribute.s());
  }
  names.erase("");
  return names;
}

std::vector<int> needed_nodes(const NodeList& nodes, const std::vector<std::string>& wanted,
                              const std::set<std::string>& known) {
  const NodeOrder order(nodes);
  return order.sorted(order.behind(wanted, known));
}

}  // namespace sgtc
