// The memory formats of a tensor: the values of the argument `memory_format` of clone, to, contiguous, zeros_like and
// similar functions.
#pragma once

#include <optional>
#include <string_view>

#include "rushlight/tensor.h"

namespace rushlight {

enum class MemoryFormat {
    Preserve,  // the input's strides if it is dense; else dense, with dimensions in the order of its strides
    Contiguous,  // row-major
    ChannelsLast,  // for (N, C, H, W), the channels of a pixel are adjacent
    ChannelsLast3d,  // for (N, C, D, H, W)
};

/// Returns the format called `name`. If there is none, raises a ValueError that names `op`.
RL_API MemoryFormat memory_format(const char* op, const std::optional<std::string_view>& name);

/// Whether the tensor's strides are the strides of the format. Returns false if the tensor does not have the number of
/// dimensions that the format requires.
RL_API bool has_format(const Tensor& t, MemoryFormat format);

/// Returns ChannelsLast or ChannelsLast3d if the tensor's dimensions are in the order of that format in memory,
/// otherwise Contiguous. The elements may have gaps between them. Tensors of some shapes, such as (N, 1, H, W), can be
/// in both formats. The strides of the dimensions of size 1 then determine the format, by PyTorch's rules.
RL_API MemoryFormat format_of(const Tensor& t);

/// The name of a format, in the form that memory_format() accepts.
RL_API std::string_view name(MemoryFormat format);

}  // namespace rushlight
