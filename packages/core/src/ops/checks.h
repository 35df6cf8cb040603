// Checks of arguments before the computation. For pointwise operators, the engine itself checks that the dtype has a loop.
// `op` is the name of the operator in errors.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight::checks {

/// Raises RuntimeError if an operand is a bool tensor.
void no_bool_tensors(const char* op, const TensorOrScalar& input, const TensorOrScalar& other, Scalar alpha);
/// Raises RuntimeError if integers are divided by the integer 0. A device raises the error for a tensor later: see
/// check_elements.
void integer_divisor(const char* op, const TensorOrScalar& input, const TensorOrScalar& other);
/// Raises RuntimeError if integers are raised to a negative power.
void integer_power(const char* op, const TensorOrScalar& input, const TensorOrScalar& exponent);
/// Raises RuntimeError if the dtypes differ, or if a tolerance is negative or NaN.
void isclose(const char* op, const Tensor& input, const Tensor& other, double rtol, double atol,
             bool equal_nan);
/// Raises RuntimeError if the dtypes differ.
void heaviside(const char* op, const Tensor& input, const Tensor& values);
/// Raises RuntimeError if the width is negative or NaN.
void softshrink(const char* op, const Tensor& input, Scalar lambd);
/// Raises RuntimeError if the input is uint8 and a limit is negative.
void hardtanh(const char* op, const Tensor& input, Scalar min_val, Scalar max_val);
/// Raises RuntimeError if `dtype`, the dtype in which a norm is computed, is not a floating or complex dtype to which the
/// input can be converted without loss: a real dtype for real inputs, a complex dtype for complex inputs. Integers can be
/// converted to every real dtype.
void norm_dtype(const char* op, const Tensor& input, DType dtype);

}  // namespace rushlight::checks
