// Calls of a position that do the same to different tensors become one.
//
// Placement knows groups, so that merging comes behind it: a position merges what it runs. What
// calls share bytes is known too, and stays so: what is updated in place is updated in place.
//
// Merged are loops of one form (passes/gpu/merge_loops.h) of the prologue or of one round of the
// update, where a model has one per tensor, and of the forward phase those that read states alone,
// such as casts of weights. The rest of the forward and backward phases are dependent kernels of
// all forms, and gradients are reduced as they come. A call joins the first one of its form if
// nothing in between writes what it reads, or touches what it writes, else a later one. Temporaries
// of such calls live side by side then: calls stay apart where that would raise the peak of the
// step.
#pragma once

#include "ir/graph.h"
#include "schedule/storage.h"

namespace sgtc {

/// Replaces calls of `step`, whose kernels are for a GPU and of `graph`.
void merge_calls(const Graph& graph, StepCalls& step);

}  // namespace sgtc
