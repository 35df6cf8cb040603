// Tensors of a rule: ranges and the identity.
#include <cmath>
#include <complex>
#include <cstring>

#include "bodies/creation.h"
#include "ops/pointwise.h"
#include "rushlight/backend.h"
#include "rushlight/batched.h"

namespace rushlight::direct {
namespace {

Tensor finish(Tensor t, DType dtype, std::optional<Device> device, bool requires_grad) {
    Device target = resolve(device.value_or(Device{}));
    if (t.dtype() != dtype || t.device() != target) {
        Tensor converted = make_tensor(t.sizes(), dtype, target);
        copy_into(converted, t);
        t = std::move(converted);
    }
    if (requires_grad) t.set_requires_grad(true);
    return t;
}

// An end of a range, which may be a tensor without dimensions.
Scalar end_of(const char* op, const char* name, const TensorOrScalar& given) {
    if (!given.is_tensor()) return given.scalar();
    const Tensor& t = given.tensor();
    RL_CHECK(t.dim() == 0, throw_runtime, "%s(%s): needs a tensor without dimensions, got shape %s", op, name,
             to_string(t.sizes()).c_str());
    require_values(op, t);
    Tensor value = make_tensor(IntList(), is_complex(t.dtype()) ? DType::Complex128 : DType::Float64);
    copy_into(value, t);
    return value.dtype() == DType::Complex128 ? Scalar(*value.data<Complex<double>>())
                                              : Scalar(*value.data<double>());
}

template <class T, class F>
Tensor generate(int64_t n, DType dtype, F&& value) {
    Tensor t = make_tensor(IntList(&n, 1), dtype);
    T* out = t.data<T>();
    for (int64_t i = 0; i < n; ++i) out[i] = value(i);
    return t;
}

// Calls f with a zero of the type in which numbers between two ends are computed, and the result's dtype.
template <class F>
Tensor between(const char* op, Scalar start, Scalar end, int64_t steps, std::optional<DType> dtype, F f) {
    RL_CHECK(steps >= 0, throw_runtime, "%s(steps): must not be negative, got %lld", op, (long long)steps);
    if (!start.is_complex() && !end.is_complex()) return f(double(), dtype.value_or(default_dtype()));
    const DType result = dtype.value_or(complex_dtype(default_dtype()));
    RL_CHECK(is_complex(result), throw_runtime, "%s(dtype): complex ends do not fit %s", op, name(result));
    return f(Complex<double>(), result);
}

double power(double base, double exponent) { return std::pow(base, exponent); }
Complex<double> power(double base, Complex<double> exponent) {
    const auto made = std::pow(std::complex<double>(base), std::complex<double>(exponent.re, exponent.im));
    return {made.real(), made.imag()};
}

// `steps` numbers from one end to the other. They are counted from both ends to the middle: the last is exactly `last`.
template <class T>
Tensor in_equal_steps(T first, T last, int64_t steps) {
    const T by = steps > 1 ? (last - first) / T(static_cast<double>(steps - 1)) : T(0);
    const DType dtype = std::is_same_v<T, double> ? DType::Float64 : DType::Complex128;
    return generate<T>(steps, dtype, [&](int64_t i) {
        return i < steps / 2 || steps == 1 ? first + by * T(static_cast<double>(i))
                                           : last - by * T(static_cast<double>(steps - 1 - i));
    });
}

}  // namespace

Tensor arange(Scalar end, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
    return arange_start(Scalar(0), end, Scalar(1), dtype, device, requires_grad);
}

Tensor arange_start(Scalar start, Scalar end, Scalar step, std::optional<DType> dtype,
                    std::optional<Device> device, bool requires_grad) {
    bool floating = start.is_floating() || end.is_floating() || step.is_floating();
    DType result = dtype.value_or(floating ? default_dtype() : DType::Int64);
    double first = start.to<double>(), last = end.to<double>(), by = step.to<double>();
    const auto whole = [](const char* argument, Scalar v) {
        return element_of("arange", argument, v, DType::Int64);
    };
    if (floating && dtype == DType::Int64) {  // a range of integers: each number loses its fraction
        RL_CHECK(by == 0 || std::fabs(by) >= 1 || std::isnan(by), throw_value,
                 "arange(step): of %g an integer dtype leaves nothing", by);
        start = whole("start", start), end = whole("end", end), step = whole("step", step);
        first = start.to<double>(), last = end.to<double>(), by = step.to<double>();
        floating = false;
    }
    RL_CHECK(by != 0, throw_runtime, "arange(step): must not be zero");
    RL_CHECK(std::isfinite(first) && std::isfinite(last), throw_runtime,
             "arange(start, end): must be finite, got %g and %g", first, last);
    RL_CHECK(by > 0 ? last >= first : last <= first, throw_runtime,
             "arange(start, end, step): from %g to %g there is no step of %g", first, last, by);
    if (!floating) {
        int64_t a = start.to<int64_t>(), b = end.to<int64_t>(), s = step.to<int64_t>();
        uint64_t span = s > 0 ? static_cast<uint64_t>(b) - static_cast<uint64_t>(a)
                              : static_cast<uint64_t>(a) - static_cast<uint64_t>(b);
        uint64_t stride = s > 0 ? static_cast<uint64_t>(s) : -static_cast<uint64_t>(s);
        uint64_t n = span / stride + (span % stride != 0);
        RL_CHECK(n <= static_cast<uint64_t>(INT64_MAX), throw_runtime, "arange(): too many elements");
        Tensor t = generate<int64_t>(static_cast<int64_t>(n), DType::Int64, [&](int64_t i) {
            return static_cast<int64_t>(static_cast<uint64_t>(a) +
                                        static_cast<uint64_t>(i) * static_cast<uint64_t>(s));
        });
        return finish(std::move(t), result, device, requires_grad);
    }
    double count = std::ceil((last - first) / by);
    RL_CHECK(count < 9e18, throw_runtime, "arange(): %g elements are too many", count);
    if (is_integral(result) && std::fabs(by) >= 1) {  // steps of integers, as many as of the floats
        const auto a = static_cast<uint64_t>(whole("start", start).to<int64_t>()),
                   s = static_cast<uint64_t>(whole("step", step).to<int64_t>());
        Tensor t = generate<int64_t>(static_cast<int64_t>(count), DType::Int64, [&](int64_t i) {
            return static_cast<int64_t>(a + static_cast<uint64_t>(i) * s);
        });
        return finish(std::move(t), result, device, requires_grad);
    }
    Tensor t = generate<double>(static_cast<int64_t>(count), DType::Float64,
                                [&](int64_t i) { return first + static_cast<double>(i) * by; });
    return finish(std::move(t), result, device, requires_grad);
}

Tensor linspace(Scalar start, Scalar end, int64_t steps, std::optional<DType> dtype,
                std::optional<Device> device, bool requires_grad) {
    return between("linspace", start, end, steps, dtype, [&]<class T>(T, DType result) {
        return finish(in_equal_steps(start.to<T>(), end.to<T>(), steps), result, device, requires_grad);
    });
}

Tensor linspace_tensors(const TensorOrScalar& start, const TensorOrScalar& end, int64_t steps,
                        std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
    return linspace(end_of("linspace", "start", start), end_of("linspace", "end", end), steps, dtype, device,
                    requires_grad);
}

Tensor logspace(Scalar start, Scalar end, int64_t steps, double base, std::optional<DType> dtype,
                std::optional<Device> device, bool requires_grad) {
    return between("logspace", start, end, steps, dtype, [&]<class T>(T, DType result) {
        Tensor t = in_equal_steps(start.to<T>(), end.to<T>(), steps);
        T* values = t.data<T>();
        for (int64_t i = 0; i < steps; ++i) values[i] = power(base, values[i]);
        return finish(std::move(t), result, device, requires_grad);
    });
}

Tensor logspace_tensors(const TensorOrScalar& start, const TensorOrScalar& end, int64_t steps, double base,
                        std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
    return logspace(end_of("logspace", "start", start), end_of("logspace", "end", end), steps, base, dtype,
                    device, requires_grad);
}

Tensor eye(int64_t n, std::optional<int64_t> m, std::optional<DType> dtype, std::optional<Device> device,
           bool requires_grad) {
    RL_CHECK(n >= 0 && m.value_or(n) >= 0, throw_runtime,
             "eye(n, m): must not be negative, got %lld and %lld", (long long)n, (long long)m.value_or(n));
    int64_t size[2] = {n, m.value_or(n)};
    Tensor t = make_tensor(IntList(size, 2), DType::UInt8);
    if (t.numel() > 0) std::memset(t.data<uint8_t>(), 0, static_cast<size_t>(t.numel()));
    for (int64_t i = 0; i < std::min(size[0], size[1]); ++i) t.data<uint8_t>()[i * size[1] + i] = 1;
    return finish(std::move(t), dtype.value_or(default_dtype()), device, requires_grad);
}

}  // namespace rushlight::direct
