// Special functions of float, computed in double. They have no branches or calls, so that loops over them are vectorised.
// The polynomials are Chebyshev fits made for this file, with errors below 1e-9.
#pragma once

#include "ops/functors/math.h"

namespace rushlight::functors {
namespace {
namespace math {

/// Returns c[0] + c[1] * x + c[2] * x^2 + ..., where c are the arguments after x.
RL_HD inline double series(double, double last) { return last; }
template <class... Rest>
RL_HD inline double series(double x, double first, Rest... rest) {
    return first + x * series(x, rest...);
}

/// Returns e^(a^2) erfc(a) for a >= 0: see erfcx in special_math.h.
RL_HD inline double erfcx_positive(double a) {
    a = a > 1e300 ? 1e300 : a;
    double t = (a - 3.75) / (a + 3.75);
    return series(t, 1.23751263081, -0.140240599536, 0.00358541932094, 0.0822767739901, -0.10880401166,
                  0.0923039375383, -0.0586927358333, 0.0283641051174, -0.00974924335561, 0.00175115762924,
                  0.000299596508889, -0.000284313075751, 4.42801351845e-05, 1.85219473868e-05,
                  -6.35240465107e-06) /
           (1 + 2 * a);
}

/// Returns e^x for -200 <= x <= 0.
RL_HD inline double quick_exp(double x) {
    constexpr double kRound =
        6755399441055744;  // 1.5 * 2^52: adding this rounds to an integer, which is in the low bits
    const double shifted = x * 1.4426950408889634 + kRound, r = x - (shifted - kRound) * 0.6931471805599453;
    const double power =
        __builtin_bit_cast(double, (__builtin_bit_cast(uint64_t, shifted) + uint64_t(1023)) << 52);
    return power * series(r, 0.999999999959, 0.999999999995, 0.500000010797, 0.166666667866, 0.041666217664,
                          0.00833328346595, 0.00139486219568, 0.000199076177567);
}
/// Returns erfc(a) for a >= 0. e^(a^2) erfc(a) is u p(u) with u = 1 / (a + 3).
RL_HD inline double quick_erfc(double a) {
    a = a > 11 ? 11 : a;  // 0 as a float for larger a
    const double u = 1 / (a + 3);
    return quick_exp(-a * a) * u *
           series(u, 0.564108681694, 1.69811398448, 4.62940942773, 15.5598923875, -0.524538908782,
                  295.059280432, -970.633907551, 3535.70191736, -5793.66483389, 3338.54746356,
                  -22.3512926619);
}

RL_HD inline float ndtr(float x) {
    const double z = static_cast<double>(x) * 0.7071067811865476, tail = 0.5 * quick_erfc(std::fabs(z));
    return static_cast<float>(z > 0 ? 1 - tail : tail);
}

RL_HD inline float erfcx(float x) {
    double z = static_cast<double>(x), a = std::fabs(z), positive = erfcx_positive(a);
    return static_cast<float>(z < 0 ? 2 * exp(z * z) - positive : positive);
}

RL_HD inline float log_ndtr(float x) {
    double z = static_cast<double>(x) * 0.7071067811865476, a = std::fabs(z), half = 0.5 * erfcx_positive(a);
    double lower = log(half) - a * a, upper = log1p(-half * exp(-a * a));
    return static_cast<float>(z < 0 ? lower : upper);
}

/// Returns the number x for which ndtr(x) = p. `q` is p - 1/2, and `tail` is the smaller of p and 1 - p. Up to |q| =
/// 0.425, x is a function of q^2. For larger |q|, with r = (-2 log tail)^(1/2), x - r is a function of (r - 3.5) / (r +
/// 3.5).
RL_HD inline double ndtri_of(double q, double tail) {
    double s = q * q * (2 / 0.180625) - 1;
    double centre = q * series(s, 2.80673624936, 0.385390451614, 0.116487184967, 0.0440710977172,
                               0.0185509734304, 0.00832195697199, 0.00388892042199, 0.00181348066363,
                               0.000872795149587, 0.000566971845783, 0.000310992141279, -1.37079673558e-05,
                               -2.49409410008e-05, 0.000102045998509, 5.83985377563e-05);
    double r = sqrt(-2 * log(tail)), near = r > 15 ? 15 : r;
    double u = (near - 3.5) / (near + 3.5) * 2.43011608206 - 0.485070939034;
    double far = r + series(u, -0.503771498904, 0.280912172159, -0.036956161498, 0.0119215526208,
                            -0.00195940184847, 0.000815872239318, -0.00011937786344, 7.55680937084e-05,
                            -7.52891578055e-06, 7.11381622023e-06, 8.62411650667e-07, 1.86171159031e-06);
    far = q < 0 ? -far : far;
    return std::fabs(q) <= 0.425 ? centre : far;
}
RL_HD inline float fast_ndtri(float value) {
    double p = static_cast<double>(value);
    return static_cast<float>(ndtri_of(p - 0.5, p < 0.5 ? p : 1 - p));
}

/// Returns e^-|x| I0(x): see i0e in special_math.h.
RL_HD inline double i0e_fit(double a) {
    double t = a * 0.25 - 1, u = 16 / (a < 8 ? 8 : a) - 1;
    double small = series(t, 0.20700192113, -0.113004326534, 0.094515647198, -0.0890434670005,
                          0.0873428051549, -0.0849628311534, 0.0792829727721, -0.0695465912494,
                          0.0567272883019, -0.0429569157438, 0.0303606371398, -0.0197762060715,
                          0.0115540655981, -0.00660461949716, 0.00416927365813, -0.00204734507977,
                          0.000412651460399, -0.000205759345902, 0.000348628415242, -0.00013604737782);
    double large = series(u, 0.402176509419, 0.00336055224172, 0.000136217164243, 1.11398156586e-05,
                          1.47611573434e-06, 3.07332291732e-07, 1.08679424823e-07, 3.16198552846e-08);
    return a <= 8 ? small : large / sqrt(a);
}
RL_HD inline float i0(float x) {
    double a = std::fabs(static_cast<double>(x));
    a = a > 100 ? 100 : a;  // infinity for larger a
    return static_cast<float>(exp(a) * i0e_fit(a));
}
RL_HD inline float i0e(float x) { return static_cast<float>(i0e_fit(std::fabs(static_cast<double>(x)))); }

/// Returns e^-|x| I1(x) / x: see i1e in special_math.h.
RL_HD inline double i1e_fit(double a) {
    double t = a * 0.25 - 1, u = 16 / (a < 8 ? 8 : a) - 1;
    double small = series(t, 0.0446877098642, -0.0611243379891, 0.0680576021809, -0.0684826091619,
                          0.0637673292734, -0.0552799757995, 0.0446755173009, -0.0336719785685,
                          0.0236799437534, -0.0155679529454, 0.00960630650402, -0.00554539817408,
                          0.00295600387898, -0.00151709146088, 0.000812403561915, -0.000368572061607,
                          9.356815344e-05, -4.07100606693e-05, 4.75213476545e-05, -1.74679455403e-05);
    double large = series(u, 0.38939845906, -0.00974958137038, -0.000219237125382, -1.50039654662e-05,
                          -1.82569073191e-06, -4.21035015458e-07, -1.2273217222e-07);
    return a <= 8 ? small : large / (a * sqrt(a));
}
RL_HD inline float i1(float x) {
    double z = static_cast<double>(x), a = std::fabs(z);
    a = a > 100 ? 100 : a;  // infinity for larger a
    return static_cast<float>(exp(a) * i1e_fit(a) * (z > 100 ? 100 : z < -100 ? -100 : z));
}
RL_HD inline float i1e(float x) {
    double z = static_cast<double>(x), a = std::fabs(z);
    a = a > 1e100 ? 1e100 : a;
    return static_cast<float>(i1e_fit(a) * (z > 1e100 ? 1e100 : z < -1e100 ? -1e100 : z));
}

/// Returns log gamma(y) for y >= 8 by Stirling's series (DLMF 5.11.1). `r` must be 1 / y, and `logarithm` log(y).
RL_HD inline double stirling(double y, double r, double logarithm) {
    double z = r * r;
    double tail =
        r * series(z, 1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156);
    return (y - 0.5) * logarithm - y + 0.9189385332046728 + tail;
}
/// Returns x (x + 1) ... (x + 7), the quotient gamma(x + 8) / gamma(x). It is used to replace an argument x below 8 by
/// x + 8.
RL_HD inline double eight_factors(double x) {
    return x * (x + 1) * (x + 2) * (x + 3) * ((x + 4) * (x + 5) * (x + 6) * (x + 7));
}
RL_HD inline double lgamma_stirling(double x) {
    bool low = x < 8;
    double y = low ? x + 8 : x, moved = stirling(y, 1 / y, log(y));
    return low ? moved - log(eight_factors(x)) : moved;
}
/// Returns x minus the nearest integer. Sines and tangents of pi times this difference are accurate in all digits,
/// unlike those of pi times x.
RL_HD inline double beyond_integer(double x) { return x - nearbyint(x); }
constexpr double kPi = 3.141592653589793;
/// Returns the absolute value of sin(pi x).
RL_HD inline double sine_of_pi_times(double x) {
    double t = std::fabs(beyond_integer(x)), z = t * t;
    return t * series(z, 3.1415926535897929, -5.1677127800497858, 2.5501640398618676, -0.59926452882522401,
                      0.082145878816310427, -0.0073703643265304157, 0.00046598701580433779,
                      -2.113362735205297e-5);
}

/// The logarithm of the gamma function's magnitude. The recurrence replaces an argument y below 8 by t, from 1.5 to 2.5, such
/// that lgamma(y) is lgamma(t) + log(f) or, if y is below 1.5, lgamma(t) - log(f), where f is a product of arguments.
/// lgamma(t) is computed as t - 2 times a polynomial, so that no digits are lost near the zeros at 1 and 2. Uses
/// reflection for negative numbers (DLMF 5.5.3), which is left out if `kPositive`; the other steps are the same.
template <bool kPositive = false>
RL_HD inline float lgamma(float value) {
    double x = static_cast<double>(value);
    const bool negative = !kPositive && x < 0;
    double y = negative ? 1 - x : x;
    bool low = y < 8, below = y < 1.5;
    double t = y, f = 1;
    for (int k = 0; k < 6; ++k) {  // from 8 at most to 2.5 at most
        bool again = t >= 2.5;
        t = again ? t - 1 : t;
        f = again ? f * t : f;
    }
    double raised = y < 0.5 ? y + 2 : y + 1, factors = y < 0.5 ? y * (y + 1) : y;
    double z = (below ? raised : t) - 2;
    double about_2 = z * series(z, 0.4227843350997953, 0.3224670334234966, -0.06735230143541507,
                                0.020580808605237744, -0.007385533261288008, 0.0028905020821439896,
                                -0.0011930547050406706, 0.0005098091580313527, -0.00022086982602425632,
                                9.839697643190869e-05, -5.278721858454867e-05, 2.4154595381278688e-05);
    double logarithm = log(low ? (below ? factors : f) : y), far = low ? 8 : y;
    // One division serves the series and the reflection.
    double sine = negative ? sine_of_pi_times(x) : 1, inverse = 1 / (far * sine);
    double right =
        low ? about_2 + (below ? -logarithm : logarithm) : stirling(far, inverse * sine, logarithm);
    double reflected = log(kPi * (inverse * far)) - right;
    return static_cast<float>(negative ? reflected : right);
}

/// The derivative of digamma: DLMF 5.15.8, and DLMF 5.15.6 for negative numbers. As in lgamma, the recurrence first
/// replaces an argument below 8.
template <bool kPositive = false>
RL_HD inline float trigamma(float value) {
    double x = static_cast<double>(value);
    const bool negative = !kPositive && x < 0;
    double from = negative ? 1 - x : x;
    bool low = from < 8;
    double moved = 0;
    for (int k = 0; k < 8; k += 2) {
        double a = (from + k) * (from + k), b = (from + k + 1) * (from + k + 1);
        moved += (a + b) / (a * b);
    }
    double y = low ? from + 8 : from, r = 1 / y, z = r * r;
    double tail =
        r + 0.5 * z + r * z * series(z, 1. / 6, -1. / 30, 1. / 42, -1. / 30, 5. / 66, -691. / 2730, 7. / 6);
    double right = low ? moved + tail : tail, ratio = kPi / sine_of_pi_times(x);
    return static_cast<float>(negative ? ratio * ratio - right : right);
}

/// The digamma function: DLMF 5.11.2, and DLMF 5.5.4 for negative numbers. As in lgamma, the recurrence first replaces
/// an argument below 8. The fractions of the recurrence are added in pairs, which saves divisions.
template <bool kPositive = false>
RL_HD inline float digamma(float value) {
    double x = static_cast<double>(value);
    const bool negative = !kPositive && x < 0;
    double from = negative ? 1 - x : x;
    bool low = from < 8;
    double moved = 0;
    for (int k = 0; k < 8; k += 2) moved += (2 * from + (2 * k + 1)) / ((from + k) * (from + k + 1));
    double y = low ? from + 8 : from, r = 1 / y, z = r * r;
    double tail = z * series(z, 1. / 12, -1. / 120, 1. / 252, -1. / 240, 1. / 132, -691. / 32760, 1. / 12);
    double right = log(y) - 0.5 * r - tail - (low ? moved : 0);
    double reflected = right - kPi / tan(kPi * beyond_integer(x));
    return static_cast<float>(negative ? reflected : right);
}

}  // namespace math
}  // namespace
}  // namespace rushlight::functors
