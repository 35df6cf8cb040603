// The orders of strides of a copy: `memory_format` of clone, to, contiguous, zeros_like and similar functions.
#pragma once

#include <optional>
#include <string_view>

#include "rushlight/tensor.h"

namespace rushlight {

enum class MemoryFormat {
    Preserve,  // that of the input if the input is dense, otherwise dimensions in the order of its strides
    Contiguous,  // row-major
    ChannelsLast,  // for (N, C, H, W), the channels of a pixel are adjacent
    ChannelsLast3d,  // for (N, C, D, H, W)
};

/// Returns the format called `name`. If there is none, raises a ValueError that names `op`.
RL_API MemoryFormat memory_format(const char* op, const std::optional<std::string_view>& name);

/// Whether the strides are those of the format. Returns false if the format is for another number of dimensions.
RL_API bool has_format(const Tensor& t, MemoryFormat format);

/// Returns the channels-last format of the tensor if it has one and is not also row-major, otherwise Contiguous.
MemoryFormat format_of(const Tensor& t);

/// Computes the strides of a dense tensor of `sizes` whose dimensions have the same order in memory as in the operands, by
/// PyTorch's rules. `operands` holds `count` lists of strides, with 0 where an operand is broadcast. Two dimensions are
/// compared by the first operand in which both strides are nonzero. If there is none, the dimensions keep their order.
void strides_in_order(IntList sizes, const int64_t* const* operands, int count, int64_t* strides);

/// Raises RuntimeError if the format is for another number of dimensions than `sizes` has.
void check_format(const char* op, IntList sizes, MemoryFormat format);

/// Returns a new, uninitialised tensor.
Tensor make_in_format(IntList sizes, DType dtype, Device device, MemoryFormat format);

/// Returns a new, uninitialised tensor of the shape of `like`. Raises as check_format does.
Tensor make_in_format(const char* op, const Tensor& like, DType dtype, Device device, MemoryFormat format);

}  // namespace rushlight
