// The input positions and weights of an interpolated position.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/functors/select.h"
#include "rushlight/export.h"

namespace rushlight::functors {
namespace {

enum ResampleMode : int64_t { kNearest, kNearestExact, kLinear, kCubic };

// Keys' kernel with parameter a: keys_far computes the weights of positions at distance 1 + f and 2 - f, and keys_near
// the weights of positions at distance f and 1 - f.
template <class T>
RL_HD inline T keys_near(T x, T a) {
    return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <class T>
RL_HD inline T keys_far(T x, T a) {
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

/// Resampling of a dimension of `in` positions to `out` positions.
struct Resampling {
    int64_t in, out;
    int64_t mode;
    bool align_corners;
    double scale;  // 0: the quotient of the sizes
    bool antialias;

    RL_HD bool cubic() const { return mode == kCubic; }
    RL_HD bool linear() const { return mode == kLinear; }
    /// Distance between two neighbouring output positions, measured in input positions.
    template <class T>
    RL_HD T step() const {
        if (align_corners && (linear() || cubic()))
            return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
        const double given = 1.0 / scale;
        return scale > 0 ? static_cast<T>(given < 1e9 ? given : 1e9)
                         : static_cast<T>(in) / static_cast<T>(out);
    }
    /// Coordinate of output position j in the input.
    template <class T>
    RL_HD T source(int64_t j, T step) const {
        const T position = static_cast<T>(j);
        return align_corners ? step * position : step * (position + T(0.5)) - T(0.5);
    }
    /// Radius of a filter, measured in input positions, that covers all input positions between two output positions.
    template <class T>
    RL_HD T reach() const {
        const T step = this->step<T>();
        return (step > 1 ? step : T(1)) * (cubic() ? 2 : 1);
    }
    /// Number of input positions that contribute to an output position.
    template <class T>
    RL_HD int64_t taps() const {
        if (antialias) {
            const auto reached = static_cast<int64_t>(std::ceil(reach<T>()));
            return (reached < in ? reached : in) * 2 + 1;
        }
        return linear() ? 2 : cubic() ? 4 : 1;
    }
    /// Stores the input positions that contribute to output position j, and their weights. Positions of weight 0 may
    /// occur twice.
    template <class T>
    RL_HD void taps_of(int64_t j, int64_t* index, T* weight) const {
        if (antialias) return antialiased(j, index, weight);
        if (linear()) {
            T x = source(j, step<T>());
            x = x > 0 ? x : T(0);
            const int64_t low = static_cast<int64_t>(x) < in - 1 ? static_cast<int64_t>(x) : in - 1;
            const T rest = x - static_cast<T>(low) < 1 ? x - static_cast<T>(low) : T(1);
            index[0] = low;
            index[1] = low + 1 < in - 1 ? low + 1 : in - 1;
            weight[0] = 1 - rest;
            weight[1] = rest;
        } else if (cubic()) {
            const T x = source(j, step<T>()), a = T(-0.75);
            const auto low = static_cast<int64_t>(std::floor(x));
            const T f = between(x - static_cast<T>(low), T(0), T(1));
            const T weights[] = {keys_far(f + 1, a), keys_near(f, a), keys_near(1 - f, a),
                                 keys_far(2 - f, a)};
            for (int k = 0; k < 4; ++k) {
                index[k] = between<int64_t>(low - 1 + k, 0, in - 1);
                weight[k] = weights[k];
            }
        } else {
            // Computed in float32 for all dtypes, as in PyTorch, because rounding determines which position is nearest.
            const float half = mode == kNearestExact ? 0.5f : 0.0f;
            const auto i = static_cast<int64_t>(std::floor((static_cast<float>(j) + half) * step<float>()));
            index[0] = between<int64_t>(i, 0, in - 1);
            weight[0] = 1;
        }
    }

  private:
    template <class T>
    RL_HD T filter(T x) const {
        x = std::abs(x);
        if (!cubic()) return x < 1 ? 1 - x : T(0);
        return x < 1 ? keys_near(x, T(-0.5)) : x < 2 ? keys_far(x, T(-0.5)) : T(0);
    }
    // The filter is stretched to the distance of the output positions, and the weights of the positions inside the input are
    // normalised to a sum of 1.
    template <class T>
    RL_HD void antialiased(int64_t j, int64_t* index, T* weight) const {
        const T step = this->step<T>(), width = step > 1 ? step : T(1), reach = this->reach<T>();
        const int64_t all = taps<T>();
        const T center = step * (static_cast<T>(j) + T(0.5));
        const auto begin = static_cast<int64_t>(center - reach + T(0.5)),
                   end = static_cast<int64_t>(center + reach + T(0.5));
        const int64_t first = begin > 0 ? begin : 0,
                      count = between<int64_t>((end < in ? end : in) - first, 0, all);
        T total = 0;
        for (int64_t k = 0; k < all; ++k) {
            const T away = (static_cast<T>(first + k) - center + T(0.5)) / width;
            const T w = k < count ? filter(away) : T(0);
            index[k] = first + k < in - 1 ? first + k : in - 1;
            weight[k] = w;
            total += w;
        }
        for (int64_t k = 0; total != 0 && k < all; ++k) weight[k] /= total;
    }
};

}  // namespace
}  // namespace rushlight::functors
