// Einsum as a chain of matrix products.
//
// Each operand is a value with one label per dimension. Repeated labels of an operand become its
// diagonal; a label that nobody else needs is summed out at once. Two operands combine into one:
// labels of both that are needed later are batch dimensions, labels of both that are not are
// contracted, the others stay with their operand; that is one batched matrix product, or an
// elementwise product when nothing is contracted. Operands combine from left to right, which is
// not always the cheapest order. The dimensions of an ellipsis get labels of their own, counted
// from the right so that ellipses of unequal rank broadcast.
#include <algorithm>

#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

using Labels = std::string;

struct Term {
  ValueId value = kNone;
  Labels labels;
};

bool contains(const Labels& labels, char label) { return labels.find(label) != Labels::npos; }

// The label of ellipsis dimension `from_right`: beyond the letters.
char ellipsis_label(int64_t from_right) { return static_cast<char>(-1 - from_right); }

bool is_ellipsis_label(char label) { return label < 0; }

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
};

// Replaces "..." by labels for `dims` dimensions; `text` has no blanks.
Labels expand_ellipsis(const std::string& text, int64_t dims) {
  const size_t at = text.find("...");
  if (at == std::string::npos) return text;
  Labels labels = text.substr(0, at);
  for (int64_t i = dims - 1; i >= 0; --i) labels += ellipsis_label(i);
  return labels + text.substr(at + 3);
}

Labels checked_labels(const std::string& text, int64_t rank) {
  const bool open = text.find("...") != std::string::npos;
  const int64_t letters = static_cast<int64_t>(text.size()) - (open ? 3 : 0);
  if (open ? letters > rank : letters != rank) {
    throw Error("term \"" + text + "\" of the equation does not fit an operand of rank " +
                std::to_string(rank));
  }
  const Labels labels = expand_ellipsis(text, rank - letters);
  for (char label : labels) {
    if (!is_ellipsis_label(label) && !std::isalpha(static_cast<unsigned char>(label))) {
      throw Error("term \"" + text + "\" of the equation has a character that is not a letter");
    }
  }
  return labels;
}

// Without "->": the labels that occur once, in alphabetic order, after the ellipsis.
Labels implicit_output(const std::vector<Labels>& inputs) {
  Labels all, letters, ellipsis;
  for (const Labels& labels : inputs) all += labels;
  std::sort(all.begin(), all.end());
  for (char label : all) {
    if (is_ellipsis_label(label)) {
      if (!contains(ellipsis, label)) ellipsis += label;
    } else if (std::count(all.begin(), all.end(), label) == 1) {
      letters += label;
    }
  }
  return ellipsis + letters;  // ascending codes: the leftmost ellipsis dimension comes first
}

Equation parse_equation(Lowering& n) {
  std::string text = n.text("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow) + ",";
  Equation equation;
  int64_t ellipsis_rank = 0;
  for (size_t comma = left.find(','); comma != std::string::npos; comma = left.find(',')) {
    const auto index = static_cast<int>(equation.inputs.size());
    if (index >= n.input_count()) throw Error("equation \"" + text + "\" has too many terms");
    const Labels labels = checked_labels(left.substr(0, comma), n.input_rank(index));
    ellipsis_rank = std::max<int64_t>(
        ellipsis_rank, std::count_if(labels.begin(), labels.end(), is_ellipsis_label));
    equation.inputs.push_back(labels);
    left.erase(0, comma + 1);
  }
  if (static_cast<int>(equation.inputs.size()) != n.input_count()) {
    throw Error("equation \"" + text + "\" has " + std::to_string(equation.inputs.size()) +
                " terms, the node has " + std::to_string(n.input_count()) + " inputs");
  }
  equation.output = arrow == std::string::npos
                        ? implicit_output(equation.inputs)
                        : expand_ellipsis(text.substr(arrow + 2), ellipsis_rank);
  return equation;
}

ValueId move_to_front(Emitter& e, ValueId x, const std::vector<int64_t>& axes) {
  std::vector<int64_t> perm = axes;
  for (int64_t i = 0; i < e.rank(x); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) perm.push_back(i);
  }
  return e.transpose(x, perm);
}

// One dimension for a label that occurs twice: flattened in front, every (size+1)-th element.
Term take_diagonals(Emitter& e, Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    const size_t j = term.labels.find(term.labels[i], i + 1);
    if (j == Labels::npos) continue;
    const Shape shape = e.shape(term.value);
    if (shape[i] != shape[j]) {
      throw Error("a repeated label has sizes " + std::to_string(shape[i]) + " and " +
                  std::to_string(shape[j]));
    }
    const int64_t size = shape[i];
    ValueId x = move_to_front(e, term.value, {static_cast<int64_t>(i), static_cast<int64_t>(j)});
    Shape flat = e.shape(x);
    flat.erase(flat.begin());
    flat[0] = size * size;
    x = e.slice(e.reshape(x, flat), 0, 0, size, size + 1);
    Labels labels(1, term.labels[i]);
    for (size_t k = 0; k < term.labels.size(); ++k) {
      if (k != i && k != j) labels += term.labels[k];
    }
    return take_diagonals(e, {x, labels});
  }
  return term;
}

// Sums out the labels that are not in `needed`.
Term sum_unneeded(Emitter& e, const Term& term, const Labels& needed) {
  std::vector<int64_t> axes;
  Labels kept;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (contains(needed, term.labels[i])) {
      kept += term.labels[i];
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  if (axes.empty()) return term;
  return {e.squeeze(e.reduce(Op::kReduceSum, term.value, axes), axes), kept};
}

int64_t size_of_label(Emitter& e, const Term& term, char label) {
  return e.shape(term.value)[term.labels.find(label)];
}

// Drops dimensions of size 1 whose label has a larger size in `other`: they broadcast.
Term drop_broadcast(Emitter& e, const Term& term, const Term& other) {
  std::vector<int64_t> axes;
  Labels kept;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    const char label = term.labels[i];
    const bool broadcast = contains(other.labels, label) && e.shape(term.value)[i] == 1 &&
                           size_of_label(e, other, label) != 1;
    if (broadcast) axes.push_back(static_cast<int64_t>(i));
    if (!broadcast) kept += label;
  }
  return {e.squeeze(term.value, axes), kept};
}

ValueId arrange(Emitter& e, const Term& term, const Labels& order) {
  std::vector<int64_t> perm;
  for (char label : order) perm.push_back(static_cast<int64_t>(term.labels.find(label)));
  return e.transpose(term.value, perm);
}

int64_t product_of(Emitter& e, const Term& term, const Labels& labels) {
  int64_t product = 1;
  for (char label : labels) product *= size_of_label(e, term, label);
  return product;
}

Shape sizes_of(Emitter& e, const Term& term, const Labels& labels) {
  Shape sizes;
  for (char label : labels) sizes.push_back(size_of_label(e, term, label));
  return sizes;
}

Shape joined(Shape a, const Shape& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Term combine(Emitter& e, Term a, Term b, const Labels& needed) {
  a = drop_broadcast(e, a, b);
  b = drop_broadcast(e, b, a);
  Labels batch, contracted, left, right;
  for (char label : a.labels) {
    if (!contains(b.labels, label))
      left += label;
    else if (contains(needed, label))
      batch += label;
    else
      contracted += label;
  }
  for (char label : b.labels) {
    if (!contains(a.labels, label))
      right += label;
    else if (size_of_label(e, a, label) != size_of_label(e, b, label)) {
      throw Error("a label of the equation has sizes " +
                  std::to_string(size_of_label(e, a, label)) + " and " +
                  std::to_string(size_of_label(e, b, label)));
    }
  }
  const Shape outer = sizes_of(e, a, batch);
  const int64_t m = product_of(e, a, left), k = product_of(e, a, contracted);
  const int64_t columns = product_of(e, b, right);
  const ValueId x = e.reshape(arrange(e, a, batch + left + contracted), joined(outer, {m, k}));
  ValueId product;
  if (contracted.empty()) {
    product = e.mul(x, e.reshape(arrange(e, b, batch + right), joined(outer, {1, columns})));
  } else {
    product = e.matmul(
        x, e.reshape(arrange(e, b, batch + contracted + right), joined(outer, {k, columns})));
  }
  const Shape shape = joined(joined(outer, sizes_of(e, a, left)), sizes_of(e, b, right));
  return {e.reshape(product, shape), batch + left + right};
}

ValueIds lower_einsum(Lowering& n) {
  const Equation equation = parse_equation(n);
  std::vector<Term> terms;
  for (size_t i = 0; i < equation.inputs.size(); ++i) {
    terms.push_back(take_diagonals(n, {n.input(static_cast<int>(i)), equation.inputs[i]}));
  }
  Term result = terms.front();
  for (size_t i = 0; i < terms.size(); ++i) {
    Labels needed = equation.output;
    for (size_t j = i + 1; j < terms.size(); ++j) needed += terms[j].labels;
    if (i == 0) {
      result = sum_unneeded(n, result, needed);
      continue;
    }
    const Term next = sum_unneeded(n, terms[i], needed + result.labels);
    result = sum_unneeded(n, combine(n, result, next, needed), needed);
  }
  for (char label : equation.output) {
    if (!contains(result.labels, label)) {
      throw Error("the output of the equation has a label that no operand has");
    }
  }
  if (result.labels.size() != equation.output.size()) {
    throw Error("the output of the equation names a label twice");
  }
  return {arrange(n, result, equation.output)};
}

const std::vector<Rule> kRules = {{"", "Einsum", {12}, lower_einsum}};

}  // namespace

std::span<const Rule> einsum_rules() { return kRules; }

}  // namespace sgtc
