// Averaging the losses of micro-batches is wrong as soon as they count different numbers of labels:
// the mean of means weighs a label by the company it keeps. So the loss is taken apart into
// numerators and denominators first, the denominators of all micro-batches are summed before any
// forward pass (they depend on labels, not on parameters), and every micro-batch divides by the
// sum. The loss and its gradients are then plain sums over micro-batches and replicas.
#include "passes/separate_loss.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "autodiff/expressions.h"
#include "ir/clone.h"
#include "passes/row_weights.h"

namespace sgtc {
namespace {

/// Values behind `wanted`, including it.
std::vector<bool> find_ancestors(const Graph& graph, const std::vector<ValueId>& wanted) {
  std::vector<bool> found(graph.values.size());
  for (ValueId id : wanted) found[static_cast<size_t>(id)] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    bool is_ancestor = false;
    for (ValueId result : node.results) {
      is_ancestor = is_ancestor || found[static_cast<size_t>(result)];
    }
    if (!is_ancestor) continue;
    for (ValueId operand : node.operands) found[static_cast<size_t>(operand)] = true;
  }
  return found;
}

/// What training and evaluation share: terms as scalars of the loss's dtype in a cloned graph.
class Terms {
 public:
  Terms(const Graph& source, const std::vector<BatchFact>& facts, LastBatch last_batch)
      : source_(source),
        facts_(facts),
        cloner_(source),
        e_(cloner_.target()),
        dtype_(source.dtype(source.outputs[0].value)) {
    if (last_batch == LastBatch::kPad) weights_ = add_row_weights(e_);
  }

 protected:
  bool is_weighted() const { return weights_ != kNone; }

  /// Clones a node that sums rows with weighted ones.
  void clone(const Node& node) {
    const std::optional<size_t> summed = summed_rows(facts_, node);
    if (!is_weighted() || !summed) return cloner_.clone(node);
    const ValueId rows = node.operands[*summed];
    const ValueId plain = cloner_[rows];
    cloner_.inherit(node);
    cloner_.replace(rows, weighted(rows, plain));
    cloner_.clone(node);
    cloner_.replace(rows, plain);
  }

  /// `copy`, a copy of the value `rows` of the source, times the weights.
  ValueId weighted(ValueId rows, ValueId copy) {
    return weigh_rows(e_, copy, facts_[static_cast<size_t>(rows)].dim, weights_);
  }

  void clone_all() {
    for (const Node& node : source_.nodes) clone(node);
    target().context() = {Phase::kForward, 0, loss_sources()};
  }

  Sources loss_sources() const {
    const Node* loss = source_.producer(source_.outputs[0].value);
    return loss == nullptr ? Sources() : loss->sources;
  }

  Graph& target() { return cloner_.target(); }

  ValueId scalar(ValueId id) { return e_.cast(e_.reshape(id, {}), dtype_); }

  ValueId apply(ValueId value, ValueId factor, bool inverse) {
    return inverse ? e_.div(value, scalar(factor)) : e_.mul(value, scalar(factor));
  }

  /// The leaf with its sign and its batch-free factors.
  ValueId numerator(const LossTerm& term) {
    ValueId value = scalar(cloner_[term.leaf]);
    for (const LossFactor& factor : term.factors) {
      value = apply(value, cloner_[factor.value], factor.inverse);
    }
    return term.negative ? e_.neg(value) : value;
  }

  const Graph& source_;
  const std::vector<BatchFact>& facts_;
  Cloner cloner_;
  Expressions e_;
  DType dtype_;
  ValueId weights_ = kNone;  // of the rows, in the target
};

class TrainingLoss : Terms {
 public:
  TrainingLoss(const Graph& source, const std::vector<BatchFact>& facts, int64_t micro_batches,
               int64_t replicas, LastBatch last_batch)
      : Terms(source, facts, last_batch), parts_(static_cast<double>(micro_batches * replicas)) {
    target().micro_batches = micro_batches;
  }

  Graph run(const std::vector<LossTerm>& terms) {
    std::vector<ValueId> sums;
    for (const LossTerm& term : terms) {
      for (const LossFactor& total : term.totals) collect_sums(total.value, sums);
    }
    if (is_weighted()) count_rows();
    accumulate_in_prologue(sums);
    clone_all();
    ValueId loss = kNone;
    for (const LossTerm& term : terms) {
      const ValueId part = part_of(term);
      loss = loss == kNone ? part : e_.add(loss, part);
    }
    return finish(loss);
  }

  Graph run_mean_of_means() {
    clone_all();
    return finish(e_.div(scalar(cloner_[source_.outputs[0].value]), parts_));
  }

 private:
  const BatchFact& fact(ValueId id) const { return facts_[static_cast<size_t>(id)]; }

  /// The sums over samples that a total is a function of, in order of first use.
  void collect_sums(ValueId id, std::vector<ValueId>& sums) {
    const BatchKind kind = fact(id).kind;
    if (kind == BatchKind::kFree || !seen_.try_emplace(id, true).second) return;
    if (kind == BatchKind::kSum) return sums.push_back(id);
    for (ValueId operand : source_.producer(id)->operands) collect_sums(operand, sums);
  }

  void count_rows() {
    target().context() = {Phase::kPrologue, 0, loss_sources()};
    counted_rows_ = accumulate("loss.rows", e_.cast(e_.sum_all(weights_), dtype_));
  }

  /// `value` divided by `count`, a number of elements of a micro-batch, times how many
  /// micro-batches the rows that count fill.
  ValueId divide_by_all(ValueId value, double count) {
    if (!is_weighted()) return e_.div(value, count * parts_);
    const double rows = static_cast<double>(source_.micro_batch_rows);
    return e_.div(value, e_.div(e_.mul(counted_rows_, count), rows));
  }

  void accumulate_in_prologue(const std::vector<ValueId>& sums) {
    const std::vector<bool> wanted = find_ancestors(source_, sums);
    std::map<ValueId, ValueId> copies;
    auto copy_of = [&](ValueId id) {
      return source_.producer(id) == nullptr ? cloner_[id] : copies.at(id);
    };
    for (const Node& node : source_.nodes) {
      const bool is_wanted =
          std::any_of(node.results.begin(), node.results.end(),
                      [&](ValueId result) { return wanted[static_cast<size_t>(result)]; });
      if (!is_wanted) continue;
      target().context() = {Phase::kPrologue, 0, node.sources};
      std::vector<ValueId> operands;
      for (ValueId operand : node.operands) operands.push_back(copy_of(operand));
      const std::optional<size_t> summed = summed_rows(facts_, node);
      if (is_weighted() && summed) {
        operands[*summed] = weighted(node.operands[*summed], operands[*summed]);
      }
      const std::vector<ValueId> results = target().add_node(node.op, operands, node.attributes);
      for (size_t i = 0; i < results.size(); ++i) copies[node.results[i]] = results[i];
    }
    for (size_t k = 0; k < sums.size(); ++k) {
      const Node* producer = source_.producer(sums[k]);
      target().context().sources = producer->sources;
      const ValueId sum = accumulate("loss.denominator." + std::to_string(k), copies.at(sums[k]));
      target().context().phase = Phase::kForward;
      // Of means, the mean is wanted.
      totals_[sums[k]] = fact(sums[k]).counted ? divide_by_all(sum, 1) : sum;
      target().context().phase = Phase::kPrologue;
    }
  }

  ValueId accumulate(const std::string& name, ValueId value) {
    const ValueId state =
        target().add_state(name, target().type(value), StateRole::kAccumulator, {});
    return target().add(Op::kAccumulate, {state, value}, {}, name + ".sum");
  }

  /// `id` computed from the sums of all micro-batches.
  ValueId total(ValueId id) {
    if (fact(id).kind == BatchKind::kFree) return cloner_[id];
    if (auto known = totals_.find(id); known != totals_.end()) return known->second;
    const Node& node = *source_.producer(id);
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(total(operand));
    const std::vector<ValueId> results = target().add_node(node.op, operands, node.attributes);
    for (size_t i = 0; i < results.size(); ++i) totals_[node.results[i]] = results[i];
    return totals_.at(id);
  }

  /// What this micro-batch adds to the loss.
  ValueId part_of(const LossTerm& term) {
    ValueId value = numerator(term);
    for (const LossFactor& factor : term.totals) {
      value = apply(value, total(factor.value), factor.inverse);
    }
    if (term.count != kNone) {
      return divide_by_all(value, source_.value(term.count).literal->as_double(0));
    }
    if (term.fact.kind == BatchKind::kFree) return e_.div(value, parts_);
    return term.is_mean ? divide_by_all(value, 1) : value;
  }

  Graph finish(ValueId part) {
    const ValueId loss = source_.outputs[0].value;
    cloner_.replace(loss, accumulate("loss.total", e_.reshape(part, source_.shape(loss))));
    return cloner_.finish();
  }

  double parts_;
  ValueId counted_rows_ = kNone;  // the sum of all weights of the step
  std::map<ValueId, bool> seen_;
  std::map<ValueId, ValueId> totals_;  // source value -> value of the whole step
};

class Evaluation : Terms {
 public:
  Evaluation(const Graph& source, const std::vector<BatchFact>& facts, LastBatch last_batch)
      : Terms(source, facts, last_batch) {
    clone_all();
  }

  EvaluationLoss run(const std::vector<LossTerm>& terms) {
    for (const LossTerm& term : terms) add_term(term);
    return finish();
  }

  EvaluationLoss run_mean_of_means() {
    add(scalar(cloner_[source_.outputs[0].value]), e_.constant(dtype_, 1));
    return finish();
  }

 private:
  void add_term(const LossTerm& term) {
    ValueId above = numerator(term);
    ValueId below = kNone;  // for a plain sum
    const bool is_once = term.fact.kind == BatchKind::kFree || term.is_mean;
    if (is_once) below = e_.constant(dtype_, 1);
    if (term.count != kNone) below = scalar(cloner_[term.count]);
    for (const LossFactor& factor : term.totals) {
      const ValueId total = cloner_[factor.value];
      if (below == kNone) below = e_.constant(dtype_, 1);
      if (term.fact.kind == BatchKind::kFree) {
        above = apply(above, total, factor.inverse);
      } else {
        below = apply(below, total, !factor.inverse);
      }
    }
    // Totals that count rows are weighted themselves.
    const bool weighs_below = term.fact.kind != BatchKind::kFree && term.totals.empty();
    add(above, is_weighted() && weighs_below ? weighted_count(below) : below);
  }

  /// `count`, or 1, times the part of the micro-batch that its weights leave.
  ValueId weighted_count(ValueId count) {
    ValueId rows = e_.cast(e_.sum_all(weights_), dtype_);
    if (count != kNone) rows = e_.mul(rows, count);
    return e_.div(rows, static_cast<double>(source_.micro_batch_rows));
  }

  void add(ValueId numerator, ValueId denominator) {
    const std::string k = std::to_string(ratios_.size());
    LossRatio ratio = {"loss.numerator." + k, ""};
    outputs_.push_back({ratio.numerator, numerator});
    if (denominator != kNone) {
      ratio.denominator = "loss.denominator." + k;
      outputs_.push_back({ratio.denominator, denominator});
    }
    ratios_.push_back(std::move(ratio));
  }

  EvaluationLoss finish() {
    Graph graph = cloner_.finish();
    graph.outputs.insert(graph.outputs.end(), outputs_.begin(), outputs_.end());
    return {std::move(graph), std::move(ratios_)};
  }

  std::vector<Output> outputs_;
  std::vector<LossRatio> ratios_;
};

}  // namespace

Graph separate_loss(Graph graph, int64_t micro_batches, int64_t replicas, LossAverage average,
                    Diagnostics& diagnostics, LastBatch last_batch) {
  if (micro_batches * replicas == 1 && last_batch == LastBatch::kDrop) return graph;
  const std::vector<BatchFact> facts = find_batch_axes(graph);
  if (last_batch == LastBatch::kPad) check_row_weights(graph, facts, diagnostics);
  diagnostics.checkpoint();
  TrainingLoss loss(graph, facts, micro_batches, replicas, last_batch);
  if (average == LossAverage::kMeanOfMeans) return loss.run_mean_of_means();
  const std::vector<LossTerm> terms = find_loss_terms(graph, facts, last_batch, diagnostics);
  diagnostics.checkpoint();
  return loss.run(terms);
}

double share_of_micro_batch(const Graph& graph, int64_t micro_batches, int64_t replicas,
                            LossAverage average, Diagnostics& diagnostics) {
  const double mean = 1 / static_cast<double>(micro_batches * replicas);
  if (mean == 1 || average == LossAverage::kMeanOfMeans) return mean;
  const std::vector<LossTerm> terms =
      find_loss_terms(graph, find_batch_axes(graph), LastBatch::kDrop, diagnostics);
  diagnostics.checkpoint();
  bool sums = false, means = false, others = false;
  for (const LossTerm& term : terms) {
    const bool averaged = term.count != kNone || term.is_mean || term.fact.kind == BatchKind::kFree;
    (!term.totals.empty() ? others : averaged ? means : sums) = true;
  }
  if (others || (sums && means)) {
    diagnostics.error(graph.outputs[0].name,
                      "the gradients in the file are those of one micro-batch, and its loss "
                      "divides by what differs between micro-batches; use one micro-batch, the "
                      "graph without gradients (eval_model.onnx), or --loss-average=mean-of-means");
    diagnostics.checkpoint();
  }
  return means ? mean : 1;
}

EvaluationLoss separate_evaluation_loss(const Graph& graph, LossAverage average,
                                        Diagnostics& diagnostics, LastBatch last_batch) {
  const std::vector<BatchFact> facts = find_batch_axes(graph);
  Evaluation evaluation(graph, facts, last_batch);
  if (average == LossAverage::kMeanOfMeans) return evaluation.run_mean_of_means();
  return evaluation.run(find_loss_terms(graph, facts, last_batch, diagnostics));
}

}  // namespace sgtc
