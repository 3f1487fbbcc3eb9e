// The text form of a graph: printing. parse.cc reads it; ir/text.h has what both share.
#include "ir/text.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "ir/graph.h"
#include "support/sha256.h"

namespace sgtc {
namespace {

using text::kMostElements;

// The shortest digits that read back as the same number of the dtype.
std::string number(double value, DType dtype) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const std::to_chars_result result =
      dtype == DType::kFloat64
          ? std::to_chars(buffer, buffer + sizeof buffer, value)
          : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value));
  return std::string(buffer, result.ptr);
}

// A real attribute: never looks like an integer.
std::string real(double value) {
  std::string result = number(value, DType::kFloat64);
  if (result.find_first_of(".enai") == std::string::npos) result += ".0";
  return result;
}

std::string quoted(const std::string& value) {
  std::string result = "\"";
  for (const char c : value) {
    char buffer[5];
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(buffer, sizeof buffer, "\\x%02x", static_cast<unsigned>(c));
      result += buffer;
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string reference(const std::string& name) {
  bool bare = !name.empty();
  for (const char c : name) bare = bare && text::is_name_character(c);
  return '%' + (bare ? name : quoted(name));
}

std::string element(const Literal& literal, int64_t i) {
  if (is_float(literal.dtype())) return number(literal.as_double(i), literal.dtype());
  if (literal.dtype() == DType::kUInt64) {
    return std::to_string(static_cast<uint64_t>(literal.as_int(i)));
  }
  return std::to_string(literal.as_int(i));
}

// Whether all elements have the bits of the first one.
bool is_uniform(const Literal& literal) {
  const auto bytes = literal.bytes();
  const auto size = static_cast<size_t>(size_of(literal.dtype()));
  for (size_t i = size; i < bytes.size(); ++i) {
    if (bytes[i] != bytes[i - size]) return false;
  }
  return true;
}

std::string elements(const Literal& literal) {
  const int64_t count = literal.element_count();
  if (count > kMostElements) {
    if (is_uniform(literal)) return "fill(" + element(literal, 0) + ')';
    return "sha256(" + sha256_hex(literal.bytes()) + ')';
  }
  std::string result = "[";
  for (int64_t i = 0; i < count; ++i) result += (i == 0 ? "" : ", ") + element(literal, i);
  return result + ']';
}

std::string initial(const Initializer& initial) {
  const std::string a = real(initial.a);
  const std::string b = real(initial.b);
  const std::string seed = ", seed " + std::to_string(initial.seed) + ')';
  switch (initial.kind) {
    case Initializer::Kind::kZero:
      return "zero";
    case Initializer::Kind::kLiteral:
      return "literal " + elements(*initial.literal);
    case Initializer::Kind::kRandomNormal:
      return "normal(" + a + ", " + b + seed;
    case Initializer::Kind::kRandomUniform:
      return "uniform(" + a + ", " + b + seed;
    case Initializer::Kind::kFill:
      return "fill(" + a + ')';
  }
  return "";
}

std::string typed(const Value& value) {
  return reference(value.name) + ": " + std::string(name_of(value.type.dtype)) +
         to_string(value.type.shape);
}

std::string attribute(const Attribute& attribute) {
  if (const auto* integer = std::get_if<int64_t>(&attribute)) return std::to_string(*integer);
  if (const auto* value = std::get_if<double>(&attribute)) return real(*value);
  if (const auto* value = std::get_if<std::string>(&attribute)) return quoted(*value);
  return to_string(std::get<std::vector<int64_t>>(attribute));
}

std::string attributes(const Attributes& attributes) {
  std::string result;
  for (const auto& [name, value] : attributes.map()) {
    result += (result.empty() ? " {" : ", ") + name + '=' + attribute(value);
  }
  return result.empty() ? result : result + '}';
}

std::string node_line(const Graph& graph, const Node& node) {
  std::string line;
  for (const ValueId result : node.results) {
    line += (line.empty() ? "" : ", ") + typed(graph.value(result));
  }
  line += " = " + std::string(name_of(node.op)) + '(';
  for (size_t i = 0; i < node.operands.size(); ++i) {
    line += (i == 0 ? "" : ", ") + reference(graph.value(node.operands[i]).name);
  }
  line += ')' + attributes(node.attributes);
  if (node.phase != Phase::kForward) line += " @" + std::string(name_of(node.phase));
  line += " #" + std::to_string(node.id);
  for (const std::string& source : node.sources) line += ' ' + quoted(source);
  return line + '\n';
}

std::string header(const Graph& graph) {
  return "graph " + quoted(graph.name) + " rows " + std::to_string(graph.micro_batch_rows) +
         " micro_batches " + std::to_string(graph.micro_batches) +
         (graph.replicas == 1 ? "" : " replicas " + std::to_string(graph.replicas)) + '\n';
}

std::string leaf_lines(const Graph& graph) {
  std::string lines;
  for (const ValueId id : graph.feeds) lines += "feed " + typed(graph.value(id)) + '\n';
  for (const ValueId id : graph.states) {
    const Value& value = graph.value(id);
    lines += "state " + std::string(name_of(value.role)) + ' ' + typed(value) +
             (value.whole.empty() ? "" : " of " + to_string(value.whole)) + " = " +
             initial(value.initial) + '\n';
  }
  for (const Value& value : graph.values) {
    if (value.kind == ValueKind::kControl) lines += "control " + typed(value) + '\n';
    if (value.kind == ValueKind::kConstant) {
      lines += "constant " + typed(value) + " = " + elements(*value.literal) + '\n';
    }
  }
  return lines;
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::string result = header(graph) + leaf_lines(graph);
  for (const Node& node : graph.nodes) result += node_line(graph, node);
  for (const Output& output : graph.outputs) {
    result +=
        "output " + quoted(output.name) + ' ' + reference(graph.value(output.value).name) + '\n';
  }
  for (const Update& update : graph.updates) {
    result += "update " + reference(graph.value(update.state).name) + " = " +
              reference(graph.value(update.value).name) + '\n';
  }
  return result;
}

}  // namespace sgtc
