// Functors of ops/random.yaml.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/functors/select.h"
#include "rushlight/dtype.h"
#include "rushlight/export.h"
#include "rushlight/half.h"
#include "rushlight/philox.h"
#include "rushlight/scalar.h"

namespace rushlight::functors {
namespace {

template <class T>
struct DropoutBackward {
    T scale;
    explicit DropoutBackward(const Scalar* p) : scale(static_cast<T>(1 / (1 - p[0].to<double>()))) {}
    RL_HD T operator()(T grad, bool kept) const { return select(kept, static_cast<T>(grad * scale), T(0)); }
};

// Distributions computed from uniform numbers in [0, 1) by inversion, or from standard normal numbers. Uniform and Normal
// must give the same bits on every device. Compilers may or may not contract a product and a sum into a fused multiply-add,
// so these functors call it explicitly.

/// Maps uniform numbers in [0, 1) to an interval. `largest` is the largest number below the end of the interval.
/// Results are limited to it, because rounding could otherwise give the end of the interval.
template <class T>
struct Uniform {
    T from, width, largest;
    RL_HD T operator()(T u) const {
        const T value = rushlight::detail::fused(u, width, from);
        return value > largest ? largest : value;
    }
};

template <class T>
struct Normal {
    T mean, std;
    RL_HD T operator()(T z) const { return rushlight::detail::fused(z, std, mean); }
};

/// Returns the largest number of a dtype that is less than `end`, but at least `from`.
inline double largest_below(double end, double from, DType dtype) {
    const auto step_down = [&]<class T>(T) {
        // Numbers of the same sign have the same order as their bits.
        const T rounded(static_cast<float>(end));
        double value = static_cast<float>(rounded);
        if (value >= end) {
            T before = rounded;
            before.bits = value > 0 ? rounded.bits - 1 : value < 0 ? rounded.bits + 1 : 0x8001;
            value = static_cast<float>(before);
        }
        return value;
    };
    double value = 0;
    if (dtype == DType::Float16) value = step_down(Half());
    else if (dtype == DType::BFloat16) value = step_down(BFloat16());
    else if (dtype == DType::Float64) value = std::nextafter(end, -INFINITY);
    else {
        const auto rounded = static_cast<float>(end);
        value = rounded < end ? rounded : std::nextafter(rounded, -INFINITY);
    }
    return std::max(value, from);
}

template <class T>
struct Exponential {
    T rate;
    RL_HD T operator()(T u) const { return -std::log1p(-u) / rate; }
};

/// The geometric distribution: the probability of a value above n is (1 - p)^n. `scale` is 1 / log(1 - p).
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
    RL_HD T operator()(T z) const { return std::exp(rushlight::detail::fused(z, std, mean)); }
};

}  // namespace
}  // namespace rushlight::functors
