#include "overlap.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "failure.h"

namespace sgtc::runtime {
namespace {

// In order and apart from each other.
std::vector<Span> unite(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](Span a, Span b) { return a.begin < b.begin; });
  std::vector<Span> united;
  for (const Span& span : spans) {
    if (united.empty() || united.back().end < span.begin) {
      united.push_back(span);
    } else {
      united.back().end = std::max(united.back().end, span.end);
    }
  }
  return united;
}

int64_t length_of(const std::vector<Span>& spans) {
  int64_t length = 0;
  for (const Span& span : spans) length += span.end - span.begin;
  return length;
}

// Of united spans.
int64_t common_length(const std::vector<Span>& a, const std::vector<Span>& b) {
  int64_t length = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    length += std::max<int64_t>(std::min(a[i].end, b[j].end) - std::max(a[i].begin, b[j].begin), 0);
    (a[i].end < b[j].end ? i : j)++;
  }
  return length;
}

template <typename Key>
size_t index_of_most(const std::vector<OverlapSummary>& ranks, Key key) {
  const auto less = [&](const auto& a, const auto& b) { return key(a) < key(b); };
  return static_cast<size_t>(std::max_element(ranks.begin(), ranks.end(), less) - ranks.begin());
}

double exposed_share(const OverlapSummary& summary) {
  return summary.step == 0 ? 0 : summary.exposed / summary.step;
}

}  // namespace

StepOverlap overlap_of(std::vector<Span> kernels, std::vector<Span> communications) {
  const std::vector<Span> busy = unite(std::move(kernels));
  const std::vector<Span> under_way = unite(std::move(communications));
  StepOverlap result;
  for (const auto* spans : {&busy, &under_way}) {
    if (spans->empty()) continue;
    const Span own = {spans->front().begin, spans->back().end};
    const bool is_first = result.step.end == 0;
    result.step.begin = is_first ? own.begin : std::min(result.step.begin, own.begin);
    result.step.end = std::max(result.step.end, own.end);
  }
  result.communication = length_of(under_way);
  result.exposed = result.communication - common_length(busy, under_way);
  return result;
}

void OverlapRecord::add(const StepOverlap& step) {
  ++steps_;
  step_ += static_cast<double>(step.step.end - step.step.begin);
  communication_ += static_cast<double>(step.communication);
  exposed_ += static_cast<double>(step.exposed);
}

void OverlapRecord::add_start(const std::string* task, int64_t micro_batch, int64_t nanoseconds) {
  Starts& starts = starts_[{task, micro_batch}];
  const double before = static_cast<double>(nanoseconds) - starts.mean;
  starts.mean += before / static_cast<double>(++starts.count);
  starts.squares += before * (static_cast<double>(nanoseconds) - starts.mean);
}

OverlapSummary OverlapRecord::summary() const {
  OverlapSummary result;
  result.steps = steps_;
  if (steps_ == 0) return result;
  const double scale = 1e-9 / static_cast<double>(steps_);
  result.step = step_ * scale;
  result.communication = communication_ * scale;
  result.exposed = exposed_ * scale;
  for (const auto& [which, starts] : starts_) {
    if (starts.count < 2) continue;
    const double jitter = std::sqrt(starts.squares / static_cast<double>(starts.count - 1)) * 1e-9;
    if (!result.varies_most.empty() && jitter <= result.jitter) continue;
    result.jitter = jitter;
    result.varies_most = *which.first + " of micro-batch " + std::to_string(which.second);
  }
  return result;
}

std::string to_text(const OverlapSummary& summary) {
  return nlohmann::json({summary.steps, summary.step, summary.communication, summary.exposed,
                         summary.jitter, summary.varies_most})
      .dump();
}

OverlapSummary parse_overlap(const std::string& text) {
  const nlohmann::json values = nlohmann::json::parse(text);
  return {values[0], values[1], values[2], values[3], values[4], values[5]};
}

std::string overlap_text(const std::vector<OverlapSummary>& ranks) {
  const size_t most = index_of_most(ranks, exposed_share);
  const OverlapSummary& slow = ranks[most];
  if (slow.communication == 0) return "";
  std::string text = format(
      "communication: under way for %.3f ms of a step of %.3f ms, %.1f%% of that beside kernels; "
      "exposed %.3f ms, %.2f%% of the step (rank %zu, the most; means of %ld steps)\n",
      slow.communication * 1e3, slow.step * 1e3, 100 * (1 - slow.exposed / slow.communication),
      slow.exposed * 1e3, 100 * exposed_share(slow), most, static_cast<long>(slow.steps));
  const size_t unsteady =
      index_of_most(ranks, [](const OverlapSummary& summary) { return summary.jitter; });
  if (ranks[unsteady].varies_most.empty()) return text;
  return text + format(
                    "communication: starts within the step vary by at most %.1f us (standard "
                    "deviation; %s, rank %zu)\n",
                    ranks[unsteady].jitter * 1e6, ranks[unsteady].varies_most.c_str(), unsteady);
}

}  // namespace sgtc::runtime
