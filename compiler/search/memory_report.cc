#include "search/memory_report.h"

#include <algorithm>
#include <map>
#include <vector>

#include "plan/live_buffers.h"
#include "plan/quantities.h"
#include "plan/text.h"

namespace sgtc {
namespace {

constexpr size_t kMostLines = 8;

// What a buffer holds.
struct Contents {
  std::string kind;
  std::string layer;
};

class ContentsFinder {
 public:
  ContentsFinder(const plan::Plan& plan, int64_t position) : plan_(plan), position_(position) {
    for (const plan::Kernel& kernel : plan.kernels) kernels_[kernel.symbol] = &kernel;
    for (const plan::Task& task : plan.positions[static_cast<size_t>(position)].tasks) {
      for (const plan::Call& call : task.calls) visit(task, call);
    }
  }

  Contents of(const plan::Buffer& buffer) const {
    for (const plan::State& state : plan_.states) {
      const bool is_held = state.position == position_ && state.buffer == buffer.name;
      if (is_held) return {state.role + "s", layer_of(buffer.name)};
    }
    for (const plan::Feed& feed : plan_.feeds) {
      if (feed.name == buffer.name) return {"inputs", layer_of(buffer.name)};
    }
    const auto writer = writers_.find(buffer.name);
    if (writer == writers_.end()) return {"computed", layer_of(buffer.name)};
    const bool in_backward = writer->second.task->name.rfind("backward", 0) == 0;
    return {computed_kind(buffer, in_backward), writer->second.layer};
  }

 private:
  // The first call that writes a buffer.
  struct Writer {
    const plan::Task* task = nullptr;
    std::string layer;
  };

  static std::string computed_kind(const plan::Buffer& buffer, bool in_backward) {
    if (buffer.name.rfind("again.", 0) == 0) return "computed again";
    if (buffer.scope == "slot") return "kept for the backward phase";
    return buffer.scope == "step" && in_backward ? "gradients" : "computed";
  }

  void visit(const plan::Task& task, const plan::Call& call) {
    const std::vector<std::string>& access = kernels_.at(call.kernel)->access;
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const std::string& buffer = call.arguments[a].buffer;
      if (access[a] == "read") continue;
      writers_.try_emplace(buffer,
                           Writer{&task, layer_of(call.nodes.empty() ? buffer : call.nodes[0])});
    }
  }

  const plan::Plan& plan_;
  const int64_t position_;
  std::map<std::string, const plan::Kernel*> kernels_;
  std::map<std::string, Writer> writers_;
};

std::vector<std::pair<int64_t, std::string>> largest(const std::map<std::string, int64_t>& bytes) {
  std::vector<std::pair<int64_t, std::string>> list;
  for (const auto& [name, size] : bytes) list.emplace_back(size, name);
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  return list;
}

}  // namespace

std::string live_bytes_text(const plan::Plan& plan, int64_t position) {
  const plan::Position& placed = plan.positions[static_cast<size_t>(position)];
  const ContentsFinder finder(plan, position);
  std::map<std::string, std::map<std::string, int64_t>> layers_of;
  std::map<std::string, int64_t> kinds;
  for (const LiveBuffer& live : find_live_peak(plan, placed, "train").live) {
    const Contents contents = finder.of(*live.buffer);
    kinds[contents.kind] += live.bytes;
    layers_of[contents.kind][contents.layer] += live.bytes;
  }
  std::string text;
  for (const auto& [bytes, kind] : largest(kinds)) {
    text += "\n  " + bytes_text(bytes) + " " + kind;
    const auto layers = largest(layers_of[kind]);
    std::string list;
    for (size_t i = 0; i < std::min(layers.size(), kMostLines); ++i) {
      list += (list.empty() ? ": " : ", ") + layers[i].second + " " + bytes_text(layers[i].first);
    }
    if (layers.size() > kMostLines) {
      list += " and " + std::to_string(layers.size() - kMostLines) + " more layers";
    }
    text += list;
  }
  return text;
}

}  // namespace sgtc
