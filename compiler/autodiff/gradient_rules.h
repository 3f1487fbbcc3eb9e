// The rules behind the table of gradients.cc, one function per operator or family.
#pragma once

#include "autodiff/gradients.h"

namespace sgtc::gradient {

/// Piecewise constant operators: the gradient is zero.
void zero(Backward& b);

// elementwise_rules.cc
void neg(Backward& b);
void abs(Backward& b);
void exp(Backward& b);
void log(Backward& b);
void sqrt(Backward& b);
void rsqrt(Backward& b);
void reciprocal(Backward& b);
void sin(Backward& b);
void cos(Backward& b);
void tan(Backward& b);
void asin(Backward& b);
void acos(Backward& b);
void atan(Backward& b);
void sinh(Backward& b);
void cosh(Backward& b);
void tanh(Backward& b);
void asinh(Backward& b);
void acosh(Backward& b);
void atanh(Backward& b);
void erf(Backward& b);
void sigmoid(Backward& b);
void softplus(Backward& b);
void cast(Backward& b);

// arithmetic_rules.cc
void add(Backward& b);
void sub(Backward& b);
void mul(Backward& b);
void div(Backward& b);
void pow(Backward& b);
void mod(Backward& b);
void max(Backward& b);
void min(Backward& b);
void where(Backward& b);

// movement_rules.cc
void reshape(Backward& b);
void transpose(Backward& b);
void broadcast(Backward& b);
void slice(Backward& b);
void pad(Backward& b);
void concat(Backward& b);

// indexing_rules.cc
void gather(Backward& b);
void gather_elements(Backward& b);
void gather_nd(Backward& b);
void pick(Backward& b);
void scatter_add(Backward& b);
void scatter_elements(Backward& b);
void scatter_nd(Backward& b);

// reduction_rules.cc
void reduce_sum(Backward& b);
void reduce_max(Backward& b);
void reduce_min(Backward& b);
void reduce_prod(Backward& b);
void cum_sum(Backward& b);
void top_k(Backward& b);

// contraction_rules.cc
void matmul(Backward& b);
void conv(Backward& b);
void conv_input_grad(Backward& b);
void max_pool(Backward& b);
void average_pool(Backward& b);

// composition_rules.cc
void softmax(Backward& b);
void log_softmax(Backward& b);
void normalize(Backward& b);
void attention(Backward& b);
void accumulate(Backward& b);

}  // namespace sgtc::gradient
