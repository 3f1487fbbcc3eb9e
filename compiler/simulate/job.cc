#include "simulate/job.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "cost/kernel_time.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

class JobMaker {
 public:
  JobMaker(const plan::Plan& plan, const Hardware& hardware, const RankLayout& layout,
           const std::string& schedule)
      : plan_(plan),
        hardware_(hardware),
        layout_(layout),
        schedule_(schedule),
        clock_(hardware, hardware.units_of_rank(layout.size())) {
    for (const plan::Kernel& kernel : plan.kernels) kernels_[kernel.symbol] = &kernel;
    for (const plan::Communicator& each : plan.communicators) communicators_[each.name] = &each;
  }

  SimulatedJob run() {
    for (const plan::Position& position : plan_.positions) add_position(position);
    for (size_t r = 0; r < layout_.ranks().size(); ++r) add_rank(r);
    for (const SimulatedExchange& exchange : job_.exchanges) {
      const auto ends = static_cast<int64_t>(exchange.ends.size());
      const bool whole = ends == exchange.work.members || (layout_.is_alike() && ends == 1);
      SGTC_CHECK(whole, "a " + exchange.work.kind + " has not all its ends");
    }
    return std::move(job_);
  }

 private:
  struct PositionNames {
    std::map<std::string, const plan::Buffer*> buffers;
    std::map<std::string, size_t> tasks;
  };

  // What the ends of an exchange count alike: communicator, members that send and receive, or -1,
  // and the position and replica of the communicator's first member.
  using ExchangeKey = std::tuple<std::string, int64_t, int64_t, int64_t, int64_t>;

  void add_position(const plan::Position& position) {
    PositionNames& names = names_.emplace_back();
    for (const plan::Buffer& buffer : position.buffers) names.buffers[buffer.name] = &buffer;
    std::vector<std::vector<Segment>>& segments = job_.segments.emplace_back();
    for (const plan::Task& task : position.tasks) {
      names.tasks[task.name] = segments.size();
      segments.push_back(segments_of(task, names));
    }
  }

  std::vector<Segment> segments_of(const plan::Task& task, const PositionNames& names) {
    std::vector<Segment> segments;
    for (const plan::Call& call : task.calls) {
      const KernelTime time = time_of(call, names);
      if (segments.empty() || segments.back().units != time.units) {
        segments.push_back({0, time.units});
      }
      segments.back().seconds += time.seconds;
    }
    return segments;
  }

  KernelTime time_of(const plan::Call& call, const PositionNames& names) {
    const auto [known, is_new] = times_.try_emplace(call.kernel);
    if (!is_new) return known->second;
    const plan::Kernel& kernel = *kernels_.at(call.kernel);
    KernelWork work = {kernel.symbol, kernel.kind, "", kernel.flops, kernel.bytes, kernel.blocks};
    work.dtype = dtype_of(call, names);
    known->second = clock_.time(work);
    return known->second;
  }

  static std::string dtype_of(const plan::Call& call, const PositionNames& names) {
    std::vector<std::string> dtypes;
    for (const plan::Argument& argument : call.arguments) {
      dtypes.push_back(names.buffers.at(argument.buffer)->dtype);
    }
    return rated_dtype(dtypes);
  }

  void add_rank(size_t r) {
    const SimulatedRank& rank = layout_.ranks()[r];
    const auto p = static_cast<size_t>(rank.position);
    const plan::Position& position = plan_.positions[p];
    const auto found = position.schedules.find(schedule_);
    if (found == position.schedules.end()) return;
    std::map<int64_t, size_t> last_of_lane;    // issue
    std::map<int64_t, size_t> last_of_stream;  // likewise
    std::vector<size_t> issue_of;              // of each entry
    int64_t last_group = -1;
    for (size_t e = 0; e < found->second.size(); ++e) {
      const plan::Entry& entry = found->second[e];
      const size_t t = names_[p].tasks.at(entry.task);
      const plan::Task& task = position.tasks[t];
      const bool computes = task.kind == "compute";
      const bool joins = !computes && entry.group >= 0 && entry.group == last_group;
      last_group = computes ? -1 : entry.group;
      const int64_t lane = hardware_.is_gpu() ? entry.stream : computes ? 0 : 1;
      std::set<size_t> before;
      for (const int64_t wait : entry.waits) before.insert(issue_of[static_cast<size_t>(wait)]);
      for (const auto& [key, last] :
           {std::pair{lane, &last_of_lane}, std::pair{entry.stream, &last_of_stream}}) {
        const auto earlier = last->find(key);
        if (earlier != last->end()) before.insert(earlier->second);
      }
      if (!joins) {
        job_.issues.push_back({r, {}, {}, computes ? &job_.segments[p][t] : nullptr, {}, 0});
      }
      const size_t issue = job_.issues.size() - 1;
      job_.issues.back().entries.push_back(e);
      if (!computes) join_exchange(rank, task, issue);
      before.erase(issue);
      for (const size_t earlier : before) add_order(earlier, issue);
      issue_of.push_back(issue);
      last_of_lane[lane] = issue;
      last_of_stream[entry.stream] = issue;
    }
  }

  void add_order(size_t earlier, size_t later) {
    std::vector<size_t>& next = job_.issues[earlier].next;
    if (std::find(next.begin(), next.end(), later) != next.end()) return;
    next.push_back(later);
    ++job_.issues[later].earlier;
  }

  // Puts an end into its exchange, which the first end creates.
  void join_exchange(const SimulatedRank& rank, const plan::Task& task, size_t issue) {
    const bool sends = task.kind == "send";
    const bool transfers = sends || task.kind == "receive";
    const plan::Communicator& communicator = *communicators_.at(task.communicator);
    const auto members = layout_.members(communicator.axis, rank);
    const auto place =
        std::find(members.begin(), members.end(), std::pair{rank.position, rank.replica});
    const int64_t self = place - members.begin();
    const auto [position, replica] = members.front();
    ExchangeKey key = {task.communicator, -1, -1, position, replica};
    if (transfers) {
      std::get<1>(key) = sends ? self : task.peer;
      std::get<2>(key) = sends ? task.peer : self;
    }
    const int64_t number = counts_[{key, job_.issues[issue].rank}]++;
    const auto [known, is_new] = exchanges_.try_emplace({key, number}, job_.exchanges.size());
    if (is_new) job_.exchanges.push_back(make_exchange(rank, task, communicator, members));
    SimulatedExchange& exchange = job_.exchanges[known->second];
    job_.issues[issue].exchanges.push_back(known->second);
    exchange.ends.push_back(issue);
    if (sends) std::swap(exchange.ends.front(), exchange.ends.back());
  }

  SimulatedExchange make_exchange(const SimulatedRank& rank, const plan::Task& task,
                                  const plan::Communicator& communicator,
                                  const std::vector<std::pair<int64_t, int64_t>>& members) const {
    const bool transfers = task.kind == "send" || task.kind == "receive";
    SimulatedExchange exchange;
    CommunicationWork& work = exchange.work;
    work.kind = transfers ? "send" : task.kind;
    work.bytes = std::max(bytes_of(rank, task.inputs), bytes_of(rank, task.outputs));
    work.members = transfers ? 2 : static_cast<int64_t>(members.size());
    if (hardware_.is_gpu()) {
      work.blocks = communicator.blocks > 0 ? communicator.blocks : hardware_.communication_blocks;
    }
    std::set<int64_t> hosts = {rank.host};
    if (transfers) {
      const auto [position, replica] = members[static_cast<size_t>(task.peer)];
      hosts.insert(layout_.host_of(position, replica));
    } else {
      for (const auto& [position, replica] : members) {
        hosts.insert(layout_.host_of(position, replica));
      }
    }
    work.hosts = static_cast<int64_t>(hosts.size());
    exchange.seconds = communication_seconds(hardware_, work);
    exchange.eager = transfers && work.bytes <= hardware_.eager_bytes;
    exchange.units = hardware_.is_gpu() ? work.blocks : 1;
    return exchange;
  }

  int64_t bytes_of(const SimulatedRank& rank, const std::vector<plan::Argument>& parts) const {
    const PositionNames& names = names_[static_cast<size_t>(rank.position)];
    int64_t bytes = 0;
    for (const plan::Argument& part : parts) {
      bytes += part.bytes > 0 ? part.bytes : names.buffers.at(part.buffer)->bytes;
    }
    return bytes;
  }

  const plan::Plan& plan_;
  const Hardware& hardware_;
  const RankLayout& layout_;
  const std::string& schedule_;
  const KernelClock clock_;
  std::map<std::string, const plan::Kernel*> kernels_;
  std::map<std::string, const plan::Communicator*> communicators_;
  std::vector<PositionNames> names_;
  std::map<std::string, KernelTime> times_;
  std::map<std::pair<ExchangeKey, size_t>, int64_t> counts_;  // per order and rank
  std::map<std::pair<ExchangeKey, int64_t>, size_t> exchanges_;
  SimulatedJob job_;
};

}  // namespace

SimulatedJob make_job(const plan::Plan& plan, const Hardware& hardware, const RankLayout& layout,
                      const std::string& schedule) {
  return JobMaker(plan, hardware, layout, schedule).run();
}

}  // namespace sgtc
