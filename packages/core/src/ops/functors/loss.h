// Functors of ops/loss.yaml.
#pragma once

#include "ops/functors/math.h"
#include "rushlight/scalar.h"

namespace rushlight::functors {
namespace {

// With m the smaller of distance and bend: m (distance - m / 2).
template <class T>
struct Huber {
    T bend;
    explicit Huber(const Scalar* p) : bend(p[0].to<T>()) {}
    RL_HD T operator()(T x, T y) const {
        const T d = std::fabs(x - y), m = d > bend ? bend : d;
        return m * (d - m * T(0.5));
    }
};

template <class T>
struct BinaryCrossEntropyDerivative {
    explicit BinaryCrossEntropyDerivative(const Scalar*) {}
    RL_HD T operator()(T x, T y) const {
        const T both = x * (T(1) - x);
        return (x - y) / (both < T(1e-12) ? T(1e-12) : both);
    }
};

}  // namespace
}  // namespace rushlight::functors
