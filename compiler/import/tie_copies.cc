#include "import/tie_copies.h"

#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "import/export_record.h"
#include "import/tensor.h"

namespace sgtc {
namespace {

bool same_bytes(const Literal& a, const Literal& b) {
  return a.bytes().size() == b.bytes().size() &&
         std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
}

class Ties {
 public:
  Ties(onnx::GraphProto& graph, const ExternalData& external)
      : graph_(graph), external_(external), record_(graph) {
    for (const auto& tensor : graph.initializer()) taken_.insert(tensor.name());
    for (const auto& node : graph.node()) taken_.insert(node.output().begin(), node.output().end());
  }

  // The number of tensors that were tied.
  size_t run() {
    for (const auto& [parameter, tensors] : tensors_by_parameter()) tie(parameter, tensors);
    auto& initializers = *graph_.mutable_initializer();
    for (int i = initializers.size() - 1; i >= 0; --i) {
      if (tied_.count(initializers[i].name()) != 0) initializers.DeleteSubrange(i, 1);
    }
    return tied_.size();
  }

 private:
  // Positions of the float initializers that are a parameter or were computed from it alone.
  std::map<std::string, std::vector<int>> tensors_by_parameter() const {
    std::map<std::string, std::vector<int>> groups;
    for (int i = 0; i < graph_.initializer_size(); ++i) {
      const auto& tensor = graph_.initializer(i);
      const std::optional<DType> dtype = dtype_from_onnx(tensor.data_type());
      if (!dtype || !is_float(*dtype)) continue;
      const std::vector<std::string> folded = record_.folded_parameters(tensor.name());
      if (record_.is_parameter(tensor.name())) {
        groups[tensor.name()].push_back(i);
      } else if (folded.size() == 1) {
        groups[folded[0]].push_back(i);
      }
    }
    return groups;
  }

  // The parameter itself is the one that stays, or else the first tensor computed from it.
  void tie(const std::string& parameter, const std::vector<int>& tensors) {
    if (tensors.size() < 2) return;
    int kept = tensors[0];
    for (int i : tensors) {
      if (graph_.initializer(i).name() == parameter) kept = i;
    }
    for (int i : tensors) {
      if (i != kept) tie(kept, i);
    }
  }

  void tie(int kept, int copy) {
    // Copies, since adding a shape moves the initializers.
    const onnx::TensorProto from = graph_.initializer(kept), to = graph_.initializer(copy);
    if (from.data_type() != to.data_type()) return;
    try {
      const LiteralPtr original = literal_of(from, external_, nullptr);
      const LiteralPtr other = literal_of(to, external_, nullptr);
      if (original->element_count() != other->element_count() || is_uniform(*original)) return;
      if (same_bytes(*original, *other)) {
        const bool reshaped = original->shape() != other->shape();
        if (reshaped && taken_.count(shape_name(to)) != 0) return;
        onnx::NodeProto& node = compute(reshaped ? "Reshape" : "Identity", from, to);
        if (reshaped) add_shape(node, to);
      } else if (is_transpose(*other, *original)) {
        exchange_last(compute("Transpose", from, to), original->shape().size());
      }
    } catch (const Error&) {
      // Reported when the initializers are declared.
    }
  }

  onnx::NodeProto& compute(const std::string& op, const onnx::TensorProto& from,
                           const onnx::TensorProto& to) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(op);
    node.set_name(to.name());
    node.add_input(from.name());
    node.add_output(to.name());
    tied_.insert(to.name());
    return node;
  }

  static std::string shape_name(const onnx::TensorProto& tensor) {
    return tensor.name() + "_shape";
  }

  void add_shape(onnx::NodeProto& node, const onnx::TensorProto& tensor) {
    onnx::TensorProto& shape = *graph_.add_initializer();
    shape.set_name(shape_name(tensor));
    shape.set_data_type(onnx::TensorProto::INT64);
    shape.add_dims(tensor.dims_size());
    for (int64_t size : tensor.dims()) shape.add_int64_data(size);
    taken_.insert(shape.name());
    node.add_input(shape.name());
  }

  static void exchange_last(onnx::NodeProto& node, size_t rank) {
    std::vector<int64_t> order(rank);
    std::iota(order.begin(), order.end(), int64_t{0});
    std::swap(order[rank - 1], order[rank - 2]);
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("perm");
    attribute.set_type(onnx::AttributeProto::INTS);
    for (int64_t axis : order) attribute.add_ints(axis);
  }

  onnx::GraphProto& graph_;
  const ExternalData& external_;
  const ExportRecord record_;
  std::set<std::string> taken_;
  std::set<std::string> tied_;
};

}  // namespace

void tie_copies(onnx::GraphProto& graph, const ExternalData& external, const std::string& model,
                Diagnostics& diagnostics) {
  const size_t count = Ties(graph, external).run();
  if (count == 0) return;
  diagnostics.warning(model,
                      "the exporter had copied parameters that have other uses; copies that were "
                      "tied to them again: " +
                          std::to_string(count));
}

}  // namespace sgtc
