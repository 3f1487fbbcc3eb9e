#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "plan/quantities.h"
#include "search/fit_memory.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr double kLeastGain = 0.98;  // what lowers the peak by less does not help
constexpr int kMostMisses = 2;       // of a kind, after which more of it is not tried

// What the next way of a kind must be below.
struct Goal {
  int64_t peak_bytes = 0;
  int misses = 0;  // ways in a row that did not help
};

struct Way {
  std::string option;
  int64_t ranks = 1;
  FittedStep step;
  double cost() const { return step.seconds * static_cast<double>(ranks); }
};

// A budget, rounded up, as --memory takes it.
std::string budget_text(int64_t bytes) {
  double number = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* larger : {"KiB", "MiB", "GiB"}) {
    if (number < 1024) break;
    number /= 1024;
    unit = larger;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%s", std::ceil(number * 10) / 10, unit);
  return text;
}

std::string first_word(const std::string& option) { return option.substr(0, option.find(' ')); }

std::vector<Way> ways_that_fit(const FittedStep& found, const MemoryRequest& request,
                               const std::vector<OtherStep>& others) {
  std::vector<Way> ways = {{"--memory " + budget_text(found.peak_bytes), 1, found}};
  std::map<std::string, Goal> goals;  // by first word
  for (const OtherStep& other : others) {
    Goal& goal = goals.try_emplace(first_word(other.option), Goal{found.peak_bytes}).first->second;
    if (goal.misses == kMostMisses) continue;
    const std::optional<FittedStep> step = other.fit();
    const bool helps = step && static_cast<double>(step->peak_bytes) <
                                   kLeastGain * static_cast<double>(goal.peak_bytes);
    if (helps && step->peak_bytes <= request.budget) {
      ways.push_back({other.option, other.ranks, *step});
      goal.misses = kMostMisses;  // more of it costs more
    } else if (helps) {
      goal = {step->peak_bytes};
    } else {
      ++goal.misses;
    }
  }
  std::stable_sort(ways.begin(), ways.end(),
                   [](const Way& a, const Way& b) { return a.cost() < b.cost(); });
  return ways;
}

std::string text_of(const Way& way, const FittedStep& found) {
  char share[32];
  std::snprintf(share, sizeof share, "%.2f", way.step.seconds / found.seconds_without);
  return "\n  " + way.option + ": " + bytes_text(way.step.peak_bytes) + " per rank, step " +
         seconds_text(way.step.seconds) + ", " + share + " of the step without a limit" +
         (way.ranks > 1 ? ", on " + std::to_string(way.ranks) + " times as many ranks" : "");
}

}  // namespace

void refuse_memory(const FittedStep& found, const MemoryRequest& request,
                   const std::vector<OtherStep>& others) {
  std::string text = "--memory: the step needs " + bytes_text(found.peak_bytes) +
                     ", found a limit of " + bytes_text(request.budget);
  if (request.recompute == Recompute::kAuto) text += ", with what may be computed again";
  text += "; live at its peak are" + found.live + "\nuse one of these, as predicted:";
  const std::vector<Way> ways = ways_that_fit(found, request, others);
  for (const Way& way : ways) text += text_of(way, found);
  throw Error(text);
}

}  // namespace sgtc
