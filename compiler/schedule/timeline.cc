#include "schedule/timeline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <queue>
#include <tuple>
#include <utility>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

using NodeIndex = size_t;
using NodeList = std::vector<NodeIndex>;

// How one position takes part in a node.
struct End {
  int64_t position = 0;
  size_t task = 0;
  int64_t slot = 0;
  int64_t ring = 0;
  NodeList waits;  // of the same position
};

// A compute entry, a collective of one position, or a transfer with its two ends.
struct Node {
  std::vector<End> ends;
  int64_t micro_batch = 0;
  int64_t stream = kComputeStream;
  int64_t duration = 1;  // nanoseconds
  int64_t start = 0;
  int64_t number = 0;  // in the order of the mesh
};

class TimelineBuilder {
 public:
  TimelineBuilder(const std::vector<PositionTasks>& positions, int64_t micro_batches)
      : positions_(positions), micro_batches_(micro_batches) {}

  Timeline run() {
    for (size_t p = 0; p < positions_.size(); ++p) add_position(p);
    simulate();
    Timeline timeline;
    for (size_t p = 0; p < positions_.size(); ++p) timeline.entries.push_back(entries_of(p));
    measure(timeline);
    return timeline;
  }

 private:
  // What is known of the position that is being added.
  struct Position {
    int64_t number = 0;
    const PositionTasks* tasks = nullptr;
    NodeList last_compute;            // the latest compute node, if there is one
    NodeList pending;                 // communications that the next compute node waits for
    NodeList collectives;             // of the update
    std::vector<NodeList> slot_done;  // per slot: what ends its latest pass
    // Per slot and phase (forward, backward): sends that read what the phase overwrites.
    std::vector<std::array<NodeList, 2>> slot_sends;
    // Per instance of the rings and phase: the last compute node of the latest pass, and its sends.
    std::vector<std::array<NodeList, 2>> ring_done;
    std::vector<std::array<NodeList, 2>> ring_sends;
  };

  // What runs of one micro-batch, and the instances that it uses.
  struct Pass {
    Phase phase = Phase::kForward;
    int64_t micro_batch = 0;
    int64_t slot = 0;
    int64_t ring = 0;
    size_t half() const { return phase == Phase::kForward ? 0 : 1; }
  };

  static void append(NodeList& list, const NodeList& more) {
    list.insert(list.end(), more.begin(), more.end());
  }

  void add_position(size_t p) {
    Position position;
    position.number = static_cast<int64_t>(p);
    position.tasks = &positions_[p];
    position.slot_sends.resize(static_cast<size_t>(positions_[p].slots));
    position.ring_done.resize(static_cast<size_t>(positions_[p].rings));
    position.ring_sends.resize(static_cast<size_t>(positions_[p].rings));
    add_setup(position);
    add_prologue(position);
    NodeList before = position.last_compute;
    append(before, position.pending);
    position.slot_done.assign(static_cast<size_t>(positions_[p].slots), before);
    for (const PipelineStep& step : position.tasks->order) add_pass(position, step);
    add_update(position);
  }

  const std::vector<StepTask>& tasks(const Position& position) const {
    return position.tasks->tasks;
  }

  int64_t duration_of(const Position& position, size_t task) const {
    const double seconds = position.tasks->seconds[task];
    return std::max<int64_t>(1, std::llround(seconds * 1e9));
  }

  NodeIndex add_compute(Position& position, size_t task, const Pass& pass, NodeList waits) {
    append(waits, position.last_compute);
    append(waits, std::exchange(position.pending, {}));
    Node node;
    node.micro_batch = pass.micro_batch;
    node.duration = duration_of(position, task);
    node.ends = {{position.number, task, pass.slot, pass.ring, std::move(waits)}};
    nodes_.push_back(std::move(node));
    position.last_compute = {nodes_.size() - 1};
    return nodes_.size() - 1;
  }

  NodeIndex add_collective(Position& position, size_t task, int64_t micro_batch, NodeList waits) {
    Node node;
    node.micro_batch = micro_batch;
    node.stream = kCollectiveStream;
    node.duration = duration_of(position, task);
    node.ends = {{position.number, task, 0, 0, std::move(waits)}};
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }

  // The node of a transfer, which its first end creates and its second one joins.
  NodeIndex join_transfer(Position& position, size_t task, const Pass& pass, NodeList waits) {
    const StepTask& own = tasks(position)[task];
    const int64_t peer = position.tasks->step->calls[own.calls.front()].peer;
    const bool sends = own.kind == StepCall::Kind::kSend;
    const int64_t from = sends ? position.number : peer;
    const int64_t to = sends ? peer : position.number;
    const auto [known, is_new] = transfers_.try_emplace(
        {own.phase, own.round, from, to, own.dtype, pass.micro_batch}, nodes_.size());
    if (is_new) {
      nodes_.emplace_back();
      nodes_.back().micro_batch = pass.micro_batch;
      nodes_.back().stream = kTransferStream;
      nodes_.back().duration = duration_of(position, task);
    }
    nodes_[known->second].ends.push_back(
        {position.number, task, pass.slot, pass.ring, std::move(waits)});
    return known->second;
  }

  void add_setup(Position& position) {
    for (size_t t = 0; t < tasks(position).size(); ++t) {
      if (tasks(position)[t].phase == Phase::kSetup) add_compute(position, t, {Phase::kSetup}, {});
    }
  }

  void add_prologue(Position& position) {
    for (int64_t m = 0; m < micro_batches_; ++m) {
      for (size_t t = 0; t < tasks(position).size(); ++t) {
        const StepTask& task = tasks(position)[t];
        if (task.phase != Phase::kPrologue || task.kind != StepCall::Kind::kKernel) continue;
        add_compute(position, t, {Phase::kPrologue, m}, {});
      }
    }
    for (size_t t = 0; t < tasks(position).size(); ++t) {
      const StepTask& task = tasks(position)[t];
      if (task.phase != Phase::kPrologue || task.kind == StepCall::Kind::kKernel) continue;
      position.pending.push_back(add_collective(position, t, 0, position.last_compute));
    }
  }

  // One forward or backward pass: what it receives, computes and sends.
  void add_pass(Position& position, const PipelineStep& step) {
    const Pass pass = {step.phase, step.micro_batch, step.micro_batch % position.tasks->slots,
                       step.micro_batch % position.tasks->rings};
    NodeList& slot_done = position.slot_done[static_cast<size_t>(pass.slot)];
    NodeList& ring_done = position.ring_done[static_cast<size_t>(pass.ring)][pass.half()];
    NodeList waits = std::exchange(slot_sends(position, pass, pass.half()), {});
    NodeList before = slot_done;  // what a receive comes after
    append(before, waits);
    append(waits, std::exchange(ring_sends(position, pass), {}));
    int64_t number = -1;  // of the compute task within its phase
    for (size_t t = 0; t < tasks(position).size(); ++t) {
      const StepTask& task = tasks(position)[t];
      if (task.phase != step.phase) continue;
      if (task.kind == StepCall::Kind::kReceive) {
        NodeList free = before;
        if (uses(position, task, true)) append(free, ring_done);
        waits.push_back(join_transfer(position, t, pass, std::move(free)));
      } else if (task.kind == StepCall::Kind::kSend) {
        NodeList after = position.last_compute;
        append(after, waits);
        const NodeIndex sent = join_transfer(position, t, pass, std::move(after));
        // The next pass that reuses the bytes: of the same kind, or the other one of the slot.
        if (uses(position, task, true)) ring_sends(position, pass).push_back(sent);
        if (uses(position, task, false)) {
          slot_sends(position, pass, 1 - pass.half()).push_back(sent);
        }
      } else {
        add_compute(position, t, pass, std::exchange(waits, {}));
        if (step.phase == Phase::kBackward) add_buckets(position, step.micro_batch, ++number);
      }
    }
    append(position.pending, waits);
    slot_done = position.last_compute;
    ring_done = position.last_compute;
  }

  static NodeList& slot_sends(Position& position, const Pass& pass, size_t half) {
    return position.slot_sends[static_cast<size_t>(pass.slot)][half];
  }
  static NodeList& ring_sends(Position& position, const Pass& pass) {
    return position.ring_sends[static_cast<size_t>(pass.ring)][pass.half()];
  }

  // Whether a transfer carries anything that is in a ring, or anything that is not.
  static bool uses(const Position& position, const StepTask& transfer, bool ring) {
    const std::vector<StorageId>& carried =
        position.tasks->step->calls[transfer.calls.front()].arguments;
    return std::any_of(carried.begin(), carried.end(), [&](StorageId id) {
      return position.tasks->in_ring[static_cast<size_t>(id)] == ring;
    });
  }

  // Reductions of what the last micro-batch has just completed.
  void add_buckets(Position& position, int64_t micro_batch, int64_t backward_task) {
    if (micro_batch + 1 < micro_batches_) return;
    for (size_t t = 0; t < tasks(position).size(); ++t) {
      if (tasks(position)[t].after_backward != backward_task) continue;
      position.collectives.push_back(add_collective(position, t, 0, position.last_compute));
    }
  }

  void add_update(Position& position) {
    int64_t rounds = 0;
    for (size_t t = 0; t < tasks(position).size(); ++t) {
      const StepTask& task = tasks(position)[t];
      if (task.phase != Phase::kUpdate) continue;
      rounds = std::max(rounds, task.round + 1);
      if (!is_collective(task.kind) || task.round > 0 || task.after_backward >= 0) continue;
      position.collectives.push_back(add_collective(position, t, 0, position.last_compute));
    }
    NodeList before = position.collectives;  // what the rounds come after
    for (const auto& sends : position.slot_sends) {
      for (const NodeList& list : sends) append(before, list);
    }
    append(position.pending, before);
    for (int64_t round = 0; round < rounds; ++round) add_round(position, round, before);
  }

  void add_round(Position& position, int64_t round, NodeList before) {
    append(before, position.last_compute);
    if (round > 0) append(before, position.pending);
    NodeList collectives;
    for (size_t t = 0; t < tasks(position).size(); ++t) {
      const StepTask& task = tasks(position)[t];
      const bool is_here = task.phase == Phase::kUpdate && task.round == round && round > 0;
      if (!is_here || !is_collective(task.kind)) continue;
      collectives.push_back(add_collective(position, t, 0, before));
    }
    append(before, collectives);
    append(position.pending, collectives);
    for (size_t t = 0; t < tasks(position).size(); ++t) {
      const StepTask& task = tasks(position)[t];
      if (task.phase != Phase::kUpdate || task.round != round) continue;
      if (task.kind == StepCall::Kind::kKernel) {
        add_compute(position, t, {Phase::kUpdate}, {});
      } else if (task.kind == StepCall::Kind::kSend || task.kind == StepCall::Kind::kReceive) {
        position.pending.push_back(join_transfer(position, t, {Phase::kUpdate}, before));
      }
    }
  }

  NodeList dependences(const Node& node) const {
    NodeList all;
    for (const End& end : node.ends) append(all, end.waits);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  // Starts every node as soon as what it waits for is done, and numbers them by time.
  void simulate() {
    std::vector<NodeList> next(nodes_.size());
    std::vector<size_t> open(nodes_.size(), 0);
    using Ready = std::pair<int64_t, NodeIndex>;  // start, node
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (NodeIndex n = 0; n < nodes_.size(); ++n) {
      const NodeList before = dependences(nodes_[n]);
      for (const NodeIndex b : before) next[b].push_back(n);
      open[n] = before.size();
      if (before.empty()) ready.emplace(0, n);
    }
    int64_t number = 0;
    while (!ready.empty()) {
      const auto [start, n] = ready.top();
      ready.pop();
      nodes_[n].start = start;
      nodes_[n].number = number++;
      for (const NodeIndex later : next[n]) {
        nodes_[later].start = std::max(nodes_[later].start, start + nodes_[n].duration);
        if (--open[later] == 0) ready.emplace(nodes_[later].start, later);
      }
    }
    SGTC_CHECK(number == static_cast<int64_t>(nodes_.size()), "entries wait for each other");
  }

  std::vector<plan::Entry> entries_of(size_t p) const {
    NodeList order;
    for (NodeIndex n = 0; n < nodes_.size(); ++n) {
      if (find_end(nodes_[n], static_cast<int64_t>(p)) != nullptr) order.push_back(n);
    }
    std::sort(order.begin(), order.end(),
              [&](NodeIndex a, NodeIndex b) { return nodes_[a].number < nodes_[b].number; });
    std::map<NodeIndex, int64_t> index;
    std::vector<plan::Entry> entries;
    for (const NodeIndex n : order) {
      const End& end = *find_end(nodes_[n], static_cast<int64_t>(p));
      plan::Entry entry;
      entry.task = positions_[p].tasks[end.task].name;
      entry.micro_batch = nodes_[n].micro_batch;
      entry.slot = end.slot;
      entry.ring = end.ring;
      entry.stream = nodes_[n].stream;
      entry.waits = waits_of(end, entry.stream, index);
      index[n] = static_cast<int64_t>(entries.size());
      entries.push_back(std::move(entry));
    }
    return entries;
  }

  static const End* find_end(const Node& node, int64_t position) {
    for (const End& end : node.ends) {
      if (end.position == position) return &end;
    }
    return nullptr;
  }

  // The last entry of each other stream: earlier ones come before it anyway.
  std::vector<int64_t> waits_of(const End& end, int64_t stream,
                                const std::map<NodeIndex, int64_t>& index) const {
    std::map<int64_t, int64_t> last;
    for (const NodeIndex n : end.waits) {
      if (nodes_[n].stream == stream) continue;
      int64_t& known = last.try_emplace(nodes_[n].stream, 0).first->second;
      known = std::max(known, index.at(n));
    }
    std::vector<int64_t> waits;
    for (const auto& [other, entry] : last) waits.push_back(entry);
    std::sort(waits.begin(), waits.end());
    return waits;
  }

  void measure(Timeline& timeline) const {
    int64_t last = 0;
    int64_t busy = 0;
    for (const Node& node : nodes_) {
      last = std::max(last, node.start + node.duration);
      if (node.stream == kComputeStream) busy += node.duration;
    }
    const auto all = static_cast<double>(last) * static_cast<double>(positions_.size());
    timeline.seconds = static_cast<double>(last) * 1e-9;
    timeline.bubble = positions_.size() == 1 || all == 0 ? 0 : 1 - static_cast<double>(busy) / all;
  }

  using TransferKey = std::tuple<Phase, int64_t, int64_t, int64_t, std::string, int64_t>;

  const std::vector<PositionTasks>& positions_;
  int64_t micro_batches_;
  std::vector<Node> nodes_;
  std::map<TransferKey, NodeIndex> transfers_;
};

}  // namespace

Timeline build_timeline(const std::vector<PositionTasks>& positions, int64_t micro_batches) {
  return TimelineBuilder(positions, micro_batches).run();
}

}  // namespace sgtc
