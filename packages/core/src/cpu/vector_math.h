// Elementary functions for kernels. They have no branches, tables or calls, so that the compiler turns a plain loop
// over them into vector code of any width. Only files in src/cpu/kernels/ may include this file.
//
//     #pragma omp simd
//     for (int64_t i = 0; i < n; ++i) y[i] = math::exp(x[i]);
//
// Largest errors found, in units in the last place (float / double): exp 1.03 / 0.99, exp2 0.99 / 1.0, expm1 1.6 /
// 1.7, log 0.85 / 0.73, log2 1.1 / 0.98, log10 0.98 / 0.88, log1p 1.5 / 1.5, tanh 2.4 / 2.4, erf 1.1 / 1.0, sigmoid 2.6 / 2 (where
// the sigmoid is below 1e-38, the result is 0). For infinities, NaN, zeros and subnormal numbers, the results equal the
// results of C's functions. The polynomials are minimax fits made for this file. Compilers generate vector code with -O3
// -fopenmp-simd -fno-math-errno -fno-trapping-math (and, for AVX-512, -mprefer-vector-width=512). None of these options
// changes a result.
#pragma once

#include <cstdint>

#include "cpu/capability.h"

namespace rushlight::cpu::RUSHLIGHT_CPU::math {

#define RL_MATH [[gnu::always_inline]] static inline

RL_MATH float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RL_MATH double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

RL_MATH float copysign(float x, float sign) { return __builtin_copysignf(x, sign); }
RL_MATH double copysign(double x, double sign) { return __builtin_copysign(x, sign); }
RL_MATH float fabs(float x) { return __builtin_fabsf(x); }
RL_MATH double fabs(double x) { return __builtin_fabs(x); }

/// Returns the polynomial c[0] + c[1] * x + c[2] * x^2 + ... . x may be a vector of the compiler's vector extension.
template <class X, class T>
RL_MATH X polynomial(X x, T first, T last) {
    return x * last + first;
}
template <class X, class T, class... Rest>
RL_MATH X polynomial(X x, T first, T second, Rest... rest) {
    return x * polynomial(x, second, rest...) + first;
}

namespace detail {

template <class T> struct Traits;

template <> struct Traits<float> {
    using Int = uint32_t;
    static constexpr int kMantissa = 23;
    static constexpr Int kBias = 127;
    static constexpr float kRound = 0x1.8p23f;  // adding this rounds to an integer, which is in the low bits
    static constexpr float kLn2High = 0x1.62e4p-1f;  // has so few bits that products with exponents are exact
    static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
    static constexpr float kLog2High = 0x1.344p-2f, kLog2Low = 0x1.3509f8p-18f;  // the same of log10(2)
    static constexpr float kExpLow = -104.f, kExpHigh = 89.f;  // exp is 0 and infinity beyond these
    static constexpr float kTanhHigh = 10.f;  // tanh is 1 beyond this
    static constexpr float kSmallest = 0x1p-126f, kLargest = 0x1.fffffep127f;
    static constexpr float kHalfRoot = 0x1.6a09e6p-1f;  // sqrt(1/2)
};
template <> struct Traits<double> {
    using Int = uint64_t;
    static constexpr int kMantissa = 52;
    static constexpr Int kBias = 1023;
    static constexpr double kRound = 0x1.8p52;
    static constexpr double kLn2High = 0x1.62e42fefap-1;
    static constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
    static constexpr double kLog2High = 0x1.34413509f6000p-2, kLog2Low = 0x1.9fef311f12b36p-42;
    static constexpr double kExpLow = -746., kExpHigh = 710.;
    static constexpr double kTanhHigh = 20.;
    static constexpr double kSmallest = 0x1p-1022, kLargest = 0x1.fffffffffffffp1023;
    static constexpr double kHalfRoot = 0x1.6a09e667f3bcdp-1;
};

// Unlike min and max, the comparisons preserve NaN.
template <class T>
RL_MATH T clamp(T x, T low, T high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}

template <class T>
RL_MATH T power_of_two(typename Traits<T>::Int n) {
    return __builtin_bit_cast(T, (n + Traits<T>::kBias) << Traits<T>::kMantissa);
}

template <class T> struct Reduced {
    T r;  // in [-ln 2 / 2, ln 2 / 2]
    typename Traits<T>::Int n;  // x = n ln 2 + r; a negative n wraps around
};

template <class T>
RL_MATH Reduced<T> reduce(T x) {
    using Tr = Traits<T>;
    using Int = typename Tr::Int;
    T shifted = fma(x, T(1.4426950408889634), Tr::kRound);
    T n = shifted - Tr::kRound;
    T r = fma(-n, Tr::kLn2Low, fma(-n, Tr::kLn2High, x));
    return {r, Int(__builtin_bit_cast(Int, shifted) - __builtin_bit_cast(Int, Tr::kRound))};
}

// Returns (e^r - 1 - r) / r^2. The second argument selects the precision, because r may be a vector.
template <class X>
RL_MATH X exp_tail(X r, float) {
    return polynomial(r, 5.000000095e-01f, 1.666651878e-01f, 4.166620596e-02f, 8.368896412e-03f,
                      1.395047746e-03f);
}
template <class X>
RL_MATH X exp_tail(X r, double) {
    return polynomial(r, 5.00000000000001221e-01, 1.66666666666666990e-01, 4.16666666665152993e-02,
                      8.33333333330718573e-03, 1.38888889470498221e-03, 1.98412699174270397e-04,
                      2.48014899041842384e-05, 2.75572162596190345e-06, 2.76312948394773910e-07,
                      2.51178746482811328e-08);
}

// Returns log(1 + f) + e ln 2 for 1 + f in [sqrt(1/2), sqrt(2)].
RL_MATH float log_reduced(float f, float e) {
    float square = f * f;
    float p = polynomial(f, 3.333331673e-01f, -2.500081037e-01f, 2.000228593e-01f, -1.662455478e-01f,
                         1.418119972e-01f, -1.312875641e-01f, 1.288159667e-01f, -7.859544001e-02f);
    float tail = fma(f * square, p, e * Traits<float>::kLn2Low);
    return fma(e, Traits<float>::kLn2High, f + fma(-0.5f, square, tail));
}
RL_MATH double log_series(double z) {
    return polynomial(z, 6.66666666666673513e-01, 3.99999999994111011e-01, 2.85714287432618008e-01,
                      2.22221984760580860e-01, 1.81835697364467280e-01, 1.53139033251417367e-01,
                      1.47975070132437603e-01);
}
RL_MATH double log_reduced(double f, double e) {
    // With s = f / (2 + f): log(1 + f) = 2 s + s^3 p(s^2), arranged so that f itself is added last.
    double s = f / (2 + f), half_square = 0.5 * f * f, z = s * s;
    double tail = fma(s, half_square + z * log_series(z), e * Traits<double>::kLn2Low);
    return fma(e, Traits<double>::kLn2High, f - (half_square - tail));
}

// The numbers in x = 2^exponent (1 + f), where 1 + f is in [sqrt(1/2), sqrt(2)].
template <class T> struct Scaled {
    T f, exponent;
};
template <class T>
RL_MATH Scaled<T> scale_for_log(T x) {
    using Tr = Traits<T>;
    using Int = typename Tr::Int;
    bool subnormal = x < Tr::kSmallest;
    T scaled = subnormal ? x * power_of_two<T>(Tr::kMantissa + 1) : x;
    Int bits = __builtin_bit_cast(Int, scaled);
    // The exponent stays biased and therefore positive, because AVX2 can neither shift nor convert signed 64-bit integers.
    Int biased =
        (bits - __builtin_bit_cast(Int, Tr::kHalfRoot) + (Tr::kBias << Tr::kMantissa)) >> Tr::kMantissa;
    T f = __builtin_bit_cast(T, Int(bits - (biased << Tr::kMantissa) + (Tr::kBias << Tr::kMantissa))) - T(1);
    constexpr T kOne = T(Int(1) << Tr::kMantissa);  // its last bit has the value 1
    T exponent = __builtin_bit_cast(T, Int(biased | __builtin_bit_cast(Int, kOne))) -
                 (kOne + T(Tr::kBias) + (subnormal ? T(Tr::kMantissa + 1) : T(0)));
    return {f, exponent};
}
// Returns y, a logarithm of x, or the logarithm of an x that is not a positive finite number.
template <class T>
RL_MATH T log_or_end(T x, T y) {
    y = x > Traits<T>::kLargest ? x : y;
    y = x == T(0) ? -__builtin_inf() : y;
    return x >= T(0) ? y : T(__builtin_nan(""));
}

// Returns log(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)].
RL_MATH float log_tail(float f) {
    float square = f * f;
    float p = polynomial(f, 3.333331673e-01f, -2.500081037e-01f, 2.000228593e-01f, -1.662455478e-01f,
                         1.418119972e-01f, -1.312875641e-01f, 1.288159667e-01f, -7.859544001e-02f);
    return fma(-0.5f, square, f * square * p);
}
RL_MATH double log_tail(double f) {
    double s = f / (2 + f), half_square = 0.5 * f * f, z = s * s;
    return fma(s, half_square + z * log_series(z), -half_square);
}
// Returns exponent * (whole + whole_low) + log(1 + f) * (factor + factor_low). `whole` has so few bits that its products with
// exponents are exact.
template <class T>
RL_MATH T log_times(T f, T exponent, T whole, T whole_low, T factor, T factor_low) {
    const T large = exponent * whole, product = f * factor, product_low = fma(f, factor, -product);
    const T sum = large + product, sum_low = (large - sum) + product + product_low;
    return sum + fma(log_tail(f), factor, fma(f, factor_low, fma(exponent, whole_low, sum_low)));
}

RL_MATH float erf_small(float x) {  // |x| <= 1
    float z = x * x;
    return fma(x,
               polynomial(z, 1.28379166e-01f, -3.761262582e-01f, 1.128358514e-01f, -2.685381174e-02f,
                          5.188327326e-03f, -8.010190549e-04f, 7.853851366e-05f),
               x);
}
RL_MATH double erf_small(double x) {
    double z = x * x;
    return fma(x,
               polynomial(z, 1.28379167095512560e-01, -3.76126389031835207e-01, 1.12837916709441849e-01,
                          -2.68661706431114825e-02, 5.22397760611861394e-03, -8.54832592932217028e-04,
                          1.20552935771527615e-04, -1.49247123071858368e-05, 1.64471316382515970e-06,
                          -1.62063142891137819e-07, 1.37109827486783670e-08, -7.77947294842681552e-10),
               x);
}

}  // namespace detail

template <class T>
RL_MATH T exp(T x) {
    using Tr = detail::Traits<T>;
    auto [r, n] = detail::reduce(detail::clamp(x, Tr::kExpLow, Tr::kExpHigh));
    T p = fma(detail::exp_tail(r, T{}) * r, r, r) + T(1);
    auto half = (n + 2 * Tr::kBias) / 2 - Tr::kBias;  // 2^n itself may overflow or be subnormal
    return p * detail::power_of_two<T>(half) * detail::power_of_two<T>(n - half);
}

template <class T>
RL_MATH T exp2(T x) {
    using Tr = detail::Traits<T>;
    x = detail::clamp(x, T(-2 * int(Tr::kBias)), T(Tr::kBias + 1));
    T shifted = x + Tr::kRound;
    T r = (x - (shifted - Tr::kRound)) * T(0.69314718055994531);
    T p = fma(detail::exp_tail(r, T{}) * r, r, r) + T(1);
    auto n = __builtin_bit_cast(typename Tr::Int, shifted) - __builtin_bit_cast(typename Tr::Int, Tr::kRound);
    auto half = (n + 2 * Tr::kBias) / 2 - Tr::kBias;
    return p * detail::power_of_two<T>(half) * detail::power_of_two<T>(n - half);
}

template <class T>
RL_MATH T expm1(T x) {
    using Tr = detail::Traits<T>;
    auto [r, n] = detail::reduce(detail::clamp(x, T(-50), Tr::kExpHigh));
    T q = fma(detail::exp_tail(r, T{}) * r, r, r);
    T half_power = detail::power_of_two<T>(n - 1);
    T y = T(2) * fma(half_power, q, half_power - T(0.5));
    return fabs(x) < T(1e-20) ? x : y;  // preserves -0 and subnormal numbers
}

template <class T>
RL_MATH T log(T x) {
    const auto [f, exponent] = detail::scale_for_log(x);
    return detail::log_or_end(x, detail::log_reduced(f, exponent));
}
template <class T>
RL_MATH T log2(T x) {
    constexpr double kFactor = 1.4426950408889634, kFactorLow = 2.0355273740931033e-17;
    constexpr T kHigh = T(kFactor), kLow = T((kFactor - double(kHigh)) + kFactorLow);
    const auto [f, exponent] = detail::scale_for_log(x);
    return detail::log_or_end(x, detail::log_times(f, exponent, T(1), T(0), kHigh, kLow));
}
template <class T>
RL_MATH T log10(T x) {
    using Tr = detail::Traits<T>;
    constexpr double kFactor = 0.4342944819032518, kFactorLow = 1.0983196502167651e-17;
    constexpr T kHigh = T(kFactor), kLow = T((kFactor - double(kHigh)) + kFactorLow);
    const auto [f, exponent] = detail::scale_for_log(x);
    return detail::log_or_end(x, detail::log_times(f, exponent, Tr::kLog2High, Tr::kLog2Low, kHigh, kLow));
}

template <class T>
RL_MATH T log1p(T x) {
    T u = T(1) + x;
    T lost = x - (u - T(1));  // rounding error of 1 + x
    T correction = lost / u;
    bool finite = u > T(0) && u <= detail::Traits<T>::kLargest;
    T y = log(u) + (finite ? correction : T(0));
    return x == T(0) ? x : y;  // preserves -0
}

template <class T>
RL_MATH T sigmoid(T x) {
    return T(1) / (T(1) + exp(-x));
}

template <class T>
RL_MATH T tanh(T x) {
    T magnitude = fabs(x);
    magnitude = magnitude > detail::Traits<T>::kTanhHigh ? detail::Traits<T>::kTanhHigh : magnitude;
    T e = expm1(T(2) * magnitude);
    return copysign(e / (e + T(2)), x);
}

RL_MATH float erf(float x) {
    float magnitude = fabs(x);
    float t = magnitude > 4.f ? 4.f : magnitude;
    float log_erfc = polynomial(t, -3.415320333e-04f, -1.127089149e+00f, -6.381449085e-01f, -1.031066819e-01f,
                                2.183802576e-02f, -2.947647876e-03f, 1.863780443e-04f);
    float large = copysign(1.f - exp(log_erfc), x);
    return magnitude > 1.f ? large : (magnitude <= 1.f ? detail::erf_small(x) : x);
}

RL_MATH double erf(double x) {
    double magnitude = fabs(x);
    double a = magnitude > 6. ? 6. : magnitude;
    // erfc(a) = e^(-a^2) p(2 / (2 + a)). The rounding of a^2 has little effect, because erfc <= 0.16 here.
    double t = 2. / (2. + a);
    double p = polynomial(t, -3.13055753762215942e-06, 2.82188705630247894e-01, 2.80816301786913025e-01,
                          2.57311883292692722e-01, 1.18592046797304979e-01, 3.08996296206425658e-01,
                          -6.42466382858646878e-01, 1.25957779944154158e+00, -1.99540662923157486e+00,
                          1.94294620745089186e+00, -1.12600546630956155e+00, 3.65242054635059932e-01,
                          -5.17902845419669494e-02);
    double large = copysign(1. - exp(-a * a) * p, x);
    return magnitude > 1. ? large : (magnitude <= 1. ? detail::erf_small(x) : x);
}

#undef RL_MATH

}  // namespace rushlight::cpu::RUSHLIGHT_CPU::math
