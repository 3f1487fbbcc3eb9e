// Loops of one form in one launch, whatever the sizes of their tensors.
//
// The problem. An optimizer does the same to every parameter, and a global norm to every gradient:
// hundreds of launches of a few microseconds, most of them for a bias or a scale that keeps one
// multiprocessor busy. Put beside each other they are one kernel at the speed of memory.
//
// Known ways are a tensor list of fixed length per launch, with a chunk per block (the "foreach"
// optimizers of frameworks), and branches over the block's number with a copy of the code per loop
// (horizontal fusion). Here: the code is shared by all loops that differ in sizes alone, and what
// differs is data. A merged kernel has
// - *instances*, one per loop. Its blocks are those of the instances, one after the other: a block
//   finds its instance by a binary search over their first blocks, and does what the loop's own
//   block would have done. So a small tensor takes one block and a large one thousands.
// - *bodies*, the code of instances. Two loops share a body if their nests are equal but for the
//   extent of the outermost parallel atom (rows, or elements of a flat tensor), or of the only
//   reduced one of a sum of everything. These extents come from the table of instances. Loops of
//   one *form*, the same expressions over the same types, become one kernel of several bodies:
//   tensors that differ in what divides their size, sums of rows of other lengths.
// - *arguments*: what all instances read is passed once, the rest instance by instance. They are
//   hundreds, so that the kernel gets their addresses in a table (`GpuLaunch::indirect`).
//
// An instance's threads, lanes and slices are those of its loop alone, so that bits do not depend
// on what is merged. Left out: reductions of columns, which meet in shared memory of a size that
// depends on the lanes, and kernels that report indices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "passes/kernel.h"
#include "passes/thread_mapping.h"

namespace sgtc::gpu {

/// Bodies that a merged kernel may have: each takes code and time to compile.
inline constexpr size_t kMostBodies = 16;

/// The code of all instances that differ in one extent.
struct LoopBody {
  KernelSpec kernel;      // nest and arguments; the extent is the largest of the instances
  ThreadMapping mapping;  // `items` or `steps` are the largest
  bool varies_in_steps = false;
};

/// One of the loops.
struct LoopInstance {
  int64_t body = 0;
  int64_t items = 1;  // as in ThreadMapping
  int64_t steps = 1;
  int64_t first_block = 0;
};

/// Argument number `first` + i * `stride` of the kernel is that of instance i.
struct InstanceArgument {
  int64_t first = 0;
  int64_t stride = 0;
};

struct MergedLoops {
  std::vector<LoopBody> bodies;
  std::vector<LoopInstance> instances;
  std::vector<InstanceArgument> arguments;  // of a body
  int64_t blocks = 0;                       // of all instances
};

/// The table of instances, the kernel's last argument: i64 words. First come `search_length` first
/// blocks, behind the last instance INT64_MAX, then `kInstanceWords` per instance: body, items,
/// steps.
inline constexpr int64_t kInstanceWords = 3;
/// The smallest power of two that is not less than the number of instances.
int64_t search_length(const MergedLoops& loops);

/// Loops of equal `form` may be merged; those of equal `body` too share their code.
struct MergeKey {
  std::string form;
  std::string body;
};

/// Nothing for kernels that are not merged.
std::optional<MergeKey> merge_key(const KernelSpec& kernel);

/// Where an argument of a merged kernel comes from.
struct ArgumentOrigin {
  size_t member = 0;
  size_t argument = 0;
};

struct MergedKernel {
  KernelSpec kernel;
  std::vector<ArgumentOrigin> origins;  // of all arguments but the last, the table
};

/// One kernel for loops of one form, which do not depend on each other. Arguments of the same value
/// that all members only read become one.
MergedKernel merge_loops(const std::vector<const KernelSpec*>& members);

}  // namespace sgtc::gpu
