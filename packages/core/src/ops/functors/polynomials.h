// Functors of ops/polynomials.yaml: three-term recurrences, computed in double. Degrees are truncated to integers.
#pragma once

#include <cmath>

#include "ops/functors/math.h"
#include "rushlight/scalar.h"

namespace rushlight::functors {
namespace {

// p_0 = 1, p_1 = `first`, p_(k+1) = step(k, p_k, p_(k-1)).
template <class Step>
RL_HD inline double recurrence(double degree, double first, Step step) {
    // NaN, if the degree is NaN or too large for the recurrence.
    if (!(degree <= 1 << 20)) return NAN;
    if (degree < 1) return degree < 0 ? 0 : 1;
    double before = 1, p = first, k = 1;
    for (; k + 1 <= degree && p - p == 0; ++k) {
        const double next = step(k, p, before);
        before = p;
        p = next;
    }
    // After an overflow the value stays infinite. Its sign alternates if the leading factor is negative.
    const bool alternates = k + 1 <= degree && step(k, p, 0) == -p;
    return alternates && std::fmod(std::trunc(degree) - k, 2) != 0 ? -p : p;
}

template <class T>
struct ChebyshevT {
    explicit ChebyshevT(const Scalar*) {}
    RL_HD T operator()(T x, T n) const {
        const double t = x;
        // In [-1, 1] the errors of the recurrence grow with the degree.
        if (n > T(64) && std::fabs(t) <= 1)
            return static_cast<T>(std::cos(std::trunc(double(n)) * std::acos(t)));
        return static_cast<T>(
            recurrence(n, t, [t](double, double p, double before) { return 2 * t * p - before; }));
    }
};

template <class T>
struct Gegenbauer {
    explicit Gegenbauer(const Scalar*) {}
    RL_HD T operator()(T x, T n, T order) const {
        const double t = x, a = order;
        return static_cast<T>(recurrence(n, 2 * a * t, [=](double k, double p, double before) {
            return (2 * (k + a) * t * p - (k + 2 * a - 1) * before) / (k + 1);
        }));
    }
};

template <class T>
struct HermiteH {
    explicit HermiteH(const Scalar*) {}
    RL_HD T operator()(T x, T n) const {
        const double t = x;
        return static_cast<T>(recurrence(
            n, 2 * t, [t](double k, double p, double before) { return 2 * (t * p - k * before); }));
    }
};

template <class T>
struct HermiteHe {
    explicit HermiteHe(const Scalar*) {}
    RL_HD T operator()(T x, T n) const {
        const double t = x;
        return static_cast<T>(
            recurrence(n, t, [t](double k, double p, double before) { return t * p - k * before; }));
    }
};

template <class T>
struct Laguerre {
    explicit Laguerre(const Scalar*) {}
    RL_HD T operator()(T x, T n, T order) const {
        const double t = x, a = order;
        return static_cast<T>(recurrence(n, 1 + a - t, [=](double k, double p, double before) {
            return ((2 * k + 1 + a - t) * p - (k + a) * before) / (k + 1);
        }));
    }
};

}  // namespace
}  // namespace rushlight::functors
