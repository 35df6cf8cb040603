// The gamma function and related functions, in double for all types. DLMF is the "NIST Digital Library of Mathematical
// Functions".
#pragma once

#include "ops/functors/special_float.h"
#include "ops/functors/special_math.h"

namespace rushlight::functors {
namespace {
namespace math {
inline namespace RUSHLIGHT_CPU {  // one namespace for each capability, so that their symbols differ

/// The logarithm of the gamma function's magnitude. On the CPU, lgamma_r is called, because the C library's lgamma
/// writes the sign to a variable that all threads share.
RL_SPECIAL double lgamma(double x) {
#if defined(__CUDACC__)
    return ::lgamma(x);
#else
    int sign;
    return ::lgamma_r(x, &sign);
#endif
}

/// The derivative of lgamma. Uses reflection (DLMF 5.5.4), the recurrence (5.5.2) and the series for large x (5.11.2).
/// From 1 to 2 it uses a fit of psi(x) / (x - x0), where x0 is the root of psi, so that no digits are lost near the
/// root.
RL_SPECIAL double digamma(double x) {
    static constexpr double kDigamma[] = {
        0.983570260441567,     -0.2270640863346444,     0.03336889902393011,    -0.005320077271596548,
        0.0008788656937820505, -0.00014773492650606044, 2.5060543468359146e-05, -4.2721034029993324e-06,
        7.302769272465923e-07, -1.2502886813559594e-07, 2.1425009322359472e-08, -3.673295918565179e-09,
        6.299717236108931e-10, -1.080593028883266e-10,  1.853735192053638e-11,  -3.18023536582553e-12,
        5.456147570322795e-13, -9.360993131036438e-14,  1.606064636295075e-14,  -2.7555431377438815e-15,
        4.727736178601912e-16, -8.11148420346509e-17,   1.391707769474154e-17};
    constexpr double kRoot = 1.4616321449683622, kRootLow = 9.549995429965697e-17;
    if (x == 0) return std::copysign(kInfinity, -x);
    double result = 0;
    if (x < 0) {
        double fraction = x - std::floor(x);
        if (!(fraction > 0)) return static_cast<double>(NAN);
        if (x > -0.5) {
            // Near 0, reflection loses digits in 1 - x; one step of the recurrence is used instead.
            result = -1 / x;
            x += 1;
        } else {
            // The angle is below pi / 2 in both cases: cot pi f = -cot pi (1 - f).
            result = fraction == 0.5  ? 0
                     : fraction < 0.5 ? -kPi / std::tan(kPi * fraction)
                                      : kPi / std::tan(kPi * (1 - fraction));
            x = 1 - x;
        }
    }
    if (x >= 12) {
        double z = 1 / (x * x);
        double series =
            z * (1. / 12 -
                 z * (1. / 120 -
                      z * (1. / 252 - z * (1. / 240 - z * (1. / 132 - z * (691. / 32760 - z * (1. / 12)))))));
        return result + (x < kInfinity ? std::log(x) - 0.5 / x - series : x);
    }
    for (; x < 1; x += 1) result -= 1 / x;
    for (; x > 2; x -= 1) result += 1 / (x - 1);
    return result + (x - kRoot - kRootLow) * chebyshev(kDigamma, 2 * x - 3);
}

/// The sum of (q + k)^-s over k = 0, 1, ... for q > 0 and s > 1, by the Euler-Maclaurin formula (DLMF 2.10.1).
RL_SPECIAL double zeta_positive(double s, double q) {
    // B_2j / (2j)!
    if (q > 1e8) return (1 / (s - 1) + 0.5 / q) * std::pow(q, 1 - s);
    static constexpr double kBernoulli[] = {1. / 12,
                                            -1. / 720,
                                            1. / 30240,
                                            -1. / 1209600,
                                            1. / 47900160,
                                            -5.284190138687493e-10,
                                            1.3382536530684679e-11,
                                            -3.3896802963225829e-13,
                                            8.586062056277845e-15,
                                            -2.174868698558062e-16};
    double sum = 0, term = 0, at = q;
    for (int k = 0; k < 10 || at <= 10; ++k, at += 1) {
        term = std::pow(at, -s);
        sum += term;
        if (term < sum * 1e-17) return sum;
    }
    term = std::pow(at, -s);
    sum += term * at / (s - 1) + 0.5 * term;
    double factor = s;
    for (int j = 0; j < 10; ++j) {
        term /= at;
        double step = kBernoulli[j] * factor * term;
        sum += step;
        if (std::fabs(step) < std::fabs(sum) * 1e-17) break;
        term /= at;
        factor *= (s + 2 * j + 1) * (s + 2 * j + 2);
    }
    return sum;
}

/// The Hurwitz zeta function (DLMF 25.11.1). For negative q, it is defined for integer s only.
RL_SPECIAL double zeta(double s, double q) {
    if (s == 1) return kInfinity;
    if (!(s > 1 && q > -kInfinity)) return static_cast<double>(NAN);
    if (q > 0) return s < kInfinity ? zeta_positive(s, q) : q < 1 ? kInfinity : q == 1;
    double floor = std::floor(q);
    if (q == floor) return kInfinity;
    if (s != std::floor(s)) return static_cast<double>(NAN);
    double sum = 0;
    if (q > -20) {
        for (; q < 0; q += 1) sum += std::pow(q, -s);
        return sum + (q > 0 ? zeta_positive(s, q) : kInfinity);
    }
    // The terms with negative bases are the terms for 1 - f, 2 - f, ..., -q, in reverse order.
    double fraction = q - floor, sign = std::fmod(s, 2) == 0 ? 1 : -1;
    return zeta_positive(s, fraction) + sign * (zeta_positive(s, 1 - fraction) - zeta_positive(s, 1 - q));
}

/// The derivative of digamma. Uses reflection (DLMF 5.15.6), the recurrence (5.15.5) and the series for large x (5.15.8).
RL_SPECIAL double trigamma(double x) {
    if (x < 0) {
        const double ratio = kPi / sine_of_pi_times(x);
        return ratio * ratio - trigamma(1 - x);
    }
    double sum = 0;
    for (; x < 12; x += 1) sum += 1 / (x * x);
    const double r = 1 / x, z = r * r;
    return sum + r + 0.5 * z +
           r * z * series(z, 1. / 6, -1. / 30, 1. / 42, -1. / 30, 5. / 66, -691. / 2730, 7. / 6);
}

/// The n-th derivative of digamma (DLMF 25.11.12).
RL_SPECIAL double polygamma(double n, double x) {
    if (n == 0) return digamma(x);
    if (n == 1) return trigamma(x);
    double sign = std::fmod(n, 2) == 0 ? -1 : 1;
    return x == kInfinity ? sign * 0.0 : sign * std::exp(lgamma(n + 1)) * zeta(n + 1, x);
}

/// Returns m - log(1 + m) with m = x / a - 1, without cancellation near x = a.
RL_SPECIAL double log_gap(double a, double x) {
    double m = (x - a) / a;
    if (std::fabs(m) > 0.4) return m - std::log(x / a);
    // With s = m / (2 + m), log(1 + m) = 2 (s + s^3/3 + ...), and m - 2 s = m s.
    double s = m / (2 + m), z = s * s, power = s * z, sum = 0;
    for (int k = 3; k < 60; k += 2, power *= z) {
        double term = power / k;
        sum += term;
        if (std::fabs(term) <= std::fabs(sum) * 1e-18) break;
    }
    return m * s - 2 * sum;
}

/// Returns log gamma(a + 1) minus Stirling's approximation (a + 1/2) log a - a + log(2 pi) / 2: DLMF 5.11.1.
RL_SPECIAL double stirling_rest(double a) {
    if (a < 10) return lgamma(a + 1) - ((a + 0.5) * std::log(a) - a + 0.9189385332046728);
    double z = 1 / (a * a);
    return (1. / 12 -
            z * (1. / 360 - z * (1. / 1260 -
                                 z * (1. / 1680 - z * (1. / 1188 - z * (691. / 360360 - z * (1. / 156))))))) /
           a;
}

/// The relative accuracy at which the summation of a series ends if the final result is rounded to float.
constexpr double kQuick = 1e-10;

/// Returns x^a * e^-x / gamma(a + 1).
RL_SPECIAL double gamma_density(double a, double x, bool quick = false) {
    if (a < 10) return std::exp(a * std::log(x) - x - (quick ? lgamma_stirling(a + 1) : lgamma(a + 1)));
    double gap = log_gap(a, x);
    return std::exp(-a * gap - stirling_rest(a)) / std::sqrt(6.283185307179586 * a);
}

/// The upper incomplete gamma function, or the lower incomplete gamma function if `lower` is true, for large a and x
/// near a: N. M. Temme, "The asymptotic expansion of the incomplete gamma functions", 1979 (DLMF 8.12).
RL_SPECIAL double igamma_uniform(double a, double x, bool lower) {
    // Coefficients of eta^n a^-k, where eta measures the deviation of x / a from 1, from DLMF 8.12.11 and 8.12.12.
    static constexpr double kTemme[7][16] = {
        {-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
         0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
         -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
         1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11},
        {-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
         0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
         -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
         1.1951628599778148e-08, -1.7543241719747647e-11, -1.0091543710600413e-09, 4.162792991842583e-10},
        {0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
         -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05, 3.423578734096138e-08,
         1.3721957309062934e-06, -6.298992138380055e-07, 1.4280614206064242e-07, -2.0477098421990866e-10,
         -1.409252991086752e-08, 6.228974084922022e-09, -1.3670488396617114e-09, 9.428356159014678e-13},
        {0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885,
         -7.561801671883977e-05, -2.396505113867297e-07, 1.1082654115347302e-05, -5.6749528269915965e-06,
         1.4230900732435883e-06, -2.7861080291528143e-11, -1.6958404091930278e-07, 8.099464905388083e-08,
         -1.9111168485973655e-08, 2.3928620439808118e-12, 2.0620131815488797e-09, -9.460496661855133e-10},
        {-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902, -1.4638452578843418e-06,
         6.641498215465122e-05, -3.968365047179435e-05, 1.1375726970678419e-05, 2.507497226237533e-10,
         -1.6954149536558305e-06, 8.907507532205309e-07, -2.292934834000805e-07, 2.956794137544049e-11,
         2.8865829742708783e-08, -1.4189739437803219e-08, 3.4463580499464896e-09, -2.3024517174528067e-13},
        {-0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392, -0.00019932570516188847,
         6.797780477937208e-05, 1.419062920643967e-07, -1.3594048189768693e-05, 8.018470256334202e-06,
         -2.291481176508095e-06, -3.252473551298454e-10, 3.4652846491085265e-07, -1.8447187191171344e-07,
         4.8240967037894184e-08, -1.7989466721743514e-14, -6.306194500013523e-09, 3.162417628774568e-09},
        {0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045, 7.902353232660328e-07,
         -8.153969367561969e-05, 5.61168275310625e-05, -1.8329116582843375e-05, -3.0796134506033047e-09,
         3.465155368803609e-06, -2.0291327396058603e-06, 5.788792863149004e-07, 2.338630673826657e-13,
         -8.828600746330484e-08, 4.7435958880408125e-08, -1.2545415020710383e-08, 8.649648858010293e-14}};
    double gap = log_gap(a, x), eta = std::copysign(std::sqrt(2 * gap), x - a);
    double sum = 0, scale = 1;
    for (const auto& row : kTemme) {
        double c = 0;
        for (int n = 15; n >= 0; --n) c = c * eta + row[n];
        sum += c * scale;
        scale /= a;
    }
    double rest = std::exp(-a * gap) / std::sqrt(6.283185307179586 * a) * sum;
    double z = eta * std::sqrt(0.5 * a);
    return lower ? 0.5 * std::erfc(-z) - rest : 0.5 * std::erfc(z) + rest;
}

/// The lower incomplete gamma function by its power series (DLMF 8.11.4).
RL_SPECIAL double igamma_series(double a, double x, bool quick) {
    const double end = quick ? kQuick : 1e-17;
    double term = 1, sum = 1;
    for (double n = a + 1; term > sum * end && n < a + 10000; n += 1) {
        term *= x / n;
        sum += term;
    }
    return sum * gamma_density(a, x, quick);
}

/// The upper incomplete gamma function by its continued fraction (DLMF 8.9.2), with the algorithm of W. J. Lentz, 1976.
RL_SPECIAL double igamma_fraction(double a, double x, bool quick) {
    const double end = quick ? kQuick : 1e-16;
    double b = x + 1 - a, c = 1e300, d = 1 / b, product = d;
    for (int i = 1; i < 10000; ++i) {
        double numerator = -i * (i - a);
        b += 2;
        d = numerator * d + b;
        d = 1 / (std::fabs(d) < 1e-300 ? 1e-300 : d);
        c = b + numerator / c;
        if (std::fabs(c) < 1e-300) c = 1e-300;
        double step = d * c;
        product *= step;
        if (std::fabs(step - 1) < end) break;
    }
    return product * gamma_density(a, x, quick) * a;
}

/// The upper incomplete gamma function for small a and x. Subtracting the power series of the lower function from 1
/// would lose digits by cancellation, so the term x^a / gamma(a + 1) is subtracted from 1 by expm1.
RL_SPECIAL double igammac_small(double a, double x, bool quick) {
    const double end = quick ? kQuick : 1e-17;
    double term = 1, sum = 0;
    for (int n = 1; n < 200; ++n) {
        term *= -x / n;
        sum += term / (a + n);
        if (std::fabs(term) < std::fabs(sum) * end) break;
    }
    double power = a * std::log(x) - (quick ? lgamma_stirling(a + 1) : lgamma(a + 1));
    return -std::expm1(power) - std::exp(power) * a * sum;
}

/// The regularised incomplete gamma functions (DLMF 8.2.4), lower or upper. If `quick` is true, the result has float32
/// accuracy.
RL_SPECIAL double incomplete_gamma(double a, double x, bool lower, bool quick = false) {
    if (!(a >= 0 && x >= 0) || (a == 0 && x == 0)) return static_cast<double>(NAN);
    if (std::isinf(a)) return std::isinf(x) ? static_cast<double>(NAN) : lower ? 0 : 1;
    if (x == 0) return lower ? 0 : 1;
    if (a == 0 || std::isinf(x)) return lower ? 1 : 0;
    if (a > 200 && std::fabs(x - a) < 0.3 * a) return igamma_uniform(a, x, lower);
    if (!lower && x <= 1.1 && a < 1.1 && (x > 0.5 ? x * 1.1 < a : -0.4 / std::log(x) < a)) {
        return 1 - igamma_series(a, x, quick);
    }
    if (x <= 1.1)
        return lower     ? igamma_series(a, x, quick)
               : a < 1.1 ? igammac_small(a, x, quick)
                         : 1 - igamma_series(a, x, quick);
    // For x slightly above a, the fraction converges slowly. For float, 1 minus the lower function is accurate enough there.
    bool below = x < a || (quick && a > 0.3 && x < a + 1 + 2 * std::sqrt(a));
    double one = below ? igamma_series(a, x, quick) : igamma_fraction(a, x, quick);
    return below == lower ? one : 1 - one;
}

}  // namespace RUSHLIGHT_CPU
}  // namespace math
}  // namespace
}  // namespace rushlight::functors
