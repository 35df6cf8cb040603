// Functors of ops/arithmetic.yaml. A functor is constructed from the operator's parameters once for each loop, and called
// with values of the compute dtype.
#pragma once

#include "ops/functors/bits.h"
#include "ops/functors/complex_math.h"
#include "ops/functors/select.h"

namespace rushlight::functors {
namespace {

// Integers wrap around. Signed overflow is undefined in C++, so integers are computed as unsigned. Types narrower than int
// are promoted to int, which does not hold the product of two uint16; therefore uint16 is computed as uint32.
template <class T>
using Wrapping = std::conditional_t<std::is_same_v<T, int32_t> || std::is_same_v<T, uint16_t>, uint32_t,
                                    std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, T>>;
template <class T>
RL_HD inline T plus(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <class T>
RL_HD inline T minus(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}
template <class T>
RL_HD inline T times(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}

// Returns alpha * b. A real factor multiplies the parts of a complex number separately, so that an infinite part does not
// affect a finite part.
template <class T>
RL_HD inline T scaled_term(T alpha, T b) {
    if constexpr (kIsComplex<T>)
        if (alpha.im == 0) return {alpha.re * b.re, alpha.re * b.im};
    return times(alpha, b);
}

template <class T>
struct Add {
    T alpha;
    explicit Add(const Scalar* p) : alpha(p[0].to<T>()) {}
    RL_HD T operator()(T a, T b) const {
        if constexpr (std::is_same_v<T, bool>) return a | (b & alpha);  // has no branches
        else return plus(a, scaled_term(alpha, b));
    }
};

template <class T>
struct Sub {
    T alpha;
    explicit Sub(const Scalar* p) : alpha(p[0].to<T>()) {}
    RL_HD T operator()(T a, T b) const { return minus(a, scaled_term(alpha, b)); }
};

template <class T>
struct Mul {
    explicit Mul(const Scalar*) {}
    RL_HD T operator()(T a, T b) const {
        if constexpr (std::is_same_v<T, bool>) return a && b;
        else return times(a, b);
    }
};

template <class T>
struct Div {
    explicit Div(const Scalar*) {}
    RL_HD T operator()(T a, T b) const { return a / b; }
};

// Integer quotients. For a divisor of zero, the operator raises an error before the loop. The smallest integer divided
// by -1 wraps around.
//
// Note [Quotients of integers]
// Processors have vector instructions that divide floating-point numbers, but not integers. The quotient is therefore
// computed in floating point where this is exact: if dividend and divisor have fewer bits than the significand, the rounded
// quotient lies between the same two integers as the exact quotient. This is so because an exact quotient that is not an
// integer differs from the nearest integer by at least 1 / divisor, and rounding changes it by less. Narrow integers always
// satisfy the condition. Wide integers usually do; the others are computed by rare(): see Note [Optional parts of a
// functor].
template <class T>
inline constexpr bool kWide = std::is_integral_v<T> && sizeof(T) == 8;
template <class T>
RL_HD inline bool divides_as_double(T a, T b) {
    constexpr T kLimit = T(1) << 51;
    if constexpr (std::is_signed_v<T>)
        return a > -kLimit && a < kLimit && b > -kLimit && b < kLimit && b != 0;
    else return a < kLimit && b < kLimit && b != 0;
}
template <class T, bool floored>
RL_HD inline T quick_quotient(T a, T b) {
    using F = std::conditional_t<(sizeof(T) < 4), float, double>;
    using Whole = std::conditional_t<(sizeof(T) < 4), int32_t, int64_t>;
    const F q = static_cast<F>(a) / static_cast<F>(b == T(0) ? T(1) : b);
    return static_cast<T>(static_cast<Whole>(floored ? math::floor(q) : q));
}
template <class T, bool floored>
RL_HD inline T exact_quotient(T a, T b) {
    if (b == T(0)) return T(0);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return minus(T(0), a);
    const T q = a / b;
    return floored && a % b != 0 && (a < T(0)) != (b < T(0)) ? static_cast<T>(q - 1) : q;
}
template <class T>
RL_HD inline T rest(T a, T b, T quotient) {
    return b == T(0) ? T(0) : minus(a, times(quotient, b));
}

template <class T>
struct DivTrunc {
    explicit DivTrunc(const Scalar*) {}
    RL_HD T operator()(T a, T b) const {
        if constexpr (std::is_floating_point_v<T>) return math::trunc(a / b);
        else return quick_quotient<T, false>(a, b);
    }
    RL_HD bool moderate(T a, T b) const
        requires kWide<T>
    {
        return divides_as_double(a, b);
    }
    RL_HD T rare(T a, T b) const
        requires kWide<T>
    {
        return exact_quotient<T, false>(a, b);
    }
};

// Quotients of floating-point numbers. a - whole * b is exact for whole = trunc(a / b), if the quotient has fewer digits than
// the type: it is a multiple of the unit of b, and smaller than b. If a / b is rounded up to an integer, the difference has
// the opposite sign, and adding or subtracting b is exact too.
template <class T>
inline constexpr T kFarApart = sizeof(T) == 4 ? T(1 << 22) : T(int64_t(1) << 51);
// Whether Division is valid.
template <class T>
RL_HD inline bool near_in_size(T a, T b) {
    return (std::fabs(a) < std::fabs(b) * kFarApart<T>)&(std::fabs(b) < static_cast<T>(INFINITY));
}
template <class T>
struct Division {
    T whole, rest;  // `rest` has the sign of the dividend
    RL_HD Division(T a, T b) {
        whole = math::trunc(a / b);
        rest = std::fma(-whole, b, a);
        const bool beyond = (rest != T(0)) & ((a < T(0)) != (rest < T(0)));
        const T one = std::copysign(T(1), whole);
        rest = std::copysign(beyond ? std::fma(one, b, rest) : rest, a);
        whole -= beyond ? one : T(0);
    }
};
template <class T>
inline constexpr bool kDivides = kWide<T> || std::is_floating_point_v<T>;
template <class T>
RL_HD inline bool divides(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return near_in_size(a, b);
    else return divides_as_double(a, b);
}
template <class T>
RL_HD inline T signed_as_divisor(T r, T b) {
    return (r != T(0)) & ((r < T(0)) != (b < T(0))) ? r + b : r;
}

// The result has the sign of the divisor, as in Python.
template <class T>
struct Remainder {
    explicit Remainder(const Scalar*) {}
    RL_HD T operator()(T a, T b) const {
        if constexpr (std::is_floating_point_v<T>) return signed_as_divisor(Division<T>(a, b).rest, b);
        else return rest(a, b, quick_quotient<T, true>(a, b));
    }
    RL_HD bool moderate(T a, T b) const
        requires kDivides<T>
    {
        return divides(a, b);
    }
    RL_HD_CALL T rare(T a, T b) const
        requires kDivides<T>
    {
        if constexpr (std::is_floating_point_v<T>) return signed_as_divisor(std::fmod(a, b), b);
        else return rest(a, b, exact_quotient<T, true>(a, b));
    }
};

template <class T>
RL_HD inline T floor_quotient(T a, T b) {
    if (b == T(0)) return a / b;
    // Computed from the remainder, because floor(a / b) is off by one if the quotient is rounded up to an integer.
    T r = std::fmod(a, b), q = (a - r) / b;
    if (r != T(0) && (b < T(0)) != (r < T(0))) q -= T(1);
    if (q == T(0)) return std::copysign(T(0), a / b);
    T down = math::floor(q);
    return q - down > T(0.5) ? down + T(1) : down;
}
template <class T>
struct FloorDivide {
    explicit FloorDivide(const Scalar*) {}
    RL_HD T operator()(T a, T b) const {
        if constexpr (std::is_floating_point_v<T>) {
            const Division<T> d(a, b);
            const bool apart = (d.rest != T(0)) & ((b < T(0)) != (d.rest < T(0)));
            const T q = apart ? d.whole - T(1) : d.whole, zero = std::copysign(T(0), a / b);
            return q == T(0) ? zero : q;
        } else {
            return quick_quotient<T, true>(a, b);
        }
    }
    RL_HD bool moderate(T a, T b) const
        requires kDivides<T>
    {
        return divides(a, b);
    }
    RL_HD_CALL T rare(T a, T b) const
        requires kDivides<T>
    {
        if constexpr (std::is_floating_point_v<T>) return floor_quotient(a, b);
        else return exact_quotient<T, true>(a, b);
    }
};

// The result has the sign of the dividend, as in C.
template <class T>
struct Fmod {
    explicit Fmod(const Scalar*) {}
    RL_HD T operator()(T a, T b) const {
        if constexpr (std::is_floating_point_v<T>) return Division<T>(a, b).rest;
        else return rest(a, b, quick_quotient<T, false>(a, b));
    }
    RL_HD bool moderate(T a, T b) const
        requires kDivides<T>
    {
        return divides(a, b);
    }
    RL_HD_CALL T rare(T a, T b) const
        requires kDivides<T>
    {
        if constexpr (std::is_floating_point_v<T>) return std::fmod(a, b);
        else return rest(a, b, exact_quotient<T, false>(a, b));
    }
};

// A power of doubles. Numbers in the moderate range are computed by vector code: see Note [Optional parts of a
// functor].
struct PowerOf {
    double exponent;
    RL_HD double operator()(double a) const { return math::power(a, exponent); }
    RL_HD bool moderate(double a) const { return math::has_power(a, exponent); }
    RL_HD_CALL double rare(double a) const { return std::pow(a, exponent); }
};

template <class T>
struct Pow {
    explicit Pow(const Scalar*) {}
    RL_HD T operator()(T a, T b) const {
        if constexpr (std::is_same_v<T, float> || kIsComplex<T>) {
            return math::pow(a, b);
        } else if constexpr (std::is_same_v<T, double>) {
            return math::power(a, b);
        } else if constexpr (std::is_same_v<T, bool>) {
            return a || !b;
        } else {
            if (b < T(0)) return a == T(1) ? T(1) : a == static_cast<T>(-1) ? (b % 2 == 0 ? T(1) : a) : T(0);
            T power = 1;
            for (; b; b = static_cast<T>(b >> 1), a = times(a, a))
                if (b & 1) power = times(power, a);
            return power;
        }
    }
    RL_HD bool moderate(T a, T b) const
        requires std::is_same_v<T, double>
    {
        return math::has_power(a, b);
    }
    RL_HD_CALL double rare(T a, T b) const
        requires std::is_same_v<T, double>
    {
        return std::pow(a, b);
    }
    // Common exponents need only one or two operations.
    template <class Run>
    void with_second(T exponent, Run run) const {
        if constexpr (std::is_same_v<T, bool>) return run([exponent](T a) { return a || !exponent; });
        if (exponent == T(2)) return run([](T a) { return times(a, a); });
        if (exponent == T(3)) return run([](T a) { return times(times(a, a), a); });
        if constexpr (std::is_floating_point_v<T> || kIsComplex<T>) {
            if (exponent == T(1)) return run([](T a) { return a; });
            if (exponent == T(0.5)) return run([](T a) { return math::sqrt(a); });
            if (exponent == T(-1)) return run([](T a) { return T(1) / a; });
            // An overflow of a complex square is NaN.
            if constexpr (kIsComplex<T>) {
                if (exponent == T(-2)) return run([](T a) { return T(1) / a / a; });
            } else {
                if (exponent == T(-2)) return run([](T a) { return T(1) / (a * a); });
            }
        }
        if constexpr (std::is_same_v<T, float>) {
            // Decisions that depend only on the exponent are made here, outside of the loop.
            if (exponent != T(0) && std::fabs(exponent) < INFINITY) {
                const double wide = static_cast<double>(exponent);
                auto power = [wide](T a) {
                    return static_cast<T>(math::exp(wide * math::log(static_cast<double>(std::fabs(a)))));
                };
                if (math::trunc(exponent) != exponent)
                    return run([power](T a) { return a < T(0) && a > -INFINITY ? T(NAN) : power(a); });
                if (math::trunc(exponent * T(0.5)) * T(2) != exponent)
                    return run([power](T a) { return std::copysign(power(a), a); });
                return run(power);
            }
        }
        if constexpr (std::is_same_v<T, double>) run(PowerOf{exponent});
        else run([this, exponent](T a) { return (*this)(a, exponent); });
    }
};

template <class T>
struct Neg {
    explicit Neg(const Scalar*) {}
    RL_HD T operator()(T a) const {
        if constexpr (std::is_floating_point_v<T> || kIsComplex<T>) return -a;
        else return minus(T(0), a);
    }
    template <class Stored>
    struct OfBits {
        explicit OfBits(const Scalar*) {}
        uint16_t operator()(uint16_t a) const { return a ^ kSignBit; }
    };
};

template <class T>
struct Abs {
    explicit Abs(const Scalar*) {}
    RL_HD Real<T> operator()(T a) const {
        if constexpr (kIsComplex<T>) return math::abs(a);
        else if constexpr (std::is_floating_point_v<T>) return std::fabs(a);
        else if constexpr (std::is_unsigned_v<T>) return a;
        else return a < T(0) ? minus(T(0), a) : a;
    }
    template <class Stored>
    struct OfBits {
        explicit OfBits(const Scalar*) {}
        uint16_t operator()(uint16_t a) const { return a & kMagnitudeBits; }
    };
};

template <class T>
struct Sign {
    explicit Sign(const Scalar*) {}
    RL_HD T operator()(T a) const {
        if constexpr (std::is_same_v<T, bool>) return a;
        else if constexpr (std::is_floating_point_v<T>) return a > T(0) ? T(1) : a < T(0) ? T(-1) : T(0);
        else return static_cast<T>((a > T(0)) - (a < T(0)));
    }
};

template <class T>
struct Reciprocal {
    explicit Reciprocal(const Scalar*) {}
    RL_HD T operator()(T a) const { return T(1) / a; }
};

template <class T>
struct Square {
    explicit Square(const Scalar*) {}
    RL_HD T operator()(T a) const { return times(a, a); }
};

template <class T>
struct Addcmul {
    T value;
    explicit Addcmul(const Scalar* p) : value(p[0].to<T>()) {}
    RL_HD T operator()(T input, T a, T b) const { return plus(input, times(times(value, a), b)); }
};

template <class T>
struct Addcdiv {
    T value;
    explicit Addcdiv(const Scalar* p) : value(p[0].to<T>()) {}
    RL_HD T operator()(T input, T a, T b) const { return input + value * a / b; }
};

// Interpolates from the nearer end, so that both ends are exact.
template <class T>
struct Lerp {
    explicit Lerp(const Scalar*) {}
    RL_HD T operator()(T start, T end, T weight) const {
        T span = end - start;
        bool near;
        if constexpr (kIsComplex<T>) near = math::abs(weight) < Real<T>(0.5);
        else near = (weight < T(0) ? -weight : weight) < T(0.5);
        return near ? start + weight * span : end - span * (T(1) - weight);
    }
};

// Returns NaN if an argument is NaN.
template <class T>
RL_HD inline T larger(T a, T b) {
    const T chosen = a < b ? b : a;
    return b != b ? b : chosen;
}
template <class T>
RL_HD inline T smaller(T a, T b) {
    const T chosen = b < a ? b : a;
    return b != b ? b : chosen;
}

template <class T>
struct Maximum {
    explicit Maximum(const Scalar*) {}
    RL_HD T operator()(T a, T b) const { return larger(a, b); }
    template <class Run>
    void with_second(T b, Run run) const {
        if (b != b) return run([b](T) { return b; });
        run([b](T a) { return b > a ? b : a; });
    }
};
template <class T>
struct Minimum {
    explicit Minimum(const Scalar*) {}
    RL_HD T operator()(T a, T b) const { return smaller(a, b); }
    template <class Run>
    void with_second(T b, Run run) const {
        if (b != b) return run([b](T) { return b; });
        run([b](T a) { return b < a ? b : a; });
    }
};
template <class T>
struct Clamp {
    explicit Clamp(const Scalar*) {}
    RL_HD T operator()(T a, T low, T high) const { return smaller(larger(a, low), high); }
    template <class Run>
    void with_others(T low, T high, Run run) const {
        if (low != low || high != high) return run([=, *this](T a) { return (*this)(a, low, high); });
        run([low, high](T a) { return between(a, low, high); });
    }
};

// Returns the other argument if one is NaN.
template <class T>
struct Fmax {
    explicit Fmax(const Scalar*) {}
    RL_HD T operator()(T a, T b) const { return a < b || a != a ? b : a; }
};
template <class T>
struct Fmin {
    explicit Fmin(const Scalar*) {}
    RL_HD T operator()(T a, T b) const { return b < a || a != a ? b : a; }
};

template <class T>
RL_HD inline T common_divisor(T a, T b) {
    while (b != T(0)) {
        // The smallest integer divided by -1 overflows.
        T rest = b == static_cast<T>(-1) && std::is_signed_v<T> ? T(0) : static_cast<T>(a % b);
        a = b;
        b = rest;
    }
    return a < T(0) ? minus(T(0), a) : a;
}
template <class T>
struct Gcd {
    explicit Gcd(const Scalar*) {}
    RL_HD T operator()(T a, T b) const { return common_divisor(a, b); }
};
template <class T>
struct Lcm {
    explicit Lcm(const Scalar*) {}
    RL_HD T operator()(T a, T b) const {
        T divisor = common_divisor(a, b);
        if (divisor == T(0)) return T(0);
        // The multiple is positive. Like other integers, it wraps around if it does not fit the dtype.
        const T multiple = times(static_cast<T>(a / divisor), b);
        return (a < T(0)) != (b < T(0)) ? minus(T(0), multiple) : multiple;
    }
};

template <class T>
struct Heaviside {
    explicit Heaviside(const Scalar*) {}
    RL_HD T operator()(T a, T at_zero) const { return a == T(0) ? at_zero : static_cast<T>(a > T(0)); }
};

}  // namespace
}  // namespace rushlight::functors
