// Conversion of numbers to elements of tensors.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight {

/// Whether an integer is in the range of an integer dtype. Returns true for other numbers and other dtypes.
bool fits_integer(Scalar v, DType t);

/// The largest finite number of a floating-point dtype, or of the parts of a complex dtype.
double largest_number(DType t);

/// Converts a number to an element of dtype `t`. An integer dtype truncates floats, and in an unsigned dtype negative
/// integers wrap around. Raises RuntimeError if the number is out of range, if it is infinite or NaN and `t` is an integer
/// dtype, or if it has an imaginary part and `t` is not complex.
Scalar element_of(const char* op, const char* argument, Scalar value, DType t);

/// Converts a 0-d tensor to dtype `t`. Raises like element_of for a tensor on the CPU, whose number can be read without
/// waiting; the number of a tensor on another device is converted as in a copy.
Tensor element_tensor(const char* op, const char* argument, const Tensor& value, DType t);

/// Converts like element_of, for `fill_` and similar functions: values beyond the range of half precision become infinite.
Scalar fill_element(Scalar value, DType t);

/// Returns an integer tensor as int64, so that sums and differences of small integers do not wrap around. Other tensors, and
/// uint64 tensors, are returned unchanged.
Tensor as_int64_if_integral(const Tensor& t);

/// Returns the value of a tensor of one element on the CPU.
Scalar value_of(const Tensor& t);

}  // namespace rushlight
