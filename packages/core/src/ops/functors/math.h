// Elementary functions that functors call, `math::exp(x)` for float and double. On the CPU, they are our vectorised
// functions if such a function exists, and otherwise the functions of the C library. In the CUDA plug-in, they are the
// device's functions.
#pragma once

#include <cmath>
#include <type_traits>

#include "rushlight/export.h"
#include "rushlight/scalar.h"

#if !defined(__CUDACC__)
#include "cpu/vector_double.h"
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
RL_OWN(log2)
RL_OWN(log10)
// Ours for double only.
RL_OWN(asin)
RL_OWN(acos)
RL_OWN(atan)
RL_OWN(atan2)
RL_OWN(sinh)
RL_OWN(cosh)
RL_OWN(atanh)
RL_OWN(erfc)
RL_OWN(hypot)
RL_LIBRARY(sqrt)
RL_LIBRARY(asinh)
RL_LIBRARY(acosh)
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
