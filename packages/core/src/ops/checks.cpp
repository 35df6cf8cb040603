#include "ops/checks.h"

#include "ops/element_check.h"
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

}  // namespace

void no_bool_tensors(const char* op, const TensorOrScalar& input, const TensorOrScalar& other, Scalar) {
    bool found = (input.is_tensor() && is_bool(input)) || (other.is_tensor() && is_bool(other));
    RL_CHECK(
        !found, throw_runtime,
        "%s(input, other): not defined for bool tensors\nhint: use ^ or logical_xor(), or ~ to invert a mask",
        op);
}

void integer_divisor(const char* op, const TensorOrScalar& input, const TensorOrScalar& other) {
    if (!are_integers(input, other)) return;
    if (other.is_tensor()) return check_elements(op, "other", other.tensor(), Required::NotZero);
    RL_CHECK(!other.scalar().equals(0), throw_runtime,
             "%s(other): an integer cannot be divided by zero (ZeroDivisionError), got 0", op);
}

void integer_power(const char* op, const TensorOrScalar& input, const TensorOrScalar& exponent) {
    if (exponent.is_tensor() || !is_integral(exponent.scalar().dtype(), true) ||
        exponent.scalar().to<int64_t>() >= 0)
        return;
    RL_CHECK(!are_integers(input, exponent), throw_runtime,
             "%s(input, exponent): integers cannot be raised to the negative power %lld\n"
             "hint: convert input to a floating dtype first",
             op, (long long)exponent.scalar().to<int64_t>());
}

void isclose(const char* op, const Tensor& input, const Tensor& other, double rtol, double atol, bool) {
    RL_CHECK(input.dtype() == other.dtype(), throw_runtime,
             "%s(input, other): must have the same dtype, got %s and %s", op, name(input.dtype()),
             name(other.dtype()));
    RL_CHECK(rtol >= 0 && atol >= 0, throw_runtime, "%s(rtol, atol): must be at least 0, got %g and %g", op,
             rtol, atol);
}

void heaviside(const char* op, const Tensor& input, const Tensor& values) {
    RL_CHECK(input.dtype() == values.dtype(), throw_runtime,
             "%s(input, values): must have the same dtype, got %s and %s", op, name(input.dtype()),
             name(values.dtype()));
}

void softshrink(const char* op, const Tensor&, Scalar lambd) {
    RL_CHECK(lambd.to<double>() >= 0, throw_runtime, "%s(lambd): must not be negative, got %g", op,
             lambd.to<double>());
}

void hardtanh(const char* op, const Tensor& input, Scalar min_val, Scalar max_val) {
    const bool negative = min_val.to<double>() < 0 || max_val.to<double>() < 0;
    RL_CHECK(input.dtype() != DType::UInt8 || !negative, throw_runtime,
             "%s(min_val, max_val): must not be negative for uint8, got %g and %g", op, min_val.to<double>(),
             max_val.to<double>());
}

void norm_dtype(const char* op, const Tensor& input, DType dtype) {
    const DType own = input.dtype();
    RL_CHECK(is_differentiable(dtype), throw_runtime,
             "%s(dtype): must be a floating or complex dtype, got %s", op, name(dtype));
    RL_CHECK(is_complex(dtype) == is_complex(own), throw_runtime,
             "%s(dtype): must be %s for a %s input, got %s for %s", op, is_complex(own) ? "complex" : "real",
             is_complex(own) ? "complex" : "real", name(dtype), name(own));
    RL_CHECK(promote(own, dtype) == dtype, throw_runtime,
             "%s(dtype): must represent all numbers of the input's dtype, got %s for %s\n"
             "hint: convert the input first",
             op, name(dtype), name(own));
}

}  // namespace rushlight::checks
