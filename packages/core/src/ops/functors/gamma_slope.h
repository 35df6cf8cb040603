// How a gamma variable moves with its shape, in double for all types.
#pragma once

#include "ops/functors/gamma_math.h"

namespace rushlight::functors {
namespace {
namespace math {
inline namespace RUSHLIGHT_CPU {  // the copies carry their capability in their names

// Note [Slope of a gamma variable]
// z of shape a, y = log z, keeps its place in the distribution, P(a, z) = u, while a moves: so
// dy/da = -(dP/da) / (z p(z)), p the density. dP/da is the integral of p(t) (log t - psi(a)) from 0 to z; t = z e^-s makes of it
//     dy/da = integral over s > 0 of e^(-a s - z (e^-s - 1)) (psi(a) - y + s).
// The integral over all t being 0, t = z e^s gives as well
//     dy/da = integral over s > 0 of e^(a s - z (e^s - 1)) (y - psi(a) + s).
// One of the two has no negative part. Both may be derived once more in a: the curvature, at a fixed z.

/// The first integral by the power series of its exponential, sum of z^n / (a (a+1) ... (a+n)) (psi(a) - y + 1/a + ... + 1/(a+n)).
RL_SPECIAL double gamma_slope_series(double a, double y, bool curvature, bool quick) {
    const double z = std::exp(y), end = quick ? kQuick : 1e-17;
    // psi(a + 1) holds the first fraction: for small a psi(a) and 1/a would cancel.
    const double gap = digamma(a + 1) - y, bend = curvature ? polygamma(1, a + 1) : 0;
    double term = 1, fractions = 0, squares = 0, sum = 0, size = 0;
    for (double n = a + 1;; n += 1) {
        const double first = gap + fractions;
        const double part = term * (curvature ? bend - squares - (1 / a + fractions) * first : first);
        sum += part;
        size += std::fabs(part);
        if (!(n < z || term * (1 + std::fabs(first)) > end * size)) break;
        const double r = 1 / n;
        term *= z * r;
        fractions += r;
        squares += r * r;
    }
    return sum / a;
}

/// e^x - 1 - x.
RL_SPECIAL double exp_rest(double x) {
    if (std::fabs(x) > 0.3) return std::expm1(x) - x;
    double sum = 1;
    for (int k = 14; k > 2; --k) sum = 1 + sum * x / k;
    return 0.5 * x * x * sum;
}

/// The integral that is positive, by the trapezoidal rule over v, s = width e^(v - e^-v): H. Takahasi and M. Mori, "Double
/// exponential formulas for numerical integration", 1974.
RL_SPECIAL double gamma_slope_quadrature(double a, double y, bool curvature, bool quick) {
    const double z = std::exp(y), apart = a - z, step = quick ? 0.25 : 0.125;
    // y - psi(a), without cancellation where both are large: DLMF 5.11.2.
    const double r = 1 / (a * a), deviation = a < 100 ? y - digamma(a)
                                                      : std::log1p(-apart / a) + 0.5 / a +
                                                            r * (1. / 12 - r * (1. / 120 - r * (1. / 252)));
    const double side = deviation > 0 ? 1 : -1, gap = std::fabs(deviation);
    const double bend = curvature ? polygamma(1, a) : 0;
    const double width = 1 / (std::fabs(apart) + std::sqrt(z));
    double sum = 0;
    for (double v = -3.625; v < 8; v += step) {
        const double inner = std::exp(-v), s = width * std::exp(v - inner), x = side * s;
        const double exponent = apart * x - z * exp_rest(x);
        const double weight = std::exp(exponent) * s * (1 + inner);
        sum += weight * (curvature ? side * (s * (gap + s) - bend) : gap + s);
        if (exponent < -50) break;
    }
    return sum * step;
}

/// dy/da, or the derivative of that in a at a fixed y: Note [Slope of a gamma variable].
RL_SPECIAL double gamma_slope(double a, double y, bool curvature, bool quick) {
    if (!(a > 0 && y == y)) return static_cast<double>(NAN);
    const double z = std::exp(y);
    const bool near = a < 100 && z <= a + 1 + 1.5 * std::sqrt(a);
    return near ? gamma_slope_series(a, y, curvature, quick) : gamma_slope_quadrature(a, y, curvature, quick);
}

}  // namespace RUSHLIGHT_CPU
}  // namespace math
}  // namespace
}  // namespace rushlight::functors
