// The plan of one device: everything of a training step and of an evaluation in order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/format.h"
#include "passes/kernelized_graph.h"
#include "schedule/weights_blob.h"

namespace sgtc {

/// A term of the loss of an evaluation, by names of outputs of the evaluation graph.
struct LossTermOutput {
  double coefficient = 1;
  std::string numerator;
  std::string denominator;  // empty: the constant, or an average over micro-batches
  double denominator_constant = 0;
};

struct PlanInput {
  KernelizedGraph train;
  /// Forward only. States and feeds are those of `train` with the same names. Its kernels are
  /// formed with `first_checked` = number of checked nodes of `train`.
  std::optional<KernelizedGraph> evaluate;
  std::vector<LossTermOutput> loss_terms;
  std::string model;       // its name
  std::string model_text;  // what identifies it: hashed with states and optimizer
  std::string target = "cpu";
  std::string cpu;
  std::vector<std::string> cpu_features;
  std::map<std::string, int64_t> dims;
  std::string optimizer;
};

/// When a buffer of the plan is needed: positions of kernel calls, both included, of one schedule,
/// or always.
struct BufferUse {
  std::string schedule;  // empty: always
  int64_t first = 0;
  int64_t last = 0;
};

struct BuiltPlan {
  plan::Plan plan;
  /// Of each buffer of position 0. Two of one schedule whose positions overlap need bytes of their
  /// own, and so does everything that is needed always.
  std::vector<BufferUse> uses;
  /// The code of `plan.kernels`, in that order.
  std::vector<KernelSpec> kernels;
};

/// Builds the plan for the mesh 1x1: one position with the schedules "train" (prologue of every
/// micro-batch, then forward and backward of each in order, then the update) and, with
/// `evaluate`, "evaluate". Offsets are left at 0: `assign_offsets` places the buffers. Initial
/// values are added to `weights`, which the plans of one executable share.
BuiltPlan build_plan(const PlanInput& input, WeightsBlob& weights);

}  // namespace sgtc
