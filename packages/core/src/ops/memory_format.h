// Strides and new tensors in memory formats.
#pragma once

#include "rushlight/memory_format.h"

namespace rushlight {

/// Computes the strides of a dense tensor of `sizes` whose dimensions have the same order in memory as in the operands, by
/// PyTorch's rules. `operands` holds `count` lists of strides, with 0 where an operand is broadcast. Two dimensions are
/// compared by the first operand in which both strides are nonzero. If there is none, the dimensions keep their order.
void strides_in_order(IntList sizes, const int64_t* const* operands, int count, int64_t* strides);

/// Computes the strides of a dense tensor of at least two dimensions whose second dimension varies fastest in memory.
void channels_last_strides(IntList sizes, int64_t* strides);

/// Raises RuntimeError if the format is for another number of dimensions than `sizes` has.
void check_format(const char* op, IntList sizes, MemoryFormat format);

/// Returns a new, uninitialised tensor.
Tensor make_in_format(IntList sizes, DType dtype, Device device, MemoryFormat format);

/// Returns a new, uninitialised tensor of the shape of `like`. Raises the same error as check_format.
Tensor make_in_format(const char* op, const Tensor& like, DType dtype, Device device, MemoryFormat format);

}  // namespace rushlight
