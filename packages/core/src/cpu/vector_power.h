// Powers in double precision of ordinary numbers (has_power). Loops over them become vector code, as in
// vector_math.h. Errors are below 1.5 units in the last place.
//
// x^y = e^(y log x) needs about 64 bits of log x. It is the sum of two numbers, where the second is the rounding
// error of the first (T. J. Dekker, "A floating-point technique for extending the available precision", 1971).
#pragma once

#include "cpu/vector_math.h"

namespace rushlight::cpu::RUSHLIGHT_CPU::math {

#define RL_MATH [[gnu::always_inline]] static inline

namespace detail {

// e and f in x = 2^e (1 + f), where 1 + f is in [sqrt(1/2), sqrt(2)].
struct Split {
    double exponent, f;
};
RL_MATH Split split(double x) {
    using Tr = Traits<double>;
    uint64_t bits = __builtin_bit_cast(uint64_t, x);
    uint64_t biased =
        (bits - __builtin_bit_cast(uint64_t, Tr::kHalfRoot) + (Tr::kBias << Tr::kMantissa)) >> Tr::kMantissa;
    double f = __builtin_bit_cast(double,
                                  uint64_t(bits - (biased << Tr::kMantissa) + (Tr::kBias << Tr::kMantissa))) -
               1;
    constexpr double kOne = 0x1p52;  // its last bit has the value 1
    double exponent =
        __builtin_bit_cast(double, biased | __builtin_bit_cast(uint64_t, kOne)) - (kOne + double(Tr::kBias));
    return {exponent, f};
}

}  // namespace detail

/// Whether `power` may be called: x must be positive and normal, and the result must be normal.
RL_MATH bool has_power(double x, double y) {
    using Tr = detail::Traits<double>;
    const double exponent = detail::split(x).exponent;
    return (x >= Tr::kSmallest) & (x <= Tr::kLargest) & ((fabs(exponent) + 1) * fabs(y) < 1020.);
}

/// Returns x to the power of y. May be called only if has_power(x, y) is true.
RL_MATH double power(double x, double y) {
    const auto [exponent, f] = detail::split(x);
    // s = f / (2 + f), and s_low is the rounding error of the division and the sum. log(1 + f) = 2 s + s^3 (2/3 +
    // 2/5 s^2 + ...).
    const double below = 2 + f, below_low = f - (below - 2);
    const double s = f / below, s_low = (fma(-s, below, f) - s * below_low) / below;
    const double z = s * s, z_low = fma(s, s, -z) + 2 * s * s_low;
    constexpr double kThird = 0x1.5555555555555p-1, kThirdLow = 0x1.5555555555555p-55;
    const double rest =
        z * polynomial(z, 0.4, 2. / 7, 2. / 9, 2. / 11, 2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21);
    const double c = kThird + rest, c_low = (kThird - c) + rest + kThirdLow;
    const double cube = s * z, cube_low = fma(s, z, -cube) + s * z_low + s_low * z;
    const double t = cube * c, t_low = fma(cube, c, -t) + cube * c_low + cube_low * c;
    // Adds the parts in descending order of magnitude: e, 2 s, t.
    const double e = exponent * detail::Traits<double>::kLn2High;
    constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40, kLn2Lower = -0x1.ff0342542fc33p-94;
    const double high = e + 2 * s, high_low = (e - high) + 2 * s;  // |e| > |2 s|, or e is 0
    const double sum = high + t;
    const double sum_low =
        (high - sum) + t + high_low + (2 * s_low + t_low) + fma(exponent, kLn2Low, exponent * kLn2Lower);
    const double l = sum + sum_low, l_low = (sum - l) + sum_low;
    const double product = y * l, product_low = fma(y, l, -product) + y * l_low;
    const auto [r, n] = detail::reduce(product);
    const double tail = r + product_low;
    const double p = fma(detail::exp_tail(tail, double{}) * tail, tail, tail) + 1;
    return p * detail::power_of_two<double>(n);
}

#undef RL_MATH

}  // namespace rushlight::cpu::RUSHLIGHT_CPU::math
