#include "plan/buffer_contents.h"

#include <vector>

#include "support/layer_name.h"

namespace sgtc {
namespace {

std::string kind_of_role(const std::string& role) {
  return role == "frozen" ? "frozen parameters" : role + "s";
}

std::string computed_kind(const plan::Buffer& buffer, bool in_backward) {
  if (buffer.name.rfind("again.", 0) == 0) return "computed again";
  if (buffer.scope == "slot") return "kept for the backward phase";
  if (buffer.scope == "ring") return "sent or received";
  return buffer.scope == "step" && in_backward ? "gradients" : "computed";
}

}  // namespace

BufferContents::BufferContents(const plan::Plan& plan, int64_t position)
    : plan_(plan), position_(position) {
  for (const plan::Kernel& kernel : plan.kernels) kernels_[kernel.symbol] = &kernel;
  for (const plan::Task& task : plan.positions[static_cast<size_t>(position)].tasks) {
    for (const plan::Call& call : task.calls) visit(task, call);
  }
}

Contents BufferContents::of(const plan::Buffer& buffer) const {
  for (const plan::State& state : plan_.states) {
    const bool is_held = state.position == position_ && state.buffer == buffer.name;
    if (is_held) return {kind_of_role(state.role), layer_of(buffer.name)};
  }
  for (const plan::Feed& feed : plan_.feeds) {
    if (feed.name == buffer.name) return {"inputs", layer_of(buffer.name)};
  }
  const auto writer = writers_.find(buffer.name);
  if (writer == writers_.end()) return {"computed", layer_of(buffer.name)};
  const bool in_backward = writer->second.task->name.rfind("backward", 0) == 0;
  return {computed_kind(buffer, in_backward), writer->second.layer};
}

void BufferContents::visit(const plan::Task& task, const plan::Call& call) {
  const std::vector<std::string>& access = kernels_.at(call.kernel)->access;
  for (size_t a = 0; a < call.arguments.size(); ++a) {
    const std::string& buffer = call.arguments[a].buffer;
    if (access[a] == "read") continue;
    writers_.try_emplace(buffer,
                         Writer{&task, layer_of(call.nodes.empty() ? buffer : call.nodes[0])});
  }
}

}  // namespace sgtc
