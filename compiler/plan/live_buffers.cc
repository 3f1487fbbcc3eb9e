#include "plan/live_buffers.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace sgtc {
namespace {

using Instance = std::pair<const plan::Buffer*, int64_t>;

struct Use {
  int64_t time = 0;
  bool reads = false;
  bool writes = false;
};

// From a first to a last time, both included.
struct Interval {
  int64_t first = 0;
  int64_t last = 0;
};

class LiveFinder {
 public:
  LiveFinder(const plan::Plan& plan, const plan::Position& position, const std::string& schedule)
      : plan_(plan), position_(position), schedule_(schedule) {
    for (const plan::Kernel& kernel : plan.kernels) kernels_[kernel.symbol] = &kernel;
    for (const plan::Buffer& buffer : position.buffers) buffers_[buffer.name] = &buffer;
    for (const plan::Task& task : position.tasks) tasks_[task.name] = &task;
  }

  LivePeak find_peak() {
    if (!collect()) return {};
    LivePeak peak;
    const std::vector<int64_t> live = live_bytes();
    const auto most = std::max_element(live.begin(), live.end());
    if (most == live.end()) return peak;
    const int64_t at = most - live.begin();
    peak.bytes = *most;
    std::tie(peak.entry, peak.call) = times_[static_cast<size_t>(at)];
    peak.live = live_at(at);
    return peak;
  }

  LiveSpans find_spans() {
    if (!collect()) return {};
    LiveSpans result;
    for (const auto& [instance, intervals] : intervals_) {
      for (const Interval& interval : intervals) {
        if (interval.last < 0) continue;
        result.spans.push_back({instance.first, instance.second, interval.first, interval.last});
      }
    }
    result.times = std::move(times_);
    return result;
  }

  std::vector<int64_t> most_of_entries() {
    if (!collect()) return {};
    const std::vector<int64_t> live = live_bytes();
    std::vector<int64_t> most(position_.schedules.at(schedule_).size(), 0);
    for (size_t time = 0; time < live.size(); ++time) {
      int64_t& bytes = most[static_cast<size_t>(times_[time].first)];
      bytes = std::max(bytes, live[time]);
    }
    return most;
  }

 private:
  bool collect() {
    const auto entries = position_.schedules.find(schedule_);
    if (entries == position_.schedules.end()) return false;
    for (size_t e = 0; e < entries->second.size(); ++e) {
      visit(static_cast<int64_t>(e), entries->second[e]);
    }
    first_time_.push_back(static_cast<int64_t>(times_.size()));
    find_spans_of_communication(entries->second);
    collect_intervals();
    return true;
  }

  // Of each stream the last entry that comes before an entry.
  using Before = std::map<int64_t, int64_t>;

  std::vector<Before> order(const std::vector<plan::Entry>& entries) const {
    std::vector<Before> before(entries.size());
    Before last_of_stream;
    for (size_t e = 0; e < entries.size(); ++e) {
      const auto add = [&](int64_t stream, int64_t entry) {
        int64_t& known = before[e].try_emplace(stream, entry).first->second;
        known = std::max(known, entry);
      };
      const auto come_after = [&](int64_t earlier) {
        for (const auto& [stream, entry] : before[static_cast<size_t>(earlier)]) add(stream, entry);
        add(entries[static_cast<size_t>(earlier)].stream, earlier);
      };
      const auto last = last_of_stream.find(entries[e].stream);
      if (last != last_of_stream.end()) come_after(last->second);
      for (const int64_t wait : entries[e].waits) come_after(wait);
      last_of_stream[entries[e].stream] = static_cast<int64_t>(e);
    }
    return before;
  }

  // One run of the schedule: each communication ends as late as the entries behind it let it, and
  // begins as early as those before it have ended. Where one that reads stands before one that
  // writes, they meet at the latter's place in the list.
  void find_spans_of_communication(const std::vector<plan::Entry>& entries) {
    const std::vector<Before> before = order(entries);
    std::vector<int64_t> free_after(entries.size());  // what an entry needs no longer
    for (size_t e = 0; e < entries.size(); ++e) {
      const plan::Task& task = *tasks_.at(entries[e].task);
      free_after[e] = first_time_[e + 1] - 1;
      if (task.kind == "compute") continue;
      Interval span = {first_time_[e], first_time_[e]};
      int64_t earlier = -1;
      for (const auto& [stream, entry] : before[e]) {
        earlier = std::max(earlier, free_after[static_cast<size_t>(entry)]);
      }
      if (!task.outputs.empty()) span.first = earlier + 1;
      if (!task.inputs.empty()) span.last = first_time_[end_of_reads(entries, before, e)] - 1;
      free_after[e] = task.inputs.empty() ? earlier : span.last;
      spans_[first_time_[e]] = span;
    }
  }

  // The first entry behind a communication that computes or writes.
  size_t end_of_reads(const std::vector<plan::Entry>& entries, const std::vector<Before>& before,
                      size_t e) const {
    const auto ends = [&](size_t later) {
      const auto known = before[later].find(entries[e].stream);
      const plan::Task& task = *tasks_.at(entries[later].task);
      return known != before[later].end() && known->second >= static_cast<int64_t>(e) &&
             (task.kind == "compute" || !task.outputs.empty());
    };
    size_t next = e + 1;
    while (next < entries.size() && !ends(next)) ++next;
    return next;
  }

  Interval span_at(int64_t time) const {
    const auto span = spans_.find(time);
    return span == spans_.end() ? Interval{time, time} : span->second;
  }

  void visit(int64_t number, const plan::Entry& entry) {
    const plan::Task& task = *tasks_.at(entry.task);
    first_time_.push_back(static_cast<int64_t>(times_.size()));
    if (task.calls.empty()) {
      times_.emplace_back(number, 0);
      for (const plan::Argument& input : task.inputs) use(entry, input, "read");
      for (const plan::Argument& output : task.outputs) use(entry, output, "write");
    }
    for (size_t c = 0; c < task.calls.size(); ++c) {
      times_.emplace_back(number, static_cast<int64_t>(c));
      const plan::Call& call = task.calls[c];
      const std::vector<std::string>& access = kernels_.at(call.kernel)->access;
      for (size_t a = 0; a < call.arguments.size(); ++a) {
        use(entry, call.arguments[a], access[a]);
      }
    }
  }

  void use(const plan::Entry& entry, const plan::Argument& argument, const std::string& access) {
    const bool reads = access != "write";
    const bool writes = access != "read";
    const plan::Buffer* buffer = buffers_.at(argument.buffer);
    int64_t instance = 0;
    if (buffer->scope == "micro_batch") instance = entry.micro_batch;
    if (buffer->scope == "slot") instance = entry.slot;
    if (buffer->scope == "ring") instance = entry.ring;
    std::vector<Use>& uses = uses_[{buffer, instance}];
    const auto time = static_cast<int64_t>(times_.size()) - 1;
    if (!uses.empty() && uses.back().time == time) {
      uses.back().reads |= reads;
      uses.back().writes |= writes;
    } else {
      uses.push_back({time, reads, writes});
    }
  }

  void collect_intervals() {
    std::set<std::string> lasting;
    for (const plan::Feed& feed : plan_.feeds) lasting.insert(feed.name);
    for (const auto& results : {plan_.results, plan_.evaluate_results}) {
      for (const plan::Result& result : results) lasting.insert(result.buffer);
    }
    const Interval always = {0, static_cast<int64_t>(times_.size()) - 1};
    for (const plan::Buffer& buffer : position_.buffers) {
      const bool used = uses_.lower_bound({&buffer, 0}) != uses_.lower_bound({&buffer, INT64_MAX});
      const bool lasts = buffer.scope == "persistent" || (used && lasting.count(buffer.name) != 0);
      for (int64_t i = 0; lasts && i < buffer.count; ++i) intervals_[{&buffer, i}] = {always};
    }
    for (const auto& [instance, uses] : uses_) {
      if (intervals_.count(instance) == 0) intervals_[instance] = generations(uses);
    }
  }

  std::vector<Interval> generations(const std::vector<Use>& uses) const {
    std::vector<Interval> result;
    // Nobody hands anything over in what every call writes: a kernel's workspace.
    const bool is_workspace =
        std::all_of(uses.begin(), uses.end(), [](const Use& use) { return use.writes; });
    if (is_workspace) {
      for (const Use& use : uses) result.push_back({use.time, use.time});
      return result;
    }
    bool was_read = true;
    for (const Use& use : uses) {
      const Interval span = span_at(use.time);
      if ((!use.reads && was_read) || result.empty()) result.push_back(span);
      result.back().last = std::max(result.back().last, span.last);
      was_read = use.reads;
    }
    return result;
  }

  // At each time.
  std::vector<int64_t> live_bytes() const {
    std::vector<int64_t> live(times_.size() + 1, 0);
    for (const auto& [instance, intervals] : intervals_) {
      for (const Interval& interval : intervals) {
        if (interval.last < 0) continue;
        live[static_cast<size_t>(interval.first)] += instance.first->bytes;
        live[static_cast<size_t>(interval.last) + 1] -= instance.first->bytes;
      }
    }
    live.pop_back();
    std::partial_sum(live.begin(), live.end(), live.begin());
    return live;
  }

  std::vector<LiveBuffer> live_at(int64_t time) const {
    std::map<const plan::Buffer*, LiveBuffer> found;
    for (const auto& [instance, intervals] : intervals_) {
      for (const Interval& interval : intervals) {
        if (time < interval.first || time > interval.last) continue;
        LiveBuffer& buffer = found[instance.first];
        buffer.buffer = instance.first;
        buffer.instances += 1;
        buffer.bytes += instance.first->bytes;
      }
    }
    std::vector<LiveBuffer> live;
    for (const auto& [pointer, buffer] : found) live.push_back(buffer);
    std::sort(live.begin(), live.end(), [](const LiveBuffer& a, const LiveBuffer& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.buffer->name < b.buffer->name;
    });
    return live;
  }

  const plan::Plan& plan_;
  const plan::Position& position_;
  const std::string& schedule_;
  std::map<std::string, const plan::Kernel*> kernels_;
  std::map<std::string, const plan::Buffer*> buffers_;
  std::map<std::string, const plan::Task*> tasks_;
  std::vector<std::pair<int64_t, int64_t>> times_;  // entry, call
  std::vector<int64_t> first_time_;                 // of each entry, then the end
  std::map<int64_t, Interval> spans_;               // of communications, by their time
  std::map<Instance, std::vector<Use>> uses_;
  std::map<Instance, std::vector<Interval>> intervals_;
};

}  // namespace

LivePeak find_live_peak(const plan::Plan& plan, const plan::Position& position,
                        const std::string& schedule) {
  return LiveFinder(plan, position, schedule).find_peak();
}

LiveSpans find_live_spans(const plan::Plan& plan, const plan::Position& position,
                          const std::string& schedule) {
  return LiveFinder(plan, position, schedule).find_spans();
}

std::vector<int64_t> live_bytes_of_entries(const plan::Plan& plan, const plan::Position& position,
                                           const std::string& schedule) {
  return LiveFinder(plan, position, schedule).most_of_entries();
}

}  // namespace sgtc
