// Complex numbers as stored values: the real part, then the imaginary part, as in NumPy, Fortran and std::complex.
// std::complex itself cannot be used in device code, and its products check for NaN, which prevents vectorisation of
// loops.
#pragma once

#include <type_traits>

#include "rushlight/export.h"

namespace rushlight {

template <class T>
struct Complex {
    T re, im;

    Complex() = default;
    RL_HD constexpr Complex(T real, T imaginary = T(0)) : re(real), im(imaginary) {}
    template <class U>
    RL_HD constexpr explicit Complex(Complex<U> z) : re(static_cast<T>(z.re)), im(static_cast<T>(z.im)) {}

    RL_HD friend constexpr Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
    RL_HD friend constexpr Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
    RL_HD friend constexpr Complex operator-(Complex a) { return {-a.re, -a.im}; }
    RL_HD friend constexpr Complex operator*(Complex a, Complex b) {
        return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    }
    // Scales by the larger part of the divisor, so that no intermediate result overflows: R. L. Smith, "Algorithm 116:
    // Complex division", 1962. The last step divides, because the reciprocal of a subnormal number may be infinite.
    RL_HD friend constexpr Complex operator/(Complex a, Complex b) {
        T x = b.re < T(0) ? -b.re : b.re, y = b.im < T(0) ? -b.im : b.im;
        if (x == T(0) && y == T(0)) return {a.re / x, a.im / x};
        if (x >= y) {
            T ratio = b.im / b.re, scale = b.re + b.im * ratio;
            return {(a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale};
        }
        T ratio = b.re / b.im, scale = b.re * ratio + b.im;
        return {(a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale};
    }
    RL_HD friend constexpr bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
    /// Whether the number is not zero.
    RL_HD constexpr explicit operator bool() const { return re != T(0) || im != T(0); }
};

template <class T>
RL_HD constexpr Complex<T> conj(Complex<T> z) {
    return {z.re, -z.im};
}

template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<Complex<T>> = true;

/// The type T if the argument is Complex<T>. Any other argument is returned unchanged.
template <class T>
struct RealOf {
    using type = T;
};
template <class T>
struct RealOf<Complex<T>> {
    using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;

}  // namespace rushlight
