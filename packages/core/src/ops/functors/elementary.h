// Functors of ops/elementary.yaml: functions of one or two numbers.
#pragma once

#include "ops/functors/complex_math.h"
#include "ops/functors/elementary_float.h"

namespace rushlight::functors {
namespace {

#define RL_FUNCTION(Name, expression)                        \
    template <class T>                                       \
    struct Name {                                            \
        explicit Name(const Scalar*) {}                      \
        RL_HD T operator()(T x) const { return expression; } \
    };
// The C library computes results outside of the moderate range: Note [Optional parts of a functor].
#define RL_TRIGONOMETRIC(Name, function)                             \
    template <class T>                                               \
    struct Name {                                                    \
        explicit Name(const Scalar*) {}                              \
        RL_HD T operator()(T x) const { return math::function(x); }  \
        RL_HD bool moderate(T x) const { return math::moderate(x); } \
        RL_HD_CALL T rare(T x) const {                               \
            if constexpr (kIsComplex<T>) return math::function(x);   \
            else return std::function(x);                            \
        }                                                            \
    };

RL_FUNCTION(Exp, math::exp(x))
RL_FUNCTION(Exp2, math::exp2(x))
RL_FUNCTION(Expm1, math::expm1(x))
RL_FUNCTION(Log, math::log(x))
RL_FUNCTION(Log1p, math::log1p(x))
RL_FUNCTION(Log2, math::log2(x))
RL_FUNCTION(Log10, math::log10(x))
RL_FUNCTION(Sqrt, math::sqrt(x))
RL_FUNCTION(Rsqrt, T(1) / math::sqrt(x))
RL_TRIGONOMETRIC(Sin, sin)
RL_TRIGONOMETRIC(Cos, cos)
RL_TRIGONOMETRIC(Tan, tan)
RL_FUNCTION(Asin, math::fast_asin(x))
RL_FUNCTION(Acos, math::fast_acos(x))
RL_FUNCTION(Atan, math::fast_atan(x))
RL_FUNCTION(Sinh, math::fast_sinh(x))
RL_FUNCTION(Cosh, math::fast_cosh(x))
RL_FUNCTION(Tanh, math::tanh(x))
RL_FUNCTION(Asinh, math::asinh(x))
RL_FUNCTION(Acosh, math::acosh(x))
RL_FUNCTION(Atanh, math::fast_atanh(x))
RL_FUNCTION(Erf, math::erf(x))
RL_FUNCTION(Erfc, math::fast_erfc(x))
RL_FUNCTION(Erfinv, math::fast_erfinv(x))
RL_FUNCTION(Sigmoid, math::sigmoid(x))

#undef RL_TRIGONOMETRIC
#undef RL_FUNCTION

// The derivative of asinh, 1 / sqrt(1 + x * x), and the root of the derivative of atan. If |x| is large, the square would
// overflow, and 1 is negligible.
template <class T>
struct AsinhDerivative {
    explicit AsinhDerivative(const Scalar*) {}
    RL_HD T operator()(T x) const {
        constexpr Real<T> kLarge = Real<T>(1e10);
        if constexpr (kIsComplex<T>) {
            // The real part of a square root is not negative.
            if (std::fabs(x.re) > kLarge || std::fabs(x.im) > kLarge)
                return T(1) / (std::copysign(Real<T>(1), x.re) < 0 ? -x : x);
            // The product keeps the digits near i and -i.
            return T(1) / math::sqrt(T((1 - x.im) * (1 + x.im) + x.re * x.re, 2 * x.re * x.im));
        } else {
            const T size = std::fabs(x);
            return T(1) / (size > kLarge ? size : math::sqrt(T(1) + size * size));
        }
    }
};

// The derivatives of asin and atanh. They are operators because the derivatives of a product of functions of 1 - x and
// 1 + x would contain inf - inf at 1 and -1.
template <class T>
struct AsinDerivative {
    explicit AsinDerivative(const Scalar*) {}
    RL_HD T operator()(T x) const {
        if constexpr (kIsComplex<T>) return T(1) / (math::sqrt(T(1) - x) * math::sqrt(T(1) + x));
        else return T(1) / math::sqrt((T(1) - x) * (T(1) + x));
    }
};
template <class T>
struct AtanhDerivative {
    explicit AtanhDerivative(const Scalar*) {}
    RL_HD T operator()(T x) const { return T(1) / (T(1) - x) / (T(1) + x); }
};

template <class T>
struct Atan2 {
    explicit Atan2(const Scalar*) {}
    RL_HD T operator()(T y, T x) const { return math::fast_atan2(y, x); }
};

// Computed relative to the larger argument, so that nothing overflows. The difference of equal infinities is NaN, so equal
// arguments are handled separately.
template <class T>
struct Logaddexp {
    explicit Logaddexp(const Scalar*) {}
    RL_HD T operator()(T a, T b) const {
        if constexpr (kIsComplex<T>) {
            const bool first = a.re >= b.re || b.re != b.re;
            const T larger = first ? a : b, smaller = first ? b : a;
            // The difference of two infinities of the same sign is NaN.
            if (std::isinf(larger.re) && larger.re == smaller.re)
                return larger.re < 0 ? larger : math::log(math::exp(a) + math::exp(b));
            return larger + math::log1p(math::exp(smaller - larger));
        } else {
            T larger = a > b ? a : b, apart = a == b ? T(0) : std::fabs(a - b);
            return larger + math::log1p(math::exp(-apart));
        }
    }
};
template <class T>
struct Logaddexp2 {
    explicit Logaddexp2(const Scalar*) {}
    RL_HD T operator()(T a, T b) const {
        T larger = a > b ? a : b, apart = a == b ? T(0) : std::fabs(a - b);
        return larger + math::log1p(math::exp2(-apart)) * T(1.4426950408889634);
    }
};

template <class T>
struct Hypot {
    explicit Hypot(const Scalar*) {}
    RL_HD T operator()(T a, T b) const { return math::abs(Complex<T>{a, b}); }
};

template <class T>
struct OverSquares {
    explicit OverSquares(const Scalar*) {}
    RL_HD T operator()(T a, T b) const {
        const bool zero = a == T(0) && b == T(0);
        if constexpr (std::is_same_v<T, float>) {
            double x = static_cast<double>(a), y = static_cast<double>(b), square = x * x + y * y;
            return static_cast<float>(x / (zero ? 1 : square));
        } else {
            const T length = zero ? T(1) : std::hypot(a, b);  // its square may overflow
            return a / length / length;
        }
    }
};

template <class T>
struct Deg2rad {
    explicit Deg2rad(const Scalar*) {}
    RL_HD T operator()(T x) const { return x * T(0.017453292519943295); }
};
template <class T>
struct Rad2deg {
    explicit Rad2deg(const Scalar*) {}
    RL_HD T operator()(T x) const { return x * T(57.29577951308232); }
};

template <class T>
struct Sinc {
    explicit Sinc(const Scalar*) {}
    // The argument is reduced before it is multiplied by pi, because rounding the product would lose digits.
    RL_HD T operator()(T x) const {
        constexpr Real<T> kPi = Real<T>(3.141592653589793);
        if constexpr (kIsComplex<T>) {
            return x == T(0) ? T(1) : math::sin(T(kPi) * x) / (T(kPi) * x);
        } else {
            return real(x, kPi);
        }
    }
    RL_HD static T real(T x, T kPi) {
        T turn = x - T(2) * math::nearbyint(x * T(0.5));  // in [-1, 1]
        T near = std::fabs(turn) > T(0.5) ? std::copysign(T(1), turn) - turn : turn;
        return x == T(0) ? T(1) : math::sin(kPi * near) / (kPi * x);
    }
};

// Rounding does not change integers.
#define RL_ROUNDING(Name, function)                        \
    template <class T>                                     \
    struct Name {                                          \
        explicit Name(const Scalar*) {}                    \
        RL_HD T operator()(T x) const {                    \
            if constexpr (std::is_integral_v<T>) return x; \
            else return function(x);                       \
        }                                                  \
    };
RL_ROUNDING(Floor, math::floor)
RL_ROUNDING(Ceil, math::ceil)
RL_ROUNDING(Trunc, math::trunc)
RL_ROUNDING(Round, math::nearbyint)  // halves are rounded to the even neighbour
#undef RL_ROUNDING

template <class T>
struct RoundDecimals {
    T power;  // 10^|decimals|, exact up to 10^22
    bool behind;
    explicit RoundDecimals(const Scalar* p)
        : power(static_cast<T>(std::pow(10.0, std::abs(p[0].to<double>())))),
          behind(p[0].to<int64_t>() >= 0) {}
    RL_HD T operator()(T x) const {
        return behind ? math::nearbyint(x * power) / power : math::nearbyint(x / power) * power;
    }
};

template <class T>
struct Frac {
    explicit Frac(const Scalar*) {}
    RL_HD T operator()(T x) const { return x - math::trunc(x); }
};

// Derivatives, computed from the result.
template <class T>
struct SigmoidBackward {
    explicit SigmoidBackward(const Scalar*) {}
    RL_HD T operator()(T grad, T result) const { return grad * (T(1) - result) * result; }
};
template <class T>
struct TanhBackward {
    explicit TanhBackward(const Scalar*) {}
    RL_HD T operator()(T grad, T result) const { return grad * (T(1) - result * result); }
};

}  // namespace
}  // namespace rushlight::functors
