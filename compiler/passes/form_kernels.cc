#include "passes/form_kernels.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "passes/anchor_geometry.h"
#include "passes/anchor_layouts.h"
#include "passes/anchor_tile.h"
#include "passes/build_loop_nest.h"
#include "passes/gpu/anchor_launch.h"
#include "passes/group_nest.h"
#include "passes/thread_mapping.h"
#include "support/diagnostics.h"
#include "support/sha256.h"

namespace sgtc {
namespace {

bool is_checked(Op op) { return info(op).kind == OpKind::kIndexing; }

AccessMode mode_of(const NestArgument& argument) {
  if (argument.read && argument.written) return AccessMode::kUpdate;
  return argument.written ? AccessMode::kWrite : AccessMode::kRead;
}

int32_t argument_of(const KernelSpec& spec, ValueId value) {
  for (size_t i = 0; i < spec.arguments.size(); ++i) {
    if (spec.arguments[i].value == value) return static_cast<int32_t>(i);
  }
  return kNone;
}

int32_t ensure_argument(KernelSpec& spec, ValueId value, AccessMode mode) {
  int32_t found = argument_of(spec, value);
  if (found != kNone) return found;
  spec.arguments.push_back({KernelArgument::Kind::kValue, value, mode, {}});
  return static_cast<int32_t>(spec.arguments.size()) - 1;
}

// Finds the read arguments whose bytes each written one may share: the plan picks one, such as the
// state that the written value updates.
void set_aliases(KernelSpec& spec) {
  for (const Store& store : spec.nest.stores) {
    const NestArgument& written = spec.nest.arguments[static_cast<size_t>(store.argument)];
    if (written.read) continue;
    for (size_t i = 0; i < spec.nest.arguments.size(); ++i) {
      const auto read_argument = static_cast<int32_t>(i);
      const NestArgument& read = spec.nest.arguments[i];
      bool of_anchor = std::count(spec.operand_arguments.begin(), spec.operand_arguments.end(),
                                  read_argument) > 0;
      bool fits = read.read && !read.written && !of_anchor && read.elements == written.elements &&
                  size_of(read.dtype) == size_of(written.dtype);
      if (!fits || !may_share_bytes(spec.nest, read_argument, store)) continue;
      spec.arguments[static_cast<size_t>(store.argument)].may_alias.push_back(read_argument);
    }
  }
}

bool is_scatter(Op op) {
  return op == Op::kScatterAdd || op == Op::kScatterElements || op == Op::kScatterNd;
}

// A scatter may change its data in place: on a CPU its kernels copy only what lies elsewhere.
void set_scatter_alias(KernelSpec& spec) {
  const int32_t data = spec.operand_arguments[0];
  const bool is_read_again =
      std::count(spec.operand_arguments.begin() + 1, spec.operand_arguments.end(), data) > 0;
  if (is_read_again) return;
  spec.arguments[static_cast<size_t>(spec.result_arguments[0])].may_alias.push_back(data);
}

void set_nest(const Graph& graph, const Group& group, const KernelTarget& target,
              KernelSpec& spec) {
  std::optional<LoopNest> nest = group_nest(graph, group, target);
  SGTC_CHECK(nest.has_value(), "a fused group has no loop nest");
  spec.nest = std::move(*nest);
  for (const NestArgument& argument : spec.nest.arguments) {
    spec.arguments.push_back({KernelArgument::Kind::kValue, argument.value, mode_of(argument), {}});
  }
}

void set_anchor(const Graph& graph, const Group& group, KernelSpec& spec) {
  const Node& anchor = graph.node(group.anchor);
  spec.anchor = anchor.op;
  spec.kind = name_of(anchor.op);
  spec.attributes = anchor.attributes;
  const bool has_tile = anchor_tile(graph, anchor).has_value();
  const bool in_place = accumulates(anchor.op);
  for (ValueId operand : anchor.operands) {
    const bool updated = in_place && operand == anchor.operands[0];
    const AccessMode mode = updated ? AccessMode::kUpdate : AccessMode::kRead;
    spec.operand_types.push_back(graph.type(operand));
    spec.operand_arguments.push_back(ensure_argument(spec, operand, mode));
  }
  for (ValueId result : anchor.results) {
    spec.result_types.push_back(graph.type(result));
    if (in_place) {
      spec.result_arguments.push_back(spec.operand_arguments[0]);
    } else {
      spec.result_arguments.push_back(has_tile ? argument_of(spec, result)
                                               : ensure_argument(spec, result, AccessMode::kWrite));
    }
  }
}

// Operands and results are parts of what lies in memory. A part of a value from outside is updated.
void set_strided_anchor(const Graph& graph, const Group& group, KernelSpec& spec) {
  const Node& anchor = graph.node(group.anchor);
  spec.anchor = anchor.op;
  spec.kind = name_of(anchor.op);
  spec.attributes = anchor.attributes;
  const std::optional<AnchorLayouts> layouts = anchor_layouts(graph, group);
  SGTC_CHECK(layouts.has_value(), "a fused group has no layouts");
  for (size_t i = 0; i < anchor.operands.size(); ++i) {
    const StridedView& view = layouts->operands[i];
    spec.operand_types.push_back(graph.type(anchor.operands[i]));
    spec.operand_arguments.push_back(ensure_argument(spec, view.base, AccessMode::kRead));
    spec.operand_layouts.push_back({view.offset, view.strides});
  }
  for (size_t i = 0; i < anchor.results.size(); ++i) {
    const StridedView& view = layouts->results[i];
    const bool is_part = std::count(group.inputs.begin(), group.inputs.end(), view.base) > 0;
    spec.result_types.push_back(graph.type(anchor.results[i]));
    spec.result_arguments.push_back(
        ensure_argument(spec, view.base, is_part ? AccessMode::kUpdate : AccessMode::kWrite));
    spec.result_layouts.push_back({view.offset, view.strides});
  }
}

void set_status(const Graph& graph, const Group& group, int64_t first_checked, KernelSpec& spec) {
  for (NodeId node : group.nodes) {
    if (!is_checked(graph.node(node).op)) continue;
    std::vector<NodeId> checked = checked_nodes(graph);
    auto at = std::lower_bound(checked.begin(), checked.end(), node);
    spec.checked_node = 1 + first_checked + (at - checked.begin());
    spec.arguments.push_back({KernelArgument::Kind::kStatus, kNone, AccessMode::kUpdate, {}});
  }
}

void append_text(std::ostream& out, const Attributes& attributes) {
  for (const auto& [name, attribute] : attributes.map()) {
    out << name << "=";
    if (const auto* integer = std::get_if<int64_t>(&attribute)) out << *integer;
    if (const auto* real = std::get_if<double>(&attribute)) out << std::hexfloat << *real;
    if (const auto* text = std::get_if<std::string>(&attribute)) out << *text;
    if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute)) out << to_string(*list);
    out << std::defaultfloat << "\n";
  }
}

void append_launch(std::ostream& out, const KernelSpec& spec) {
  const GpuLaunch& launch = spec.launch;
  if (launch.threads == 0) return;
  out << "threads " << launch.threads << " shared " << launch.shared_bytes << " cluster "
      << launch.cluster << " registers " << launch.registers << " flags " << spec.flag_bytes
      << " workspace " << spec.workspace_bytes << "\n";
  for (const TensorMap& map : launch.tensor_maps) {
    out << "map " << map.argument << " offset " << map.offset << " " << name_of(map.dtype)
        << to_string(map.sizes) << to_string(map.strides) << to_string(map.box) << "\n";
  }
  if (spec.table) out << "table " << sha256_hex(spec.table->bytes()) << "\n";
  out << spec.entry.name << to_string(spec.entry.shape) << "\n";
}

void set_anchor_geometry(KernelSpec& spec, const KernelTarget& target) {
  if (target.is_gpu()) return gpu::set_anchor_launch(spec, target);
  spec.blocks =
      anchor_geometry(spec.anchor, spec.attributes, spec.operand_types, spec.result_types).blocks;
}

// Everything that decides the code and nothing else.
std::string code_text(const KernelSpec& spec) {
  std::ostringstream out;
  out << spec.kind << " checked " << spec.checked_node << " blocks " << spec.blocks << "\n";
  append_launch(out, spec);
  append_text(out, spec.attributes);
  auto append_types = [&](const std::vector<TensorType>& types,
                          const std::vector<int32_t>& arguments) {
    for (size_t i = 0; i < types.size(); ++i) {
      out << name_of(types[i].dtype) << to_string(types[i].shape) << " argument" << arguments[i]
          << "\n";
    }
  };
  append_types(spec.operand_types, spec.operand_arguments);
  append_types(spec.result_types, spec.result_arguments);
  for (const auto* layouts : {&spec.operand_layouts, &spec.result_layouts}) {
    for (const StridedLayout& layout : *layouts) {
      out << layout.offset << to_string(layout.strides) << "\n";
    }
  }
  for (const KernelArgument& argument : spec.arguments) {
    out << static_cast<int>(argument.kind) << " " << static_cast<int>(argument.mode) << "\n";
  }
  out << to_text(spec.nest);
  return out.str();
}

// All but the launch of an anchor, the symbol and the sources.
KernelSpec describe(const Graph& graph, const Group& group, int64_t first_checked,
                    const KernelTarget& target) {
  SGTC_CHECK(has_code(group), "the group has no kernel");
  KernelSpec spec;
  if (group.kind == Group::Kind::kLoop) {
    spec.kind = "loop";
    set_nest(graph, group, target, spec);
    if (target.is_gpu()) {
      const gpu::ThreadMapping mapping = gpu::map_threads(spec.nest);
      spec.launch.threads = mapping.threads;
      spec.blocks = std::max<int64_t>(1, mapping.blocks());
    } else {
      spec.blocks = block_grid(spec.nest).blocks();
    }
  } else if (takes_strides(graph.node(group.anchor).op, target)) {
    set_strided_anchor(graph, group, spec);
  } else {
    if (anchor_tile(graph, graph.node(group.anchor))) set_nest(graph, group, target, spec);
    set_anchor(graph, group, spec);
    if (is_scatter(spec.anchor) && !target.is_gpu()) set_scatter_alias(spec);
  }
  set_aliases(spec);
  set_status(graph, group, first_checked, spec);
  return spec;
}

std::string target_text(const KernelTarget& target) {
  return target.name + " " + std::to_string(target.multiprocessors) + "\n";
}

// What follows from the code text of `known`, which `spec` has too.
void take_launch(const KernelSpec& known, KernelSpec& spec) {
  spec.symbol = known.symbol;
  spec.blocks = known.blocks;
  spec.workspace_bytes = known.workspace_bytes;
  spec.flag_bytes = known.flag_bytes;
  spec.table = known.table;
  spec.launch = known.launch;
  spec.entry = known.entry;
  spec.arguments.insert(spec.arguments.end(),
                        known.arguments.begin() + static_cast<int64_t>(spec.arguments.size()),
                        known.arguments.end());
}

void collect_sources(const Graph& graph, const Group& group, KernelSpec& spec) {
  for (NodeId node : group.nodes) {
    for (const std::string& source : graph.node(node).sources) {
      bool known =
          std::find(spec.sources.begin(), spec.sources.end(), source) != spec.sources.end();
      if (!known) spec.sources.push_back(source);
    }
  }
}

}  // namespace

std::vector<NodeId> checked_nodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    if (is_checked(graph.node(id).op)) nodes.push_back(id);
  }
  return nodes;
}

KernelSpec KernelFormer::form(const Graph& graph, const Group& group, int64_t first_checked,
                              const KernelTarget& target) {
  KernelSpec spec = describe(graph, group, first_checked, target);
  std::string text = target_text(target) + code_text(spec);
  const auto known = known_.find(text);
  if (known != known_.end()) {
    take_launch(known->second, spec);
  } else {
    if (spec.kind != "loop") set_anchor_geometry(spec, target);
    spec.symbol = "k_" + spec.kind + "_" + sha256_hex(code_text(spec)).substr(0, 16);
    known_.emplace(std::move(text), spec);
  }
  collect_sources(graph, group, spec);
  return spec;
}

KernelSpec form_kernel(const Graph& graph, const Group& group, int64_t first_checked,
                       const KernelTarget& target) {
  return KernelFormer().form(graph, group, first_checked, target);
}

}  // namespace sgtc
