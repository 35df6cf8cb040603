// Functors of ops/bitwise.yaml.
#pragma once

#include <climits>
#include <cstdint>
#include <type_traits>

#include "rushlight/export.h"
#include "rushlight/scalar.h"

namespace rushlight::functors {
namespace {

#define RL_BITWISE(Name, expression)                                              \
    template <class T>                                                            \
    struct Name {                                                                 \
        explicit Name(const Scalar*) {}                                           \
        RL_HD T operator()(T a, T b) const { return static_cast<T>(expression); } \
    };
RL_BITWISE(BitwiseAnd, a& b)
RL_BITWISE(BitwiseOr, a | b)
RL_BITWISE(BitwiseXor, a ^ b)
#undef RL_BITWISE

template <class T>
struct BitwiseNot {
    explicit BitwiseNot(const Scalar*) {}
    RL_HD T operator()(T a) const { return static_cast<T>(~a); }
};
// Computed with bytes: the compiler does not vectorise the negation of a bool.
template <>
struct BitwiseNot<bool> {
    explicit BitwiseNot(const Scalar*) {}
    RL_HD uint8_t operator()(uint8_t a) const { return a ^ 1; }
};

// A shift by a negative number, or by at least the number of bits, shifts all bits out.
template <class T>
struct BitwiseLeftShift {
    explicit BitwiseLeftShift(const Scalar*) {}
    RL_HD T operator()(T a, T b) const {
        bool out = static_cast<std::make_unsigned_t<T>>(b) >= CHAR_BIT * sizeof(T);
        return out ? T(0) : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b);
    }
};
template <class T>
struct BitwiseRightShift {
    explicit BitwiseRightShift(const Scalar*) {}
    RL_HD T operator()(T a, T b) const {
        constexpr auto kLast = static_cast<T>(CHAR_BIT * sizeof(T) - 1);
        bool out = static_cast<std::make_unsigned_t<T>>(b) > static_cast<std::make_unsigned_t<T>>(kLast);
        if (out) return std::is_signed_v<T> ? static_cast<T>(a >> kLast) : T(0);
        return static_cast<T>(a >> b);
    }
};

}  // namespace
}  // namespace rushlight::functors
