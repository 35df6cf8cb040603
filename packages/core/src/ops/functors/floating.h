// Functors of ops/floating.yaml: the parts of floating-point numbers.
#pragma once

#include "ops/functors/math.h"

namespace rushlight::functors {
namespace {

template <class T>
struct Copysign {
    explicit Copysign(const Scalar*) {}
    RL_HD T operator()(T a, T b) const { return std::copysign(a, b); }
};

// float16 and bfloat16 are computed as float32, whose neighbours are nearer: a step is one of their own last digits.
template <class T>
struct Nextafter {
    int digits;  // of the mantissa, without the leading one
    T least;  // the smallest step
    explicit Nextafter(const Scalar* p) : digits(p[0].to<int>()), least(static_cast<T>(p[1].to<double>())) {}
    RL_HD T operator()(T a, T b) const {
        if (a != a || b != b) return a + b;
        if (a == b) return b;
        if (digits == (sizeof(T) == 8 ? 52 : 23)) return std::nextafter(a, b);
        if (a == T(0)) return std::copysign(least, b);
        int exponent;
        T mantissa = std::frexp(a, &exponent);
        bool outwards = (b > a) == (a > T(0));
        // Downwards from a power of two the numbers lie closer.
        if (!outwards && std::fabs(mantissa) == T(0.5)) --exponent;
        T step = std::ldexp(T(1), exponent - 1 - digits);
        step = step < least ? least : step;
        if (std::isinf(a)) return std::copysign((T(2) - std::ldexp(T(1), -digits)) * largest_power(), a);
        T next = b > a ? a + step : a - step;
        return next == T(0) ? std::copysign(next, a) : next;
    }
    // 2^15 for float16's smallest step of 2^-24, 2^127 for bfloat16's of 2^-133.
    RL_HD T largest_power() const { return std::ldexp(T(1), digits == 10 ? 15 : 127); }
};

template <class T>
struct Ldexp {
    explicit Ldexp(const Scalar*) {}
    RL_HD T operator()(T a, T power) const {
        constexpr T kFar = T(5000);  // beyond every exponent
        if (power != math::trunc(power) || std::isinf(power)) return a * math::exp2(power);
        return std::ldexp(a, static_cast<int>(power > kFar ? kFar : power < -kFar ? -kFar : power));
    }
};

template <class T>
struct FrexpMantissa {
    explicit FrexpMantissa(const Scalar*) {}
    RL_HD T operator()(T a) const {
        int exponent;
        return std::frexp(a, &exponent);
    }
};
template <class T>
struct FrexpExponent {
    explicit FrexpExponent(const Scalar*) {}
    RL_HD T operator()(T a) const {
        int exponent = 0;
        std::frexp(a, &exponent);
        return std::isfinite(a) ? static_cast<T>(exponent) : T(0);
    }
};

template <class T>
struct NanToNum {
    T nan, posinf, neginf;
    explicit NanToNum(const Scalar* p)
        : nan(static_cast<T>(p[0].to<double>())),
          posinf(static_cast<T>(p[1].to<double>())),
          neginf(static_cast<T>(p[2].to<double>())) {}
    RL_HD T operator()(T x) const {
        constexpr T kInfinity = static_cast<T>(INFINITY);
        return x != x ? nan : x == kInfinity ? posinf : x == -kInfinity ? neginf : x;
    }
};

}  // namespace
}  // namespace rushlight::functors
