// Reduction of the elements that are scattered to one position, in order.
#pragma once

#include <limits>
#include <string_view>

#include "ops/element_types.h"
#include "rushlight/export.h"

namespace rushlight {

enum class ScatterReduction : uint8_t { Sum, Prod, Mean, Amax, Amin };
inline constexpr int kNumScatterReductions = 5;

inline ScatterReduction scatter_reduction_of(std::string_view name) {
    return name == "sum"    ? ScatterReduction::Sum
           : name == "prod" ? ScatterReduction::Prod
           : name == "mean" ? ScatterReduction::Mean
           : name == "amax" ? ScatterReduction::Amax
                            : ScatterReduction::Amin;
}

namespace functors {
namespace {

template <ScatterReduction how, class C>
RL_HD inline C combine(C a, C b) {
    if constexpr (how == ScatterReduction::Sum || how == ScatterReduction::Mean) return static_cast<C>(a + b);
    else if constexpr (how == ScatterReduction::Prod) return static_cast<C>(a * b);
    else if constexpr (how == ScatterReduction::Amax)
        return (b > a) | (b != b) ? b : a;  // `|` evaluates both conditions, so there is no branch
    else return (b < a) | (b != b) ? b : a;
}
template <ScatterReduction how, class C>
RL_HD inline C neutral() {
    if constexpr (how == ScatterReduction::Sum || how == ScatterReduction::Mean) return C(0);
    else if constexpr (how == ScatterReduction::Prod) return C(1);
    else {
        using Limits = std::numeric_limits<C>;
        constexpr C least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
        constexpr C most = Limits::has_infinity ? Limits::infinity() : Limits::max();
        return how == ScatterReduction::Amax ? least : most;
    }
}
template <class C>
RL_HD inline C mean_of(C sum, int64_t count) {
    if constexpr (kIsComplex<C>) return sum / C(static_cast<Real<C>>(count));
    else if constexpr (std::is_floating_point_v<C>) return sum / static_cast<C>(count);
    else {  // rounds down
        const auto total = static_cast<int64_t>(sum);
        return static_cast<C>(total / count - (total % count != 0 && total < 0));
    }
}

/// Returns `x` times a factor, for operators that add slices.
template <class T>
RL_HD inline T scaled(T x, Computed<T> by) {
    if constexpr (std::is_same_v<T, bool>) return x & by;
    else if constexpr (std::is_integral_v<T>)  // wraps around
        return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(by));
    else return static_cast<T>(static_cast<Computed<T>>(x) * by);
}

}  // namespace
}  // namespace functors
}  // namespace rushlight
