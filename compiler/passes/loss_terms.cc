#include "passes/loss_terms.h"

#include <string>

namespace sgtc {
namespace {

class Walk {
 public:
  Walk(const Graph& graph, const std::vector<BatchFact>& facts, LastBatch last_batch,
       Diagnostics& diagnostics)
      : graph_(graph),
        facts_(facts),
        last_batch_(last_batch),
        diagnostics_(diagnostics),
        trained_(graph.values.size()) {
    for (ValueId state : graph.states) {
      trained_[index(state)] = graph.value(state).role == StateRole::kParameter;
    }
    for (const Node& node : graph.nodes) {
      bool any = false;
      for (ValueId operand : node.operands) any = any || trained_[index(operand)];
      for (ValueId result : node.results) trained_[index(result)] = any;
    }
  }

  std::vector<LossTerm> run() {
    visit(graph_.outputs[0].value, {});
    if (failed_) return {};
    for (LossTerm& term : terms_) choose_count(term);
    return std::move(terms_);
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  const BatchFact& fact(ValueId id) const { return facts_[index(id)]; }
  bool is_free(ValueId id) const { return fact(id).kind == BatchKind::kFree; }
  /// A function of sums that no gradient flows through.
  bool is_total(ValueId id) const {
    const BatchKind kind = fact(id).kind;
    return (kind == BatchKind::kSum || kind == BatchKind::kTotal) && !trained_[index(id)];
  }
  bool is_scalar(ValueId id) const { return element_count(graph_.shape(id)) == 1; }

  static LossTerm negated(LossTerm term) {
    term.negative = !term.negative;
    return term;
  }

  LossTerm scaled(LossTerm term, ValueId factor, bool inverse) const {
    (is_free(factor) ? term.factors : term.totals).push_back({factor, inverse});
    return term;
  }

  /// `path`: the factors and the sign between the loss and `id`.
  void visit(ValueId id, LossTerm path) {
    if (is_free(id)) return finish(id, std::move(path));
    const Node* node = graph_.producer(id);
    if (node == nullptr || !descend(*node, path)) leaf(id, std::move(path));
  }

  /// Goes on behind `node` if it only adds, scales or renames scalars.
  bool descend(const Node& node, const LossTerm& path) {
    const ValueId a = node.operands.empty() ? kNone : node.operands[0];
    const ValueId b = node.operands.size() < 2 ? kNone : node.operands[1];
    switch (node.op) {
      case Op::kAdd:
      case Op::kSub:
        if (!is_scalar(a) || !is_scalar(b)) return false;
        visit(a, path);
        visit(b, node.op == Op::kAdd ? path : negated(path));
        return true;
      case Op::kNeg:
        return pass(a, negated(path));
      case Op::kCast:
        return is_float(graph_.dtype(a)) && pass(a, path);
      case Op::kReshape:
      case Op::kTranspose:
      case Op::kBroadcast:
      case Op::kReduceSum:
        return pass(a, path);
      case Op::kMul:
        return multiply(a, b, path);
      case Op::kDiv:
        return (is_free(b) || is_total(b)) && is_scalar(b) && pass(a, scaled(path, b, true));
      default:
        return false;
    }
  }

  bool pass(ValueId operand, LossTerm path) {
    if (!is_scalar(operand) || fact(operand).kind == BatchKind::kRows) return false;
    visit(operand, std::move(path));
    return true;
  }

  bool multiply(ValueId a, ValueId b, const LossTerm& path) {
    if (!is_scalar(a) || !is_scalar(b)) return false;
    if (is_free(a)) return pass(b, scaled(path, a, false));
    if (is_free(b)) return pass(a, scaled(path, b, false));
    if (is_total(b)) return pass(a, scaled(path, b, false));
    return is_total(a) && pass(b, scaled(path, a, false));
  }

  void leaf(ValueId id, LossTerm path) {
    if (fact(id).kind == BatchKind::kSum) return finish(id, std::move(path));
    fail(id);
  }

  void finish(ValueId id, LossTerm path) {
    path.leaf = id;
    path.fact = fact(id);
    terms_.push_back(std::move(path));
  }

  /// The rows are counted once, and not at all beside totals that are plain sums: these grow with
  /// the batch themselves.
  void choose_count(LossTerm& term) const {
    bool counts = term.totals.empty();
    for (const LossFactor& total : term.totals) counts = counts || fact(total.value).counted;
    if (term.fact.kind != BatchKind::kSum || !counts) return;
    term.is_mean = term.fact.counted;
    if (term.is_mean) return;
    for (size_t i = 0; i < term.factors.size(); ++i) {
      const LossFactor factor = term.factors[i];
      if (!factor.inverse || !is_batch_count(graph_, factor.value, graph_.micro_batch_rows)) {
        continue;
      }
      term.count = factor.value;
      term.factors.erase(term.factors.begin() + static_cast<int64_t>(i));
      return;
    }
  }

  void fail(ValueId id) {
    failed_ = true;
    const NodeId culprit =
        fact(id).kind == BatchKind::kMixed ? fact(id).culprit : graph_.value(id).producer;
    std::string object = graph_.value(id).name;
    std::string found = "the feed itself";
    if (culprit != kNone) {
      const Node& node = graph_.node(culprit);
      object = node.sources.empty() ? graph_.value(node.results[0]).name : node.sources[0];
      found = "operator " + std::string(name_of(node.op)) +
              (fact(id).kind == BatchKind::kMixed ? ", which combines samples in another way"
                                                  : ", which is not linear in sums over samples");
    }
    const bool pads = last_batch_ == LastBatch::kPad;
    const std::string problem = pads ? "padding cannot be kept out of the loss"
                                     : "the loss cannot be split exactly over micro-batches and "
                                       "replicas";
    const std::string remedy =
        pads ? "use --last-batch=drop"
             : "use one micro-batch and one replica, or --loss-average=mean-of-means, which "
               "averages the losses of the micro-batches";
    diagnostics_.error(object, problem +
                                   ": expected sums over samples divided by constants or by sums "
                                   "that depend on no parameter, found " +
                                   found + "; " + remedy);
  }

  const Graph& graph_;
  const std::vector<BatchFact>& facts_;
  const LastBatch last_batch_;
  Diagnostics& diagnostics_;
  std::vector<bool> trained_;
  std::vector<LossTerm> terms_;
  bool failed_ = false;
};

}  // namespace

std::vector<LossTerm> find_loss_terms(const Graph& graph, const std::vector<BatchFact>& facts,
                                      LastBatch last_batch, Diagnostics& diagnostics) {
  return Walk(graph, facts, last_batch, diagnostics).run();
}

}  // namespace sgtc
