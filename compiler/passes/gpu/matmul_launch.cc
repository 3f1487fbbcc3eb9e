// The launch of a matrix product on Hopper's tensor cores.
//
// The problem: the kernel exists in several forms, and which one is fastest depends on depth, on
// the epilogue and on how evenly the tiles fill the multiprocessors. The usual answers are a table
// of measured shapes, which knows nothing of other ones, and measuring when a model is compiled,
// which needs the GPU and does not repeat. Here the work of every form is scheduled, and the form
// whose busiest multiprocessor is done first is taken, by prices in cycles that were measured on an
// H200 (docs/performance.md).
#include "passes/gpu/matmul_launch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "matmul/sm_90a/schedule.h"

namespace sgtc::gpu {
namespace {

using kernels::MatmulForm;
using kernels::MatmulItem;
using kernels::MatmulSchedule;
using kernels::MatmulWork;

// The copy engine reads rows at multiples of 16 bytes.
constexpr int64_t kRowElements = 8;
// Wide results are walked in taller groups, so that their columns stay longer in the L2 cache.
constexpr int64_t kWideColumns = 16384;

struct Candidate {
  MatmulForm form;
  const char* name;
  bool split_depth;
  // Cycles of a k-block, which on the tensor cores are 512 for 128 x 128 and 1024 for 128 x 256.
  // Ping-pong moves more bytes per product, pairs share their columns of b.
  double block;
  double tile;  // cycles of the end of a tile that nothing hides
};

// Ping-pong hides the end of all tiles but the last.
constexpr double kLastTile = 2500;
constexpr double kPartial = 2500;  // of sums that are left for, or taken from, another cluster
constexpr Candidate kCandidates[] = {
    {kernels::kPingPong, "pingpong", false, 540, 0},
    {kernels::kCooperativePair, "cooperative_pair", false, 1005, 2500},
    {kernels::kCooperative, "cooperative", true, 1024, 2500},
};

struct Operand {
  int64_t lines, depth, batch;
  bool line_major;
  int64_t inner() const { return line_major ? lines : depth; }
  int64_t outer() const { return line_major ? depth : lines; }
};

struct Problem {
  Operand a, b;
  int64_t batch = 1;
};

int64_t product_of_batch(const Shape& shape) {
  return element_count(Shape(shape.begin(), shape.end() - 2));
}

// `contiguous_depth`: the operand's last dimension is the depth.
Operand operand_of(const Shape& shape, bool contiguous_depth) {
  const int64_t last = shape.back(), other = shape.end()[-2];
  if (contiguous_depth) return {other, last, product_of_batch(shape), false};
  return {last, other, product_of_batch(shape), true};
}

bool is_readable(const Operand& operand) { return operand.inner() % kRowElements == 0; }

std::optional<Problem> problem_of(const KernelSpec& spec) {
  for (const TensorType& type : spec.operand_types) {
    if (type.dtype != DType::kBFloat16) return std::nullopt;
  }
  const DType result = spec.result_types[0].dtype;
  if (!is_float(result) || result == DType::kFloat64) return std::nullopt;
  Problem problem;
  problem.a =
      operand_of(spec.operand_types[0].shape, spec.attributes.integer_or("transpose_a", 0) == 0);
  problem.b =
      operand_of(spec.operand_types[1].shape, spec.attributes.integer_or("transpose_b", 0) != 0);
  problem.batch = product_of_batch(spec.result_types[0].shape);
  const bool has_work = problem.batch * problem.a.lines * problem.b.lines * problem.a.depth > 0;
  const bool same_batch = problem.a.batch == problem.batch && problem.b.batch == problem.batch;
  if (!has_work || !same_batch || !is_readable(problem.a) || !is_readable(problem.b)) {
    return std::nullopt;
  }
  return problem;
}

int64_t tiles_of(const Problem& problem, const MatmulForm& form) {
  const int64_t rows = form.rows * form.cluster, columns = form.columns;
  return problem.batch * ((problem.a.lines + rows - 1) / rows) *
         ((problem.b.lines + columns - 1) / columns);
}

MatmulWork work_of(const Problem& problem, const Candidate& candidate, const KernelTarget& target) {
  MatmulWork work = {};
  work.batch = problem.batch;
  work.rows = problem.a.lines;
  work.columns = problem.b.lines;
  work.depth = problem.a.depth;
  work.raster_group = work.columns >= kWideColumns ? 16 : 8;
  work.split_depth = candidate.split_depth;
  const int64_t cluster = candidate.form.cluster;
  const int64_t clusters = target.multiprocessors / cluster;
  // A depth that is split has work for more clusters than there are tiles.
  const int64_t useful =
      candidate.split_depth ? clusters : std::min(clusters, tiles_of(problem, candidate.form));
  work.blocks = useful * cluster;
  return work;
}

// Cycles of the busiest cluster.
double cycles_of(const MatmulSchedule& schedule, const Candidate& candidate, int64_t clusters) {
  double most = 0;
  for (int64_t cluster = 0; cluster < clusters; ++cluster) {
    double cycles = candidate.form.ping_pong ? kLastTile : 0;
    for (int64_t round = 0; round < schedule.rounds; ++round) {
      const MatmulItem& item = schedule.items[static_cast<size_t>(round * clusters + cluster)];
      if (item.depth_begin == item.depth_end) break;
      cycles += candidate.block * (item.depth_end - item.depth_begin) + candidate.tile +
                kPartial * std::abs(item.partials);
    }
    most = std::max(most, cycles);
  }
  return most;
}

struct Choice {
  const Candidate* candidate = nullptr;
  MatmulWork work = {};
  MatmulSchedule schedule;
  double cycles = 0;
};

// Of the table of work, whose numbers have 16 bits.
bool is_within_limits(const Problem& problem) {
  constexpr int64_t kLimit = 1 << 16;
  const MatmulForm& smallest = kernels::kPingPong;
  return problem.batch < (int64_t{1} << 31) && problem.a.lines / smallest.rows < kLimit &&
         problem.b.lines / smallest.columns < kLimit &&
         problem.a.depth / kernels::kMatmulDepth < kLimit;
}

Choice choose(const Problem& problem, const KernelTarget& target) {
  Choice best;
  for (const Candidate& candidate : kCandidates) {
    Choice choice = {&candidate, work_of(problem, candidate, target), {}, 0};
    choice.schedule = schedule_matmul(candidate.form, choice.work);
    choice.cycles =
        cycles_of(choice.schedule, candidate, choice.work.blocks / candidate.form.cluster);
    if (best.candidate == nullptr || choice.cycles < best.cycles) best = std::move(choice);
  }
  return best;
}

TensorMap map_of(const Operand& operand, int32_t argument, const MatmulForm& form, bool is_a) {
  TensorMap map;
  map.argument = argument;
  map.dtype = DType::kBFloat16;
  map.sizes = {operand.inner(), operand.outer(), operand.batch};
  const int64_t row = operand.inner() * size_of(map.dtype);
  map.strides = {row, row * operand.outer()};
  map.box = {kernels::kMatmulDepth, matmul_box_lines(form, is_a, operand.line_major), 1};
  return map;
}

TensorPointer append_argument(KernelSpec& spec, KernelArgument::Kind kind, AccessMode mode) {
  spec.arguments.push_back({kind, kNone, mode, {}});
  return {TensorPointer::Kind::kArgument, static_cast<int32_t>(spec.arguments.size()) - 1};
}

LiteralPtr table_of(const MatmulSchedule& schedule) {
  const size_t bytes = schedule.items.size() * sizeof(MatmulItem);
  auto table = std::make_shared<Literal>(DType::kUInt8, Shape{static_cast<int64_t>(bytes)});
  std::memcpy(table->mutable_bytes().data(), schedule.items.data(), bytes);
  return table;
}

}  // namespace

bool set_hopper_matmul(KernelSpec& spec, const KernelTarget& target) {
  const std::optional<Problem> problem = problem_of(spec);
  if (!problem || !is_within_limits(*problem)) return false;
  const Choice choice = choose(*problem, target);
  const MatmulForm& form = choice.candidate->form;
  const MatmulSchedule& schedule = choice.schedule;
  spec.blocks = choice.work.blocks;
  spec.launch.threads = kernels::kMatmulThreads;
  spec.launch.shared_bytes = matmul_shared_bytes(form);
  spec.launch.cluster = form.cluster;
  spec.launch.registers = kernels::kMatmulRegisters;
  spec.launch.resident = schedule.slots > 0;
  spec.launch.tensor_maps = {map_of(problem->a, spec.operand_arguments[0], form, true),
                             map_of(problem->b, spec.operand_arguments[1], form, false)};
  const auto layout = [](const Operand& operand) { return operand.line_major ? 'l' : 'd'; };
  spec.entry.name = std::string("sgtc_matmul_sm_90a_") + choice.candidate->name + '_' +
                    layout(problem->a) + layout(problem->b);
  spec.entry.shape = {problem->a.lines, problem->b.lines,
                      (problem->a.depth + kernels::kMatmulDepth - 1) / kernels::kMatmulDepth,
                      schedule.rounds};
  TensorPointer partial_sums, flags;
  if (schedule.slots > 0) {
    const int64_t sums = schedule.slots * form.cluster * kernels::kMatmulConsumers;
    spec.workspace_bytes = sums * kernels::kMatmulPartialFloats * size_of(DType::kFloat32);
    spec.flag_bytes = sums * size_of(DType::kUInt32);
    partial_sums = append_argument(spec, KernelArgument::Kind::kWorkspace, AccessMode::kWrite);
    flags = append_argument(spec, KernelArgument::Kind::kFlags, AccessMode::kUpdate);
  }
  spec.table = table_of(schedule);
  const TensorPointer items =
      append_argument(spec, KernelArgument::Kind::kTable, AccessMode::kRead);
  spec.entry.tensors = {{TensorPointer::Kind::kTensorMap, 0},
                        {TensorPointer::Kind::kTensorMap, 1},
                        items,
                        partial_sums,
                        flags};
  return true;
}

}  // namespace sgtc::gpu
