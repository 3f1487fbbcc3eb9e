// The walk from outputs to inputs. When a reshape needs a loop coordinate divided into two digits,
// the attempt stops, the atom is split, and the walk starts anew with the finer domain: maps that
// are already on the way never have to be rewritten.
#include "passes/build_loop_nest.h"

#include <algorithm>
#include <utility>

#include "passes/nest_body.h"
#include "passes/nest_domain.h"
#include "passes/nest_walk.h"

namespace sgtc {
namespace {

struct DomainAtom {
  Atom atom;
  size_t dimension = 0;  // of the domain
};

std::vector<DomainAtom> first_atoms(const NestDomain& domain) {
  std::vector<DomainAtom> atoms;
  for (size_t d = 0; d < domain.dimensions.size(); ++d) {
    if (domain.dimensions[d] != 1) {
      atoms.push_back({{domain.dimensions[d], domain.reduced[d]}, d});
    }
  }
  return atoms;
}

void split_atom(std::vector<DomainAtom>& atoms, AtomSplit split) {
  DomainAtom inner = atoms[split.atom];
  inner.atom.extent = split.inner;
  atoms[split.atom].atom.extent /= split.inner;
  atoms.insert(atoms.begin() + static_cast<int64_t>(split.atom) + 1, inner);
}

std::vector<Atom> plain(const std::vector<DomainAtom>& atoms) {
  std::vector<Atom> result;
  for (const DomainAtom& atom : atoms) result.push_back(atom.atom);
  return result;
}

// A nest without work, for outputs without elements.
LoopNest empty_nest(const Graph& graph, const NestRequest& request) {
  LoopNest nest;
  nest.atoms = {{0, false}};
  NestBody body(graph);
  for (ValueId output : request.outputs) {
    Store store;
    store.argument = body.written_argument(output);
    store.value = body.constant(graph.dtype(output), 0, 0);
    store.index = AffineIndex(1);
    store.index.coefficients[0] = 1;
    nest.stores.push_back(store);
  }
  body.move_to(nest);
  finish_nest(nest, false);
  return nest;
}

void set_sections(LoopNest& nest, const NestRequest& request,
                  const std::vector<DomainAtom>& atoms) {
  for (const DomainAtom& atom : atoms) {
    if (atom.dimension < request.batch_dimensions) ++nest.row_begin;
    if (atom.dimension < request.batch_dimensions + request.row_dimensions) ++nest.vector_begin;
  }
}

// Accumulators are read and written in place.
bool updates_in_place(const LoopNest& nest) {
  for (const Store& store : nest.stores) {
    if (nest.arguments[static_cast<size_t>(store.argument)].read &&
        !may_share_bytes(nest, store.argument, store)) {
      return false;
    }
  }
  return true;
}

// The elements that one row of a store writes, where they lie side by side: their number, or 0.
int64_t row_elements(const LoopNest& nest, const Store& store) {
  std::vector<std::pair<int64_t, int64_t>> reduced;  // coefficients and extents
  for (size_t i = 0; i < nest.atoms.size(); ++i) {
    if (nest.atoms[i].reduced) {
      reduced.emplace_back(store.index.coefficients[i], nest.atoms[i].extent);
    }
  }
  std::sort(reduced.begin(), reduced.end());
  int64_t elements = 1;
  for (const auto& [coefficient, extent] : reduced) {
    if (coefficient != elements) return 0;
    elements *= extent;
  }
  return store.index.computed.empty() ? elements : 0;
}

// Whether a load reads, before the first sweep over a row, an element that no other row of the
// store writes: a score at the place of a label.
bool reads_before_sweeps(const LoopNest& nest, const Expression& load, const Store& store) {
  if (load.level != Level::kRow || load.depth != 0 || sweep_of(nest, store) == 0) return false;
  const int64_t elements = row_elements(nest, store);
  if (elements == 0) return false;
  for (size_t i = 0; i < nest.atoms.size(); ++i) {
    const int64_t expected = nest.atoms[i].reduced ? 0 : store.index.coefficients[i];
    if (load.index.coefficients[i] != expected || expected % elements != 0) return false;
  }
  const int64_t first = load.index.constant - store.index.constant;
  int64_t last = first;
  for (const AffineIndex::Computed& term : load.index.computed) {
    if (term.coefficient < 0) return false;
    last += term.coefficient * (term.extent - 1);
  }
  return first >= 0 && last < elements;
}

}  // namespace

bool is_loop_op(Op op) {
  switch (info(op).kind) {
    case OpKind::kElementwise:
    case OpKind::kMovement:
    case OpKind::kRandom:
    case OpKind::kMicroBatch:
      return true;
    case OpKind::kIndexing:
      return op == Op::kGather || op == Op::kGatherElements || op == Op::kGatherNd ||
             op == Op::kPick;
    case OpKind::kReduction:
      return op == Op::kReduceSum || op == Op::kReduceMax || op == Op::kReduceMin ||
             op == Op::kReduceProd;
    default:
      return false;
  }
}

bool may_share_bytes(const LoopNest& nest, int32_t read, const Store& store) {
  if (store.micro_batches > 0) return false;
  const Expression& stored = nest.expressions[static_cast<size_t>(store.value)];
  std::vector<std::vector<ExpressionId>> work = element_work(nest);
  for (size_t id = 0; id < nest.expressions.size(); ++id) {
    const Expression& load = nest.expressions[id];
    if (load.kind != Expression::Kind::kLoad || load.argument != read) continue;
    if (reads_before_sweeps(nest, load, store)) continue;
    bool same_place = load.index == store.index && load.guards.empty();
    if (!same_place || load.depth != 0 || load.level != stored.level) return false;
    for (int32_t sweep = sweep_of(nest, store) + 1; sweep < nest.sweeps; ++sweep) {
      const std::vector<ExpressionId>& list = work[static_cast<size_t>(sweep)];
      if (std::find(list.begin(), list.end(), static_cast<ExpressionId>(id)) != list.end()) {
        return false;
      }
    }
  }
  return true;
}

std::optional<LoopNest> build_loop_nest(const Graph& graph, const NestRequest& request) {
  bool has_elements = std::any_of(request.outputs.begin(), request.outputs.end(),
                                  [&](ValueId id) { return element_count(graph.shape(id)) != 0; });
  if (!has_elements) return empty_nest(graph, request);
  NestDomain domain = choose_domain(graph, request);
  std::vector<DomainAtom> atoms = first_atoms(domain);
  while (true) {
    NestWalk walk(graph, request, domain, plain(atoms));
    if (walk.run()) {
      LoopNest nest = walk.take();
      bool is_epilogue = request.given != kNone;
      if (is_epilogue) set_sections(nest, request, atoms);
      finish_nest(nest, is_epilogue);
      if (!updates_in_place(nest)) return std::nullopt;
      return nest;
    }
    if (!walk.split) return std::nullopt;
    split_atom(atoms, *walk.split);
  }
}

}  // namespace sgtc
