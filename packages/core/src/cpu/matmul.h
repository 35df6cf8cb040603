// Products of matrices and vectors. Sizes agree and outputs are row-major; inputs may have any strides.
// float32 and float64 are computed in their own precision, float16 and bfloat16 through float32, integers
// modulo 2^bits.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// out (m, n) = a (m, k) b (k, n)
void mm(KernelContext& ctx, const View& out, const View& a, const View& b);

/// out (m, n) = beta * input + alpha * a b, `input` broadcast to (m, n). With beta = 0 it is not read. Only of
/// complex matrices the numbers are complex.
void addmm(KernelContext& ctx, const View& out, const View& input, const View& a, const View& b,
           const Param& beta, const Param& alpha);

/// out (batch, m, n) = a (batch, m, k) b (batch, k, n)
void bmm(KernelContext& ctx, const View& out, const View& a, const View& b);

/// out (batch, m, n) = beta * input + alpha * a b, `input` broadcast to (batch, m, n).
void baddbmm(KernelContext& ctx, const View& out, const View& input, const View& a, const View& b,
             const Param& beta, const Param& alpha);

/// out (..., n) = input (..., k) times the transpose of weight (n, k), plus bias (n) where it is defined.
void linear(KernelContext& ctx, const View& out, const View& input, const View& weight, const View& bias);

/// out (m) = a (m, k) x (k)
void mv(KernelContext& ctx, const View& out, const View& a, const View& x);

/// out () = sum of x (k) * y (k)
void dot(KernelContext& ctx, const View& out, const View& x, const View& y);

}  // namespace rushlight::cpu
