// Helpers that pass batches of matrices to LAPACK.
//
// Note [Row-major LAPACK]
// Tensors are row-major and LAPACK is column-major, so LAPACK operates on the transpose of every matrix that it
// receives. Most kernels here use the results for the transpose and therefore copy no matrix twice. The Cholesky
// factor of a symmetric matrix is in the other triangle. The QR decomposition of A is the LQ decomposition of its
// transpose. In U S V^T the outer factors exchange places. The determinant and the inverse commute with
// transposition. Triangular systems are solved from the other side.
#pragma once

#include <algorithm>
#include <cstring>

#include "cpu/linalg/routines.h"
#include "rushlight/allocator.h"
#include "rushlight/caller_locks.h"
#include "rushlight/error.h"
#include "rushlight/kernel.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {

/// Memory that one thread uses during a call.
template <class T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(int64_t count)
        : bytes_(sizeof(T) * static_cast<size_t>(std::max<int64_t>(count, 1))), memory_(allocate(bytes_)) {}
    Buffer(Buffer&& other) noexcept
        : bytes_(other.bytes_), memory_(std::exchange(other.memory_, Allocation{})) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(bytes_, other.bytes_);
        std::swap(memory_, other.memory_);
        return *this;
    }
    ~Buffer() {
        if (memory_.data) release(memory_, bytes_);
    }

    T* data() const { return static_cast<T*>(memory_.data); }
    T& operator[](int64_t i) const { return data()[i]; }

  private:
    size_t bytes_ = 0;
    Allocation memory_{};
};

/// An array of integers of the size that the LAPACK library uses.
class LapackInts {
  public:
    explicit LapackInts(int64_t count) : data_(count) {}
    int64_t* data() const { return data_.data(); }
    int64_t operator[](int64_t i) const { return lapack::int_at(data(), i); }
    void set(int64_t i, int64_t value) const { lapack::set_int_at(data(), i, value); }
    void load(const int32_t* from, int64_t count) const {
        for (int64_t i = 0; i < count; ++i) set(i, from[i]);
    }
    void store(int32_t* to, int64_t count) const {
        for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int32_t>((*this)[i]);
    }

  private:
    Buffer<int64_t> data_;
};

/// Copies a matrix. Both sides may have any strides.
template <class T>
void copy_matrix(T* out, int64_t out_row, int64_t out_column, const T* in, int64_t in_row, int64_t in_column,
                 int64_t rows, int64_t columns) {
    if (out_column != 1 && out_row == 1) {  // write along contiguous rows
        std::swap(out_row, out_column);
        std::swap(in_row, in_column);
        std::swap(rows, columns);
    }
    if (out_column == 1 && in_column == 1) {
        for (int64_t i = 0; i < rows; ++i)
            std::memcpy(static_cast<void*>(out + i * out_row), in + i * in_row,
                        sizeof(T) * static_cast<size_t>(columns));
        return;
    }
    constexpr int64_t kTile = 16;  // transpose tiles that fit in the first-level cache
    for (int64_t i0 = 0; i0 < rows; i0 += kTile) {
        const int64_t i1 = std::min(i0 + kTile, rows);
        for (int64_t j0 = 0; j0 < columns; j0 += kTile) {
            const int64_t j1 = std::min(j0 + kTile, columns);
            for (int64_t i = i0; i < i1; ++i)
                for (int64_t j = j0; j < j1; ++j)
                    out[i * out_row + j * out_column] = in[i * in_row + j * in_column];
        }
    }
}

/// The batch of matrices in a view. The last two dimensions are those of a matrix, and the dimensions before them are
/// batch dimensions.
template <class T>
class Matrices {
  public:
    int64_t rows = 0, columns = 0;
    int64_t row_stride = 0, column_stride = 0;

    explicit Matrices(const View& v) : view_(v) {
        if (v.ndim < 2) return;  // undefined, or not requested
        rows = v.size(-2);
        columns = v.size(-1);
        row_stride = v.stride(-2);
        column_stride = v.stride(-1);
    }
    bool defined() const { return view_.ndim >= 2; }

    /// Returns the address of the first element of matrix number b of the batch.
    T* at(int64_t b) const {
        if (view_.contiguous) return view_.as<T>() + b * rows * columns;
        int64_t offset = 0;
        for (int d = view_.ndim - 3; d >= 0; --d) {
            offset += b % view_.sizes[d] * view_.strides[d];
            b /= view_.sizes[d];
        }
        return view_.as<T>() + offset;
    }
    /// These functions copy matrix number b of the batch to other memory (to_rows, to_columns) or from other memory
    /// (from_columns). There, successive rows (to_rows) or columns (to_columns, from_columns) are `stride` elements
    /// apart.
    void to_rows(int64_t b, T* out, int64_t stride) const {
        copy_matrix(out, stride, 1, at(b), row_stride, column_stride, rows, columns);
    }
    void to_columns(int64_t b, T* out, int64_t stride) const {
        copy_matrix(out, 1, stride, at(b), row_stride, column_stride, rows, columns);
    }
    void from_columns(int64_t b, const T* in, int64_t stride) const {
        copy_matrix(at(b), row_stride, column_stride, in, 1, stride, rows, columns);
    }

  private:
    const View& view_;
};

/// Raises LinAlgError if an element of matrix b is not finite, because LAPACK would print a message or not
/// terminate.
template <class T>
void check_finite(const char* op, const T* x, int64_t count, int64_t b) {
    const auto* parts = reinterpret_cast<const Real<T>*>(x);
    Real<T> none(0);
    for (int64_t i = 0; i < count * static_cast<int64_t>(sizeof(T) / sizeof(Real<T>)); ++i)
        none += parts[i] * 0;
    if (none != 0)
        throw_linalg("%s: matrix %lld of the batch has elements that are not finite", op, (long long)b);
}

/// Returns the number of matrices of a view: the product of the dimensions before the last two.
inline int64_t count_matrices(const View& v) {
    int64_t n = 1;
    for (int d = 0; d < v.ndim - 2; ++d) n *= v.sizes[d];
    return n;
}

/// Calls `body(begin, end)` for the matrices 0 to count - 1. `work` is the number of operations for one matrix.
/// Small matrices are divided among rushlight's threads; large matrices are processed one after the other with LAPACK's
/// threads.
template <class F>
void for_matrices(int64_t count, double work, F&& body) {
    if (count <= 0) return;
    // Work of less than about a millisecond takes longer with OpenBLAS's threads, and much longer on busy processors.
    constexpr double kLarge = 1 << 24, kGrain = 1 << 16, kCall = 1 << 9;
    const WithoutCallerLocks others_run(WithoutCallerLocks::While::Computing,
                                        work * static_cast<double>(count) >= kGrain);
    if (work >= kLarge && !in_parallel()) {
        ThreadLease lease;
        lapack::Threads threads(lease.threads());
        body(int64_t{0}, count);
    } else {
        lapack::Threads threads(1);
        parallel_for(0, count, std::max<int64_t>(1, static_cast<int64_t>(kGrain / (work + kCall))), body);
    }
}

/// Calls `f(T())` for the type of a matrix's elements.
template <class F>
void with_scalar(const char* op, DType t, F&& f) {
    switch (t) {
        case DType::Float32: return f(float{});
        case DType::Float64: return f(double{});
        case DType::Complex64: return f(Complex<float>{});
        case DType::Complex128: return f(Complex<double>{});
        default: throw_not_implemented("%s: no kernel for dtype %s on the CPU", op, name(t));
    }
}

/// Converts the result of a workspace query to a size.
template <class T>
int64_t workspace_size(const T& answer) {
    // A float32 rounds large sizes, possibly down.
    return static_cast<int64_t>(static_cast<double>(*reinterpret_cast<const Real<T>*>(&answer)) *
                                (1 + 1e-6)) +
           1;
}

template <class T>
T conjugate(T x) {
    if constexpr (kIsComplex<T>) return conj(x);
    else return x;
}
template <class T>
Real<T> real_part(const T& x) {
    if constexpr (kIsComplex<T>) return x.re;
    else return x;
}

// Scratch memory of a routine. `query(answer, -1)` calls the routine, which writes the size that it needs.
template <class T>
class Workspace {
  public:
    template <class Query>
    explicit Workspace(Query&& query) {
        T answer{};
        query(&answer, int64_t{-1});
        size_ = workspace_size(answer);
        data_ = Buffer<T>(size_);
    }
    T* data() const { return data_.data(); }
    int64_t size() const { return size_; }

  private:
    int64_t size_ = 0;
    Buffer<T> data_;
};

}  // namespace rushlight::cpu
