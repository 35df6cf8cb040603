// Functors of ops/special.yaml.
#pragma once

#include "ops/functors/airy_math.h"
#include "ops/functors/elementary_float.h"
#include "ops/functors/gamma_math.h"
#include "ops/functors/special_float.h"

namespace rushlight::functors {
namespace {

// Functions that are computed in double and rounded once.
#define RL_SPECIAL_FUNCTION(Name, function)                                                        \
    template <class T>                                                                             \
    struct Name {                                                                                  \
        explicit Name(const Scalar*) {}                                                            \
        RL_HD T operator()(T x) const { return static_cast<T>(function(static_cast<double>(x))); } \
    };
RL_SPECIAL_FUNCTION(SpecialBesselJ0, ::j0)
RL_SPECIAL_FUNCTION(SpecialBesselJ1, ::j1)
RL_SPECIAL_FUNCTION(SpecialBesselY0, ::y0)
RL_SPECIAL_FUNCTION(SpecialBesselY1, ::y1)
RL_SPECIAL_FUNCTION(SpecialModifiedBesselK0, math::k0)
RL_SPECIAL_FUNCTION(SpecialModifiedBesselK1, math::k1)
RL_SPECIAL_FUNCTION(SpecialScaledModifiedBesselK0, math::k0e)
RL_SPECIAL_FUNCTION(SpecialScaledModifiedBesselK1, math::k1e)
RL_SPECIAL_FUNCTION(SpecialAiryAi, math::airy_ai)
RL_SPECIAL_FUNCTION(AiryAiPrime, math::airy_ai_prime)
RL_SPECIAL_FUNCTION(ErfcxSlope, math::erfcx_slope)
#undef RL_SPECIAL_FUNCTION

// Functions with an overload for float.
#define RL_SPECIAL_OVERLOADED(Name, function)                       \
    template <class T>                                              \
    struct Name {                                                   \
        explicit Name(const Scalar*) {}                             \
        RL_HD T operator()(T x) const { return math::function(x); } \
    };
RL_SPECIAL_OVERLOADED(I0, i0)
RL_SPECIAL_OVERLOADED(SpecialI0e, i0e)
RL_SPECIAL_OVERLOADED(SpecialNdtr, ndtr)
RL_SPECIAL_OVERLOADED(SpecialI1, i1)
RL_SPECIAL_OVERLOADED(SpecialI1e, i1e)
RL_SPECIAL_OVERLOADED(SpecialErfcx, erfcx)
RL_SPECIAL_OVERLOADED(SpecialNdtri, fast_ndtri)
RL_SPECIAL_OVERLOADED(SpecialLogNdtr, log_ndtr)
#undef RL_SPECIAL_OVERLOADED

// For float, these functions are vectorised. If they cannot compute a result, or not precisely, the functions of double
// compute it: Note [Optional parts of a functor].
template <class T>
struct Lgamma {
    explicit Lgamma(const Scalar*) {}
    RL_HD T operator()(T x) const { return math::lgamma(x); }
    RL_HD bool common(float x) const
        requires std::is_same_v<T, float>
    {
        return x > 0;
    }
    RL_HD float of_common(float x) const
        requires std::is_same_v<T, float>
    {
        return math::lgamma<true>(x);
    }
    // Below -2 there are zeros between integers, near which the terms of the reflection cancel.
    RL_HD bool settled(float result, float x) const
        requires std::is_same_v<T, float>
    {
        const bool apart = x > -2.f, beyond = x < -10.f, known = result == result;
        return (std::fabs(result) > 1e-3f) | (known & (apart | beyond));
    }
    RL_HD_CALL float rare(float x) const
        requires std::is_same_v<T, float>
    {
        return static_cast<float>(math::lgamma(static_cast<double>(x)));
    }
};
template <class T>
struct Digamma {
    explicit Digamma(const Scalar*) {}
    RL_HD T operator()(T x) const { return math::digamma(x); }
    RL_HD bool common(float x) const
        requires std::is_same_v<T, float>
    {
        return x > 0;
    }
    RL_HD float of_common(float x) const
        requires std::is_same_v<T, float>
    {
        return math::digamma<true>(x);
    }
    RL_HD bool settled(float result, float) const
        requires std::is_same_v<T, float>
    {
        return std::fabs(result) < INFINITY;
    }
    RL_HD_CALL float rare(float x) const
        requires std::is_same_v<T, float>
    {
        return static_cast<float>(math::digamma(static_cast<double>(x)));
    }
};

template <class T>
struct Polygamma {
    double n;
    explicit Polygamma(const Scalar* p) : n(p[0].to<double>()) {}
    RL_HD T operator()(T x) const { return static_cast<T>(math::polygamma(n, static_cast<double>(x))); }
};
template <>
struct Polygamma<float> {
    double n;
    explicit Polygamma(const Scalar* p) : n(p[0].to<double>()) {}
    // The polygamma function of order 1 is vectorised, because it is the gradient of digamma.
    RL_HD float operator()(float x) const { return math::trigamma(x); }
    RL_HD bool common(float x) const { return x > 0; }
    RL_HD float of_common(float x) const { return math::trigamma<true>(x); }
    RL_HD bool settled(float result, float) const { return n == 1 && result == result; }
    RL_HD_CALL float rare(float x) const {
        return static_cast<float>(math::polygamma(n, static_cast<double>(x)));
    }
};
template <class T>
struct SpecialZeta {
    explicit SpecialZeta(const Scalar*) {}
    RL_HD T operator()(T s, T q) const {
        return static_cast<T>(math::zeta(static_cast<double>(s), static_cast<double>(q)));
    }
};
template <class T>
struct Igamma {
    explicit Igamma(const Scalar*) {}
    RL_HD T operator()(T a, T x) const {
        return static_cast<T>(
            math::incomplete_gamma(static_cast<double>(a), static_cast<double>(x), true, sizeof(T) == 4));
    }
};
template <class T>
struct Igammac {
    explicit Igammac(const Scalar*) {}
    RL_HD T operator()(T a, T x) const {
        return static_cast<T>(
            math::incomplete_gamma(static_cast<double>(a), static_cast<double>(x), false, sizeof(T) == 4));
    }
};
// The derivative of igamma in x, x^(a-1) e^-x / gamma(a), times grad.
template <class T>
struct IgammaBackward {
    explicit IgammaBackward(const Scalar*) {}
    RL_HD T operator()(T grad, T a, T x) const {
        double s = static_cast<double>(a), y = static_cast<double>(x);
        double derivative = s == math::kInfinity && y < s ? 0  // igamma is 0 there for all finite x
                            : y != 0                      ? math::gamma_density(s, y) * s / y
                            : s > 1                       ? 0
                            : s < 1                       ? math::kInfinity
                                                          : 1;
        return grad * static_cast<T>(derivative);
    }
};

// x f(y), or 0 if x is 0, even where f(y) is not finite. If y is NaN, the result is NaN.
template <class T>
struct Xlogy {
    explicit Xlogy(const Scalar*) {}
    RL_HD T operator()(T x, T y) const { return y != y ? y : x == T(0) ? T(0) : x * math::log(y); }
};
template <class T>
struct SpecialXlog1py {
    explicit SpecialXlog1py(const Scalar*) {}
    RL_HD T operator()(T x, T y) const { return y != y ? y : x == T(0) ? T(0) : x * math::log1p(y); }
};

template <class T>
struct SpecialEntr {
    explicit SpecialEntr(const Scalar*) {}
    RL_HD T operator()(T x) const {
        T inside = -x * math::log(x);
        return x > T(0) || x != x ? inside : x == T(0) ? T(0) : static_cast<T>(-INFINITY);
    }
};

template <class T>
struct Logit {
    explicit Logit(const Scalar*) {}
    // log(x / (1 - x)). Near 1/2 the logarithm is near 0, so for double it is computed from the distance between x and 1/2.
    // For float it is computed in double, which has enough digits.
    RL_HD T operator()(T x) const {
        if constexpr (std::is_same_v<T, float>) {
            double wide = static_cast<double>(x);
            return static_cast<float>(math::log(wide / (1 - wide)));
        }
        T apart = (T(2) * x - T(1)) / (T(1) - x);
        return x > T(0.25) && x < T(0.75) ? math::log1p(apart) : math::log(x / (T(1) - x));
    }
};

template <class T>
struct LogitDerivative {
    explicit LogitDerivative(const Scalar*) {}
    RL_HD T operator()(T x) const {
        const T slope = T(1) / (x * (T(1) - x));
        return x < T(0) || x > T(1) ? std::numeric_limits<T>::quiet_NaN() : slope;
    }
};

}  // namespace
}  // namespace rushlight::functors
