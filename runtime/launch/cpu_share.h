// How ranks on one machine share its CPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sgtc::runtime {

/// "0-3,8", from ascending numbers.
std::string cpu_list(const std::vector<int>& cpus);

/// The part of `cpus` of the `index`-th of `count` ranks: parts of neighbouring CPUs, disjoint and
/// as equal as can be. All CPUs if there are fewer than ranks.
std::vector<int> cpu_share(const std::vector<int>& cpus, int64_t index, int64_t count);

/// Keeps this process, and threads that start later, on `cpus`.
void bind_to_cpus(const std::vector<int>& cpus);

}  // namespace sgtc::runtime
