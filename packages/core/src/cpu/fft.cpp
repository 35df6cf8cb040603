#include "cpu/fft.h"

#include "cpu/contiguous.h"
#include "cpu/odometer.h"
#include "rushlight/caller_locks.h"
#include "rushlight/parallel.h"

// Pocketfft's threads are disabled. Its cache of plans is disabled too, because a fork could happen while the
// cache's lock is held.
#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 0
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

// Transforms sequences in groups, one for each lane of a vector, and the remaining ones individually.
template <class T, class One, class Several>
void each_group(const FftSequences& sequences, One one, Several several) {
    constexpr auto kLanes = static_cast<int64_t>(pf::VLEN<T>::val);
    const int64_t count = sequences.count;
    const int64_t groups = (count + kLanes - 1) / kLanes;
    constexpr int64_t kMany = 1 << 14;  // elements for one thread
    constexpr int64_t kLong = 1 << 12;  // elements that take at least 10 microseconds
    const int64_t grain = std::max<int64_t>(1, kMany / (sequences.n * kLanes));
    // A single long sequence is not divided among threads, so parallel_for alone would not release the caller's
    // locks.
    const WithoutCallerLocks others_run(WithoutCallerLocks::While::Computing, sequences.n * count >= kLong);
    parallel_for(0, groups, grain, [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
            const int64_t first = group * kLanes;
            if constexpr (kLanes > 1) {
                if (first + kLanes <= count) {
                    several(first);
                    continue;
                }
            }
            for (int64_t sequence = first; sequence < std::min(first + kLanes, count); ++sequence)
                one(sequence);
        }
    });
}

// Returns lane l of a vector, or the number itself if V is a scalar type.
template <class V>
auto& lane(V& v, int64_t l) {
    if constexpr (std::is_floating_point_v<V>) return v;
    else return reinterpret_cast<std::remove_reference_t<decltype(v[0])>*>(&v)[l];
}

// Visits the elements of several sequences in the order of memory: along each sequence if its elements are
// adjacent, otherwise across the sequences.
template <class Body>
void in_order(int64_t n, int64_t lanes, int64_t stride, Body body) {
    if (stride == 1) {
        for (int64_t l = 0; l < lanes; ++l)
            for (int64_t i = 0; i < n; ++i) body(i, l);
    } else {
        for (int64_t i = 0; i < n; ++i)
            for (int64_t l = 0; l < lanes; ++l) body(i, l);
    }
}

template <class T>
void c2c(const FftSequences& sequences, const Complex<T>* in, Complex<T>* out, double scale, bool forward) {
    const auto n = static_cast<size_t>(sequences.n);
    const pf::pocketfft_c<T> plan(n);
    auto run = [&]<class V>(int64_t first, int64_t lanes, V) {
        pf::arr<pf::cmplx<V>> buffer(n);
        const int64_t *from = sequences.from + first, *to = sequences.to + first;
        in_order(sequences.n, lanes, sequences.from_stride, [&](int64_t i, int64_t l) {
            const Complex<T> x = in[from[l] + i * sequences.from_stride];
            lane(buffer[static_cast<size_t>(i)].r, l) = x.re;
            lane(buffer[static_cast<size_t>(i)].i, l) = x.im;
        });
        plan.exec(buffer.data(), static_cast<T>(scale), forward);
        in_order(sequences.n, lanes, sequences.to_stride, [&](int64_t i, int64_t l) {
            auto& z = buffer[static_cast<size_t>(i)];
            out[to[l] + i * sequences.to_stride] = {lane(z.r, l), lane(z.i, l)};
        });
    };
    each_group<T>(
        sequences, [&](int64_t sequence) { run(sequence, 1, T()); },
        [&](int64_t first) {
            run(first, static_cast<int64_t>(pf::VLEN<T>::val), typename pf::VTYPE<T>::type());
        });
}

// Pocketfft stores a half spectrum as r0 r1 i1 r2 i2 ..., and for an even n the last real part follows.
template <class T>
void r2c(const FftSequences& sequences, const T* in, Complex<T>* out, double scale, bool forward) {
    const auto n = static_cast<size_t>(sequences.n);
    const pf::pocketfft_r<T> plan(n);
    const T sign = forward ? T(1) : T(-1);
    auto run = [&]<class V>(int64_t first, int64_t lanes, V) {
        pf::arr<V> buffer(n);
        for (int64_t l = 0; l < lanes; ++l) {
            const T* x = in + sequences.from[first + l];
            for (int64_t i = 0; i < sequences.n; ++i)
                lane(buffer[static_cast<size_t>(i)], l) = x[i * sequences.from_stride];
        }
        plan.exec(buffer.data(), static_cast<T>(scale), true);
        for (int64_t l = 0; l < lanes; ++l) {
            Complex<T>* y = out + sequences.to[first + l];
            auto value = [&](int64_t i) { return lane(buffer[static_cast<size_t>(i)], l); };
            y[0] = {value(0), T(0)};
            for (int64_t k = 1; 2 * k < sequences.n; ++k)
                y[k * sequences.to_stride] = {value(2 * k - 1), sign * value(2 * k)};
            if (sequences.n % 2 == 0)
                y[sequences.n / 2 * sequences.to_stride] = {value(sequences.n - 1), T(0)};
        }
    };
    each_group<T>(
        sequences, [&](int64_t sequence) { run(sequence, 1, T()); },
        [&](int64_t first) {
            run(first, static_cast<int64_t>(pf::VLEN<T>::val), typename pf::VTYPE<T>::type());
        });
}

template <class T>
void c2r(const FftSequences& sequences, const Complex<T>* in, T* out, double scale, bool forward) {
    const auto n = static_cast<size_t>(sequences.n);
    const pf::pocketfft_r<T> plan(n);
    const T sign = forward ? T(-1) : T(1);
    auto run = [&]<class V>(int64_t first, int64_t lanes, V) {
        pf::arr<V> buffer(n);
        for (int64_t l = 0; l < lanes; ++l) {
            const Complex<T>* x = in + sequences.from[first + l];
            auto value = [&](int64_t i) -> T& { return lane(buffer[static_cast<size_t>(i)], l); };
            value(0) = x[0].re;
            for (int64_t k = 1; 2 * k < sequences.n; ++k) {
                value(2 * k - 1) = x[k * sequences.from_stride].re;
                value(2 * k) = sign * x[k * sequences.from_stride].im;
            }
            if (sequences.n % 2 == 0) value(sequences.n - 1) = x[sequences.n / 2 * sequences.from_stride].re;
        }
        plan.exec(buffer.data(), static_cast<T>(scale), false);
        for (int64_t l = 0; l < lanes; ++l) {
            T* y = out + sequences.to[first + l];
            for (int64_t i = 0; i < sequences.n; ++i)
                y[i * sequences.to_stride] = lane(buffer[static_cast<size_t>(i)], l);
        }
    };
    each_group<T>(
        sequences, [&](int64_t sequence) { run(sequence, 1, T()); },
        [&](int64_t first) {
            run(first, static_cast<int64_t>(pf::VLEN<T>::val), typename pf::VTYPE<T>::type());
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
            c2c(sequences, from->as<Complex<double>>(), out.as<Complex<double>>(), scale, forward);
        else c2c(sequences, from->as<Complex<float>>(), out.as<Complex<float>>(), scale, forward);
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
        r2c(sequences, input.as<double>(), out.as<Complex<double>>(), scale, forward);
    else r2c(sequences, input.as<float>(), out.as<Complex<float>>(), scale, forward);
}

void fft_c2r(KernelContext& ctx, const View& out, const View& input, int64_t dim, int64_t n, double scale,
             bool forward) {
    if (out.numel == 0) return;
    if (dim < 0) dim += input.ndim;
    const FftSequences sequences = sequences_of(ctx, input, out, dim, n);
    if (out.dtype == DType::Float64)
        c2r(sequences, input.as<Complex<double>>(), out.as<double>(), scale, forward);
    else c2r(sequences, input.as<Complex<float>>(), out.as<float>(), scale, forward);
}

}  // namespace rushlight::cpu
