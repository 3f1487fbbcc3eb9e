#include "search/defer_gradients.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "cost/communication_time.h"
#include "cost/cost.h"
#include "cost/group_time.h"

namespace sgtc {
namespace {

using GroupIndex = size_t;

constexpr double kLonger = 1.5;        // than predicted, beside kernels
constexpr double kWorthwhile = 20e-6;  // seconds that a reduction has nothing to hide behind

class Deferral {
 public:
  Deferral(KernelizedGraph& program, const Hardware& hardware, int64_t replicas)
      : program_(program),
        hardware_(hardware),
        replicas_(replicas),
        makers_(makers_of(program)),
        seconds_(group_seconds(program, hardware, hardware.units)) {
    reduced_bytes_.resize(program.groups.size());
    for (GroupIndex g = 0; g < program.groups.size(); ++g) {
      if (program.groups[g].phase == Phase::kBackward) backward_.push_back(g);
      if (program.groups[g].phase == Phase::kUpdate) add_reductions(program.groups[g]);
    }
  }

  void run() {
    const size_t late = find_late();
    if (late == backward_.size()) return;
    const std::vector<GroupIndex> deferred = choose_deferred(late);
    std::vector<GroupIndex> order;
    for (size_t i = 0; i < backward_.size(); ++i) {
      const bool waits = std::binary_search(deferred.begin(), deferred.end(), backward_[i]);
      if (!waits) order.push_back(backward_[i]);
      if (i == late) order.insert(order.end(), deferred.begin(), deferred.end());
    }
    apply(order);
  }

 private:
  void add_reductions(const Group& group) {
    if (group.kind != Group::Kind::kCollective) return;
    for (const ValueId operand : group.inputs) {
      int32_t maker = makers_[static_cast<size_t>(operand)];
      while (maker != kNone && is_view(maker)) {
        const ValueId viewed = program_.groups[static_cast<size_t>(maker)].inputs.front();
        maker = makers_[static_cast<size_t>(viewed)];
      }
      if (maker == kNone) continue;
      const int64_t bytes = bytes_of(program_.graph->value(operand).type);
      reduced_bytes_[static_cast<size_t>(maker)] += scatters(group) ? bytes / 2 : bytes;
    }
  }

  // A reduce-scatter is the first half of an all-reduce.
  bool scatters(const Group& group) const {
    return program_.graph->node(group.nodes.front()).op == Op::kReduceScatter;
  }

  bool is_view(int32_t group) const {
    return program_.groups[static_cast<size_t>(group)].kind == Group::Kind::kView;
  }

  // Seconds of the reductions of all gradients that the group makes.
  double reduction_seconds(GroupIndex g) const {
    if (reduced_bytes_[g] == 0) return 0;
    CommunicationWork work;
    work.kind = "all_reduce";
    work.bytes = reduced_bytes_[g];
    work.members = replicas_;
    work.blocks = hardware_.communication_blocks;
    return communication_seconds(hardware_, work);
  }

  // The place in `backward_` of the group whose reduction would last longest after all that is
  // computed behind it; the size if none does for long.
  size_t find_late() const {
    size_t late = backward_.size();
    double most = kWorthwhile;
    double behind = 0;
    for (size_t i = backward_.size(); i-- > 0;) {
      const double exposed = reduction_seconds(backward_[i]) - behind;
      if (exposed > most) {
        most = exposed;
        late = i;
      }
      behind += seconds_[backward_[i]];
    }
    return late;
  }

  // Which groups this one needs, itself included.
  std::vector<bool> needed_by(GroupIndex group) const {
    std::vector<bool> needed(program_.groups.size());
    needed[group] = true;
    for (GroupIndex g = group + 1; g-- > 0;) {
      if (!needed[g]) continue;
      for (const ValueId input : program_.groups[g].inputs) {
        const int32_t maker = makers_[static_cast<size_t>(input)];
        if (maker != kNone) needed[static_cast<size_t>(maker)] = true;
      }
    }
    return needed;
  }

  // The last groups before the one at `late` that it does not need, until they fill its reduction:
  // what reads one of them comes later and is not needed either, so it is among them. In ascending
  // order.
  std::vector<GroupIndex> choose_deferred(size_t late) const {
    const std::vector<bool> needed = needed_by(backward_[late]);
    double missing = kLonger * reduction_seconds(backward_[late]);
    for (size_t i = late + 1; i < backward_.size(); ++i) missing -= seconds_[backward_[i]];
    std::vector<GroupIndex> deferred;
    for (size_t i = late; i > 0 && missing > 0; --i) {
      const GroupIndex g = backward_[i - 1];
      if (needed[g]) continue;
      deferred.push_back(g);
      missing -= seconds_[g];
    }
    std::reverse(deferred.begin(), deferred.end());
    return deferred;
  }

  // Puts the groups of the backward phase into this order, at the places that they have together.
  void apply(const std::vector<GroupIndex>& order) {
    std::vector<Group> groups;
    std::vector<KernelSpec> kernels;
    for (const GroupIndex g : order) {
      groups.push_back(std::move(program_.groups[g]));
      kernels.push_back(std::move(program_.kernels[g]));
    }
    for (size_t i = 0; i < order.size(); ++i) {
      program_.groups[backward_[i]] = std::move(groups[i]);
      program_.kernels[backward_[i]] = std::move(kernels[i]);
    }
  }

  KernelizedGraph& program_;
  const Hardware& hardware_;
  const int64_t replicas_;
  const std::vector<int32_t> makers_;
  const std::vector<double> seconds_;
  std::vector<GroupIndex> backward_;
  std::vector<int64_t> reduced_bytes_;  // of what each group makes
};

}  // namespace

void defer_gradients(KernelizedGraph& program, const Hardware& hardware, int64_t replicas) {
  if (replicas > 1) Deferral(program, hardware, replicas).run();
}

}  // namespace sgtc
