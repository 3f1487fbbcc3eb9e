// The device mesh: pipeline × data × tensor-parallel coordinates of the ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sgtc {

/// Sizes of the axes. Rank = (pp * dp_size + dp) * tp_size + tp.
struct Mesh {
  int64_t pp = 1;
  int64_t dp = 1;
  int64_t tp = 1;

  int64_t ranks() const { return pp * dp * tp; }
  bool operator==(const Mesh&) const = default;
};

/// Parses "2x4" (pipeline × data) or named axes such as "pp=2,dp=4". Throws Error.
Mesh parse_mesh(const std::string& text);

/// A list of meshes such as "2x4,2x2,1x4", each once; or one mesh with named axes. Throws Error.
std::vector<Mesh> parse_meshes(const std::string& text);

/// "2x4", or named axes when tp > 1.
std::string to_string(const Mesh& mesh);

}  // namespace sgtc
