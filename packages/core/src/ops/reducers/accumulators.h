// Several accumulators per reduction, so that the compiler can vectorise it.
#pragma once

#include <cstdint>

namespace rushlight::reducers {
namespace {

/// The number of accumulators. They occupy 256 bytes for any width of the vectors, so that elements are added in the
/// same order on all machines.
template <class Acc>
inline constexpr int64_t kAccumulators = sizeof(Acc) <= 8 ? 256 / sizeof(Acc) : 8;

// Joins the accumulators by halves. Each half is a loop of constant length.
template <int64_t count, class Acc, class Join>
[[gnu::always_inline]] inline Acc fold(Acc* accumulators, Join join) {
    if constexpr (count == 1) {
        return accumulators[0];
    } else {
        for (int64_t k = 0; k < count / 2; ++k)
            accumulators[k] = join(accumulators[k], accumulators[k + count / 2]);
        return fold<count / 2>(accumulators, join);
    }
}

// Processes fewer elements than there are accumulators: half as many in a loop of constant length, then the rest.
template <int64_t count, class Acc, class Step>
[[gnu::always_inline]] inline void take_rest(Acc* accumulators, int64_t i, int64_t n, Step step) {
    if constexpr (count < 8) {
        for (int64_t k = 0; i < n; ++k, ++i) accumulators[k] = step(accumulators[k], i);
    } else {
        if (n - i >= count) {
            for (int64_t k = 0; k < count; ++k) accumulators[k] = step(accumulators[k], i + k);
            i += count;
        }
        take_rest<count / 2>(accumulators, i, n, step);
    }
}

/// Combines `acc` with the elements 0 to n - 1 by calling step(acc, i). Several accumulators are used, each of which
/// begins with start(), and `join` combines them at the end.
template <class Acc, class Start, class Step, class Join>
[[gnu::always_inline]] inline Acc with_accumulators(int64_t n, Acc acc, Start start, Step step, Join join) {
    constexpr int64_t count = kAccumulators<Acc>;
    int64_t i = 0;
    if (n >= count) {
        Acc accumulators[count];
        for (int64_t k = 0; k < count; ++k) accumulators[k] = start();
#pragma GCC unroll 1
        for (; i + count <= n; i += count)
            for (int64_t k = 0; k < count; ++k) accumulators[k] = step(accumulators[k], i + k);
        take_rest<count / 2>(accumulators, i, n, step);
        return join(acc, fold<count>(accumulators, join));
    }
    for (; i < n; ++i) acc = step(acc, i);
    return acc;
}

}  // namespace
}  // namespace rushlight::reducers
