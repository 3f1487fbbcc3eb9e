#include "simulate/simulate.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/live_buffers.h"
#include "simulate/job.h"
#include "simulate/ranks.h"

namespace sgtc {
namespace {

// Spans without overlaps, in order.
std::vector<Span> united(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> result;
  for (const Span& span : spans) {
    if (result.empty() || result.back().end < span.begin) {
      result.push_back(span);
    } else {
      result.back().end = std::max(result.back().end, span.end);
    }
  }
  return result;
}

double length(const std::vector<Span>& spans) {
  double sum = 0;
  for (const Span& span : united(spans)) sum += span.end - span.begin;
  return sum;
}

double ratio(double common, double computing, double communicating) {
  const double most = std::max(computing, communicating);
  return communicating > 0 && most > 0 ? common / most : 0;
}

class Measurement {
 public:
  Measurement(const plan::Plan& plan, const Hardware& hardware, const std::string& schedule)
      : plan_(plan),
        schedule_(schedule),
        layout_(plan, hardware),
        job_(make_job(plan, hardware, layout_, schedule)),
        run_(run_job(job_, hardware, layout_)) {}

  Simulation run() {
    simulation_.schedule = schedule_;
    simulation_.seconds = run_.seconds;
    simulation_.ranks = layout_.size();
    simulation_.simulated_ranks = static_cast<int64_t>(layout_.ranks().size());
    for (size_t p = 0; p < plan_.positions.size(); ++p) measure_position(p);
    summarize();
    return std::move(simulation_);
  }

 private:
  const std::vector<plan::Entry>* entries_of(size_t p) const {
    const auto found = plan_.positions[p].schedules.find(schedule_);
    return found == plan_.positions[p].schedules.end() ? nullptr : &found->second;
  }

  void measure_position(size_t p) {
    SimulatedPosition& position = simulation_.positions.emplace_back();
    const std::vector<plan::Entry>* entries = entries_of(p);
    if (entries == nullptr) return;
    position.entries.resize(entries->size());
    std::vector<Span> computing;
    std::vector<Span> communicating;
    const size_t rank = layout_.index_of(static_cast<int64_t>(p), 0);
    for (size_t i = 0; i < job_.issues.size(); ++i) {
      const Issue& issue = job_.issues[i];
      if (issue.rank != rank) continue;
      for (size_t k = 0; k < issue.entries.size(); ++k) {
        SimulatedEntry& entry = position.entries[issue.entries[k]];
        entry.posted = run_.issues[i].begin;
        entry.span = issue.work ? run_.issues[i] : run_.exchanges[issue.exchanges[k]];
        (issue.work ? computing : communicating).push_back(entry.span);
        if (!issue.work) count_link(p, (*entries)[issue.entries[k]], issue, issue.exchanges[k]);
      }
    }
    measure_times(position, computing, communicating);
    const std::vector<int64_t> live = live_bytes_of_entries(plan_, plan_.positions[p], schedule_);
    for (size_t e = 0; e < live.size(); ++e) {
      position.entries[e].live_bytes = live[e];
      position.peak_live_bytes = std::max(position.peak_live_bytes, live[e]);
    }
  }

  void measure_times(SimulatedPosition& position, const std::vector<Span>& computing,
                     const std::vector<Span>& communicating) const {
    std::vector<Span> busy = computing;
    busy.insert(busy.end(), communicating.begin(), communicating.end());
    const double either = length(busy);
    position.computing = length(computing);
    position.communicating = length(communicating);
    position.exposed = std::max(0.0, either - position.computing);
    position.idle = std::max(0.0, run_.seconds - either);
  }

  // At the rank that sends.
  void count_link(size_t p, const plan::Entry& entry, const Issue& issue, size_t e) {
    const plan::Task& task = task_of(p, entry.task);
    if (task.kind == "receive") return;
    const SimulatedExchange& exchange = job_.exchanges[e];
    const auto from = static_cast<int64_t>(p);
    const int64_t to = task.kind == "send" ? peer_of(issue, exchange) : -1;
    SimulatedLink& link = links_[{task.communicator, from, to}];
    link.communicator = task.communicator;
    link.from = from;
    link.to = to;
    const LinkTraffic traffic = traffic_of(exchange.work);
    ++link.messages;
    link.host_bytes += traffic.host;
    link.network_bytes += traffic.network;
    link.seconds += exchange.seconds;
  }

  int64_t peer_of(const Issue& issue, const SimulatedExchange& exchange) const {
    for (const size_t end : exchange.ends) {
      const SimulatedRank& rank = layout_.ranks()[job_.issues[end].rank];
      if (&job_.issues[end] != &issue) return rank.position;
    }
    return -1;
  }

  const plan::Task& task_of(size_t p, const std::string& name) const {
    const std::vector<plan::Task>& tasks = plan_.positions[p].tasks;
    return *std::find_if(tasks.begin(), tasks.end(),
                         [&](const plan::Task& task) { return task.name == name; });
  }

  void summarize() {
    for (auto& [key, link] : links_) simulation_.links.push_back(std::move(link));
    double idle = 0;
    double common = 0;
    double most = 0;
    for (const SimulatedPosition& position : simulation_.positions) {
      idle += position.idle;
      common += position.communicating - position.exposed;
      most += std::max(position.computing, position.communicating);
    }
    const double all = run_.seconds * static_cast<double>(simulation_.positions.size());
    simulation_.bubble = all > 0 ? idle / all : 0;
    simulation_.overlap_ratio = most > 0 ? common / most : 0;
  }

  const plan::Plan& plan_;
  const std::string& schedule_;
  const RankLayout layout_;
  const SimulatedJob job_;
  const Run run_;
  std::map<std::tuple<std::string, int64_t, int64_t>, SimulatedLink> links_;
  Simulation simulation_;
};

}  // namespace

double SimulatedPosition::overlap_ratio() const {
  return ratio(communicating - exposed, computing, communicating);
}

Simulation simulate(const plan::Plan& plan, const Hardware& hardware, const std::string& schedule) {
  return Measurement(plan, hardware, schedule).run();
}

}  // namespace sgtc
