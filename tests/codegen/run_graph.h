// Runs the kernels of a graph in this process and compares them with the interpreter.
#pragma once

#include <llvm/ExecutionEngine/Orc/LLJIT.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codegen/compile.h"
#include "ir/interpret.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "passes/group_graph.h"
#include "support/catch.h"

namespace sgtc::test {

struct RunOptions {
  bool fused = true;
  int64_t blocks_per_call = 1 << 30;  // how the blocks of a kernel are split over calls
  bool backwards = false;             // calls in reverse order
  bool share_bytes = false;           // use KernelArgument::may_alias where the operand is dead
  std::string cpu = "native";
};

/// The kernels of a graph, compiled and loaded.
class GraphRunner {
 public:
  using Function = void (*)(void* const*, int64_t, int64_t, int64_t);

  explicit GraphRunner(const Graph& graph, RunOptions options = {})
      : graph_(graph), options_(std::move(options)) {
    groups_ = options_.fused ? fuse(graph) : GroupGraph(graph).ordered();
    for (const Group& group : groups_) {
      specs_.push_back(group.kind == Group::Kind::kView ? KernelSpec{} : form_kernel(graph, group));
    }
    std::vector<KernelSpec> kernels;
    for (const KernelSpec& spec : specs_) {
      if (!spec.symbol.empty()) kernels.push_back(spec);
    }
    CompileOptions compile;
    compile.target = make_target(options_.cpu);
    load(compile_kernels(kernels, compile));
    for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
      if (graph.value(id).kind != ValueKind::kResult) allocate(id);
      if (graph.value(id).kind == ValueKind::kConstant) {
        std::memcpy(memory_[id]->data(), graph.value(id).literal->bytes().data(),
                    graph.value(id).literal->bytes().size());
      }
    }
  }

  const std::vector<Group>& groups() const { return groups_; }
  const std::vector<KernelSpec>& specs() const { return specs_; }
  const std::vector<int64_t>& status() const { return status_; }

  void set(ValueId id, const Tensor& tensor) {
    LiteralPtr literal = to_literal(tensor);
    std::memcpy(memory_[id]->data(), literal->bytes().data(), literal->bytes().size());
  }

  /// Runs the groups of the phases from `first` to `last` for one micro-batch.
  void run(Phase first, Phase last, int64_t micro_batch) {
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].phase < first || groups_[i].phase > last) continue;
      if (groups_[i].kind == Group::Kind::kView) {
        for (NodeId node : groups_[i].nodes) {
          memory_[graph_.node(node).results[0]] = memory_[graph_.node(node).operands[0]];
        }
      } else {
        run_kernel(i, micro_batch);
      }
    }
  }

  const std::vector<std::byte>& bytes(ValueId id) const { return *memory_.at(id); }

  Tensor tensor(ValueId id) const {
    const TensorType& type = graph_.type(id);
    Literal literal(type.dtype, type.shape, std::span(*memory_.at(id)).first(bytes_of(id)),
                    memory_.at(id));
    return Tensor(literal);
  }

 private:
  using Memory = std::shared_ptr<std::vector<std::byte>>;

  size_t bytes_of(ValueId id) const {
    return static_cast<size_t>(element_count(graph_.shape(id)) * size_of(graph_.dtype(id)));
  }

  void allocate(ValueId id) {
    memory_[id] = std::make_shared<std::vector<std::byte>>(bytes_of(id) + 64, std::byte{0xff});
  }

  void load(const std::vector<CompiledKernel>& kernels) {
    jit_ = llvm::cantFail(llvm::orc::LLJITBuilder().create());
    for (const CompiledKernel& kernel : kernels) {
      llvm::cantFail(
          jit_->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(kernel.object, kernel.symbol)));
    }
    for (const CompiledKernel& kernel : kernels) {
      functions_[kernel.symbol] = llvm::cantFail(jit_->lookup(kernel.symbol)).toPtr<Function>();
    }
  }

  // True if nothing after group `at` reads the memory.
  bool is_dead_after(size_t at, const Memory& memory) const {
    for (const auto& [id, other] : memory_) {
      if (other != memory) continue;
      if (graph_.value(id).kind != ValueKind::kResult) return false;
      for (const Output& output : graph_.outputs) {
        if (output.value == id) return false;
      }
      for (size_t later = at + 1; later < groups_.size(); ++later) {
        for (ValueId input : groups_[later].inputs) {
          if (input == id) return false;
        }
      }
    }
    return true;
  }

  bool take_dead_operand(size_t at, const KernelArgument& argument) {
    for (int32_t operand : argument.may_alias) {
      ValueId read = specs_[at].arguments[static_cast<size_t>(operand)].value;
      if (!is_dead_after(at, memory_[read]) || is_placed(at, memory_[read])) continue;
      memory_[argument.value] = memory_[read];
      return true;
    }
    return false;
  }

  // True if a result of group `at` lies there already.
  bool is_placed(size_t at, const Memory& memory) const {
    for (ValueId output : groups_[at].outputs) {
      auto placed = memory_.find(output);
      if (placed != memory_.end() && placed->second == memory) return true;
    }
    return false;
  }

  void place_results(size_t at) {
    const KernelSpec& spec = specs_[at];
    for (const KernelArgument& argument : spec.arguments) {
      if (argument.kind != KernelArgument::Kind::kValue) continue;
      if (argument.mode != AccessMode::kWrite) continue;
      bool stacked = graph_.producer(argument.value)->op == Op::kStackMicroBatches;
      if (stacked && memory_.count(argument.value) != 0) continue;
      if (options_.share_bytes && take_dead_operand(at, argument)) continue;
      allocate(argument.value);
    }
    // The results of accumulate are their state's memory, and parts lie in one tensor.
    for (NodeId id : groups_[at].nodes) {
      const Node& node = graph_.node(id);
      if (node.op == Op::kAccumulate) memory_[node.results[0]] = memory_[node.operands[0]];
      const bool is_part = node.op == Op::kPlace && node.operands.size() > 1;
      if (groups_[at].kind == Group::Kind::kAnchor && is_part) {
        memory_[node.results[0]] = memory_[node.operands[1]];
      }
    }
  }

  void run_kernel(size_t at, int64_t micro_batch) {
    place_results(at);
    const KernelSpec& spec = specs_[at];
    std::vector<void*> arguments;
    for (const KernelArgument& argument : spec.arguments) {
      arguments.push_back(argument.kind == KernelArgument::Kind::kStatus
                              ? static_cast<void*>(status_.data())
                              : memory_.at(argument.value)->data());
    }
    std::vector<int64_t> begins;
    for (int64_t begin = 0; begin < spec.blocks; begin += options_.blocks_per_call) {
      begins.push_back(begin);
    }
    if (options_.backwards) std::reverse(begins.begin(), begins.end());
    for (int64_t begin : begins) {
      int64_t end = std::min(spec.blocks, begin + options_.blocks_per_call);
      functions_.at(spec.symbol)(arguments.data(), begin, end, micro_batch);
    }
  }

  const Graph& graph_;
  RunOptions options_;
  std::vector<Group> groups_;
  std::vector<KernelSpec> specs_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::map<std::string, Function> functions_;
  std::map<ValueId, Memory> memory_;
  std::vector<int64_t> status_ = std::vector<int64_t>(8, 0);
};

/// Values for a leaf: floats in (-2, 2), integers in [0, 4), bools.
inline Tensor random_tensor(const TensorType& type, std::mt19937& random) {
  std::vector<double> values;
  std::uniform_real_distribution<double> real(-2, 2);
  std::uniform_int_distribution<int> integer(0, type.dtype == DType::kBool ? 1 : 3);
  for (int64_t i = 0; i < element_count(type.shape); ++i) {
    values.push_back(is_float(type.dtype) ? real(random) : integer(random));
  }
  return Tensor(type, values);
}

inline void check_close(const Tensor& found, const Tensor& expected, double tolerance,
                        const std::string& name) {
  INFO(name);
  REQUIRE(found.count() == expected.count());
  for (int64_t i = 0; i < found.count(); ++i) {
    double a = found.at(i);
    double b = expected.at(i);
    bool same = a == b || (std::isnan(a) && std::isnan(b)) ||
                std::abs(a - b) <= tolerance * (1 + std::abs(b));
    if (same) continue;
    CAPTURE(i, a, b);
    CHECK(same);
    return;
  }
}

/// The leaves of a graph with random contents, also given to the interpreter.
inline std::map<ValueId, Tensor> random_leaves(const Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  std::map<ValueId, Tensor> leaves;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    const Value& value = graph.value(id);
    bool is_leaf = value.kind != ValueKind::kResult && value.kind != ValueKind::kConstant;
    bool is_cleared = value.kind == ValueKind::kState && value.role == StateRole::kAccumulator;
    if (!is_leaf) continue;
    leaves[id] = is_cleared ? Tensor(value.type) : random_tensor(value.type, random);
  }
  return leaves;
}

/// Runs one step of the graph (one micro-batch) both ways and compares all outputs and new states.
inline void check_graph(const Graph& graph, RunOptions options = {}, double tolerance = 2e-6,
                        unsigned seed = 1) {
  GraphRunner runner(graph, std::move(options));
  Interpreter interpreter(graph);
  for (const auto& [id, tensor] : random_leaves(graph, seed)) {
    runner.set(id, tensor);
    interpreter.set(graph.value(id).name, tensor);
  }
  runner.run(Phase::kPrologue, Phase::kUpdate, 0);
  interpreter.run();
  for (const Output& output : graph.outputs) {
    check_close(runner.tensor(output.value), interpreter.value(output.value), tolerance,
                output.name);
  }
  for (const Update& update : graph.updates) {
    check_close(runner.tensor(update.value), interpreter.value(update.value), tolerance,
                graph.value(update.state).name);
  }
  CHECK(runner.status()[0] == 0);
}

inline void check_text(const std::string& text, RunOptions options = {}, double tolerance = 2e-6) {
  INFO(text);
  check_graph(parse_graph(text), std::move(options), tolerance);
}

/// The bytes of all outputs after one step.
inline std::vector<std::vector<std::byte>> output_bytes(const Graph& graph, RunOptions options) {
  GraphRunner runner(graph, std::move(options));
  for (const auto& [id, tensor] : random_leaves(graph, 1)) runner.set(id, tensor);
  runner.run(Phase::kPrologue, Phase::kUpdate, 0);
  std::vector<std::vector<std::byte>> result;
  for (const Output& output : graph.outputs) {
    LiteralPtr literal = to_literal(runner.tensor(output.value));
    result.emplace_back(literal->bytes().begin(), literal->bytes().end());
  }
  return result;
}

/// The same bits fused and unfused, for every split of blocks, with shared bytes, on every CPU.
inline void check_bits(const std::string& text) {
  INFO(text);
  Graph graph = parse_graph(text);
  RunOptions unfused;
  unfused.fused = false;
  auto expected = output_bytes(graph, unfused);
  RunOptions split;
  split.blocks_per_call = 1;
  split.backwards = true;
  split.share_bytes = true;
  CHECK(output_bytes(graph, {}) == expected);
  CHECK(output_bytes(graph, split) == expected);
  RunOptions level3;
  level3.cpu = "x86-64-v3";
  CHECK(output_bytes(graph, level3) == expected);
}

}  // namespace sgtc::test
