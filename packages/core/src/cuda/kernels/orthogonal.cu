// QR decompositions by Householder reflections. Reflectors and factors have the signs and the layout of LAPACK's.
#include "cuda/kernels.h"
#include "cuda/kernels/matrices.cuh"

namespace rushlight::cuda {
namespace {

/// Computes the reflector that makes column j of an m by n matrix zero below the diagonal, and stores it there. The block of
/// a matrix sums the squares in float64.
template <class T>
__global__ void __launch_bounds__(kThreads)
    make_reflector(const Matrices<T> a, int64_t count, int64_t m, int64_t j, T* tau, int64_t steps) {
    using R = Real<T>;
    __shared__ Values<double> room;
    for (int64_t b = blockIdx.x; b < count; b += gridDim.x) {
        // The column is scaled by its largest element, so that squares do not overflow.
        double largest = 0;
        for (int64_t i = j + threadIdx.x; i < m; i += kThreads)
            largest = Larger()(static_cast<double>(magnitude(a.at(b, i, j))), largest);
        largest = over_lanes(room.x, threadIdx.x, kThreads, largest, Larger());
        const double scale = largest > 0 && largest < INFINITY ? largest : 1;
        double square = 0;
        for (int64_t i = j + 1 + threadIdx.x; i < m; i += kThreads) {
            const double size = static_cast<double>(magnitude(a.at(b, i, j))) / scale;
            square += size * size;
        }
        square = over_lanes(room.x, threadIdx.x, kThreads, square, Plus());
        const T alpha = a.at(b, j, j);
        const double own = static_cast<double>(magnitude(alpha)) / scale,
                     norm = scale * std::sqrt(own * own + square);
        bool real = true;
        if constexpr (kIsComplex<T>) real = alpha.im == 0;
        __syncthreads();  // all threads have read the diagonal
        if (square == 0 && real) {
            if (threadIdx.x == 0) tau[b * steps + j] = T(0);
            continue;
        }
        const R beta = static_cast<R>(real_part(alpha) >= 0 ? -norm : norm);
        const T by = T(1) / (alpha - T(beta));
        for (int64_t i = j + 1 + threadIdx.x; i < m; i += kThreads) a.at(b, i, j) = a.at(b, i, j) * by;
        if (threadIdx.x == 0) {
            tau[b * steps + j] = (T(beta) - alpha) / T(beta);
            a.at(b, j, j) = T(beta);
        }
    }
}

/// Applies I - tau v v^H to columns of matrices. The first element of v is 1, and its others are below the diagonal of
/// `reflectors`. A thread processes a column.
template <class T>
struct Reflect {
    Matrices<T> to, reflectors;  // both begin at the row of v's first element
    const T* tau;
    int64_t steps, m, width;
    bool conjugate_tau, conjugate_v;

    __device__ void operator()(int64_t index) const {
        const int64_t b = index / width, c = index % width;
        const T given = tau[b * steps], factor = conjugate_tau ? conjugated(given) : given;
        if (factor == T(0)) return;
        T sum = to.at(b, 0, c);
        for (int64_t i = 1; i < m; ++i) sum = sum + conjugated(v(b, i)) * to.at(b, i, c);
        sum = sum * factor;
        to.at(b, 0, c) = to.at(b, 0, c) - sum;
        for (int64_t i = 1; i < m; ++i) to.at(b, i, c) = to.at(b, i, c) - v(b, i) * sum;
    }

  private:
    __device__ T v(int64_t b, int64_t i) const {
        const T found = reflectors.at(b, i, 0);
        return conjugate_v ? conjugated(found) : found;
    }
};

/// Queues the reflection by reflector k of matrices with m rows.
template <class T>
void queue_reflection(const KernelArgs& args, int64_t count, const Matrices<T>& to,
                      const Matrices<T>& reflectors, const T* tau, int64_t steps, int64_t k, int64_t m,
                      int64_t width, bool conjugate_tau, bool conjugate_v = false) {
    if (width > 0)
        queue_for_each(args, count * width,
                       Reflect<T>{to.from(k, 0), reflectors.from(k, k), tau + k, steps, m - k, width,
                                  conjugate_tau, conjugate_v});
}

/// Decomposes m by n matrices in place: R is on and above the diagonal, and the reflectors are below it.
template <class T>
void queue_qr(const KernelArgs& args, int64_t count, int64_t m, int64_t n, const Matrices<T>& a, T* tau) {
    const int64_t steps = m < n ? m : n;
    for (int64_t j = 0; count > 0 && j < steps; ++j) {
        launch(&make_reflector<T>, block_for_each(count), queue_of(args), a, count, m, j, tau, steps);
        queue_reflection(args, count, a.from(0, j + 1), a, tau, steps, j, m, n - j - 1, true);
    }
}

/// Copies R, with zeros below the diagonal.
template <class T>
struct CopyUpper {
    T* out;
    Matrices<T> from;
    int64_t rows, columns;
    __device__ void operator()(int64_t index) const {
        const int64_t j = index % columns, i = index / columns % rows;
        out[index] = j < i ? T(0) : from.at(index / columns / rows, i, j);
    }
};
template <class T>
struct FillIdentity {
    T* out;
    int64_t rows, columns;
    __device__ void operator()(int64_t i) const { out[i] = T(i / columns % rows == i % columns); }
};

/// Writes the product of k reflectors, of which `width` columns are computed.
template <class T>
void queue_product(const KernelArgs& args, int64_t count, T* q, int64_t m, int64_t width, int64_t k,
                   const Matrices<T>& reflectors, const T* tau, int64_t steps) {
    queue_for_each(args, count * m * width, FillIdentity<T>{q, m, width});
    const Matrices<T> to{q, m * width, width, 1};
    for (int64_t i = k - 1; i >= 0; --i)
        queue_reflection(args, count, to, reflectors, tau, steps, i, m, width, false);
}

template <class F>
BackendStatus by_scalar(const KernelArgs* args, DType dtype, F&& f) {
    return guarded([&] {
        queue_of(*args);
        by_element_type(Scalars{}, dtype, f);
    });
}

}  // namespace

BackendStatus linalg_qr(const KernelArgs* args) {
    const View &q = args->out(0), &r = args->out(1), &a = args->in(0);
    return by_scalar(args, a.dtype, [&]<class T>(T) {
        const int64_t m = a.size(-2), n = a.size(-1), k = m < n ? m : n, count = count_matrices(a);
        T *const data = copied<T>(args->context, a), *const tau = scratch<T>(args->context, count * k);
        const Matrices<T> reflectors = row_major(data, a);
        queue_qr(*args, count, m, n, reflectors, tau);
        if (r.numel > 0) {
            const DenseOut<T> to(args->context, r);
            queue_for_each(*args, r.numel, CopyUpper<T>{to.data(), reflectors, r.size(-2), n});
            to.finish();
        }
        if (!q.defined() || q.ndim < 2 || q.numel == 0) return;
        const DenseOut<T> to(args->context, q);
        queue_product(*args, count, to.data(), m, q.size(-1), k, reflectors, tau, k);
        to.finish();
    });
}

BackendStatus geqrf(const KernelArgs* args) {
    const View &reflectors = args->out(0), &tau = args->out(1), &a = args->in(0);
    return by_scalar(args, a.dtype, [&]<class T>(T) {
        if (reflectors.numel == 0) return;
        const DenseOut<T> to(args->context, reflectors), scales(args->context, tau);
        queue_dense(to.data(), a, args->context);
        queue_qr(*args, count_matrices(a), a.size(-2), a.size(-1), row_major(to.data(), a), scales.data());
        to.finish();
        scales.finish();
    });
}

BackendStatus householder_product(const KernelArgs* args) {
    const View &q = args->out(0), &a = args->in(0), &tau = args->in(1);
    return by_scalar(args, q.dtype, [&]<class T>(T) {
        if (q.numel == 0) return;
        const int64_t k = tau.size(-1);
        const DenseOut<T> to(args->context, q);
        queue_product(*args, count_matrices(a), to.data(), a.size(-2), a.size(-1), k,
                      row_major(const_cast<T*>(dense<T>(args->context, a)), a), dense<T>(args->context, tau),
                      k);
        to.finish();
    });
}

BackendStatus ormqr(const KernelArgs* args) {
    const View &out = args->out(0), &a = args->in(0), &tau = args->in(1), &other = args->in(2);
    return by_scalar(args, out.dtype, [&]<class T>(T) {
        if (out.numel == 0) return;
        const bool left = args->params[0].as_bool(), transpose = args->params[1].as_bool();
        const int64_t k = tau.size(-1), rows = other.size(-2), columns = other.size(-1),
                      count = count_matrices(other);
        const DenseOut<T> to(args->context, out);
        queue_dense(to.data(), other, args->context);
        const Matrices<T> reflectors = row_major(const_cast<T*>(dense<T>(args->context, a)), a),
                          given = row_major(to.data(), other);
        const T* const scales = dense<T>(args->context, tau);
        for (int64_t i = 0; i < k; ++i) {
            // Q = H_1 ... H_k. From the right, the rows are reflected by the conjugate vectors.
            const int64_t at = left == transpose ? i : k - 1 - i;
            queue_reflection(*args, count, left ? given : given.transposed(), reflectors, scales, k, at,
                             left ? rows : columns, left ? columns : rows, transpose, !left);
        }
        to.finish();
    });
}

}  // namespace rushlight::cuda
