// Transposition of squares in registers, for vectors of the compiler's vector extension.
#pragma once

#include <cstdint>

namespace rushlight::cpu {
namespace detail {

// Exchanges the lanes that lie off the diagonal in blocks of 2 S by 2 S.
template <int kLanes, int S, class V>
[[gnu::always_inline]] inline void exchange_blocks(V* r) {
    using Index = decltype(V{} == V{});
    Index low{}, high{};
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) {
        low[l] = (l & S) ? kLanes + l - S : l;
        high[l] = (l & S) ? kLanes + l : l + S;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
        if (i & S) continue;
        V a = r[i], b = r[i + S];
        r[i] = __builtin_shuffle(a, b, low);
        r[i + S] = __builtin_shuffle(a, b, high);
    }
}

}  // namespace detail

/// Transposes a square matrix, given as kLanes vectors of kLanes lanes each.
template <int kLanes, class V>
[[gnu::always_inline]] inline void transpose_square(V* r) {
    detail::exchange_blocks<kLanes, 1>(r);
    detail::exchange_blocks<kLanes, 2>(r);
    if constexpr (kLanes > 4) detail::exchange_blocks<kLanes, 4>(r);
    if constexpr (kLanes > 8) detail::exchange_blocks<kLanes, 8>(r);
}

}  // namespace rushlight::cpu
