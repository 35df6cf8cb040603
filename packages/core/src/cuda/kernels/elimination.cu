// Factorizations of matrices by elimination, and the solution of systems of equations. Results have the same layout as
// LAPACK's results: see cpu/linalg/. Some columns are eliminated at a time, by one block for each matrix. Then all blocks
// update the rest of the matrices.
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/triangles.cuh"

namespace rushlight::cuda {
namespace {

// --- P L U ------------------------------------------------------------------------------------------

/// Factorizes the columns from `first` to `last` of matrices with `m` rows. Rows are exchanged in these columns only.
/// `singular` is the number, counted from 1, of the first column without a pivot, or 0 if all columns have a pivot.
template <class T>
__global__ void __launch_bounds__(kThreads)
    eliminate_panel(const Matrices<T> a, int64_t count, int64_t m, int64_t first, int64_t last, int64_t steps,
                    int32_t* pivots, int32_t* singular) {
    __shared__ Values<Pivot<T>> room;
    for (int64_t b = blockIdx.x; b < count; b += gridDim.x)
        for (int64_t j = first; j < last; ++j) {
            Pivot<T> best{-1, m};
            for (int64_t i = j + threadIdx.x; i < m; i += kThreads) {
                const Real<T> size = pivot_size(a.at(b, i, j));
                // A NaN on the diagonal stays there, and no other NaN is a pivot.
                const Real<T> compared = size == size ? size : i == j ? static_cast<Real<T>>(INFINITY) : -1;
                best = BetterPivot()(best, Pivot<T>{compared, i});
            }
            best = over_lanes(room.x, threadIdx.x, kThreads, best, BetterPivot());
            const bool none = best.size == 0;
            if (none) best.row = j;
            if (threadIdx.x == 0) {
                pivots[b * steps + j] = static_cast<int32_t>(best.row + 1);
                if (none && singular[b] == 0) singular[b] = static_cast<int32_t>(j + 1);
            }
            if (none) continue;
            __syncthreads();
            for (int64_t c = first + threadIdx.x; best.row != j && c < last; c += kThreads) {
                const T other = a.at(b, j, c);
                a.at(b, j, c) = a.at(b, best.row, c);
                a.at(b, best.row, c) = other;
            }
            __syncthreads();
            const T scale = T(1) / a.at(b, j, j);
            for (int64_t i = j + 1 + threadIdx.x; i < m; i += kThreads) a.at(b, i, j) = a.at(b, i, j) * scale;
            __syncthreads();
            const int64_t width = last - j - 1;
            for (int64_t k = threadIdx.x; k < (m - j - 1) * width; k += kThreads) {
                const int64_t i = j + 1 + k / (width ? width : 1), c = j + 1 + k % (width ? width : 1);
                a.at(b, i, c) = a.at(b, i, c) - a.at(b, i, j) * a.at(b, j, c);
            }
            __syncthreads();
        }
}

/// Exchanges the rows of the pivots from `first` to `last`, forwards or backwards, in `width` columns. Each thread processes
/// one column.
template <class T>
struct ExchangeRows {
    Matrices<T> a;
    const int32_t* pivots;
    int64_t width, first, last, steps;
    bool backwards;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / width, c = index % width;
        for (int64_t k = first; k < last; ++k) {
            const int64_t i = backwards ? first + last - 1 - k : k, other = pivots[b * steps + i] - 1;
            if (other == i) continue;
            const T x = a.at(b, i, c);
            a.at(b, i, c) = a.at(b, other, c);
            a.at(b, other, c) = x;
        }
    }
};

struct FillZeros {
    int32_t* out;
    __device__ void operator()(int64_t i) const { out[i] = 0; }
};

/// Factorizes m by n matrices in place.
template <class T>
void queue_lu(const KernelArgs& args, int64_t count, int64_t m, int64_t n, const Matrices<T>& a,
              int32_t* pivots, int32_t* singular) {
    const int64_t steps = m < n ? m : n;
    queue_for_each(args, count, FillZeros{singular});
    for (int64_t first = 0; count > 0 && first < steps; first += kPanel) {
        const int64_t last = first + kPanel < steps ? first + kPanel : steps;
        launch(&eliminate_panel<T>, block_for_each(count), queue_of(args), a, count, m, first, last, steps,
               pivots, singular);
        if (first > 0)
            queue_for_each(args, count * first, ExchangeRows<T>{a, pivots, first, first, last, steps, false});
        if (last == n) continue;
        queue_for_each(args, count * (n - last),
                       ExchangeRows<T>{a.from(0, last), pivots, n - last, first, last, steps, false});
        queue_triangular(args, count, last - first, n - last, a.from(first, first), a.from(first, last),
                         false, true);
        queue_update(args, count,
                     SubtractProduct<T>{a.from(last, last), a.from(last, first), a.from(first, last),
                                        m - last, n - last, last - first, false, false, false});
    }
}

/// The factors of square matrices. As on the CPU, the transposes of the matrices are factorized, by columns.
template <class T>
struct Factors {
    int64_t count, n;
    Matrices<T> lu;  // the factors of the transposes
    int32_t* pivots;

    void queue_factorization(const KernelArgs& args, int32_t* singular) const {
        queue_lu(args, count, n, n, lu, pivots, singular);
    }
    /// Solves M X = x in place. `lu` holds the factors of the transpose of a matrix A. M is A if `transposed` is true;
    /// otherwise M is the transpose of A.
    void queue_solution(const KernelArgs& args, bool transposed, int64_t width, const Matrices<T>& x,
                        bool conjugate = false) const {
        if (count * width == 0) return;
        const ExchangeRows<T> exchange{x, pivots, width, 0, n, n, transposed};
        if (!transposed) {
            queue_for_each(args, count * width, exchange);
            queue_triangular(args, count, n, width, lu, x, false, true, conjugate);
            queue_triangular(args, count, n, width, lu, x, true, false, conjugate);
        } else {
            queue_triangular(args, count, n, width, lu.transposed(), x, false, false, conjugate);
            queue_triangular(args, count, n, width, lu.transposed(), x, true, true, conjugate);
            queue_for_each(args, count * width, exchange);
        }
    }
};

/// The memory of the factors and pivots: the operator's outputs, or scratch memory if these outputs are not wanted.
template <class T>
struct KeptFactors {
    DenseOut<T> lu_out;
    DenseOut<int32_t> pivots_out;
    Factors<T> f;

    KeptFactors(const KernelArgs& args, const View& a, const View& factors, const View& pivots)
        : lu_out(args.context, factors), pivots_out(args.context, pivots) {
        f.count = count_matrices(a);
        f.n = a.size(-1);
        T* const data = lu_out.data() ? lu_out.data() : scratch<T>(args.context, a.numel);
        queue_dense(data, a, args.context);
        f.lu = row_major(data, a).transposed();
        f.pivots = pivots_out.data() ? pivots_out.data() : scratch<int32_t>(args.context, f.count * f.n);
    }
    void finish() const {
        lu_out.finish();
        pivots_out.finish();
    }
};

// --- Determinants -----------------------------------------------------------------------------------

/// Multiplies the diagonal elements of each matrix. Writes the product to `det`, or its sign to `sign` and its
/// logarithm to `logarithm`.
template <class T>
struct MultiplyDiagonal {
    Matrices<T> lu;
    const int32_t* pivots;
    const T* given;  // the matrices
    int64_t n;
    T *det, *sign;
    Real<T>* logarithm;

    __device__ void operator()(int64_t b) const {
        T product(1), direction(1);
        Real<T> sum(0);
        for (int64_t i = 0; i < n; ++i) {
            const T d = lu.at(b, i, i);
            if (det) {
                product = product * d;
            } else {
                const Real<T> size = magnitude(d);
                direction = size == 0 ? T(0) : direction * (d / T(size));
                sum += std::log(size);
            }
            if (pivots[b * n + i] != i + 1) {
                product = -product;
                direction = -direction;
            }
        }
        // A NaN is not taken for a pivot, so a matrix with NaN can have a zero on the diagonal of its factor.
        if ((det ? product : direction) == T(0) && !is_finite(b)) {
            sum = static_cast<Real<T>>(NAN);
            product = direction = T(sum);
        }
        if (det) det[b] = product;
        if (sign) sign[b] = direction;
        if (logarithm) logarithm[b] = sum;
    }

  private:
    __device__ bool is_finite(int64_t b) const {
        for (int64_t i = b * n * n; i < (b + 1) * n * n; ++i)
            if (const Real<T> size = magnitude(given[i]); !(size < static_cast<Real<T>>(INFINITY)))
                return false;
        return true;
    }
};

// --- Cholesky ---------------------------------------------------------------------------------------

/// Factorizes the columns from `first` to `last` of the lower triangles of n by n matrices, from which the products of
/// the columns before `first` are already subtracted. `failed` is the order of the first leading minor that is not
/// positive, or 0 if all are positive. If `failed` is not 0, the last column of this minor and all later columns are
/// unchanged.
template <class T>
__global__ void __launch_bounds__(kThreads) cholesky_panel(const Matrices<T> a, int64_t count, int64_t n,
                                                           int64_t first, int64_t last, int32_t* failed) {
    for (int64_t b = blockIdx.x; b < count; b += gridDim.x) {
        if (failed[b] != 0) continue;
        for (int64_t j = first; j < last; ++j) {
            Real<T> rest = real_part(a.at(b, j, j));
            for (int64_t c = first; c < j; ++c) {
                const T x = a.at(b, j, c);
                rest -= real_part(x * conjugated(x));
            }
            __syncthreads();  // all threads have read the diagonal
            if (!(rest > 0)) {
                if (threadIdx.x == 0) failed[b] = static_cast<int32_t>(j + 1);
                break;
            }
            const Real<T> root = std::sqrt(rest);
            for (int64_t i = j + threadIdx.x; i < n; i += kThreads) {
                T sum = a.at(b, i, j);
                for (int64_t c = first; i > j && c < j; ++c)
                    sum = sum - a.at(b, i, c) * conjugated(a.at(b, j, c));
                a.at(b, i, j) = i == j ? T(root) : sum / T(root);
            }
            __syncthreads();
        }
    }
}

/// Writes the numbers from 0 to `rows` - 1, and then exchanges them as the pivots exchange rows.
struct FollowPivots {
    int64_t* order;
    const int32_t* pivots;
    int64_t rows, k;
    Alarm alarm;
    __device__ void operator()(int64_t b) const {
        int64_t* const own = order + b * rows;
        for (int64_t i = 0; i < rows; ++i) own[i] = i;
        for (int64_t i = 0; i < k; ++i) {
            const int64_t other = int64_t{pivots[b * k + i]} - 1;
            if (other < 0 || other >= rows) {
                alarm.raise(Cause::BadPivot);
                return;
            }
            const int64_t x = own[i];
            own[i] = own[other];
            own[other] = x;
        }
    }
};

/// Raises the alarm for pivots that are not row numbers. Replaces each of these pivots by an exchange of a row with
/// itself.
struct CheckPivots {
    int32_t* out;
    const int32_t* pivots;
    int64_t n;
    Alarm alarm;
    __device__ void operator()(int64_t i) const {
        const bool good = pivots[i] >= 1 && pivots[i] <= n;
        if (!good) alarm.raise(Cause::BadPivot);
        out[i] = good ? pivots[i] : static_cast<int32_t>(i % n + 1);
    }
};

}  // namespace

BackendStatus linalg_lu(const KernelArgs* args) {
    const View &lu = args->out(0), &pivots = args->out(1), &info = args->out(2), &a = args->in(0);
    return by_scalar(args, a.dtype, [&]<class T>(T) {
        if (lu.numel == 0) return queue_zeros_if_any(info, args->context);
        const DenseOut<T> to(args->context, lu);
        const DenseOut<int32_t> order(args->context, pivots), singular(args->context, info);
        queue_dense(to.data(), a, args->context);
        queue_lu(*args, count_matrices(a), a.size(-2), a.size(-1), row_major(to.data(), a), order.data(),
                 singular.data());
        to.finish();
        order.finish();
        singular.finish();
    });
}

BackendStatus linalg_cholesky(const KernelArgs* args) {
    const View &factor = args->out(0), &info = args->out(1), &a = args->in(0);
    return by_scalar(args, a.dtype, [&]<class T>(T) {
        if (factor.numel == 0) return queue_zeros_if_any(info, args->context);
        const int64_t n = a.size(-1), count = count_matrices(a);
        const DenseOut<T> to(args->context, factor);
        const DenseOut<int32_t> failed(args->context, info);
        queue_dense(to.data(), a, args->context);
        queue_for_each(*args, count, FillZeros{failed.data()});
        const Matrices<T> l = row_major(to.data(), a);
        for (int64_t first = 0; first < n; first += kPanel) {
            const int64_t last = first + kPanel < n ? first + kPanel : n;
            launch(&cholesky_panel<T>, block_for_each(count), queue_of(*args), l, count, n, first, last,
                   failed.data());
            const Matrices<T> panel = l.from(last, first);
            queue_update(*args, count,
                         SubtractProduct<T>{l.from(last, last), panel, panel.transposed(), n - last, n - last,
                                            last - first, false, true, true});
        }
        queue_for_each(*args, factor.numel, ClearUpper<T>{to.data(), n});
        to.finish();
        failed.finish();
    });
}

BackendStatus pivots_to_order(const KernelArgs* args) {
    return guarded([args] {
        const View &order = args->out(0), &pivots = args->in(0);
        if (order.numel == 0) return;
        queue_of(*args);
        const int64_t rows = args->params[0].as_int();
        const DenseOut<int64_t> to(args->context, order);
        queue_for_each(*args, order.numel / rows,
                       FollowPivots{to.data(), dense<int32_t>(args->context, pivots), rows, pivots.size(-1),
                                    alarm_of(args->context)});
        to.finish();
    });
}

BackendStatus linalg_solve(const KernelArgs* args) {
    const View &x = args->out(0), &info = args->out(1), &a = args->in(0), &b = args->in(1);
    return by_scalar(args, a.dtype, [&]<class T>(T) {
        if (a.numel == 0) return queue_zeros_if_any(info, args->context);
        const KeptFactors<T> made(*args, a, args->out(2), args->out(3));
        const DenseOut<int32_t> singular(args->context, info);
        made.f.queue_factorization(*args, singular.data());
        if (x.numel > 0) {
            const bool left = args->params[0].as_bool();
            const DenseOut<T> to(args->context, x);
            queue_dense(to.data(), b, args->context);
            const Matrices<T> right = row_major(to.data(), b);
            // X A = B is solved for the rows of B.
            made.f.queue_solution(*args, left, left ? b.size(-1) : b.size(-2),
                                  left ? right : right.transposed());
            to.finish();
        }
        singular.finish();
        made.finish();
    });
}

BackendStatus linalg_solve_again(const KernelArgs* args) {
    const View &x = args->out(0), &factors = args->in(1), &b = args->in(3);
    return by_scalar(args, x.dtype, [&]<class T>(T) {
        if (x.numel == 0) return;
        const bool left = args->params[0].as_bool(), transposed = args->params[1].as_bool();
        const int64_t n = factors.size(-1), count = count_matrices(factors);
        auto* pivots = scratch<int32_t>(args->context, count * n);
        queue_for_each(
            *args, count * n,
            CheckPivots{pivots, dense<int32_t>(args->context, args->in(2)), n, alarm_of(args->context)});
        const Factors<T> f{count, n, row_major(copied<T>(args->context, factors), factors).transposed(),
                           pivots};
        const DenseOut<T> to(args->context, x);
        queue_dense(to.data(), b, args->context);
        const Matrices<T> right = row_major(to.data(), b);
        f.queue_solution(*args, left != transposed, left ? b.size(-1) : b.size(-2),
                         left ? right : right.transposed(), transposed);
        to.finish();
    });
}

BackendStatus linalg_solve_triangular(const KernelArgs* args) {
    const View &x = args->out(0), &a = args->in(0), &b = args->in(1);
    return by_scalar(args, x.dtype, [&]<class T>(T) {
        if (x.numel == 0) return;
        const bool upper = args->params[0].as_bool(), left = args->params[1].as_bool();
        const DenseOut<T> to(args->context, x);
        queue_dense(to.data(), b, args->context);
        const Matrices<T> right = row_major(to.data(), b),
                          triangle = row_major(const_cast<T*>(dense<T>(args->context, a)), a);
        queue_triangular(*args, count_matrices(x), a.size(-1), left ? b.size(-1) : b.size(-2),
                         left ? triangle : triangle.transposed(), left ? right : right.transposed(),
                         upper == left, args->params[2].as_bool());
        to.finish();
    });
}

BackendStatus linalg_inv(const KernelArgs* args) {
    const View &inverse = args->out(0), &info = args->out(1), &a = args->in(0);
    return by_scalar(args, a.dtype, [&]<class T>(T) {
        if (a.numel == 0) return queue_zeros_if_any(info, args->context);
        const KeptFactors<T> made(*args, a, kAbsent, kAbsent);
        const DenseOut<int32_t> singular(args->context, info);
        made.f.queue_factorization(*args, singular.data());
        const DenseOut<T> to(args->context, inverse);
        queue_identity(*args, made.f.count, row_major(to.data(), a), made.f.n, made.f.n);
        made.f.queue_solution(*args, true, made.f.n, row_major(to.data(), a));
        to.finish();
        singular.finish();
    });
}

BackendStatus linalg_det(const KernelArgs* args) {
    const View &det = args->out(0), &a = args->in(0);
    return by_scalar(args, a.dtype, [&]<class T>(T) {
        if (det.numel == 0) return;
        const KeptFactors<T> made(*args, a, args->out(1), args->out(2));
        const DenseOut<T> to(args->context, det);
        made.f.queue_factorization(*args, scratch<int32_t>(args->context, made.f.count));
        queue_for_each(*args, made.f.count,
                       MultiplyDiagonal<T>{made.f.lu, made.f.pivots, dense<T>(args->context, a), made.f.n,
                                           to.data(), nullptr, nullptr});
        to.finish();
        made.finish();
    });
}

BackendStatus linalg_slogdet(const KernelArgs* args) {
    const View &sign = args->out(0), &logarithm = args->out(1), &a = args->in(0);
    return by_scalar(args, a.dtype, [&]<class T>(T) {
        if (sign.numel == 0) return;
        const KeptFactors<T> made(*args, a, args->out(2), args->out(3));
        const DenseOut<T> to(args->context, sign);
        const DenseOut<Real<T>> size(args->context, logarithm);
        made.f.queue_factorization(*args, scratch<int32_t>(args->context, made.f.count));
        queue_for_each(*args, made.f.count,
                       MultiplyDiagonal<T>{made.f.lu, made.f.pivots, dense<T>(args->context, a), made.f.n,
                                           nullptr, to.data(), size.data()});
        to.finish();
        size.finish();
        made.finish();
    });
}

}  // namespace rushlight::cuda
