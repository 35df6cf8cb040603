// Elementary functions of float, computed in double. They have no branches or calls, so that loops over them are vectorised.
// The polynomials are Chebyshev fits made for this file, with errors below 1e-11.
#pragma once

#include "ops/functors/special_float.h"

namespace rushlight::functors {
namespace {
namespace math {

constexpr double kHalfPi = 1.5707963267948966;

/// Returns atan(t) for 0 <= t <= 1.
RL_HD inline double atan_fit(double t) {
    return t * series(2 * t * t - 1, 0.870419751368, -0.101876542247, 0.0208518510835, -0.00503086651561,
                      0.0013155879069, -0.000360959547362, 0.000102264983792, -2.97257960135e-05,
                      8.77732138801e-06, -2.4919125837e-06, 7.44012652396e-07, -3.3227407666e-07,
                      1.05020762082e-07);
}
RL_HD inline float fast_atan(float x) {
    double a = std::fabs(static_cast<double>(x));
    double y = a > 1 ? kHalfPi - atan_fit(1 / a) : atan_fit(a);
    return std::copysign(static_cast<float>(y), x);
}
RL_HD inline float fast_atan2(float y, float x) {
    double up = std::fabs(static_cast<double>(y)), across = std::fabs(static_cast<double>(x));
    double low = up < across ? up : across, high = up < across ? across : up;
    double ratio = low == high ? 1 : low / high;
    double angle = atan_fit(high == 0 ? 0 : ratio);
    angle = up > across ? kHalfPi - angle : angle;
    angle = std::copysign(1.f, x) < 0 ? 2 * kHalfPi - angle : angle;
    return x != x || y != y ? x + y : std::copysign(static_cast<float>(angle), y);
}

/// Returns asin(t) for 0 <= t <= 1/2. `s` must be t^2.
RL_HD inline double asin_fit(double t, double s) {
    return t * series(8 * s - 1, 1.02210057525, 0.0234721961919, 0.001485941555, 0.000125293244517,
                      1.21165458996e-05, 1.26953190972e-06, 1.4027624117e-07, 1.66290717678e-08,
                      1.97179147937e-09);
}
RL_HD inline float fast_asin(float x) {
    double a = std::fabs(static_cast<double>(x)), s = a > 0.5 ? (1 - a) * 0.5 : a * a;
    double half = asin_fit(a > 0.5 ? sqrt(s) : a, s);
    return std::copysign(static_cast<float>(a > 0.5 ? kHalfPi - 2 * half : half), x);
}
RL_HD inline float fast_acos(float x) {
    double z = static_cast<double>(x), a = std::fabs(z), s = a > 0.5 ? (1 - a) * 0.5 : a * a;
    double half = asin_fit(a > 0.5 ? sqrt(s) : a, s);
    double right = a > 0.5 ? 2 * half : kHalfPi - half;  // of |x|
    return static_cast<float>(z < 0 ? 2 * kHalfPi - right : right);
}

RL_HD inline float fast_cosh(float x) {
    double e = exp(std::fabs(static_cast<double>(x)));
    return static_cast<float>(0.5 * (e + 1 / e));
}
RL_HD inline float fast_sinh(float x) {
    double e = expm1(std::fabs(static_cast<double>(x)));
    // `y` contains 1 - 1 / (e + 1) in place of e / (e + 1), which would be NaN if e is infinite.
    double y = 0.5 * (e + 1 - 1 / (e + 1)), small = 0.5 * (e + e / (e + 1));
    return std::copysign(static_cast<float>(e < 1 ? small : y), x);
}
RL_HD inline float fast_atanh(float x) { return static_cast<float>(atanh(static_cast<double>(x))); }

RL_HD inline float fast_erfc(float x) {
    double tail = quick_erfc(std::fabs(static_cast<double>(x)));
    return static_cast<float>(x < 0 ? 2 - tail : tail);
}
RL_HD inline float fast_erfinv(float x) {
    double z = static_cast<double>(x);
    return static_cast<float>(ndtri_of(0.5 * z, 0.5 - 0.5 * std::fabs(z)) * 0.7071067811865476);
}

/// Returns the polynomial with these coefficients, the highest first.
RL_HD inline double polynomial(double, double last) { return last; }
template <class... C>
RL_HD inline double polynomial(double x, double first, double second, C... others) {
    return polynomial(x, first * x + second, others...);
}

constexpr double kCentre = 0.425;
/// Returns the inverse x of ndtr at p, in double, divided by q = p - 1/2 if |q| <= kCentre and otherwise by the sign of q:
/// M. J. Wichura, "Algorithm AS 241: The percentage points of the normal distribution", 1988. `tail` must be the smaller of
/// p and 1 - p. There are three rational functions, one around 1/2 and two for the tails. All of them are evaluated, so that
/// loops can be vectorised.
RL_HD inline double wichura(double q, double tail) {
    const double s = 0.180625 - q * q, r = sqrt(-log(tail)), t = r - 1.6, u = r - 5;
    const bool centre = std::abs(q) <= kCentre, near = r <= 5;
    double above = polynomial(s, 2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4,
                              4.5921953931549871457e+4, 1.3731693765509461125e+4, 1.9715909503065514427e+3,
                              1.3314166789178437745e+2, 3.3871328727963666080);
    double below = polynomial(s, 5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4,
                              2.1213794301586595867e+4, 5.3941960214247511077e+3, 6.8718700749205790830e+2,
                              4.2313330701600911252e+1, 1.0);
    const double near_above =
        polynomial(t, 7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
                   1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550,
                   4.63033784615654529590, 1.42343711074968357734);
    const double near_below =
        polynomial(t, 1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
                   1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940,
                   2.05319162663775882187, 1.0);
    const double far_above =
        polynomial(u, 2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
                   2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580,
                   5.46378491116411436990, 6.65790464350110377720);
    const double far_below =
        polynomial(u, 2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
                   7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
                   5.99832206555887937690e-1, 1.0);
    above = centre ? above : near ? near_above : far_above;
    below = centre ? below : near ? near_below : far_below;
    return above / below;
}
RL_HD inline double fast_erfinv(double x) {
    const double q = 0.5 * x, tail = 0.5 - std::abs(q);
    // The factor is a half of sqrt(1/2). q is not used, because half of a subnormal number may be rounded.
    const double y =
        (std::abs(q) <= kCentre ? x : std::copysign(2.0, x)) * wichura(q, tail) * 0.35355339059327376220;
    return tail == 0 ? x * static_cast<double>(INFINITY) : y;
}
RL_HD inline double fast_ndtri(double p) {
    const double q = p - 0.5, tail = p < 0.5 ? p : 1 - p;
    const double y = (std::abs(q) <= kCentre ? q : std::copysign(1.0, q)) * wichura(q, tail);
    return tail == 0 ? std::copysign(static_cast<double>(INFINITY), q) : y;
}
// The functions of double.
#define RL_OF_DOUBLE(fast, function) \
    RL_HD inline double fast(double x) { return function(x); }
RL_OF_DOUBLE(fast_atan, atan)
RL_OF_DOUBLE(fast_asin, asin)
RL_OF_DOUBLE(fast_acos, acos)
RL_OF_DOUBLE(fast_cosh, cosh)
RL_OF_DOUBLE(fast_sinh, sinh)
RL_OF_DOUBLE(fast_atanh, atanh)
RL_OF_DOUBLE(fast_erfc, erfc)
#undef RL_OF_DOUBLE
RL_HD inline double fast_atan2(double y, double x) { return atan2(y, x); }

}  // namespace math
}  // namespace
}  // namespace rushlight::functors
