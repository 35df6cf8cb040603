// New tensors computed by a rule: ranges and the identity.
#include <cmath>

#include "bodies/ranges.h"
#include "ops/copying.h"
#include "ops/numbers.h"
#include "rushlight/batched.h"

namespace rushlight::rules {
namespace {

NewTensor of_length(int64_t n, DType dtype, std::optional<Device> device) {
    return {IntList(&n, 1), dtype, device.value_or(Device{})};
}

// Returns an end of a range, which may be given as a 0-d tensor. On the meta device, the value has no effect.
Scalar end_of(const char* op, const char* name, const TensorOrScalar& given, std::optional<Device> device) {
    if (!given.is_tensor()) return given.scalar();
    const Tensor& t = given.tensor();
    RL_CHECK(t.dim() == 0, throw_runtime, "%s(%s): needs a tensor without dimensions, got shape %s", op, name,
             to_string(t.sizes()).c_str());
    if (t.device().type == DeviceType::Meta && device && device->type == DeviceType::Meta)
        return is_complex(t.dtype()) ? Scalar(Complex<double>(0, 0)) : Scalar(0.0);
    require_values(op, t);
    Tensor value = make_tensor(IntList(), is_complex(t.dtype()) ? DType::Complex128 : DType::Float64);
    copy_into(value, t);
    return value.dtype() == DType::Complex128 ? Scalar(*value.data<Complex<double>>())
                                              : Scalar(*value.data<double>());
}

// Returns a tensor of `steps` numbers between two ends.
NewTensor between(const char* op, Scalar start, Scalar end, int64_t steps, std::optional<DType> dtype,
                  std::optional<Device> device) {
    RL_CHECK(steps >= 0, throw_runtime, "%s(steps): must not be negative, got %lld", op, (long long)steps);
    if (!start.is_complex() && !end.is_complex())
        return of_length(steps, dtype.value_or(default_dtype()), device);
    const DType result = dtype.value_or(complex_dtype(default_dtype()));
    RL_CHECK(is_complex(result), throw_runtime,
             "%s(dtype): must be complex, because start or end is complex, got %s", op, name(result));
    return of_length(steps, result, device);
}

}  // namespace

NewTensor arange(Scalar end, std::optional<DType> dtype, std::optional<Device> device) {
    return arange_start(Scalar(0), end, Scalar(1), dtype, device);
}

NewTensor arange_start(Scalar start, Scalar end, Scalar step, std::optional<DType> dtype,
                       std::optional<Device> device) {
    bool floating = start.is_floating() || end.is_floating() || step.is_floating();
    const DType result = dtype.value_or(floating ? default_dtype() : DType::Int64);
    double first = start.to<double>(), last = end.to<double>(), by = step.to<double>();
    const auto whole = [](const char* argument, Scalar v) {
        return element_of("arange", argument, v, DType::Int64);
    };
    if (floating && dtype == DType::Int64) {  // a range of integers: the numbers are truncated
        RL_CHECK(by == 0 || std::fabs(by) >= 1 || std::isnan(by), throw_value,
                 "arange(step): must not be 0 in the integer dtype of the result, but %g becomes 0", by);
        start = whole("start", start), end = whole("end", end), step = whole("step", step);
        first = start.to<double>(), last = end.to<double>(), by = step.to<double>();
        floating = false;
    }
    RL_CHECK(by != 0, throw_runtime, "arange(step): must not be zero");
    RL_CHECK(std::isfinite(first) && std::isfinite(last), throw_runtime,
             "arange(start, end): must be finite, got %g and %g", first, last);
    RL_CHECK(by > 0 ? last >= first : last <= first, throw_runtime,
             "arange(start, end, step): bounds %g and %g are inconsistent with the sign of step %g", first,
             last, by);
    if (!floating) {
        const int64_t a = start.to<int64_t>(), b = end.to<int64_t>(), s = step.to<int64_t>();
        const uint64_t span = s > 0 ? static_cast<uint64_t>(b) - static_cast<uint64_t>(a)
                                    : static_cast<uint64_t>(a) - static_cast<uint64_t>(b);
        const uint64_t stride = s > 0 ? static_cast<uint64_t>(s) : -static_cast<uint64_t>(s);
        const uint64_t n = span / stride + (span % stride != 0);
        RL_CHECK(n <= static_cast<uint64_t>(INT64_MAX), throw_runtime,
                 "arange(start, end, step): the number of elements overflows a 64-bit integer");
        return of_length(static_cast<int64_t>(n), result, device)
            .written_by(range_kernel, {Scalar(a), Scalar(s)});
    }
    const double count = std::ceil((last - first) / by);
    RL_CHECK(count < 9e18, throw_runtime, "arange(): %g elements are too many", count);
    // The steps of an integer range are integers, but it has as many elements as with floats.
    if (is_integral(result) && std::fabs(by) >= 1) start = whole("start", start), step = whole("step", step);
    else start = Scalar(first), step = Scalar(by);
    return of_length(static_cast<int64_t>(count), result, device).written_by(range_kernel, {start, step});
}

NewTensor linspace(Scalar start, Scalar end, int64_t steps, std::optional<DType> dtype,
                   std::optional<Device> device) {
    NewTensor made = between("linspace", start, end, steps, dtype, device);
    if (dtype && is_integral(*dtype)) {  // raises if an end that is used is out of range
        if (steps > 0) element_of("linspace", "start", start, *dtype);
        if (steps > 1) element_of("linspace", "end", end, *dtype);
    }
    return made.written_by(steps_kernel, {start, end});
}
NewTensor linspace_tensors(const TensorOrScalar& start, const TensorOrScalar& end, int64_t steps,
                           std::optional<DType> dtype, std::optional<Device> device) {
    return linspace(end_of("linspace", "start", start, device), end_of("linspace", "end", end, device), steps,
                    dtype, device);
}

NewTensor logspace(Scalar start, Scalar end, int64_t steps, double base, std::optional<DType> dtype,
                   std::optional<Device> device) {
    return between("logspace", start, end, steps, dtype, device)
        .written_by(powers_kernel, {Scalar(base), start, end});
}
NewTensor logspace_tensors(const TensorOrScalar& start, const TensorOrScalar& end, int64_t steps, double base,
                           std::optional<DType> dtype, std::optional<Device> device) {
    return logspace(end_of("logspace", "start", start, device), end_of("logspace", "end", end, device), steps,
                    base, dtype, device);
}

NewTensor eye(int64_t n, std::optional<int64_t> m, std::optional<DType> dtype, std::optional<Device> device) {
    RL_CHECK(n >= 0 && m.value_or(n) >= 0, throw_runtime,
             "eye(n, m): must not be negative, got %lld and %lld", (long long)n, (long long)m.value_or(n));
    const int64_t size[2] = {n, m.value_or(n)};
    return NewTensor(IntList(size, 2), dtype.value_or(default_dtype()), device.value_or(Device{}))
        .written_by(eye_kernel, {});
}

}  // namespace rushlight::rules
