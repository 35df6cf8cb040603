// Functors of ops/random.yaml.
#pragma once

#include <cmath>

#include "rushlight/export.h"
#include "rushlight/scalar.h"

namespace rushlight::functors {
namespace {

template <class T>
struct DropoutBackward {
    T scale;
    explicit DropoutBackward(const Scalar* p) : scale(static_cast<T>(1 / (1 - p[0].to<double>()))) {}
    RL_HD T operator()(T grad, bool kept) const { return kept ? grad * scale : T(0); }
};

// Distributions computed from uniform numbers in [0, 1) by inversion, or from standard normal numbers.

template <class T>
struct Exponential {
    T rate;
    RL_HD T operator()(T u) const { return -std::log1p(-u) / rate; }
};

/// P(value > n) is (1 - p)^n. `scale` is 1 / log(1 - p).
template <class T>
struct Geometric {
    T scale, largest;
    RL_HD T operator()(T u) const {
        const T n = std::ceil(std::log1p(-u) * scale);
        return n < T(1) ? T(1) : n > largest ? largest : n;
    }
};

template <class T>
struct Cauchy {
    T median, sigma;
    RL_HD T operator()(T u) const { return median + sigma * std::tan(T(3.141592653589793) * (u - T(0.5))); }
};

template <class T>
struct LogNormal {
    T mean, std;
    RL_HD T operator()(T z) const { return std::exp(mean + z * std); }
};

}  // namespace
}  // namespace rushlight::functors
