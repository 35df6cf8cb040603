#include "cpu/creation.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "cpu/cast.h"
#include "cpu/pointwise_driver.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

struct alignas(16) Element {
    char bytes[16];
};

// Converts a number to an element of `dtype`, with the same kernel that copies use.
Element element(Scalar value, DType dtype) {
    Element wide, made;
    switch (value.dtype()) {
        case DType::Bool: *reinterpret_cast<bool*>(wide.bytes) = value.to<bool>(); break;
        case DType::Int64: *reinterpret_cast<int64_t*>(wide.bytes) = value.to<int64_t>(); break;
        case DType::Float64: *reinterpret_cast<double*>(wide.bytes) = value.to<double>(); break;
        default: *reinterpret_cast<Complex<double>*>(wide.bytes) = value.to<Complex<double>>(); break;
    }
    char* const data[] = {made.bytes, wide.bytes};
    const int64_t strides[] = {0, 0};
    run_row(cast_loop(dtype, value.dtype()), data, strides, 1);
    return made;
}

/// Writes value(i), a number of dtype `wide`, to element i of a one-dimensional tensor, for every i. Values are
/// converted to the tensor's dtype in blocks that stay in the cache.
template <class T, class F>
void generate(const View& out, DType wide, F value) {
    constexpr int64_t kBlock = 512;
    const auto loop = cast_loop(out.dtype, wide);
    const int64_t step = out.stride(0) * static_cast<int64_t>(itemsize(out.dtype));
    parallel_for(0, out.numel, kGrain, [&](int64_t begin, int64_t end) {
        if (out.dtype == wide && out.contiguous) {
            for (int64_t i = begin; i < end; ++i) out.as<T>()[i] = value(i);
            return;
        }
        T block[kBlock];
        for (int64_t at = begin; at < end; at += kBlock) {
            const int64_t n = std::min(kBlock, end - at);
            for (int64_t i = 0; i < n; ++i) block[i] = value(at + i);
            char* const data[] = {out.as<char>() + at * step, reinterpret_cast<char*>(block)};
            const int64_t strides[] = {step, sizeof(T)};
            run_row(loop, data, strides, n);
        }
    });
}

// Calls f(first, last, dtype) with both numbers converted to the dtype in which the values between them are
// computed.
template <class F>
void between(Scalar first, Scalar last, F f) {
    if (first.is_complex() || last.is_complex())
        return f(first.to<Complex<double>>(), last.to<Complex<double>>(), DType::Complex128);
    f(first.to<double>(), last.to<double>(), DType::Float64);
}

template <class T>
auto in_equal_steps(T first, T last, int64_t count) {
    const T by = count > 1 ? (last - first) / T(static_cast<double>(count - 1)) : T(0);
    return [=](int64_t i) {
        return i < count / 2 || count == 1 ? first + by * T(static_cast<double>(i))
                                           : last - by * T(static_cast<double>(count - 1 - i));
    };
}

double power(double base, double exponent) { return std::pow(base, exponent); }
Complex<double> power(double base, Complex<double> exponent) {
    const auto made = std::pow(std::complex<double>(base), std::complex<double>(exponent.re, exponent.im));
    return {made.real(), made.imag()};
}

}  // namespace

void fill(const View& out, Scalar value) {
    if (out.numel == 0) return;
    Element one = element(value, out.dtype);
    const auto size = static_cast<int64_t>(itemsize(out.dtype));
    PointwisePlan plan;
    plan.ndim = out.ndim;
    plan.num_operands = 2;
    plan.loop = cast_loop(out.dtype, out.dtype);
    plan.params = nullptr;
    plan.data[0] = out.as<char>();
    plan.data[1] = one.bytes;
    for (int d = 0; d < out.ndim; ++d) {
        plan.sizes[d] = out.sizes[d];
        plan.strides[0][d] = out.sizes[d] == 1 ? 0 : out.strides[d] * size;
        plan.strides[1][d] = 0;
    }
    for (int i = 0; i < 2; ++i) plan.dtype[i] = plan.loop_dtype[i] = out.dtype;
    sort_dimensions(plan);
    coalesce(plan);
    const bool dense = out.contiguous || (plan.ndim == 1 && plan.strides[0][0] == size);
    if (dense && std::all_of(one.bytes, one.bytes + size, [](char c) { return c == 0; })) {
        std::memset(out.data, 0, static_cast<size_t>(out.numel * size));
        return;
    }
    run(plan);
}

void range(const View& out, Scalar start, Scalar step) {
    if (start.is_integral() && step.is_integral()) {
        const auto a = static_cast<uint64_t>(start.to<int64_t>()),
                   s = static_cast<uint64_t>(step.to<int64_t>());
        return generate<int64_t>(out, DType::Int64, [=](int64_t i) {
            return static_cast<int64_t>(a + static_cast<uint64_t>(i) * s);
        });
    }
    const double a = start.to<double>(), s = step.to<double>();
    generate<double>(out, DType::Float64, [=](int64_t i) { return a + static_cast<double>(i) * s; });
}

void steps(const View& out, Scalar first, Scalar last) {
    between(first, last,
            [&]<class T>(T a, T b, DType wide) { generate<T>(out, wide, in_equal_steps(a, b, out.numel)); });
}

void powers(const View& out, Scalar base, Scalar first, Scalar last) {
    between(first, last, [&]<class T>(T a, T b, DType wide) {
        const auto exponent = in_equal_steps(a, b, out.numel);
        generate<T>(out, wide, [&, exponent](int64_t i) { return power(base.to<double>(), exponent(i)); });
    });
}

void eye(const View& out) {
    fill(out, Scalar(0));
    const int64_t size[] = {std::min(out.sizes[0], out.sizes[1])};
    const int64_t stride[] = {out.strides[0] + out.strides[1]};
    fill(View{out.data, size, stride, size[0], 1, out.dtype, stride[0] == 1}, Scalar(1));
}

}  // namespace rushlight::cpu
