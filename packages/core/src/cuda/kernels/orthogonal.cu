// QR decompositions by Householder reflections, and products with their orthogonal factors.
#include "cuda/kernels.h"
#include "cuda/kernels/reflectors.cuh"

namespace rushlight::cuda {
namespace {

/// Copies the upper triangle R of a matrix, and writes zeros below the diagonal.
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
        queue_product(*args, count, row_major(to.data(), q), m, q.size(-1), k, reflectors, tau, k);
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
        queue_product(*args, count_matrices(a), row_major(to.data(), q), a.size(-2), a.size(-1), k,
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
