// The orders of strides that a copy can be given: `memory_format` of clone, to, contiguous, zeros_like and similar functions.
#pragma once

#include <optional>
#include <string_view>

#include "rushlight/tensor.h"

namespace rushlight {

enum class MemoryFormat {
    Preserve,  // that of the input, where the input is dense; else dimensions in the order of its strides
    Contiguous,  // row-major
    ChannelsLast,  // of (N, C, H, W), the channels of one pixel side by side
    ChannelsLast3d,  // of (N, C, D, H, W)
};

/// The format called `name`; ValueError that names `op` if there is none.
RL_API MemoryFormat memory_format(const char* op, const std::optional<std::string_view>& name);

/// Whether the strides are those of the format; false where the format is for other numbers of dimensions.
RL_API bool has_format(const Tensor& t, MemoryFormat format);

/// channels_last or channels_last_3d where the tensor lies so and not also row-major, else contiguous.
MemoryFormat format_of(const Tensor& t);

/// The strides of a dense tensor of `sizes` whose dimensions lie in memory in the order of the operands', as PyTorch orders
/// them. operands: `count` lists of strides, one for each dimension, 0 where the operand is broadcast. Dimensions are compared
/// by the first operand in which both have strides other than 0, and keep their order where there is none.
void strides_in_order(IntList sizes, const int64_t* const* operands, int count, int64_t* strides);

/// RuntimeError where the format is for another number of dimensions than `sizes` has.
void check_format(const char* op, IntList sizes, MemoryFormat format);

/// Fresh and uninitialised.
Tensor make_in_format(IntList sizes, DType dtype, Device device, MemoryFormat format);

/// Fresh and uninitialised, of the shape of `like`. Raises as check_format does.
Tensor make_in_format(const char* op, const Tensor& like, DType dtype, Device device, MemoryFormat format);

}  // namespace rushlight
