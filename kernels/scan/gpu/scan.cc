// Operators along one axis that keep an order, on GPUs. Cumulative sums and positions of extrema
// have a warp per line where the line's elements are neighbours in memory, else a thread per line,
// so that neighbouring threads read neighbouring elements either way. Sorting has a thread per
// line.
#include "element.h"
#include "gpu/instructions.h"
#include "scan/lines.h"
#include "shapes.h"

namespace sgtc::gpu {
namespace {

using namespace sgtc::kernels;

/// The thread's line; -1 if there is none.
SGTC_DEVICE int64_t line_of_thread(const AxisShape& s, int64_t threads_per_line) {
  const int64_t thread = static_cast<int64_t>(block_index()) * thread_count() + thread_index();
  const int64_t line = thread / threads_per_line;
  return line < s.outer * s.inner ? line : -1;
}

SGTC_DEVICE int64_t first_element(const AxisShape& s, int64_t line) {
  return line / s.inner * s.size * s.inner + line % s.inner;
}

/// The sum of `value` over the lanes up to the own one, in the order of a tree.
template <typename Sum>
SGTC_DEVICE Sum sum_of_lanes_up_to(Sum value, uint32_t lane) {
#pragma clang loop unroll(full)
  for (uint32_t distance = 1; distance < kWarpThreads; distance *= 2) {
    const Sum lower = of_lane(value, lane >= distance ? lane - distance : 0);
    if (lane >= distance) value = add_elements(lower, value);
  }
  return value;
}

template <typename T>
SGTC_DEVICE void sum_line_by_warp(const AxisShape& s, const T* x, T* y) {
  using Sum = RunningSumOf<T>;
  const uint32_t lane = thread_index() % kWarpThreads;
  Sum before = 0;
  for (int64_t begin = 0; begin < s.size; begin += kWarpThreads) {
    const int64_t i = begin + lane;
    const Sum own = i < s.size ? static_cast<Sum>(widened(x[step_of_sum(s, i)])) : Sum{};
    const Sum sum = add_elements(before, sum_of_lanes_up_to(own, lane));
    const Sum lower = of_lane(sum, lane > 0 ? lane - 1 : 0);
    const Sum exclusive = lane > 0 ? lower : before;
    if (i < s.size) y[step_of_sum(s, i)] = narrowed<T>(s.exclusive != 0 ? exclusive : sum);
    before = of_lane(sum, kWarpThreads - 1);
  }
}

template <typename T>
SGTC_DEVICE void cum_sum(const AxisShape& s, void* const* tensors) {
  const int64_t line = line_of_thread(s, s.threads_per_line);
  if (line < 0) return;
  const T* x = static_cast<const T*>(tensors[0]) + first_element(s, line);
  T* y = static_cast<T*>(tensors[1]) + first_element(s, line);
  if (s.threads_per_line == 1) {
    sum_line(s, x, y);
  } else {
    sum_line_by_warp(s, x, y);
  }
}

/// The champion of all lanes, in the first one; lane i has met the elements i, i + 32…
template <typename Best>
SGTC_DEVICE Best champion_of_lanes(Best best, bool select_last) {
  const uint32_t lane = thread_index() % kWarpThreads;
#pragma clang loop unroll(full)
  for (uint32_t mask = kWarpThreads / 2; mask > 0; mask /= 2) {
    const Best other = {of_lane(best.value, lane ^ mask), of_lane(best.position, lane ^ mask)};
    const bool is_first = best.position < other.position;
    Best earlier = {is_first ? best.value : other.value, is_first ? best.position : other.position};
    earlier.meet({is_first ? other.value : best.value, is_first ? other.position : best.position},
                 select_last);
    best = earlier;
  }
  return best;
}

template <bool greatest, typename T>
SGTC_DEVICE void arg_extremum(const AxisShape& s, void* const* tensors) {
  const int64_t line = line_of_thread(s, s.threads_per_line);
  if (line < 0) return;
  const T* x = static_cast<const T*>(tensors[0]) + first_element(s, line);
  const int64_t lane = s.threads_per_line == 1 ? 0 : thread_index() % kWarpThreads;
  const int64_t first = lane < s.size ? lane : s.size - 1;
  Champion<greatest, ArithmeticOf<T>> best = {widened(x[first * s.inner]), first};
  for (int64_t i = first + s.threads_per_line; i < s.size; i += s.threads_per_line) {
    best.meet({widened(x[i * s.inner]), i}, s.select_last != 0);
  }
  if (s.threads_per_line > 1) best = champion_of_lanes(best, s.select_last != 0);
  if (lane == 0) static_cast<int64_t*>(tensors[1])[line] = best.position;
}

template <typename T>
SGTC_DEVICE void arg_max(const AxisShape& s, void* const* tensors) {
  arg_extremum<true, T>(s, tensors);
}

template <typename T>
SGTC_DEVICE void arg_min(const AxisShape& s, void* const* tensors) {
  arg_extremum<false, T>(s, tensors);
}

template <typename T>
SGTC_DEVICE void top_k(const AxisShape& s, void* const* tensors) {
  const int64_t line = line_of_thread(s, 1);
  if (line < 0 || s.k == 0) return;
  const int64_t to = line / s.inner * s.k * s.inner + line % s.inner;
  select_line(s, static_cast<const T*>(tensors[0]) + first_element(s, line),
              static_cast<T*>(tensors[1]) + to, static_cast<int64_t*>(tensors[2]) + to);
}

}  // namespace
}  // namespace sgtc::gpu

#define SGTC_SCAN(entry, name, type)                                                          \
  SGTC_EXPORT void sgtc_##entry##_##name(const sgtc::kernels::AxisShape* shape, void* const*, \
                                         void* const* tensors) {                              \
    sgtc::gpu::entry<type>(*shape, tensors);                                                  \
  }
#define SGTC_SCANS(name, type)   \
  SGTC_SCAN(cum_sum, name, type) \
  SGTC_SCAN(arg_max, name, type) \
  SGTC_SCAN(arg_min, name, type) \
  SGTC_SCAN(top_k, name, type)
SGTC_FOR_EACH_NUMBER(SGTC_SCANS)
