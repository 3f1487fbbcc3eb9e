#include "schedule/transfers.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

class TransferFinder {
 public:
  TransferFinder(const KernelizedGraph& program, const Placement& placement)
      : program_(program),
        graph_(*program.graph),
        placement_(placement),
        maker_(makers_of(program)) {
    exchange_.rounds.assign(program.groups.size(), 0);
  }

  Exchange run() {
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      if (group(g).phase == Phase::kUpdate) find_round(g);
    }
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      for (const ValueId input : group(g).inputs) need(input, placement_.groups[g], group(g).phase);
    }
    for (const Update& update : graph_.updates) {
      need(update.value, placement_.states[static_cast<size_t>(update.state)], Phase::kUpdate);
    }
    for (const auto& [key, transfer] : found_) exchange_.transfers.push_back(transfer);
    std::sort(exchange_.transfers.begin(), exchange_.transfers.end(),
              [](const Transfer& a, const Transfer& b) { return key_of(a) < key_of(b); });
    return std::move(exchange_);
  }

 private:
  const Group& group(size_t g) const { return program_.groups[g]; }
  int32_t maker(ValueId value) const { return maker_[static_cast<size_t>(value)]; }

  static std::tuple<Phase, int64_t, int64_t, int64_t, ValueId> key_of(const Transfer& t) {
    return {t.phase, t.round, t.from, t.to, t.value};
  }

  // Whether the value is computed in the update phase.
  bool is_updated(ValueId value) const {
    return maker(value) != kNone &&
           group(static_cast<size_t>(maker(value))).phase == Phase::kUpdate;
  }

  // The first round in which other positions, and collectives, can have an updated value: a round
  // begins with collectives, then come transfers, then kernels.
  int64_t round_after(ValueId value, bool for_collective) const {
    const auto made = static_cast<size_t>(maker(value));
    const bool early = group(made).kind == Group::Kind::kCollective && !for_collective;
    return exchange_.rounds[made] + (early ? 0 : 1);
  }

  // Positions that have the value without a transfer; empty for feeds, constants and controls,
  // which every position has.
  const Positions& sources(ValueId value) const {
    if (maker(value) != kNone) return placement_.groups[static_cast<size_t>(maker(value))];
    return placement_.states[static_cast<size_t>(value)];
  }

  bool is_remote(ValueId value, int64_t position) const {
    const Positions& have = sources(value);
    return !have.empty() && !contains(have, position);
  }

  void find_round(size_t g) {
    int64_t& round = exchange_.rounds[g];
    for (const ValueId input : group(g).inputs) {
      if (!is_updated(input)) continue;
      const int64_t made = exchange_.rounds[static_cast<size_t>(maker(input))];
      const bool collective = group(g).kind == Group::Kind::kCollective;
      const Positions& readers = placement_.groups[g];
      const bool remote = std::any_of(readers.begin(), readers.end(),
                                      [&](int64_t p) { return is_remote(input, p); });
      round = std::max(round, collective || remote ? round_after(input, collective) : made);
    }
    exchange_.round_count = std::max(exchange_.round_count, round + 1);
  }

  void need(ValueId value, const Positions& readers, Phase phase) {
    for (const int64_t position : readers) {
      if (is_remote(value, position)) add(value, position, phase);
    }
  }

  // The earliest phase that needs the value decides.
  void add(ValueId value, int64_t to, Phase reader) {
    Transfer transfer{value, sources(value).front(), to, reader, 0};
    const bool is_leaf = maker(value) == kNone;
    const Phase made = is_leaf ? Phase::kForward : group(static_cast<size_t>(maker(value))).phase;
    if (reader == Phase::kBackward && made == Phase::kForward && to > transfer.from) {
      transfer.phase = Phase::kForward;
    }
    if (reader == Phase::kUpdate && is_updated(value)) {
      transfer.round = round_after(value, false);
      exchange_.round_count = std::max(exchange_.round_count, transfer.round + 1);
    }
    SGTC_CHECK(transfer.phase > Phase::kPrologue, "a prologue reads from another position");
    SGTC_CHECK(transfer.phase != Phase::kForward || transfer.from < to,
               "\"" + graph_.value(value).name + "\" would flow back in the forward pass");
    const auto [known, is_new] = found_.try_emplace({value, to}, transfer);
    if (!is_new && key_of(transfer) < key_of(known->second)) known->second = transfer;
  }

  const KernelizedGraph& program_;
  const Graph& graph_;
  const Placement& placement_;
  std::vector<int32_t> maker_;  // group that computes each value, or kNone
  std::map<std::pair<ValueId, int64_t>, Transfer> found_;  // by value and receiver
  Exchange exchange_;
};

}  // namespace

Exchange find_transfers(const KernelizedGraph& program, const Placement& placement) {
  return TransferFinder(program, placement).run();
}

}  // namespace sgtc
