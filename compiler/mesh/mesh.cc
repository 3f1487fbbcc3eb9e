#include "mesh/mesh.h"

#include <charconv>
#include <sstream>
#include <vector>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr int64_t kMaximumRanks = 1 << 20;

[[noreturn]] void fail(const std::string& text, const std::string& reason) {
  throw Error("--mesh " + text + ": " + reason +
              "; write PIPELINExDATA such as 2x4, or named axes such as pp=2,dp=4,tp=1");
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  if (!text.empty() && text.back() == separator) parts.emplace_back();
  return parts;
}

int64_t parse_size(const std::string& text, const std::string& number) {
  int64_t size = 0;
  const char* end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, size);
  if (error != std::errc() || rest != end || size < 1 || size > kMaximumRanks) {
    fail(text, "expected a positive number, found '" + number + "'");
  }
  return size;
}

Mesh parse_named(const std::string& text) {
  Mesh mesh;
  std::string seen;
  for (const std::string& part : split(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos) fail(text, "expected AXIS=SIZE, found '" + part + "'");
    const std::string axis = part.substr(0, equals);
    if (seen.find(axis + ",") != std::string::npos)
      fail(text, "axis '" + axis + "' is there twice");
    seen += axis + ",";
    const int64_t size = parse_size(text, part.substr(equals + 1));
    if (axis == "pp")
      mesh.pp = size;
    else if (axis == "dp")
      mesh.dp = size;
    else if (axis == "tp")
      mesh.tp = size;
    else
      fail(text, "unknown axis '" + axis + "'");
  }
  return mesh;
}

Mesh parse_product(const std::string& text) {
  const std::vector<std::string> parts = split(text, 'x');
  if (parts.size() != 2) fail(text, "expected two sizes");
  return {parse_size(text, parts[0]), parse_size(text, parts[1]), 1};
}

}  // namespace

Mesh parse_mesh(const std::string& text) {
  const Mesh mesh = text.find('=') != std::string::npos ? parse_named(text) : parse_product(text);
  if (mesh.pp * mesh.dp > kMaximumRanks || mesh.ranks() > kMaximumRanks) {
    fail(text, "more than " + std::to_string(kMaximumRanks) + " ranks");
  }
  return mesh;
}

std::vector<Mesh> parse_meshes(const std::string& text) {
  if (text.find('=') != std::string::npos) return {parse_mesh(text)};
  std::vector<Mesh> meshes;
  for (const std::string& part : split(text, ',')) {
    const Mesh mesh = parse_mesh(part);
    for (const Mesh& other : meshes) {
      if (other == mesh) fail(text, "mesh " + to_string(mesh) + " is there twice");
    }
    meshes.push_back(mesh);
  }
  if (meshes.empty()) fail(text, "expected a mesh");
  return meshes;
}

std::string to_string(const Mesh& mesh) {
  if (mesh.tp == 1) return std::to_string(mesh.pp) + "x" + std::to_string(mesh.dp);
  return "pp=" + std::to_string(mesh.pp) + ",dp=" + std::to_string(mesh.dp) +
         ",tp=" + std::to_string(mesh.tp);
}

}  // namespace sgtc
