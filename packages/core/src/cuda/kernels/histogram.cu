// Counts of numbers, and sums of weights by bin. Elements are sorted by bin, so that each sum is in the order of the
// elements.
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/rows.cuh"
#include "cuda/sorting.h"
#include "ops/functors/searching.h"

namespace rushlight::cuda {
namespace {

using functors::equal_part;
using functors::first_position;

// --- Bins -------------------------------------------------------------------------------------------

/// Elements sorted by bin. Elements without a bin are last.
struct Binned {
    Sorted sorted;
    int64_t n;
    __device__ int64_t begin_of(int64_t bin) const {
        return first_position(n, [&](int64_t k) { return sorted.keys[k] < static_cast<uint64_t>(bin); });
    }
};
Binned queue_binned(const KernelArgs& args, uint64_t* keys, int64_t n, int64_t bins) {
    return {queue_sort(args.context, keys, nullptr, n, bits_below(bins + 1)), n};
}

template <class T>
struct WriteCounts {
    T* out;
    Binned binned;
    __device__ void operator()(int64_t b) const {
        const int64_t count = binned.begin_of(b + 1) - binned.begin_of(b);
        out[b] = static_cast<T>(static_cast<Computed<T>>(count));
    }
};
/// Computes the sum of the weights of each bin. If `weights` is null, each element has the weight 1.
struct SumWeights {
    double* sums;
    Binned binned;
    const double* weights;
    __device__ void operator()(int64_t b) const {
        const int64_t end = binned.begin_of(b + 1);
        double sum = 0;
        for (int64_t i = binned.begin_of(b); i < end; ++i)
            sum += weights ? weights[binned.sorted.numbers[i]] : 1.0;
        sums[b] = sum;
    }
};

// --- Minimum and maximum of all elements ------------------------------------------------------------

template <class T>
struct Span {
    T low, high;
};
struct Smaller {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return a < b || a != a ? a : b;
    }
};
/// Finds the minimum and maximum of each share of the elements, or of the minima and maxima of all shares. If an
/// element is NaN, both results are NaN.
template <class From, class T>
__global__ void __launch_bounds__(kThreads) find_span(const From* from, int64_t n, Span<T>* spans) {
    __shared__ Values<T> room;
    const auto span_at = [&](int64_t i) -> Span<T> {
        if constexpr (std::is_same_v<From, Span<T>>) return from[i];
        else return {static_cast<T>(from[i]), static_cast<T>(from[i])};
    };
    Span<T> own = span_at(0);
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        const Span<T> next = span_at(i);
        own.low = Smaller()(own.low, next.low);
        own.high = Larger()(own.high, next.high);
    }
    own.low = over_lanes(room.x, threadIdx.x, kThreads, own.low, Smaller());
    own.high = over_lanes(room.x, threadIdx.x, kThreads, own.high, Larger());
    if (threadIdx.x == 0) spans[blockIdx.x] = own;
}
/// Returns the minimum and maximum of `n` elements, where n is at least 1.
template <class T, class From>
Span<T>* queue_span(const KernelArgs& args, const From* from, int64_t n) {
    constexpr int64_t kShare = 16 * kThreads;
    const auto shares = static_cast<unsigned>(n < kShare * kThreads ? (n + kShare - 1) / kShare : kThreads);
    auto* spans = scratch<Span<T>>(args.context, shares + 1);
    launch(&find_span<From, T>, Grid{shares, kThreads}, queue_of(args), from, n, spans + 1);
    launch(&find_span<Span<T>, T>, Grid{1, kThreads}, queue_of(args), spans + 1, shares, spans);
    return spans;
}

struct CountUpTo {
    int64_t* count;
    const Span<int64_t>* span;  // null if there are no elements
    int64_t at_least;
    Alarm alarm;
    __device__ void operator()(int64_t) const {
        const bool bad = span && (span->low < 0 || span->high == INT64_MAX);
        if (bad) alarm.raise(span->low < 0 ? Cause::Negative : Cause::BadRange);
        const int64_t wanted = bad || !span ? 0 : span->high + 1;
        *count = wanted > at_least ? wanted : at_least;
    }
};
struct NumberKeys {
    uint64_t* keys;
    const int64_t* numbers;
    int64_t bins;
    __device__ void operator()(int64_t i) const {
        keys[i] = static_cast<uint64_t>(numbers[i] >= 0 && numbers[i] < bins ? numbers[i] : bins);
    }
};

// --- histc: bins of equal width ---------------------------------------------------------------------

/// Widens a range of size 0, and raises the alarm if the range is not finite.
template <class C>
struct CheckRange {
    Span<C>* span;
    Alarm alarm;
    __device__ void operator()(int64_t) const {
        if (!(std::fabs(span->low) < INFINITY && std::fabs(span->high) < INFINITY)) {
            alarm.raise(Cause::BadRange);
            *span = {C(0), C(1)};
        }
        if (span->low == span->high) *span = {span->low - 1, span->high + 1};
    }
};
template <class T, class C>
struct RangeKeys {
    uint64_t* keys;
    const T* in;
    const Span<C>* found;  // null: use `given`
    Span<C> given;
    int64_t bins;
    __device__ void operator()(int64_t i) const {
        const Span<C> span = found ? *found : given;
        const C v = static_cast<C>(in[i]);
        const bool inside = v >= span.low && v <= span.high;
        keys[i] = static_cast<uint64_t>(inside ? equal_part(v, span.low, span.high, bins) : bins);
    }
};

struct Histc {
    template <class T>
    static void run(const KernelArgs& args) {
        using C = Computed<T>;
        const View &out = args.out(0), &in = args.in(0);
        queue_of(args);
        const int64_t bins = args.params[0].as_int();
        Span<C> given{static_cast<C>(args.params[1].as_float()), static_cast<C>(args.params[2].as_float())};
        const T* x = dense<T>(args.context, in);
        Span<C>* found = nullptr;
        if (given.low == given.high && in.numel > 0) {
            found = queue_span<C>(args, x, in.numel);
            queue_for_each(args, 1, CheckRange<C>{found, alarm_of(args.context)});
        } else {
            if (!(std::isfinite(given.low) && std::isfinite(given.high)))
                fail(BackendStatus::Runtime, "histc(min, max): the range must be finite, got [%g, %g]",
                     double(given.low), double(given.high));
            if (given.low > given.high)
                fail(BackendStatus::Runtime, "histc(min, max): min %g is larger than max %g",
                     double(given.low), double(given.high));
            if (given.low == given.high) given = {given.low - 1, given.high + 1};
        }
        auto* keys = scratch<uint64_t>(args.context, in.numel);
        queue_for_each(args, in.numel, RangeKeys<T, C>{keys, x, found, given, bins});
        const DenseOut<T> to(args.context, out);
        queue_for_each(args, bins, WriteCounts<T>{to.data(), queue_binned(args, keys, in.numel, bins)});
        to.finish();
    }
};

// --- histogram: bins between edges ------------------------------------------------------------------

template <class T>
struct EdgeKeys {
    uint64_t* keys;
    const T *in, *edges;
    int64_t bins;
    __device__ void operator()(int64_t i) const {
        const T v = in[i];
        int64_t at = bins;
        if (v >= edges[0] && v <= edges[bins]) {
            const int64_t behind = first_position(bins + 1, [&](int64_t k) { return edges[k] <= v; });
            at = (behind < bins ? behind : bins) - 1;
        }
        keys[i] = static_cast<uint64_t>(at);
    }
};
__global__ void __launch_bounds__(kThreads) sum_all(const double* sums, int64_t n, double* total) {
    __shared__ Values<double> room;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += sums[i];
    sum = over_lanes(room.x, threadIdx.x, kThreads, sum, Plus());
    if (threadIdx.x == 0) *total = sum;
}
template <class T>
struct WriteSums {
    T* out;
    const double *sums, *total;  // set if densities are computed, otherwise null
    const T* edges;
    __device__ void operator()(int64_t b) const {
        out[b] = static_cast<T>(total ? sums[b] / *total / (edges[b + 1] - edges[b]) : sums[b]);
    }
};

struct Histogram {
    template <class T>
    static void run(const KernelArgs& args) {
        const View &out = args.out(0), &in = args.in(0);
        const cudaStream_t stream = queue_of(args);
        const int64_t bins = out.numel;
        const T* edges = dense<T>(args.context, args.in(1));
        auto* keys = scratch<uint64_t>(args.context, in.numel);
        auto* sums = scratch<double>(args.context, bins + 1);
        queue_for_each(args, in.numel, EdgeKeys<T>{keys, dense<T>(args.context, in), edges, bins});
        queue_for_each(args, bins,
                       SumWeights{sums, queue_binned(args, keys, in.numel, bins),
                                  dense<double>(args.context, args.in(2))});
        double* total = args.params[0].as_bool() ? sums + bins : nullptr;
        if (total) launch(&sum_all, Grid{1, kThreads}, stream, sums, bins, total);
        const DenseOut<T> to(args.context, out);
        queue_for_each(args, bins, WriteSums<T>{to.data(), sums, total, edges});
        to.finish();
    }
};

}  // namespace

BackendStatus bincount_count(const KernelArgs* args) {
    return guarded([args] {
        const View& in = args->in(0);
        queue_of(*args);
        const auto* numbers = dense<int64_t>(args->context, in);
        const Span<int64_t>* span = in.numel ? queue_span<int64_t>(*args, numbers, in.numel) : nullptr;
        queue_for_each(
            *args, 1,
            CountUpTo{args->out(0).as<int64_t>(), span, args->params[0].as_int(), alarm_of(args->context)});
    });
}
BackendStatus bincount(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &in = args->in(0), &weights = args->in(1);
        if (out.numel == 0) return;
        queue_of(*args);
        auto* keys = scratch<uint64_t>(args->context, in.numel);
        queue_for_each(*args, in.numel, NumberKeys{keys, dense<int64_t>(args->context, in), out.numel});
        const Binned binned = queue_binned(*args, keys, in.numel, out.numel);
        if (!weights.defined())
            return queue_for_each(*args, out.numel, WriteCounts<int64_t>{out.as<int64_t>(), binned});
        const DenseOut<double> sums(args->context, out);
        queue_for_each(*args, out.numel,
                       SumWeights{sums.data(), binned, dense<double>(args->context, weights)});
        sums.finish();
    });
}

BackendStatus histc(const KernelArgs* args) { return by_floating_dtype<Histc>(args, args->in(0).dtype); }
BackendStatus histogram(const KernelArgs* args) {
    return guarded([args] {
        if (args->in(0).dtype == DType::Float32) Histogram::run<float>(*args);
        else Histogram::run<double>(*args);
    });
}

}  // namespace rushlight::cuda
