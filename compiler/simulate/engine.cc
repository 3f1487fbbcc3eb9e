#include "simulate/engine.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

// A segment of an issue, or an exchange, that is under way.
struct Activity {
  double left = 0;     // seconds at full rate
  double rate = 0;     // per second
  double updated = 0;  // when `left` was right
  int64_t version = 0;
  int64_t units = 0;
  bool communicates = false;
};

// Units that some ranks share, with what uses them.
struct Pool {
  std::vector<size_t> activities;
  int64_t computing = 0;      // units that kernels ask for
  int64_t communicating = 0;  // likewise communications
};

class Engine {
 public:
  Engine(const SimulatedJob& job, const Hardware& hardware, const RankLayout& layout)
      : job_(job),
        hardware_(hardware),
        layout_(layout),
        activities_(job.issues.size() + job.exchanges.size()),
        pools_(pool_count()),
        ports_(2 * layout.ranks().size(), 0),
        earlier_(job.issues.size()),
        open_(job.issues.size()),
        segment_(job.issues.size(), 0),
        arrived_(job.exchanges.size()),
        moved_(job.exchanges.size(), false) {
    run_.issues.resize(job.issues.size());
    run_.exchanges.resize(job.exchanges.size());
  }

  Run run() {
    for (size_t i = 0; i < job_.issues.size(); ++i) {
      earlier_[i] = job_.issues[i].earlier;
      if (earlier_[i] == 0) ready_.push_back(i);
    }
    start_ready();
    while (!events_.empty()) {
      const auto [time, activity, version] = events_.top();
      events_.pop();
      if (activities_[activity].version != version) continue;
      now_ = time;
      finish_activity(activity);
      start_ready();
    }
    SGTC_CHECK(done_ == job_.issues.size(), "the simulated ranks wait for each other");
    run_.seconds = now_;
    return std::move(run_);
  }

 private:
  using Event = std::tuple<double, size_t, int64_t>;  // time, activity, its version

  size_t pool_count() const {
    const std::vector<SimulatedRank>& ranks = layout_.ranks();
    if (hardware_.is_gpu()) return ranks.size();
    int64_t hosts = 0;
    for (const SimulatedRank& rank : ranks) hosts = std::max(hosts, rank.host + 1);
    return static_cast<size_t>(hosts);
  }

  size_t pool_of(size_t rank) const {
    return hardware_.is_gpu() ? rank : static_cast<size_t>(layout_.ranks()[rank].host);
  }

  int64_t weight_of(size_t rank) const {
    return hardware_.is_gpu() ? 1 : layout_.ranks()[rank].weight;
  }

  void start_ready() {
    while (!ready_.empty()) {
      const size_t i = ready_.back();
      ready_.pop_back();
      start_issue(i);
    }
  }

  void start_issue(size_t i) {
    const Issue& issue = job_.issues[i];
    run_.issues[i].begin = now_;
    if (issue.work != nullptr) {
      start_segment(i);
      return;
    }
    open_[i] = issue.exchanges.size();
    for (const size_t e : issue.exchanges) arrive(e, i);
  }

  void start_segment(size_t i) {
    const Issue& issue = job_.issues[i];
    if (segment_[i] == issue.work->size()) {
      finish_issue(i);
      return;
    }
    const Segment& segment = (*issue.work)[segment_[i]++];
    activities_[i].units = segment.units;
    begin(i, segment.seconds, {issue.rank});
  }

  void arrive(size_t e, size_t i) {
    const SimulatedExchange& exchange = job_.exchanges[e];
    arrived_[e].push_back(i);
    if (moved_[e]) {
      complete_end(i);
      return;
    }
    const bool all = arrived_[e].size() == exchange.ends.size();
    const bool first_sends = exchange.eager && i == exchange.ends.front();
    if (is_under_way(e) || (!all && !first_sends)) return;
    run_.exchanges[e].begin = now_;
    Activity& activity = activities_[activity_of(e)];
    activity.units = exchange.units;
    activity.communicates = true;
    begin(activity_of(e), exchange.seconds, ranks_of(exchange));
  }

  size_t activity_of(size_t exchange) const { return job_.issues.size() + exchange; }

  bool is_under_way(size_t e) const { return activities_[activity_of(e)].version > 0; }

  std::vector<size_t> ranks_of(const SimulatedExchange& exchange) const {
    std::vector<size_t> ranks;
    for (const size_t end : exchange.ends) ranks.push_back(job_.issues[end].rank);
    return ranks;
  }

  void begin(size_t a, double seconds, const std::vector<size_t>& ranks) {
    Activity& activity = activities_[a];
    activity.left = seconds;
    activity.rate = 0;
    activity.updated = now_;
    occupy(a, ranks, 1);
    update_rates(ranks);
  }

  void finish_activity(size_t a) {
    ++activities_[a].version;
    if (a < job_.issues.size()) {
      const std::vector<size_t> ranks = {job_.issues[a].rank};
      occupy(a, ranks, -1);
      update_rates(ranks);
      start_segment(a);
      return;
    }
    const size_t e = a - job_.issues.size();
    const std::vector<size_t> ranks = ranks_of(job_.exchanges[e]);
    occupy(a, ranks, -1);
    update_rates(ranks);
    run_.exchanges[e].end = now_;
    moved_[e] = true;
    for (const size_t end : arrived_[e]) complete_end(end);
  }

  // Takes the units and ports of an activity (sign 1), or gives them back (-1).
  void occupy(size_t a, const std::vector<size_t>& ranks, int64_t sign) {
    const Activity& activity = activities_[a];
    for (const size_t rank : ranks) {
      Pool& pool = pools_[pool_of(rank)];
      const int64_t units = sign * activity.units * weight_of(rank);
      (activity.communicates ? pool.communicating : pool.computing) += units;
      if (activity.communicates) ports_[port_of(a, rank)] += sign;
      const auto found = std::find(pool.activities.begin(), pool.activities.end(), a);
      if (sign > 0 && found == pool.activities.end()) pool.activities.push_back(a);
      if (sign < 0 && found != pool.activities.end()) pool.activities.erase(found);
    }
  }

  size_t port_of(size_t a, size_t rank) const {
    const bool network = job_.exchanges[a - job_.issues.size()].work.hosts > 1;
    return 2 * rank + (network ? 1 : 0);
  }

  void update_rates(const std::vector<size_t>& ranks) {
    for (const size_t rank : ranks) {
      for (const size_t a : pools_[pool_of(rank)].activities) set_rate(a);
    }
  }

  void set_rate(size_t a) {
    Activity& activity = activities_[a];
    const double rate = rate_of(a);
    if (rate == activity.rate) return;
    activity.left = std::max(0.0, activity.left - activity.rate * (now_ - activity.updated));
    activity.updated = now_;
    activity.rate = rate;
    events_.emplace(now_ + activity.left / rate, a, ++activity.version);
  }

  double rate_of(size_t a) const {
    if (!activities_[a].communicates) return kernel_rate(a);
    double rate = 1;
    for (const size_t end : job_.exchanges[a - job_.issues.size()].ends) {
      const size_t rank = job_.issues[end].rank;
      const double share = hardware_.is_gpu() ? 1 : core_share(pools_[pool_of(rank)]);
      rate = std::min(rate, share / static_cast<double>(ports_[port_of(a, rank)]));
    }
    return rate;
  }

  double kernel_rate(size_t a) const {
    const Pool& pool = pools_[pool_of(job_.issues[a].rank)];
    if (!hardware_.is_gpu()) return core_share(pool);
    const int64_t left = std::max<int64_t>(1, hardware_.units - pool.communicating);
    return std::min(1.0, static_cast<double>(left) / static_cast<double>(activities_[a].units));
  }

  double core_share(const Pool& pool) const {
    const auto threads = static_cast<double>(pool.computing + pool.communicating);
    return std::min(1.0, static_cast<double>(hardware_.units) / std::max(threads, 1.0));
  }

  void complete_end(size_t i) {
    if (--open_[i] == 0) finish_issue(i);
  }

  void finish_issue(size_t i) {
    run_.issues[i].end = now_;
    ++done_;
    for (const size_t next : job_.issues[i].next) {
      if (--earlier_[next] == 0) ready_.push_back(next);
    }
  }

  const SimulatedJob& job_;
  const Hardware& hardware_;
  const RankLayout& layout_;
  std::vector<Activity> activities_;  // issues, then exchanges
  std::vector<Pool> pools_;
  std::vector<int64_t> ports_;                // per rank and link: exchanges that use it
  std::vector<int64_t> earlier_;              // per issue: those before it that are not done
  std::vector<size_t> open_;                  // per issue: exchanges that are not done
  std::vector<size_t> segment_;               // per issue: the next one
  std::vector<std::vector<size_t>> arrived_;  // per exchange: issues
  std::vector<bool> moved_;                   // per exchange: its bytes are there
  std::vector<size_t> ready_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double now_ = 0;
  size_t done_ = 0;
  Run run_;
};

}  // namespace

Run run_job(const SimulatedJob& job, const Hardware& hardware, const RankLayout& layout) {
  return Engine(job, hardware, layout).run();
}

}  // namespace sgtc
