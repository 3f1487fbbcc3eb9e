#include "driver/optimize.h"

#include "passes/accumulate_rows.h"
#include "passes/chunk_rows.h"
#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/expand_compositions.h"
#include "passes/fold_constants.h"
#include "passes/fuse.h"
#include "passes/gpu/align_products.h"
#include "passes/join_pads.h"
#include "passes/mixed_precision.h"
#include "passes/recompute_elementwise.h"
#include "passes/relax_functions.h"
#include "passes/simplify.h"
#include "passes/sink_movements.h"
#include "passes/sink_widenings.h"
#include "passes/split_reductions.h"

namespace sgtc {

OptimizedGraph optimize(Graph graph, bool mixed, int64_t row_chunks, const KernelTarget& target,
                        PassRunner& passes) {
  // What became constant through gradients and the optimizer's constants.
  graph = passes.run("fold-constants", [&] { return fold_constants(std::move(graph)); });
  // Exact rewrites; before common subexpressions, so that equal forms meet.
  graph = passes.run("simplify", [&] { return simplify(std::move(graph)); });
  // Gradients of what was split; before expansion and fusion, which would add up zeros.
  graph = passes.run("join-pads", [&] { return join_pads(std::move(graph)); });
  // Compositions had to stay whole for their gradient rules; from here on there are only
  // elementwise operators, movements, indexing, reductions, contractions and attention.
  graph = passes.run("expand-compositions", [&] { return expand_compositions(std::move(graph)); });
  // Expansion leaves constants and reshapes that cancel.
  graph =
      passes.run("simplify-expanded", [&] { return simplify(fold_constants(std::move(graph))); });
  // Before products are padded, which depends on their types. Needs forward and backward phases, to
  // know what memory keeps between them, and neither equal values nor those that nobody uses.
  if (mixed) {
    graph = passes.run("mixed-precision", [&] {
      graph = eliminate_dead_nodes(eliminate_common_subexpressions(std::move(graph)));
      return fold_constants(mixed_precision(graph));
    });
  }
  // Needs the final products, and before equal values meet: products share padded operands.
  if (target.is_hopper()) {
    graph = passes.run("align-products", [&] { return gpu::align_products(std::move(graph)); });
  }
  // Before fusion, which would compute equal values in several kernels.
  graph = passes.run("eliminate-common-subexpressions",
                     [&] { return eliminate_common_subexpressions(std::move(graph)); });
  // After equal values were merged, which would undo it.
  graph = passes.run("recompute-elementwise",
                     [&] { return recompute_elementwise(std::move(graph), target); });
  // Needs folded constants, to know tables of zeros. Nobody uses the scatters into them afterwards.
  graph = passes.run("accumulate-rows", [&] { return accumulate_rows(std::move(graph)); });
  // Last of the value-level passes: no value is added from here on except by splitting.
  graph =
      passes.run("eliminate-dead-nodes", [&] { return eliminate_dead_nodes(std::move(graph)); });
  // Types are final, so it is known which attentions the target has a kernel for.
  if (target.is_gpu()) {
    graph = passes.run("expand-attention", [&] {
      return simplify(fold_constants(expand_compositions(std::move(graph), target)));
    });
  }
  // Needs final products, and what the backward phase reads of the forward phase; its copies are
  // alike and may not meet.
  graph = passes.run("chunk-rows", [&] {
    if (row_chunks == 0) row_chunks = choose_row_chunks(graph, target);
    return simplify(chunk_rows(std::move(graph), row_chunks));
  });
  // Shows which movements move values of a narrow type.
  graph = passes.run("sink-widenings", [&] { return sink_widenings(std::move(graph)); });
  // Needs the final reductions, and must precede fusion: a split depends on shapes alone, so bits
  // do not depend on what is fused.
  const ReductionSplit& split = target.is_gpu() ? kGpuReductionSplit : kCpuReductionSplit;
  graph = passes.run("split-reductions", [&] { return split_reductions(std::move(graph), split); });
  // Every function is there, and no node is merged with one of another precision any more.
  if (target.is_gpu()) {
    graph = passes.run("relax-functions", [&] { return relax_functions(std::move(graph)); });
  }
  // Directly before fusion, which then sees movements beside the kernels that take them over.
  graph = passes.run("sink-movements", [&] { return sink_movements(std::move(graph), target); });
  return {std::move(graph), row_chunks};
}

KernelizedGraph form_program(const Graph& graph, const std::vector<int64_t>& stage_of_node,
                             int64_t first_checked, const KernelTarget& target,
                             KernelFormer& former, PassRunner& passes) {
  KernelizedGraph program;
  program.graph = &graph;
  program.target = target;
  // Every node gets its kernel.
  program.groups = passes.time("fuse", [&] { return fuse(graph, stage_of_node, target); });
  // The code of each kernel as data; equal code gets equal symbols.
  program.kernels = passes.time("form-kernels", [&] {
    std::vector<KernelSpec> specs;
    for (const Group& group : program.groups) {
      KernelSpec spec;
      if (has_code(group)) spec = former.form(graph, group, first_checked, target);
      specs.push_back(std::move(spec));
    }
    return specs;
  });
  return program;
}

void leave_room(KernelizedGraph& program, const std::vector<bool>& groups, KernelFormer& former) {
  KernelTarget target = program.target;
  target.multiprocessors -= kCommunicationBlocks;
  for (size_t g = 0; g < groups.size(); ++g) {
    const Group& group = program.groups[g];
    if (!groups[g] || !has_code(group)) continue;
    program.kernels[g] = former.form(*program.graph, group, 0, target);
  }
}

}  // namespace sgtc
