// More elementary functions of double for kernels: inverse trigonometric functions, hyperbolic functions, erfc and hypot.
// Loops over them become vector code, as in vector_math.h.
//
// The functions compute the largest term of a sum together with its rounding error, and add the error to the smaller terms.
// Largest errors found, in units in the last place: asin 0.7, acos 0.6, atan 0.8, atan2 1.2, atanh 0.6, sinh 0.8, cosh 0.7,
// erfc 1.5, hypot 0.6. For infinities, NaN and zeros, the results equal the results of C's functions. The polynomials
// are Chebyshev fits made for this file.
#pragma once

#include "cpu/vector_math.h"

namespace rushlight::cpu::RUSHLIGHT_CPU::math {

#define RL_MATH [[gnu::always_inline]] static inline

namespace detail {

// Multiples of pi / 4 and ln 2 / 2, as the sum of a double and the rest.
inline constexpr double kQuarterPi = 0x1.921fb54442d18p-1, kQuarterPiLow = 0x1.1a62633145c07p-55;
inline constexpr double kInfinity = __builtin_inf();

RL_MATH double sqrt(double x) { return __builtin_sqrt(x); }

// Returns (asin(t) - t) / t^3 for 0 <= t <= 1/2. `z` must be t^2.
RL_MATH double asin_tail(double z) {
    return polynomial(z, 0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247,
                      0.02237217294214989, 0.017352392720869973, 0.013971212973552933, 0.011479177415184906,
                      0.01032281435018578, 0.005457506718640358, 0.01740087944269402, -0.014851887071247204,
                      0.028757851367421566);
}

// Returns (atan(t) - t) / t^3 for |t| <= tan(pi / 8). `z` must be t^2.
RL_MATH double atan_tail(double z) {
    return polynomial(z, -0.3333333333333333, 0.19999999999999804, -0.14285714285659779, 0.11111111105150588,
                      -0.09090908753259112, 0.07692296368042296, -0.0666642476020052, 0.05878927554473807,
                      -0.05230443640686948, 0.045515447340221615, -0.03456931506332609, 0.016284375050043393);
}

// Returns k pi / 4 + sign * atan(low / high) for 0 <= low <= high, where `k` is one of 0, 2 and 4, and `sign` is 1 or -1.
// `high` must be at least 2^-1000 and at most 2^1000.
RL_MATH double angle(double low, double high, double k, double sign) {
    // atan(low / high) = pi / 4 + atan((low - high) / (low + high)) if the quotient is above tan(pi / 8).
    const bool middle = low > high * 0.41421356237309503;
    const double above = middle ? low - high : low, below = middle ? low + high : high;
    const double above_low = middle ? low - (above + high) : 0, below_low = middle ? low - (below - high) : 0;
    const double inverse = 1 / below, t = above * inverse;
    const double t_low = (fma(-t, below, above) + fma(-t, below_low, above_low)) * inverse;
    k = middle ? k + sign : k;
    const double base = k * kQuarterPi, base_low = fma(k, kQuarterPiLow, fma(k, kQuarterPi, -base));
    const double sum = fma(sign, t, base), sum_low = fma(sign, t, base - sum);
    const double z = t * t, tail = fma(t * z, atan_tail(z), t_low);
    return sum + fma(sign, tail, base_low + sum_low);
}

// Returns e^x as 2^n (1 + r + ...), where r + r_low is in [-ln 2 / 2, ln 2 / 2].
struct Exponent {
    double r, r_low;
    uint64_t n;
};
RL_MATH Exponent reduce_twice(double x) {
    using Tr = Traits<double>;
    const double shifted = fma(x, 1.4426950408889634, Tr::kRound), n = shifted - Tr::kRound;
    const double high = fma(-n, Tr::kLn2High, x), r = fma(-n, Tr::kLn2Low, high);
    return {r, fma(-n, Tr::kLn2Low, high - r),
            __builtin_bit_cast(uint64_t, shifted) - __builtin_bit_cast(uint64_t, Tr::kRound)};
}

// Returns (e^a + sign * e^-a) / 2 for a >= 0. With a = n ln 2 + r, this is even * cosh(r) + odd * sinh(r), where even is
// (2^n + sign * 2^-n) / 2 and odd is (2^n - sign * 2^-n) / 2.
RL_MATH double hyperbolic(double a, double sign) {
    const Exponent e = reduce_twice(a > 711 ? 711. : a);
    const bool large = static_cast<int64_t>(e.n) > 512;  // 2^n may overflow
    const uint64_t n = large ? e.n - 128 : e.n;
    const double up = power_of_two<double>(n - 1), down = sign * power_of_two<double>(-n - 1);
    const double even = up + down, even_low = down - (even - up), odd = up - down,
                 odd_low = (up - odd) - down;
    const double r = e.r, z = r * r;
    // cosh(r) - 1, and sinh(r) - r.
    const double cosh_tail =
        fma(z * z,
            polynomial(z, 0.041666666666666664, 0.001388888888888889, 2.4801587301583192e-05,
                       2.755731923856354e-07, 2.0876733620535534e-09, 1.148800745240156e-11),
            0.5 * z);
    const double sinh_tail =
        fma(r * z,
            polynomial(z, 0.16666666666666666, 0.008333333333333333, 0.00019841269841263263,
                       2.7557319247313303e-06, 2.505207099314993e-08, 1.6086665349709771e-10),
            e.r_low);
    const double sum = fma(odd, r, even), sum_low = fma(odd, r, even - sum) + fma(odd_low, r, even_low);
    const double y = sum + fma(even, cosh_tail, fma(odd, sinh_tail, sum_low));
    return y * (large ? 0x1p128 : 1.);
}

}  // namespace detail

RL_MATH double asin(double x) {
    const double a = fabs(x);
    const bool outer = a > 0.5;
    // asin(a) = pi / 2 - 2 asin(sqrt((1 - a) / 2)).
    const double z = outer ? fma(-0.5, a, 0.5) : a * a, t = outer ? detail::sqrt(z) : a;
    const double root_low = fma(-t, t, z) / (t + t), tail = t * z * detail::asin_tail(z);
    const double base = 2 * detail::kQuarterPi, sum = fma(-2., t, base), sum_low = fma(-2., t, base - sum);
    const double far = sum + (sum_low + fma(-2., tail + root_low, 2 * detail::kQuarterPiLow));
    return copysign(outer ? (z == 0 ? base : far) : a + tail, x);
}

RL_MATH double acos(double x) {
    const double a = fabs(x);
    const bool outer = a > 0.5;
    const double z = outer ? fma(-0.5, a, 0.5) : a * a, t = outer ? detail::sqrt(z) : x;
    const double root_low = outer & (z > 0) ? fma(-t, t, z) / (t + t) : 0.;
    const double tail = fma(t * z, detail::asin_tail(z), root_low);
    // 2 asin(t) for x > 1/2, pi - 2 asin(t) for x < -1/2, and pi / 2 - asin(t) between.
    const double k = outer ? (x > 0 ? 0. : 4.) : 2., factor = outer ? (x > 0 ? 2. : -2.) : -1.;
    const double base = k * detail::kQuarterPi, sum = fma(factor, t, base),
                 sum_low = fma(factor, t, base - sum);
    return sum + fma(factor, tail, fma(k, detail::kQuarterPiLow, sum_low));
}

RL_MATH double atan(double x) {
    const double a = fabs(x);
    const bool outer = a > 1;
    const double high = outer ? (a > 0x1p1000 ? 0x1p1000 : a) : 1.;
    const double y = detail::angle(outer ? 1. : a, high, outer ? 2. : 0., outer ? -1. : 1.);
    return copysign(x != x ? x : y, x);
}

/// The angle of the point (x, y).
RL_MATH double atan2(double y, double x) {
    const double up = fabs(y), across = fabs(x);
    const bool steep = up > across, left = copysign(1., x) < 0;
    double low = steep ? across : up, high = steep ? up : across;
    // Quotients of infinities and of zeros are replaced by 1 and 0.
    const bool huge = high > 0x1p900, tiny = high < 0x1p-800;
    const double scale = huge ? 0x1p-200 : tiny ? 0x1p300 : 1.;
    low = low == detail::kInfinity ? 1. : high == detail::kInfinity ? 0. : low * scale;
    high = (high == detail::kInfinity) | (high == 0) ? 1. : high * scale;
    const double sign = steep != left ? -1. : 1.;
    const double result = detail::angle(low, high, steep ? 2. : left ? 4. : 0., sign);
    return (x != x) | (y != y) ? x + y : copysign(result, y);
}

/// Computed as log((1 + a) / (1 - a)) / 2. With D = 2^k (1 - a) near 1 + a, this is k ln 2 / 2 + atanh(s) with s = (1 + a -
/// D) / (1 + a + D).
RL_MATH double atanh(double x) {
    using Tr = detail::Traits<double>;
    const double a = fabs(x), n = 1 + a, d = 1 - a, n_low = a - (n - 1), d_low = (1 - d) - a;
    // The bits of a number are a piecewise linear approximation to its logarithm.
    const uint64_t k =
        (__builtin_bit_cast(uint64_t, n) - __builtin_bit_cast(uint64_t, d) + (uint64_t(1) << 51)) >> 52;
    constexpr double kOne = 0x1p52;  // its last bit has the value 1
    const double exponent = __builtin_bit_cast(double, k | __builtin_bit_cast(uint64_t, kOne)) - kOne;
    const double power = detail::power_of_two<double>(k), scaled = d * power;
    const double above = n - scaled, above_low = fma(-power, d_low, n_low), below = n + scaled;
    const double below_low = (n - below) + scaled + fma(power, d_low, n_low), inverse = 1 / below;
    const double s = (above + above_low) * inverse;
    const double s_low = (fma(-s, below, above) + fma(-s, below_low, above_low)) * inverse, z = s * s;
    const double base = exponent * (0.5 * Tr::kLn2High), sum = base + s, sum_low = (base - sum) + s;
    const double tail =
        polynomial(z, 0.3333333333333333, 0.2000000000000482, 0.14285714283262, 0.11111111585909374,
                   0.0909086403545202, 0.07694622116954734, 0.06601203342183783, 0.0683216865629108);
    const double y = sum + (sum_low + fma(s * z, tail, fma(exponent, 0.5 * Tr::kLn2Low, s_low)));
    return copysign(a == 1 ? detail::kInfinity : a > 1 ? __builtin_nan("") : y, x);
}

RL_MATH double sinh(double x) { return copysign(detail::hyperbolic(fabs(x), -1), x); }
RL_MATH double cosh(double x) { return detail::hyperbolic(fabs(x), 1); }

RL_MATH double erfc(double x) {
    const double magnitude = fabs(x), a = magnitude > 28 ? 28. : magnitude;
    // erfc(a) = e^(-a^2) g(a), where (1 + 2 a) g(a) is a polynomial in (a - 3.5) / (a + 3.5), as in the paper that erfcx in
    // ops/functors/special_math.h cites.
    const double below = 1 + 2 * a, below_low = 1 - (below - 2 * a), shifted = a + 3.5;
    const double both = 1 / (shifted * below), t = (a - 3.5) * below * both, inverse = shifted * both;
    const double inverse_low = fma(-inverse, below_low, fma(-inverse, below, 1.)) * inverse;
    const double p = polynomial(
        t, -0.1400091801376203, -0.010555596332222148, 0.09751909515336747, -0.115089598159953,
        0.0879831538208169, -0.04882332583360144, 0.01909933101158166, -0.004215019839200687,
        -0.0003022685284217706, 0.0005643839464088297, -0.00012150873243558709, -4.278026962460728e-05,
        2.4247813933370864e-05, 2.3232746577613104e-06, -3.7849018027466807e-06, -3.644876171936289e-08,
        5.595028482746336e-07, -1.4590566314518527e-08, -6.162338740053877e-08, 2.990194972002305e-09);
    constexpr double kFirst = 1.2423492448711544;
    const double h = fma(t, p, kFirst), h_low = fma(t, p, kFirst - h), g = h * inverse;
    // t is exact for a number a + gap. The derivative of (1 + 2 a) g is ((1 + 2 a) (2 a g - 2 / sqrt(pi)) + 2 g).
    const double shifted_low = a - (shifted - 3.5), above = a - 3.5, above_low = (a - above) - 3.5;
    const double gap = (fma(t, shifted, -above) + fma(t, shifted_low, -above_low)) * shifted * (1. / 7);
    const double slope = fma(2 * g, a + inverse, -1.1283791670955126);
    const double g_low = fma(h, inverse, -g) + fma(h_low, inverse, fma(h, inverse_low, -gap * slope));
    const double square = a * a, square_low = fma(a, a, -square);
    const detail::Exponent e = detail::reduce_twice(-square);
    const double r = e.r, low = e.r_low - square_low, tail = detail::exp_tail(r, double{}) * r;
    const double rest = r + fma(tail, r, fma(fma(tail, r, r), low, low));  // e^(r + low) - 1
    const uint64_t half = (e.n + 2046) / 2 - 1023;  // 2^n may be subnormal
    const double product = g + fma(g, rest, fma(g_low, rest, g_low));
    const double far =
        product * detail::power_of_two<double>(half) * detail::power_of_two<double>(e.n - half);
    // 1 - erf(x) near 0.
    const double z = x * x, one = 1 - x, one_low = (1 - one) - x;
    const double near =
        one + fma(-x,
                  polynomial(z, 0.12837916709551256, -0.3761263890318347, 0.11283791670925271,
                             -0.026866170632859, 0.0052239773725259965, -0.0008548297707906897,
                             0.00012053332795966865, -1.4845787890421724e-05, 1.4725211252266738e-06),
                  one_low);
    return magnitude < 0.5 ? near : x < 0 ? 2 - far : far;
}

/// Returns sqrt(x^2 + y^2) without overflow: C. F. Borges, "Algorithm 1014: An improved algorithm for hypot(x, y)", ACM
/// Transactions on Mathematical Software 47, 2021.
RL_MATH double hypot(double x, double y) {
    const double first = fabs(x), second = fabs(y);
    const bool swapped = first < second,
               infinite = (first == detail::kInfinity) | (second == detail::kInfinity);
    double a = swapped ? second : first, b = swapped ? first : second;
    const bool huge = a > 0x1p500, tiny = a < 0x1p-450;
    const double scale = huge ? 0x1p-600 : tiny ? 0x1p600 : 1., back = huge ? 0x1p600 : tiny ? 0x1p-600 : 1.;
    a *= scale;
    b *= scale;
    const double squares = a * a, h = detail::sqrt(fma(b, b, squares)), again = h * h;
    const double excess = fma(-b, b, again - squares) + (fma(h, h, -again) - fma(a, a, -squares));
    const double length = (h == 0 ? h : h - excess / (h + h)) * back;
    return infinite ? detail::kInfinity : length;
}

#undef RL_MATH

}  // namespace rushlight::cpu::RUSHLIGHT_CPU::math
