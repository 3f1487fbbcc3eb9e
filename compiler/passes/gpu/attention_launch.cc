#include "passes/gpu/attention_launch.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "attention/sm_90a/schedule.h"
#include "support/diagnostics.h"

namespace sgtc::gpu {
namespace {

using kernels::AttentionForm;
using kernels::AttentionGradientForm;
using kernels::AttentionItem;
using kernels::AttentionSchedule;
using kernels::AttentionSm90aShape;
using kernels::AttentionWork;

// The sizes of an attention, and what its kernels are called.
struct Problem {
  AttentionSm90aShape shape = {};
  int64_t batch = 0;
  bool has_mask = false;
  bool is_small = false;  // heads of at most 64 elements

  std::string name(const std::string& kernel) const {
    return "sgtc_attention_sm_90a_" + kernel + (is_small ? "d64" : "d128") +
           (has_mask ? "_masked" : "");
  }
};

// Strides of batch, head and query of a mask that broadcasts to the scores.
void set_mask_strides(AttentionSm90aShape& shape, const Shape& mask) {
  int64_t stride = 1;
  for (size_t i = 0; i < mask.size(); ++i) {
    const size_t d = mask.size() - 1 - i;
    if (i > 0) shape.mask_strides[3 - i] = mask[d] == 1 ? 0 : stride;
    stride *= mask[d];
  }
}

// `mask`: the operand that is one, if there are so many.
Problem problem_of(const KernelSpec& spec, size_t mask) {
  const Shape& q = spec.operand_types[0].shape;
  const Shape& k = spec.operand_types[1].shape;
  Problem problem;
  AttentionSm90aShape& shape = problem.shape;
  problem.batch = q[0];
  shape.heads = q[1];
  shape.key_heads = k[1];
  shape.queries = q[2];
  shape.keys = k[2];
  shape.key_size = q[3];
  shape.value_size = spec.operand_types[2].shape[3];
  shape.causal = spec.attributes.integer_or("causal", 0);
  shape.zero_empty = spec.attributes.integer_or("zero_empty", 0);
  shape.scale = spec.attributes.real("scale");
  problem.is_small = std::max(shape.key_size, shape.value_size) <= kernels::kAttention64.size;
  problem.has_mask = mask < spec.operand_types.size();
  if (problem.has_mask) set_mask_strides(shape, spec.operand_types[mask].shape);
  return problem;
}

AttentionWork work_of(const Problem& problem, const KernelTarget& target, int64_t items) {
  const AttentionSm90aShape& s = problem.shape;
  return {problem.batch,
          s.heads,
          s.key_heads,
          s.queries,
          s.keys,
          s.causal != 0,
          std::min(target.multiprocessors, items)};
}

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Groups of queries of all heads.
int64_t query_items(const Problem& problem, int64_t consumers) {
  return problem.batch * problem.shape.heads *
         ceil_divide(problem.shape.queries, consumers * kernels::kAttentionRows);
}

// A [batch, head, row, element] operand, whose rows the kernel reads `rows` at a time.
TensorPointer append_map(KernelSpec& spec, size_t operand, int64_t rows) {
  const TensorType& type = spec.operand_types[operand];
  const StridedLayout& layout = spec.operand_layouts[operand];
  const int64_t bytes = size_of(type.dtype);
  TensorMap map;
  map.argument = spec.operand_arguments[operand];
  map.offset = layout.offset * bytes;
  map.dtype = type.dtype;
  map.sizes = {type.shape[3], type.shape[2], type.shape[1], type.shape[0]};
  map.strides = {layout.strides[2] * bytes, layout.strides[1] * bytes, layout.strides[0] * bytes};
  map.box = {64, rows, 1, 1};
  spec.launch.tensor_maps.push_back(std::move(map));
  return {TensorPointer::Kind::kTensorMap,
          static_cast<int32_t>(spec.launch.tensor_maps.size()) - 1};
}

TensorPointer append_table(KernelSpec& spec, const AttentionSchedule& schedule) {
  const size_t bytes = schedule.items.size() * sizeof(AttentionItem);
  auto table = std::make_shared<Literal>(DType::kUInt8, Shape{static_cast<int64_t>(bytes)});
  std::memcpy(table->mutable_bytes().data(), schedule.items.data(), bytes);
  spec.table = std::move(table);
  spec.arguments.push_back({KernelArgument::Kind::kTable, kNone, AccessMode::kRead, {}});
  return {TensorPointer::Kind::kArgument, static_cast<int32_t>(spec.arguments.size()) - 1};
}

TensorPointer argument_at(int32_t index) { return {TensorPointer::Kind::kArgument, index}; }
TensorPointer operand_at(const KernelSpec& spec, size_t operand) {
  return argument_at(spec.operand_arguments[operand]);
}
TensorPointer mask_at(const KernelSpec& spec, size_t operand) {
  return operand < spec.operand_arguments.size() ? operand_at(spec, operand) : TensorPointer();
}

void set_shape(KernelSpec& spec, AttentionSm90aShape shape, int64_t rounds) {
  shape.rounds = rounds;
  spec.entry.shape.resize(sizeof(shape) / sizeof(int64_t));
  std::memcpy(spec.entry.shape.data(), &shape, sizeof(shape));
}

// Four consumers are fastest for small heads without a mask, if there are queries for them.
AttentionForm forward_form(const Problem& problem) {
  if (!problem.is_small) return kernels::kAttention128;
  const int64_t rows = kernels::kAttention64Wide.consumers * kernels::kAttentionRows;
  const bool is_wide = !problem.has_mask && problem.shape.queries >= rows;
  return is_wide ? kernels::kAttention64Wide : kernels::kAttention64;
}

void set_forward(KernelSpec& spec, const KernelTarget& target) {
  const Problem problem = problem_of(spec, 3);
  const AttentionForm form = forward_form(problem);
  const AttentionWork work = work_of(problem, target, query_items(problem, form.consumers));
  const AttentionSchedule schedule = schedule_queries(form.consumers, work);
  spec.blocks = work.blocks;
  spec.launch.threads = attention_threads(form);
  spec.launch.shared_bytes = attention_shared_bytes(form);
  spec.launch.registers = form.registers;
  spec.entry.name = problem.name("");
  if (form.consumers == kernels::kAttention64Wide.consumers) spec.entry.name += "_wide";
  set_shape(spec, problem.shape, schedule.rounds);
  const TensorPointer q = append_map(spec, 0, kernels::kAttentionRows);
  const TensorPointer k = append_map(spec, 1, form.keys), v = append_map(spec, 2, form.keys);
  spec.entry.tensors = {q,
                        k,
                        v,
                        append_table(spec, schedule),
                        argument_at(spec.result_arguments[1]),
                        argument_at(spec.result_arguments[2]),
                        mask_at(spec, 3)};
}

// What both halves of the gradient have alike.
void set_gradient(KernelSpec& spec, const Problem& problem, const AttentionGradientForm& form,
                  uint32_t own, const AttentionSchedule& schedule, int64_t blocks) {
  spec.blocks = blocks;
  spec.launch.threads = attention_threads(kernels::kAttention64);
  spec.launch.shared_bytes = attention_gradient_shared_bytes(form, own, problem.has_mask);
  spec.launch.registers = kernels::kAttention64.registers;
  set_shape(spec, problem.shape, schedule.rounds);
}

void set_query_gradient(KernelSpec& spec, const KernelTarget& target) {
  const Problem problem = problem_of(spec, 7);
  const AttentionGradientForm form =
      problem.is_small ? kernels::kQueryGradient64 : kernels::kQueryGradient128;
  const AttentionWork work =
      work_of(problem, target, query_items(problem, kernels::kGradientConsumers));
  const AttentionSchedule schedule = schedule_queries(kernels::kGradientConsumers, work);
  set_gradient(spec, problem, form, 3, schedule, work.blocks);
  spec.entry.name = problem.name("query_gradient_");
  std::vector<TensorPointer> tensors;
  for (const size_t operand : {0, 1, 2, 3, 6}) {
    tensors.push_back(append_map(spec, operand, kernels::kAttentionRows));
  }
  tensors.push_back(append_table(spec, schedule));
  tensors.push_back(operand_at(spec, 4));
  tensors.push_back(operand_at(spec, 5));
  tensors.push_back(argument_at(spec.result_arguments[1]));
  tensors.push_back(mask_at(spec, 7));
  spec.entry.tensors = std::move(tensors);
}

void set_key_gradient(KernelSpec& spec, const KernelTarget& target) {
  const Problem problem = problem_of(spec, 5);
  const AttentionGradientForm form =
      problem.is_small ? kernels::kKeyGradient64 : kernels::kKeyGradient128;
  const int64_t consumers = kernels::kGradientConsumers;
  const AttentionWork work =
      work_of(problem, target,
              problem.batch * problem.shape.key_heads *
                  ceil_divide(problem.shape.keys, consumers * kernels::kAttentionRows));
  const AttentionSchedule schedule = schedule_keys(consumers, work);
  set_gradient(spec, problem, form, 2, schedule, work.blocks);
  spec.entry.name = problem.name("key_gradient_");
  const int64_t rows = kernels::kAttentionRows;
  const TensorPointer q = append_map(spec, 0, rows), k = append_map(spec, 1, rows),
                      v = append_map(spec, 2, rows), gradient = append_map(spec, 3, rows);
  spec.entry.tensors = {q,
                        k,
                        v,
                        TensorPointer(),
                        gradient,
                        append_table(spec, schedule),
                        TensorPointer(),
                        TensorPointer(),
                        operand_at(spec, 4),
                        mask_at(spec, 5)};
}

}  // namespace

void set_hopper_attention(KernelSpec& spec, const KernelTarget& target) {
  switch (spec.anchor) {
    case Op::kAttention:
      return set_forward(spec, target);
    case Op::kAttentionQueryGrad:
      return set_query_gradient(spec, target);
    case Op::kAttentionKeyGrad:
      return set_key_gradient(spec, target);
    default:
      internal_error(__FILE__, __LINE__, spec.kind + " is no attention");
  }
}

}  // namespace sgtc::gpu
