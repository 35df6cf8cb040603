// Products of matrices and vectors. The operators have checked the sizes. Outputs are row-major; inputs may have
// any strides. float32 and float64 are computed in their own precision, float16 and bfloat16 in float32, and
// integers modulo 2^bits.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Computes out = a @ b, where a is (m, k), b is (k, n) and out is (m, n).
void mm(KernelContext& ctx, const View& out, const View& a, const View& b);

/// Computes out = beta * input + alpha * a @ b, where a is (m, k), b is (k, n), out is (m, n), and `input` is broadcast
/// to (m, n). `input` is not read if beta is 0. alpha and beta are complex only if the matrices are complex.
void addmm(KernelContext& ctx, const View& out, const View& input, const View& a, const View& b,
           const Param& beta, const Param& alpha);

/// Computes out = a @ b, where a is (batch, m, k), b is (batch, k, n) and out is (batch, m, n).
void bmm(KernelContext& ctx, const View& out, const View& a, const View& b);

/// Computes out = beta * input + alpha * a @ b, where a is (batch, m, k), b is (batch, k, n), out is (batch, m, n), and
/// `input` is broadcast to (batch, m, n).
void baddbmm(KernelContext& ctx, const View& out, const View& input, const View& a, const View& b,
             const Param& beta, const Param& alpha);

/// Computes out = input @ weight^T + bias, where input is (..., k), weight is (n, k), bias is (n) and out is (..., n).
/// The bias is not added if it is undefined.
void linear(KernelContext& ctx, const View& out, const View& input, const View& weight, const View& bias);

/// Computes out = a @ x, where a is (m, k), x is (k) and out is (m).
void mv(KernelContext& ctx, const View& out, const View& a, const View& x);

/// Computes the dot product of x (k) and y (k). `out` has no dimensions.
void dot(KernelContext& ctx, const View& out, const View& x, const View& y);

}  // namespace rushlight::cpu
