// Group 4 of verify_plan: the arena, byte by byte.
//
// The list of a schedule is one legal order of execution, so the checker runs it on a map from
// byte ranges to what they hold: the buffer instance, who wrote it and who read it since. Races
// between streams are found in the same walk: an access must happen after the last write of its
// bytes, and a write after the last read in each stream as well (earlier ones are ordered through
// those). Happens-before is one vector clock per entry.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "plan/verify_parts.h"

namespace sgtc {
namespace {

constexpr int64_t kBeforeStep = -1;

struct Access {
  const plan::Buffer* buffer = nullptr;
  int64_t instance = 0;
  int64_t begin = 0;  // in the arena
  int64_t end = 0;
  bool reads = false;
  bool writes = false;
};

// What a range of bytes holds.
struct Contents {
  int64_t end = 0;
  const plan::Buffer* buffer = nullptr;
  int64_t instance = 0;
  int64_t writer = kBeforeStep;            // entry
  std::map<int64_t, int64_t> last_reader;  // stream -> entry
};

class MemoryChecker {
 public:
  MemoryChecker(const ResolvedPlan& plan, int64_t position, const std::string& schedule,
                const std::vector<plan::Entry>& entries, int64_t dp, int64_t tp)
      : resolved_(plan),
        position_(plan.plan.positions[static_cast<size_t>(position)]),
        names_(plan.positions[static_cast<size_t>(position)]),
        number_(position),
        schedule_(schedule),
        entries_(entries),
        dp_(dp),
        tp_(tp) {}

  PlanFaults run() {
    compute_clocks();
    fill_before_step();
    for (size_t e = 0; e < entries_.size(); ++e) execute(static_cast<int64_t>(e));
    if (faults_.empty()) check_results();
    return std::move(faults_);
  }

 private:
  using Map = std::map<int64_t, Contents>;

  void add(int64_t entry, const plan::Buffer& buffer, const std::string& text) {
    // One wrong write spoils all later reads of an instance: the first fault is the one to fix.
    if (!reported_.insert({&buffer, entry < 0 ? 0 : entry}).second) return;
    const std::string task = entry < 0 ? "" : entries_[static_cast<size_t>(entry)].task;
    faults_.push_back({number_, schedule_, entry, task, buffer.name, text});
  }

  std::string describe(int64_t entry) const {
    if (entry == kBeforeStep) return "before the step";
    return "entry " + std::to_string(entry) + " (" + entries_[static_cast<size_t>(entry)].task +
           ")";
  }

  // clock_[e][stream]: the last entry of the stream that happens before e, or e itself.
  void compute_clocks() {
    std::map<int64_t, int64_t> last_of_stream;
    clocks_.resize(entries_.size());
    for (size_t e = 0; e < entries_.size(); ++e) {
      const plan::Entry& entry = entries_[e];
      std::map<int64_t, int64_t>& clock = clocks_[e];
      const auto merge = [&](int64_t earlier) {
        for (const auto& [stream, last] : clocks_[static_cast<size_t>(earlier)]) {
          int64_t& known = clock.try_emplace(stream, last).first->second;
          known = std::max(known, last);
        }
      };
      const auto before = last_of_stream.find(entry.stream);
      if (before != last_of_stream.end()) merge(before->second);
      for (const int64_t wait : entry.waits) merge(wait);
      clock[entry.stream] = static_cast<int64_t>(e);
      last_of_stream[entry.stream] = static_cast<int64_t>(e);
    }
  }

  bool happens_before(int64_t earlier, int64_t later) const {
    if (earlier == kBeforeStep || earlier == later) return true;
    const auto& clock = clocks_[static_cast<size_t>(later)];
    const auto known = clock.find(entries_[static_cast<size_t>(earlier)].stream);
    return known != clock.end() && known->second >= earlier;
  }

  // Persistent buffers hold their contents and feeds are filled.
  void fill_before_step() {
    for (const plan::Buffer& buffer : position_.buffers) {
      if (buffer.scope != "persistent" && !is_feed(buffer)) continue;
      for (int64_t i = 0; i < buffer.count; ++i) {
        const int64_t begin = buffer.offset + i * buffer.stride;
        const auto [first, last] = cut(begin, begin + buffer.bytes);
        if (first != last) {
          add(kBeforeStep, buffer, "shares bytes with " + first->second.buffer->name);
        }
        store(begin, begin + buffer.bytes, {0, &buffer, i, kBeforeStep, {}});
      }
    }
  }

  bool is_feed(const plan::Buffer& buffer) const {
    return std::any_of(resolved_.plan.feeds.begin(), resolved_.plan.feeds.end(),
                       [&](const plan::Feed& feed) {
                         return feed.position == number_ && feed.name == buffer.name;
                       });
  }

  void execute(int64_t e) {
    const plan::Task& task = *names_.tasks.at(entries_[static_cast<size_t>(e)].task);
    for (const plan::Call& call : task.calls) {
      const plan::Kernel& kernel = *resolved_.kernels.at(call.kernel);
      std::vector<Access> accesses;
      for (size_t a = 0; a < call.arguments.size(); ++a) {
        const std::string& mode = kernel.access[a];
        accesses.push_back(access(e, call.arguments[a], mode != "write", mode != "read"));
      }
      perform(e, accesses);
    }
    std::vector<Access> accesses;
    for (const plan::Argument& input : task.inputs)
      accesses.push_back(access(e, input, true, false));
    for (const plan::Argument& output : task.outputs) {
      accesses.push_back(access(e, output, false, true));
    }
    perform(e, accesses);
  }

  // A call reads everything before it writes anything: kernels state where they work in place.
  void perform(int64_t e, const std::vector<Access>& accesses) {
    for (const Access& access : accesses) {
      if (access.reads && access.begin < access.end) read(e, access);
    }
    for (const Access& access : accesses) {
      if (access.writes && access.begin < access.end) write(e, access);
    }
  }

  Access access(int64_t e, const plan::Argument& argument, bool reads, bool writes) const {
    const plan::Buffer& buffer = *names_.buffers.at(argument.buffer);
    const plan::Entry& entry = entries_[static_cast<size_t>(e)];
    int64_t instance = 0;
    if (buffer.scope == "micro_batch") instance = entry.micro_batch;
    if (buffer.scope == "slot") instance = entry.slot;
    if (buffer.scope == "ring") instance = entry.ring;
    const int64_t begin = buffer.offset + instance * buffer.stride + argument.offset.at(dp_, tp_);
    return {&buffer, instance, begin, begin + bytes_of(argument, buffer), reads, writes};
  }

  // Splits ranges at the borders and returns those inside.
  std::pair<Map::iterator, Map::iterator> cut(int64_t begin, int64_t end) {
    split_at(begin);
    split_at(end);
    return {bytes_.lower_bound(begin), bytes_.lower_bound(end)};
  }

  void split_at(int64_t border) {
    auto range = bytes_.lower_bound(border);
    if (range == bytes_.begin()) return;
    --range;
    if (range->second.end <= border) return;
    bytes_.emplace(border, range->second);
    range->second.end = border;
  }

  void store(int64_t begin, int64_t end, Contents contents) {
    if (begin == end) return;
    const auto [first, last] = cut(begin, end);
    bytes_.erase(first, last);
    contents.end = end;
    bytes_.emplace(begin, std::move(contents));
  }

  void read(int64_t e, const Access& access) {
    int64_t at = access.begin;
    const auto [first, last] = cut(access.begin, access.end);
    for (auto range = first; range != last; ++range) {
      if (range->first != at) break;
      at = range->second.end;
      const std::string fault = read_fault(e, access, range->second);
      if (!fault.empty()) return add(e, *access.buffer, fault);
      range->second.last_reader[entries_[static_cast<size_t>(e)].stream] = e;
    }
    if (at != access.end) add(e, *access.buffer, "read, but nothing has written all of it");
  }

  std::string read_fault(int64_t e, const Access& access, const Contents& contents) const {
    const std::string writer = describe(contents.writer);
    if (contents.buffer != access.buffer || contents.instance != access.instance) {
      return "the bytes that are read hold buffer " + contents.buffer->name + ", written by " +
             writer;
    }
    if (!happens_before(contents.writer, e)) {
      return "reads what " + writer + " writes without waiting for it";
    }
    if (contents.writer == kBeforeStep) return "";
    const std::string& scope = access.buffer->scope;
    if (scope == "task" && contents.writer != e) {
      return "reads what " + writer + " left in a buffer that ends with its task";
    }
    const int64_t micro_batch = entries_[static_cast<size_t>(e)].micro_batch;
    const int64_t written = entries_[static_cast<size_t>(contents.writer)].micro_batch;
    if ((scope == "slot" || scope == "micro_batch") && micro_batch != written) {
      return "micro-batch " + std::to_string(micro_batch) + " reads what " + writer +
             " wrote for micro-batch " + std::to_string(written);
    }
    return "";
  }

  void write(int64_t e, const Access& access) {
    const auto [first, last] = cut(access.begin, access.end);
    for (auto range = first; range != last; ++range) {
      const std::string fault = write_fault(e, access, range->second);
      if (fault.empty()) continue;
      add(e, *access.buffer, fault);
      break;
    }
    store(access.begin, access.end, {0, access.buffer, access.instance, e, {}});
  }

  std::string write_fault(int64_t e, const Access& access, const Contents& old) const {
    if (old.buffer != access.buffer && old.buffer->scope == "persistent") {
      return "overwrites the persistent buffer " + old.buffer->name;
    }
    if (!happens_before(old.writer, e)) {
      return "overwrites buffer " + old.buffer->name + ", which " + describe(old.writer) +
             " writes, without waiting for it";
    }
    for (const auto& [stream, reader] : old.last_reader) {
      if (happens_before(reader, e)) continue;
      return "overwrites buffer " + old.buffer->name + ", which " + describe(reader) +
             " reads, without waiting for it";
    }
    const bool communicated =
        old.writer >= 0 && old.writer != e &&
        is_communication(*names_.tasks.at(entries_[static_cast<size_t>(old.writer)].task));
    if (communicated && old.last_reader.empty()) {
      return "overwrites what " + describe(old.writer) + " brought before anybody read it";
    }
    return "";
  }

  // Every instance of a result holds its own bytes after the step.
  void check_results() {
    const plan::Plan& plan = resolved_.plan;
    const bool train = schedule_ == "train";
    for (const plan::Result& result : train ? plan.results : plan.evaluate_results) {
      if (result.position == number_) check_result(result.buffer);
    }
    if (schedule_ != "evaluate") return;
    for (const plan::LossTerm& term : plan.loss_terms) {
      if (term.position != number_) continue;
      if (names_.buffers.count(term.numerator) != 0) check_result(term.numerator);
      if (names_.buffers.count(term.denominator) != 0) check_result(term.denominator);
    }
  }

  void check_result(const std::string& name) {
    const plan::Buffer& buffer = *names_.buffers.at(name);
    for (int64_t i = 0; i < buffer.count; ++i) {
      int64_t at = buffer.offset + i * buffer.stride;
      const int64_t end = at + buffer.bytes;
      const auto [first, last] = cut(at, end);
      for (auto range = first; range != last && range->first == at; ++range) {
        if (range->second.buffer != &buffer || range->second.instance != i) break;
        at = range->second.end;
      }
      if (at != end) add(kBeforeStep, buffer, "a result, but not whole at the end of the step");
    }
  }

  const ResolvedPlan& resolved_;
  const plan::Position& position_;
  const ResolvedPosition& names_;
  int64_t number_;
  const std::string& schedule_;
  const std::vector<plan::Entry>& entries_;
  int64_t dp_;
  int64_t tp_;
  std::vector<std::map<int64_t, int64_t>> clocks_;
  Map bytes_;
  std::set<std::pair<const plan::Buffer*, int64_t>> reported_;
  PlanFaults faults_;
};

bool has_affine(const std::vector<plan::Argument>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const plan::Argument& argument) {
    return argument.offset.dp != 0 || argument.offset.tp != 0;
  });
}

// Whether ranks of a position differ in what they touch.
bool has_affine(const plan::Position& position) {
  for (const plan::Task& task : position.tasks) {
    if (has_affine(task.inputs) || has_affine(task.outputs)) return true;
    for (const plan::Call& call : task.calls) {
      if (has_affine(call.arguments)) return true;
    }
  }
  return false;
}

std::set<std::pair<int64_t, int64_t>> corners(const ResolvedPlan& plan, int64_t position) {
  if (!has_affine(plan.plan.positions[static_cast<size_t>(position)])) return {{0, 0}};
  const int64_t dp = plan.axis_size("dp") - 1;
  const int64_t tp = plan.axis_size("tp") - 1;
  return {{0, 0}, {dp, 0}, {0, tp}, {dp, tp}};
}

}  // namespace

PlanFaults find_memory_faults(const ResolvedPlan& plan) {
  for (size_t p = 0; p < plan.positions.size(); ++p) {
    const auto number = static_cast<int64_t>(p);
    for (const auto& [schedule, entries] : plan.plan.positions[p].schedules) {
      for (const auto& [dp, tp] : corners(plan, number)) {
        PlanFaults faults = MemoryChecker(plan, number, schedule, entries, dp, tp).run();
        if (!faults.empty()) return faults;
      }
    }
  }
  return {};
}

}  // namespace sgtc
