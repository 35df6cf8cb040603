// The toy device's own four kernels, for all dtypes of core except complex ones.
#pragma once

#include <cstring>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "rushlight/half.h"
#include "rushlight/kernel.h"

namespace {

using namespace rushlight;

template <class F>
bool visit(DType dtype, F&& f) {
    switch (dtype) {
        case DType::Bool: f(bool{}); return true;
        case DType::UInt8: f(uint8_t{}); return true;
        case DType::Int8: f(int8_t{}); return true;
        case DType::Int16: f(int16_t{}); return true;
        case DType::Int32: f(int32_t{}); return true;
        case DType::Int64: f(int64_t{}); return true;
        case DType::UInt16: f(uint16_t{}); return true;
        case DType::UInt32: f(uint32_t{}); return true;
        case DType::UInt64: f(uint64_t{}); return true;
        case DType::Float16: f(Half{}); return true;
        case DType::BFloat16: f(BFloat16{}); return true;
        case DType::Float32: f(float{}); return true;
        case DType::Float64: f(double{}); return true;
        default: return false;
    }
}

/// The type in which a kernel computes. A double holds every float exactly, and the sum of two floats is rounded in the same
/// way.
struct Number {
    bool floating;
    double f;
    int64_t i;

    double as_float() const { return floating ? f : static_cast<double>(i); }
    int64_t as_int() const { return floating ? static_cast<int64_t>(f) : i; }
};

/// Converts a number to an integer, as core does: NaN and values out of range become the smallest int64, or the smallest int32
/// for int32, int16, uint16 and int8.
template <class T>
int64_t integer(const Number& value) {
    if (!value.floating) return value.i;
    constexpr bool wide = sizeof(T) == 8 || std::is_same_v<T, uint32_t> || std::is_same_v<T, uint8_t>;
    constexpr double bound = wide ? 0x1p63 : 0x1p31;
    constexpr int64_t smallest =
        wide ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min();
    return value.f >= -bound && value.f < bound ? static_cast<int64_t>(value.f) : smallest;
}

/// A view that owns its geometry, since the geometry of the caller no longer exists when the work runs.
struct Operand {
    explicit Operand(const View& v) : data(static_cast<char*>(v.data)), dtype(v.dtype), present(v.defined()) {
        if (!present) return;
        sizes.assign(v.sizes, v.sizes + v.ndim);
        strides.assign(v.strides, v.strides + v.ndim);
    }

    int64_t offset(const std::vector<int64_t>& at) const {
        int64_t elements = 0;
        for (size_t d = 0; d < strides.size(); ++d) elements += at[d] * strides[d];
        return elements;
    }
    Number load(int64_t offset) const {
        Number value{is_floating(dtype), 0, 0};
        visit(dtype, [&](auto zero) {
            using T = decltype(zero);
            T element;
            std::memcpy(&element, data + offset * static_cast<int64_t>(sizeof(T)), sizeof(T));
            if constexpr (std::is_integral_v<T>) value.i = static_cast<int64_t>(element);
            else value.f = static_cast<double>(element);
        });
        return value;
    }
    void store(int64_t offset, Number value) const {
        visit(dtype, [&](auto zero) {
            using T = decltype(zero);
            T element;
            if constexpr (std::is_same_v<T, bool>) element = value.floating ? value.f != 0 : value.i != 0;
            else if constexpr (std::is_integral_v<T>) element = static_cast<T>(integer<T>(value));
            else if constexpr (std::is_same_v<T, double>) element = value.as_float();
            else element = T(static_cast<float>(value.as_float()));
            std::memcpy(data + offset * static_cast<int64_t>(sizeof(T)), &element, sizeof(T));
        });
    }

    char* data;
    DType dtype;
    bool present;
    std::vector<int64_t> sizes, strides;
};

/// Calls f for every index of a shape, with the last dimension varying fastest.
template <class F>
void for_each_index(const std::vector<int64_t>& sizes, F&& f) {
    for (int64_t size : sizes) {
        if (size == 0) return;
    }
    std::vector<int64_t> at(sizes.size(), 0);
    while (true) {
        f(at);
        size_t d = sizes.size();
        while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
        if (d == 0) return;
    }
}

Number number(const Param& p) { return {p.kind == Param::Kind::Float, p.as_float(), p.as_int()}; }

/// Whether the device's own kernels support all dtypes of the call.
bool takes(const KernelArgs* args) {
    for (int i = 0; i < args->num_outputs + args->num_inputs; ++i) {
        const View& v = args->tensors[i];
        if (v.defined() && !visit(v.dtype, [](auto) {})) return false;
    }
    for (int i = 0; i < args->num_params; ++i)
        if (args->params[i].kind == Param::Kind::Complex) return false;
    return true;
}

void copy_kernel(const KernelArgs* args) {
    const Operand out(args->out(0)), in(args->in(0));
    for_each_index(out.sizes, [&](const auto& at) { out.store(out.offset(at), in.load(in.offset(at))); });
}

/// Computes f(input, other, parameter). Either operand may be a number. If there is no parameter, 1 is used.
template <class F>
void binary_kernel(const KernelArgs* args, F&& f) {
    std::vector<Number> params;
    for (int i = 0; i < args->num_params; ++i) params.push_back(number(args->params[i]));
    const Operand out(args->out(0)), a(args->in(0)), b(args->in(1));
    for_each_index(out.sizes, [&](const auto& at) {
        size_t next = 0;
        Number x = a.present ? a.load(a.offset(at)) : params[next++];
        Number y = b.present ? b.load(b.offset(at)) : params[next++];
        out.store(out.offset(at), f(x, y, next < params.size() ? params[next] : Number{false, 1, 1}));
    });
}

// Integers are computed as unsigned numbers, so that overflow wraps around.
Number times(Number x, Number y) {
    if (x.floating || y.floating) return {true, x.as_float() * y.as_float(), 0};
    return {false, 0, static_cast<int64_t>(static_cast<uint64_t>(x.i) * static_cast<uint64_t>(y.i))};
}
Number plus(Number x, Number y) {
    if (x.floating || y.floating) return {true, x.as_float() + y.as_float(), 0};
    return {false, 0, static_cast<int64_t>(static_cast<uint64_t>(x.i) + static_cast<uint64_t>(y.i))};
}

void add_kernel(const KernelArgs* args) {
    binary_kernel(args, [](Number x, Number y, Number alpha) { return plus(x, times(alpha, y)); });
}

void mul_kernel(const KernelArgs* args) {
    binary_kernel(args, [](Number x, Number y, Number) { return times(x, y); });
}

/// The output has the dimensions of the input; reduced dimensions have size 1.
void sum_kernel(const KernelArgs* args) {
    const Operand out(args->out(0)), in(args->in(0));
    std::vector<int64_t> strides;  // strides of the output along the input's dimensions
    for (size_t d = 0; d < in.sizes.size(); ++d) strides.push_back(out.sizes[d] == 1 ? 0 : out.strides[d]);
    const bool floating = is_floating(out.dtype);
    std::map<int64_t, Number> totals;
    for_each_index(out.sizes, [&](const auto& at) { totals[out.offset(at)] = {floating, 0, 0}; });
    for_each_index(in.sizes, [&](const auto& at) {
        int64_t offset = 0;
        for (size_t d = 0; d < strides.size(); ++d) offset += at[d] * strides[d];
        Number value = in.load(in.offset(at)), &total = totals[offset];
        if (floating) total.f += value.as_float();
        else
            total.i =
                static_cast<int64_t>(static_cast<uint64_t>(total.i) + static_cast<uint64_t>(value.as_int()));
    });
    for (auto& [offset, total] : totals) out.store(offset, total);
}

}  // namespace
