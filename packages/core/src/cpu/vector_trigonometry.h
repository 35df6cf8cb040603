// Sine, cosine, tangent and power for kernels. Plain loops over them become vector code, as in vector_math.h.
//
// sin, cos and tan are valid for |x| below kTrigonometricLimit<T>. The reduction of larger numbers modulo pi / 2
// needs more digits of pi; call the C library's functions for them. Largest errors found, in units in the last
// place (float / double): sin and cos 1.5 / 1.8, tan 3.0 / 3.0, pow (float) 0.5. The polynomials are minimax fits
// made for this file.
#pragma once

#include "cpu/vector_math.h"

namespace rushlight::cpu::RUSHLIGHT_CPU::math {

#define RL_MATH [[gnu::always_inline]] static inline

template <class T>
inline constexpr T kTrigonometricLimit = sizeof(T) == 4 ? T(0x1p28) : T(0x1p20);

namespace detail {

template <class T>
struct Quadrant {
    T r;  // in [-pi/4, pi/4]
    uint64_t number;  // x = r + number * pi / 2, modulo 2^64
};

// Each constant approximates the remainder of pi / 2 after the constants before it, and x - n * kHalfPi[0] is
// exact.
inline constexpr double kHalfPi[] = {0x1.921fb54442d18p0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};

RL_MATH Quadrant<double> quadrant(double x) {
    double shifted = fma(x, 0.63661977236758134, Traits<double>::kRound);
    double n = shifted - Traits<double>::kRound;
    double r = fma(-n, kHalfPi[2], fma(-n, kHalfPi[1], fma(-n, kHalfPi[0], x)));
    return {r, __builtin_bit_cast(uint64_t, shifted)};
}
// Computed in double precision, so that the result has all digits of a float even near a multiple of pi / 2.
RL_MATH Quadrant<float> quadrant(float x) {
    double wide = x;
    double shifted = fma(wide, 0.63661977236758134, Traits<double>::kRound);
    double n = shifted - Traits<double>::kRound;
    return {static_cast<float>(fma(-n, kHalfPi[1], fma(-n, kHalfPi[0], wide))),
            __builtin_bit_cast(uint64_t, shifted)};
}

// Return sin r and cos r for r in [-pi/4, pi/4].
RL_MATH float sin_reduced(float r) {
    float z = r * r;
    return fma(r * z,
               polynomial(z, -1.66666666416065673e-01f, 8.33332938354721525e-03f, -1.98393340742948366e-04f,
                          2.71830416084349969e-06f),
               r);
}
RL_MATH double sin_reduced(double r) {
    double z = r * r;
    return fma(r * z,
               polynomial(z, -1.66666666666667823e-01, 8.33333333334303553e-03, -1.98412698381072886e-04,
                          2.75573146790303373e-06, -2.50507075080588814e-08, 1.58853772018497625e-10),
               r);
}
RL_MATH float cos_reduced(float r) {
    float z = r * r;
    float tail =
        z * polynomial(z, 4.16666468541454782e-02f, -1.38873668909558269e-03f, 2.44383775632141144e-05f);
    return fma(z, tail - 0.5f, 1.f);
}
RL_MATH double cos_reduced(double r) {
    double z = r * r, half = 0.5 * z, near = 1 - half;
    double tail =
        z * polynomial(z, 4.16666666666706334e-02, -1.38888888895716137e-03, 2.48015877214925519e-05,
                       -2.75574376886020832e-07, 2.08922589642307351e-09, -1.22031932050387792e-11);
    return near + fma(z, tail, (1 - near) - half);
}

template <class T>
RL_MATH T sine(T r, uint64_t number) {
    T value = number & 1 ? cos_reduced(r) : sin_reduced(r);
    return number & 2 ? -value : value;
}

}  // namespace detail

template <class T>
RL_MATH T sin(T x) {
    auto [r, number] = detail::quadrant(x);
    T y = detail::sine(r, number);
    return x == T(0) ? x : y;  // preserves -0
}

template <class T>
RL_MATH T cos(T x) {
    auto [r, number] = detail::quadrant(x);
    return detail::sine(r, number + 1);
}

template <class T>
RL_MATH T tan(T x) {
    auto [r, number] = detail::quadrant(x);
    T s = detail::sin_reduced(r), c = detail::cos_reduced(r);
    T y = number & 1 ? -c / s : s / c;
    return x == T(0) ? x : y;
}

/// Returns x^y as C's powf does. It is computed in double precision.
RL_MATH float pow(float x, float y) {
    constexpr float kInfinity = __builtin_inff();
    double wide = exp(static_cast<double>(y) * log(static_cast<double>(fabs(x))));
    float power = static_cast<float>(wide);
    bool integer = __builtin_truncf(y) == y;
    bool odd = integer && __builtin_truncf(y * 0.5f) * 2.f != y;
    bool negative = copysign(1.f, x) < 0.f;
    power = negative && odd ? -power : power;
    power = negative && !integer && x != 0.f && x != -kInfinity ? __builtin_nanf("") : power;
    bool one = y == 0.f || x == 1.f || (x == -1.f && fabs(y) == kInfinity);
    return one ? 1.f : power;
}

#undef RL_MATH

}  // namespace rushlight::cpu::RUSHLIGHT_CPU::math
