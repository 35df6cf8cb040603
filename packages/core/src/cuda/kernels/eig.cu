// Eigenvalues and eigenvectors of square matrices: the reduction to Hessenberg form by reflections, the QR iteration with
// shifts, which makes the matrix triangular, and back substitution. All steps compute with complex numbers, whose imaginary
// parts stay zero as long as the matrix and the shifts are real. Source: Golub and Van Loan, "Matrix computations", sections
// 7.4 to 7.6 of the fourth edition.
#include "cuda/kernels.h"
#include "cuda/kernels/hessenberg.cuh"
#include "ops/functors/complex_math.h"

namespace rushlight::cuda {
namespace {

/// A rotation with c and s such that [[c, s], [-conj(s), c]] @ (x, y) = (r, 0).
template <class C>
struct Givens {
    Real<C> c = 1;
    C s = C(0), r;

    __device__ Givens(C x, C y) : r(x) {
        const Real<C> size_x = magnitude(x), size_y = magnitude(y), norm = std::hypot(size_x, size_y);
        if (size_y < kTiny<C>) return;
        const C phase = size_x < kTiny<C> ? C(1) : x / C(size_x);
        c = size_x / norm;
        s = phase * (conj(y) / C(norm));
        r = phase * C(norm);
    }
    __device__ void rows(C& x, C& y) const {
        const C a = C(c) * x + s * y;
        y = C(c) * y - conj(s) * x;
        x = a;
    }
    /// Multiplies two columns of a matrix from the right by the inverse of the rotation.
    __device__ void columns(C& x, C& y) const {
        const C a = C(c) * x + conj(s) * y;
        y = C(c) * y - s * x;
        x = a;
    }
};

/// Returns the eigenvalue of [[a, b], [c, d]] that is closer to d (Wilkinson's shift).
template <class C>
__device__ C shift_of(C a, C b, C c, C d) {
    const C half = (a - d) * C(Real<C>(0.5)), product = b * c,
            root = functors::math::sqrt(half * half + product);
    const C sum = half + root, difference = half - root,
            larger = pivot_size(sum) >= pivot_size(difference) ? sum : difference;
    return pivot_size(larger) < kTiny<C> ? d : d - product / larger;
}

struct Later {
    __device__ int64_t operator()(int64_t a, int64_t b) const { return a > b ? a : b; }
};

/// Reduces Hessenberg matrices to triangular matrices. One block processes each matrix. If the memory of `q` is not
/// null, `q` is multiplied by the rotations. Otherwise only the diagonal of the result is correct. The magnitudes of
/// the matrices' elements are at most about n.
template <class C>
__global__ void __launch_bounds__(kThreads)
    make_triangular(const Matrices<C> h, const Matrices<C> q, int64_t count, int64_t n, const Alarm alarm) {
    using R = Real<C>;
    // An eigenvalue needs 2 or 3 iterations. If it needs 10, another shift is tried.
    constexpr int kMost = 90, kUnusual = 10;
    constexpr R kEpsilon = std::numeric_limits<R>::epsilon();
    __shared__ Values<int64_t> room;
    for (int64_t b = blockIdx.x; b < count; b += gridDim.x) {
        int iterations = 0;
        for (int64_t last = n - 1; last > 0;) {
            // The rows from `first` to `last` form a separate matrix, because the subdiagonal element in row `first` is
            // negligible.
            int64_t first = 0;
            // Products of smaller elements lose their precision. Rounding errors of large elements can keep an element between
            // tiny ones from vanishing. It is then compared with the largest element of the matrix, which is about 1.
            const R negligible =
                iterations < kUnusual ? kTiny<C> / kEpsilon * static_cast<R>(n) : kEpsilon / 4;
            for (int64_t k = 1 + threadIdx.x; k <= last; k += kThreads) {
                R beside = pivot_size(h.at(b, k - 1, k - 1)) + pivot_size(h.at(b, k, k));
                if (beside == 0) beside = 1;
                const R size = pivot_size(h.at(b, k, k - 1));
                if (size <= kEpsilon * beside || size <= negligible) first = k;
            }
            first = over_lanes(room.x, threadIdx.x, kThreads, first, Later());
            if (first > 0 && threadIdx.x == 0) h.at(b, first, first - 1) = C(0);
            if (first == last) {
                --last;
                iterations = 0;
                __syncthreads();
                continue;
            }
            if (iterations == kMost) {
                if (threadIdx.x == 0) alarm.raise(Cause::NotConverged);
                break;
            }
            const C corner = h.at(b, last, last), left = h.at(b, last, last - 1);
            C shift = shift_of(h.at(b, last - 1, last - 1), h.at(b, last - 1, last), left, corner);
            if (++iterations % kUnusual == 0) shift = corner + C(R(0.75) * pivot_size(left));
            C x = h.at(b, first, first) - shift, y = h.at(b, first + 1, first);
            const int64_t columns_end = q.data ? n : last + 1, rows_begin = q.data ? 0 : first;
            __syncthreads();  // all threads have read these elements
            for (int64_t k = first; k < last; ++k) {
                if (k > first) {
                    x = h.at(b, k, k - 1);
                    y = h.at(b, k + 1, k - 1);
                }
                const Givens<C> rotation(x, y);
                for (int64_t j = k + threadIdx.x; j < columns_end; j += kThreads)
                    rotation.rows(h.at(b, k, j), h.at(b, k + 1, j));
                for (int64_t i = threadIdx.x; q.data && i < n; i += kThreads)
                    rotation.columns(q.at(b, i, k), q.at(b, i, k + 1));
                __syncthreads();
                if (k > first && threadIdx.x == 0) {
                    h.at(b, k, k - 1) = rotation.r;
                    h.at(b, k + 1, k - 1) = C(0);
                }
                const int64_t rows_end = k + 2 < last ? k + 3 : last + 1;
                for (int64_t i = rows_begin + threadIdx.x; i < rows_end; i += kThreads)
                    rotation.columns(h.at(b, i, k), h.at(b, i, k + 1));
                __syncthreads();
            }
        }
    }
}

template <class C>
struct CopyEigenvalues {
    Matrices<C> triangles;
    const int32_t* exponents;
    int64_t n;
    C* out;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / n, i = index % n;
        out[index] = scaled(triangles.at(b, i, i), exponents[b]);
    }
};

/// Computes the eigenvectors of upper triangular matrices. They are the columns of upper triangular matrices. Each
/// thread computes one eigenvector.
template <class C>
struct SolveForVector {
    Matrices<C> t, x;
    int64_t n;

    __device__ void operator()(int64_t index) const {
        using R = Real<C>;
        constexpr R kEpsilon = std::numeric_limits<R>::epsilon(),
                    kLarge = sizeof(R) == 4 ? R(1e15) : R(1e100);
        const int64_t b = index / n, k = index % n;
        const C value = t.at(b, k, k);
        // The difference of nearly equal eigenvalues is replaced by their precision, to avoid a division by zero.
        // Vectors that become large are scaled.
        const R precision = kEpsilon * magnitude(value),
                least = precision > 1 / kLarge ? precision : 1 / kLarge;
        x.at(b, k, k) = C(1);
        for (int64_t i = k - 1; i >= 0; --i) {
            C sum = C(0);
            for (int64_t j = i + 1; j <= k; ++j) sum = sum + t.at(b, i, j) * x.at(b, j, k);
            C apart = t.at(b, i, i) - value;
            if (pivot_size(apart) < least) apart = C(least);
            const C found = -(sum / apart);
            x.at(b, i, k) = found;
            if (const R size = magnitude(found); size > kLarge)
                for (int64_t j = i; j <= k; ++j) x.at(b, j, k) = x.at(b, j, k) / C(size);
        }
    }
};

/// Multiplies matrices by upper triangular matrices.
template <class C>
struct TimesUpper {
    Matrices<C> q, x, out;
    int64_t n;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / (n * n), i = index / n % n, k = index % n;
        C sum = C(0);
        for (int64_t j = 0; j <= k; ++j) sum = sum + q.at(b, i, j) * x.at(b, j, k);
        out.at(b, i, k) = sum;
    }
};

/// Divides each column by its norm, and by the phase of its largest element, so that this element becomes real.
template <class C>
struct Normalize {
    Matrices<C> x;
    int64_t n;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / n, k = index % n;
        C largest = C(0);
        double square = 0;
        for (int64_t i = 0; i < n; ++i) {
            const C element = x.at(b, i, k);
            const auto size = static_cast<double>(magnitude(element));
            square += size * size;
            if (magnitude(element) > magnitude(largest)) largest = element;
        }
        const C divisor = largest * C(static_cast<Real<C>>(std::sqrt(square)) / magnitude(largest));
        for (int64_t i = 0; i < n; ++i) x.at(b, i, k) = x.at(b, i, k) / divisor;
    }
};

}  // namespace

BackendStatus linalg_eig(const KernelArgs* args) {
    const View &values = args->out(0), &vectors = args->out(1), &a = args->in(0);
    return by_scalar(args, a.dtype, [&]<class T>(T) {
        using C = Complex<Real<T>>;
        if (a.numel == 0) return;
        KernelContext* const context = args->context;
        const bool wanted = args->params[0].as_bool();
        const int64_t n = a.size(-1), count = count_matrices(a);
        const Matrices<C> h = row_major(copied<C>(context, a), a),
                          q = row_major(wanted ? scratch<C>(context, a.numel) : nullptr, a);
        const int32_t* const exponents = queue_scaling(*args, h.data, count, n * n);
        queue_hessenberg(*args, count, n, h, q);
        launch(&make_triangular<C>, block_for_each(count), queue_of(*args), h, q, count, n,
               alarm_of(context));

        const DenseOut<C> to(context, values);
        queue_for_each(*args, count * n, CopyEigenvalues<C>{h, exponents, n, to.data()});
        to.finish();
        if (!wanted) return;
        const Matrices<C> x = row_major(scratch<C>(context, a.numel), a);
        const DenseOut<C> columns(context, vectors);
        queue_for_each(*args, count * n, SolveForVector<C>{h, x, n});
        queue_for_each(*args, a.numel, TimesUpper<C>{q, x, row_major(columns.data(), a), n});
        queue_for_each(*args, count * n, Normalize<C>{row_major(columns.data(), a), n});
        columns.finish();
    });
}

}  // namespace rushlight::cuda
