#include "cpu/fft.h"

#include "cpu/contiguous.h"
#include "cpu/odometer.h"
#include "rushlight/parallel.h"

// Threads, and the lock around its cache of plans that a fork could find taken, are left out.
#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 0
#include "pocketfft/pocketfft_hdronly.h"

namespace rushlight::cpu {
namespace {

namespace pf = pocketfft::detail;

// Where lines begin and how far their elements lie apart, in elements.
struct FftLines {
    int64_t n;  // length of the transform
    int64_t count;
    const int64_t *from, *to;
    int64_t from_stride, to_stride;
};

// Where the lines of a view along a dimension begin, in the order of the others.
const int64_t* line_starts(KernelContext& ctx, const View& v, int64_t dim, int64_t count) {
    Odometer others;
    for (int d = 0; d < v.ndim; ++d)
        if (d != dim) others.push(v.sizes[d], v.strides[d]);
    auto* starts = scratch<int64_t>(ctx, count);
    Walk walk(others, 0);
    for (int64_t i = 0; i < count; ++i, walk.next()) starts[i] = walk.offset();
    return starts;
}

FftLines lines_of(KernelContext& ctx, const View& from, const View& to, int64_t dim, int64_t n) {
    const int64_t count = to.numel / to.sizes[dim];
    return {n,
            count,
            line_starts(ctx, from, dim, count),
            line_starts(ctx, to, dim, count),
            from.strides[dim],
            to.strides[dim]};
}

// As many lines as a vector has lanes are transformed at once, the rest one by one.
template <class T, class One, class Several>
void each_group(const FftLines& lines, One one, Several several) {
    constexpr auto kLanes = static_cast<int64_t>(pf::VLEN<T>::val);
    const int64_t count = lines.count;
    const int64_t groups = (count + kLanes - 1) / kLanes;
    const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 14) / (lines.n * kLanes));
    parallel_for(0, groups, grain, [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
            const int64_t first = group * kLanes;
            if constexpr (kLanes > 1) {
                if (first + kLanes <= count) {
                    several(first);
                    continue;
                }
            }
            for (int64_t line = first; line < std::min(first + kLanes, count); ++line) one(line);
        }
    });
}

// A lane of a vector, or the number itself.
template <class V>
auto& lane(V& v, int64_t l) {
    if constexpr (std::is_floating_point_v<V>) return v;
    else return reinterpret_cast<std::remove_reference_t<decltype(v[0])>*>(&v)[l];
}

// Elements of several lines as they lie in memory: along a line, or across lines whose elements lie further apart.
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
void c2c(const FftLines& lines, const Complex<T>* in, Complex<T>* out, double scale, bool forward) {
    const auto n = static_cast<size_t>(lines.n);
    const pf::pocketfft_c<T> plan(n);
    auto run = [&]<class V>(int64_t first, int64_t lanes, V) {
        pf::arr<pf::cmplx<V>> line(n);
        const int64_t *from = lines.from + first, *to = lines.to + first;
        in_order(lines.n, lanes, lines.from_stride, [&](int64_t i, int64_t l) {
            const Complex<T> x = in[from[l] + i * lines.from_stride];
            lane(line[static_cast<size_t>(i)].r, l) = x.re;
            lane(line[static_cast<size_t>(i)].i, l) = x.im;
        });
        plan.exec(line.data(), static_cast<T>(scale), forward);
        in_order(lines.n, lanes, lines.to_stride, [&](int64_t i, int64_t l) {
            auto& z = line[static_cast<size_t>(i)];
            out[to[l] + i * lines.to_stride] = {lane(z.r, l), lane(z.i, l)};
        });
    };
    each_group<T>(
        lines, [&](int64_t line) { run(line, 1, T()); },
        [&](int64_t first) {
            run(first, static_cast<int64_t>(pf::VLEN<T>::val), typename pf::VTYPE<T>::type());
        });
}

// Pocketfft's order of a half spectrum: r0 r1 i1 r2 i2 ..., and of an even n the last real part.
template <class T>
void r2c(const FftLines& lines, const T* in, Complex<T>* out, double scale, bool forward) {
    const auto n = static_cast<size_t>(lines.n);
    const pf::pocketfft_r<T> plan(n);
    const T sign = forward ? T(1) : T(-1);
    auto run = [&]<class V>(int64_t first, int64_t lanes, V) {
        pf::arr<V> line(n);
        for (int64_t l = 0; l < lanes; ++l) {
            const T* x = in + lines.from[first + l];
            for (int64_t i = 0; i < lines.n; ++i)
                lane(line[static_cast<size_t>(i)], l) = x[i * lines.from_stride];
        }
        plan.exec(line.data(), static_cast<T>(scale), true);
        for (int64_t l = 0; l < lanes; ++l) {
            Complex<T>* y = out + lines.to[first + l];
            auto value = [&](int64_t i) { return lane(line[static_cast<size_t>(i)], l); };
            y[0] = {value(0), T(0)};
            for (int64_t k = 1; 2 * k < lines.n; ++k)
                y[k * lines.to_stride] = {value(2 * k - 1), sign * value(2 * k)};
            if (lines.n % 2 == 0) y[lines.n / 2 * lines.to_stride] = {value(lines.n - 1), T(0)};
        }
    };
    each_group<T>(
        lines, [&](int64_t line) { run(line, 1, T()); },
        [&](int64_t first) {
            run(first, static_cast<int64_t>(pf::VLEN<T>::val), typename pf::VTYPE<T>::type());
        });
}

template <class T>
void c2r(const FftLines& lines, const Complex<T>* in, T* out, double scale, bool forward) {
    const auto n = static_cast<size_t>(lines.n);
    const pf::pocketfft_r<T> plan(n);
    const T sign = forward ? T(-1) : T(1);
    auto run = [&]<class V>(int64_t first, int64_t lanes, V) {
        pf::arr<V> line(n);
        for (int64_t l = 0; l < lanes; ++l) {
            const Complex<T>* x = in + lines.from[first + l];
            auto value = [&](int64_t i) -> T& { return lane(line[static_cast<size_t>(i)], l); };
            value(0) = x[0].re;
            for (int64_t k = 1; 2 * k < lines.n; ++k) {
                value(2 * k - 1) = x[k * lines.from_stride].re;
                value(2 * k) = sign * x[k * lines.from_stride].im;
            }
            if (lines.n % 2 == 0) value(lines.n - 1) = x[lines.n / 2 * lines.from_stride].re;
        }
        plan.exec(line.data(), static_cast<T>(scale), false);
        for (int64_t l = 0; l < lanes; ++l) {
            T* y = out + lines.to[first + l];
            for (int64_t i = 0; i < lines.n; ++i)
                y[i * lines.to_stride] = lane(line[static_cast<size_t>(i)], l);
        }
    };
    each_group<T>(
        lines, [&](int64_t line) { run(line, 1, T()); },
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
        if (n == 1 && scale == 1) continue;  // a number is its own transform
        const FftLines lines = lines_of(ctx, *from, out, dim, n);
        if (out.dtype == DType::Complex128)
            c2c(lines, from->as<Complex<double>>(), out.as<Complex<double>>(), scale, forward);
        else c2c(lines, from->as<Complex<float>>(), out.as<Complex<float>>(), scale, forward);
        from = &out;
        scale = 1;
    }
    if (from == &input) copy_to(out, input);
}

void fft_r2c(KernelContext& ctx, const View& out, const View& input, int64_t dim, double scale,
             bool forward) {
    if (out.numel == 0) return;
    if (dim < 0) dim += input.ndim;
    const FftLines lines = lines_of(ctx, input, out, dim, input.sizes[dim]);
    if (input.dtype == DType::Float64)
        r2c(lines, input.as<double>(), out.as<Complex<double>>(), scale, forward);
    else r2c(lines, input.as<float>(), out.as<Complex<float>>(), scale, forward);
}

void fft_c2r(KernelContext& ctx, const View& out, const View& input, int64_t dim, int64_t n, double scale,
             bool forward) {
    if (out.numel == 0) return;
    if (dim < 0) dim += input.ndim;
    const FftLines lines = lines_of(ctx, input, out, dim, n);
    if (out.dtype == DType::Float64)
        c2r(lines, input.as<Complex<double>>(), out.as<double>(), scale, forward);
    else c2r(lines, input.as<Complex<float>>(), out.as<float>(), scale, forward);
}

}  // namespace rushlight::cpu
