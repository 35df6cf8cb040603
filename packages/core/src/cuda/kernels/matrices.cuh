// Batches of matrices in memory, for factorizations and the solution of systems.
#pragma once

#include <limits>

#include "cuda/alarm.h"
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

/// The magnitude by which pivots are compared, as in LAPACK.
template <class T>
__device__ Real<T> pivot_size(T x) {
    if constexpr (kIsComplex<T>) return std::abs(x.re) + std::abs(x.im);
    else return std::abs(x);
}

template <class T>
struct Pivot {
    Real<T> size;
    int64_t row;
};
struct BetterPivot {
    template <class P>
    __device__ P operator()(const P& a, const P& b) const {
        return b.size > a.size || (b.size == a.size && b.row < a.row) ? b : a;
    }
};

/// A batch of matrices. Element (i, j) of matrix b is at b * batch + i * row + j * column.
template <class T>
struct Matrices {
    T* data;
    int64_t batch, row, column;

    __host__ __device__ T& at(int64_t b, int64_t i, int64_t j) const {
        return data[b * batch + i * row + j * column];
    }
    /// Returns the parts of the matrices that begin at element (i, j).
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

template <class F>
BackendStatus by_scalar(const KernelArgs* args, DType dtype, F&& f) {
    return guarded([&] {
        queue_of(*args);
        by_element_type(Scalars{}, dtype, f);
    });
}

/// An output that was not requested.
constexpr View kAbsent{nullptr, nullptr, nullptr, 0, -1, DType::Int32, 0};

inline void queue_zeros_if_any(const View& v, KernelContext* context) {
    if (v.defined() && v.numel > 0) queue_zeros(v, context);
}

/// Copies a view to row-major memory of its size.
template <class T>
void queue_dense(T* to, const View& from, KernelContext* context) {
    const RowMajor strides(from.sizes, from.ndim);
    if (from.numel > 0)
        queue_copy(View{to, from.sizes, strides.strides, from.numel, from.ndim, DTypeOf<T>::value, 1}, from,
                   context);
}
/// Returns a copy of a view. The copy may be overwritten.
template <class T>
T* copied(KernelContext* context, const View& v) {
    T* made = scratch<T>(context, v.numel);
    queue_dense(made, v, context);
    return made;
}

/// Returns a copy of a view's matrices with contiguous columns. The copy may be overwritten.
template <class T>
T* copied_columns(KernelContext* context, const View& v) {
    RowMajor sizes(v.sizes, v.ndim), strides(v.sizes, v.ndim);
    for (int d = 0; d < v.ndim; ++d) {
        const int from = d < v.ndim - 2 ? d : 2 * v.ndim - 3 - d;
        sizes.strides[d] = v.sizes[from];
        strides.strides[d] = v.strides[from];
    }
    return copied<T>(context,
                     View{v.data, sizes.strides, strides.strides, v.numel, v.ndim, v.dtype, v.numel == 0});
}

/// Copies columns in a given order.
template <class T>
struct CopyColumns {
    Matrices<T> to;
    const T* columns;  // each is contiguous
    const int64_t* order;
    int64_t n, length;
    __device__ void operator()(int64_t index) const {
        const int64_t i = index % length, column = index / length, b = column / n;
        to.at(b, i, column % n) = columns[(b * n + order[column]) * length + i];
    }
};

/// Returns a grid in which one block processes each of `count` matrices.
inline Grid block_for_each(int64_t count) { return {blocks_for(count * kThreads), kThreads}; }

template <class T>
struct FillIdentity {
    Matrices<T> out;
    int64_t rows, columns;
    __device__ void operator()(int64_t index) const {
        const int64_t j = index % columns, i = index / columns % rows;
        out.at(index / columns / rows, i, j) = T(i == j);
    }
};
template <class T>
void queue_identity(const KernelArgs& args, int64_t count, const Matrices<T>& to, int64_t rows,
                    int64_t columns) {
    queue_for_each(args, count * rows * columns, FillIdentity<T>{to, rows, columns});
}

/// Writes zeros above the diagonals of n by n matrices.
template <class T>
struct ClearUpper {
    T* data;
    int64_t n;
    __device__ void operator()(int64_t i) const {
        if (i % n > i / n % n) data[i] = T(0);
    }
};

// --- Scaling --------------------------------------------------------------------------------------

/// Returns x times a power of two.
template <class T>
__device__ T scaled(T x, int exponent) {
    if constexpr (kIsComplex<T>) return {std::ldexp(x.re, exponent), std::ldexp(x.im, exponent)};
    else return std::ldexp(x, exponent);
}

/// Divides each matrix of `numel` elements by a power of two, after which its largest element is between 1/2 and 2, so that
/// squares of elements do not overflow. A matrix of zeros stays as it is. Raises the alarm for matrices that are not finite.
template <class T>
__global__ void __launch_bounds__(kThreads)
    scale_matrices(T* data, int64_t count, int64_t numel, int32_t* exponents, const Alarm alarm) {
    __shared__ Values<Real<T>> room;
    for (int64_t b = blockIdx.x; b < count; b += gridDim.x) {
        T* const own = data + b * numel;
        Real<T> largest = 0;
        for (int64_t i = threadIdx.x; i < numel; i += kThreads) {
            const T x = own[i];
            if constexpr (kIsComplex<T>)
                largest = Larger()(std::abs(x.im), Larger()(std::abs(x.re), largest));
            else largest = Larger()(std::abs(x), largest);
        }
        largest = over_lanes(room.x, threadIdx.x, kThreads, largest, Larger());
        const bool finite = largest < static_cast<Real<T>>(INFINITY);
        int exponent = 0;
        if (finite && largest > 0) exponent = std::ilogb(largest);
        if (threadIdx.x == 0) {
            exponents[b] = exponent;
            if (!finite) alarm.raise(Cause::NotFinite);
        }
        for (int64_t i = threadIdx.x; exponent != 0 && i < numel; i += kThreads)
            own[i] = scaled(own[i], -exponent);
    }
}
/// Returns the exponents of the powers of two by which the matrices are divided.
template <class T>
int32_t* queue_scaling(const KernelArgs& args, T* data, int64_t count, int64_t numel) {
    auto* exponents = scratch<int32_t>(args.context, count);
    launch(&scale_matrices<T>, block_for_each(count), queue_of(args), data, count, numel, exponents,
           alarm_of(args.context));
    return exponents;
}

/// Elements below this number are negligible in a matrix whose largest element is about 1. Their reciprocals may
/// overflow.
template <class T>
constexpr Real<T> kTiny = std::numeric_limits<Real<T>>::min();

// --- Sorting of eigenvalues -----------------------------------------------------------------------

/// Sorts the n numbers of each matrix, in ascending or descending order, and multiplies them by powers of two. NaN is last.
/// `order` contains the former positions. `sorted` may be null.
template <class R>
struct SortValues {
    const double* values;
    const int32_t* exponents;
    int64_t n;
    bool descending;
    R* sorted;
    int64_t* order;

    __device__ void operator()(int64_t index) const {
        const int64_t b = index / n, j = index % n;
        const double* const own = values + b * n;
        int64_t rank = 0;
        for (int64_t i = 0; i < n; ++i)
            rank += precedes(own[i], own[j]) || (i < j && !precedes(own[j], own[i]));
        if (sorted) sorted[b * n + rank] = static_cast<R>(scaled(own[j], exponents[b]));
        order[b * n + rank] = j;
    }

  private:
    __device__ bool precedes(double x, double y) const {
        return (descending ? x > y : x < y) || (x == x && y != y);
    }
};

/// The number of columns that are eliminated together.
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
