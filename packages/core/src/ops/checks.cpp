#include "ops/checks.h"

#include "ops/copying.h"
#include "tensor/promotion.h"

namespace rushlight::checks {
namespace {

bool is_bool(const TensorOrScalar& v) {
    return v.is_tensor() ? v.tensor().dtype() == DType::Bool : v.scalar().is_bool();
}
bool are_integers(const TensorOrScalar& a, const TensorOrScalar& b) {
    const TensorOrScalar both[] = {a, b};
    return is_integral(result_dtype(both));
}

template <class T>
bool has_zero(const Tensor& t) {
    const T* data = t.data<T>();
    for (int64_t i = 0; i < t.numel(); ++i)
        if (data[i] == 0) return true;
    return false;
}
bool has_zero(const Tensor& t) {
    Tensor row = t;
    if (!t.is_contiguous()) {
        row = make_tensor(t.sizes(), t.dtype(), t.device());
        copy_into(row, t);
    }
    switch (itemsize(t.dtype())) {
        case 1: return has_zero<uint8_t>(row);
        case 2: return has_zero<uint16_t>(row);
        case 4: return has_zero<uint32_t>(row);
        default: return has_zero<uint64_t>(row);
    }
}

}  // namespace

void no_bool_tensors(const TensorOrScalar& input, const TensorOrScalar& other, Scalar) {
    bool found = (input.is_tensor() && is_bool(input)) || (other.is_tensor() && is_bool(other));
    RL_CHECK(
        !found, throw_runtime,
        "sub(input, other): not defined for bool tensors\nhint: use ^ or logical_xor(), or ~ to invert a mask");
}

void integer_divisor(const TensorOrScalar& input, const TensorOrScalar& other) {
    if (!are_integers(input, other)) return;
    bool zero = !other.is_tensor()
                    ? other.scalar().equals(0)
                    : other.tensor().device().type == DeviceType::CPU && has_zero(other.tensor());
    RL_CHECK(!zero, throw_runtime, "division of integers by zero (ZeroDivisionError)");
}

void integer_power(const TensorOrScalar& input, const TensorOrScalar& exponent) {
    if (exponent.is_tensor() || !is_integral(exponent.scalar().dtype(), true) ||
        exponent.scalar().to<int64_t>() >= 0)
        return;
    RL_CHECK(!are_integers(input, exponent), throw_runtime,
             "pow(input, exponent): integers cannot be raised to the negative power %lld\n"
             "hint: convert input to a floating dtype first",
             (long long)exponent.scalar().to<int64_t>());
}

void isclose(const Tensor& input, const Tensor& other, double rtol, double atol, bool) {
    RL_CHECK(input.dtype() == other.dtype(), throw_runtime,
             "isclose(input, other): must have the same dtype, got %s and %s", name(input.dtype()),
             name(other.dtype()));
    RL_CHECK(!(rtol < 0) && !(atol < 0), throw_runtime,
             "isclose(rtol, atol): must not be negative, got %g and %g", rtol, atol);
}

void heaviside(const Tensor& input, const Tensor& values) {
    RL_CHECK(input.dtype() == values.dtype(), throw_runtime,
             "heaviside(input, values): must have the same dtype, got %s and %s", name(input.dtype()),
             name(values.dtype()));
}

void softshrink(const Tensor&, Scalar lambd) {
    RL_CHECK(lambd.to<double>() >= 0, throw_runtime, "softshrink(lambd): must not be negative, got %g",
             lambd.to<double>());
}

void hardtanh(const Tensor& input, Scalar min_val, Scalar max_val) {
    const bool negative = min_val.to<double>() < 0 || max_val.to<double>() < 0;
    RL_CHECK(input.dtype() != DType::UInt8 || !negative, throw_runtime,
             "hardtanh(min_val, max_val): must not be negative for uint8, got %g and %g",
             min_val.to<double>(), max_val.to<double>());
}

}  // namespace rushlight::checks
