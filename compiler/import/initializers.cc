#include "import/initializers.h"

#include <functional>

#include "import/checks.h"
#include "import/export_record.h"
#include "import/initialization.h"
#include "import/parameters.h"
#include "import/tensor.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// After this many unreadable tensors (a data file that is missing concerns all) the rest is silent.
constexpr int kMaxReported = 8;

class Declaration {
 public:
  Declaration(ImportState& state, const std::vector<std::string>& train)
      : state_(state), train_(train), record_(state.model.proto().graph()) {}

  void run() {
    const onnx::GraphProto& graph = state_.model.proto().graph();
    const auto& external = state_.model.external_data();
    const auto& owner = state_.model.shared_proto();
    for (const auto& tensor : graph.initializer()) {
      declare(tensor.name(), [&](Leaf& leaf) {
        leaf.type = type_of(tensor);
        return literal_of(tensor, external, owner);
      });
    }
    for (const auto& sparse : graph.sparse_initializer()) {
      declare(sparse.values().name(), [&](Leaf& leaf) {
        leaf.type = type_of(sparse);
        return literal_of(sparse, external, owner);
      });
    }
    for (const auto& info : state_.model.proto().training_info()) bind_initialization(info);
    report_export_losses();
  }

 private:
  void report(const std::string& object, const std::string& text) {
    if (++reported_ <= kMaxReported) state_.diagnostics.error(object, text);
  }

  void declare(const std::string& name, const std::function<LiteralPtr(Leaf&)>& read) {
    const std::string object = "initializer \"" + name + "\"";
    if (name.empty() || state_.leaves.find(name) >= 0) {
      report(object, "the name is empty or given twice; check the file with onnx.checker");
      return;
    }
    Leaf leaf;
    leaf.name = name;
    try {
      if (const LiteralPtr literal = read(leaf)) {
        leaf.initial.kind = Initializer::Kind::kLiteral;
        leaf.initial.literal = literal;
      }
      leaf.varies = state_.model.algorithm().updates_state(name);
      leaf.kind = kind_of(leaf);
    } catch (const Error& error) {
      leaf.error = error.what();
      report(object, leaf.error);
    }
    state_.leaves.add(std::move(leaf));
  }

  LeafKind kind_of(const Leaf& leaf) const {
    if (!leaf.initial.literal || leaf.varies) return LeafKind::kState;
    if (!is_float(leaf.type.dtype)) return LeafKind::kConstant;
    const bool computed =
        state_.model.is_number(leaf.name) || record_.origin(leaf.name) == Origin::kComputed;
    return computed && !matches_any(train_, leaf.name) ? LeafKind::kConstant : LeafKind::kState;
  }

  // Initial values from the training information: each binding names a value of its
  // initialization graph.
  void bind_initialization(const onnx::TrainingInfoProto& info) {
    for (const auto& binding : info.initialization_binding()) {
      const int index = state_.leaves.find(binding.key());
      const std::string object = "initial value of \"" + binding.key() + "\"";
      if (index < 0) {
        report(object, "there is no initializer of that name");
        continue;
      }
      try {
        Leaf& leaf = state_.leaves[index];
        leaf.initial = initial_value(state_.model, info.initialization(), binding.value());
        if (leaf.initial.literal) check_type(leaf);
        settle(leaf);
      } catch (const Error& error) {
        report(object, error.what());
      }
    }
  }

  // Makes what the node declares a tensor where no state can hold it.
  static void settle(Leaf& leaf) {
    Initializer& initial = leaf.initial;
    const bool random = initial.kind == Initializer::Kind::kRandomNormal ||
                        initial.kind == Initializer::Kind::kRandomUniform;
    if (random && !is_float(leaf.type.dtype)) {
      throw Error("expected integers, found random real numbers");
    }
    if (random) leaf.kind = LeafKind::kState;
    if (initial.literal || leaf.kind == LeafKind::kState) return;
    checked_list_size({element_count(leaf.type.shape)}, "the initial value");
    const std::vector<double> values(static_cast<size_t>(element_count(leaf.type.shape)),
                                     initial.a);
    initial.literal = make_literal(leaf.type.dtype, leaf.type.shape, values);
    initial.kind = Initializer::Kind::kLiteral;
  }

  static void check_type(const Leaf& leaf) {
    const Literal& literal = *leaf.initial.literal;
    if (literal.dtype() == leaf.type.dtype && literal.shape() == leaf.type.shape) return;
    throw Error("expected a tensor of shape " + to_string(leaf.type.shape) + " and type " +
                std::string(name_of(leaf.type.dtype)) + ", found " + to_string(literal.shape()) +
                " and " + std::string(name_of(literal.dtype())));
  }

  void report_export_losses() const {
    if (!record_.present() || !state_.training) return;
    const onnx::GraphProto& graph = state_.model.proto().graph();
    for (const auto& tensor : graph.initializer()) {
      const std::vector<std::string> folded = record_.folded_parameters(tensor.name());
      const int index = state_.leaves.find(tensor.name());
      if (folded.empty() || index < 0 || state_.leaves[index].type.shape.size() == 2) continue;
      state_.diagnostics.warning("initializer \"" + tensor.name() + "\"",
                                 "the exporter computed it from the parameter \"" + folded[0] +
                                     "\"; it is trained in place of it, as a tensor of shape " +
                                     to_string(state_.leaves[index].type.shape));
    }
    const std::vector<std::string> lost = record_.lost_parameters(graph);
    if (lost.empty()) return;
    state_.diagnostics.warning(
        state_.model.name(),
        std::to_string(lost.size()) + " of the exporter's parameters, such as \"" + lost[0] +
            "\", are not in the file: its optimizer folded them, dropped them as zero or merged "
            "them with equal tensors, so training may differ from PyTorch's; export with "
            "optimize=False to keep them");
  }

  ImportState& state_;
  const std::vector<std::string>& train_;
  ExportRecord record_;
  int reported_ = 0;
};

}  // namespace

void declare_initializers(ImportState& state, const std::vector<std::string>& train) {
  Declaration(state, train).run();
}

}  // namespace sgtc
