// Reducers of ops/statistics.yaml, which ignore NaN.
#pragma once

#include "ops/reducers/reduction.h"

namespace rushlight::reducers {
namespace {

template <class T>
struct NanSum : Sum<T> {
    using Steps = std::conditional_t<std::is_integral_v<T>, typename Sum<T>::Steps, NanSum>;
    using typename Sum<T>::Acc;
    using Sum<T>::Sum;
    template <class A, class X>
    RL_HD_CALL A step(A a, X x) const {
        return a + (x == x ? static_cast<A>(x) : A{});
    }
};

template <class T>
struct CountPresent {
    using Acc = int64_t;
    using Wide = int64_t;
    static constexpr bool kIdentity = true;
    explicit CountPresent(const Scalar*) {}
    RL_HD_CALL Acc start() const { return 0; }
    RL_HD_CALL Acc step(Acc a, T x) const { return a + (x == x); }
    RL_HD_CALL Acc join(Acc a, Acc b) const { return a + b; }
    RL_HD_CALL Wide finish(Acc a, int64_t) const { return a; }
};

}  // namespace
}  // namespace rushlight::reducers
