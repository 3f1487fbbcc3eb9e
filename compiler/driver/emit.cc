#include "driver/emit.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string group_name(size_t index) { return "g" + std::to_string(index); }

std::string label_of(const KernelizedGraph& program, size_t index) {
  const Group& group = program.groups[index];
  std::string label = program.kernels[index].kind;
  if (group.kind == Group::Kind::kView) label = "view";
  if (group.kind == Group::Kind::kCollective) label = "collective";
  if (group.kind == Group::Kind::kShard) label = "shard";
  for (const std::string& source : program.kernels[index].sources) label += "\n" + source;
  return label;
}

std::string label_of(const Value& value) {
  std::string label = value.name + "\n" + std::string(name_of(value.type.dtype));
  return label + to_string(value.type.shape);
}

}  // namespace

std::string to_dot(const KernelizedGraph& program) {
  const Graph& graph = *program.graph;
  std::string text = "digraph " + quoted(graph.name) + " {\n  node [shape=box];\n";
  std::map<ValueId, size_t> made_by;
  for (size_t i = 0; i < program.groups.size(); ++i) {
    for (const ValueId value : program.groups[i].outputs) made_by[value] = i;
    text += "  " + group_name(i) + " [label=" + quoted(label_of(program, i)) + "];\n";
  }
  for (const ValueId leaf : graph.feeds) {
    text += "  v" + std::to_string(leaf) +
            " [shape=ellipse, label=" + quoted(label_of(graph.value(leaf))) + "];\n";
  }
  for (size_t i = 0; i < program.groups.size(); ++i) {
    for (const ValueId value : program.groups[i].inputs) {
      const auto maker = made_by.find(value);
      const bool feed = graph.value(value).kind == ValueKind::kFeed;
      if (maker == made_by.end() && !feed) continue;
      text += "  " + (feed ? "v" + std::to_string(value) : group_name(maker->second)) + " -> " +
              group_name(i) + " [label=" + quoted(label_of(graph.value(value))) + "];\n";
    }
  }
  return text + "}\n";
}

void emit_text(const std::string& text, const std::string& file) {
  if (file.empty() || file == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return;
  }
  const std::string partial = file + ".partial-" + std::to_string(getpid());
  std::error_code error;
  {
    std::ofstream stream(partial, std::ios::binary);
    stream << text;
    stream.close();
    if (!stream) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(partial, file, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw Error(file + ": cannot write; choose another file");
  }
}

}  // namespace sgtc
