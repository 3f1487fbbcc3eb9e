#include "partition/find_repeats.h"

#include <map>

namespace sgtc {
namespace {

std::vector<size_t> numbered(const std::vector<std::string>& symbols) {
  std::map<std::string, size_t> numbers;
  std::vector<size_t> result;
  for (const std::string& symbol : symbols) {
    result.push_back(numbers.try_emplace(symbol, numbers.size()).first->second);
  }
  return result;
}

}  // namespace

Repeats find_repeats(const std::vector<std::string>& symbols) {
  const std::vector<size_t> items = numbered(symbols);
  Repeats best;
  for (size_t period = 1; 2 * period <= items.size(); ++period) {
    size_t equal = 0;  // items in a row, up to the current one, that recur one period later
    for (size_t i = 0; i + period < items.size(); ++i) {
      equal = items[i] == items[i + period] ? equal + 1 : 0;
      const size_t count = equal / period + 1;
      if (count < 2 || count * period <= best.count * best.period) continue;
      best = {i + 1 - equal, period, count};
    }
  }
  return best;
}

}  // namespace sgtc
