#include "passes/affine_index.h"

#include <algorithm>
#include <utility>

namespace sgtc {

void AffineIndex::add(const AffineIndex& other, int64_t factor) {
  for (size_t i = 0; i < other.coefficients.size(); ++i) {
    coefficients[i] += factor * other.coefficients[i];
  }
  for (const Computed& term : other.computed) {
    add_computed(term.expression, term.extent, factor * term.coefficient);
  }
  constant += factor * other.constant;
}

void AffineIndex::add_computed(ExpressionId expression, int64_t extent, int64_t coefficient) {
  if (coefficient == 0) return;
  auto at =
      std::lower_bound(computed.begin(), computed.end(), expression,
                       [](const Computed& term, ExpressionId id) { return term.expression < id; });
  if (at == computed.end() || at->expression != expression) {
    computed.insert(at, Computed{expression, extent, coefficient});
    return;
  }
  at->coefficient += coefficient;
  if (at->coefficient == 0) computed.erase(at);
}

bool AffineIndex::is_constant() const {
  return computed.empty() &&
         std::all_of(coefficients.begin(), coefficients.end(), [](int64_t c) { return c == 0; });
}

AffineIndex linear_index(const ElementMap& map, const Shape& shape, size_t atoms) {
  AffineIndex index(atoms);
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    index.add(map[d], stride);
    stride *= shape[d];
  }
  return index;
}

namespace {

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Divides an index by a size. On success `quotient` and `remainder` are affine and the remainder
// lies in [0, size) for all coordinates.
class Division {
 public:
  Division(const AffineIndex& index, int64_t size, const std::vector<Atom>& atoms)
      : quotient(index.coefficients.size()), remainder(index.coefficients.size()), size_(size) {
    quotient.constant = floor_divide(index.constant, size);
    remainder.constant = index.constant - quotient.constant * size;
    largest_ = remainder.constant;
    for (size_t i = 0; i < index.coefficients.size(); ++i) {
      divide_atom(i, index.coefficients[i], atoms[i].extent);
    }
    for (const AffineIndex::Computed& term : index.computed) divide_computed(term);
    if (largest_ >= size) possible = false;
  }

  AffineIndex quotient;
  AffineIndex remainder;
  bool possible = true;
  std::optional<AtomSplit> split;

 private:
  void divide_atom(size_t atom, int64_t coefficient, int64_t extent) {
    if (coefficient % size_ == 0) {
      quotient.coefficients[atom] = coefficient / size_;
    } else if (coefficient > 0 && coefficient * (extent - 1) < size_) {
      remainder.coefficients[atom] = coefficient;
      largest_ += coefficient * (extent - 1);
    } else if (coefficient > 0 && size_ % coefficient == 0 && extent % (size_ / coefficient) == 0) {
      if (!split) split = AtomSplit{atom, size_ / coefficient};
    } else {
      possible = false;
    }
  }

  void divide_computed(const AffineIndex::Computed& term) {
    if (term.coefficient % size_ == 0) {
      quotient.add_computed(term.expression, term.extent, term.coefficient / size_);
    } else if (term.coefficient > 0 && term.coefficient * (term.extent - 1) < size_) {
      remainder.add_computed(term.expression, term.extent, term.coefficient);
      largest_ += term.coefficient * (term.extent - 1);
    } else {
      possible = false;
    }
  }

  int64_t size_;
  int64_t largest_ = 0;
};

}  // namespace

Delinearized delinearize(const AffineIndex& index, const Shape& shape,
                         const std::vector<Atom>& atoms) {
  Delinearized result;
  result.map.assign(shape.size(), AffineIndex(atoms.size()));
  size_t outermost = 0;
  while (outermost < shape.size() && shape[outermost] == 1) ++outermost;
  AffineIndex rest = index;
  for (size_t d = shape.size(); d-- > outermost + 1;) {
    if (shape[d] == 1) continue;
    Division division(rest, shape[d], atoms);
    if (!division.possible) return result;
    if (division.split) {
      result.outcome = Delinearized::Outcome::kSplit;
      result.split = *division.split;
      return result;
    }
    result.map[d] = std::move(division.remainder);
    rest = std::move(division.quotient);
  }
  if (outermost < shape.size()) result.map[outermost] = std::move(rest);
  result.outcome = Delinearized::Outcome::kDone;
  return result;
}

bool is_bijective(const AffineIndex& index, int64_t count, const std::vector<Atom>& atoms,
                  Over over) {
  if (!index.computed.empty() || index.constant != 0) return false;
  std::vector<std::pair<int64_t, int64_t>> digits;  // coefficient, extent
  digits.reserve(atoms.size());
  for (size_t i = 0; i < atoms.size(); ++i) {
    if (over == Over::kParallel && atoms[i].reduced) {
      if (index.coefficients[i] != 0) return false;
      continue;
    }
    digits.emplace_back(index.coefficients[i], atoms[i].extent);
  }
  std::sort(digits.begin(), digits.end());
  int64_t next = 1;
  for (auto [coefficient, extent] : digits) {
    if (coefficient != next) return false;
    next *= extent;
  }
  return next == count;
}

std::string to_string(const AffineIndex& index) {
  std::string text;
  auto append = [&](int64_t coefficient, char kind, int64_t number) {
    if (!text.empty()) text += " + ";
    if (coefficient != 1) text += std::to_string(coefficient) + '*';
    text += kind + std::to_string(number);
  };
  for (size_t i = 0; i < index.coefficients.size(); ++i) {
    if (index.coefficients[i] != 0) append(index.coefficients[i], 'a', static_cast<int64_t>(i));
  }
  for (const AffineIndex::Computed& term : index.computed) {
    append(term.coefficient, 'e', term.expression);
  }
  if (text.empty()) return std::to_string(index.constant);
  if (index.constant != 0) text += " + " + std::to_string(index.constant);
  return text;
}

}  // namespace sgtc
