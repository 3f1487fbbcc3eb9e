// Speed of the single-precision matrix product, with shapes as run-time values:
//   matmul_bench [size...]
#include <immintrin.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "shapes.h"

using sgtc::kernels::MatmulShape;

extern "C" {
void sgtc_matmul_f32(const MatmulShape*, void* const*, void* const*, int64_t, int64_t);

__attribute__((target("avx"))) void sgtc_tile_store(void* const* args, int64_t, int64_t row,
                                                    int64_t column, __m256 low, __m256 high,
                                                    int64_t) {
  float* to = static_cast<float*>(args[0]) + row * *static_cast<int64_t*>(args[1]) + column;
  _mm256_storeu_ps(to, low);
  _mm256_storeu_ps(to + 8, high);
}
}

namespace {

// Time of this thread, so that other work on the machine counts less.
double seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The best of several runs of an n x n x n product, in GFLOP/s. n is a multiple of 16.
double speed(int64_t n, bool transpose_a, bool transpose_b) {
  MatmulShape s = {};
  s.rows = s.columns = s.depth = n;
  s.a_row_stride = transpose_a ? 1 : n;
  s.a_depth_stride = transpose_a ? n : 1;
  s.b_depth_stride = transpose_b ? 1 : n;
  s.b_column_stride = transpose_b ? n : 1;
  s.block_rows = sgtc::kernels::kMaxBlockRows;
  s.block_columns = sgtc::kernels::kMaxBlockColumns;
  const int64_t blocks =
      ((n + s.block_rows - 1) / s.block_rows) * ((n + s.block_columns - 1) / s.block_columns);
  std::vector<float> a(static_cast<size_t>(n * n), 0.5f), b(a), c(a);
  void* args[] = {c.data(), &n};
  void* tensors[] = {a.data(), b.data(), c.data()};
  double best = 1e30;
  for (int run = 0; run < 10; ++run) {
    const double start = seconds();
    sgtc_matmul_f32(&s, args, tensors, 0, blocks);
    const double elapsed = seconds() - start;
    if (elapsed < best) best = elapsed;
  }
  return 2e-9 * static_cast<double>(n * n * n) / best;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<int64_t> sizes = {256, 512, 1024};
  if (count > 1) sizes.clear();
  for (int i = 1; i < count; ++i) sizes.push_back(std::atoll(arguments[i]));
  for (const int64_t n : sizes) {
    std::printf("%5lld  nn %6.1f  nt %6.1f  tn %6.1f  tt %6.1f GFLOP/s on one core\n",
                static_cast<long long>(n), speed(n, false, false), speed(n, false, true),
                speed(n, true, false), speed(n, true, true));
  }
}
