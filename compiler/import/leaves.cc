#include "import/leaves.h"

#include "support/diagnostics.h"

namespace sgtc {

int Leaves::add(Leaf leaf) {
  names_[leaf.name] = size();
  leaves_.push_back(std::move(leaf));
  return size() - 1;
}

int Leaves::find(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? -1 : found->second;
}

ValueId Leaves::value(int index) {
  Leaf& leaf = (*this)[index];
  type(index);
  leaf.used = true;
  if (leaf.value == kNone) {
    leaf.value = leaf.kind == LeafKind::kState
                     ? graph_.add_state(leaf.name, leaf.type, StateRole::kFrozen, leaf.initial)
                     : graph_.add_constant(leaf.initial.literal, leaf.name);
  }
  return leaf.value;
}

LiteralPtr Leaves::literal(int index) {
  type(index);
  Leaf& leaf = (*this)[index];
  leaf.used = true;
  if (leaf.varies) return nullptr;
  leaf.read = true;
  return leaf.initial.literal;
}

const TensorType& Leaves::type(int index) const {
  const Leaf& leaf = (*this)[index];
  if (!leaf.error.empty()) throw Error("initializer \"" + leaf.name + "\": " + leaf.error);
  return leaf.type;
}

}  // namespace sgtc
