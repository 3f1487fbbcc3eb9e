// The initializers of a model and where their graph leaves come from.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "import/model.h"
#include "ir/graph.h"

namespace sgtc {

/// What an initializer becomes in the Graph when a node uses it.
enum class LeafKind : uint8_t {
  kState,     // a float tensor of the model: trained, frozen or a statistic
  kConstant,  // an integer tensor, or a value that the exporter computed from no parameter
};

struct Leaf {
  std::string name;
  TensorType type;
  LeafKind kind = LeafKind::kConstant;
  Initializer initial;    // kLiteral for everything but declared tensors
  std::string error;      // why the tensor cannot be used, if it cannot
  ValueId value = kNone;  // the leaf in the Graph, once a node used it
  bool used = false;      // as a value or as a constant known at compile time
  bool read = false;      // as a constant known at compile time
  bool varies = false;    // the file's training algorithm updates it
};

/// Adds initializers to a graph at their first use, so that unused ones never appear.
class Leaves {
 public:
  explicit Leaves(Graph& graph) : graph_(graph) {}

  int add(Leaf leaf);
  /// The index of the initializer, or -1.
  int find(const std::string& name) const;
  /// The leaf in the graph. Throws Error when the tensor cannot be used.
  ValueId value(int index);
  /// The contents if they are known when the model is compiled and stay, else null.
  LiteralPtr literal(int index);
  const TensorType& type(int index) const;
  const Leaf& operator[](int index) const { return leaves_[static_cast<size_t>(index)]; }
  Leaf& operator[](int index) { return leaves_[static_cast<size_t>(index)]; }
  int size() const { return static_cast<int>(leaves_.size()); }

 private:
  Graph& graph_;
  std::vector<Leaf> leaves_;
  std::map<std::string, int> names_;
};

}  // namespace sgtc
