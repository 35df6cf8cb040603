#include "cpu/fft.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "cpu/contiguous.h"
#include "cpu/odometer.h"
#include "cpu/transpose.h"
#include "runtime/per_thread.h"
#include "rushlight/caller_locks.h"
#include "rushlight/parallel.h"

// Pocketfft's threads are disabled. Its cache of plans is disabled too, because a fork could happen while the
// cache's lock is held.
#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_2 *n 0
#include "pocketfft/pocketfft_hdronly.h"

namespace rushlight::cpu {
namespace {

namespace pf = pocketfft::detail;

// Starts and strides of the sequences to transform, counted in elements.
struct FftSequences {
    int64_t n;  // length of the transform
    int64_t count;
    const int64_t *from, *to;
    int64_t from_stride, to_stride;
};

// Returns the offsets at which the sequences along dimension `dim` begin, in row-major order of the other
// dimensions.
const int64_t* starts_of(KernelContext& ctx, const View& v, int64_t dim, int64_t count) {
    Odometer others;
    for (int d = 0; d < v.ndim; ++d)
        if (d != dim) others.push(v.sizes[d], v.strides[d]);
    auto* starts = scratch<int64_t>(ctx, count);
    Walk walk(others, 0);
    for (int64_t i = 0; i < count; ++i, walk.next()) starts[i] = walk.offset();
    return starts;
}

FftSequences sequences_of(KernelContext& ctx, const View& from, const View& to, int64_t dim, int64_t n) {
    const int64_t count = to.numel / to.sizes[dim];
    return {n,
            count,
            starts_of(ctx, from, dim, count),
            starts_of(ctx, to, dim, count),
            from.strides[dim],
            to.strides[dim]};
}

// Returns the twiddle factors for length n. Each thread caches the factors of the lengths that it used last, because
// computing the factors takes as long as transforming a few sequences.
template <class Plan>
std::shared_ptr<const Plan> plan_of(int64_t n) {
    constexpr int64_t kLongest = 1 << 15;
    constexpr size_t kKept = 4;
    if (n > kLongest) return std::make_shared<const Plan>(static_cast<size_t>(n));
    using Kept = std::array<std::pair<int64_t, std::shared_ptr<const Plan>>, kKept>;
    const auto first = PerThread<Kept>::get().begin();
    const auto found =
        std::find_if(first, first + kKept - 1, [n](const auto& one) { return one.first == n; });
    if (found->first != n) *found = {n, std::make_shared<const Plan>(static_cast<size_t>(n))};
    std::rotate(first, found, found + 1);
    return first->second;
}

// Vectors whose lanes hold the elements of several sequences.
template <class T>
using Lanes = typename pf::VTYPE<T>::type;
template <class T>
inline constexpr int kLanes = static_cast<int>(pf::VLEN<T>::val);

// The memory of up to kLanes sequences of T, whose elements are processed in the lanes of vectors. A lane without a sequence
// repeats the first sequence.
template <class T, class Number>
struct Group {
    Number* start[kLanes<T>];
    int count;
    int64_t stride;
    bool neighbours;  // whether the starts are adjacent numbers

    Group(Number* data, const int64_t* starts, int64_t left, int64_t step)
        : count(static_cast<int>(std::min<int64_t>(left, kLanes<T>))),
          stride(step),
          neighbours(count == kLanes<T>) {
        for (int l = 0; l < kLanes<T>; ++l) {
            start[l] = data + starts[l < count ? l : 0];
            neighbours = neighbours && start[l] == start[0] + l;
        }
    }
};

template <class V, class T>
V load(const T* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class V, class T>
void store(T* p, V v) {
    std::memcpy(p, &v, sizeof v);
}

// Copies start[l][i] to lane l of to[i] for i < n.
template <class T, class Number>
void rows_to_lanes(Lanes<T>* to, const Group<T, Number>& from, int64_t offset, int64_t n) {
    constexpr int L = kLanes<T>;
    const T* row[L];
    for (int l = 0; l < L; ++l) row[l] = reinterpret_cast<const T*>(from.start[l]) + offset;
    int64_t i = 0;
    for (; i + L <= n; i += L) {
        Lanes<T> square[L];
        for (int l = 0; l < L; ++l) square[l] = load<Lanes<T>>(row[l] + i);
        transpose_square<L>(square);
        for (int k = 0; k < L; ++k) to[i + k] = square[k];
    }
    for (; i < n; ++i)
        for (int l = 0; l < L; ++l) to[i][l] = row[l][i];
}

// Copies lane l of from[i] to start[l][i] for i < n.
template <class T, class Number>
void lanes_to_rows(const Group<T, Number>& to, int64_t offset, const Lanes<T>* from, int64_t n) {
    constexpr int L = kLanes<T>;
    T* row[L];
    for (int l = 0; l < L; ++l) row[l] = reinterpret_cast<T*>(to.start[l]) + offset;
    int64_t i = 0;
    for (; i + L <= n; i += L) {
        Lanes<T> square[L];
        for (int k = 0; k < L; ++k) square[k] = from[i + k];
        transpose_square<L>(square);
        for (int l = 0; l < to.count; ++l) store(row[l] + i, square[l]);
    }
    for (; i < n; ++i)
        for (int l = 0; l < to.count; ++l) row[l][i] = from[i][l];
}

// separate() splits 2 kLanes numbers into the numbers at even positions and the numbers at odd positions.
// store_joined() interleaves two vectors and stores them.
template <class V>
pf::cmplx<V> separate(V a, V b) {
    constexpr int L = sizeof(V) / sizeof(a[0]);
    decltype(a == a) even, odd;
    for (int l = 0; l < L; ++l) even[l] = 2 * l, odd[l] = 2 * l + 1;
    return {__builtin_shuffle(a, b, even), __builtin_shuffle(a, b, odd)};
}
template <class T, class V>
void store_joined(T* to, V re, V im) {
    constexpr int L = sizeof(V) / sizeof(re[0]);
    decltype(re == re) low, high;
    for (int l = 0; l < L; ++l) low[l] = l / 2 + l % 2 * L, high[l] = low[l] + L / 2;
    store(to, __builtin_shuffle(re, im, low));
    store(to + L, __builtin_shuffle(re, im, high));
}

// Copy complex numbers between memory and lanes.
template <class T>
void gather(pf::cmplx<Lanes<T>>* to, const Group<T, const Complex<T>>& from, int64_t n) {
    if (from.stride == 1) return rows_to_lanes<T>(reinterpret_cast<Lanes<T>*>(to), from, 0, 2 * n);
    for (int64_t i = 0; i < n; ++i) {
        if (from.neighbours) {
            const T* x = reinterpret_cast<const T*>(from.start[0] + i * from.stride);
            to[i] = separate(load<Lanes<T>>(x), load<Lanes<T>>(x + kLanes<T>));
        } else {
            for (int l = 0; l < kLanes<T>; ++l) {
                const Complex<T> z = from.start[l][i * from.stride];
                to[i].r[l] = z.re, to[i].i[l] = z.im;
            }
        }
    }
}
template <class T>
void scatter(const Group<T, Complex<T>>& to, const pf::cmplx<Lanes<T>>* from, int64_t n) {
    if (to.stride == 1) return lanes_to_rows<T>(to, 0, reinterpret_cast<const Lanes<T>*>(from), 2 * n);
    for (int64_t i = 0; i < n; ++i) {
        if (to.neighbours) {
            store_joined(reinterpret_cast<T*>(to.start[0] + i * to.stride), from[i].r, from[i].i);
        } else {
            for (int l = 0; l < to.count; ++l) to.start[l][i * to.stride] = {from[i].r[l], from[i].i[l]};
        }
    }
}

// Copy real numbers between memory and lanes.
template <class T>
void gather(Lanes<T>* to, const Group<T, const T>& from, int64_t n) {
    if (from.stride == 1) return rows_to_lanes<T>(to, from, 0, n);
    for (int64_t i = 0; i < n; ++i) {
        if (from.neighbours) to[i] = load<Lanes<T>>(from.start[0] + i * from.stride);
        else
            for (int l = 0; l < kLanes<T>; ++l) to[i][l] = from.start[l][i * from.stride];
    }
}
template <class T>
void scatter(const Group<T, T>& to, const Lanes<T>* from, int64_t n) {
    if (to.stride == 1) return lanes_to_rows<T>(to, 0, from, n);
    for (int64_t i = 0; i < n; ++i) {
        if (to.neighbours) store(to.start[0] + i * to.stride, from[i]);
        else
            for (int l = 0; l < to.count; ++l) to.start[l][i * to.stride] = from[i][l];
    }
}

// Copy half spectra of n numbers between memory and pocketfft's order, which is r0 r1 i1 r2 i2 ...; for an even n the last real
// part follows. Except for the imaginary part of the first number, this is also the order in memory.
template <class T>
void gather_half(Lanes<T>* to, const Group<T, const Complex<T>>& from, int64_t n) {
    for (int l = 0; l < kLanes<T>; ++l) to[0][l] = from.start[l][0].re;
    if (from.stride == 1) return rows_to_lanes<T>(to + 1, from, 2, n - 1);
    for (int64_t i = 1; i < n; ++i)
        for (int l = 0; l < kLanes<T>; ++l) {
            const Complex<T> z = from.start[l][(i + 1) / 2 * from.stride];
            to[i][l] = i % 2 ? z.re : z.im;
        }
}
template <class T>
void scatter_half(const Group<T, Complex<T>>& to, const Lanes<T>* from, int64_t n) {
    for (int l = 0; l < to.count; ++l) to.start[l][0] = {from[0][l], T(0)};
    if (to.stride == 1) {
        lanes_to_rows<T>(to, 2, from + 1, n - 1);
    } else {
        for (int64_t k = 1; 2 * k < n; ++k)
            for (int l = 0; l < to.count; ++l)
                to.start[l][k * to.stride] = {from[2 * k - 1][l], from[2 * k][l]};
    }
    if (n % 2) return;
    for (int l = 0; l < to.count; ++l) to.start[l][n / 2 * to.stride] = {from[n - 1][l], T(0)};
}
// Changes the sign of the imaginary parts.
template <class V>
void conjugate_half(V* half, int64_t n) {
    for (int64_t i = 2; i < n; i += 2) half[i] = -half[i];
}

// Calls transform(first, left, memory) for groups of sequences: `first` is the group's first sequence, and `left` the
// number of sequences from there on. A group has at most as many sequences as a vector has lanes. The memory has `size`
// elements for each lane.
template <class T, class Transform>
void each_group(KernelContext& ctx, const FftSequences& sequences, int64_t size, Transform transform) {
    const int64_t count = sequences.count, groups = (count + kLanes<T> - 1) / kLanes<T>;
    constexpr int64_t kMany = 1 << 14;  // elements for one thread
    constexpr int64_t kLong = 1 << 12;  // elements that take at least 10 microseconds
    const int64_t most = std::max<int64_t>(1, groups * sequences.n * kLanes<T> / kMany),
                  workers = std::min<int64_t>({num_threads(), groups, most});
    auto* memory = scratch<Lanes<T>>(ctx, workers * size);
    // A single long sequence is not divided among threads, so parallel_for alone would not release the caller's
    // locks.
    const WithoutCallerLocks others_run(WithoutCallerLocks::While::Computing, sequences.n * count >= kLong);
    parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
        for (int64_t w = begin; w < end; ++w)
            for (int64_t group = groups * w / workers; group < groups * (w + 1) / workers; ++group)
                transform(group * kLanes<T>, count - group * kLanes<T>, memory + w * size);
    });
}

// A group of this many sequences is transformed faster without vectors.
constexpr int64_t kAlone = 1;

template <class T>
void c2c(KernelContext& ctx, const FftSequences& sequences, const Complex<T>* in, Complex<T>* out,
         double scale, bool forward) {
    const int64_t n = sequences.n;
    const auto plan = plan_of<pf::pocketfft_c<T>>(n);
    each_group<T>(ctx, sequences, 2 * n, [&](int64_t first, int64_t left, Lanes<T>* memory) {
        const int64_t *from = sequences.from + first, *to = sequences.to + first;
        if (left <= kAlone) {
            auto* buffer = reinterpret_cast<pf::cmplx<T>*>(memory);
            for (int64_t i = 0; i < n; ++i) {
                const Complex<T> z = in[*from + i * sequences.from_stride];
                buffer[i] = {z.re, z.im};
            }
            plan->exec(buffer, static_cast<T>(scale), forward);
            for (int64_t i = 0; i < n; ++i) out[*to + i * sequences.to_stride] = {buffer[i].r, buffer[i].i};
            return;
        }
        auto* buffer = reinterpret_cast<pf::cmplx<Lanes<T>>*>(memory);
        gather<T>(buffer, {in, from, left, sequences.from_stride}, n);
        plan->exec(buffer, static_cast<T>(scale), forward);
        scatter<T>({out, to, left, sequences.to_stride}, buffer, n);
    });
}

template <class T>
void r2c(KernelContext& ctx, const FftSequences& sequences, const T* in, Complex<T>* out, double scale,
         bool forward) {
    const int64_t n = sequences.n;
    const auto plan = plan_of<pf::pocketfft_r<T>>(n);
    each_group<T>(ctx, sequences, n, [&](int64_t first, int64_t left, Lanes<T>* memory) {
        const int64_t *from = sequences.from + first, *to = sequences.to + first;
        if (left <= kAlone) {
            T* value = reinterpret_cast<T*>(memory);
            for (int64_t i = 0; i < n; ++i) value[i] = in[*from + i * sequences.from_stride];
            plan->exec(value, static_cast<T>(scale), true);
            if (!forward) conjugate_half(value, n);
            Complex<T>* y = out + *to;
            y[0] = {value[0], T(0)};
            for (int64_t k = 1; 2 * k < n; ++k) y[k * sequences.to_stride] = {value[2 * k - 1], value[2 * k]};
            if (n % 2 == 0) y[n / 2 * sequences.to_stride] = {value[n - 1], T(0)};
            return;
        }
        gather<T>(memory, {in, from, left, sequences.from_stride}, n);
        plan->exec(memory, static_cast<T>(scale), true);
        if (!forward) conjugate_half(memory, n);
        scatter_half<T>({out, to, left, sequences.to_stride}, memory, n);
    });
}

template <class T>
void c2r(KernelContext& ctx, const FftSequences& sequences, const Complex<T>* in, T* out, double scale,
         bool forward) {
    const int64_t n = sequences.n;
    const auto plan = plan_of<pf::pocketfft_r<T>>(n);
    each_group<T>(ctx, sequences, n, [&](int64_t first, int64_t left, Lanes<T>* memory) {
        const int64_t *from = sequences.from + first, *to = sequences.to + first;
        if (left <= kAlone) {
            const Complex<T>* x = in + *from;
            T* value = reinterpret_cast<T*>(memory);
            value[0] = x[0].re;
            for (int64_t i = 1; i < n; ++i) {
                const Complex<T> z = x[(i + 1) / 2 * sequences.from_stride];
                value[i] = i % 2 ? z.re : z.im;
            }
            if (forward) conjugate_half(value, n);
            plan->exec(value, static_cast<T>(scale), false);
            for (int64_t i = 0; i < n; ++i) out[*to + i * sequences.to_stride] = value[i];
            return;
        }
        gather_half<T>(memory, {in, from, left, sequences.from_stride}, n);
        if (forward) conjugate_half(memory, n);
        plan->exec(memory, static_cast<T>(scale), false);
        scatter<T>({out, to, left, sequences.to_stride}, memory, n);
    });
}

}  // namespace

void fft_c2c(KernelContext& ctx, const View& out, const View& input, Ints dims, double scale, bool forward) {
    if (out.numel == 0) return;
    const View* from = &input;
    for (int64_t dim : dims) {
        if (dim < 0) dim += input.ndim;
        const int64_t n = input.sizes[dim];
        if (n == 1 && scale == 1) continue;  // a single number is its own transform
        const FftSequences sequences = sequences_of(ctx, *from, out, dim, n);
        if (out.dtype == DType::Complex128)
            c2c(ctx, sequences, from->as<Complex<double>>(), out.as<Complex<double>>(), scale, forward);
        else c2c(ctx, sequences, from->as<Complex<float>>(), out.as<Complex<float>>(), scale, forward);
        from = &out;
        scale = 1;
    }
    if (from == &input) copy_to(out, input);
}

void fft_r2c(KernelContext& ctx, const View& out, const View& input, int64_t dim, double scale,
             bool forward) {
    if (out.numel == 0) return;
    if (dim < 0) dim += input.ndim;
    const FftSequences sequences = sequences_of(ctx, input, out, dim, input.sizes[dim]);
    if (input.dtype == DType::Float64)
        r2c(ctx, sequences, input.as<double>(), out.as<Complex<double>>(), scale, forward);
    else r2c(ctx, sequences, input.as<float>(), out.as<Complex<float>>(), scale, forward);
}

void fft_c2r(KernelContext& ctx, const View& out, const View& input, int64_t dim, int64_t n, double scale,
             bool forward) {
    if (out.numel == 0) return;
    if (dim < 0) dim += input.ndim;
    const FftSequences sequences = sequences_of(ctx, input, out, dim, n);
    if (out.dtype == DType::Float64)
        c2r(ctx, sequences, input.as<Complex<double>>(), out.as<double>(), scale, forward);
    else c2r(ctx, sequences, input.as<Complex<float>>(), out.as<float>(), scale, forward);
}

}  // namespace rushlight::cpu
