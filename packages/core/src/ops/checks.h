// Checks of the arguments of pointwise operators before anything is computed, other than of dtypes without a loop.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight::checks {

/// RuntimeError when an operand is a bool tensor, or all are bools.
void no_bool_tensors(const TensorOrScalar& input, const TensorOrScalar& other, Scalar alpha);
/// RuntimeError when integers are to be divided by an integer 0.
void integer_divisor(const TensorOrScalar& input, const TensorOrScalar& other);
/// RuntimeError when integers are to be raised to a negative number.
void integer_power(const TensorOrScalar& input, const TensorOrScalar& exponent);
/// RuntimeError when the dtypes differ, or a tolerance is negative.
void isclose(const Tensor& input, const Tensor& other, double rtol, double atol, bool equal_nan);
/// RuntimeError when the dtypes differ.
void heaviside(const Tensor& input, const Tensor& values);
/// RuntimeError when the width is negative or NaN.
void softshrink(const Tensor& input, Scalar lambd);
/// RuntimeError for negative limits of uint8.
void hardtanh(const Tensor& input, Scalar min_val, Scalar max_val);

}  // namespace rushlight::checks
