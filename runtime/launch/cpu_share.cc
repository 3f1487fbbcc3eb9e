#include "launch/cpu_share.h"

#include <sched.h>

namespace sgtc::runtime {

std::string cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (size_t begin = 0, end; begin < cpus.size(); begin = end) {
    for (end = begin + 1; end < cpus.size() && cpus[end] == cpus[end - 1] + 1;) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[begin]);
    if (end > begin + 1) text += "-" + std::to_string(cpus[end - 1]);
  }
  return text;
}

std::vector<int> cpu_share(const std::vector<int>& cpus, int64_t index, int64_t count) {
  const int64_t size = static_cast<int64_t>(cpus.size());
  if (size < count) return cpus;
  return {cpus.begin() + size * index / count, cpus.begin() + size * (index + 1) / count};
}

void bind_to_cpus(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace sgtc::runtime
