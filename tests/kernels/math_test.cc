// The math library against MPFR: special values, random bit patterns and dense ranges.
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "support/catch.h"

extern "C" {
#define SGTC_DECLARE_UNARY(name)                               \
  void sgtc_##name##_array_f32(const float*, float*, int64_t); \
  void sgtc_##name##_array_f64(const double*, double*, int64_t);
#define SGTC_DECLARE_BINARY(name)                                            \
  void sgtc_##name##_array_f32(const float*, const float*, float*, int64_t); \
  void sgtc_##name##_array_f64(const double*, const double*, double*, int64_t);
SGTC_DECLARE_UNARY(exp)
SGTC_DECLARE_UNARY(log)
SGTC_DECLARE_UNARY(sigmoid)
SGTC_DECLARE_UNARY(softplus)
SGTC_DECLARE_UNARY(tanh)
SGTC_DECLARE_UNARY(erf)
SGTC_DECLARE_UNARY(sin)
SGTC_DECLARE_UNARY(cos)
SGTC_DECLARE_UNARY(tan)
SGTC_DECLARE_UNARY(asin)
SGTC_DECLARE_UNARY(acos)
SGTC_DECLARE_UNARY(atan)
SGTC_DECLARE_UNARY(sinh)
SGTC_DECLARE_UNARY(cosh)
SGTC_DECLARE_UNARY(asinh)
SGTC_DECLARE_UNARY(acosh)
SGTC_DECLARE_UNARY(atanh)
SGTC_DECLARE_BINARY(pow)
SGTC_DECLARE_BINARY(fmod)
}

namespace {

// An MPFR number that frees itself.
class Real {
 public:
  Real() { mpfr_init2(value_, 200); }
  ~Real() { mpfr_clear(value_); }
  Real(const Real&) = delete;
  Real& operator=(const Real&) = delete;
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

using UnaryOracle = void (*)(mpfr_ptr result, mpfr_srcptr x);
using BinaryOracle = void (*)(mpfr_ptr result, mpfr_srcptr x, mpfr_srcptr y);

template <int (*F)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t)>
void oracle(mpfr_ptr result, mpfr_srcptr x) {
  F(result, x, MPFR_RNDN);
}

void sigmoid_oracle(mpfr_ptr result, mpfr_srcptr x) {
  mpfr_neg(result, x, MPFR_RNDN);
  mpfr_exp(result, result, MPFR_RNDN);
  mpfr_add_ui(result, result, 1, MPFR_RNDN);
  mpfr_ui_div(result, 1, result, MPFR_RNDN);
}

// Far to the right, where exp(x) leaves even MPFR's range, softplus(x) is x.
void softplus_oracle(mpfr_ptr result, mpfr_srcptr x) {
  if (mpfr_cmp_si(x, 200) > 0) {
    mpfr_set(result, x, MPFR_RNDN);
    return;
  }
  mpfr_exp(result, x, MPFR_RNDN);
  mpfr_log1p(result, result, MPFR_RNDN);
}

void pow_oracle(mpfr_ptr result, mpfr_srcptr x, mpfr_srcptr y) {
  mpfr_pow(result, x, y, MPFR_RNDN);
}

void fmod_oracle(mpfr_ptr result, mpfr_srcptr x, mpfr_srcptr y) {
  mpfr_fmod(result, x, y, MPFR_RNDN);
}

// The distance of two neighbouring numbers of type T at |exact|.
template <typename T>
double unit_in_last_place(double exact) {
  const int least = std::numeric_limits<T>::min_exponent - 1;
  const int exponent = exact == 0 ? least : std::max(std::ilogb(exact), least);
  return std::ldexp(1.0, exponent - (std::numeric_limits<T>::digits - 1));
}

// Error of `got` in units in the last place; 0 for equal special values, infinite when only one of
// them is NaN or infinite.
template <typename T>
double error_in_units(T got, mpfr_ptr exact) {
  const T rounded = sizeof(T) == 4 ? static_cast<T>(mpfr_get_flt(exact, MPFR_RNDN))
                                   : static_cast<T>(mpfr_get_d(exact, MPFR_RNDN));
  if (std::isnan(rounded) || std::isnan(got)) {
    return std::isnan(rounded) && std::isnan(got) ? 0 : INFINITY;
  }
  if (std::isinf(rounded) || std::isinf(got)) {
    if (rounded == got) return 0;
    // The last finite number is as good as infinity just above it, and the reverse.
    const T largest = std::numeric_limits<T>::max();
    return std::fabs(rounded) >= largest && std::fabs(got) >= largest ? 1 : INFINITY;
  }
  Real difference;
  mpfr_set_d(difference.get(), static_cast<double>(got), MPFR_RNDN);
  mpfr_sub(difference.get(), difference.get(), exact, MPFR_RNDN);
  // Divided in MPFR, because the unit itself may be subnormal.
  mpfr_div_d(difference.get(), difference.get(),
             unit_in_last_place<T>(mpfr_get_d(exact, MPFR_RNDZ)), MPFR_RNDN);
  return std::fabs(mpfr_get_d(difference.get(), MPFR_RNDN));
}

template <typename T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
std::vector<T> special_values() {
  using L = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           T(0.5),
                           1,
                           2,
                           3,
                           T(1e-8),
                           90,
                           T(88.8),
                           T(0.785398),
                           T(1.5708),
                           T(1e-20),
                           T(0.9),
                           L::min(),
                           L::denorm_min(),
                           L::max(),
                           L::infinity(),
                           L::quiet_NaN(),
                           T(0.41421356),
                           T(0.63),
                           T(22),
                           T(709.9),
                           T(746),
                           T(103.5),
                           T(0.99999994),
                           T(1.0000001),
                           T(1e10),
                           T(16777217),
                           T(6),
                           T(3.95)};
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  while (values.size() % 16 != 0) values.push_back(1);
  return values;
}

// Special values, random bit patterns and uniform numbers in [low, high].
template <typename T>
std::vector<T> inputs(double low, double high, uint64_t seed, size_t count = 16000) {
  std::vector<T> values = special_values<T>();
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  for (size_t i = 0; i < count; ++i) {
    values.push_back(i % 4 == 0 ? from_bits<T>(random() >> (64 - 8 * sizeof(T)))
                                : static_cast<T>(uniform(random)));
  }
  while (values.size() % 16 != 0) values.push_back(1);
  return values;
}

template <typename T>
struct Worst {
  double error = 0;
  T x = 0;
  T y = 0;
  T got = 0;
};

template <typename T>
Worst<T> worst_of(const std::vector<T>& xs, const std::vector<T>& results, UnaryOracle exact) {
  Worst<T> worst;
  Real x, result;
  for (size_t i = 0; i < xs.size(); ++i) {
    mpfr_set_d(x.get(), xs[i], MPFR_RNDN);
    exact(result.get(), x.get());
    const double error = error_in_units(results[i], result.get());
    if (error > worst.error) worst = {error, xs[i], 0, results[i]};
  }
  return worst;
}

template <typename T>
Worst<T> worst_of(const std::vector<T>& xs, const std::vector<T>& ys, const std::vector<T>& results,
                  BinaryOracle exact) {
  Worst<T> worst;
  Real x, y, result;
  for (size_t i = 0; i < xs.size(); ++i) {
    mpfr_set_d(x.get(), xs[i], MPFR_RNDN);
    mpfr_set_d(y.get(), ys[i], MPFR_RNDN);
    exact(result.get(), x.get(), y.get());
    const double error = error_in_units(results[i], result.get());
    if (error > worst.error) worst = {error, xs[i], ys[i], results[i]};
  }
  return worst;
}

struct UnaryCase {
  std::string name;
  void (*single)(const float*, float*, int64_t);
  void (*twice)(const double*, double*, int64_t);
  UnaryOracle exact;
  double low;
  double high;
  double single_units;
};

#define SGTC_CASE(name, exact, low, high, units) \
  UnaryCase { #name, sgtc_##name##_array_f32, sgtc_##name##_array_f64, exact, low, high, units }

const UnaryCase kUnaryCases[] = {
    SGTC_CASE(exp, oracle<mpfr_exp>, -110, 100, 2),
    SGTC_CASE(log, oracle<mpfr_log>, 0, 4, 2),
    SGTC_CASE(sigmoid, sigmoid_oracle, -110, 30, 2),
    SGTC_CASE(softplus, softplus_oracle, -110, 30, 2),
    SGTC_CASE(tanh, oracle<mpfr_tanh>, -3, 3, 2),
    SGTC_CASE(erf, oracle<mpfr_erf>, -6, 6, 4),
    SGTC_CASE(sin, oracle<mpfr_sin>, -100, 100, 2),
    SGTC_CASE(cos, oracle<mpfr_cos>, -100, 100, 2),
    SGTC_CASE(tan, oracle<mpfr_tan>, -100, 100, 2),
    SGTC_CASE(asin, oracle<mpfr_asin>, -1, 1, 2),
    SGTC_CASE(acos, oracle<mpfr_acos>, -1, 1, 2),
    SGTC_CASE(atan, oracle<mpfr_atan>, -5, 5, 2),
    SGTC_CASE(sinh, oracle<mpfr_sinh>, -100, 100, 2),
    SGTC_CASE(cosh, oracle<mpfr_cosh>, -100, 100, 2),
    SGTC_CASE(asinh, oracle<mpfr_asinh>, -10, 10, 2),
    SGTC_CASE(acosh, oracle<mpfr_acosh>, 1, 10, 2),
    SGTC_CASE(atanh, oracle<mpfr_atanh>, -1, 1, 2),
};

}  // namespace

TEST_CASE("single-precision functions stay within their bound") {
  for (const UnaryCase& c : kUnaryCases) {
    const std::vector<float> xs = inputs<float>(c.low, c.high, 1);
    std::vector<float> results(xs.size(), NAN);
    c.single(xs.data(), results.data(), static_cast<int64_t>(xs.size() / 16));
    const Worst<float> worst = worst_of(xs, results, c.exact);
    INFO(c.name << "(" << worst.x << ") gave " << worst.got);
    CHECK(worst.error <= c.single_units);
  }
}

TEST_CASE("double-precision functions stay within four units") {
  for (const UnaryCase& c : kUnaryCases) {
    for (const double widening : {1.0, 7.0}) {
      const bool bounded = c.name == "asin" || c.name == "acos" || c.name == "atanh";
      const double factor = bounded ? 1 : widening;
      const std::vector<double> xs = inputs<double>(c.low * factor, c.high * factor, 2, 6000);
      std::vector<double> results(xs.size(), NAN);
      c.twice(xs.data(), results.data(), static_cast<int64_t>(xs.size()));
      const Worst<double> worst = worst_of(xs, results, c.exact);
      INFO(c.name << "(" << worst.x << ") gave " << worst.got);
      CHECK(worst.error <= 4);
    }
  }
}

TEST_CASE("small arguments keep their relative accuracy") {
  for (const UnaryCase& c : kUnaryCases) {
    const std::vector<float> xs = inputs<float>(-1e-3, 1e-3, 3, 3000);
    std::vector<float> results(xs.size(), NAN);
    c.single(xs.data(), results.data(), static_cast<int64_t>(xs.size() / 16));
    const std::vector<double> wide = inputs<double>(-1e-3, 1e-3, 3, 3000);
    std::vector<double> wide_results(wide.size(), NAN);
    c.twice(wide.data(), wide_results.data(), static_cast<int64_t>(wide.size()));
    INFO(c.name);
    CHECK(worst_of(xs, results, c.exact).error <= c.single_units);
    CHECK(worst_of(wide, wide_results, c.exact).error <= 4);
  }
}

TEST_CASE("odd functions keep the sign of zero") {
  for (const UnaryCase& c : kUnaryCases) {
    float zeros[16], results[16];
    std::fill(zeros, zeros + 16, -0.0f);
    c.single(zeros, results, 1);
    double zero = -0.0, result = NAN;
    c.twice(&zero, &result, 1);
    if (results[0] != 0 || c.name == "acosh") continue;
    INFO(c.name);
    CHECK(std::signbit(results[0]));
    CHECK(std::signbit(result));
  }
}

TEST_CASE("pow stays within four units and follows IEEE 754 in the special cases") {
  const std::vector<float> special = special_values<float>();
  std::vector<float> xs, ys;
  for (float x : special) {
    for (float y : special) xs.push_back(x), ys.push_back(y);
  }
  const std::vector<float> more_x = inputs<float>(-4, 4, 4), more_y = inputs<float>(-20, 20, 5);
  xs.insert(xs.end(), more_x.begin(), more_x.end());
  ys.insert(ys.end(), more_y.begin(), more_y.end());
  for (int i = 0; i < 1600; ++i) xs.push_back(-2.5f + 0.003f * i), ys.push_back(i % 9 - 4);
  std::vector<float> results(xs.size(), 7);
  sgtc_pow_array_f32(xs.data(), ys.data(), results.data(), static_cast<int64_t>(xs.size() / 16));
  const Worst<float> worst = worst_of(xs, ys, results, pow_oracle);
  INFO("pow(" << worst.x << ", " << worst.y << ") gave " << worst.got);
  CHECK(worst.error <= 4);
}

TEST_CASE("pow in double precision stays within four units") {
  const std::vector<double> special = special_values<double>();
  std::vector<double> xs, ys;
  for (double x : special) {
    for (double y : special) xs.push_back(x), ys.push_back(y);
  }
  const std::vector<double> more_x = inputs<double>(0, 4, 6, 20000);
  const std::vector<double> more_y = inputs<double>(-900, 900, 7, 20000);
  xs.insert(xs.end(), more_x.begin(), more_x.end());
  ys.insert(ys.end(), more_y.begin(), more_y.end());
  std::vector<double> results(xs.size(), 7);
  sgtc_pow_array_f64(xs.data(), ys.data(), results.data(), static_cast<int64_t>(xs.size()));
  const Worst<double> worst = worst_of(xs, ys, results, pow_oracle);
  INFO("pow(" << worst.x << ", " << worst.y << ") gave " << worst.got);
  CHECK(worst.error <= 4);
}

TEST_CASE("fmod is exact") {
  const std::vector<float> special = special_values<float>();
  std::vector<float> xs, ys;
  for (float x : special) {
    for (float y : special) xs.push_back(x), ys.push_back(y);
  }
  const std::vector<float> more_x = inputs<float>(-1e6, 1e6, 8), more_y = inputs<float>(-9, 9, 9);
  xs.insert(xs.end(), more_x.begin(), more_x.end());
  ys.insert(ys.end(), more_y.begin(), more_y.end());
  std::vector<float> results(xs.size(), 7);
  sgtc_fmod_array_f32(xs.data(), ys.data(), results.data(), static_cast<int64_t>(xs.size() / 16));
  const Worst<float> worst = worst_of(xs, ys, results, fmod_oracle);
  INFO("fmod(" << worst.x << ", " << worst.y << ") gave " << worst.got);
  CHECK(worst.error == 0);

  const std::vector<double> wide_x = inputs<double>(-1e9, 1e9, 10, 20000);
  const std::vector<double> wide_y = inputs<double>(-9, 9, 11, 20000);
  std::vector<double> wide(wide_x.size(), 7);
  sgtc_fmod_array_f64(wide_x.data(), wide_y.data(), wide.data(),
                      static_cast<int64_t>(wide_x.size()));
  CHECK(worst_of(wide_x, wide_y, wide, fmod_oracle).error == 0);
}
