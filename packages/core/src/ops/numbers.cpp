#include "ops/numbers.h"

#include <cmath>
#include <limits>

#include "ops/copying.h"
#include "rushlight/batched.h"
#include "rushlight/error.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/to.h"

namespace rushlight {

bool fits_integer(Scalar v, DType t) {
    if (v.is_floating() || v.is_complex()) return true;
    int64_t n = v.to<int64_t>();
    switch (t) {
        case DType::UInt8: return n == static_cast<uint8_t>(n);
        case DType::Int8: return n == static_cast<int8_t>(n);
        case DType::Int16: return n == static_cast<int16_t>(n);
        case DType::Int32: return n == static_cast<int32_t>(n);
        case DType::UInt16: return n == static_cast<uint16_t>(n);
        case DType::UInt32: return n == static_cast<uint32_t>(n);
        case DType::UInt64: return n >= 0;
        default: return true;
    }
}

double largest_number(DType t) {
    switch (real_dtype(t)) {
        case DType::Float16: return 65504;
        case DType::BFloat16: return 0x1.fep127;
        case DType::Float32: return std::numeric_limits<float>::max();
        default: return std::numeric_limits<double>::max();
    }
}

Scalar element_of(const char* op, const char* argument, Scalar value, DType t) {
    const auto fail = [&] [[noreturn, gnu::cold]] {
        const auto z = value.to<Complex<double>>();
        if (value.is_complex())
            throw_runtime("%s(%s): %g%+gj does not fit dtype %s", op, argument, z.re, z.im, name(t));
        throw_runtime("%s(%s): %.17g does not fit dtype %s", op, argument, z.re, name(t));
    };
    if (is_complex(t)) return value;
    if (t == DType::Bool) return Scalar(value.to<bool>());
    if (value.is_complex()) {
        const auto z = value.to<Complex<double>>();
        if (z.im != 0) fail();
        value = Scalar(z.re);
    }
    if (is_floating(t)) {
        const double most = largest_number(t);
        const double v = value.to<double>();
        if (std::fabs(v) > most && !std::isinf(v)) fail();
        return value;
    }
    const int bits = static_cast<int>(8 * itemsize(t));
    const bool is_unsigned =
        t == DType::UInt8 || t == DType::UInt16 || t == DType::UInt32 || t == DType::UInt64;
    if (value.is_floating()) {
        const double v = value.to<double>(),
                     past = std::ldexp(1.0, std::min(is_unsigned ? bits : bits - 1, 63));
        if (!(v >= (is_unsigned ? 0 : -past) && (bits == 64 ? v < past : v <= past - 1))) fail();
        value = Scalar(static_cast<int64_t>(v));
    }
    const int64_t n = value.to<int64_t>();
    if (fits_integer(value, t) || t == DType::UInt64) return Scalar(n);
    if (!is_unsigned || n < -((int64_t{1} << bits) - 1) || n >= 0) fail();
    return Scalar(n & ((int64_t{1} << bits) - 1));
}

Tensor element_tensor(const char* op, const char* argument, const Tensor& value, DType t) {
    if (value.dtype() == t) return value;
    if (value.device().type == DeviceType::CPU && !is_batched(value))
        element_of(op, argument, value_of(value), t);  // raises if the number does not fit
    return ops::_to_copy(value, t);
}

Scalar fill_element(Scalar value, DType t) {
    const bool rounds = t == DType::Float16 || t == DType::BFloat16 || is_float8(t);  // rounded as in a copy
    return element_of("fill", "value", value, rounds ? DType::Float32 : t);
}

Tensor as_int64_if_integral(const Tensor& t) {
    return is_integral(t.dtype()) && t.dtype() != DType::UInt64 ? ops::to(t, DType::Int64) : t;
}

Scalar value_of(const Tensor& t) {
    const bool integer = is_integral(t.dtype(), true), complex = is_complex(t.dtype());
    Tensor wide = make_tensor({}, integer ? DType::Int64 : complex ? DType::Complex128 : DType::Float64);
    copy_into(wide, t);
    if (complex) return Scalar(*wide.data<Complex<double>>());
    if (wide.dtype() == DType::Float64) return Scalar(*wide.data<double>());
    return t.dtype() == DType::Bool ? Scalar(*wide.data<int64_t>() != 0) : Scalar(*wide.data<int64_t>());
}

}  // namespace rushlight
