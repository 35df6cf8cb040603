// LDL factorizations of symmetric and Hermitian matrices, with pivots of one and two rows (Bunch and Kaufman, 1977), and the
// solution of systems with them. Factors and pivots have the layout of LAPACK's sytrf for the lower triangle.
#include "cuda/kernels.h"
#include "cuda/kernels/triangles.cuh"

namespace rushlight::cuda {
namespace {

/// Factorizes the lower triangles of n by n matrices in place. One block processes each matrix. `work` has 2 * n
/// elements for each matrix.
template <class T>
__global__ void __launch_bounds__(kThreads)
    factorize_ldl(const Matrices<T> a, int64_t count, int64_t n, bool hermitian, T* work, int32_t* pivots,
                  int32_t* singular) {
    using R = Real<T>;
    constexpr R kAlpha =
        static_cast<R>(0.6403882032022076);  // (1 + sqrt(17)) / 8 bounds the growth of elements
    __shared__ Values<Pivot<T>> room;
    const auto over_block = [&](const Pivot<T>& own) {
        return over_lanes(room.x, threadIdx.x, kThreads, own, BetterPivot());
    };
    const auto adjoint = [&](T x) { return hermitian ? conjugated(x) : x; };
    for (int64_t b = blockIdx.x; b < count; b += gridDim.x) {
        if (threadIdx.x == 0) singular[b] = 0;
        if (hermitian)
            for (int64_t i = threadIdx.x; i < n; i += kThreads) a.at(b, i, i) = T(real_part(a.at(b, i, i)));
        __syncthreads();
        for (int64_t k = 0, step = 1; k < n; k += step) {
            step = 1;
            // Row `with` is exchanged with the last row of the pivot.
            int64_t with = k;
            const R own = pivot_size(a.at(b, k, k));
            Pivot<T> column{0, k};
            for (int64_t i = k + 1 + threadIdx.x; i < n; i += kThreads)
                column = BetterPivot()(column, {pivot_size(a.at(b, i, k)), i});
            column = over_block(column);
            const bool none = own != own || (own == 0 && column.size == 0);
            if (!none && own < kAlpha * column.size) {
                const int64_t r = column.row;
                Pivot<T> row{0, k};
                for (int64_t i = k + threadIdx.x; i < n; i += kThreads)
                    if (i != r)
                        row = BetterPivot()(row, {pivot_size(i < r ? a.at(b, r, i) : a.at(b, i, r)), i});
                row = over_block(row);
                if (own < kAlpha * column.size * (column.size / row.size)) {
                    with = r;
                    if (pivot_size(a.at(b, r, r)) < kAlpha * row.size) step = 2;
                }
            }
            const int64_t to = k + step - 1, rest = k + step;
            __syncthreads();  // all threads have read the elements that are exchanged
            if (with != to) {
                const auto exchange = [&](T& x, T& y) {
                    const T other = x;
                    x = y;
                    y = other;
                };
                for (int64_t i = with + 1 + threadIdx.x; i < n; i += kThreads)
                    exchange(a.at(b, i, to), a.at(b, i, with));
                for (int64_t i = to + 1 + threadIdx.x; i < with; i += kThreads) {
                    const T below = a.at(b, i, to);
                    a.at(b, i, to) = adjoint(a.at(b, with, i));
                    a.at(b, with, i) = adjoint(below);
                }
                if (threadIdx.x == 0) {
                    exchange(a.at(b, to, to), a.at(b, with, with));
                    a.at(b, with, to) = adjoint(a.at(b, with, to));
                    if (step == 2) exchange(a.at(b, to, k), a.at(b, with, k));
                }
                __syncthreads();
            }
            if (threadIdx.x == 0) {
                pivots[b * n + k] = static_cast<int32_t>(step == 2 ? -(with + 1) : with + 1);
                if (step == 2) pivots[b * n + k + 1] = pivots[b * n + k];
                if (none && singular[b] == 0) singular[b] = static_cast<int32_t>(k + 1);
            }
            if (none) continue;
            // The columns of L are the columns of the pivot multiplied by the inverse of D.
            T *const l0 = work + b * 2 * n, *const l1 = l0 + n;
            const T corner = a.at(b, rest - 1, k);
            if (step == 1) {
                const T inverse = T(1) / corner;
                for (int64_t j = rest + threadIdx.x; j < n; j += kThreads) l0[j] = a.at(b, j, k) * inverse;
            } else {
                // D is divided by its element beside the diagonal, so that no product overflows.
                const T d0 = a.at(b, k, k) / adjoint(corner), d1 = a.at(b, k + 1, k + 1) / corner,
                        inverse = T(1) / (d0 * d1 - T(1));
                for (int64_t j = rest + threadIdx.x; j < n; j += kThreads) {
                    const T x = a.at(b, j, k), y = a.at(b, j, k + 1);
                    l0[j] = (d1 * x - y) * inverse / adjoint(corner);
                    l1[j] = (d0 * y - x) * inverse / corner;
                }
            }
            __syncthreads();
            const int64_t left = n - rest;
            for (int64_t index = threadIdx.x; index < left * left; index += kThreads) {
                const int64_t i = rest + index / left, j = rest + index % left;
                if (j > i) continue;
                T update = a.at(b, i, k) * adjoint(l0[j]);
                if (step == 2) update = update + a.at(b, i, k + 1) * adjoint(l1[j]);
                const T x = a.at(b, i, j) - update;
                a.at(b, i, j) = hermitian && i == j ? T(real_part(x)) : x;
            }
            __syncthreads();
            for (int64_t j = rest + threadIdx.x; j < n; j += kThreads) {
                a.at(b, j, k) = l0[j];
                if (step == 2) a.at(b, j, k + 1) = l1[j];
            }
            __syncthreads();
        }
    }
}

/// Copies pivots. If the pivots of a matrix are neither row numbers nor pairs of negative row numbers, raises the alarm
/// and replaces all of them by pivots that exchange no rows.
struct CheckLdlPivots {
    int32_t* out;
    const int32_t* pivots;
    int64_t n;
    Alarm alarm;
    __device__ void operator()(int64_t b) const {
        const int32_t* const own = pivots + b * n;
        bool good = true;
        for (int64_t i = 0; i < n && good; ++i) {
            const bool pair = own[i] < 0;
            good = fits(pair ? -int64_t{own[i]} : own[i]);
            if (pair && good) good = ++i < n && fits(-int64_t{own[i]});
        }
        if (!good) alarm.raise(Cause::BadPivot);
        for (int64_t i = 0; i < n; ++i) out[b * n + i] = good ? own[i] : static_cast<int32_t>(i + 1);
    }

  private:
    __device__ bool fits(int64_t row) const { return row >= 1 && row <= n; }
};

/// The row exchange of the pivot that begins in row k.
struct LdlExchange {
    int64_t rows, from, to;  // the number of rows of the pivot, and the rows that are exchanged
    __device__ LdlExchange(const int32_t* pivots, int64_t k)
        : rows(pivots[k] < 0 ? 2 : 1),
          from(k + rows - 1),
          to((pivots[k] < 0 ? -int64_t{pivots[k]} : pivots[k]) - 1) {}
};

/// Applies the row exchange of each pivot to the columns of L to the left of the pivot, because the factors in LAPACK's
/// form lack these exchanges. Writes zeros beside the diagonal of D. Each thread processes one column.
template <class T>
struct CompleteTriangle {
    Matrices<T> l;
    const int32_t* pivots;
    int64_t n;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / n, j = index % n;
        const int32_t* const own = pivots + b * n;
        for (int64_t k = 0, rows; k < n; k += rows) {
            const LdlExchange exchange(own, k);
            rows = exchange.rows;
            if (k == j && rows == 2) l.at(b, k + 1, k) = T(0);
            if (k <= j) continue;
            const T x = l.at(b, exchange.from, j);
            l.at(b, exchange.from, j) = l.at(b, exchange.to, j);
            l.at(b, exchange.to, j) = x;
        }
    }
};

/// Exchanges rows of right-hand sides in the order of the pivots, or in the opposite order. Each thread processes one
/// column.
template <class T>
struct ExchangeForLdl {
    Matrices<T> x;
    const int32_t* pivots;
    int64_t n, width;
    bool backwards;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / width, c = index % width;
        const int32_t* const own = pivots + b * n;
        if (backwards)
            for (int64_t k = n - 1; k >= 0; --k) {
                if (own[k] < 0) --k;
                exchange(b, c, LdlExchange(own, k));
            }
        else
            for (int64_t k = 0; k < n;) {
                const LdlExchange pivot(own, k);
                exchange(b, c, pivot);
                k += pivot.rows;
            }
    }

  private:
    __device__ void exchange(int64_t b, int64_t c, const LdlExchange& pivot) const {
        const T other = x.at(b, pivot.from, c);
        x.at(b, pivot.from, c) = x.at(b, pivot.to, c);
        x.at(b, pivot.to, c) = other;
    }
};

/// Solves D x = b in place. Each thread processes one pivot of one column.
template <class T>
struct SolveDiagonal {
    Matrices<T> ld, x;
    const int32_t* pivots;
    int64_t n, width;
    bool hermitian;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / (n * width), k = index / width % n, c = index % width;
        const int32_t* const own = pivots + b * n;
        if (own[k] > 0) {
            const T d = ld.at(b, k, k);
            x.at(b, k, c) = x.at(b, k, c) / (hermitian ? T(real_part(d)) : d);
            return;
        }
        if (is_second(own, k)) return;
        const T corner = ld.at(b, k + 1, k), other = hermitian ? conjugated(corner) : corner;
        const T d0 = ld.at(b, k, k) / other, d1 = ld.at(b, k + 1, k + 1) / corner, divisor = d0 * d1 - T(1);
        const T x0 = x.at(b, k, c) / other, x1 = x.at(b, k + 1, c) / corner;
        x.at(b, k, c) = (d1 * x0 - x1) / divisor;
        x.at(b, k + 1, c) = (d0 * x1 - x0) / divisor;
    }

  private:
    /// Whether row k is the second row of a pair. It is if the number of successive negative pivots directly before row
    /// k is odd.
    __device__ bool is_second(const int32_t* own, int64_t k) const {
        int64_t before = k;
        while (before > 0 && own[before - 1] < 0) --before;
        return (k - before) % 2 == 1;
    }
};

}  // namespace

BackendStatus linalg_ldl(const KernelArgs* args) {
    const View &ld = args->out(0), &pivots = args->out(1), &info = args->out(2), &a = args->in(0);
    return by_scalar(args, a.dtype, [&]<class T>(T) {
        if (ld.numel == 0) return queue_zeros_if_any(info, args->context);
        const int64_t n = a.size(-1), count = count_matrices(a);
        const DenseOut<T> to(args->context, ld);
        const DenseOut<int32_t> order(args->context, pivots), singular(args->context, info);
        queue_dense(to.data(), a, args->context);
        launch(&factorize_ldl<T>, block_for_each(count), queue_of(*args), row_major(to.data(), a), count, n,
               args->params[0].as_bool(), scratch<T>(args->context, 2 * count * n), order.data(),
               singular.data());
        queue_for_each(*args, ld.numel, ClearUpper<T>{to.data(), n});
        to.finish();
        order.finish();
        singular.finish();
    });
}

BackendStatus linalg_ldl_solve(const KernelArgs* args) {
    const View &x = args->out(0), &ld = args->in(0), &b = args->in(2);
    return by_scalar(args, x.dtype, [&]<class T>(T) {
        if (x.numel == 0) return;
        KernelContext* const context = args->context;
        const bool hermitian = args->params[0].as_bool();
        const int64_t n = ld.size(-1), width = b.size(-1), count = count_matrices(ld);
        auto* const pivots = scratch<int32_t>(context, count * n);
        queue_for_each(*args, count,
                       CheckLdlPivots{pivots, dense<int32_t>(context, args->in(1)), n, alarm_of(context)});
        const Matrices<T> given = row_major(const_cast<T*>(dense<T>(context, ld)), ld),
                          l = row_major(copied<T>(context, ld), ld);
        queue_for_each(*args, count * n, CompleteTriangle<T>{l, pivots, n});

        const DenseOut<T> to(context, x);
        queue_dense(to.data(), b, context);
        const Matrices<T> right = row_major(to.data(), b);
        queue_for_each(*args, count * width, ExchangeForLdl<T>{right, pivots, n, width, false});
        queue_triangular(*args, count, n, width, l, right, false, true);
        queue_for_each(*args, count * n * width, SolveDiagonal<T>{given, right, pivots, n, width, hermitian});
        queue_triangular(*args, count, n, width, l.transposed(), right, true, true, hermitian);
        queue_for_each(*args, count * width, ExchangeForLdl<T>{right, pivots, n, width, true});
        to.finish();
    });
}

}  // namespace rushlight::cuda
