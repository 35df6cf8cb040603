// Products of matrices of integers and complex numbers, which the library of matmul.cpp does not compute. A block computes
// tiles of the result from tiles in shared memory.
#include "cuda/kernels/bytes.cuh"
#include "cuda/products.h"

namespace rushlight::cuda {
namespace {

constexpr int kTileWidth = 16;
static_assert(kTileWidth * kTileWidth == kThreads);

/// A matrix, or a batch of matrices, of any strides.
template <class T>
struct Strided {
    const T* data = nullptr;
    int64_t batch = 0, row = 0, column = 0;

    Strided() = default;
    /// Describes the matrices of a view that is broadcast to the result.
    explicit Strided(const View& v) : data(v.as<const T>()) {
        const auto stride = [&](int from_last) {
            const int d = v.ndim - from_last;
            return d < 0 || v.sizes[d] == 1 ? 0 : v.strides[d];
        };
        batch = stride(3);
        row = stride(2);
        column = stride(1);
    }
    Strided transposed() const {
        Strided other = *this;
        other.row = column;
        other.column = row;
        return other;
    }
    __device__ T at(int64_t b, int64_t i, int64_t j) const { return data[b * batch + i * row + j * column]; }
};

template <class T>
struct Task {
    T* out;
    Strided<T> a, b, added;  // `added` has no data if nothing is added
    int64_t count, m, n, k;
    T alpha, beta;
};

/// Returns x * y. Integers of fewer than 32 bits are multiplied as uint32_t, because C++ would convert them to int, in
/// which the product may overflow.
template <class T>
__device__ T product(T x, T y) {
    if constexpr (std::is_integral_v<T> && sizeof(T) < 4) return static_cast<T>(uint32_t{x} * uint32_t{y});
    else return x * y;
}

/// Returns factor * x. If the factor is real, the real and the imaginary part of x are multiplied separately, so that
/// an infinite part does not make the other part NaN.
template <class T>
__device__ T scaled(T factor, T x) {
    if constexpr (kIsComplex<T>)
        if (factor.im == 0) return T(factor.re * x.re, factor.re * x.im);
    return product(factor, x);
}

template <class T>
__global__ void __launch_bounds__(kThreads) multiply_tiles(const Task<T> p) {
    __shared__ Values<T> left, right;
    const int row = threadIdx.x / kTileWidth, column = threadIdx.x % kTileWidth;
    const int64_t down = (p.m + kTileWidth - 1) / kTileWidth, across = (p.n + kTileWidth - 1) / kTileWidth;
    for (int64_t tile = blockIdx.x; tile < p.count * down * across; tile += gridDim.x) {
        const int64_t c = tile / across / down, i = tile / across % down * kTileWidth + row,
                      j = tile % across * kTileWidth + column;
        T sum = T(0);
        for (int64_t first = 0; first < p.k; first += kTileWidth) {
            const int64_t own = first + column, other = first + row;
            __syncthreads();  // all threads have read the previous tiles
            left.x[threadIdx.x] = i < p.m && own < p.k ? p.a.at(c, i, own) : T(0);
            right.x[threadIdx.x] = j < p.n && other < p.k ? p.b.at(c, other, j) : T(0);
            __syncthreads();
#pragma unroll
            for (int k = 0; k < kTileWidth; ++k)
                sum = static_cast<T>(sum +
                                     product(left.x[row * kTileWidth + k], right.x[k * kTileWidth + column]));
        }
        if (i >= p.m || j >= p.n) continue;
        T made = scaled(p.alpha, sum);
        if (p.added.data) made = static_cast<T>(made + scaled(p.beta, p.added.at(c, i, j)));
        p.out[(c * p.m + i) * p.n + j] = made;
    }
}

/// Converts a factor, alpha or beta, to the type of the elements.
template <class T>
T as_factor(const Param& p) {
    const Complex<double> z = p;
    if constexpr (kIsComplex<T>) return static_cast<T>(z);
    else return static_cast<T>(p.kind == Param::Kind::Int ? p.integer : static_cast<int64_t>(z.re));
}

template <class T>
void queue(const KernelArgs& args, const View& out, const View& a, const View& b, bool b_transposed,
           const View* added, const Param& beta, const Param& alpha) {
    Task<T> p;
    p.out = out.as<T>();
    p.a = Strided<T>(a);
    p.b = b_transposed ? Strided<T>(b).transposed() : Strided<T>(b);
    if (added && static_cast<bool>(as_factor<T>(beta))) p.added = Strided<T>(*added);
    p.count = out.ndim == 3 ? out.sizes[0] : 1;
    p.m = out.sizes[out.ndim - 2];
    p.n = out.sizes[out.ndim - 1];
    p.alpha = as_factor<T>(alpha);
    p.k =
        static_cast<bool>(p.alpha) ? a.sizes[a.ndim - 1] : 0;  // zero times an infinite product would be NaN
    p.beta = as_factor<T>(beta);
    const int64_t tiles =
        p.count * ((p.m + kTileWidth - 1) / kTileWidth) * ((p.n + kTileWidth - 1) / kTileWidth);
    launch(&multiply_tiles<T>, Grid{blocks_for(tiles * kThreads), kThreads}, queue_of(args), p);
}

}  // namespace

void queue_plain_product(const KernelArgs& args, const View& out, const View& a, const View& b,
                         bool b_transposed, const View* added, const Param& beta, const Param& alpha) {
    const auto run = [&]<class T>(T) { queue<T>(args, out, a, b, b_transposed, added, beta, alpha); };
    if (out.dtype == DType::Complex64) return run(Complex<float>());
    if (out.dtype == DType::Complex128) return run(Complex<double>());
    if (!is_integral(out.dtype))
        fail(BackendStatus::NotImplemented, "not defined for dtype %s", dtype_name(out.dtype));
    // The products of signed and unsigned integers have the same bits. Unsigned ones wrap around.
    switch (itemsize(out.dtype)) {
        case 1: return run(uint8_t());
        case 2: return run(uint16_t());
        case 4: return run(uint32_t());
        default: return run(uint64_t());
    }
}

}  // namespace rushlight::cuda
