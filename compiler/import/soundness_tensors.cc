// Checks of the contents of tensors. Weights may have billions of elements: a comparison ends at
// the first difference, and rows are looked at until one element is not zero.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "import/soundness.h"
#include "import/tensor.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr double kMasked = -1e4;  // at most this is added to a score that is masked

std::string tensor_object(const Value& value) { return "initializer \"" + value.name + "\""; }

bool is_trained(const Value& value) {
  return value.kind == ValueKind::kState && value.role == StateRole::kParameter;
}

// The contents of a constant or of a float tensor of the file, else null.
LiteralPtr contents_of(const Value& value) {
  if (value.kind == ValueKind::kConstant) return value.literal;
  return value.kind == ValueKind::kState ? value.initial.literal : nullptr;
}

std::string relation(const Literal& a, const Literal& b) {
  if (a.shape() == b.shape() &&
      std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0) {
    return "equals";
  }
  return is_transpose(a, b) ? "is the transpose of" : "";
}

// Matrices and larger that are equal or transposed, among those of the same sizes in any order.
void check_copies(const ImportState& state) {
  std::map<std::pair<DType, Shape>, std::vector<const Value*>> groups;
  for (ValueId id : state.graph.states) {
    const Value& value = state.graph.value(id);
    if (!is_trained(value) || !value.initial.literal || value.type.shape.size() < 2) continue;
    if (is_uniform(*value.initial.literal)) continue;
    Shape sizes = value.type.shape;
    std::sort(sizes.begin(), sizes.end());
    groups[{value.type.dtype, sizes}].push_back(&value);
  }
  for (const auto& [key, values] : groups) {
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        const std::string how = relation(*values[i]->initial.literal, *values[k]->initial.literal);
        if (how.empty()) continue;
        state.diagnostics.warning(
            tensor_object(*values[i]),
            how + " \"" + values[k]->name +
                "\", and both are trained, each on its own; if they are one tied tensor, export "
                "the "
                "model without constant folding, which copies it, or freeze one of them");
        break;
      }
    }
  }
}

bool is_zero_row(const Literal& table, int64_t row) {
  const int64_t width = table.shape()[1];
  for (int64_t i = 0; i < width; ++i) {
    if (table.as_double(row * width + i) != 0) return false;
  }
  return true;
}

// The only row of zeros of a table, or -1.
int64_t padding_row(const Literal& table) {
  int64_t found = -1;
  for (int64_t row = 0; row < table.shape()[0]; ++row) {
    if (!is_zero_row(table, row)) continue;
    if (found >= 0) return -1;
    found = row;
  }
  return found;
}

void check_padding_rows(const ImportState& state) {
  std::set<ValueId> checked;
  for (const Node& node : state.graph.nodes) {
    if (node.op != Op::kGather || node.attributes.has("padding")) continue;
    const ValueId id = node.operands[0];
    const Value& table = state.graph.value(id);
    const bool looks_up = node.attributes.integer("axis") == 0 && table.type.shape.size() == 2;
    if (!looks_up || !is_trained(table) || !table.initial.literal) continue;
    if (!checked.insert(id).second) continue;
    const int64_t row = padding_row(*table.initial.literal);
    if (row < 0 || table.type.shape[0] < 2) continue;
    const std::string source = node.sources.empty() ? "" : node.sources[0];
    state.diagnostics.warning(
        "node \"" + source + "\"",
        "row " + std::to_string(row) + " of \"" + table.name +
            "\" is all zeros, as the padding_idx of an embedding is, and would be trained; keep it "
            "with --padding-index " +
            table.name + "=" + std::to_string(row));
  }
}

// Which elements of a constant take part: nothing for a tensor that is no mask.
std::vector<bool> hidden_elements(const Literal& literal, Op use) {
  std::vector<bool> hidden;
  bool some = false, all = true;
  double kept = 0;
  for (int64_t i = 0; i < literal.element_count(); ++i) {
    const double x = literal.as_double(i);
    const bool hides = use == Op::kAdd ? x <= kMasked : x == 0;
    const bool keeps = use == Op::kAdd ? x == 0 : x != 0 && (kept == 0 || x == kept);
    if (!hides && !keeps) return {};
    if (keeps) kept = x;
    some = some || hides;
    all = all && hides;
    hidden.push_back(hides);
  }
  return some && !all ? hidden : std::vector<bool>{};
}

// Whether whole columns of the last dimension are hidden, as the padding of a sequence is; a causal
// or sliding mask hides none from all queries.
bool hides_columns(const std::vector<bool>& hidden, const Shape& shape) {
  const auto width = static_cast<size_t>(shape.back());
  for (size_t column = 0; column < width; ++column) {
    bool all = true;
    for (size_t i = column; i < hidden.size() && all; i += width) all = hidden[i];
    if (all) return true;
  }
  return false;
}

bool differs_by_row(const std::vector<bool>& hidden, int64_t rows) {
  const size_t size = hidden.size() / static_cast<size_t>(rows);
  for (size_t i = size; i < hidden.size(); ++i) {
    if (hidden[i] != hidden[i % size]) return true;
  }
  return false;
}

// The operand of `node` that may be a mask of the others, or kNone.
ValueId mask_operand(const Graph& graph, const Node& node) {
  if (node.op == Op::kWhere) return node.operands[0];
  if (node.op != Op::kAdd && node.op != Op::kMul) return kNone;
  for (ValueId operand : node.operands) {
    if (contents_of(graph.value(operand))) return operand;
  }
  return kNone;
}

// A mask that was computed from the exporter's sample batch.
void check_folded_masks(const ImportState& state) {
  const Graph& graph = state.graph;
  const int64_t rows = graph.micro_batch_rows;
  for (const Node& node : graph.nodes) {
    if (node.phase == Phase::kUpdate) continue;
    const ValueId mask = mask_operand(graph, node);
    const LiteralPtr contents = mask == kNone ? nullptr : contents_of(graph.value(mask));
    if (!contents || contents->shape().empty() || contents->element_count() < 2) continue;
    const std::vector<bool> hidden = hidden_elements(*contents, node.op);
    if (hidden.empty()) continue;
    const Shape& shape = contents->shape();
    const bool of_batch = rows > 1 && shape[0] == rows && shape.size() > 1 &&
                          shape.size() == graph.shape(node.results[0]).size() &&
                          differs_by_row(hidden, rows);
    const bool of_keys = node.op == Op::kAdd && hides_columns(hidden, shape);
    if (!of_batch && !of_keys) continue;
    const std::string source = node.sources.empty() ? "" : node.sources[0];
    state.diagnostics.warning(
        "node \"" + source + "\"",
        "its constant mask \"" + graph.value(mask).name +
            "\" hides the same elements in every "
            "step: it was folded from the batch that the model was exported with; make the mask an "
            "input of the model, or export without constant folding");
  }
}

void check_trained_masks(const ImportState& state) {
  for (ValueId id : state.graph.states) {
    const Value& value = state.graph.value(id);
    if (!is_trained(value) || !value.initial.literal) continue;
    if (hidden_elements(*value.initial.literal, Op::kAdd).empty()) continue;
    state.diagnostics.warning(
        tensor_object(value),
        "is a mask of zeros and large negative numbers, and would be trained; "
        "freeze it with --freeze " +
            value.name);
  }
}

}  // namespace

void check_tensor_soundness(const ImportState& state) {
  check_copies(state);
  check_padding_rows(state);
  check_folded_masks(state);
  check_trained_masks(state);
}

}  // namespace sgtc
