// Functors of ops/arithmetic.yaml. A functor is made from the operator's parameters once per loop, and called with
// values of the compute dtype.
#pragma once

#include <type_traits>

#include "rushlight/export.h"
#include "rushlight/scalar.h"

namespace rushlight::functors {
namespace {

template <class T>
struct Add {
    T alpha;
    explicit Add(const Scalar* p) : alpha(p[0].to<T>()) {}
    RL_HD T operator()(T a, T b) const {
        if constexpr (std::is_same_v<T, bool>) return a || (b && alpha);
        else return static_cast<T>(a + alpha * b);
    }
};

}  // namespace
}  // namespace rushlight::functors
