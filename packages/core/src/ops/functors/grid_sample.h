// The input positions and weights of a sampled coordinate, along one dimension.
#pragma once

#include <cmath>
#include <cstdint>

#include "rushlight/export.h"

namespace rushlight {

enum GridMode : int64_t { kGridLinear, kGridNearest, kGridCubic };
enum GridPadding : int64_t { kGridZeros, kGridBorder, kGridReflection };

namespace functors {
namespace {

template <class T>
RL_HD inline T grid_padded(T x, T size, int64_t padding, bool align) {
    if (padding == kGridZeros) return x;
    if (padding == kGridReflection) {
        const T low = align ? T(0) : T(-0.5), span = align ? size - 1 : size;
        T away = x - low;
        away = away < 0 ? -away : away;
        const T turns = span > 0 ? std::floor(away / span) : T(0);
        const T rest = away < span ? away : std::fmod(away, span);
        const bool even = std::floor(turns * T(0.5)) * 2 == turns;
        x = span > 0 ? (even ? rest + low : low + span - rest) : T(0);
    }
    x = x > 0 ? x : T(0);  // NaN becomes position 0
    return x > size - 1 ? size - 1 : x;
}

// Keys' kernel with a = -0.75.
template <class T>
RL_HD inline T grid_near(T x) {
    return (T(1.25) * x - T(2.25)) * x * x + 1;
}
template <class T>
RL_HD inline T grid_far(T x) {
    return ((T(-0.75) * x + T(3.75)) * x - 6) * x + 3;
}

inline constexpr int grid_taps(int64_t mode) {
    return mode == kGridNearest ? 1 : mode == kGridLinear ? 2 : 4;
}

/// Calls put(k, index, weight) for each tap of the coordinate `g`, which spans [-1, 1] over `size` elements. Positions
/// outside have weight 0.
template <GridMode mode, class T, class Put>
RL_HD inline void each_grid_tap(T g, T size, int64_t padding, bool align, Put put) {
    const auto tap = [&](int k, T at, T weight) {
        const bool inside = at >= 0 && at < size;
        put(k, inside ? static_cast<int32_t>(at) : 0,
            inside || weight != weight ? weight : T(0));  // the weight is NaN if g is not finite
    };
    g += 1;
    T x = align ? g * T(0.5) * (size - 1) : (g * size - 1) * T(0.5);
    if constexpr (mode == kGridNearest) {
        tap(0, std::nearbyint(grid_padded(x, size, padding, align)), T(1));
    } else if constexpr (mode == kGridLinear) {
        x = grid_padded(x, size, padding, align);
        const T low = std::floor(x);
        tap(0, low, low + 1 - x);
        tap(1, low + 1, x - low);
    } else {
        const T low = std::floor(x), f = x - low;
        tap(0, grid_padded(low - 1, size, padding, align), grid_far(f + 1));
        tap(1, grid_padded(low, size, padding, align), grid_near(f));
        tap(2, grid_padded(low + 1, size, padding, align), grid_near(1 - f));
        tap(3, grid_padded(low + 2, size, padding, align), grid_far(2 - f));
    }
}

}  // namespace
}  // namespace functors
}  // namespace rushlight
