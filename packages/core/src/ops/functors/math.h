// Elementary functions that functors call, `math::exp(x)` for float and double. On the CPU, they are our vectorised
// functions if such a function exists, and otherwise the functions of the C library. In the CUDA plug-in, they are the
// device's functions.
#pragma once

#include <cmath>
#include <type_traits>

#include "rushlight/export.h"
#include "rushlight/scalar.h"

#if !defined(__CUDACC__)
#include "cpu/vector_power.h"
#include "cpu/vector_trigonometry.h"
#endif

namespace rushlight::functors {
namespace {
namespace math {

#if defined(__CUDACC__)
#define RL_OWN(name) using ::name;
#else
#define RL_OWN(name) using cpu::RUSHLIGHT_CPU::math::name;
#endif
#define RL_LIBRARY(name)                                      \
    RL_HD inline float name(float x) { return std::name(x); } \
    RL_HD inline double name(double x) { return std::name(x); }
RL_OWN(pow)
RL_OWN(exp)
RL_OWN(exp2)
RL_OWN(expm1)
RL_OWN(log)
RL_OWN(log1p)
RL_OWN(tanh)
RL_OWN(erf)
RL_OWN(sin)
RL_OWN(cos)
RL_OWN(tan)
RL_LIBRARY(log2)
RL_LIBRARY(log10)
RL_LIBRARY(sqrt)
RL_LIBRARY(asin)
RL_LIBRARY(acos)
RL_LIBRARY(atan)
RL_LIBRARY(sinh)
RL_LIBRARY(cosh)
RL_LIBRARY(asinh)
RL_LIBRARY(acosh)
RL_LIBRARY(atanh)
RL_LIBRARY(erfc)
RL_LIBRARY(floor)
RL_LIBRARY(ceil)
RL_LIBRARY(trunc)
RL_LIBRARY(nearbyint)
#undef RL_OWN
#undef RL_LIBRARY

template <class T>
RL_HD inline T sigmoid(T x) {
    return T(1) / (T(1) + exp(-x));
}

/// The inverse of erf. It is computed in double for both types, by Halley's method. The first approximation is accurate
/// to three digits: Winitzki, A handy approximation for the error function and its inverse, 2008.
template <class T>
RL_HD inline T erfinv(T value) {
    constexpr double kTwoOverRootPi = 1.1283791670955126, kA = 0.147;
    double x = static_cast<double>(value), magnitude = std::abs(x);
    if (!(magnitude < 1)) return magnitude == 1 ? static_cast<T>(x * INFINITY) : static_cast<T>(NAN);
    double y;
    if (magnitude < 0.5) {
        double s = x * x;
        y = x *
            (0.886226925452758 + s * (0.232013666534654 + s * (0.127556175305598 + s * 0.0865521292415475)));
    } else {
        double l = std::log1p(-x * x), h = 2 / (3.141592653589793 * kA) + l / 2;
        y = std::copysign(std::sqrt(std::sqrt(h * h - l / kA) - h), x);
    }
    for (int step = 0; step < 2; ++step) {
        // Near -1 and 1, the error is computed from the complements of x and erf(y), so that no digits cancel.
        double error =
            magnitude < 0.5 ? std::erf(y) - x : (1 - magnitude - std::erfc(std::abs(y))) * (x < 0 ? -1 : 1);
        double newton = error / (kTwoOverRootPi * std::exp(-y * y));
        y -= newton / (1 + y * newton);
    }
    return static_cast<T>(y);
}

/// Whether x is in the range for which the functions sin, cos and tan above are valid.
template <class T>
RL_HD inline bool moderate(T x) {
#if defined(__CUDACC__)
    return true;
#else
    return !(cpu::RUSHLIGHT_CPU::math::fabs(x) > cpu::RUSHLIGHT_CPU::math::kTrigonometricLimit<T>);
#endif
}

/// power returns x^y, and has_power returns whether `power` is valid for x and y.
#if defined(__CUDACC__)
RL_HD inline double power(double x, double y) { return ::pow(x, y); }
RL_HD inline bool has_power(double, double) { return true; }
#else
using cpu::RUSHLIGHT_CPU::math::has_power;
using cpu::RUSHLIGHT_CPU::math::power;
#endif

template <class T>
RL_HD inline bool is_nan(T x) {
    return x != x;
}
template <class T>
RL_HD inline T nan() {
    return static_cast<T>(NAN);
}

}  // namespace math
}  // namespace
}  // namespace rushlight::functors
