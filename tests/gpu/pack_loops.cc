// Compiles the kernels of the test graphs and writes them with inputs and expected results:
// pack_loops FOLDER [--ptx] [--only WORD] writes FOLDER/checked.bundle, FOLDER/measured.bundle,
// FOLDER/SYMBOL.ptx and, unless told to leave the assembling to others, FOLDER/SYMBOL.cubin, of the
// programs whose names contain WORD.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "codegen/gpu/compile.h"
#include "codegen/gpu/ptxas.h"
#include "cost/cost.h"
#include "gpu/loop_bundle.h"
#include "gpu/loop_cases.h"
#include "gpu/merge_forms.h"
#include "gpu/random_tensor.h"
#include "ir/interpret.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "passes/relax_functions.h"
#include "passes/sink_movements.h"
#include "support/diagnostics.h"

namespace sgtc::testing {
namespace {

constexpr int64_t kStatusBytes = 64;
constexpr int64_t kPatternElements = 1 << 16;

std::string bytes_of(const Literal& literal) {
  const auto bytes = literal.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Turns the groups of one graph into launches.
class Packer {
 public:
  Packer(const LoopCase& source, bool is_measured)
      : source_(source),
        target_{kHopperTarget.name, source.multiprocessors},
        graph_(sink_movements(relax_functions(parse_graph(source.text)), target_)),
        is_measured_(is_measured) {
    program_.name = source.name;
    program_.tolerance = source.tolerance;
    program_.units = source.units;
    program_.status = source.status.empty() ? std::vector<int64_t>{0, 0, 0} : source.status;
    program_.buffers.push_back({kStatusBytes, std::string(kStatusBytes, '\0')});
  }

  std::vector<KernelSpec> specs;

  LoopProgram pack() {
    fill_leaves();
    source_.is_merged ? add_merged_kernels() : add_kernels();
    if (!is_measured_ && source_.status.empty()) expect_results();
    return program_;
  }

 private:
  void add_kernels() {
    for (const Group& group : fuse(graph_, {}, target_)) {
      if (group.kind == Group::Kind::kView) {
        for (NodeId node : group.nodes) {
          buffer_of_[graph_.node(node).results[0]] = buffer_of_.at(graph_.node(node).operands[0]);
        }
      } else {
        add_kernel(form_kernel(graph_, group, 0, target_));
        find_placed(group);
        count_operations(group);
      }
    }
  }

  // Of a graph without views.
  void add_merged_kernels() {
    std::vector<KernelSpec> kernels;
    for (const Group& group : fuse(graph_, {}, target_)) {
      kernels.push_back(form_kernel(graph_, group, 0, target_));
      count_operations(group);
    }
    for (const KernelSpec& kernel : merge_forms(kernels)) add_kernel(kernel);
  }

  void count_operations(const Group& group) {
    for (NodeId node : group.nodes) program_.operations += flops_of(graph_, graph_.node(node));
  }

  void fill_leaves() {
    std::mt19937 random(1);
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) {
      const Value& value = graph_.value(id);
      if (value.kind == ValueKind::kResult) continue;
      TensorType type = value.type;
      if (is_measured_) type.shape = {std::min(kPatternElements, element_count(type.shape))};
      bool is_cleared = value.kind == ValueKind::kState && value.role == StateRole::kAccumulator;
      Tensor tensor = is_cleared ? Tensor(type) : random_tensor(type, random);
      if (value.kind == ValueKind::kConstant) {
        add_buffer(id, bytes_of(*value.literal));
        continue;
      }
      add_buffer(id, bytes_of(*to_literal(tensor)));
      leaves_[id] = std::move(tensor);
    }
  }

  void add_buffer(ValueId id, std::string pattern) {
    const int64_t bytes = element_count(graph_.shape(id)) * size_of(graph_.dtype(id));
    buffer_of_[id] = add_buffer(bytes, std::move(pattern));
  }

  void place_result(const KernelSpec& spec, const KernelArgument& argument) {
    if (graph_.producer(argument.value)->op == Op::kAccumulate) {
      buffer_of_[argument.value] = buffer_of_.at(graph_.producer(argument.value)->operands[0]);
      return;
    }
    for (int32_t alias : argument.may_alias) {
      const ValueId read = spec.arguments[static_cast<size_t>(alias)].value;
      const bool is_state = graph_.value(read).kind == ValueKind::kState;
      const bool is_update = std::any_of(
          graph_.updates.begin(), graph_.updates.end(),
          [&](const Update& u) { return u.state == read && u.value == argument.value; });
      if (!source_.in_place || !is_state || !is_update) continue;
      buffer_of_[argument.value] = buffer_of_.at(read);
      return;
    }
    add_buffer(argument.value, "");
  }

  // What kernels write part by part lies in one buffer.
  void find_placed(const Group& group) {
    for (const NodeId id : group.nodes) {
      const Node& node = graph_.node(id);
      if (node.op != Op::kPlace || node.operands.size() < 2) continue;
      buffer_of_[node.results[0]] = buffer_of_.at(node.operands[1]);
    }
  }

  int64_t add_buffer(int64_t bytes, std::string pattern) {
    program_.buffers.push_back({bytes, std::move(pattern)});
    return static_cast<int64_t>(program_.buffers.size()) - 1;
  }

  int64_t buffer_of(const KernelSpec& spec, const KernelArgument& argument) {
    switch (argument.kind) {
      case KernelArgument::Kind::kStatus:
        return 0;
      case KernelArgument::Kind::kWorkspace:
        return add_buffer(spec.workspace_bytes, "");
      case KernelArgument::Kind::kFlags:
        return add_flags(spec.flag_bytes);
      case KernelArgument::Kind::kTable:
        return add_buffer(spec.table->element_count(), bytes_of(*spec.table));
      case KernelArgument::Kind::kValue:
        break;
    }
    if (buffer_of_.count(argument.value) == 0) place_result(spec, argument);
    const int64_t buffer = buffer_of_.at(argument.value);
    program_.moved_bytes += program_.buffers[static_cast<size_t>(buffer)].bytes;
    return buffer;
  }

  // Zeros before and after.
  int64_t add_flags(int64_t bytes) {
    const int64_t buffer = add_buffer(bytes, std::string(1, '\0'));
    program_.expectations.push_back(
        {"flags", buffer, "u8", std::vector<double>(static_cast<size_t>(bytes), 0)});
    return buffer;
  }

  void add_kernel(const KernelSpec& spec) {
    LoopLaunch launch{spec.symbol,
                      spec.launch.threads,
                      spec.blocks,
                      spec.kind == "loop",
                      spec.launch.shared_bytes,
                      spec.launch.cluster,
                      spec.launch.indirect,
                      {},
                      {}};
    for (const KernelArgument& argument : spec.arguments) {
      launch.buffers.push_back(buffer_of(spec, argument));
    }
    for (const TensorMap& map : spec.launch.tensor_maps) {
      launch.maps.push_back({launch.buffers[static_cast<size_t>(map.argument)], map.offset,
                             map.sizes, map.strides, map.box});
    }
    program_.launches.push_back(launch);
    specs.push_back(spec);
  }

  void expect_results() {
    Interpreter interpreter(graph_);
    for (const auto& [id, tensor] : leaves_) interpreter.set(graph_.value(id).name, tensor);
    interpreter.run();
    for (const Output& output : graph_.outputs) expect(interpreter, output.value, output.name);
    for (const Update& update : graph_.updates) {
      expect(interpreter, update.value, graph_.value(update.state).name);
    }
  }

  void expect(const Interpreter& interpreter, ValueId id, const std::string& name) {
    const Tensor& tensor = interpreter.value(id);
    LoopExpectation expectation{
        name, buffer_of_.at(id), std::string(name_of(tensor.type.dtype)), {}};
    for (int64_t i = 0; i < tensor.count(); ++i) expectation.values.push_back(tensor.at(i));
    program_.expectations.push_back(std::move(expectation));
  }

  const LoopCase& source_;
  KernelTarget target_;
  Graph graph_;
  bool is_measured_;
  LoopProgram program_;
  std::map<ValueId, int64_t> buffer_of_;
  std::map<ValueId, Tensor> leaves_;
};

void write_file(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream stream(file, std::ios::binary);
  stream << bytes;
  stream.close();
  if (!stream) throw Error(file.string() + ": cannot write");
}

struct Options {
  std::filesystem::path folder;
  bool ptx_alone = false;
  std::string only;
};

void write_kernels(const std::vector<KernelSpec>& specs, const Options& options) {
  const int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  gpu::GpuCompileOptions compile{kHopperTarget.name, "", jobs, false};
  if (!options.ptx_alone) {
    compile.ptxas = gpu::find_ptxas();
    if (compile.ptxas.empty()) throw Error("ptxas not found; set CUDA_HOME, or use --ptx");
  }
  for (const gpu::GpuKernel& kernel : gpu::compile_gpu_kernels(specs, compile)) {
    write_file(options.folder / (kernel.symbol + ".ptx"), kernel.ptx);
    if (options.ptx_alone) continue;
    write_file(options.folder / (kernel.symbol + ".cubin"), kernel.cubin);
    if (gpu::serializes_products(kernel.report)) {
      throw Error("kernel " + kernel.symbol + ": ptxas serialises products: " + kernel.report);
    }
    if (kernel.report.find(" 0 bytes spill stores") == std::string::npos) {
      std::printf("%s: %s\n", kernel.symbol.c_str(), kernel.report.c_str());
    }
  }
}

void pack_all(const Options& options) {
  std::vector<KernelSpec> specs;
  auto pack = [&](const std::vector<LoopCase>& cases, bool is_measured) {
    std::vector<LoopProgram> programs;
    for (const LoopCase& source : cases) {
      if (source.name.find(options.only) == std::string::npos) continue;
      Packer packer(source, is_measured);
      programs.push_back(packer.pack());
      specs.insert(specs.end(), packer.specs.begin(), packer.specs.end());
    }
    return to_bundle(programs);
  };
  const auto with = [](std::vector<LoopCase> cases, const std::vector<LoopCase>& further) {
    cases.insert(cases.end(), further.begin(), further.end());
    return cases;
  };
  const std::string checked =
      pack(with(with(with(with(with(checked_loops(), checked_merged_loops()), checked_matmuls()),
                          checked_attentions()),
                     checked_anchors()),
                checked_mma_matmuls()),
           false);
  const std::string measured =
      pack(with(with(with(measured_loops(), measured_merged_loops()), measured_matmuls()),
                measured_anchors()),
           true);
  std::filesystem::create_directories(options.folder);
  write_kernels(specs, options);
  write_file(options.folder / "checked.bundle", checked);
  write_file(options.folder / "measured.bundle", measured);
}

// Nothing if the words are not understood.
std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--ptx") {
      options.ptx_alone = true;
    } else if (word == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else if (options.folder.empty() && word.rfind("--", 0) != 0) {
      options.folder = word;
    } else {
      return std::nullopt;
    }
  }
  return options.folder.empty() ? std::nullopt : std::optional(options);
}

}  // namespace
}  // namespace sgtc::testing

int main(int argc, char** argv) {
  const auto options = sgtc::testing::parse(argc, argv);
  if (!options) {
    std::fprintf(stderr, "usage: %s FOLDER [--ptx] [--only WORD]\n", argv[0]);
    return 2;
  }
  try {
    sgtc::testing::pack_all(*options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
