#include "partition/pipeline_time.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "cost/communication_time.h"

namespace sgtc {
namespace {

constexpr int64_t kMostMicroBatches = 256;  // whose passes are followed
constexpr double kOpen = -1;                // a time that is not known yet

// What a stage sends to another after each pass of a phase.
struct Transfer {
  size_t from = 0;
  size_t to = 0;
  double seconds = 0;
};

// When the passes of one phase end, and what moves between them.
struct PhaseTimes {
  std::vector<std::vector<double>> ends;         // by stage and micro-batch
  std::vector<std::vector<Transfer>> arriving;   // by receiver
  std::vector<std::vector<Transfer>> departing;  // by sender
  std::vector<int64_t> instances;                // of what a receiver has room for
};

class Follower {
 public:
  Follower(const std::vector<StageSeconds>& stages, std::vector<std::vector<PipelineStep>> orders,
           int64_t rings)
      : stages_(stages), orders_(std::move(orders)), rings_(rings) {
    const size_t count = stages.size();
    for (PhaseTimes* phase : {&forward_, &backward_}) {
      phase->ends.assign(count, std::vector<double>(orders_.front().size() / 2, kOpen));
      phase->arriving.resize(count);
      phase->departing.resize(count);
    }
    for (const auto& order : orders_) forward_.instances.push_back(slots_of(order));
    backward_.instances.assign(count, rings);
  }

  void add(Phase phase, const Transfer& transfer) {
    PhaseTimes& times = phase == Phase::kForward ? forward_ : backward_;
    times.departing[transfer.from].push_back(transfer);
    times.arriving[transfer.to].push_back(transfer);
  }

  double run() {
    const size_t count = stages_.size();
    std::vector<size_t> next(count, 0);
    std::vector<double> free(count, 0);
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t s = 0; s < count; ++s) {
        for (; next[s] < orders_[s].size(); ++next[s], moves = true) {
          const PipelineStep& step = orders_[s][next[s]];
          const bool is_forward = step.phase == Phase::kForward;
          PhaseTimes& times = is_forward ? forward_ : backward_;
          const double ready = ready_at(times, s, step.micro_batch);
          if (ready == kOpen) break;
          free[s] =
              std::max(free[s], ready) + (is_forward ? stages_[s].forward : stages_[s].backward);
          times.ends[s][static_cast<size_t>(step.micro_batch)] = free[s];
        }
      }
    }
    return *std::max_element(free.begin(), free.end());
  }

 private:
  static double end_of(const PhaseTimes& times, size_t stage, int64_t micro_batch) {
    return micro_batch < 0 ? 0 : times.ends[stage][static_cast<size_t>(micro_batch)];
  }

  // When what a pass needs has arrived and what it sends has room.
  double ready_at(const PhaseTimes& times, size_t stage, int64_t micro_batch) const {
    double ready = 0;
    for (const Transfer& transfer : times.arriving[stage]) {
      const double arrived = done_at(times, transfer, micro_batch);
      if (arrived == kOpen) return kOpen;
      ready = std::max(ready, arrived);
    }
    for (const Transfer& transfer : times.departing[stage]) {
      if (micro_batch < rings_) break;
      const double sent = done_at(times, transfer, micro_batch - rings_);
      if (sent == kOpen) return kOpen;
      ready = std::max(ready, sent);
    }
    return ready;
  }

  // When a transfer has been received.
  double done_at(const PhaseTimes& times, const Transfer& transfer, int64_t micro_batch) const {
    const double made = end_of(times, transfer.from, micro_batch);
    const double room = end_of(backward_, transfer.to, micro_batch - times.instances[transfer.to]);
    return made == kOpen || room == kOpen ? kOpen : std::max(made, room) + transfer.seconds;
  }

  const std::vector<StageSeconds>& stages_;
  const std::vector<std::vector<PipelineStep>> orders_;
  const int64_t rings_;
  PhaseTimes forward_;
  PhaseTimes backward_;
};

size_t stage_of(const Cuts& cuts, int32_t link) {
  const auto next = std::upper_bound(cuts.begin(), cuts.end(), static_cast<size_t>(link));
  return static_cast<size_t>(next - cuts.begin());
}

// Bytes that each stage sends to each other one: of stage s to stage t at s * stages + t.
std::vector<int64_t> bytes_between(const Chain& chain, const Cuts& cuts) {
  const size_t stages = cuts.size() + 1;
  std::vector<int64_t> bytes(stages * stages, 0);
  for (const Chain::Value& value : chain.values) {
    const size_t from = stage_of(cuts, value.made);
    size_t last = from;
    for (const int32_t reader : value.readers) {
      const size_t to = stage_of(cuts, reader);
      if (to != from && to != last) bytes[from * stages + to] += value.bytes;
      last = to;
    }
  }
  return bytes;
}

// The cuts from `first` to `end` moved by one place; nothing if there is none or a stage is empty.
std::optional<Cuts> move_run(Cuts cuts, size_t first, size_t end, bool later,
                             const std::vector<size_t>& places) {
  for (size_t c = first; c < end; ++c) {
    if (later) {
      const auto next = std::upper_bound(places.begin(), places.end(), cuts[c]);
      if (next == places.end()) return std::nullopt;
      cuts[c] = *next;
    } else {
      const auto next = std::lower_bound(places.begin(), places.end(), cuts[c]);
      if (next == places.begin()) return std::nullopt;
      cuts[c] = *(next - 1);
    }
  }
  const bool ascend =
      std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) == cuts.end();
  return ascend ? std::optional(std::move(cuts)) : std::nullopt;
}

}  // namespace

PipelineTime::PipelineTime(const Chain& chain, const Hardware& hardware, PipelineSchedule schedule,
                           int64_t micro_batches)
    : chain_(chain),
      hardware_(hardware),
      schedule_(schedule),
      micro_batches_(std::min(micro_batches, kMostMicroBatches)) {}

double PipelineTime::seconds(const Cuts& cuts, const std::vector<StageSeconds>& stages,
                             int64_t in_flight) const {
  const size_t count = stages.size();
  std::vector<std::vector<PipelineStep>> orders;
  for (size_t s = 0; s < count; ++s) {
    orders.push_back(pipeline_order(schedule_, static_cast<int64_t>(count), static_cast<int64_t>(s),
                                    micro_batches_, in_flight));
  }
  Follower follower(stages, std::move(orders), schedule_ == PipelineSchedule::k1F1B ? 1 : 2);
  const std::vector<int64_t> bytes = bytes_between(chain_, cuts);
  for (size_t from = 0; from < count; ++from) {
    for (size_t to = 0; to < count; ++to) {
      CommunicationWork work;
      work.kind = "send";
      work.bytes = bytes[from * count + to];
      work.blocks = hardware_.communication_blocks;
      if (work.bytes == 0) continue;
      follower.add(from < to ? Phase::kForward : Phase::kBackward,
                   {from, to, communication_seconds(hardware_, work)});
    }
  }
  return follower.run();
}

double PipelineTime::seconds(const Cuts& cuts) const {
  std::vector<StageSeconds> stages(cuts.size() + 1);
  for (size_t link = 0; link < chain_.links.size(); ++link) {
    StageSeconds& stage = stages[stage_of(cuts, static_cast<int32_t>(link))];
    stage.forward += chain_.forward_seconds[link];
    stage.backward += chain_.backward_seconds[link];
  }
  return seconds(cuts, stages);
}

std::vector<Cuts> neighbours(const Cuts& cuts, const std::vector<size_t>& places) {
  std::vector<Cuts> result;
  for (size_t count = 1; count <= cuts.size(); ++count) {
    for (size_t first = 0; first + count <= cuts.size(); ++first) {
      for (const bool later : {false, true}) {
        std::optional<Cuts> moved = move_run(cuts, first, first + count, later, places);
        if (moved) result.push_back(std::move(*moved));
      }
    }
  }
  return result;
}

}  // namespace sgtc
