// The Airy function Ai and its derivative, in double for all types. NIST Handbook of Mathematical Functions, chapter 9.
#pragma once

#include "ops/functors/special_math.h"

namespace rushlight::functors {
namespace {
namespace math {
inline namespace RUSHLIGHT_CPU {

/// Computes Ai(x), or its derivative, for |x| up to 9.5 by a Taylor series about the nearest integer. The coefficients
/// of the series follow from the equation y'' = x y.
RL_SPECIAL double airy_near(double x, bool derivative) {
    // Ai and Ai' at -9, -8, ..., 9, computed with 40 digits.
    static constexpr double kAiryAt[19][2] = {
        {-0.022133721547341403, -0.9756639809263316},     {-0.0527050503563862, 0.9355609381983065},
        {0.18428083525050565, -0.7710081684101265},       {-0.3291451736298231, 0.3459354872813429},
        {0.35076100902411433, 0.32719281855444315},       {-0.07026553294928951, -0.7906285753685813},
        {-0.37881429367765806, 0.3145837692165988},       {0.22740742820168558, 0.618259020741691},
        {0.5355608832923521, -0.01016056711664521},       {0.3550280538878172, -0.2588194037928068},
        {0.13529241631288141, -0.1591474412967932},       {0.03492413042327438, -0.05309038443365363},
        {0.006591139357460719, -0.011912976705951319},    {0.0009515638512048018, -0.001958640950204179},
        {0.00010834442813607442, -0.0002474138908684625}, {9.947694360252889e-06, -2.4765200397034955e-05},
        {7.492128863997167e-07, -2.008150894738792e-06},  {4.6922076160992316e-08, -1.3414392979067865e-07},
        {2.47116843087249e-09, -7.480641389658946e-09}};
    const double center = std::fmin(std::fmax(std::nearbyint(x), -9.0), 9.0), d = x - center;
    const double* at = kAiryAt[static_cast<int>(center) + 9];
    double before = 0, c = at[0], next = at[1], power = 1, sum = 0;
    for (int n = 0; n < 26; ++n) {
        sum += power * (derivative ? (n + 1) * next : c);
        power *= d;
        const double after = (center * c + before) / ((n + 2.0) * (n + 1.0));
        before = c;
        c = next;
        next = after;
    }
    return sum;
}

/// Computes Ai(x), or its derivative, for |x| above 9.5 by asymptotic series (DLMF 9.7), which are summed up to their
/// smallest term.
RL_SPECIAL double airy_far(double x, bool derivative) {
    const double y = std::fabs(x), root = std::sqrt(std::sqrt(y)), zeta = y * std::sqrt(y) * (2.0 / 3);
    // The terms are u_k / zeta^k, or, for the derivative, v_k / zeta^k.
    double even = 0, odd = 0, u = 1, sign = 1;
    for (int k = 0; k < 40; ++k) {
        const double term = derivative ? -u * (6 * k + 1.0) / (6 * k - 1.0) : u;
        // For x < 0 the sign changes after every second term, for x > 0 after every term.
        if (x > 0) even += sign * term;
        else (k % 2 == 0 ? even : odd) += (k / 2 % 2 == 0 ? 1 : -1) * term;
        sign = -sign;
        const double step =
            (6 * k + 1.0) * (6 * k + 3.0) * (6 * k + 5.0) / (216 * (k + 1.0) * (2 * k + 1.0)) / zeta;
        u *= step;
        if (step >= 1 || u < 1e-18) break;
    }
    constexpr double kRootPi = 0.5641895835477563;  // 1 / sqrt(pi)
    if (x > 0) {
        const double scale = zeta > 745 ? 0 : 0.5 * kRootPi * std::exp(-zeta);
        if (scale == 0) return 0;
        return derivative ? -root * scale * even : scale / root * even;
    }
    if (y == kInfinity) return derivative ? static_cast<double>(NAN) : 0;
    constexpr double kQuarter = 0.7853981633974483;
    const double sine = std::sin(zeta - kQuarter), cosine = std::cos(zeta - kQuarter);
    return derivative ? kRootPi * root * (sine * even - cosine * odd)
                      : kRootPi / root * (cosine * even + sine * odd);
}

RL_SPECIAL double airy_ai(double x) {
    return std::fabs(x) <= 9.5 ? airy_near(x, false) : x != x ? x : airy_far(x, false);
}
RL_SPECIAL double airy_ai_prime(double x) {
    return std::fabs(x) <= 9.5 ? airy_near(x, true) : x != x ? x : airy_far(x, true);
}

}  // namespace RUSHLIGHT_CPU
}  // namespace math
}  // namespace
}  // namespace rushlight::functors
