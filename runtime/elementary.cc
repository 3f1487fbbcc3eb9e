#include "elementary.h"

#include <emmintrin.h>

#include <cmath>

namespace sgtc::runtime {
namespace {

constexpr double kTau = 6.283185307179586476925;
constexpr double kLn2 = 0.693147180559945309417;

// cos and sin of x in [-pi/4, pi/4], by their Taylor series.
double small_cosine(double x) {
  double tail = 0;
  for (int n = 18; n >= 2; n -= 2) tail = (1 - tail) * x * x / (n * (n - 1));
  return 1 - tail;
}

double small_sine(double x) {
  double tail = 0;
  for (int n = 19; n >= 3; n -= 2) tail = (1 - tail) * x * x / (n * (n - 1));
  return x * (1 - tail);
}

}  // namespace

double natural_log(double x) {
  int exponent;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double sum = 0;
  for (int n = 23; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return 2 * s * sum + exponent * kLn2;
}

void cosine_sine(double u, double& cosine, double& sine) {
  const int quarter = static_cast<int>(u * 4 + 0.5);
  const double x = (u - quarter * 0.25) * kTau;
  const double c = small_cosine(x);
  const double s = small_sine(x);
  switch (quarter & 3) {
    case 0:
      cosine = c, sine = s;
      break;
    case 1:
      cosine = -s, sine = c;
      break;
    case 2:
      cosine = -c, sine = -s;
      break;
    default:
      cosine = s, sine = -c;
      break;
  }
}

double square_root(double x) { return _mm_cvtsd_f64(_mm_sqrt_pd(_mm_set1_pd(x))); }

}  // namespace sgtc::runtime
