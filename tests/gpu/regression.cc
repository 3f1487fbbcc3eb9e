// The kernels of tests/runtime/regression_program.h for a GPU, with the same roundings: a run gives
// the bits of the CPU. One thread of each block works.
#include <stdint.h>

namespace {

#pragma clang fp contract(off)

constexpr int64_t kWidth = 4;
constexpr int64_t kRows = 2;
constexpr int64_t kMicroBatches = 3;

inline __attribute__((always_inline)) int64_t block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
inline __attribute__((always_inline)) bool idle() { return __nvvm_read_ptx_sreg_tid_x() != 0; }

}  // namespace

#define KERNEL extern "C" __attribute__((nvptx_kernel)) void

KERNEL forward(const float* x, const float* w, const float* y, float* residual, int64_t* status,
               int64_t) {
  if (idle()) return;
  const int64_t row = block();
  float sum = 0;
  for (int64_t i = 0; i < kWidth; ++i) sum += x[row * kWidth + i] * w[i];
  residual[row] = sum - y[row];
  if (x[row * kWidth] == 1e30F) status[0] = 1, status[1] = 7, status[2] = 5;
}

KERNEL backward(const float* x, const float* residual, float* gradient, float* loss, int64_t) {
  if (idle()) return;
  const int64_t i = block();
  for (int64_t row = 0; row < kRows; ++row) {
    gradient[i] += 2 * residual[row] * x[row * kWidth + i] / (kRows * kMicroBatches);
  }
  if (i > 0) return;
  for (int64_t row = 0; row < kRows; ++row) {
    *loss += residual[row] * residual[row] / (kRows * kMicroBatches);
  }
}

KERNEL update(float* w, float* momentum, const float* gradient, const unsigned char* control,
              float* norm, unsigned char* finite, float* updates, int64_t) {
  if (idle()) return;
  const float rate = *reinterpret_cast<const float*>(control);
  const int64_t seed = *reinterpret_cast<const int64_t*>(control + 8);
  const int64_t step = *reinterpret_cast<const int64_t*>(control + 16);
  float square = 0;
  for (int64_t i = 0; i < kWidth; ++i) square += gradient[i] * gradient[i];
  *norm = __nvvm_sqrt_rn_f(square);
  *finite = square - square == 0;
  if (!*finite) return;
  for (int64_t i = 0; i < kWidth; ++i) {
    const float noise = 1e-3F * static_cast<float>((seed * 7 + step * 3 + i) % 5);
    momentum[i] = 0.9F * momentum[i] + gradient[i] + noise;
    w[i] -= rate * momentum[i];
  }
  *updates += 1;
}

KERNEL evaluate(const float* x, const float* w, const float* y, float* prediction, float* numerator,
                int64_t) {
  if (idle()) return;
  *numerator = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    prediction[row] = 0;
    for (int64_t i = 0; i < kWidth; ++i) prediction[row] += x[row * kWidth + i] * w[i];
    const float residual = prediction[row] - y[row];
    *numerator += residual * residual;
  }
}

// Writes where nothing is.
KERNEL faulty(float* w, int64_t) {
  if (!idle()) *reinterpret_cast<volatile float*>(0x10) = *w;
}
