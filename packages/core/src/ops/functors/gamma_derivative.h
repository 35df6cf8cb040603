// The derivative of a gamma variable with respect to its shape, in double for all types.
#pragma once

#include "ops/functors/gamma_math.h"

namespace rushlight::functors {
namespace {
namespace math {
inline namespace RUSHLIGHT_CPU {  // one namespace for each capability, so that their symbols differ

// Note [Derivative of a gamma variable]
// Let z be a gamma variable of shape a, and y = log z. If a changes, z changes such that its quantile u in the distribution
// stays the same: P(a, z) = u. Hence dy/da = -(dP/da) / (z p(z)), where p is the density. dP/da is the integral of p(t)
// (log t - psi(a)) from 0 to z. With t = z e^-s,
//     dy/da = integral over s > 0 of e^(-a s - z (e^-s - 1)) (psi(a) - y + s).
// The integral over all t is 0, so that t = z e^s gives
//     dy/da = integral over s > 0 of e^(a s - z (e^s - 1)) (y - psi(a) + s).
// The integrand of one of the two integrals is nowhere negative. Both integrals can be differentiated with respect to a
// once more, at a fixed z, which gives the curvature.

/// Computes the first integral of the note, with the power series of the exponential function in its integrand. The
/// result is the sum over n of z^n / (a (a+1) ... (a+n)) * (psi(a) - y + 1/a + ... + 1/(a+n)).
RL_SPECIAL double gamma_derivative_series(double a, double y, bool curvature, bool quick) {
    const double z = std::exp(y), end = quick ? kQuick : 1e-17;
    // psi(a + 1) includes the first fraction, because psi(a) and 1/a would cancel for small a.
    const double gap = (quick ? static_cast<double>(digamma(static_cast<float>(a + 1))) : digamma(a + 1)) - y,
                 bend = curvature ? polygamma(1, a + 1) : 0;
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

/// Returns e^x - 1 - x.
RL_SPECIAL double exp_rest(double x) {
    if (std::fabs(x) > 0.3) return std::expm1(x) - x;
    double sum = 1;
    for (int k = 14; k > 2; --k) sum = 1 + sum * x / k;
    return 0.5 * x * x * sum;
}

/// Computes the integral whose integrand is nowhere negative, which is one of the two integrals of the note. Uses the
/// trapezoidal rule in the variable v, where s = width * e^(v - e^-v): H. Takahasi and M. Mori, "Double exponential
/// formulas for numerical integration", 1974.
RL_SPECIAL double gamma_derivative_quadrature(double a, double y, bool curvature, bool quick) {
    const double z = std::exp(y), apart = a - z, step = quick ? 0.25 : 0.125;
    // y - psi(a), without cancellation if both are large: DLMF 5.11.2.
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

/// For large a: an expansion in 1/a whose terms are power series of t = y - log a. Differentiating the integrals in y gives
///     s' + a (1 - e^t) s = -(t + log a - psi(a)) for the derivative s.
/// The terms follow one after another: S_0 = t / (e^t - 1), S_k = (d_k + S_(k-1)') / (e^t - 1), where d_k are the terms of
/// log a - psi(a).
template <int kTerms, int kPowers>
RL_SPECIAL double gamma_derivative_expansion(double a, double t, bool curvature) {
    static constexpr double kSlope[8][20] = {
        {1.0,
         -0.5,
         0.08333333333333333,
         0,
         -0.001388888888888889,
         0,
         3.306878306878307e-05,
         0,
         -8.267195767195768e-07,
         0,
         2.08767569878681e-08,
         0,
         -5.284190138687493e-10,
         0,
         1.3382536530684679e-11,
         0,
         -3.3896802963225827e-13,
         0,
         8.586062056277845e-15,
         0},
        {0.16666666666666666,     -0.08333333333333333,   0.008333333333333333,   0.002777777777777778,
         -0.000496031746031746,   -9.92063492063492e-05,  2.3148148148148147e-05, 3.306878306878307e-06,
         -9.394540644540645e-07,  -1.043837849393405e-07, 3.4875654915337455e-08, 3.1705140832124957e-09,
         -1.2178108242923058e-09, -9.367775571479276e-11, 4.0676163555871e-11,    2.711744237058066e-12,
         -1.3136674946105101e-12, -7.72745585065006e-14,  4.132250527260318e-14,  2.1748686985580617e-15},
        {0.016666666666666666,    0,
         -0.004761904761904762,   0.0011904761904761906,
         0.0001984126984126984,   -9.92063492063492e-05,
         -4.2087542087542085e-06, 5.711880711880712e-06,
         -8.01116872545444e-08,   -2.7323316013792205e-07,
         1.4031016015142999e-08,  1.1649689229054309e-08,
         -9.37407323572901e-10,   -4.589422821993628e-10,
         4.831292700972737e-11,   1.706360922196379e-11,
         -2.17592103239626e-12,   -6.069584860046308e-13,
         8.990318811391286e-14,   2.084718277276054e-14},
        {-0.009523809523809525,  0.008333333333333333,    -0.0017857142857142857,  -0.0005952380952380953,
         0.0003021284271284271,  6.313131313131313e-06,   -2.4154086654086653e-05, 2.0003145003145e-06,
         1.3856431267145554e-06, -2.2182127836889742e-07, -6.442955862306936e-08,  1.5559324178605223e-08,
         2.548507872146831e-09,  -8.840221894559127e-10,  -8.670756706065327e-11,  4.4120305923691555e-11,
         2.4625877236974836e-12, -2.0119344662099794e-12, -5.047312771447402e-14,  8.576788747020186e-14},
        {-0.0035714285714285713,  0,
         0.0018037518037518038,   -0.0007215007215007215,
         -5.5037555037555035e-05, 9.157509157509158e-05,
         -9.789593122926455e-06,  -6.475006475006475e-06,
         1.5218629539357831e-06,  3.100070210247615e-07,
         -1.299476614090764e-07,  -9.348195991274275e-09,
         8.489102396922923e-09,   -2.6365819227355123e-12,
         -4.693171780347261e-10,  2.4770312737605765e-11,
         2.303170818430806e-11,   -2.2551461747574313e-12,
         -1.030767513814281e-12,  1.4584647312811568e-13},
        {0.0036075036075036075,   -0.003968253968253968,  0.0011627261627261628,   0.00038757538757538756,
         -0.000311031561031561,   2.5206275206275207e-05, 3.036768968141517e-05,   -7.781991325408693e-06,
         -1.6086154571153835e-06, 8.592956892525258e-07,  2.6399936382204143e-08,  -6.53357238498605e-08,
         4.185294758240463e-09,   3.937176116604589e-09,  -5.603907442989362e-10,  -1.985048791332127e-10,
         4.5173519011930626e-11,  8.510089588240934e-12,  -2.9238273958272904e-12, -3.038586467435481e-13},
        {0.0023254523254523257,  0,
         -0.0016317016317016317, 0.000844988344988345,
         1.2283468165821107e-05, -0.0001366892911010558,
         3.135674381804413e-05,  9.492034453334762e-06,
         -4.971369861075744e-06, -1.2735617257031086e-07,
         4.5654589701661237e-07, -4.6442060880130157e-08,
         -3.022188136354186e-08, 6.511414975822903e-09,
         1.5118803258618844e-09, -5.672837772412173e-10,
         -5.277661183530076e-11, 3.9210868802311547e-11,
         5.154583858663087e-13,  -2.3249335100315467e-12},
        {-0.0032634032634032634, 0.004166666666666667,    -0.001490298916769505,   -0.000496766305589835,
         0.0005384906845820158,  -8.81006463436804e-05,   -5.7490865830649114e-05, 2.5309353385978772e-05,
         1.5673316909393434e-06, -3.006089400285475e-06,  3.345739425026451e-07,   2.2781491649490318e-07,
         -5.918863579619656e-08, -1.1437296610524818e-08, 5.86547267227198e-09,    2.479619223374727e-10,
         -4.404757289461203e-10, 2.1706795262310533e-11,  2.7315416934914143e-11,  -3.4727940023395536e-12}};
    const double r = 1 / a;
    double sum = 0;
    for (int k = kTerms - 1; k >= 0; --k) {
        double term = 0, derivative = 0;
        for (int j = kPowers - 1; j >= 0; --j) {
            if (curvature) derivative = derivative * t + term;
            term = term * t + kSlope[k][j];
        }
        sum = sum * r + (curvature ? -((k + 1) * term + derivative) * r : term);
    }
    return sum * r;
}

/// Returns dy/da, or its derivative in a at a fixed y: Note [Derivative of a gamma variable].
RL_SPECIAL double gamma_derivative(double a, double y, bool curvature, bool quick) {
    if (!(a > 0 && y == y)) return static_cast<double>(NAN);
    if (a >= (quick ? 8 : 20)) {
        const double t = y - std::log(a);
        if (quick && std::fabs(t) < 1) return gamma_derivative_expansion<6, 16>(a, t, curvature);
        if (std::fabs(t) < 0.6) return gamma_derivative_expansion<8, 20>(a, t, curvature);
    }
    const bool near = a < 100 && std::exp(y) <= a + 1 + 1.5 * std::sqrt(a);
    return near ? gamma_derivative_series(a, y, curvature, quick)
                : gamma_derivative_quadrature(a, y, curvature, quick);
}

}  // namespace RUSHLIGHT_CPU
}  // namespace math
}  // namespace
}  // namespace rushlight::functors
