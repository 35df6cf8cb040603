// Fourier transforms along dimensions. A transform of length n is computed in a pass for each factor of n up to 13, after
// which the results are in order (T. G. Stockham, "High-speed convolution and correlation", 1966). If n has other prime
// factors, the transform is computed as a convolution (L. I. Bluestein, "A linear filtering approach to the computation of
// discrete Fourier transform", 1970), by transforms whose length is a power of two.
#include <cmath>

#include "cuda/kernels.h"
#include "cuda/kernels/rows.cuh"

namespace rushlight::cuda {
namespace {

/// Returns exp(sign * 2 pi i * k / n), where i is the imaginary unit.
template <class T>
__host__ __device__ Complex<T> root_of_unity(int64_t k, int64_t n, double sign) {
    if (k > n / 2) k -= n;
    const double angle = sign * 6.283185307179586 * (static_cast<double>(k) / static_cast<double>(n));
    return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
}

template <class T>
struct FillRoots {
    Complex<T>* out;
    int64_t n;
    double sign;
    __device__ void operator()(int64_t k) const { out[k] = root_of_unity<T>(k, n, sign); }
};

/// A pass over sequences of `n` numbers, for which transforms of length `done` have been computed already. Each thread
/// combines one number of each of R transforms.
template <int R, class T>
struct RadixPass {
    Complex<T>* out;
    const Complex<T>*in, *roots;
    int64_t n, done;
    Complex<T> own[R];  // roots of order R

    RadixPass(Complex<T>* to, const Complex<T>* from, const Complex<T>* roots, int64_t n, int64_t done,
              double sign)
        : out(to), in(from), roots(roots), n(n), done(done) {
        for (int k = 0; k < R; ++k) own[k] = root_of_unity<T>(k, R, sign);
    }
    __device__ void operator()(int64_t i) const {
        const int64_t step = n / R, begin = i / step * n, j = i % step, k = j % done;
        Complex<T> v[R];  // in registers, because the loops are unrolled
#pragma unroll
        for (int r = 0; r < R; ++r) v[r] = in[begin + j + r * step];
        if (done > 1)
#pragma unroll
            for (int r = 1; r < R; ++r) v[r] = v[r] * roots[r * k * (step / done)];
        const int64_t at = begin + (j - k) * R + k;
#pragma unroll
        for (int q = 0; q < R; ++q) {
            Complex<T> sum = v[0];
#pragma unroll
            for (int r = 1; r < R; ++r) sum = sum + v[r] * own[q * r % R];
            out[at + q * done] = sum;
        }
    }
};

/// Returns a divisor of n for which a RadixPass exists, or 0 if there is none.
int radix_of(int64_t n) {
    for (const int radix : {8, 4, 2, 3, 5, 7, 11, 13})
        if (n % radix == 0) return radix;
    return 0;
}
bool has_passes(int64_t n) {
    while (n > 1) {
        const int radix = radix_of(n);
        if (radix == 0) return false;
        n /= radix;
    }
    return true;
}

/// Computes Fourier transforms of sequences of complex numbers. The sequences follow each other in memory.
template <class T>
class Transforms {
  public:
    using C = Complex<T>;

    explicit Transforms(const KernelArgs& args) : context_(args.context), stream_(queue_of(args)) {}

    C* memory(int64_t count) const { return scratch<C>(context_, count); }

    /// Enqueues the transforms of `count` sequences, which are overwritten. Returns the address of the results.
    C* queue(C* data, int64_t count, int64_t n, double sign) const {
        if (n <= 1 || count == 0) return data;
        return has_passes(n) ? passes(data, memory(count * n), count, n, sign)
                             : convolved(data, count, n, sign);
    }
    template <class F>
    void each(int64_t n, const F& f) const {
        queue_for_each(f, n, stream_);
    }

  private:
    template <int R>
    void pass(C* to, const C* from, const C* roots, int64_t count, int64_t n, int64_t done,
              double sign) const {
        each(count * (n / R), RadixPass<R, T>(to, from, roots, n, done, sign));
    }

    C* passes(C* data, C* other, int64_t count, int64_t n, double sign) const {
        C* const roots = memory(n);
        each(n, FillRoots<T>{roots, n, sign});
        for (int64_t done = 1; done < n;) {
            const int radix = radix_of(n / done);
            const auto run = [&]<int R>() { pass<R>(other, data, roots, count, n, done, sign); };
            switch (radix) {
                case 2: run.template operator()<2>(); break;
                case 3: run.template operator()<3>(); break;
                case 4: run.template operator()<4>(); break;
                case 5: run.template operator()<5>(); break;
                case 7: run.template operator()<7>(); break;
                case 8: run.template operator()<8>(); break;
                case 11: run.template operator()<11>(); break;
                default: run.template operator()<13>(); break;
            }
            C* const made = other;
            other = data;
            data = made;
            done *= radix;
        }
        return data;
    }

    /// Let w(k) = exp(sign * pi i * k^2 / n). Number k of the transform is computed as w(k) times the sum over j of
    /// x(j) * w(j) / w(k - j).
    C* convolved(C* data, int64_t count, int64_t n, double sign) const;

    KernelContext* context_;
    cudaStream_t stream_;
};

template <class T>
struct FillChirp {
    Complex<T>* out;
    int64_t n;
    double sign;
    __device__ void operator()(int64_t k) const {
        const auto square = static_cast<uint64_t>(k) * static_cast<uint64_t>(k);
        out[k] = root_of_unity<T>(static_cast<int64_t>(square % static_cast<uint64_t>(2 * n)), 2 * n, sign);
    }
};
/// Writes the reciprocals of the chirp to the positions -(n - 1) to n - 1 of a sequence of `m` numbers, in which
/// negative positions count from the end.
template <class T>
struct FillFilter {
    Complex<T>* out;
    const Complex<T>* chirp;
    int64_t n, m;
    __device__ void operator()(int64_t k) const {
        const int64_t distance = k < m - k ? k : m - k;
        out[k] = distance < n ? conj(chirp[distance]) : Complex<T>(0);
    }
};
template <class T>
struct ApplyChirp {
    Complex<T>* out;
    const Complex<T>*in, *chirp;
    int64_t n, m;
    __device__ void operator()(int64_t i) const {
        const int64_t k = i % m;
        out[i] = k < n ? in[i / m * n + k] * chirp[k] : Complex<T>(0);
    }
};
template <class T>
struct ApplyFilter {
    Complex<T>* data;
    const Complex<T>* filter;
    int64_t m;
    T scale;
    __device__ void operator()(int64_t i) const { data[i] = data[i] * filter[i % m] * Complex<T>(scale); }
};
template <class T>
struct FinishChirp {
    Complex<T>* out;
    const Complex<T>*in, *chirp;
    int64_t n, m;
    __device__ void operator()(int64_t i) const { out[i] = in[i / n * m + i % n] * chirp[i % n]; }
};

template <class T>
Complex<T>* Transforms<T>::convolved(C* data, int64_t count, int64_t n, double sign) const {
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    C *const chirp = memory(n), *filter = memory(m),
             *padded = memory(count * m), *const spare = memory(count * m);
    each(n, FillChirp<T>{chirp, n, sign});
    each(m, FillFilter<T>{filter, chirp, n, m});
    filter = passes(filter, memory(m), 1, m, -1);
    each(count * m, ApplyChirp<T>{padded, data, chirp, n, m});
    C* spectrum = passes(padded, spare, count, m, -1);
    each(count * m, ApplyFilter<T>{spectrum, filter, m, static_cast<T>(1.0 / static_cast<double>(m))});
    C* const other = spectrum == padded ? spare : padded;
    each(count * n, FinishChirp<T>{data, passes(spectrum, other, count, m, 1), chirp, n, m});
    return data;
}

/// A view whose dimension `dim` is moved to the end.
struct Moved {
    int64_t sizes[64], strides[64];
    View view;

    Moved(const View& v, int64_t dim) : view(v) {
        int at = 0;
        for (int d = 0; d < v.ndim; ++d)
            if (d != dim) put(at++, v, d);
        put(at, v, static_cast<int>(dim));
        view.sizes = sizes;
        view.strides = strides;
        view.contiguous = 0;
    }
    Moved(const Moved&) = delete;

  private:
    void put(int at, const View& v, int d) {
        sizes[at] = v.sizes[d];
        strides[at] = v.strides[d];
    }
};

/// Row-major memory of type T with the sizes of a moved view.
template <class T>
View dense_view(T* data, const Moved& like, const RowMajor& strides) {
    return {data, like.sizes, strides.strides, like.view.numel, like.view.ndim, DTypeOf<T>::value, 1};
}

template <class T>
struct Scale {
    Complex<T>* data;
    T by;
    __device__ void operator()(int64_t i) const { data[i] = {data[i].re * by, data[i].im * by}; }
};
/// Copies the first `width` numbers of each sequence of `n` numbers.
template <class T>
struct FirstHalf {
    Complex<T>* out;
    const Complex<T>* in;
    int64_t n, width;
    T scale;
    __device__ void operator()(int64_t i) const {
        const Complex<T> z = in[i / width * n + i % width];
        // The transform of real numbers has real numbers at 0 and at n / 2.
        const bool real = i % width == 0 || 2 * (i % width) == n;
        out[i] = {z.re * scale, real ? T(0) : z.im * scale};
    }
};
/// Writes the whole spectrum, of `n` numbers, of each sequence. It is computed from the first half of the spectrum,
/// which has `width` numbers.
template <class T>
struct WholeSpectrum {
    Complex<T>* out;
    const Complex<T>* in;
    int64_t n, width;
    __device__ void operator()(int64_t i) const {
        const int64_t k = i % n, row = i / n * width;
        out[i] = 2 * k <= n ? in[row + k] : conj(in[row + n - k]);
    }
};
template <class T>
struct RealParts {
    T* out;
    const Complex<T>* in;
    T scale;
    __device__ void operator()(int64_t i) const { out[i] = in[i].re * scale; }
};

double sign_of(bool forward) { return forward ? -1 : 1; }
int64_t wrapped(int64_t dim, const View& v) { return dim < 0 ? dim + v.ndim : dim; }

template <class T>
void queue_c2c(const KernelArgs& args) {
    const View &out = args.out(0), &in = args.in(0);
    const double sign = sign_of(args.params[2].as_bool());
    const Transforms<T> transforms(args);
    View from = in;
    for (int64_t dim : args.params[0].as_ints()) {
        const Moved given(from, wrapped(dim, in)), result(out, wrapped(dim, in));
        const int64_t n = given.sizes[in.ndim - 1];
        const RowMajor strides(given.sizes, in.ndim);
        Complex<T>* data = transforms.memory(out.numel);
        queue_copy(dense_view(data, given, strides), given.view, args.context);
        data = transforms.queue(data, out.numel / n, n, sign);
        if (const double scale = args.params[1].as_float(); scale != 1 && from.data == in.data)
            transforms.each(out.numel, Scale<T>{data, static_cast<T>(scale)});
        queue_copy(result.view, dense_view(data, given, strides), args.context);
        from = out;
    }
    if (from.data == in.data) queue_copy(out, in, args.context);
}

template <class T>
void queue_r2c(const KernelArgs& args) {
    const View &out = args.out(0), &in = args.in(0);
    const Moved given(in, wrapped(args.params[0].as_int(), in)),
        result(out, wrapped(args.params[0].as_int(), in));
    const int64_t n = given.sizes[in.ndim - 1], width = result.sizes[in.ndim - 1];
    const RowMajor strides(given.sizes, in.ndim), made(result.sizes, in.ndim);
    const Transforms<T> transforms(args);
    Complex<T>* data = transforms.memory(in.numel);
    queue_copy(dense_view(data, given, strides), given.view, args.context);
    data = transforms.queue(data, in.numel / n, n, sign_of(args.params[2].as_bool()));
    Complex<T>* const half = transforms.memory(out.numel);
    transforms.each(out.numel, FirstHalf<T>{half, data, n, width, static_cast<T>(args.params[1].as_float())});
    queue_copy(result.view, dense_view(half, result, made), args.context);
}

template <class T>
void queue_c2r(const KernelArgs& args) {
    const View &out = args.out(0), &in = args.in(0);
    const Moved given(in, wrapped(args.params[0].as_int(), in)),
        result(out, wrapped(args.params[0].as_int(), in));
    const int64_t n = result.sizes[in.ndim - 1], width = given.sizes[in.ndim - 1];
    const RowMajor strides(given.sizes, in.ndim), made(result.sizes, in.ndim);
    const Transforms<T> transforms(args);
    Complex<T>*const half = transforms.memory(in.numel), *data = transforms.memory(out.numel);
    queue_copy(dense_view(half, given, strides), given.view, args.context);
    transforms.each(out.numel, WholeSpectrum<T>{data, half, n, width});
    data = transforms.queue(data, out.numel / n, n, sign_of(args.params[3].as_bool()));
    auto* real = scratch<T>(args.context, out.numel);
    transforms.each(out.numel, RealParts<T>{real, data, static_cast<T>(args.params[2].as_float())});
    queue_copy(result.view, dense_view(real, result, made), args.context);
}

}  // namespace

BackendStatus fft_c2c(const KernelArgs* args) {
    return guarded([args] {
        if (args->out(0).numel == 0) return;
        if (args->out(0).dtype == DType::Complex128) queue_c2c<double>(*args);
        else queue_c2c<float>(*args);
    });
}
BackendStatus fft_r2c(const KernelArgs* args) {
    return guarded([args] {
        if (args->out(0).numel == 0) return;
        if (args->out(0).dtype == DType::Complex128) queue_r2c<double>(*args);
        else queue_r2c<float>(*args);
    });
}
BackendStatus fft_c2r(const KernelArgs* args) {
    return guarded([args] {
        if (args->out(0).numel == 0) return;
        if (args->out(0).dtype == DType::Float64) queue_c2r<double>(*args);
        else queue_c2r<float>(*args);
    });
}

}  // namespace rushlight::cuda
