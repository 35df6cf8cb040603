// Numbers as elements of tensors.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight {

/// Whether an integer lies in the range of an integer dtype; true of other numbers and dtypes.
bool fits_integer(Scalar v, DType t);

/// A number as an element of dtype `t`; floats lose their fraction and negative integers wrap around in unsigned dtypes.
/// RuntimeError where it lies beyond the range, is not a number of an integer dtype, or is complex and `t` is not.
Scalar element_of(const char* op, const char* argument, Scalar value, DType t);

/// The same for `fill_` and similar functions: what is beyond the range of half precision becomes an infinity.
Scalar fill_element(Scalar value, DType t);

/// The value of a tensor of one element on the CPU.
Scalar value_of(const Tensor& t);

}  // namespace rushlight
