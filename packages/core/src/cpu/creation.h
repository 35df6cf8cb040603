// Fills new tensors with one value, or with a function of the element's index.
#pragma once

#include "rushlight/kernel.h"
#include "rushlight/scalar.h"

namespace rushlight::cpu {

/// Writes `value`, converted to the tensor's dtype, to every element.
void fill(const View& out, Scalar value);

/// Writes start + i * step to element i of a one-dimensional tensor, for every i. The values are computed in int64 if
/// both numbers are integers, otherwise in float64.
void range(const View& out, Scalar start, Scalar step);
/// Writes values from `first` to `last` in equal steps to a one-dimensional tensor. Each value is computed in float64
/// or complex128 from the nearer of the two ends, so that the last value is exactly `last`.
void steps(const View& out, Scalar first, Scalar last);
/// Writes powers of `base` to a one-dimensional tensor. The exponents are the values that `steps` would write.
void powers(const View& out, Scalar base, Scalar first, Scalar last);

/// Writes ones to the diagonal of a two-dimensional tensor, and zeros elsewhere.
void eye(const View& out);

}  // namespace rushlight::cpu
