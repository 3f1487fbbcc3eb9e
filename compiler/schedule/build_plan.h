// The plan of a mesh: everything of a training step and of an evaluation in order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost/hardware.h"
#include "mesh/mesh.h"
#include "partition/partition.h"
#include "partition/placement.h"
#include "plan/format.h"
#include "schedule/pipeline_order.h"
#include "schedule/position_builder.h"
#include "schedule/weights_blob.h"

namespace sgtc {

/// A term of the loss of an evaluation, by names of outputs of the evaluation graph.
struct LossTermOutput {
  double coefficient = 1;
  std::string numerator;
  std::string denominator;  // empty: the constant, or an average over micro-batches
  double denominator_constant = 0;
};

/// A graph and where its groups run.
struct PlacedProgram {
  KernelizedGraph kernels;
  Placement placement;
};

struct PlanInput {
  PlacedProgram train;
  /// Forward only, for the same target. States and feeds are those of `train` with the same names,
  /// and so are the positions that hold them. Its kernels are formed with `first_checked` = number
  /// of checked nodes of `train`.
  std::optional<PlacedProgram> evaluate;
  std::vector<LossTermOutput> loss_terms;
  Mesh mesh;
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int64_t in_flight = 0;     // micro-batches, as of pipeline_order
  int64_t bucket_bytes = 0;  // of gradients that are reduced as one; 0: chosen
  /// By whose times kernels and communications are ordered.
  Hardware hardware = default_hardware("cpu");
  int64_t communication_blocks = 0;  // of a GPU, that each communicator may have; 0 on CPUs
  std::string model;                 // its name
  std::string model_text;            // what identifies it: hashed with states and optimizer
  std::string cpu;                   // programs for CPUs
  std::vector<std::string> cpu_features;
  std::map<std::string, int64_t> dims;
  std::string optimizer;
  std::string row_weights;  // the feed of the rows' weights, or empty
};

struct BuiltPlan {
  plan::Plan plan;
  /// Per position, of each buffer. Two of one schedule whose times overlap need bytes of their own,
  /// and so does everything that is needed always.
  std::vector<std::vector<BufferUse>> uses;
  /// Per position and task of the training program: the group of each call, -1 for a copy and for
  /// merged kernels, which the backward phase has none of.
  std::vector<std::map<std::string, std::vector<int64_t>>> groups_of_calls;
  /// The code of `plan.kernels`, in that order.
  std::vector<KernelSpec> kernels;
};

/// Builds the plan: per position the schedules "train" (prologue of every micro-batch, forward and
/// backward passes in the order of the pipeline schedule, then the update) and, with `evaluate`,
/// "evaluate", with every transfer and collective as a task of its own. Offsets are left at 0:
/// `assign_offsets` places the buffers. Initial values are added to `weights`, which the plans of
/// one executable share.
BuiltPlan build_plan(const PlanInput& input, WeightsBlob& weights);

}  // namespace sgtc
