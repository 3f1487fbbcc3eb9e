// Checks of every collective on any transport.
#pragma once

#include <string>
#include <vector>

#include "runtime/communication/ranks.h"
#include "support/catch.h"

namespace sgtc::runtime {

/// Runs ranks on some transport.
using RunRanks = std::function<std::vector<Bytes>(const std::vector<RankGroup>& groups,
                                                  int64_t ranks, const RankBody& body)>;

/// A collective of `ranks` members whose larger side has ranks * `count` elements, or `count` where
/// both sides are equal.
struct CollectiveCase {
  CommunicationKind kind = CommunicationKind::all_reduce;
  std::string dtype = "f32";
  Reduction reduction = Reduction::sum;
  int64_t ranks = 2;
  int64_t count = 1;
  int64_t parts = 1;
  int64_t group_bytes = 0;  // that memory is set aside for
  bool in_place = false;
  int64_t repeats = 1;
};

inline Bytes piece_of(const Bytes& bytes, int64_t index, int64_t pieces) {
  const size_t size = bytes.size() / static_cast<size_t>(pieces);
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(size * static_cast<size_t>(index));
  return Bytes(begin, begin + static_cast<std::ptrdiff_t>(size));
}

inline Bytes join(const std::vector<Bytes>& pieces) {
  Bytes result;
  for (const Bytes& piece : pieces) result.insert(result.end(), piece.begin(), piece.end());
  return result;
}

inline bool input_is_larger(const CollectiveCase& c) {
  return c.kind == CommunicationKind::reduce_scatter;
}

inline bool output_is_larger(const CollectiveCase& c) {
  return c.kind == CommunicationKind::all_gather;
}

inline int64_t root_of(const CollectiveCase& c) {
  return c.kind == CommunicationKind::broadcast ? c.ranks - 1 : -1;
}

inline Bytes input_of(const CollectiveCase& c, int64_t rank) {
  return make_elements(c.dtype, c.count * (input_is_larger(c) ? c.ranks : 1), rank);
}

/// What `rank` should have afterwards. Pieces of several parts are those of each part, so cases
/// with pieces use one part.
inline Bytes expected_of(const CollectiveCase& c, int64_t rank) {
  std::vector<Bytes> inputs;
  for (int64_t r = 0; r < c.ranks; ++r) inputs.push_back(input_of(c, r));
  switch (c.kind) {
    case CommunicationKind::all_reduce:
      return reduce_in_order(c.dtype, c.reduction, inputs);
    case CommunicationKind::reduce_scatter:
      return piece_of(reduce_in_order(c.dtype, c.reduction, inputs), rank, c.ranks);
    case CommunicationKind::all_gather:
      return join(inputs);
    default:
      return inputs[static_cast<size_t>(root_of(c))];
  }
}

/// One rank's part; the result is what it received.
inline Bytes take_part(const CollectiveCase& c, int64_t rank, RankCommunicators& communicators) {
  const int64_t size = size_of_element(c.dtype);
  Bytes input = input_of(c, rank);
  Bytes separate(static_cast<size_t>(c.count * size * (output_is_larger(c) ? c.ranks : 1)), 0xEE);
  Bytes& output = c.in_place ? input : separate;
  CommunicationRequest request;
  request.kind = c.kind;
  request.dtype = c.dtype;
  request.reduction = c.reduction;
  request.peer = root_of(c);
  request.inputs = in_parts(input, c.parts, size);
  request.outputs = in_parts(output, c.parts, size);
  communicators.run("all", request);
  return output;
}

inline void check_collective(const RunRanks& run, const CollectiveCase& c) {
  CAPTURE(static_cast<int>(c.kind), c.dtype, c.ranks, c.count, c.parts, c.in_place);
  const std::vector<Bytes> results =
      run({group_of_all(c.ranks, c.group_bytes)}, c.ranks, [&](int64_t rank, auto& communicators) {
        Bytes result;
        for (int64_t i = 0; i < c.repeats; ++i) result = take_part(c, rank, communicators);
        return result;
      });
  for (int64_t rank = 0; rank < c.ranks; ++rank) {
    CAPTURE(rank);
    CHECK(results[static_cast<size_t>(rank)] == expected_of(c, rank));
  }
}

inline constexpr CommunicationKind kCollectives[] = {
    CommunicationKind::all_reduce, CommunicationKind::reduce_scatter, CommunicationKind::all_gather,
    CommunicationKind::broadcast};

inline bool has_equal_sides(CommunicationKind kind) {
  return kind == CommunicationKind::all_reduce || kind == CommunicationKind::broadcast;
}

/// Every collective by `ranks` members with messages of no, one, few and many elements; 4096 bytes
/// are set aside per piece, so that large ones take many rounds.
inline void check_sizes(const RunRanks& run, int64_t ranks) {
  for (const CommunicationKind kind : kCollectives) {
    for (const int64_t count : {0, 1, 7, 1000, 4097, 60001}) {
      check_collective(run, {kind, "f32", Reduction::sum, ranks, count, 1, 4096, false, 2});
    }
    if (!has_equal_sides(kind)) continue;
    for (const int64_t count : {3, 30001}) {
      check_collective(run, {kind, "f32", Reduction::sum, ranks, count, 3, 4096, false, 2});
      check_collective(run, {kind, "f32", Reduction::sum, ranks, count, 3, 1 << 20, true, 1});
    }
  }
}

/// Every type that can be reduced.
inline void check_types(const RunRanks& run, int64_t ranks) {
  for (const std::string dtype : {"f32", "f64", "f16", "bf16", "i8", "i32", "i64", "u8", "bool"}) {
    for (const CommunicationKind kind :
         {CommunicationKind::all_reduce, CommunicationKind::reduce_scatter}) {
      for (const int64_t count : {5, 9001}) {
        if (dtype != "bool") {
          check_collective(run, {kind, dtype, Reduction::sum, ranks, count, 1, 4096});
        }
        check_collective(run, {kind, dtype, Reduction::max, ranks, count, 1, 4096});
      }
    }
  }
}

}  // namespace sgtc::runtime
