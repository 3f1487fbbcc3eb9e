#include "plan/text.h"

#include <algorithm>
#include <map>

#include "plan/live_buffers.h"
#include "plan/quantities.h"
#include "plan/schedule_chart.h"
#include "support/layer_name.h"

namespace sgtc {
namespace {

constexpr size_t kLargestBuffers = 8;
constexpr size_t kNamedNodes = 3;

std::string padded(const std::string& text, size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

std::string right(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string join(const std::vector<std::string>& parts, const std::string& separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

// The first names of a list and how many follow.
std::string some_names(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamedNodes);
  std::string text = join({names.begin(), names.begin() + static_cast<int64_t>(shown)}, ", ");
  if (names.size() > shown) text += " and " + std::to_string(names.size() - shown) + " more";
  return text.empty() ? "-" : text;
}

int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// What one layer costs in one step.
struct Layer {
  std::string name;
  int64_t parameters = 0;
  int64_t forward_calls = 0, backward_calls = 0, other_calls = 0;
  int64_t flops = 0;
  int64_t bytes = 0;

  int64_t& calls_of(const std::string& task) {
    if (task.rfind("forward", 0) == 0) return forward_calls;
    return task.rfind("backward", 0) == 0 ? backward_calls : other_calls;
  }
};

class Writer {
 public:
  explicit Writer(const plan::Plan& plan) : plan_(plan) {
    for (const plan::Kernel& kernel : plan.kernels) kernels_[kernel.symbol] = &kernel;
  }

  std::string run() {
    write_header();
    for (size_t p = 0; p < plan_.positions.size(); ++p) write_position(p);
    write_superfluous();
    write_prediction();
    return std::move(text_);
  }

 private:
  void line(const std::string& text) { text_ += text + "\n"; }
  void field(const std::string& name, const std::string& value) {
    line("  " + padded(name, 14) + value);
  }

  void write_header() {
    line("plan \"" + plan_.model + "\"");
    field("target", target_text());
    std::vector<std::string> axes;
    int64_t ranks = 1;
    int64_t replicas = 1;
    for (const plan::Axis& axis : plan_.mesh) {
      axes.push_back(axis.name + "=" + std::to_string(axis.size));
      ranks *= axis.size;
      if (axis.name == "dp") replicas = axis.size;
    }
    field("mesh", join(axes, ",") + " (" + plural(ranks, "rank") + ")");
    for (const auto& [name, size] : plan_.dims) field("dim " + name, std::to_string(size));
    field("micro-batches",
          std::to_string(plan_.micro_batches) + " of " + plural(plan_.micro_batch_rows, "row") +
              " per replica, " +
              std::to_string(plan_.micro_batches * plan_.micro_batch_rows * replicas) +
              " rows per step");
    if (!plan_.row_weights.empty()) field("last batch", "padded with rows of weight 0");
    write_states();
    field("fingerprint", plan_.model_fingerprint.empty() ? "-" : plan_.model_fingerprint);
  }

  bool is_for_gpu() const { return plan_.target != "cpu"; }

  std::string target_text() const {
    if (is_for_gpu()) return plan_.target + ", " + plural(plan_.multiprocessors, "multiprocessor");
    return plan_.target + (plan_.cpu.empty() ? "" : " " + plan_.cpu);
  }

  // Tensors, elements and memory by role, over all positions.
  void write_states() {
    for (const char* role :
         {"parameter", "frozen", "statistic", "moment", "accumulator", "constant"}) {
      int64_t tensors = 0;
      int64_t elements = 0;
      int64_t held = 0;  // by one replica
      for (const plan::State& state : plan_.states) {
        if (state.role != role) continue;
        ++tensors;
        elements += elements_of(state.shape);
        held += elements_of(state.shape) / state.shards;
      }
      if (tensors == 0 && std::string(role) != "parameter") continue;
      const std::string name = std::string(role) + (std::string(role) == "frozen" ? "" : "s");
      const std::string shared =
          held == elements ? "" : ", of them " + exact_text(held) + " per replica";
      field(name, exact_text(elements) + " in " + plural(tensors, "tensor") + shared);
      if (std::string(role) == "parameter") field("optimizer", plan_.optimizer);
    }
  }

  void write_position(size_t p) {
    const plan::Position& position = plan_.positions[p];
    std::vector<std::string> stages;
    for (const int64_t stage : position.stages) stages.push_back(std::to_string(stage));
    line("");
    line("position " + std::to_string(p) + ", " + (stages.size() == 1 ? "stage " : "stages ") +
         join(stages, ", "));
    write_tasks(position);
    write_layers(static_cast<int64_t>(p), position);
    write_kernels(position);
    write_memory(position);
    for (const auto& [name, entries] : position.schedules) {
      line("  schedule " + name + ", " + std::to_string(entries.size()) + " entries");
      text_ += schedule_chart(position, entries);
    }
  }

  static std::map<std::string, int64_t> runs_per_step(const plan::Position& position) {
    std::map<std::string, int64_t> runs;
    const auto train = position.schedules.find("train");
    if (train == position.schedules.end()) return runs;
    for (const plan::Entry& entry : train->second) ++runs[entry.task];
    return runs;
  }

  void write_tasks(const plan::Position& position) {
    line("  tasks                    calls      flops       bytes");
    for (const plan::Task& task : position.tasks) {
      if (task.kind != "compute") {
        line("    " + padded(task.name, 20) + " " + task.kind + " on " + task.communicator);
        continue;
      }
      int64_t flops = 0;
      int64_t bytes = 0;
      for (const plan::Call& call : task.calls) {
        flops += kernels_.at(call.kernel)->flops;
        bytes += kernels_.at(call.kernel)->bytes;
      }
      line("    " + padded(task.name, 20) + right(std::to_string(task.calls.size()), 6) +
           right(count_text(flops), 11) + right(bytes_text(bytes), 12));
    }
  }

  // Layers in the order of their first kernel, then those that only have parameters.
  void write_layers(int64_t p, const plan::Position& position) {
    std::vector<Layer> layers;
    std::map<std::string, size_t> index;
    const auto layer = [&](const std::string& name) -> Layer& {
      const auto [place, is_new] = index.try_emplace(name, layers.size());
      if (is_new) layers.push_back({name});
      return layers[place->second];
    };
    const std::map<std::string, int64_t> runs = runs_per_step(position);
    for (const plan::Task& task : position.tasks) {
      const auto found = runs.find(task.name);
      if (found == runs.end()) continue;
      for (const plan::Call& call : task.calls) {
        const bool is_joint = kernels_.at(call.kernel)->launch.indirect;
        Layer& owner = layer(is_joint             ? "several layers"
                             : call.nodes.empty() ? "other"
                                                  : layer_of(call.nodes.front()));
        owner.calls_of(task.name) += found->second;
        owner.flops += found->second * kernels_.at(call.kernel)->flops;
        owner.bytes += found->second * kernels_.at(call.kernel)->bytes;
      }
    }
    for (const plan::State& state : plan_.states) {
      if (state.role != "parameter" || state.position != p) continue;
      layer(layer_of(state.name)).parameters += elements_of(state.shape);
    }
    line("                                               calls in");
    line(
        "  layers, per step                parameters  forward backward  else      flops       "
        "bytes");
    for (const Layer& l : layers) {
      line("    " + padded(l.name, 26) + right(exact_text(l.parameters), 12) +
           right(std::to_string(l.forward_calls), 9) + right(std::to_string(l.backward_calls), 9) +
           right(std::to_string(l.other_calls), 6) + right(count_text(l.flops), 11) +
           right(bytes_text(l.bytes), 12));
    }
  }

  // Kernels with the calls of one step, those that do most work first.
  void write_kernels(const plan::Position& position) {
    std::map<std::string, int64_t> calls;
    const std::map<std::string, int64_t> runs = runs_per_step(position);
    for (const plan::Task& task : position.tasks) {
      const auto found = runs.find(task.name);
      if (found == runs.end()) continue;
      for (const plan::Call& call : task.calls) calls[call.kernel] += found->second;
    }
    std::vector<std::pair<const plan::Kernel*, int64_t>> order;
    int64_t total = 0;
    for (const auto& [symbol, count] : calls) {
      order.emplace_back(kernels_.at(symbol), count);
      total += count;
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.first->flops * a.second > b.first->flops * b.second;
    });
    line("  kernels: " + plural(static_cast<int64_t>(order.size()), "kernel") + ", " +
         plural(total, "call") + " per step");
    const char* geometry = is_for_gpu() ? "     grid threads      shared" : "";
    line("     calls kind           flops       bytes" + std::string(geometry) + "  nodes");
    for (const auto& [kernel, count] : order) {
      line("    " + right(std::to_string(count), 6) + " " + padded(kernel->kind, 10) +
           right(count_text(kernel->flops), 10) + right(bytes_text(kernel->bytes), 12) +
           geometry_text(*kernel) + "  " + some_names(kernel->nodes));
    }
  }

  // Of a launch: blocks, threads of a block and its dynamic shared memory.
  std::string geometry_text(const plan::Kernel& kernel) const {
    if (!is_for_gpu()) return "";
    const plan::Launch& launch = kernel.launch;
    return right(std::to_string(kernel.blocks), 9) + right(std::to_string(launch.threads), 8) +
           right(bytes_text(launch.shared_bytes), 12);
  }

  void write_memory(const plan::Position& position) {
    std::map<std::string, int64_t> scopes;
    for (const plan::Buffer& buffer : position.buffers) {
      scopes[buffer.scope] += buffer.bytes * buffer.count;
    }
    line("  arena " + bytes_text(position.arena_bytes) + ", of it persistent " +
         bytes_text(scopes["persistent"]));
    const LivePeak peak = find_live_peak(plan_, position, "train");
    if (peak.entry < 0) return;
    const plan::Entry& entry = position.schedules.at("train")[static_cast<size_t>(peak.entry)];
    line("  peak of live buffers in train " + bytes_text(peak.bytes) + ", in " + entry.task +
         " of micro-batch " + std::to_string(entry.micro_batch) + ", call " +
         std::to_string(peak.call) + "; the largest are");
    for (size_t i = 0; i < std::min(peak.live.size(), kLargestBuffers); ++i) {
      const LiveBuffer& live = peak.live[i];
      const std::string times =
          live.instances > 1 ? " in " + plural(live.instances, "instance") : "";
      line("    " + right(bytes_text(live.bytes), 10) + "  " + padded(live.buffer->scope, 12) +
           live.buffer->name + times);
    }
  }

  void write_superfluous() {
    int64_t collectives = 0;
    int64_t kernels = 0;
    for (const plan::Position& position : plan_.positions) {
      for (const plan::Task& task : position.tasks) {
        if (task.kind != "compute" && is_alone(task.communicator)) ++collectives;
        for (const plan::Call& call : task.calls) {
          const plan::Kernel& kernel = *kernels_.at(call.kernel);
          if (kernel.blocks == 0 || kernel.bytes == 0) ++kernels;
        }
      }
    }
    line("");
    line("superfluous: " + plural(collectives, "collective") + " of one rank, " +
         plural(kernels, "empty kernel call"));
  }

  bool is_alone(const std::string& name) const {
    for (const plan::Communicator& communicator : plan_.communicators) {
      if (communicator.name != name) continue;
      for (const plan::Axis& axis : plan_.mesh) {
        if (axis.name == communicator.axis) return axis.size == 1;
      }
    }
    return true;
  }

  void write_prediction() {
    const plan::Prediction& prediction = plan_.prediction;
    if (prediction.step_seconds == 0) return;
    line("prediction: step " + seconds_text(prediction.step_seconds) + ", bubble " +
         std::to_string(static_cast<int>(prediction.bubble * 100 + 0.5)) + "%");
  }

  const plan::Plan& plan_;
  std::map<std::string, const plan::Kernel*> kernels_;
  std::string text_;
};

}  // namespace

std::string to_text(const plan::Plan& plan) { return Writer(plan).run(); }

}  // namespace sgtc
