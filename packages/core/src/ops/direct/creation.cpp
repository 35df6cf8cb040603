// Tensors of one value.
#include <cmath>
#include <cstring>

#include "bodies/creation.h"
#include "ops/memory_format.h"
#include "ops/pointwise.h"
#include "rushlight/backend.h"

namespace rushlight::direct {
namespace {

Tensor finish(Tensor t, bool requires_grad) {
    if (requires_grad) t.set_requires_grad(true);
    return t;
}

// The numbers that are written. Those beyond the range of half precision become infinities.
Scalar checked(Scalar value, DType t) {
    const bool half = t == DType::Float16 || t == DType::BFloat16;
    return element_of("fill", "value", value, half ? DType::Float32 : t);
}

// Below all stages and without a version: the tensor is new, or the caller has counted the write.
void write(const Tensor& t, Scalar number) {
    const Scalar value = checked(number, t.dtype());
    if (t.numel() == 0 || t.device().type == DeviceType::Meta) return;
    bool zero = value.is_floating() ? value.to<double>() == 0 && !std::signbit(value.to<double>())
                                    : !value.is_complex() && value.equals(0);
    if (zero && t.device().type == DeviceType::CPU && t.impl()->has(Flag::Dense)) {
        std::memset(t.impl()->data(), 0, static_cast<size_t>(t.numel()) * itemsize(t.dtype()));
        return;
    }
    // Through the widest type of its category, so that the conversion is the one that copies use.
    const DType wide = value.dtype();
    Tensor one = make_scalar(value, wide);
    if (wide != t.dtype() && t.numel() > 64 && t.device().type == DeviceType::CPU) {  // converted once
        Tensor converted = make_tensor({}, t.dtype());
        copy_into(converted, one);
        one = converted;
    }
    copy_into(t, one);
}

Tensor filled(IntList size, Scalar value, DType dtype, Device device, bool requires_grad) {
    Tensor t = make_tensor(size, dtype, resolve(device));
    write(t, value);
    return finish(std::move(t), requires_grad);
}

Tensor like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
            std::optional<std::string_view> format) {
    Device d = device ? resolve(*device) : input.device();
    return make_in_format("empty_like", input, dtype.value_or(input.dtype()), d,
                          memory_format("empty_like", format));
}

DType dtype_of(Scalar value) {
    if (value.is_complex()) return complex_dtype(default_dtype());
    return value.is_floating() ? default_dtype() : value.dtype();
}

}  // namespace

Tensor empty(IntList size, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad,
             std::optional<std::string_view> memory_format_) {
    const MemoryFormat format =
        memory_format_ ? memory_format("empty", memory_format_) : MemoryFormat::Contiguous;
    const size_t dims = format == MemoryFormat::ChannelsLast ? 4 : 5;
    RL_CHECK(size.size() == dims || format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve,
             throw_runtime, "empty(memory_format): %.*s is for tensors of %zu dimensions, got shape %s",
             int(memory_format_->size()), memory_format_->data(), dims, to_string(size).c_str());
    return finish(
        make_in_format(size, dtype.value_or(default_dtype()), resolve(device.value_or(Device{})), format),
        requires_grad);
}
Tensor new_empty_strided(const Tensor& input, IntList size, IntList stride, std::optional<DType> dtype,
                         std::optional<Device> device, bool requires_grad) {
    return empty_strided(size, stride, dtype.value_or(input.dtype()), device.value_or(input.device()),
                         requires_grad);
}
Tensor zeros(IntList size, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
    return filled(size, Scalar(0), dtype.value_or(default_dtype()), device.value_or(Device{}), requires_grad);
}
Tensor ones(IntList size, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
    return filled(size, Scalar(1), dtype.value_or(default_dtype()), device.value_or(Device{}), requires_grad);
}
Tensor full(IntList size, Scalar value, std::optional<DType> dtype, std::optional<Device> device,
            bool requires_grad) {
    return filled(size, value, dtype.value_or(dtype_of(value)), device.value_or(Device{}), requires_grad);
}
Tensor empty_strided(IntList size, IntList stride, std::optional<DType> dtype, std::optional<Device> device,
                     bool requires_grad) {
    RL_CHECK(size.size() == stride.size(), throw_runtime,
             "empty_strided(size, stride): %s and %s must have the same length", to_string(size).c_str(),
             to_string(stride).c_str());
    return finish(
        make_strided(size, stride, dtype.value_or(default_dtype()), resolve(device.value_or(Device{}))),
        requires_grad);
}

Tensor empty_permuted(IntList size, IntList physical_layout, std::optional<DType> dtype,
                      std::optional<Device> device, bool requires_grad) {
    const auto n = static_cast<int64_t>(size.size());
    bool seen[kMaxDims] = {}, fits = physical_layout.size() == size.size() && n <= kMaxDims;
    for (int64_t d : physical_layout) {
        fits = fits && d >= 0 && d < n && !seen[d];
        if (fits) seen[d] = true;
    }
    RL_CHECK(fits, throw_runtime,
             "empty_permuted(physical_layout): must hold each of the %lld dimensions once, got %s",
             (long long)n, to_string(physical_layout).c_str());
    std::vector<int64_t> strides(size.size());
    int64_t step = 1;
    for (size_t i = physical_layout.size(); i-- > 0;) {
        const auto d = static_cast<size_t>(physical_layout[i]);
        strides[d] = step;
        RL_CHECK(!__builtin_mul_overflow(step, std::max<int64_t>(size[d], 1), &step), throw_runtime,
                 "empty_permuted(size): %s has too many elements", to_string(size).c_str());
    }
    return empty_strided(size, strides, dtype, device, requires_grad);
}

Tensor empty_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                  bool requires_grad, std::optional<std::string_view> memory_format) {
    return finish(like(input, dtype, device, memory_format), requires_grad);
}
Tensor full_like(const Tensor& input, Scalar value, std::optional<DType> dtype, std::optional<Device> device,
                 bool requires_grad, std::optional<std::string_view> memory_format) {
    Tensor t = like(input, dtype, device, memory_format);
    write(t, value);
    return finish(std::move(t), requires_grad);
}
Tensor zeros_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                  bool requires_grad, std::optional<std::string_view> memory_format) {
    return full_like(input, Scalar(0), dtype, device, requires_grad, memory_format);
}
Tensor ones_like(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                 bool requires_grad, std::optional<std::string_view> memory_format) {
    return full_like(input, Scalar(1), dtype, device, requires_grad, memory_format);
}

Tensor new_empty(const Tensor& input, IntList size, std::optional<DType> dtype, std::optional<Device> device,
                 bool requires_grad) {
    return empty(size, dtype.value_or(input.dtype()), device.value_or(input.device()), requires_grad,
                 std::nullopt);
}
Tensor new_full(const Tensor& input, IntList size, Scalar value, std::optional<DType> dtype,
                std::optional<Device> device, bool requires_grad) {
    return filled(size, value, dtype.value_or(input.dtype()), device.value_or(input.device()), requires_grad);
}
Tensor new_zeros(const Tensor& input, IntList size, std::optional<DType> dtype, std::optional<Device> device,
                 bool requires_grad) {
    return new_full(input, size, Scalar(0), dtype, device, requires_grad);
}
Tensor new_ones(const Tensor& input, IntList size, std::optional<DType> dtype, std::optional<Device> device,
                bool requires_grad) {
    return new_full(input, size, Scalar(1), dtype, device, requires_grad);
}

Tensor fill_(const Tensor& input, Scalar value) {
    checked(value, input.dtype());
    check_writable("fill_", input);
    begin_write("fill_", input);
    write(input, value);
    return input;
}
Tensor fill__tensor(const Tensor& input, const Tensor& value) {
    RL_CHECK(value.dim() == 0, throw_runtime, "fill_(value): must be a number or a 0-d tensor, got shape %s",
             to_string(value.sizes()).c_str());
    RL_CHECK(value.device().type != DeviceType::Meta || input.device() == value.device(),
             throw_not_implemented, "fill_(value): a tensor on the meta device has no data to copy to %s",
             name(input.device()).c_str());
    check_writable("fill_", input);
    begin_write("fill_", input);
    copy_into(input, value);
    return input;
}
Tensor zero_(const Tensor& input) {
    check_writable("zero_", input);
    begin_write("zero_", input);
    write(input, Scalar(0));
    return input;
}

}  // namespace rushlight::direct
