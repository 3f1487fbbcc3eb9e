// Kernels as data: the hand-over from fusion to schedule, memory and code generation.
//
// `fuse` partitions the nodes of a graph into groups; `form_kernels` describes the code of each
// group as a `KernelSpec`. Two groups with equal specs (values aside) share one symbol and are
// compiled once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/literal.h"
#include "passes/loop_nest.h"

namespace sgtc {

/// Nodes that become one kernel. Groups are in execution order and cover every node exactly once.
struct Group {
  enum class Kind : uint8_t {
    kLoop,        // a loop nest: elementwise, movement, gathers, reductions
    kAnchor,      // one contraction, pool, scatter… from kernels/, with a fused epilogue
    kView,        // reshapes only: no code, the result has the operand's bytes
    kCollective,  // one collective: no code, a communication of the plan
    kShard,       // a replica's shard of a state: no code, the bytes lie within the state's
  };
  Kind kind = Kind::kLoop;
  Phase phase = Phase::kForward;
  std::vector<NodeId> nodes;     // in execution order
  NodeId anchor = kNone;         // kAnchor
  std::vector<ValueId> inputs;   // values from outside that it reads, each once
  std::vector<ValueId> outputs;  // values that others (or outputs, updates) use, each once
};

enum class AccessMode : uint8_t { kRead, kWrite, kUpdate };

/// Whether the group is computed by a kernel.
inline bool has_code(const Group& group) {
  return group.kind == Group::Kind::kLoop || group.kind == Group::Kind::kAnchor;
}

/// One pointer argument of a kernel.
struct KernelArgument {
  enum class Kind : uint8_t {
    kValue,
    kStatus,
    kWorkspace,  // `workspace_bytes` that hold anything before and after the call
    kFlags,      // `flag_bytes` that are zero before and after each call, shared by all kernels
    kTable,      // the bytes of `table`, a constant
  };
  Kind kind = Kind::kValue;
  ValueId value = kNone;
  AccessMode mode = AccessMode::kRead;
  /// For a written value: the read arguments whose buffer it may share, because every element is
  /// read before the same element is written and by the same block. Two written values never
  /// share one.
  std::vector<int32_t> may_alias;
};

/// A tensor as the copy engine of a GPU reads it: dimensions are innermost first. The first is
/// contiguous, boxes lie in shared memory with the 128-byte swizzle, and elements outside the
/// tensor are zeros.
struct TensorMap {
  int32_t argument = kNone;  // that holds the tensor
  int64_t offset = 0;        // of its first element, in bytes
  DType dtype = DType::kBFloat16;
  std::vector<int64_t> sizes;    // elements; 2 to 5 dimensions
  std::vector<int64_t> strides;  // bytes, multiples of 16, of all dimensions but the first
  std::vector<int64_t> box;      // elements
};

/// How a kernel is launched on a GPU.
struct GpuLaunch {
  int64_t threads = 0;       // per block; 0: the kernel is for a CPU
  int64_t shared_bytes = 0;  // dynamic shared memory per block
  int64_t cluster = 1;       // blocks of a cluster
  int64_t registers = 0;     // the most per thread at entry; 0: whatever the assembler takes
  bool resident = false;     // blocks wait for each other: all have to be resident at once
  bool indirect = false;     // instead of its arguments it gets a pointer to their addresses
  /// The kernel gets a pointer to each, in global memory, behind the number of the micro-batch.
  std::vector<TensorMap> tensor_maps;
};

/// Element (i, j, …) of a tensor is element offset + i * strides[0] + j * strides[1] + … of its
/// argument.
struct StridedLayout {
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

/// A pointer that a written kernel gets.
struct TensorPointer {
  enum class Kind : uint8_t { kNull, kArgument, kTensorMap };
  Kind kind = Kind::kNull;
  int32_t index = kNone;  // of the kernel's argument or tensor map
};

/// The function of kernels/ that computes an anchor on a GPU, inlined into the kernel:
///   void name(const int64_t* shape, void* const* arguments, void* const* tensors)
/// `arguments` are all of the kernel, for the tile visitor.
struct GpuEntry {
  std::string name;            // empty: no kernel for this anchor and these types
  std::vector<int64_t> shape;  // constants in the code
  std::vector<TensorPointer> tensors;
};

namespace gpu {
struct MergedLoops;
}

/// What code generation needs to know of one kernel, and what the plan says of it.
struct KernelSpec {
  std::string symbol;     // "k_<kind>_<hash of everything below but the values>"
  std::string kind;       // "loop", "matmul", "conv"…
  LoopNest nest;          // the whole body of a loop kernel, the epilogue of an anchor
  Op anchor = Op::kAdd;   // anchors only
  Attributes attributes;  // of the anchor
  std::vector<TensorType> operand_types;  // of the anchor
  std::vector<TensorType> result_types;   // of the anchor
  /// Of the anchor's operands and results: the argument that holds it; a result that lives only
  /// in the epilogue is kNone.
  std::vector<int32_t> operand_arguments;
  std::vector<int32_t> result_arguments;
  /// Of anchors that take any strides (anchor_layouts.h): one per operand and result.
  std::vector<StridedLayout> operand_layouts;
  std::vector<StridedLayout> result_layouts;
  std::vector<KernelArgument> arguments;
  int64_t blocks = 1;           // independent units of work
  int64_t workspace_bytes = 0;  // size of the workspace argument
  int64_t flag_bytes = 0;       // that it uses of the flags
  LiteralPtr table;             // u8; null without a table argument
  GpuLaunch launch;             // on a GPU; `blocks` is its grid
  GpuEntry entry;               // of anchors on a GPU
  /// Of a kernel that computes several loops, which has no nest of its own; else null.
  std::shared_ptr<const gpu::MergedLoops> merged;
  int64_t checked_node = 0;  // 1 + index into the plan's checked nodes; 0: nothing is checked
  int64_t flops = 0;
  int64_t bytes = 0;
  std::vector<std::string> sources;  // ONNX nodes
};

}  // namespace sgtc
