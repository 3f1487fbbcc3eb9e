// Which nodes of an ONNX graph are needed, and in which order they can run.
#pragma once

#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace sgtc {

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// The node's name, or that of its first output that has one.
std::string name_of(const onnx::NodeProto& node);

/// "node \"name\" (Op)" for messages.
std::string describe(const onnx::NodeProto& node, const std::string& prefix = "");

/// The nodes that the named values need, operands first and otherwise in the order of the file,
/// which need not be sorted. Throws Error for nodes that need themselves and for a name that two
/// nodes compute.
std::vector<int> needed_nodes(const NodeList& nodes, const std::vector<std::string>& wanted);

}  // namespace sgtc
