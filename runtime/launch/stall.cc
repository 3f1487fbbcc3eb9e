#include "launch/stall.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

namespace sgtc::runtime {
namespace {

constexpr int64_t kFirstSteps = 3;        // which are no measure
constexpr int64_t kMeasuredSteps = 3;     // at least: whole steps, so all that they consist of
constexpr int64_t kPatience = 10;         // times the longest time between two ends
constexpr double kPatienceAtFirst = 100;  // times what a step is expected to take

bool works_on_host(const StallDetector::State& state) {
  return !state.waits_for_others && !state.activity.on_device();
}

bool are_equal(const StallDetector::State& a, const StallDetector::State& b) {
  return a.waits_for_others == b.waits_for_others && a.activity.step == b.activity.step &&
         a.activity.micro_batch == b.activity.micro_batch && a.activity.turns == b.activity.turns &&
         std::strcmp(a.activity.entry, b.activity.entry) == 0;
}

std::string list_of(const std::vector<size_t>& ranks, const std::vector<std::string>& names) {
  if (ranks.size() == 1) return names[ranks[0]];
  std::string text = "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 < ranks.size() ? ", " : " and ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace

bool StallDetector::look(const std::vector<State>& ranks, int64_t now, bool paused) {
  const bool on_host = std::any_of(ranks.begin(), ranks.end(), works_on_host);
  int64_t step = std::numeric_limits<int64_t>::max();  // that all have begun
  for (const State& each : ranks) step = std::min(step, each.activity.step);
  if (on_host || paused || has_ended(ranks)) {
    const bool is_measured = measures_ && !on_host && !paused;
    if (is_measured) longest_ = std::max(longest_, now - since_);
    since_ = now;
    measures_ = step > kFirstSteps && !on_host;
    last_ = ranks;
  }
  duration_ = now - since_;
  return lasts_too_long(step);
}

bool StallDetector::has_ended(const std::vector<State>& ranks) const {
  return !std::equal(ranks.begin(), ranks.end(), last_.begin(), last_.end(), are_equal);
}

bool StallDetector::lasts_too_long(int64_t step) const {
  if (duration_ <= least_) return false;
  if (step > kFirstSteps + kMeasuredSteps) return duration_ > kPatience * longest_;
  return expected_ > 0 && static_cast<double>(duration_) > kPatienceAtFirst * expected_;
}

std::string describe_all(const std::vector<StallDetector::State>& ranks,
                         const std::vector<std::string>& names) {
  std::map<std::pair<bool, std::string>, std::vector<size_t>> doing;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    doing[{!ranks[rank].waits_for_others, describe(ranks[rank].activity)}].push_back(rank);
  }
  std::vector<std::pair<std::string, size_t>> texts;  // and how many ranks do so
  for (const auto& [what, members] : doing) {
    const auto& [runs, activity] = what;
    const char* verb = members.size() == 1 ? (runs ? " is in " : " waits for others, last in ")
                                           : (runs ? " are in " : " wait for others, last in ");
    texts.emplace_back(list_of(members, names) + verb + activity, members.size());
  }
  std::stable_sort(texts.begin(), texts.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string all;
  for (const auto& [text, count] : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

}  // namespace sgtc::runtime
