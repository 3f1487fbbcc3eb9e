// Integer expressions that are affine in loop coordinates: how a loop nest addresses memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/shape.h"
#include "support/inline_vector.h"

namespace sgtc {

using ExpressionId = int32_t;

/// One loop of a nest. A coordinate runs over [0, extent).
struct Atom {
  int64_t extent = 1;
  bool reduced = false;
  bool operator==(const Atom&) const = default;
};

/// sum(coefficients[i] * coordinate of atom i) + sum(coefficient * computed index) + constant.
struct AffineIndex {
  /// An index value that the nest computes itself, already checked to lie in [0, extent).
  struct Computed {
    ExpressionId expression = -1;
    int64_t extent = 1;
    int64_t coefficient = 0;
    bool operator==(const Computed&) const = default;
  };

  InlineVector<int64_t, 6> coefficients;  // one per atom of the nest
  std::vector<Computed> computed;         // ascending by expression, coefficients not 0
  int64_t constant = 0;

  AffineIndex() = default;
  explicit AffineIndex(size_t atoms) : coefficients(atoms, 0) {}
  bool operator==(const AffineIndex&) const = default;

  /// Adds factor * other.
  void add(const AffineIndex& other, int64_t factor);
  void add_computed(ExpressionId expression, int64_t extent, int64_t coefficient);
  bool is_constant() const;
};

/// low <= index < high.
struct Guard {
  AffineIndex index;
  int64_t low = 0;
  int64_t high = 0;
  bool operator==(const Guard&) const = default;
};

/// The position of an element in a tensor: one index per dimension.
using ElementMap = std::vector<AffineIndex>;

/// The row-major position of the element of a tensor of `shape`.
AffineIndex linear_index(const ElementMap& map, const Shape& shape, size_t atoms);

/// A request to divide atom `atom` into an outer one and an inner one of extent `inner`.
struct AtomSplit {
  size_t atom = 0;
  int64_t inner = 1;
};

/// What came of taking a row-major position apart into the dimensions of a shape.
struct Delinearized {
  enum class Outcome : uint8_t { kDone, kSplit, kImpossible };
  Outcome outcome = Outcome::kImpossible;
  ElementMap map;   // kDone
  AtomSplit split;  // kSplit: would work, or get further, once this atom is split
};

/// The inverse of `linear_index`: mixed-radix digits of `index`, when each is affine itself.
Delinearized delinearize(const AffineIndex& index, const Shape& shape,
                         const std::vector<Atom>& atoms);

/// Some of the atoms of a nest.
enum class Over : uint8_t { kAll, kParallel };

/// True when the index takes every value of [0, count) exactly once while the atoms selected by
/// `over` run through their extents, and depends on no other atom.
bool is_bijective(const AffineIndex& index, int64_t count, const std::vector<Atom>& atoms,
                  Over over);

/// "3*a0 + a2 + 1*e5 + 7".
std::string to_string(const AffineIndex& index);

}  // namespace sgtc
