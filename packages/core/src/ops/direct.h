// Bodies of kind "direct": operators that make their own tensors.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight::direct {

// copy.cpp
Tensor copy_(const Tensor& input, const Tensor& src, bool non_blocking);
Tensor clone(const Tensor& input, std::optional<std::string_view> memory_format);
Tensor detach(const Tensor& input);
Tensor view_dtype(const Tensor& input, DType dtype);
Tensor _to_copy(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device);

// creation.cpp
Tensor empty(IntList size, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad);
Tensor zeros(IntList size, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad);
Tensor ones(IntList size, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad);
Tensor full(IntList size, Scalar fill_value, std::optional<DType> dtype, std::optional<Device> device,
            bool requires_grad);
Tensor empty_strided(IntList size, IntList stride, std::optional<DType> dtype, std::optional<Device> device,
                     bool requires_grad);
Tensor empty_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                  bool requires_grad, std::optional<std::string_view> memory_format);
Tensor zeros_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                  bool requires_grad, std::optional<std::string_view> memory_format);
Tensor ones_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                 bool requires_grad, std::optional<std::string_view> memory_format);
Tensor full_like(const Tensor& input, Scalar fill_value, std::optional<DType> dtype,
                 std::optional<Device> device, bool requires_grad,
                 std::optional<std::string_view> memory_format);
Tensor new_empty(const Tensor& input, IntList size, std::optional<DType> dtype, std::optional<Device> device,
                 bool requires_grad);
Tensor new_zeros(const Tensor& input, IntList size, std::optional<DType> dtype, std::optional<Device> device,
                 bool requires_grad);
Tensor new_ones(const Tensor& input, IntList size, std::optional<DType> dtype, std::optional<Device> device,
                bool requires_grad);
Tensor new_full(const Tensor& input, IntList size, Scalar fill_value, std::optional<DType> dtype,
                std::optional<Device> device, bool requires_grad);
Tensor fill_(const Tensor& input, Scalar value);
Tensor fill__tensor(const Tensor& input, const Tensor& value);
Tensor zero_(const Tensor& input);

// ranges.cpp
Tensor arange(Scalar end, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad);
Tensor arange_start(Scalar start, Scalar end, Scalar step, std::optional<DType> dtype,
                    std::optional<Device> device, bool requires_grad);
Tensor linspace(Scalar start, Scalar end, int64_t steps, std::optional<DType> dtype,
                std::optional<Device> device, bool requires_grad);
Tensor eye(int64_t n, std::optional<int64_t> m, std::optional<DType> dtype, std::optional<Device> device,
           bool requires_grad);

// view_backward.cpp
Tensor select_backward(const Tensor& grad, IntList input_sizes, int64_t dim, int64_t index);
Tensor slice_backward(const Tensor& grad, IntList input_sizes, int64_t dim, std::optional<int64_t> start,
                      std::optional<int64_t> end, int64_t step);
Tensor narrow_backward(const Tensor& grad, IntList input_sizes, int64_t dim, int64_t start, int64_t length);
Tensor diagonal_backward(const Tensor& grad, IntList input_sizes, int64_t offset, int64_t dim1, int64_t dim2);
Tensor unfold_backward(const Tensor& grad, IntList input_sizes, int64_t dimension, int64_t size,
                       int64_t step);

// joining.cpp
Tensor cat(TensorList tensors, int64_t dim);

// indexing.cpp
Tensor index(const Tensor& input, TensorList indices);
Tensor index_backward(const Tensor& grad, IntList input_sizes, TensorList indices);
Tensor index_put_(const Tensor& input, TensorList indices, const Tensor& values, bool accumulate);
Tensor nonzero(const Tensor& input);
std::vector<Tensor> nonzero_as_tuple(const Tensor& input, bool as_tuple);
Tensor index_select(const Tensor& input, int64_t dim, const Tensor& index);
Tensor index_add_(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha);
Tensor gather(const Tensor& input, int64_t dim, const Tensor& index, bool sparse_grad);
Tensor scatter_(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src);
Tensor scatter__value(const Tensor& input, int64_t dim, const Tensor& index, Scalar value);
Tensor scatter_add_(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src);

// padding.cpp
Tensor constant_pad_nd(const Tensor& input, IntList pad, Scalar value);

// order.cpp
std::tuple<Tensor, Tensor> sort(const Tensor& input, int64_t dim, bool descending, bool);
std::tuple<Tensor, Tensor> topk(const Tensor& input, int64_t k, int64_t dim, bool largest, bool);
Tensor cumsum(const Tensor& input, int64_t dim, std::optional<DType> dtype);
Tensor cumprod(const Tensor& input, int64_t dim, std::optional<DType> dtype);
Tensor tril(const Tensor& input, int64_t diagonal);
Tensor triu(const Tensor& input, int64_t diagonal);
Tensor flip(const Tensor& input, IntList dims);
Tensor _repeat_index(const Tensor& repeats, int64_t size);

}  // namespace rushlight::direct
