// Batches of matrices in memory, for factorizations and the solution of systems.
#pragma once

#include "cuda/kernels/bytes.cuh"

namespace rushlight::cuda {
namespace {

using Scalars = Types<float, double, Complex<float>, Complex<double>>;

template <class T>
__device__ T conjugated(T x) {
    if constexpr (kIsComplex<T>) return conj(x);
    else return x;
}
template <class T>
__device__ Real<T> real_part(T x) {
    if constexpr (kIsComplex<T>) return x.re;
    else return x;
}
template <class T>
__device__ Real<T> magnitude(T x) {
    if constexpr (kIsComplex<T>) return std::hypot(x.re, x.im);
    else return std::abs(x);
}

/// A batch of matrices. Element (i, j) of matrix b is at b * batch + i * row + j * column.
template <class T>
struct Matrices {
    T* data;
    int64_t batch, row, column;

    __host__ __device__ T& at(int64_t b, int64_t i, int64_t j) const {
        return data[b * batch + i * row + j * column];
    }
    /// Returns the parts that begin at element (i, j).
    Matrices from(int64_t i, int64_t j) const { return {data + i * row + j * column, batch, row, column}; }
    Matrices transposed() const { return {data, batch, column, row}; }
};

/// Row-major matrices of the sizes of a view.
template <class T>
Matrices<T> row_major(T* data, const View& v) {
    return {data, v.size(-2) * v.size(-1), v.size(-1), 1};
}
inline int64_t count_matrices(const View& v) {
    int64_t count = 1;
    for (int d = 0; d < v.ndim - 2; ++d) count *= v.sizes[d];
    return count;
}

/// Copies a view to row-major memory of its size.
template <class T>
void queue_dense(T* to, const View& from, KernelContext* context) {
    const RowMajor strides(from.sizes, from.ndim);
    if (from.numel > 0)
        queue_copy(View{to, from.sizes, strides.strides, from.numel, from.ndim, DTypeOf<T>::value, 1}, from,
                   context);
}
/// Returns a copy of a view, which may be overwritten.
template <class T>
T* copied(KernelContext* context, const View& v) {
    T* made = scratch<T>(context, v.numel);
    queue_dense(made, v, context);
    return made;
}

/// Returns the number of blocks with which a block processes each of `count` matrices.
inline Grid block_for_each(int64_t count) { return {blocks_for(count * kThreads), kThreads}; }

/// The columns that are eliminated together.
constexpr int64_t kPanel = 32;

/// Subtracts the products of m by k and k by n matrices from m by n matrices.
template <class T>
struct SubtractProduct {
    Matrices<T> out, a, b;
    int64_t m, n, k;
    bool conjugate_a, conjugate_b;
    bool lower;  // only the lower triangle

    __device__ void operator()(int64_t index) const {
        const int64_t own = index / (m * n), at = index % (m * n);
        // Threads whose numbers are adjacent write adjacent elements.
        const bool by_rows = out.column == 1;
        const int64_t i = by_rows ? at / n : at % m, j = by_rows ? at % n : at / m;
        if (lower && j > i) return;
        T sum = T(0);
        for (int64_t p = 0; p < k; ++p) {
            const T x = a.at(own, i, p), y = b.at(own, p, j);
            sum = sum + (conjugate_a ? conjugated(x) : x) * (conjugate_b ? conjugated(y) : y);
        }
        T& to = out.at(own, i, j);
        to = to - sum;
    }
};
template <class T>
void queue_update(const KernelArgs& args, int64_t count, const SubtractProduct<T>& update) {
    if (update.m > 0 && update.n > 0 && update.k > 0)
        queue_for_each(args, count * update.m * update.n, update);
}

}  // namespace
}  // namespace rushlight::cuda
