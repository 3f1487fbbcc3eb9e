// Elementary functions of basic arithmetic alone: the same bits with every C library and CPU.
// Errors are below 4 ulp.
#pragma once

namespace sgtc::runtime {

/// ln(x) for x in (0, 1): x = m 2^e with m near 1, then the series of artanh((m-1)/(m+1)).
double natural_log(double x);

/// cos(2 pi u) and sin(2 pi u) for u in [0, 1].
void cosine_sine(double u, double& cosine, double& sine);

/// The square root, correctly rounded, without a call of the C library.
double square_root(double x);

}  // namespace sgtc::runtime
