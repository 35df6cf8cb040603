// Functors of ops/floating.yaml, which take floating-point numbers apart.
#pragma once

#include "ops/functors/bits.h"
#include "ops/functors/complex_math.h"

namespace rushlight::functors {
namespace {

template <class T>
struct Copysign {
    explicit Copysign(const Scalar*) {}
    RL_HD T operator()(T a, T b) const { return std::copysign(a, b); }
    template <class Stored>
    struct OfBits {
        explicit OfBits(const Scalar*) {}
        uint16_t operator()(uint16_t a, uint16_t b) const {
            return static_cast<uint16_t>((a & kMagnitudeBits) | (b & kSignBit));
        }
    };
};

// The integer type of the same size, the number of mantissa bits, and the exponent bias.
template <class T> struct Bits;
template <> struct Bits<float> {
    using Int = uint32_t;
    static constexpr int kMantissa = 23, kBias = 127;
};
template <> struct Bits<double> {
    using Int = uint64_t;
    static constexpr int kMantissa = 52, kBias = 1023;
};

// float16 and bfloat16 are computed as float32, whose neighbours are closer. A step is therefore one unit in the last place
// of the half type.
template <class T>
struct Nextafter {
    using Int = typename Bits<T>::Int;
    Int unit;  // a step of normal numbers, added to the bits
    T least, normal,
        largest;  // the smallest step, the smallest normal number, and the largest number of the type

    explicit Nextafter(const Scalar* p) {
        // The number of mantissa bits, without the leading one.
        const int64_t asked = p[0].to<int64_t>(), most = Bits<T>::kMantissa;
        const int digits = static_cast<int>(asked < 0 ? 0 : asked > most ? most : asked);
        const int high = digits == 10 ? 15 : Bits<T>::kBias;
        unit = Int(1) << (Bits<T>::kMantissa - digits);
        least = static_cast<T>(p[1].to<double>());
        normal = std::ldexp(T(1), 1 - high);
        largest = (T(2) - std::ldexp(T(1), -digits)) * std::ldexp(T(1), high);
    }
    RL_HD T operator()(T a, T b) const {
        const T magnitude = a < T(0) ? -a : a;
        const bool outwards = (b > a) == (a > T(0));
        const Int bits = __builtin_bit_cast(Int, a);
        T next = __builtin_bit_cast(T, static_cast<Int>(outwards ? bits + unit : bits - unit));
        next = magnitude > largest ? std::copysign(largest, a) : next;  // from infinity to the largest number
        const T small = std::copysign(a + (b > a ? least : -least), a);
        next = magnitude < normal || (magnitude == normal && !outwards) ? small : next;
        next = a == T(0) ? std::copysign(least, b) : next;
        next = a == b ? b : next;
        return a != a || b != b ? a + b : next;
    }
};

// Returns 2^power for an integer that is at most the exponent bias in magnitude.
template <class T>
RL_HD inline T power_of_two(T power) {
    using Int = typename Bits<T>::Int;
    constexpr int kMantissa = Bits<T>::kMantissa;
    constexpr T kOne = T(Int(3) << (kMantissa - 1));  // its last bit has the value 1
    const Int exponent = __builtin_bit_cast(Int, power + (kOne + T(Bits<T>::kBias)));
    return __builtin_bit_cast(T, static_cast<Int>(exponent << kMantissa));
}
// Whether 2^power is computed by power_of_two() and is a normal number.
template <class T>
RL_HD inline bool is_near(T power) {
    return (math::trunc(power) == power) & (std::fabs(power) < T(Bits<T>::kBias));
}
// Returns a * 2^power, even if the type cannot represent 2^power.
template <class T>
RL_HD_CALL inline T scaled_by_power(T a, T power) {
    constexpr T kFar = T(5000);  // larger than all exponents
    if (power != math::trunc(power) || std::isinf(power)) return a * math::exp2(power);
    return std::ldexp(a, static_cast<int>(power > kFar ? kFar : power < -kFar ? -kFar : power));
}
// Other powers than near ones are rare(): Note [Optional parts of a functor].
template <class T>
struct Ldexp {
    explicit Ldexp(const Scalar*) {}
    RL_HD T operator()(T a, T power) const {
        if constexpr (kIsComplex<T>) {
            const Real<T> factor = power_of_two(power.re);
            return {a.re * factor, a.im * factor};
        } else {
            return a * power_of_two(power);
        }
    }
    RL_HD bool settled(T, T, T power) const {
        if constexpr (kIsComplex<T>) return is_near(power.re) & (power.im == 0);
        else return is_near(power);
    }
    RL_HD_CALL T rare(T a, T power) const {
        if constexpr (kIsComplex<T>) {
            if (power.im != 0) return a * math::exp2(power);
            return {scaled_by_power(a.re, power.re), scaled_by_power(a.im, power.re)};
        } else {
            return scaled_by_power(a, power);
        }
    }
    template <class Run>
    void with_second(T power, Run run) const {
        if (!settled(power, power, power)) return run([power, this](T a) { return rare(a, power); });
        if constexpr (kIsComplex<T>)
            run([factor = power_of_two(power.re)](T a) { return T(a.re * factor, a.im * factor); });
        else run([factor = power_of_two(power)](T a) { return a * factor; });
    }
};

// The exponent bits of a number. A subnormal number is scaled first.
template <class T>
struct Split {
    using Int = typename Bits<T>::Int;
    static constexpr int kMantissa = Bits<T>::kMantissa, kBias = Bits<T>::kBias;
    Int bits, field;
    bool subnormal;

    RL_HD explicit Split(T a) {
        constexpr T kUp = T(Int(1) << (kMantissa + 1));
        const T magnitude = a < T(0) ? -a : a;
        subnormal = magnitude < __builtin_bit_cast(T, Int(1) << kMantissa);
        bits = __builtin_bit_cast(Int, subnormal ? a * kUp : a);
        field = static_cast<Int>(bits << 1) >> (kMantissa + 1);
    }
    // Whether the number is zero, infinity or NaN, which are not split.
    RL_HD bool odd(T a) const { return a == T(0) || field == Int(2 * kBias + 1); }
};

template <class T>
struct FrexpMantissa {
    explicit FrexpMantissa(const Scalar*) {}
    RL_HD T operator()(T a) const {
        using Int = typename Bits<T>::Int;
        const Split<T> s(a);
        constexpr Int kField = Int(2 * s.kBias + 1) << s.kMantissa;
        const T half = __builtin_bit_cast(T, (s.bits & ~kField) | Int(s.kBias - 1) << s.kMantissa);
        return s.odd(a) ? a : half;
    }
};
template <class T>
struct FrexpExponent {
    explicit FrexpExponent(const Scalar*) {}
    RL_HD T operator()(T a) const {
        const Split<T> s(a);
        // Converts the field to floating point, by writing it to the last bits of a number whose last bit has the value
        // 1.
        using Int = typename Bits<T>::Int;
        constexpr T kOne = T(Int(1) << s.kMantissa);
        const T field = __builtin_bit_cast(T, s.field | __builtin_bit_cast(Int, kOne)) - kOne;
        const T exponent = field - (s.subnormal ? T(s.kBias - 1 + s.kMantissa + 1) : T(s.kBias - 1));
        return s.odd(a) ? T(0) : exponent;
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
        // Successive selections, which a loop computes without branches.
        const T below = x == kInfinity ? posinf : x;
        const T finite = x == -kInfinity ? neginf : below;
        return x == x ? finite : nan;
    }
};

}  // namespace
}  // namespace rushlight::functors
