#include "cpu/statistics.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/contiguous.h"
#include "cpu/ordered_rows.h"
#include "cpu/statistics_kernels.h"
#include "ops/functors/searching.h"
#include "rushlight/error.h"
#include "rushlight/half.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

// --- by rank ---

// The elements of each row of `rows` are adjacent.
void choose_of_rows(KernelContext& ctx, const View& values, int64_t* indices, const View& rows, int64_t n,
                    Rank rank, int64_t k) {
    const auto size = static_cast<int64_t>(itemsize(rows.dtype));
    const auto choose = statistics_kernels().loop[static_cast<int>(rows.dtype)];
    each_part_of_rows(ctx, statistics_kernels(), rows.dtype, rows.numel / n, n,
                      [&](int64_t begin, int64_t end, void* memory) {
                          choose(values.as<char>() + begin * size, indices + begin,
                                 rows.as<char>() + begin * n * size, end - begin, n, rank, k, memory);
                      });
}

void choose(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim,
            Rank rank, int64_t k = 0) {
    if (values.numel == 0) return;
    if (dim < 0) dim += std::max(input.ndim, 1);
    // Moves the dimension behind the others, so that the rows are in the order of the results.
    View moved = input;
    if (input.ndim > 1 && dim != input.ndim - 1) {
        auto* geometry = scratch<int64_t>(ctx, 2 * input.ndim);
        int at = 0;
        for (int d = 0; d < input.ndim; ++d)
            if (d != dim) {
                geometry[at] = input.sizes[d];
                geometry[input.ndim + at++] = input.strides[d];
            }
        geometry[at] = input.sizes[dim];
        geometry[input.ndim + at] = input.strides[dim];
        moved.sizes = geometry;
        moved.strides = geometry + input.ndim;
        moved = leading(moved, moved);
    }
    choose_of_rows(ctx, values, indices.as<int64_t>(), contiguous_in(ctx, moved),
                   input.ndim ? input.sizes[dim] : 1, rank, k);
}

void choose_of_all(KernelContext& ctx, const View& out, const View& input, Rank rank) {
    if (input.numel == 0) {  // the dtype is floating: the operator has checked it
        const Param nan{Param::Kind::Float, 0, {.floating = std::numeric_limits<double>::quiet_NaN()}};
        __builtin_memcpy(out.data, as_element(ctx, nan, out.dtype), itemsize(out.dtype));
        return;
    }
    choose_of_rows(ctx, out, scratch<int64_t>(ctx, 1), contiguous_in(ctx, input), input.numel, rank, 0);
}

// --- counting ---

// Increments counts[position(i)] for each i in [begin, end), and ignores negative positions.
template <class Count, class Position>
void count_range(int64_t begin, int64_t end, Count* counts, Position position) {
    for (int64_t i = begin; i < end; ++i)
        if (int64_t at = position(i); at >= 0) ++counts[at];
}

// Sets the counts to 0 and counts the elements in [0, n). Counts are integers, so they do not depend on the number of
// threads.
template <class Position>
void count_positions(int64_t n, int64_t bins, int64_t* counts, Position position) {
    std::fill_n(counts, bins, 0);
    // Successive increments of the same count would have to wait for each other, so neighbouring elements are counted
    // in different tables.
    constexpr int64_t kTables = 4, kSmall = 4096;
    const bool small = bins <= kSmall && n > bins;
    const int64_t chunk = std::max<int64_t>(1 << 16, bins), chunks = (n + chunk - 1) / chunk;
    if (chunks <= 1 && !small) return count_range(0, n, counts, position);
    parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
        const int64_t begin = first * chunk, end = std::min(n, last * chunk), tables = small ? kTables : 1;
        std::vector<int64_t> own(static_cast<size_t>(tables * bins));
        int64_t i = begin;
        if (small) {
            for (; i + kTables <= end; i += kTables) {
#pragma GCC unroll 4
                for (int64_t t = 0; t < kTables; ++t)
                    if (int64_t at = position(i + t); at >= 0) ++own[static_cast<size_t>(t * bins + at)];
            }
        }
        count_range(i, end, own.data(), position);
        for (int64_t b = 0; b < bins; ++b) {
            int64_t sum = 0;
            for (int64_t t = 0; t < tables; ++t) sum += own[static_cast<size_t>(t * bins + b)];
            std::atomic_ref(counts[b]).fetch_add(sum, std::memory_order_relaxed);
        }
    });
}

// T is the type of the elements, and C the type in which they are computed.
template <class T, class C>
void count_parts(const View& out, const View& input, int64_t bins, double min, double max, int64_t* counts) {
    const T* x = input.as<T>();
    const int64_t n = input.numel;
    auto low = static_cast<C>(min), high = static_cast<C>(max);
    if (low == high && n > 0) {
        low = high = static_cast<C>(x[0]);
        for (int64_t i = 0; i < n; ++i) {
            const C v = static_cast<C>(x[i]);
            low = v < low || v != v ? v : low;
            high = v > high || v != v ? v : high;
            if (v != v) break;
        }
    }
    RL_CHECK(std::isfinite(low) && std::isfinite(high), throw_runtime,
             "histc(min, max): the range must be finite, got [%g, %g]", double(low), double(high));
    if (low == high) {
        low -= 1;
        high += 1;
    }
    count_positions(n, bins, counts, [&](int64_t i) -> int64_t {
        const C v = static_cast<C>(x[i]);
        if (!(v >= low && v <= high)) return -1;
        return functors::equal_part(v, low, high, bins);
    });
    for (int64_t b = 0; b < bins; ++b) out.as<T>()[b] = static_cast<T>(static_cast<C>(counts[b]));
}

template <class T>
void sum_parts(const View& out, const View& input, const View& edges, const double* weight, bool density,
               double* sums) {
    const int64_t bins = out.numel;
    const T *x = input.as<T>(), *edge = edges.as<T>();
    std::fill_n(sums, bins, 0.0);
    double total = 0;
    for (int64_t i = 0; i < input.numel; ++i) {
        if (!(x[i] >= edge[0] && x[i] <= edge[bins])) continue;
        const int64_t at = std::min<int64_t>(std::upper_bound(edge, edge + bins + 1, x[i]) - edge, bins) - 1;
        const double w = weight ? weight[i] : 1;
        sums[at] += w;
        total += w;
    }
    for (int64_t b = 0; b < bins; ++b)
        out.as<T>()[b] = static_cast<T>(density ? sums[b] / total / (edge[b + 1] - edge[b]) : sums[b]);
}

}  // namespace

void kthvalue(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t k,
              int64_t dim, bool) {
    choose(ctx, values, indices, input, dim, Rank::Kth, k - 1);
}
void median_dim(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim,
                bool) {
    choose(ctx, values, indices, input, dim, Rank::Median);
}
void nanmedian_dim(KernelContext& ctx, const View& values, const View& indices, const View& input,
                   int64_t dim, bool) {
    choose(ctx, values, indices, input, dim, Rank::NanMedian);
}
void mode(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim, bool) {
    choose(ctx, values, indices, input, dim, Rank::Mode);
}
void median(KernelContext& ctx, const View& out, const View& input) {
    choose_of_all(ctx, out, input, Rank::Median);
}
void nanmedian(KernelContext& ctx, const View& out, const View& input) {
    choose_of_all(ctx, out, input, Rank::NanMedian);
}

void histc(KernelContext& ctx, const View& out, const View& input, int64_t bins, double min, double max) {
    const View row = contiguous_in(ctx, input);
    int64_t* counts = scratch<int64_t>(ctx, bins);
    switch (input.dtype) {
        case DType::Float16: return count_parts<Half, float>(out, row, bins, min, max, counts);
        case DType::BFloat16: return count_parts<BFloat16, float>(out, row, bins, min, max, counts);
        case DType::Float32: return count_parts<float, float>(out, row, bins, min, max, counts);
        default: return count_parts<double, double>(out, row, bins, min, max, counts);
    }
}

void histogram(KernelContext& ctx, const View& out, const View& input, const View& edges, const View& weight,
               bool density) {
    const View row = contiguous_in(ctx, input), ends = contiguous_in(ctx, edges),
               weights = contiguous_in(ctx, weight, DType::Float64);
    const auto* w = weight.defined() ? weights.as<double>() : nullptr;
    double* sums = scratch<double>(ctx, out.numel);
    if (input.dtype == DType::Float32) sum_parts<float>(out, row, ends, w, density, sums);
    else sum_parts<double>(out, row, ends, w, density, sums);
}

int64_t bincount_count(KernelContext& ctx, const View& input, const View&, int64_t minlength) {
    const View row = contiguous_in(ctx, input, DType::Int64);
    ctx.kept = row.data;
    const auto* x = row.as<int64_t>();
    // Several maxima are computed independently, so that no comparison waits for the previous one. The sign bit of
    // `all` is set if a number is negative.
    int64_t all = 0, largest = -1, maxima[] = {-1, -1, -1, -1}, i = 0;
    for (; i + 4 <= row.numel; i += 4) {
#pragma GCC unroll 4
        for (int64_t k = 0; k < 4; ++k) maxima[k] = std::max(maxima[k], x[i + k]);
        all |= (x[i] | x[i + 1]) | (x[i + 2] | x[i + 3]);
    }
    for (; i < row.numel; ++i) {
        largest = std::max(largest, x[i]);
        all |= x[i];
    }
    for (const int64_t m : maxima) largest = std::max(largest, m);
    if (all < 0) {
        const int64_t* bad = std::find_if(x, x + row.numel, [](int64_t v) { return v < 0; });
        throw_runtime("bincount(input): must not be negative, found %lld at position %lld",
                      static_cast<long long>(*bad), static_cast<long long>(bad - x));
    }
    RL_CHECK(largest < std::numeric_limits<int64_t>::max(), throw_runtime,
             "bincount(input): the largest value, %lld, is too large: the result has one element for each "
             "number up to it",
             static_cast<long long>(largest));
    return std::max(largest + 1, minlength);
}
void bincount(KernelContext& ctx, const View& out, const View& input, const View& weights, int64_t) {
    const auto* x = static_cast<const int64_t*>(ctx.kept);
    if (!weights.defined()) {
        if (out.numel > 0)
            count_positions(input.numel, out.numel, out.as<int64_t>(), [&](int64_t i) { return x[i]; });
        return;
    }
    const auto* weight = contiguous_in(ctx, weights, DType::Float64).as<double>();
    const View sums = out.dtype == DType::Float64 ? out : scratch_like(ctx, out, DType::Float64);
    clear(sums);
    for (int64_t i = 0; i < input.numel; ++i) sums.as<double>()[x[i]] += weight[i];
    if (sums.data != out.data) copy_to(out, sums);
}

}  // namespace rushlight::cpu
