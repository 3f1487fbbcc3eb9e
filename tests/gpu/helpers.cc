// Kernels that make inputs and compare outputs on the device.
#include "gpu/helpers.h"

#include "gpu/random_elements.h"

namespace sgtc::testing {
namespace {

inline __attribute__((always_inline)) uint64_t first_index() {
  return static_cast<uint64_t>(__nvvm_read_ptx_sreg_ctaid_x()) * kHelperThreads +
         __nvvm_read_ptx_sreg_tid_x();
}
inline __attribute__((always_inline)) uint64_t index_step() {
  return static_cast<uint64_t>(__nvvm_read_ptx_sreg_nctaid_x()) * kHelperThreads;
}
inline __attribute__((always_inline)) void add(uint64_t* count, uint64_t value) {
  if (value != 0) __atomic_fetch_add(count, value, __ATOMIC_RELAXED);
}

}  // namespace

extern "C" __attribute__((nvptx_kernel)) void fill_random(FillParameters p) {
  for (uint64_t i = first_index(); i < p.count; i += index_step()) {
    p.elements[i] = random_element(p.seed, i, p.scale);
  }
}

extern "C" __attribute__((nvptx_kernel)) void count_poison(PoisonParameters p) {
  uint64_t unwritten = 0, overwritten = 0;
  for (uint64_t i = first_index(); i < p.rows * p.stride; i += index_step()) {
    const bool is_poison = p.elements[i] == kPoison;
    const bool is_padding = i % p.stride >= p.columns;
    unwritten += is_poison && !is_padding;
    overwritten += !is_poison && is_padding;
  }
  add(p.counts, unwritten);
  add(p.counts + 1, overwritten);
}

extern "C" __attribute__((nvptx_kernel)) void count_differences(DifferenceParameters p) {
  uint64_t differences = 0;
  for (uint64_t i = first_index(); i < p.words; i += index_step()) differences += p.a[i] != p.b[i];
  add(p.counts, differences);
}

}  // namespace sgtc::testing
