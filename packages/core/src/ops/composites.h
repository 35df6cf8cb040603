// Bodies of kind "composite": operators made of operators. They see tensors, never memory.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight::composites {

// shape.cpp
Tensor reshape(const Tensor& input, IntList shape);
Tensor reshape_as(const Tensor& input, const Tensor& other);
Tensor flatten(const Tensor& input, int64_t start_dim, int64_t end_dim);
Tensor ravel(const Tensor& input);
Tensor unflatten(const Tensor& input, int64_t dim, IntList sizes);
Tensor contiguous(const Tensor& input, std::string_view memory_format);
std::vector<Tensor> split(const Tensor& input, int64_t split_size, int64_t dim);
std::vector<Tensor> split_sizes(const Tensor& input, IntList split_size, int64_t dim);
std::vector<Tensor> chunk(const Tensor& input, int64_t chunks, int64_t dim);
std::vector<Tensor> unbind(const Tensor& input, int64_t dim);

}  // namespace rushlight::composites
