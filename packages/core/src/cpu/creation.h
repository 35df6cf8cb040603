// The elements of new tensors: one value, or a rule by their number.
#pragma once

#include "rushlight/kernel.h"
#include "rushlight/scalar.h"

namespace rushlight::cpu {

/// `value`, converted, into every element.
void fill(const View& out, Scalar value);

/// A tensor of one dimension: start + i * step, in int64 if both are integers, else in float64.
void range(const View& out, Scalar start, Scalar step);
/// A tensor of one dimension: from `first` to `last` in equal steps, in float64 or complex128. Values are computed from
/// the nearer end, so that the last is exactly `last`.
void steps(const View& out, Scalar first, Scalar last);
/// base to the powers that `steps` gives.
void powers(const View& out, Scalar base, Scalar first, Scalar last);

/// A tensor of two dimensions: ones on the diagonal, else zeros.
void eye(const View& out);

}  // namespace rushlight::cpu
