// Error functions, the normal distribution and modified Bessel functions, in double for all types. The tables are Chebyshev
// fits made for this file with 50 digits.
#pragma once

#include "ops/functors/math.h"

#if defined(__CUDACC__)
#define RL_SPECIAL __host__ __device__ inline
#else
// These functions are long and cannot be vectorised, so they are compiled once for each file and capability. Unnamed
// namespaces keep the copies apart.
#define RL_SPECIAL [[gnu::noinline]] inline
#endif

namespace rushlight::functors {
namespace {
namespace math {
inline namespace RUSHLIGHT_CPU {  // one namespace for each capability, so that their symbols differ

constexpr double kRootHalf = 0.7071067811865476, kInfinity = static_cast<double>(INFINITY);

/// Returns the Chebyshev series c[0] + c[1] * T1(t) + c[2] * T2(t) + ..., by the algorithm of C. W. Clenshaw, "A note
/// on the summation of Chebyshev series", 1955.
template <int n>
RL_HD inline double chebyshev(const double (&c)[n], double t) {
    double b0 = 0, b1 = 0;
    for (int i = n - 1; i > 0; --i) {
        double b2 = b1;
        b1 = b0;
        b0 = 2 * t * b1 - b2 + c[i];
    }
    return t * b0 - b1 + c[0];
}

/// Returns e^(x^2). The rounding error of x^2 is corrected, because exp would increase the relative error by a factor
/// of about x^2.
RL_SPECIAL double exp_square(double x) {
    double high = x * x, low = std::fma(x, x, -high);
    double e = std::exp(high);
    return std::isfinite(e) ? e + e * low : e;
}

/// Returns e^(x^2) erfc(x). M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x
/// in 0 <= x < infinity", Mathematics of Computation 36, 1981.
RL_SPECIAL double erfcx(double x) {
    static constexpr double kErfcx[] = {
        1.1775789345674017,     -0.004590054580646478,  -0.08424913336651792,    0.05920993999819189,
        -0.026658668435305753,  0.009074997670705265,   -0.002413163540417608,   0.0004907758365258086,
        -6.916973302501207e-05, 4.13902798607301e-06,   7.74038306619849e-07,    -2.1886401049234397e-07,
        1.076499946567091e-08,  4.521959811218287e-09,  -7.754400208831351e-10,  -6.318088340886684e-11,
        2.86879501093067e-11,   1.9455868545777347e-13, -9.65469674843344e-13,   3.25254814814874e-14,
        3.3478119482868056e-14, -1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624044e-17,
        5.068148904796111e-17};
    if (x != x) return x;
    double a = std::fabs(x);
    double positive = std::isinf(a) ? 0 : chebyshev(kErfcx, (a - 3.75) / (a + 3.75)) / (1 + 2 * a);
    return x < 0 ? 2 * exp_square(x) - positive : positive;
}

/// The derivative of erfcx, 2 x erfcx(x) - 2 / sqrt(pi). For large x both terms are nearly equal, so the asymptotic
/// series is used (DLMF 7.12.1).
RL_SPECIAL double erfcx_slope(double x) {
    if (x < 12) return 2 * x * erfcx(x) - 1.1283791670955126;
    const double t = 0.5 / (x * x);
    double sum = 1;
    for (int k = 25; k >= 3; k -= 2) sum = 1 - k * t * sum;
    return -0.5641895835477563 / x / x * sum;
}

/// The normal distribution function.
RL_HD inline double ndtr(double x) { return 0.5 * erfc(-x * kRootHalf); }

/// The logarithm of ndtr. The lower tail is computed from erfcx, because ndtr underflows there.
RL_SPECIAL double log_ndtr(double x) {
    if (x < -1) return std::log(erfcx(-x * kRootHalf) * 0.5) - x * x * 0.5;
    return std::log1p(-0.5 * std::erfc(x * kRootHalf));
}

/// Returns e^-|x| I0(x), where I is the modified Bessel function of the first kind (DLMF 10.25).
RL_SPECIAL double i0e(double x) {
    static constexpr double kI0Small[] = {
        0.33839763720473803,    -0.3046826723431984,     0.17162090152220877,    -0.09490109704804764,
        0.04930528423967071,    -0.02373741480589947,    0.010546460394594998,   -0.004324309995050576,
        0.0016394756169413357,  -0.0005763755745385824,  0.00018850288509584165, -5.754195010082104e-05,
        1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
        6.046995022541919e-08,  -1.300025009986248e-08,  2.6598237246823866e-09, -5.189795601635263e-10,
        9.675809035373237e-11,  -1.726826291441556e-11,  2.95505266312964e-12,   -4.856446783111929e-13,
        7.676185498604936e-14,  -1.1685332877993451e-14, 1.715391285555133e-15,  -2.431279846547955e-16,
        3.3307945188222384e-17, -4.4153416464793395e-18};
    static constexpr double kI0Large[] = {
        0.4022452055070544,      0.0033691164782556943,   6.889758346916825e-05,   2.8913705208347567e-06,
        2.0489185894690638e-07,  2.266668990498178e-08,   3.3962320257083865e-09,  4.94060238822497e-10,
        1.1889147107846439e-11,  -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
        7.180124451383666e-13,   3.8527783827421426e-13,  1.54008621752141e-14,    -4.150569347287222e-14,
        -9.554846698828307e-15,  3.8116806693526224e-15,  1.7725601330565263e-15,  -3.425485619677219e-16,
        -2.8276239805165836e-16, 3.461222867697461e-17,   4.46562142029676e-17,    -4.830504485944182e-18,
        -7.233180487874754e-18};
    double a = std::fabs(x);
    if (a <= 8) return chebyshev(kI0Small, a / 4 - 1);
    return a <= kInfinity ? chebyshev(kI0Large, 16 / a - 1) / std::sqrt(a) : x;
}

/// Returns e^-|x| I1(x).
RL_SPECIAL double i1e(double x) {
    static constexpr double kI1Small[] = {
        0.12629359322181682,    -0.17641651835783406,    0.1026436586898471,     -0.05294598120809499,
        0.024726449030626516,   -0.010564084894626197,   0.004156422944312888,   -0.0015135724506312532,
        0.0005122859561685758,  -0.00016176081582589674, 4.781565107550054e-05,  -1.3273163656039436e-05,
        3.4702513081376785e-06, -8.568720264695455e-07,  2.0032947535521353e-07, -4.445059128796328e-08,
        9.381537386495773e-09,  -1.8872497517228294e-09, 3.625590281552117e-10,  -6.663489723502027e-11,
        1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13,  -5.042185504727912e-14,
        7.600684294735408e-15,  -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17,
        2.7779141127610464e-18};
    static constexpr double kI1Large[] = {
        0.38928811750914005,     -0.009761097491361469,   -0.00011058893876262371, -3.882564808877691e-06,
        -2.512236237870209e-07,  -2.6314688468895196e-08, -3.835380385964237e-09,  -5.589743462196584e-10,
        -1.8974958123505413e-11, 3.2526035830154884e-11,  1.4125807436613782e-11,  2.0356285441470896e-12,
        -7.198551776245908e-13,  -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
        1.0420276984128802e-14,  -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
        2.96262899764595e-16,    -3.209525921993424e-17,  -4.6503053684893586e-17, 4.414348323071708e-18,
        7.517296310842105e-18};
    double a = std::fabs(x);
    if (a <= 8) return chebyshev(kI1Small, a / 4 - 1) * x;
    return a <= kInfinity ? std::copysign(chebyshev(kI1Large, 16 / a - 1) / std::sqrt(a), x) : x;
}

/// Returns e^a * y, even if e^a alone overflows.
RL_SPECIAL double scaled_up(double a, double y) {
    double half = std::exp(a * 0.5);
    return a < 700 ? std::exp(a) * y : a < kInfinity ? half * y * half : a;
}
RL_SPECIAL double i0(double x) { return x != x ? x : scaled_up(std::fabs(x), i0e(x)); }
RL_SPECIAL double i1(double x) {
    return x != x ? x : std::copysign(scaled_up(std::fabs(x), std::fabs(i1e(x))), x);
}

/// e^x K0(x) and e^x K1(x) for x > 0. For x up to 2, they are computed by the series of DLMF 10.31, and for larger x by
/// the continued fraction of N. M. Temme, "On the numerical evaluation of the modified Bessel function of the third
/// kind", 1975, summed by Steed's algorithm.
struct BesselK {
    double order0, order1;
};
RL_SPECIAL BesselK scaled_bessel_k(double x) {
    if (x <= 2) {
        constexpr double kEuler = 0.57721566490153286;
        const double square = x * x / 4, log_half = std::log(x / 2);
        // The terms are square^k / (k!)^2 and square^k / (k! (k+1)!), with psi(k + 1) = harmonic - Euler's constant.
        double term = 1, harmonic = 0, i0 = 0, i1 = 0, sum0 = 0, sum1 = 0;
        for (int k = 0; k < 16; ++k) {
            i0 += term;
            i1 += term / (k + 1);
            sum0 += term * (harmonic - kEuler);
            sum1 += term / (k + 1) * (2 * harmonic + 1.0 / (k + 1) - 2 * kEuler);
            harmonic += 1.0 / (k + 1);
            term *= square / ((k + 1.0) * (k + 1.0));
        }
        const double scale = std::exp(x);
        return {scale * (sum0 - log_half * i0), scale * (1 / x + x / 2 * (log_half * i1 - sum1 / 2))};
    }
    if (!(x < kInfinity)) return x == kInfinity ? BesselK{0, 0} : BesselK{x, x};
    if (x > 1e4) {  // uses the series in 1 / x, because terms of the fraction overflow for huge x
        const double t = 0.125 / x, scale = std::sqrt(1.5707963267948966 / x);
        return {scale * (1 - t * (1 - t * (4.5 - t * 37.5))), scale * (1 + t * (3 - t * (7.5 - t * 52.5)))};
    }
    double b = 2 * (1 + x), d = 1 / b, change = d, fraction = d, a = -0.25, c = 0.25, q = 0.25, q0 = 0,
           q1 = 1;
    double sum = 1 + q * change;
    for (int k = 2; k < 200; ++k) {
        a -= 2 * (k - 1);
        c *= -a / k;
        const double next = (q0 - b * q1) / a;
        q0 = q1;
        q1 = next;
        q += c * next;
        b += 2;
        d = 1 / (b + a * d);
        change *= b * d - 1;
        fraction += change;
        const double more = q * change;
        sum += more;
        if (std::fabs(more) < 1e-17 * std::fabs(sum)) break;
    }
    const double k0 = std::sqrt(1.5707963267948966 / x) / sum;
    return {k0, k0 * (x + 0.5 - fraction * 0.25) / x};
}
RL_SPECIAL double k0e(double x) {
    return x > 0 ? scaled_bessel_k(x).order0 : x == 0 ? kInfinity : static_cast<double>(NAN);
}
RL_SPECIAL double k1e(double x) {
    return x > 0 ? scaled_bessel_k(x).order1 : x == 0 ? kInfinity : static_cast<double>(NAN);
}
RL_SPECIAL double k0(double x) { return x > 0 ? std::exp(-x) * k0e(x) : k0e(x); }
RL_SPECIAL double k1(double x) { return x > 0 ? std::exp(-x) * k1e(x) : k1e(x); }

}  // namespace RUSHLIGHT_CPU
}  // namespace math
}  // namespace
}  // namespace rushlight::functors
