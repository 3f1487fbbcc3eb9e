// The loss as a sum of terms c * N / D.
#pragma once

#include <vector>

#include "passes/batch_axis.h"
#include "support/diagnostics.h"

namespace sgtc {

/// A factor of a term, or its divisor when `inverse`.
struct LossFactor {
  ValueId value = kNone;
  bool inverse = false;
};

/// One term. All values have one element; shapes and float dtypes may differ.
struct LossTerm {
  /// A sum over samples, or a value that is the same for every micro-batch.
  ValueId leaf = kNone;
  BatchFact fact;
  bool negative = false;
  /// Batch-free factors.
  std::vector<LossFactor> factors;
  /// Factors that are functions of sums over samples, none of which depends on a parameter.
  std::vector<LossFactor> totals;
  /// The constant divisor that counts the elements of the batch, or kNone.
  ValueId count = kNone;
  /// Whether the leaf is a mean over the samples already, by a division behind it.
  bool is_mean = false;
};

/// What becomes of rows at the end of an epoch that are less than a step.
enum class LastBatch {
  kDrop,
  kPad,  // the step is filled up with rows that must not count
};

/// Proves that outputs[0] is a sum of such terms, by walking back from it. A constant divisor that
/// is a multiple of the rows of a micro-batch counts its elements; a constant factor never does.
/// `facts` are those of find_batch_axes. Errors name the node that breaks the form, and a remedy
/// that depends on `last_batch`; then the result is empty.
std::vector<LossTerm> find_loss_terms(const Graph& graph, const std::vector<BatchFact>& facts,
                                      LastBatch last_batch, Diagnostics& diagnostics);

}  // namespace sgtc
