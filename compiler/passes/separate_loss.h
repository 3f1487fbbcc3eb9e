#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/loss_terms.h"
#include "support/diagnostics.h"

namespace sgtc {

enum class LossAverage {
  kExact,        // the loss of the step's rows together; refused where it cannot be proved
  kMeanOfMeans,  // the mean of the micro-batches' losses
};

/// Makes the loss of a forward graph the sum, over `micro_batches` and `replicas`, of what each
/// micro-batch adds to it, so that losses and gradients may simply be added. Runs before
/// `differentiate`.
///
/// The loss must be a sum of terms c * N / D and of batch-free terms, with N and D sums over
/// samples (loss_terms.h). Then
/// - a D that depends on feeds is computed in the prologue and accumulated in the accumulator
///   "loss.denominator.<k>" (role accumulator; over replicas, the sum of these is the denominator:
///   it must be reduced over them between prologue and forward);
/// - a constant D that counts elements is multiplied by micro_batches * replicas;
/// - batch-free terms are divided by micro_batches * replicas;
/// - outputs[0] becomes the result of accumulating the micro-batch's part into "loss.total" (over
///   replicas, the sum of these is the loss).
///
/// With LastBatch::kPad, which needs LossAverage::kExact, the graph gets the feed kRowWeights
/// (row_weights.h): rows of weight 0 add nothing to N and D, and wherever a constant counts the
/// elements of the batch, those of the rows of weight 1 are counted instead, which are accumulated
/// as "loss.rows" in the prologue.
///
/// With one micro-batch, one replica and no padding the graph is returned as it is. Otherwise
/// `micro_batches` becomes that of the graph. Errors name the node that breaks the form.
Graph separate_loss(Graph graph, int64_t micro_batches, int64_t replicas,
                    LossAverage average, Diagnostics& diagnostics,
                    LastBatch last_batch = LastBatch::kDrop);

/// By how much gradients of a micro-batch's own loss, which the file computes, have to be
/// multiplied so that their sum over `micro_batches` and `replicas` is the gradient of the step's
/// loss: 1 for a loss that is a plain sum, 1 / (micro_batches * replicas) for a mean over a
/// constant number of samples. An error, which names the node, for a loss that divides by what
/// depends on the feeds or mixes both forms, except for mean-of-means.
double share_of_micro_batch(const Graph& graph, int64_t micro_batches, int64_t replicas,
                            LossAverage average, Diagnostics& diagnostics);

/// Names of two outputs: over many micro-batches the loss is the sum over its ratios of
/// (sum of numerators) / (sum of denominators), or the sum of numerators alone where
/// `denominator` is empty.
struct LossRatio {
  std::string numerator;
  std::string denominator;
};

struct EvaluationLoss {
  Graph graph;
  std::vector<LossRatio> ratios;
};

/// Appends the outputs "loss.numerator.<k>" and "loss.denominator.<k>" of one micro-batch, of the
/// loss's dtype, shape []. Batch-free terms have the denominator 1. A denominator that is not
/// linear in sums (such as max(count, 1)) is taken per micro-batch. With LastBatch::kPad the graph
/// gets the feed kRowWeights, and rows of weight 0 do not count. A loss without that form is an
/// error that `diagnostics` collects; there are no ratios then.
EvaluationLoss separate_evaluation_loss(const Graph& graph, LossAverage average,
                                        Diagnostics& diagnostics,
                                        LastBatch last_batch = LastBatch::kDrop);

}  // namespace sgtc
