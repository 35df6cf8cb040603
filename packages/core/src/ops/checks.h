// Checks of the arguments of pointwise operators before the computation. The engine itself checks that the dtype has a loop.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight::checks {

/// Raises RuntimeError if an operand is a bool tensor.
void no_bool_tensors(const TensorOrScalar& input, const TensorOrScalar& other, Scalar alpha);
/// Raises RuntimeError if integers are divided by the integer 0.
void integer_divisor(const TensorOrScalar& input, const TensorOrScalar& other);
/// Raises RuntimeError if integers are raised to a negative power.
void integer_power(const TensorOrScalar& input, const TensorOrScalar& exponent);
/// Raises RuntimeError if the dtypes differ, or if a tolerance is negative.
void isclose(const Tensor& input, const Tensor& other, double rtol, double atol, bool equal_nan);
/// Raises RuntimeError if the dtypes differ.
void heaviside(const Tensor& input, const Tensor& values);
/// Raises RuntimeError if the width is negative or NaN.
void softshrink(const Tensor& input, Scalar lambd);
/// Raises RuntimeError if the input is uint8 and a limit is negative.
void hardtanh(const Tensor& input, Scalar min_val, Scalar max_val);

}  // namespace rushlight::checks
