// Functors of ops/comparison.yaml. All results are bool, except the result of `where`.
#pragma once

#include "ops/functors/complex_math.h"
#include "ops/functors/select.h"

namespace rushlight::functors {
namespace {

#define RL_COMPARISON(Name, expression)                              \
    template <class T>                                               \
    struct Name {                                                    \
        explicit Name(const Scalar*) {}                              \
        RL_HD bool operator()(T a, T b) const { return expression; } \
    };
RL_COMPARISON(Eq, a == b)
RL_COMPARISON(Ne, a != b)
RL_COMPARISON(Lt, a < b)
RL_COMPARISON(Le, a <= b)
RL_COMPARISON(Gt, a > b)
RL_COMPARISON(Ge, a >= b)
RL_COMPARISON(LogicalAnd, bool(a) & bool(b))
RL_COMPARISON(LogicalOr, bool(a) | bool(b))
RL_COMPARISON(LogicalXor, bool(a) != bool(b))
#undef RL_COMPARISON

// For a complex number, the condition must hold for one part (||) or for both (&&).
#define RL_PREDICATE(Name, integers, floats, joined)                          \
    template <class T>                                                        \
    struct Name {                                                             \
        explicit Name(const Scalar*) {}                                       \
        RL_HD bool operator()(T x) const {                                    \
            if constexpr (kIsComplex<T>) return part(x.re) joined part(x.im); \
            else return part(x);                                              \
        }                                                                     \
        RL_HD static bool part(Real<T> x) {                                   \
            if constexpr (std::is_integral_v<T>) return integers;             \
            else return floats;                                               \
        }                                                                     \
    };
RL_PREDICATE(LogicalNot, x == Real<T>(0), x == Real<T>(0), &&)
RL_PREDICATE(Isnan, false, x != x, ||)
RL_PREDICATE(Isinf, false, std::fabs(x) == Real<T>(INFINITY), ||)
RL_PREDICATE(Isfinite, true, std::fabs(x) < Real<T>(INFINITY), &&)
RL_PREDICATE(Isposinf, false, x == T(INFINITY), ||)
RL_PREDICATE(Isneginf, false, x == -T(INFINITY), ||)
RL_PREDICATE(Signbit, x < T(0), std::copysign(T(1), x) < T(0), ||)
#undef RL_PREDICATE
// Computed with bytes: the compiler does not vectorise the negation of a bool.
template <>
struct LogicalNot<bool> {
    explicit LogicalNot(const Scalar*) {}
    RL_HD uint8_t operator()(uint8_t a) const { return a ^ 1; }
};

template <class T>
struct Where {
    explicit Where(const Scalar*) {}
    RL_HD T operator()(bool condition, T a, T b) const { return select(condition, a, b); }
};

// a - b| <= atol + rtol |b|, or both are the same infinity, or both are NaN with equal_nan.
template <class T>
struct Isclose {
    double rtol, atol;
    bool equal_nan;
    explicit Isclose(const Scalar* p)
        : rtol(p[0].to<double>()), atol(p[1].to<double>()), equal_nan(p[2].to<bool>()) {}
    RL_HD bool operator()(T a, T b) const {
        if (a == b) return true;
        if constexpr (kIsComplex<T>) {
            using Part = Real<T>;
            if (a != a && b != b) return equal_nan;
            Part apart = math::abs(a - b);
            return apart < Part(INFINITY) &&
                   apart <= static_cast<Part>(atol) + static_cast<Part>(rtol) * math::abs(b);
        } else if constexpr (std::is_floating_point_v<T>) {
            if (a != a && b != b) return equal_nan;
            T apart = std::fabs(a - b);
            return apart < T(INFINITY) && apart <= static_cast<T>(atol) + std::fabs(static_cast<T>(rtol) * b);
        } else {
            double x = static_cast<double>(a), y = static_cast<double>(b);
            return std::fabs(x - y) <= atol + std::fabs(rtol * y);
        }
    }
};

}  // namespace
}  // namespace rushlight::functors
