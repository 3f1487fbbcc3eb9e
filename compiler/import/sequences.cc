#include "import/sequences.h"

#include <set>

#include "import/checks.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

using Elements = std::vector<Binding>;

Binding binding_of(ValueId value) {
  Binding binding;
  binding.value = value;
  return binding;
}

Binding sequence_of(Elements elements) {
  Binding binding;
  binding.elements = std::make_shared<const Elements>(std::move(elements));
  return binding;
}

class SequenceLowering {
 public:
  SequenceLowering(ImportState& state, const onnx::NodeProto& node,
                   const std::vector<Binding>& inputs, std::shared_ptr<const void> owner)
      : state_(state), inputs_(inputs), n_(state, node, inputs, 1, std::move(owner)) {
    if (node.output_size() > 0) n_.set_result_name(node.output(0));
  }

  Binding lower() {
    const std::string& op = n_.node().op_type();
    if (op == "SequenceEmpty") return sequence_of({});
    if (op == "SequenceConstruct") return construct();
    if (op == "SplitToSequence") return split();
    if (op == "OptionalHasElement") return has_element();
    if (op == "Optional" || op == "OptionalGetElement") return element();
    Elements elements = sequence();
    if (op == "SequenceLength") return length(elements);
    if (op == "SequenceAt") return elements[position(1, elements.size())];
    if (op == "ConcatFromSequence") return concat(elements);
    if (op == "SequenceErase") {
      elements.erase(elements.begin() + static_cast<ptrdiff_t>(erased(elements.size())));
    } else {
      insert(elements);
    }
    return sequence_of(std::move(elements));
  }

 private:
  Binding construct() {
    Elements elements;
    for (ValueId id : n_.inputs()) elements.push_back(binding_of(id));
    return sequence_of(std::move(elements));
  }

  bool is_given() const { return !inputs_.empty() && inputs_[0].present(); }

  Binding has_element() {
    return binding_of(n_.constant(scalar_literal(DType::kBool, is_given() ? 1 : 0)));
  }

  // An optional value that has an element is that element.
  Binding element() const {
    if (is_given()) return inputs_[0];
    throw Error("expected a tensor or a sequence; optional values without one are not supported");
  }

  const Elements& sequence() const {
    if (!inputs_.empty() && inputs_[0].elements) return *inputs_[0].elements;
    throw Error("input 0: expected a sequence, found a tensor");
  }

  Binding length(const Elements& elements) {
    return binding_of(
        n_.constant(make_literal(DType::kInt64, {}, std::vector<int64_t>{std::ssize(elements)})));
  }

  // Input `index` as a position among `count`, negative ones from the end.
  size_t position(int index, size_t count) {
    const int64_t given = n_.integer_input(index, "the position");
    const auto size = static_cast<int64_t>(count);
    if (given < -size || given >= size) {
      throw Error("position " + std::to_string(given) + " is out of range for " +
                  std::to_string(size) + " elements");
    }
    return static_cast<size_t>(given < 0 ? given + size : given);
  }

  size_t erased(size_t count) {
    if (n_.has_input(1)) return position(1, count);
    if (count == 0) throw Error("the sequence is empty");
    return count - 1;
  }

  void insert(Elements& elements) {
    // Position `size` appends; negative ones count from the last element, which stays behind.
    size_t at = elements.size();
    if (n_.has_input(2)) {
      const int64_t given = n_.integer_input(2, "the position");
      at = given == std::ssize(elements) ? elements.size() : position(2, elements.size());
    }
    elements.insert(elements.begin() + static_cast<ptrdiff_t>(at), binding_of(n_.input(1)));
  }

  Binding concat(const Elements& elements) {
    if (elements.empty()) throw Error("the sequence is empty");
    ValueIds parts;
    for (const Binding& element : elements) parts.push_back(state_.value(element));
    const bool stacks = n_.integer("new_axis", 0) != 0;
    const int64_t rank = n_.rank(parts[0]) + (stacks ? 1 : 0);
    const int64_t axis = normalized_axis(n_.required_integer("axis"), rank);
    for (ValueId& part : parts) part = stacks ? n_.unsqueeze(part, {axis}) : part;
    return binding_of(n_.concat(parts, axis));
  }

  // Parts of the given sizes; of one size each, the last may be smaller; or single slices.
  Binding split() {
    const ValueId x = n_.input(0);
    const int64_t axis = normalized_axis(n_.integer("axis", 0), n_.rank(x));
    const int64_t total = n_.shape(x)[static_cast<size_t>(axis)];
    const bool single = !n_.has_input(1);
    const std::vector<int64_t> sizes = part_sizes(total);
    Elements elements;
    int64_t start = 0;
    for (int64_t size : sizes) {
      ValueId part = n_.slice(x, axis, start, size);
      if (single && n_.integer("keepdims", 1) == 0) part = n_.squeeze(part, {axis});
      elements.push_back(binding_of(part));
      start += size;
    }
    return sequence_of(std::move(elements));
  }

  // Of `size` elements each; the last may have fewer.
  static std::vector<int64_t> equal_sizes(int64_t total, int64_t size) {
    const int64_t whole = checked_factor(total / size, 0, "the number of parts");
    std::vector<int64_t> sizes(static_cast<size_t>(whole), size);
    if (total % size != 0) sizes.push_back(total % size);
    return sizes;
  }

  std::vector<int64_t> part_sizes(int64_t total) {
    if (!n_.has_input(1)) return equal_sizes(total, 1);
    std::vector<int64_t> sizes = n_.integers_input(1, "the sizes of the parts");
    if (n_.input_rank(1) == 0 && sizes[0] > 0) sizes = equal_sizes(total, sizes[0]);
    int64_t left = total;
    for (int64_t size : sizes) left = size < 0 || size > left ? -1 : left - size;
    if (left == 0) return sizes;
    throw Error("the sizes of the parts " + to_string(sizes) + " do not add up to " +
                std::to_string(total));
  }

  ImportState& state_;
  const std::vector<Binding>& inputs_;
  Lowering n_;
};

}  // namespace

bool is_sequence_operator(const onnx::NodeProto& node) {
  static const std::set<std::string> kOperators = {
      "ConcatFromSequence", "Optional",          "OptionalGetElement", "OptionalHasElement",
      "SequenceAt",         "SequenceConstruct", "SequenceEmpty",      "SequenceErase",
      "SequenceInsert",     "SequenceLength",    "SplitToSequence"};
  return canonical_domain(node.domain()).empty() && kOperators.count(node.op_type()) != 0;
}

std::vector<Binding> lower_sequence(ImportState& state, const onnx::NodeProto& node,
                                    const std::vector<Binding>& inputs,
                                    std::shared_ptr<const void> owner) {
  return {SequenceLowering(state, node, inputs, std::move(owner)).lower()};
}

}  // namespace sgtc
