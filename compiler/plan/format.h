// Plan: what each rank executes, as data. The one header that compiler and runtime share.
//
// The compiler writes a Plan as JSON (docs/plan-format), the executable embeds that JSON and the
// runtime executes it, so `--emit-plan` cannot disagree with the binary.
//
// Semantics
// - The mesh has the axes pp, dp and tp. A plan has one `Position` per pp coordinate; all ranks of
//   one position share its text. Fields of type `Affine` may depend on the dp and tp coordinates.
// - A *task* is a straight-line list of kernel calls (`kind` "compute") or one communication. A
//   communication is always a task of its own.
// - A *schedule* is one ordered list of entries per position. An entry runs a task for micro-batch
//   `micro_batch` in `stream`, after all earlier entries of that stream and after the entries (by
//   index in the list) in `waits`. A wait names an earlier entry, so the list itself is a legal
//   order of execution. Entries that share a non-negative `group` are adjacent communications of
//   one stream, issued as one.
// - A *buffer* has `count` instances of `bytes`, `stride` bytes apart, from `offset` in the arena.
//   Which instance a call uses follows from the scope:
//     persistent   one; keeps its contents between steps
//     step         one; contents end with the step
//     micro_batch  one per micro-batch; the entry's micro_batch selects it
//     slot         activations between tasks; the entry's `slot` selects it
//     ring         what transfers bring or take, or parameters; the entry's `ring` selects it
//     task         one; contents end with the task's entry
//   Two buffers may share bytes only if the last use of one happens before (by stream order and
//   waits) the first write of the other. Feeds are written before the step; buffers of results are
//   read after it.
// - Matching: the n-th send of a position on a communicator to a peer meets the n-th receive of
//   the peer from it; the n-th collective of each member of a communicator meets the others' n-th.
//   A communicator over dp or tp joins ranks of one position; one over pp joins all positions.
//   `inputs[i]` and `outputs[i]` of a collective belong together: all_reduce and broadcast have
//   equal sizes, all_gather writes and reduce_scatter reads (size of the axis) times the other.
//
// Kernel interface on the CPU: `void symbol(void* const* arguments, int64_t block_begin,
// int64_t block_end, int64_t micro_batch)`. A call has `blocks` independent blocks, which any
// number of threads may share in contiguous ranges; results never depend on the split.
// `micro_batch` is global: replica * micro_batches + entry.micro_batch.
//
// Kernel interface on a GPU: a pointer per argument, or one to their addresses (Launch::indirect);
// micro_batch; a pointer per tensor map; and a pointer to the stamps of the launch, or null.
// Every program has the kernel `kMarkKernel` of one warp, without arguments or work.
//
// Stamps say when a launch ran. They are `kStampSlots` slots of two words, all ones at first. Each
// block lowers a first word to the time at which it begins, in the slot of its number modulo the
// number of slots, each warp a second one to the complement of the time at which it ends, in that of
// its multiprocessor's number: nanoseconds of the GPU's global timer. Slots keep short warps from
// waiting for each other: a word takes an atomic operation each 0.7 ns on an H200, and a kernel has
// up to a million warps.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sgtc::plan {

inline constexpr int kFormatVersion = 1;
inline constexpr const char* kMarkKernel = "mark";
/// A power of two.
inline constexpr int64_t kStampSlots = 32;
/// From slot to slot: no two share a sector of the cache.
inline constexpr int64_t kStampSlotBytes = 64;

/// base + dp * (dp coordinate) + tp * (tp coordinate). JSON: a number, or an object.
struct Affine {
  int64_t base = 0;
  int64_t dp = 0;
  int64_t tp = 0;
  int64_t at(int64_t dp_coordinate, int64_t tp_coordinate) const {
    return base + dp * dp_coordinate + tp * tp_coordinate;
  }
  bool operator==(const Affine&) const = default;
};

struct Buffer {
  std::string name;
  std::string scope;           // persistent | step | micro_batch | slot | ring | task
  std::string dtype;           // "f32"
  std::vector<int64_t> shape;  // of one instance, local to the rank
  int64_t bytes = 0;           // of one instance
  int64_t offset = 0;          // in the arena, of instance 0
  int64_t stride = 0;          // bytes between instances; 0 when count is 1
  int64_t count = 1;
};

/// A part of a buffer: `bytes` from `offset` within the selected instance; bytes 0: all of it.
/// JSON: the buffer's name, or an object.
struct Argument {
  std::string buffer;
  Affine offset;
  int64_t bytes = 0;
};

/// A tensor as the copy engine of a GPU reads it; passes/kernel.h explains the fields.
struct TensorMap {
  int64_t argument = 0;  // index into the call's arguments
  int64_t offset = 0;
  std::string dtype;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::vector<int64_t> box;
};

/// How a kernel is launched on a GPU. It is `void symbol(argument 0, …, argument n-1, int64_t
/// micro_batch, tensor map 0, …)`, all but the micro-batch pointers into device memory; an
/// *indirect* one, with more arguments than a kernel may have parameters, is `void symbol(table,
/// int64_t micro_batch)` with a pointer to the addresses of its arguments.
struct Launch {
  int64_t threads = 0;       // per block; 0: the kernel runs on the CPU
  int64_t shared_bytes = 0;  // dynamic shared memory per block
  int64_t cluster = 1;       // blocks of a cluster
  bool resident = false;     // its blocks wait for each other: all must be resident at once
  std::vector<TensorMap> tensor_maps;
  bool indirect = false;  // its arguments are in a table
};

struct Kernel {
  std::string symbol;
  std::string kind;                 // loop | matmul | conv | … : which generator made it
  int64_t blocks = 1;               // launch geometry: independent blocks
  std::vector<std::string> access;  // per argument: read | write | update
  int64_t flops = 0;                // of one call
  int64_t bytes = 0;                // read and written by one call
  std::vector<std::string> nodes;   // ONNX nodes that it came from
  Launch launch;                    // GPUs only
};

struct Call {
  std::string kernel;  // Kernel::symbol
  std::vector<Argument> arguments;
  std::vector<std::string> nodes;  // ONNX nodes of this call; those of a kernel are its calls'
};

struct Task {
  std::string name;
  std::string kind;  // compute | send | receive | all_reduce | reduce_scatter |
                     // all_gather | broadcast
  int64_t stage = 0;
  std::vector<Call> calls;  // compute
  // Communication:
  std::string communicator;
  int64_t peer = -1;   // send, receive: the other position; broadcast: the root's coordinate
  std::string reduce;  // sum | max
  std::string dtype;
  std::vector<Argument> inputs;   // parts that are read
  std::vector<Argument> outputs;  // parts that are written
};

struct Entry {
  std::string task;
  int64_t micro_batch = 0;
  int64_t slot = 0;
  int64_t ring = 0;
  int64_t stream = 0;  // 0: compute
  int64_t group = -1;
  std::vector<int64_t> waits;
};

/// All ranks with one pp coordinate.
struct Position {
  std::vector<int64_t> stages;
  int64_t arena_bytes = 0;
  std::vector<Buffer> buffers;
  std::vector<Task> tasks;
  /// "train": one step. "evaluate": forward only.
  std::map<std::string, std::vector<Entry>> schedules;
};

/// One per use and direction.
struct Communicator {
  std::string name;
  std::string axis;    // pp | dp | tp
  int64_t blocks = 0;  // cap on thread blocks; 0: not on a GPU
};

struct Axis {
  std::string name;
  int64_t size = 1;
};

/// A graph input, once per position that reads it. The runtime fills the micro_batch buffer of that
/// name.
struct Feed {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;  // of one micro-batch; the first dimension is its rows
  int64_t position = 0;
  std::string node;  // the node that consumes it, for messages
};

/// A named result that the runtime can read after a step. A buffer of micro_batch scope holds one
/// result per micro-batch, any other buffer one of the step. Results of the update phase are there
/// on every position.
struct Result {
  std::string name;  // "loss", "grad_norm", "finite" or a graph output
  std::string buffer;
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t position = 0;
};

/// loss = sum over terms of coefficient * numerator / denominator, both summed over all
/// micro-batches of an evaluation. A term without denominator is averaged over micro-batches.
struct LossTerm {
  double coefficient = 1;
  std::string numerator;            // buffer of the evaluate schedule, f32 scalar, as of a Result
  std::string denominator;          // buffer, or empty
  double denominator_constant = 0;  // per micro-batch, when `denominator` is empty
  int64_t position = 0;             // that has both buffers
};

/// A persistent tensor that training starts from. Parameters, frozen ones, statistics and moments
/// are saved; accumulators are zeroed before each step; constants never change. A state that
/// several positions hold is listed for each of them, under one name; all copies stay equal. With
/// `shards` equal to the size of dp the buffer holds that part of the elements, in their order,
/// whose number is the dp coordinate.
struct State {
  std::string name;  // the file's tensor name
  std::string role;  // parameter | frozen | statistic | moment | accumulator | constant
  std::string dtype;
  std::vector<int64_t> shape;  // logical
  std::string buffer;
  int64_t position = 0;
  std::string init;         // zero | data | normal | uniform | fill
  int64_t data_offset = 0;  // data: in the weights blob
  double a = 0;             // mean, low or fill value
  double b = 0;             // deviation or high
  int64_t seed = 0;
  int64_t shards = 1;
};

/// A scalar that the runtime writes before each step into the persistent buffer "control".
struct Control {
  std::string name;  // learning_rate | seed | step
  std::string dtype;
  int64_t offset = 0;
};

/// What `sgtc` expects of a run. Not part of the fingerprint.
struct Prediction {
  double step_seconds = 0;
  double bubble = 0;
  std::vector<int64_t> peak_bytes;  // per position
};

/// The persistent buffer "status": int64 words {1 + checked node, index, extent}; word 0 is 0 while
/// every checked index was in range. `checked_nodes` of the plan names them.
inline constexpr int64_t kStatusBytes = 64;

struct Plan {
  std::string format = "sgtc-plan";
  int64_t version = kFormatVersion;
  std::string model;  // name of the graph
  std::string target = "cpu";
  std::string cpu;                        // x86-64-v3 …
  std::vector<std::string> cpu_features;  // checked at start
  int64_t multiprocessors = 0;  // of the GPU that it is made for: bounds grids of resident kernels
  std::vector<Axis> mesh;
  std::map<std::string, int64_t> dims;
  int64_t micro_batches = 1;  // per replica
  int64_t micro_batch_rows = 0;
  std::string optimizer;
  std::vector<Communicator> communicators;
  std::vector<Kernel> kernels;
  std::vector<Position> positions;
  std::vector<Feed> feeds;
  std::vector<Result> results;           // of "train"
  std::vector<Result> evaluate_results;  // of "evaluate"
  std::vector<LossTerm> loss_terms;      // of "evaluate"
  /// The feed (f32, [micro_batch_rows]) that the runtime fills with the weights of rows: 1, or 0
  /// for padding, which then does not count. Empty: all rows of a step count.
  std::string row_weights;
  std::vector<State> states;
  std::vector<Control> control;
  std::vector<std::string> checked_nodes;
  std::string model_fingerprint;  // SHA-256 of parameters, graph and optimizer
  Prediction prediction;
};

inline void to_json(nlohmann::json& json, const Affine& affine) {
  if (affine.dp == 0 && affine.tp == 0) {
    json = affine.base;
    return;
  }
  json = {{"base", affine.base}};
  if (affine.dp != 0) json["dp"] = affine.dp;
  if (affine.tp != 0) json["tp"] = affine.tp;
}

inline void from_json(const nlohmann::json& json, Affine& affine) {
  affine = {};
  if (json.is_number()) {
    affine.base = json.get<int64_t>();
    return;
  }
  affine.base = json.value("base", int64_t{0});
  affine.dp = json.value("dp", int64_t{0});
  affine.tp = json.value("tp", int64_t{0});
}

inline void to_json(nlohmann::json& json, const Argument& argument) {
  if (argument.offset == Affine{} && argument.bytes == 0) {
    json = argument.buffer;
    return;
  }
  json = {{"buffer", argument.buffer}, {"offset", argument.offset}, {"bytes", argument.bytes}};
}

inline void from_json(const nlohmann::json& json, Argument& argument) {
  argument = {};
  if (json.is_string()) {
    argument.buffer = json.get<std::string>();
    return;
  }
  argument.buffer = json.value("buffer", std::string());
  argument.offset = json.value("offset", Affine{});
  argument.bytes = json.value("bytes", int64_t{0});
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Buffer, name, scope, dtype, shape, bytes, offset,
                                                stride, count)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TensorMap, argument, offset, dtype, sizes, strides,
                                                box)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Launch, threads, shared_bytes, cluster, resident,
                                                tensor_maps, indirect)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Kernel, symbol, kind, blocks, access, flops, bytes,
                                                nodes, launch)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Call, kernel, arguments, nodes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Task, name, kind, stage, calls, communicator, peer,
                                                reduce, dtype, inputs, outputs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Entry, task, micro_batch, slot, ring, stream, group,
                                                waits)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Position, stages, arena_bytes, buffers, tasks,
                                                schedules)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Communicator, name, axis, blocks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Axis, name, size)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Feed, name, dtype, shape, position, node)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Result, name, buffer, dtype, shape, position)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LossTerm, coefficient, numerator, denominator,
                                                denominator_constant, position)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(State, name, role, dtype, shape, buffer, position,
                                                init, data_offset, a, b, seed, shards)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Control, name, dtype, offset)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Prediction, step_seconds, bubble, peak_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Plan, format, version, model, target, cpu,
                                                cpu_features, multiprocessors, mesh, dims,
                                                micro_batches, micro_batch_rows, optimizer,
                                                communicators, kernels, positions, feeds, results,
                                                evaluate_results, loss_terms, row_weights, states,
                                                control, checked_nodes, model_fingerprint,
                                                prediction)

}  // namespace sgtc::plan
