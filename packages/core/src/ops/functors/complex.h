// Functors of ops/complex.yaml.
#pragma once

#include "ops/functors/complex_math.h"
#include "ops/functors/elementary_float.h"

namespace rushlight::functors {
namespace {

// z / |z| of a complex number z, or zero if z is zero.
template <class T>
struct Sgn {
    explicit Sgn(const Scalar*) {}
    RL_HD T operator()(T a) const {
        Real<T> length = math::abs(a);
        return length == Real<T>(0) ? T(0) : T{a.re / length, a.im / length};
    }
};
template <class T>
struct Conj {
    explicit Conj(const Scalar*) {}
    RL_HD T operator()(T a) const { return conj(a); }
};
template <class T>
struct Angle {
    explicit Angle(const Scalar*) {}
    RL_HD Real<T> operator()(T a) const { return math::fast_atan2(a.im, a.re); }
};
template <class T>
struct AngleOfReal {
    explicit AngleOfReal(const Scalar*) {}
    RL_HD T operator()(T x) const {
        const T angle = x < T(0) ? T(3.141592653589793) : T(0);
        return x != x ? x : angle;
    }
};

}  // namespace
}  // namespace rushlight::functors
