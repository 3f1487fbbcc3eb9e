// The walk over the nodes of a nest, from its outputs to its inputs. Internal to build_loop_nest.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "passes/build_loop_nest.h"
#include "passes/nest_body.h"
#include "passes/nest_domain.h"

namespace sgtc {

/// One walk with fixed atoms. Functions that return an expression return kNone when the nodes do
/// not fit, or when `split` asks for another attempt.
class NestWalk {
 public:
  NestWalk(const Graph& graph, const NestRequest& request, const NestDomain& domain,
           std::vector<Atom> atoms)
      : graph_(graph), request_(request), domain_(domain), body_(graph), atoms_(std::move(atoms)) {}

  /// False when the nodes do not fit, or when `split` asks for another attempt.
  bool run();
  /// The nest, not yet finished (finish_nest).
  LoopNest take();

  std::optional<AtomSplit> split;

 private:
  using Guards = std::vector<Guard>;

  struct Visited {
    size_t map;  // in maps_
    Guards guards;
    ExpressionId expression;
  };

  // Outputs.
  bool store(ValueId output);
  int32_t written_argument(ValueId output);
  bool find_storable(ValueId value, AffineIndex* index, ExpressionId* expression);
  std::optional<ElementMap> requested_map(ValueId value);
  std::optional<ElementMap> digits_of(const AffineIndex& index, const Shape& shape);
  bool follow_given();
  std::optional<ElementMap> followed_map(const Node& node);

  // Values.
  ExpressionId value(ValueId id, const ElementMap& map, const Guards& guards);
  ExpressionId compute(const Node& node, ValueId id, const ElementMap& map, const Guards& guards);
  ExpressionId outside(ValueId id, const ElementMap& map, const Guards& guards);
  ExpressionId elementwise(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId movement(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId reshape(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId pad(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId concat(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId place(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId iota(const Node& node, const ElementMap& map);
  ExpressionId indexing(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId reduce(const Node& node, const ElementMap& map, const Guards& guards);
  ExpressionId random(const Node& node, const ElementMap& map);

  // Helpers.
  ExpressionId broadcast_value(ValueId id, const ElementMap& map, const Guards& guards);
  ExpressionId select(const Guards& conditions, ExpressionId yes, ExpressionId no, DType dtype);
  AffineIndex checked_index(Op op, ValueId indices, const ElementMap& map, const Guards& guards,
                            int64_t extent);
  size_t kept(const ElementMap& map);
  /// Calls visit(visited) for each place where the value was computed until that returns true.
  template <typename Visit>
  bool any_visited(ValueId id, const Visit& visit) const {
    auto at = std::lower_bound(places_.begin(), places_.end(), std::pair(id, size_t{0}));
    while (at != places_.end() && at->first == id && !visit(visited_[at->second])) ++at;
    return at != places_.end() && at->first == id;
  }
  AffineIndex zero() const { return AffineIndex(atoms_.size()); }
  AffineIndex identity() const;                 // row-major over all atoms
  AffineIndex linear_over(bool reduced) const;  // over the reduced ones or the others
  int64_t parallel_extent() const;
  bool always(const Guard& guard) const;
  bool is_inside(ValueId id) const {
    const Value& value = graph_.value(id);
    return value.kind == ValueKind::kResult &&
           std::binary_search(request_.nodes.begin(), request_.nodes.end(), value.producer);
  }
  bool uses_reduced(const AffineIndex& index) const;

  const Graph& graph_;
  const NestRequest& request_;
  const NestDomain& domain_;
  NestBody body_;
  std::vector<Atom> atoms_;
  std::vector<Store> stores_;
  std::vector<Visited> visited_;
  std::vector<std::pair<ValueId, size_t>> places_;  // sorted: values and what is in visited_
  std::vector<ElementMap> maps_;                    // each once: most values have the same
  std::map<ValueId, ElementMap> followed_;          // epilogues: where the anchor's element goes
};

}  // namespace sgtc
