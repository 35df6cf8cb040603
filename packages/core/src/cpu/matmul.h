// Products of matrices and vectors. The operators have checked the sizes. Outputs are row-major; inputs may have
// any strides. float32 and float64 are computed in their own precision, float16 and bfloat16 in float32, and
// integers modulo 2^bits.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Computes out (m, n) = a (m, k) b (k, n).
void mm(KernelContext& ctx, const View& out, const View& a, const View& b);

/// Computes out (m, n) = beta * input + alpha * a b, where `input` is broadcast to (m, n). It is not read if beta
/// is 0. alpha and beta are complex only if the matrices are complex.
void addmm(KernelContext& ctx, const View& out, const View& input, const View& a, const View& b,
           const Param& beta, const Param& alpha);

/// Computes out (batch, m, n) = a (batch, m, k) b (batch, k, n).
void bmm(KernelContext& ctx, const View& out, const View& a, const View& b);

/// Computes out (batch, m, n) = beta * input + alpha * a b, where `input` is broadcast to (batch, m, n).
void baddbmm(KernelContext& ctx, const View& out, const View& input, const View& a, const View& b,
             const Param& beta, const Param& alpha);

/// Computes out (..., n) = input (..., k) times the transpose of weight (n, k), plus bias (n) if it is defined.
void linear(KernelContext& ctx, const View& out, const View& input, const View& weight, const View& bias);

/// Computes out (m) = a (m, k) x (k).
void mv(KernelContext& ctx, const View& out, const View& a, const View& x);

/// Computes out (), the sum of x (k) * y (k).
void dot(KernelContext& ctx, const View& out, const View& x, const View& y);

}  // namespace rushlight::cpu
