// Counts and enumerates the marked numbers among 0 to n - 1. They are counted by tiles, and the prefix sums of the counts
// are the output positions of the tiles. `Marks` objects have `n`, and operator[] returns whether a number is marked.
#pragma once

#include "cuda/kernels/rows.cuh"
#include "cuda/sorting.h"

namespace rushlight::cuda {
namespace {

constexpr int kMarksPerThread = 8;
constexpr int64_t kTile = kMarksPerThread * kThreads;
inline int64_t tiles_of(int64_t n) { return (n + kTile - 1) / kTile; }

template <class M>
__global__ void __launch_bounds__(kThreads) count_marks(const M marks, int64_t* counts) {
    __shared__ Values<int64_t> room;
    int64_t count = 0;
    for (int k = 0; k < kMarksPerThread; ++k) {
        const int64_t i = blockIdx.x * kTile + k * kThreads + threadIdx.x;
        if (i < marks.n) count += marks[i];
    }
    count = over_lanes(room.x, threadIdx.x, kThreads, count, Plus());
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

/// Calls each(i, at) for each marked number `i`, where `at` is the number of marked numbers before `i`.
template <class M, class F>
__global__ void __launch_bounds__(kThreads) each_mark(const M marks, const int64_t* offsets, const F each) {
    __shared__ Values<int32_t> room;
    const int64_t first = blockIdx.x * kTile + threadIdx.x * kMarksPerThread;
    bool own[kMarksPerThread];
    int32_t count = 0, all;
    for (int k = 0; k < kMarksPerThread; ++k) {
        own[k] = first + k < marks.n && marks[first + k];
        count += own[k];
    }
    int64_t at = offsets[blockIdx.x] + sum_before(room.x, count, all);
    for (int k = 0; k < kMarksPerThread; ++k)
        if (own[k]) each(first + k, at++);
}

/// Returns the number of marks before each tile, and stores the total.
template <class M>
int64_t* queue_counts(const KernelArgs& args, const M& marks, int64_t* total) {
    const int64_t tiles = tiles_of(marks.n);
    auto* counts = scratch<int64_t>(args.context, tiles);
    if (marks.n > 0)
        launch(&count_marks<M>, Grid{static_cast<unsigned>(tiles), kThreads}, queue_of(args), marks, counts);
    queue_offsets(args.context, counts, tiles, total);
    return counts;
}
template <class M, class F>
void queue_each(const KernelArgs& args, const M& marks, const int64_t* offsets, const F& each) {
    const int64_t tiles = tiles_of(marks.n);
    if (marks.n > 0)
        launch(&each_mark<M, F>, Grid{static_cast<unsigned>(tiles), kThreads}, queue_of(args), marks, offsets,
               each);
}

}  // namespace
}  // namespace rushlight::cuda
