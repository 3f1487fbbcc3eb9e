// Which nodes of an ONNX graph are needed, and in which order they can run.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace sgtc {

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// The node's name, or that of its first output that has one.
std::string name_of(const onnx::NodeProto& node);

/// "node \"name\" (Op)" for messages.
std::string describe(const onnx::NodeProto& node, const std::string& prefix = "");

/// The names that a node reads, also in the graphs in its attributes; of a Gradient also what it
/// differentiates.
std::set<std::string> inputs_of(const onnx::NodeProto& node);

/// The nodes that the named values need, operands first and otherwise in the order of the file,
/// which need not be sorted. What is behind the `known` names is not needed. Throws Error for nodes
/// that need themselves and for a name that two nodes compute.
std::vector<int> needed_nodes(const NodeList& nodes, const std::vector<std::string>& wanted,
                              const std::set<std::string>& known = {});

}  // namespace sgtc
