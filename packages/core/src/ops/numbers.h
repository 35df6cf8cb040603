// Numbers as elements of tensors.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight {

/// Whether an integer lies in the range of an integer dtype; true of other numbers and dtypes.
bool fits_integer(Scalar v, DType t);

/// Converts a number to an element of dtype `t`. In integer dtypes, floats lose their fraction; in unsigned ones,
/// negative integers wrap around. Raises RuntimeError if the number is out of range, is infinite or NaN and `t` is an
/// integer dtype, or has an imaginary part and `t` is not complex.
Scalar element_of(const char* op, const char* argument, Scalar value, DType t);

/// The same for `fill_` and similar functions: what is beyond the range of half precision becomes an infinity.
Scalar fill_element(Scalar value, DType t);

/// An integer tensor as int64, in which sums and differences of smaller integers do not wrap around; other tensors, and those
/// of uint64, as they are.
Tensor as_int64_if_integral(const Tensor& t);

/// The value of a tensor of one element on the CPU.
Scalar value_of(const Tensor& t);

}  // namespace rushlight
