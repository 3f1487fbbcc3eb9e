// Group 3 of verify_plan: matching and the certificate against deadlock.
//
// Each communication that several ranks take part in is one *meeting*. A position issues its
// meetings in list order; members of a group are issued together. When no meeting completes before
// all its ends are issued, and none is issued before the ones in front of it are complete, then the
// step runs to its end exactly when the meetings with "in front of" as edges have no cycle.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "plan/verify_parts.h"

namespace sgtc {
namespace {

// One communication entry as one position issues it.
struct End {
  int64_t position = 0;
  int64_t entry = 0;
  const plan::Entry* source = nullptr;
  const plan::Task* task = nullptr;
  size_t meeting = 0;
};

class CommunicationChecker {
 public:
  CommunicationChecker(const ResolvedPlan& plan, std::string schedule)
      : resolved_(plan), schedule_(std::move(schedule)) {}

  PlanFaults run() {
    collect_ends();
    match_transfers();
    match_collectives();
    if (faults_.empty()) find_cycle();
    return std::move(faults_);
  }

 private:
  using Queue = std::vector<size_t>;  // numbers of ends, in the order of issue
  struct Channel {
    Queue sends;
    Queue receives;
  };

  void add(const End& end, const std::string& text) {
    faults_.push_back({end.position, schedule_, end.entry, end.task->name, "", text});
  }

  static std::string describe(const End& end) {
    return end.task->name + " of micro-batch " + std::to_string(end.source->micro_batch) +
           " at position " + std::to_string(end.position) + " entry " + std::to_string(end.entry);
  }

  void collect_ends() {
    for (size_t p = 0; p < resolved_.positions.size(); ++p) {
      const auto& schedules = resolved_.plan.positions[p].schedules;
      const auto found = schedules.find(schedule_);
      if (found == schedules.end()) continue;
      for (size_t e = 0; e < found->second.size(); ++e) {
        const plan::Entry& entry = found->second[e];
        const plan::Task& task = *resolved_.positions[p].tasks.at(entry.task);
        if (!is_communication(task)) continue;
        ends_.push_back(
            {static_cast<int64_t>(p), static_cast<int64_t>(e), &entry, &task, ends_.size()});
        enqueue(ends_.size() - 1);
      }
    }
  }

  void enqueue(size_t number) {
    const End& end = ends_[number];
    const plan::Task& task = *end.task;
    if (task.kind == "send") {
      channels_[{task.communicator, end.position, task.peer}].sends.push_back(number);
    } else if (task.kind == "receive") {
      channels_[{task.communicator, task.peer, end.position}].receives.push_back(number);
    } else if (resolved_.communicators.at(task.communicator)->axis == "pp") {
      collectives_[task.communicator][end.position].push_back(number);
    }
  }

  std::vector<int64_t> bytes_of_each(const End& end,
                                     const std::vector<plan::Argument>& arguments) const {
    const auto& buffers = resolved_.positions[static_cast<size_t>(end.position)].buffers;
    std::vector<int64_t> bytes;
    for (const plan::Argument& argument : arguments) {
      bytes.push_back(bytes_of(argument, *buffers.at(argument.buffer)));
    }
    return bytes;
  }

  int64_t bytes_of_all(const End& end, const std::vector<plan::Argument>& arguments) const {
    const std::vector<int64_t> bytes = bytes_of_each(end, arguments);
    return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
  }

  // Why two ends of a transfer do not fit; empty when they do.
  std::string transfer_mismatch(const End& send, const End& receive) const {
    const int64_t sent = bytes_of_all(send, send.task->inputs);
    const int64_t received = bytes_of_all(receive, receive.task->outputs);
    if (send.source->micro_batch != receive.source->micro_batch) return "another micro-batch";
    if (send.task->dtype != receive.task->dtype) {
      return send.task->dtype + " meets " + receive.task->dtype;
    }
    if (sent != received) return std::to_string(sent) + " bytes meet " + std::to_string(received);
    // GPUs send and receive part by part.
    const bool cut_alike =
        bytes_of_each(send, send.task->inputs) == bytes_of_each(receive, receive.task->outputs);
    return resolved_.plan.target == "cpu" || cut_alike ? "" : "parts of other sizes";
  }

  void match_transfers() {
    for (const auto& [key, channel] : channels_) match_channel(channel);
  }

  // Reports the first pair that does not fit. When one side is longer, its entry there is the one
  // without a partner.
  void match_channel(const Channel& channel) {
    const Queue& sends = channel.sends;
    const Queue& receives = channel.receives;
    const size_t both = std::min(sends.size(), receives.size());
    for (size_t n = 0; n < both; ++n) {
      const End& send = ends_[sends[n]];
      const End& receive = ends_[receives[n]];
      const std::string mismatch = transfer_mismatch(send, receive);
      if (mismatch.empty()) {
        ends_[receives[n]].meeting = send.meeting;
        continue;
      }
      const bool receive_is_extra = receives.size() > sends.size();
      const End& named = receive_is_extra ? receive : send;
      const End& other = receive_is_extra ? send : receive;
      return add(named, "meets " + describe(other) + ": " + mismatch);
    }
    if (sends.size() > both) add(ends_[sends[both]], "no receive meets this send");
    if (receives.size() > both) add(ends_[receives[both]], "no send meets this receive");
  }

  std::string collective_mismatch(const End& a, const End& b) const {
    const auto differ = [](const std::string& x, const std::string& y) {
      return "\"" + x + "\" meets \"" + y + "\"";
    };
    if (a.task->kind != b.task->kind) return differ(a.task->kind, b.task->kind);
    if (a.task->reduce != b.task->reduce) return differ(a.task->reduce, b.task->reduce);
    if (a.task->dtype != b.task->dtype) return differ(a.task->dtype, b.task->dtype);
    if (a.task->peer != b.task->peer) return "another root";
    if (a.source->micro_batch != b.source->micro_batch) return "another micro-batch";
    const int64_t a_bytes = bytes_of_all(a, a.task->inputs);
    const int64_t b_bytes = bytes_of_all(b, b.task->inputs);
    if (a_bytes == b_bytes) return "";
    return std::to_string(a_bytes) + " bytes meet " + std::to_string(b_bytes);
  }

  // Every position is a member of a communicator over pp; position 0 is what others compare with.
  void match_collectives() {
    for (auto& [communicator, queues] : collectives_) {
      const Queue& first = queues[0];
      for (int64_t p = 1; p < static_cast<int64_t>(resolved_.positions.size()); ++p) {
        match_member(first, queues[p]);
      }
    }
  }

  void match_member(const Queue& first, const Queue& member) {
    const size_t both = std::min(first.size(), member.size());
    for (size_t n = 0; n < both; ++n) {
      const End& expected = ends_[first[n]];
      End& found = ends_[member[n]];
      const std::string mismatch = collective_mismatch(found, expected);
      if (!mismatch.empty()) return add(found, "meets " + describe(expected) + ": " + mismatch);
      found.meeting = expected.meeting;
    }
    if (member.size() > both) add(ends_[member[both]], "position 0 does not take part");
    if (first.size() > both) add(ends_[first[both]], "not every position takes part");
  }

  static bool same_group(const End& a, const End& b) {
    return a.position == b.position && a.source->group >= 0 && a.source->group == b.source->group;
  }

  // Edges from each member of an issue to each member of the next one of the same position.
  std::vector<std::set<size_t>> successors() const {
    std::vector<std::set<size_t>> next(ends_.size());
    Queue before;
    Queue current;
    for (size_t i = 0; i < ends_.size(); ++i) {
      if (i == 0 || !same_group(ends_[i - 1], ends_[i])) {
        before = std::exchange(current, {});
        if (i > 0 && ends_[i - 1].position != ends_[i].position) before.clear();
      }
      current.push_back(ends_[i].meeting);
      for (const size_t earlier : before) next[earlier].insert(ends_[i].meeting);
    }
    return next;
  }

  // Removes meetings that nothing unfinished is in front of; what remains waits for itself.
  void find_cycle() {
    const std::vector<std::set<size_t>> next = successors();
    std::vector<int64_t> in_front(ends_.size(), 0);
    for (const std::set<size_t>& list : next) {
      for (const size_t meeting : list) ++in_front[meeting];
    }
    Queue ready;
    for (size_t i = 0; i < ends_.size(); ++i) {
      if (in_front[i] == 0) ready.push_back(i);
    }
    std::vector<bool> done(ends_.size(), false);
    while (!ready.empty()) {
      const size_t meeting = ready.back();
      ready.pop_back();
      done[meeting] = true;
      for (const size_t later : next[meeting]) {
        if (--in_front[later] == 0) ready.push_back(later);
      }
    }
    report_cycle(next, done);
  }

  void report_cycle(const std::vector<std::set<size_t>>& next, const std::vector<bool>& done) {
    std::vector<size_t> back(ends_.size(), SIZE_MAX);  // an unfinished meeting in front
    size_t meeting = SIZE_MAX;
    for (size_t i = 0; i < ends_.size(); ++i) {
      if (done[i]) continue;
      for (const size_t later : next[i]) back[later] = i;
      meeting = i;
    }
    if (meeting == SIZE_MAX) return;
    // Every unfinished meeting has an unfinished one in front: walking back ends in a cycle.
    for (size_t steps = 0; steps < ends_.size(); ++steps) meeting = back[meeting];
    Queue cycle = {meeting};
    for (size_t m = back[meeting]; m != meeting; m = back[m]) cycle.push_back(m);
    std::reverse(cycle.begin(), cycle.end());
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
    std::string text = "deadlock, each waits for the one before it: ";
    for (const size_t m : cycle) text += describe(ends_[m]) + "; ";
    add(ends_[cycle.front()], text + "and again the first");
  }

  const ResolvedPlan& resolved_;
  std::string schedule_;
  std::vector<End> ends_;  // by position, then entry; an end's meeting is its first end's number
  std::map<std::tuple<std::string, int64_t, int64_t>, Channel> channels_;  // from, to
  std::map<std::string, std::map<int64_t, Queue>> collectives_;
  PlanFaults faults_;
};

}  // namespace

PlanFaults find_communication_faults(const ResolvedPlan& plan) {
  std::set<std::string> schedules;
  for (const plan::Position& position : plan.plan.positions) {
    for (const auto& [name, entries] : position.schedules) schedules.insert(name);
  }
  PlanFaults faults;
  for (const std::string& schedule : schedules) {
    for (PlanFault& fault : CommunicationChecker(plan, schedule).run()) {
      faults.push_back(std::move(fault));
    }
  }
  return faults;
}

}  // namespace sgtc
