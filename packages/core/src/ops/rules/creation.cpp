// New tensors that are filled with one value or uninitialised.
#include "bodies/creation.h"
#include "tensor/promotion.h"

namespace rushlight::rules {
namespace {

NewTensor of_value(IntList size, Scalar value, DType dtype, Device device) {
    return NewTensor(size, dtype, device).filled_with(value);
}

NewTensor like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
               std::optional<std::string_view> format) {
    return {"empty_like", input, dtype.value_or(input.dtype()), device.value_or(input.device()),
            memory_format("empty_like", format)};
}

}  // namespace

NewTensor empty(IntList size, std::optional<DType> dtype, std::optional<Device> device,
                std::optional<std::string_view> memory_format_) {
    const MemoryFormat format =
        memory_format_ ? memory_format("empty", memory_format_) : MemoryFormat::Contiguous;
    check_format("empty", size, format);
    return {size, dtype.value_or(default_dtype()), device.value_or(Device{}), format};
}
NewTensor zeros(IntList size, std::optional<DType> dtype, std::optional<Device> device) {
    return of_value(size, Scalar(0), dtype.value_or(default_dtype()), device.value_or(Device{}));
}
NewTensor ones(IntList size, std::optional<DType> dtype, std::optional<Device> device) {
    return of_value(size, Scalar(1), dtype.value_or(default_dtype()), device.value_or(Device{}));
}
NewTensor full(IntList size, Scalar value, std::optional<DType> dtype, std::optional<Device> device) {
    return of_value(size, value, dtype.value_or(default_dtype_of(value)), device.value_or(Device{}));
}

NewTensor empty_strided(IntList size, IntList stride, std::optional<DType> dtype,
                        std::optional<Device> device) {
    RL_CHECK(size.size() == stride.size(), throw_runtime,
             "empty_strided(size, stride): %s and %s must have the same length", to_string(size).c_str(),
             to_string(stride).c_str());
    return {size, stride, dtype.value_or(default_dtype()), device.value_or(Device{})};
}
NewTensor empty_permuted(IntList size, IntList physical_layout, std::optional<DType> dtype,
                         std::optional<Device> device) {
    const auto n = static_cast<int64_t>(size.size());
    bool seen[kMaxDims] = {}, fits = physical_layout.size() == size.size() && n <= kMaxDims;
    for (int64_t d : physical_layout) {
        fits = fits && d >= 0 && d < n && !seen[d];
        if (fits) seen[d] = true;
    }
    RL_CHECK(fits, throw_runtime,
             "empty_permuted(physical_layout): must contain each of the %lld dimensions once, got %s",
             (long long)n, to_string(physical_layout).c_str());
    int64_t strides[kMaxDims], step = 1;
    for (size_t i = physical_layout.size(); i-- > 0;) {
        const auto d = static_cast<size_t>(physical_layout[i]);
        strides[d] = step;
        RL_CHECK(!__builtin_mul_overflow(step, std::max<int64_t>(size[d], 1), &step), throw_runtime,
                 "empty_permuted(size): %s has too many elements", to_string(size).c_str());
    }
    return empty_strided(size, IntList(strides, size.size()), dtype, device);
}

NewTensor empty_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                     std::optional<std::string_view> memory_format) {
    return like(input, dtype, device, memory_format);
}
NewTensor full_like(const Tensor& input, Scalar value, std::optional<DType> dtype,
                    std::optional<Device> device, std::optional<std::string_view> memory_format) {
    return like(input, dtype, device, memory_format).filled_with(value);
}
NewTensor zeros_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                     std::optional<std::string_view> memory_format) {
    return full_like(input, Scalar(0), dtype, device, memory_format);
}
NewTensor ones_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                    std::optional<std::string_view> memory_format) {
    return full_like(input, Scalar(1), dtype, device, memory_format);
}

NewTensor new_empty(const Tensor& input, IntList size, std::optional<DType> dtype,
                    std::optional<Device> device) {
    return {size, dtype.value_or(input.dtype()), device.value_or(input.device())};
}
NewTensor new_empty_strided(const Tensor& input, IntList size, IntList stride, std::optional<DType> dtype,
                            std::optional<Device> device) {
    return empty_strided(size, stride, dtype.value_or(input.dtype()), device.value_or(input.device()));
}
NewTensor new_full(const Tensor& input, IntList size, Scalar value, std::optional<DType> dtype,
                   std::optional<Device> device) {
    return of_value(size, value, dtype.value_or(input.dtype()), device.value_or(input.device()));
}
NewTensor new_zeros(const Tensor& input, IntList size, std::optional<DType> dtype,
                    std::optional<Device> device) {
    return new_full(input, size, Scalar(0), dtype, device);
}
NewTensor new_ones(const Tensor& input, IntList size, std::optional<DType> dtype,
                   std::optional<Device> device) {
    return new_full(input, size, Scalar(1), dtype, device);
}

}  // namespace rushlight::rules
