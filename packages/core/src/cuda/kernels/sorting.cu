// Prefix sums, and radix sort from the least significant digit. Each block sorts a tile of keys, and each thread counts its
// own adjacent keys, so that equal keys keep their order without atomic operations.
#include "cuda/sorting.h"

#include <utility>

#include "cuda/kernels/rows.cuh"

namespace rushlight::cuda {
namespace {

// --- Prefix sums ------------------------------------------------------------------------------------

constexpr int64_t kCountsPerThread = 8, kMostParts = 256;

/// Computes the sum of each part of `each` counts. One block processes each part.
__global__ void __launch_bounds__(kThreads)
    sum_parts(const int64_t* counts, int64_t n, int64_t each, int64_t* sums) {
    __shared__ Values<int64_t> room;
    const int64_t end = n < (blockIdx.x + 1) * each ? n : (blockIdx.x + 1) * each;
    int64_t sum = 0;
    for (int64_t i = blockIdx.x * each + threadIdx.x; i < end; i += kThreads) sum += counts[i];
    sum = over_lanes(room.x, threadIdx.x, kThreads, sum, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// Replaces each count of a part by the sum of all counts before it. `sums` holds, for each part, the sum of all counts
/// before the part, or is null if there is only one part.
__global__ void __launch_bounds__(kThreads)
    sum_before_each(int64_t* counts, int64_t n, int64_t each, const int64_t* sums, int64_t* total) {
    __shared__ Values<int64_t> room;
    const int64_t end = n < (blockIdx.x + 1) * each ? n : (blockIdx.x + 1) * each;
    int64_t before = sums ? sums[blockIdx.x] : 0;
    for (int64_t begin = blockIdx.x * each; begin < end; begin += kThreads * kCountsPerThread) {
        int64_t own[kCountsPerThread], sum = 0;
        const int64_t first = begin + threadIdx.x * kCountsPerThread;
        for (int64_t k = 0; k < kCountsPerThread; ++k) {
            own[k] = first + k < end ? counts[first + k] : 0;
            sum += own[k];
        }
        int64_t all;
        int64_t at = before + sum_before(room.x, sum, all);
        for (int64_t k = 0; k < kCountsPerThread; ++k) {
            if (first + k < end) counts[first + k] = at;
            at += own[k];
        }
        before += all;
    }
    if (total && blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) *total = before;
}

// --- Radix sort -------------------------------------------------------------------------------------

constexpr int kDigitBits = 6, kValues = 1 << kDigitBits, kItems = 8;
constexpr int64_t kTile = kItems * kThreads;
constexpr int kThreadsPerValue = kThreads / kValues;  // number of threads that sum the counts of one value
constexpr int kPart = kThreads / kThreadsPerValue;

/// A table with a row for each digit value and a column for each thread. An entry is the number of keys with this digit
/// value that the thread has read. A gap after each part of a row avoids bank conflicts between threads that iterate
/// over different parts.
struct Columns {
    uint16_t counts[kThreads * kValues + kThreads * kValues / kPart * 2];
    __device__ uint16_t& at(int value, int thread) {
        const int i = value * kThreads + thread;
        return counts[i + i / kPart * 2];
    }
};

__device__ int digit_of(uint64_t key, int shift) { return static_cast<int>(key >> shift) & (kValues - 1); }

/// Counts how often each digit value occurs in each tile, and writes the numbers to counts[value][tile].
__global__ void __launch_bounds__(kThreads)
    count_digits(const uint64_t* keys, int64_t n, int shift, int64_t* counts) {
    __shared__ Columns columns;
    __shared__ Values<uint32_t> parts;
    const int t = static_cast<int>(threadIdx.x);
    for (int v = 0; v < kValues; ++v) columns.at(v, t) = 0;
    for (int k = 0; k < kItems; ++k) {
        const int64_t i = blockIdx.x * kTile + k * kThreads + t;
        if (i < n) ++columns.at(digit_of(keys[i], shift), t);
    }
    __syncthreads();
    uint32_t sum = 0;
    for (int k = 0; k < kPart; ++k) sum += columns.at(t / kThreadsPerValue, t % kThreadsPerValue * kPart + k);
    parts.x[t] = sum;
    __syncthreads();
    if (t >= kValues) return;
    sum = 0;
    for (int k = 0; k < kThreadsPerValue; ++k) sum += parts.x[t * kThreadsPerValue + k];
    counts[static_cast<int64_t>(t) * gridDim.x + blockIdx.x] = sum;
}

/// Moves keys and their numbers to their target positions. `offsets` holds, for each digit value and tile, the target
/// position of the tile's first key with this value.
__global__ void __launch_bounds__(kThreads)
    move_by_digit(const uint64_t* keys, const int64_t* numbers, int64_t n, int shift, const int64_t* offsets,
                  uint64_t* to_keys, int64_t* to_numbers) {
    __shared__ Columns columns;
    __shared__ Values<uint32_t> room;
    const int t = static_cast<int>(threadIdx.x);
    for (int v = 0; v < kValues; ++v) columns.at(v, t) = 0;
    const int64_t first = blockIdx.x * kTile + t * kItems;
    uint16_t rank[kItems];  // rank of the key among the thread's keys of the same value
    for (int k = 0; k < kItems && first + k < n; ++k)
        rank[k] = columns.at(digit_of(keys[first + k], shift), t)++;
    __syncthreads();
    // Replaces each count by the number of the tile's keys that are sorted before the thread's first key of this value.
    const int value = t / kThreadsPerValue, begin = t % kThreadsPerValue * kPart;
    uint32_t sum = 0, all;
    for (int k = 0; k < kPart; ++k) sum += columns.at(value, begin + k);
    uint32_t before = sum_before(room.x, sum, all);
    for (int k = 0; k < kPart; ++k) {
        const uint32_t own = columns.at(value, begin + k);
        columns.at(value, begin + k) = static_cast<uint16_t>(before);
        before += own;
    }
    __syncthreads();
    for (int k = 0; k < kItems && first + k < n; ++k) {
        const uint64_t key = keys[first + k];
        const int v = digit_of(key, shift);
        const int64_t in_value = columns.at(v, t) + rank[k] - columns.at(v, 0);
        const int64_t at = offsets[static_cast<int64_t>(v) * gridDim.x + blockIdx.x] + in_value;
        to_keys[at] = key;
        to_numbers[at] = numbers ? numbers[first + k] : first + k;
    }
}

}  // namespace

void queue_offsets(KernelContext* context, int64_t* counts, int64_t n, int64_t* total) {
    const cudaStream_t stream = queue_of(context);
    constexpr int64_t kFew = 4 * kThreads * kCountsPerThread;
    if (n <= kFew) return launch(&sum_before_each, Grid{1, kThreads}, stream, counts, n, n, nullptr, total);
    const int64_t wanted = (n + kFew - 1) / kFew, parts = wanted < kMostParts ? wanted : kMostParts,
                  each = (n + parts - 1) / parts;
    auto* sums = scratch<int64_t>(context, parts);
    const Grid grid{static_cast<unsigned>(parts), kThreads};
    launch(&sum_parts, grid, stream, counts, n, each, sums);
    launch(&sum_before_each, Grid{1, kThreads}, stream, sums, parts, parts, nullptr, nullptr);
    launch(&sum_before_each, grid, stream, counts, n, each, sums, total);
}

Sorted queue_sort(KernelContext* context, uint64_t* keys, int64_t* numbers, int64_t n, int bits) {
    const cudaStream_t stream = queue_of(context);
    const int64_t tiles = (n + kTile - 1) / kTile;
    const Grid grid{static_cast<unsigned>(tiles), kThreads};
    auto* counts = scratch<int64_t>(context, tiles * kValues);
    Sorted from{keys, numbers}, to{scratch<uint64_t>(context, n), scratch<int64_t>(context, n)};
    for (int shift = 0; n > 0 && (shift < bits || shift == 0); shift += kDigitBits) {
        launch(&count_digits, grid, stream, from.keys, n, shift, counts);
        queue_offsets(context, counts, tiles * kValues);
        launch(&move_by_digit, grid, stream, from.keys, from.numbers, n, shift, counts, to.keys, to.numbers);
        std::swap(from, to);
        if (!to.numbers) to.numbers = scratch<int64_t>(context, n);
    }
    return from;
}

}  // namespace rushlight::cuda
