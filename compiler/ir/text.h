// The text form of a graph: what the printer (text.cc) and the parser (parse.cc) share.
//
// One line per leaf, node, output and update; "//" starts a comment.
//
//   graph "mlp" rows 4 micro_batches 1
//   feed %x: f32[4,20]
//   state parameter %w: f32[20,8] = normal(0.0, 1.0, seed 0)    also: zero, fill(1.0),
//                                                       uniform(0.0, 1.0, seed 0), literal [1, 2]
//   control %learning_rate: f32[]
//   constant %c: i64[2] = [0, -1]                       also: fill(0), and sha256(…), which only
//                                                       large constants have and cannot be parsed
//   %y: f32[4,8] = matmul(%x, %w) {transpose_b=0} @forward #12 "onnx_node"
//   output "loss" %l
//   update %w = %w_new
//
// A text written by hand may leave out the first line, the types of results, the phase (forward),
// the id (the next free one) and the sources. Names with other characters are quoted: %"a b".
#pragma once

#include <cctype>
#include <cstdint>

namespace sgtc::text {

/// Constants with more elements are written as a fill or as a hash.
inline constexpr int64_t kMostElements = 64;

/// Whether a name with `c` may stand without quotes.
inline bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' ||
         c == '-' || c == '$';
}

}  // namespace sgtc::text
