// Arithmetic on tensors in C++'s notation.
#pragma once

#include "rushlight/ops/add.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/neg.h"
#include "rushlight/ops/sub.h"

namespace rushlight {

inline Tensor operator-(const Tensor& input) { return ops::neg(input); }

#define RL_OPERATOR(symbol, name)                                                               \
    inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return ops::name(a, b); } \
    inline Tensor operator symbol(const Tensor& a, Scalar b) { return ops::name(a, b); }        \
    inline Tensor operator symbol(Scalar a, const Tensor& b) { return ops::name(a, b); }        \
    inline const Tensor& operator symbol## = (const Tensor& a, const Tensor& b) {               \
        return ops::name##_(a, b), a;                                                           \
    }                                                                                           \
    inline const Tensor& operator symbol## = (const Tensor& a, Scalar b) { return ops::name##_(a, b), a; }
RL_OPERATOR(+, add)
RL_OPERATOR(-, sub)
RL_OPERATOR(*, mul)
RL_OPERATOR(/, div)
#undef RL_OPERATOR

}  // namespace rushlight
