// Softmax, normalisation and attention of the interpreter. Steps inside one operator are not
// rounded.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ir/interpret_ops.h"
#include "support/diagnostics.h"

namespace sgtc::interpret {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The maximum of a line, NaN not counted, and the sum of exp(x - maximum).
struct LineStatistics {
  double maximum = -kInfinity;
  double sum = 0;

  LineStatistics(const std::vector<double>& line, bool zero_empty) {
    for (const double x : line) maximum = std::max(maximum, x);
    const double base = maximum == -kInfinity ? 0 : maximum;
    for (const double x : line) sum += std::exp(x - base);
    if (zero_empty && sum == 0) {
      maximum = 0;
      sum = 1;
    }
  }
};

void softmax(const Call& call) {
  const AxisView view(call.shape(0), call.attributes.integer("axis"));
  const std::vector<double>& x = call.operand(0).reals;
  std::vector<double> line(static_cast<size_t>(view.size));
  for (int64_t l = 0; l < view.outer * view.inner; ++l) {
    const auto at = [&](size_t i) {
      return static_cast<size_t>(view.at(l / view.inner, static_cast<int64_t>(i), l % view.inner));
    };
    double largest = -kInfinity;
    for (size_t i = 0; i < line.size(); ++i) {
      line[i] = x[at(i)];
      largest = line[i] >= largest || std::isnan(line[i]) ? line[i] : largest;
    }
    double sum = 0;
    for (const double value : line) sum += std::exp(value - largest);
    for (size_t i = 0; i < line.size(); ++i) {
      const double centred = line[i] - largest;
      const double y = call.op == Op::kSoftmax ? std::exp(centred) / sum : centred - std::log(sum);
      call.result().reals[at(i)] = call.rounded(y);
    }
  }
}

void normalize(const Call& call) {
  const double epsilon = call.attributes.real("epsilon");
  const std::vector<double>& x = call.operand(0).reals;
  const Shape& statistics = call.results[1].type.shape;
  std::vector<double> mean(call.results[1].reals.size(), 0);
  std::vector<double> variance(mean.size(), 0);
  const double count = static_cast<double>(x.size()) / static_cast<double>(mean.size());
  const auto for_each = [&](auto visit) {
    size_t i = 0;
    for_each_index(call.shape(0), [&](const Shape& index) {
      visit(i++, static_cast<size_t>(position_in(statistics, index)));
    });
  };
  for_each([&](size_t i, size_t s) { mean[s] += x[i]; });
  for (double& m : mean) m /= count;
  for_each([&](size_t i, size_t s) { variance[s] += (x[i] - mean[s]) * (x[i] - mean[s]); });
  for (double& v : variance) v /= count;
  for_each([&](size_t i, size_t s) {
    const double y = (x[i] - mean[s]) / std::sqrt(variance[s] + epsilon);
    call.results[0].reals[i] = call.rounded(y);
  });
  for (size_t s = 0; s < mean.size(); ++s) {
    call.results[1].reals[s] = call.rounded(mean[s], 1);
    call.results[2].reals[s] = call.rounded(variance[s], 2);
  }
}

// The sizes of an attention and where the rows of its operands are.
struct Heads {
  int64_t batch, heads, groups, queries, keys, depth, value_depth;

  explicit Heads(const Call& call)
      : batch(call.shape(0)[0]),
        heads(call.shape(0)[1]),
        groups(call.shape(1)[1]),
        queries(call.shape(0)[2]),
        keys(call.shape(1)[2]),
        depth(call.shape(0)[3]),
        value_depth(call.shape(2)[3]) {}

  size_t query(int64_t b, int64_t h, int64_t t) const {
    return static_cast<size_t>((b * heads + h) * queries + t);
  }
  size_t key(int64_t b, int64_t h, int64_t s) const {
    return static_cast<size_t>((b * groups + h / (heads / groups)) * keys + s);
  }

  template <typename Visit>
  void for_each_query(Visit visit) const {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t t = 0; t < queries; ++t) visit(b, h, t);
      }
    }
  }
};

double dot(const std::vector<double>& a, size_t row_a, const std::vector<double>& b, size_t row_b,
           int64_t size) {
  double sum = 0;
  const auto n = static_cast<size_t>(size);
  for (size_t i = 0; i < n; ++i) sum += a[row_a * n + i] * b[row_b * n + i];
  return sum;
}

// Adds factor * row_b of b to row_a of a.
void add_row(std::vector<double>& a, size_t row_a, double factor, const std::vector<double>& b,
             size_t row_b, int64_t size) {
  const auto n = static_cast<size_t>(size);
  for (size_t i = 0; i < n; ++i) a[row_a * n + i] += factor * b[row_b * n + i];
}

// Scaled and masked scores of one query against all keys; `mask` may be null.
std::vector<double> scores(const Call& call, const Heads& heads, const Tensor* mask, int64_t b,
                           int64_t h, int64_t t) {
  const bool causal = call.attributes.integer_or("causal", 0) != 0;
  const double scale = call.attributes.real("scale");
  std::vector<double> line(static_cast<size_t>(heads.keys), -kInfinity);
  for (int64_t s = 0; s < heads.keys && !(causal && s > t); ++s) {
    double& score = line[static_cast<size_t>(s)];
    score = scale * dot(call.operand(0).reals, heads.query(b, h, t), call.operand(1).reals,
                        heads.key(b, h, s), heads.depth);
    if (mask != nullptr) score += mask->at(position_in(mask->type.shape, {b, h, t, s}));
  }
  return line;
}

const Tensor* mask_of(const Call& call, size_t position) {
  return call.operands.size() > position ? call.operands[position] : nullptr;
}

void round_results(const Call& call) {
  for (size_t r = 0; r < call.results.size(); ++r) {
    for (double& value : call.results[r].reals) value = call.rounded(value, r);
  }
}

}  // namespace

void attention(const Call& call) {
  const Heads heads(call);
  heads.for_each_query([&](int64_t b, int64_t h, int64_t t) {
    const std::vector<double> line = scores(call, heads, mask_of(call, 3), b, h, t);
    const LineStatistics known(line, call.attributes.integer_or("zero_empty", 0) != 0);
    const size_t row = heads.query(b, h, t);
    call.results[1].reals[row] = known.maximum;
    call.results[2].reals[row] = known.sum;
    for (int64_t s = 0; s < heads.keys; ++s) {
      const double weight = std::exp(line[static_cast<size_t>(s)] - known.maximum) / known.sum;
      add_row(call.results[0].reals, row, weight, call.operand(2).reals, heads.key(b, h, s),
              heads.value_depth);
    }
  });
  round_results(call);
}

// Adds what the query (b, h, t) with these weights gives to the gradients that are not null. With
// weights P and `mean` = rowsum(dO O), dV = P^T dO and dS = P (dO V^T - mean).
struct AttentionGradients {
  std::vector<double>*q, *k, *v;

  void add(const Call& call, const Heads& heads, const std::vector<double>& weights, double mean,
           const std::vector<double>& doutput, int64_t b, int64_t h, int64_t t) const {
    const double scale = call.attributes.real("scale");
    const size_t query = heads.query(b, h, t);
    for (int64_t s = 0; s < heads.keys; ++s) {
      const size_t key = heads.key(b, h, s);
      const double weight = weights[static_cast<size_t>(s)];
      const double dweight = dot(doutput, query, call.operand(2).reals, key, heads.value_depth);
      const double dscore = scale * weight * (dweight - mean);
      if (q != nullptr) add_row(*q, query, dscore, call.operand(1).reals, key, heads.depth);
      if (k != nullptr) add_row(*k, key, dscore, call.operand(0).reals, query, heads.depth);
      if (v != nullptr) add_row(*v, key, weight, doutput, query, heads.value_depth);
    }
  }
};

// For attention_grad and its first half; `visit(query, maximum, sum, mean)` sees each query.
template <typename Visit>
void add_gradients(const Call& call, const Heads& heads, const AttentionGradients& gradients,
                   Visit visit) {
  const std::vector<double>& doutput = call.operand(6).reals;
  heads.for_each_query([&](int64_t b, int64_t h, int64_t t) {
    const size_t q = heads.query(b, h, t);
    const double maximum = call.operand(4).reals[q], sum = call.operand(5).reals[q];
    const double mean = dot(doutput, q, call.operand(3).reals, q, heads.value_depth);
    std::vector<double> weights = scores(call, heads, mask_of(call, 7), b, h, t);
    for (double& x : weights) x = std::exp(x - maximum) / sum;
    gradients.add(call, heads, weights, mean, doutput, b, h, t);
    visit(q, maximum, sum, mean);
  });
}

void attention_grad(const Call& call) {
  std::vector<Tensor>& results = call.results;
  const AttentionGradients gradients = {&results[0].reals, &results[1].reals, &results[2].reals};
  add_gradients(call, Heads(call), gradients, [](size_t, double, double, double) {});
  round_results(call);
}

// The place of a query's terms among those of [B,H,P].
size_t term_row(const Heads& heads, size_t query) {
  const auto queries = static_cast<size_t>(heads.queries);
  return query / queries * ((queries + 63) / 64 * 64) + query % queries;
}

void attention_query_grad(const Call& call) {
  const Heads heads(call);
  const bool has_mask = mask_of(call, 7) != nullptr;
  const size_t count = has_mask ? 4 : 2;
  std::vector<double>& terms = call.results[1].reals;
  for (size_t i = 0; i < terms.size(); i += count) terms[has_mask ? i + 1 : i] = kInfinity;
  add_gradients(call, heads, {&call.results[0].reals, nullptr, nullptr},
                [&](size_t query, double maximum, double sum, double mean) {
                  double* to = &terms[term_row(heads, query) * count];
                  if (has_mask) *to++ = maximum;
                  to[0] = std::log2(sum) + (has_mask ? 0 : maximum * std::numbers::log2e);
                  to[1] = mean;
                });
  round_results(call);
}

void attention_key_grad(const Call& call) {
  const Heads heads(call);
  const Tensor* mask = mask_of(call, 5);
  const size_t count = mask != nullptr ? 4 : 2;
  const AttentionGradients gradients = {nullptr, &call.results[0].reals, &call.results[1].reals};
  heads.for_each_query([&](int64_t b, int64_t h, int64_t t) {
    const double* terms = &call.operand(4).reals[term_row(heads, heads.query(b, h, t)) * count];
    const double maximum = mask != nullptr ? *terms++ : 0;
    std::vector<double> weights = scores(call, heads, mask, b, h, t);
    for (double& x : weights) x = std::exp2((x - maximum) * std::numbers::log2e - terms[0]);
    gradients.add(call, heads, weights, terms[1], call.operand(3).reals, b, h, t);
  });
  round_results(call);
}

void composition(const Call& call) {
  switch (call.op) {
    case Op::kSoftmax:
    case Op::kLogSoftmax:
      return softmax(call);
    case Op::kNormalize:
      return normalize(call);
    case Op::kAttention:
      return attention(call);
    case Op::kAttentionGrad:
      return attention_grad(call);
    case Op::kAttentionQueryGrad:
      return attention_query_grad(call);
    case Op::kAttentionKeyGrad:
      return attention_key_grad(call);
    default:
      internal_error(__FILE__, __LINE__, std::string(name_of(call.op)) + " is no composition");
  }
}

}  // namespace sgtc::interpret
