// Conversion between the values of C and of C++.
#pragma once

#include "c/operators.h"
#include "rushlight/c_support.h"

namespace rushlight::c {

/// Converts a value to the type of an operator's argument. Raises TypeError or ValueError if the value has another
/// type.
Value value_of(const rl_value& value, const Operator& op, const SignatureArgument& argument);
/// Converts an operator's result to an rl_value, which the caller of the C function then owns.
void hand_out(Value&& result, rl_value& value);

/// Converts an argument that must be a number. Raises TypeError for other kinds.
Scalar scalar_of(const rl_value* value, const char* function, const char* argument);
Device device_of(const rl_device& device, const char* function, const char* argument);
DType dtype_of(int64_t dtype, const char* function, const char* argument);
std::vector<Tensor> tensors_of(rl_tensor* const* tensors, size_t count, bool optional, const char* function,
                               const char* argument);
IntList integers_of(const int64_t* integers, size_t count, const char* function, const char* argument);

}  // namespace rushlight::c
