// Elementary functions of complex numbers, `math::exp(z)`, from the C library. Branch cuts, signed zeros and infinities
// follow annex G of C99.
#pragma once

#if defined(__CUDACC__)
#include <cuda/std/complex>
#else
#include <complex>
#endif

#include "ops/functors/math.h"
#include "rushlight/complex.h"

namespace rushlight::functors {
namespace {
namespace math {

// The library that provides the complex functions.
#if defined(__CUDACC__)
namespace library = ::cuda::std;
#else
namespace library = std;
#endif

template <class T>
RL_HD_CALL inline library::complex<T> to_std(Complex<T> z) {
    return {z.re, z.im};
}
template <class T>
RL_HD_CALL inline Complex<T> from_std(library::complex<T> z) {
    return {z.real(), z.imag()};
}

#define RL_LIBRARY(name)                              \
    template <class T>                                \
    RL_HD_CALL inline Complex<T> name(Complex<T> z) { \
        return from_std(library::name(to_std(z)));    \
    }
RL_LIBRARY(exp)
RL_LIBRARY(log)
RL_LIBRARY(log10)
RL_LIBRARY(sqrt)
RL_LIBRARY(sin)
RL_LIBRARY(cos)
RL_LIBRARY(tan)
RL_LIBRARY(asin)
RL_LIBRARY(acos)
RL_LIBRARY(atan)
RL_LIBRARY(sinh)
RL_LIBRARY(cosh)
RL_LIBRARY(tanh)
RL_LIBRARY(asinh)
RL_LIBRARY(acosh)
RL_LIBRARY(atanh)
#undef RL_LIBRARY

RL_HD inline double abs(Complex<double> z) { return hypot(z.re, z.im); }
// Squares of floats are exact in double. The absolute value is infinite if a part is, even if the other part is NaN.
RL_HD inline float abs(Complex<float> z) {
    double x = static_cast<double>(z.re), y = static_cast<double>(z.im);
    float length = static_cast<float>(sqrt(x * x + y * y));
    bool infinite = std::fabs(z.re) == INFINITY || std::fabs(z.im) == INFINITY;
    return infinite ? static_cast<float>(INFINITY) : length;
}
template <class T>
RL_HD_CALL inline T arg(Complex<T> z) {
    return std::atan2(z.im, z.re);
}
template <class T>
RL_HD_CALL inline Complex<T> exp2(Complex<T> z) {
    return exp(Complex<T>(z.re * T(0.6931471805599453), z.im * T(0.6931471805599453)));
}
template <class T>
RL_HD_CALL inline Complex<T> log2(Complex<T> z) {
    Complex<T> l = log(z);
    return {l.re * T(1.4426950408889634), l.im * T(1.4426950408889634)};
}
// Accurate for small z: exp(z) - 1 = expm1(x) cos(y) - 2 sin²(y/2) + i exp(x) sin(y).
template <class T>
RL_HD_CALL inline Complex<T> expm1(Complex<T> z) {
    T half = std::sin(z.im / T(2));
    return {std::expm1(z.re) * std::cos(z.im) - T(2) * half * half, std::exp(z.re) * std::sin(z.im)};
}
// 1 + z|² = 1 + x (2 + x) + y², which keeps the digits of a small z.
template <class T>
RL_HD_CALL inline Complex<T> log1p(Complex<T> z) {
    T angle = std::atan2(z.im, T(1) + z.re);
    if (std::fabs(z.re) < T(0.5) && std::fabs(z.im) < T(0.5))
        return {std::log1p(z.re * (T(2) + z.re) + z.im * z.im) / T(2), angle};
    return {std::log(std::hypot(T(1) + z.re, z.im)), angle};
}
// 0 to a power with a positive real part is 0. 0 to the power of 0 is 1.
template <class T>
RL_HD_CALL inline Complex<T> pow(Complex<T> z, Complex<T> exponent) {
    if (exponent == Complex<T>(0)) return Complex<T>(1);
    if (z == Complex<T>(0) && exponent.im == T(0) && exponent.re > T(0)) return Complex<T>(0);
    return from_std(library::pow(to_std(z), to_std(exponent)));
}
// The exponential of a number with a positive real part may be infinite, and a quotient of infinities is NaN.
template <class T>
RL_HD_CALL inline Complex<T> sigmoid(Complex<T> z) {
    const bool left = z.re < T(0);
    const Complex<T> power = exp(left ? z : -z);
    return (left ? power : Complex<T>(1)) / (Complex<T>(1) + power);
}
// Aliases for functors that call a vectorised variant for float.
#define RL_SAME(name)                                        \
    template <class T>                                       \
    RL_HD_CALL inline Complex<T> fast_##name(Complex<T> z) { \
        return name(z);                                      \
    }
RL_SAME(asin)
RL_SAME(acos)
RL_SAME(atan)
RL_SAME(sinh)
RL_SAME(cosh)
RL_SAME(atanh)
#undef RL_SAME
template <class T>
RL_HD_CALL inline bool moderate(Complex<T>) {
    return true;
}

}  // namespace math
}  // namespace
}  // namespace rushlight::functors
