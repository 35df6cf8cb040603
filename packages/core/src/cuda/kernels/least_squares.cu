// Least squares solutions. A QR decomposition of the matrix, or of its transpose if it is wide, leaves a system with a
// triangular matrix R. The driver gels solves it by substitution. All other drivers use the singular values of R, and leave
// out the singular values that count as zero.
#include "cuda/kernels.h"
#include "cuda/kernels/svd.cuh"
#include "cuda/kernels/triangles.cuh"

namespace rushlight::cuda {
namespace {

template <class T>
struct CheckFinite {
    const T* data;
    Alarm alarm;
    __device__ void operator()(int64_t i) const {
        if (!(magnitude(data[i]) < static_cast<Real<T>>(INFINITY))) alarm.raise(Cause::NotFinite);
    }
};

template <class T>
struct CheckFullRank {
    Matrices<T> r;
    int64_t n;
    Alarm alarm;
    __device__ void operator()(int64_t index) const {
        if (r.at(index / n, index % n, index % n) == T(0)) alarm.raise(Cause::NotFullRank);
    }
};

/// Copies `rows` rows of `width` elements, and writes zeros to the remaining rows below them.
template <class T>
struct CopyRows {
    Matrices<T> to, from;
    int64_t all_rows, rows, width;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / (all_rows * width), i = index / width % all_rows, c = index % width;
        to.at(b, i, c) = i < rows ? from.at(b, i, c) : T(0);
    }
};

/// Copies the columns of upper triangles to contiguous memory.
template <class T>
struct CopyTriangle {
    T* to;
    Matrices<T> r;
    int64_t n;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / (n * n), j = index / n % n, i = index % n;
        to[index] = i <= j ? r.at(b, i, j) : T(0);
    }
};

/// Singular values in descending order, and the limit below which they count as zero.
template <class R>
struct SingularValues {
    const R* values;
    int64_t n;
    R limit;  // relative to the largest one
    bool with_limit;  // whether a singular value that equals the limit is kept

    __device__ bool keeps(int64_t b, int64_t j) const {
        const R value = values[b * n + j], least = limit * values[b * n];
        return value > 0 && (value > least || (with_limit && value == least));
    }
};

template <class R>
struct CountRank {
    SingularValues<R> singular;
    int64_t* rank;
    __device__ void operator()(int64_t b) const {
        int64_t found = 0;
        while (found < singular.n && singular.keeps(b, found)) ++found;
        rank[b] = found;
    }
};

/// Computes S^-1 U^H x, with zeros for the singular values that count as zero.
template <class T>
struct Project {
    Matrices<T> u, x, out;
    int64_t width;
    SingularValues<Real<T>> singular;

    __device__ void operator()(int64_t index) const {
        const int64_t n = singular.n, b = index / (n * width), j = index / width % n, c = index % width;
        T sum = T(0);
        if (singular.keeps(b, j)) {
            for (int64_t i = 0; i < n; ++i) sum = sum + conjugated(u.at(b, i, j)) * x.at(b, i, c);
            sum = sum / T(singular.values[b * n + j]);
        }
        out.at(b, j, c) = sum;
    }
};

/// Computes conj(V) x.
template <class T>
struct Combine {
    Matrices<T> v, x, out;
    int64_t n, width;

    __device__ void operator()(int64_t index) const {
        const int64_t b = index / (n * width), i = index / width % n, c = index % width;
        T sum = T(0);
        for (int64_t j = 0; j < n; ++j) sum = sum + conjugated(v.at(b, i, j)) * x.at(b, j, c);
        out.at(b, i, c) = sum;
    }
};

enum Driver { Gels, Gelsy, Gelsd, Gelss };

/// Returns the bound below which singular values count as zero. It is the same bound as in LAPACK's driver.
template <class R>
R limit_of(double rcond, int64_t driver) {
    const auto given = static_cast<R>(rcond), precision = std::numeric_limits<R>::epsilon();
    if (driver == Gelsd) return given <= 0 || given >= 1 ? precision : given;
    if (driver == Gelss) return given < 0 ? precision : given;
    return given < 0 ? 0 : given;
}

}  // namespace

BackendStatus linalg_lstsq(const KernelArgs* args) {
    const View &solution = args->out(0), &rank = args->out(1), &singular_values = args->out(2),
               &a = args->in(0), &b = args->in(1);
    return by_scalar(args, a.dtype, [&]<class T>(T) {
        KernelContext* const context = args->context;
        if (solution.numel == 0 || a.numel == 0) {
            for (const View* v : {&solution, &rank, &singular_values}) queue_zeros_if_any(*v, context);
            return;
        }
        const int64_t driver = args->params[1].as_int(), m = a.size(-2), n = a.size(-1), width = b.size(-1),
                      count = count_matrices(a);
        const bool tall = m >= n;
        const int64_t least = tall ? n : m, length = tall ? m : n;
        T *const data = copied<T>(context, a), *const given = copied<T>(context, b);
        queue_for_each(*args, a.numel, CheckFinite<T>{data, alarm_of(context)});
        queue_for_each(*args, b.numel, CheckFinite<T>{given, alarm_of(context)});
        const Matrices<T> rows = row_major(data, a), r = tall ? rows : rows.transposed();
        T* const tau = scratch<T>(context, count * least);
        queue_qr(*args, count, length, least, r, tau);

        const DenseOut<T> to(context, solution);
        const Matrices<T> right = row_major(given, b), out = row_major(to.data(), solution);
        // A = Q R, or A = R^T Q^T if A is wide.
        if (tall)
            for (int64_t j = 0; j < least; ++j)
                queue_reflection(*args, count, right, r, tau, least, j, length, width, true);
        queue_for_each(*args, solution.numel, CopyRows<T>{out, right, n, least, width});
        if (driver == Gels) {
            queue_for_each(*args, count * least, CheckFullRank<T>{r, least, alarm_of(context)});
            queue_triangular(*args, count, least, width, tall ? r : r.transposed(), out, tall, false);
        } else {
            using R = Real<T>;
            T* const memory = scratch<T>(context, count * least * (3 * least + width));
            const int64_t square = least * least;
            const Columns<T> triangle(memory, count, least, least);
            const Matrices<T> u{memory + count * square, square, least, 1},
                v{memory + 2 * count * square, square, least, 1},
                projected{memory + 3 * count * square, least * width, width, 1};
            // R = U S V^T, and R^T = V S U^T.
            queue_for_each(*args, count * square, CopyTriangle<T>{triangle.x, r, least});
            const DenseOut<R> wanted(context, singular_values);
            R* const values = singular_values.numel > 0 ? wanted.data() : scratch<R>(context, count * least);
            queue_svd(*args, triangle, values, u, least, v);
            wanted.finish();
            const SingularValues<R> singular{values, least, limit_of<R>(args->params[0].as_float(), driver),
                                             driver == Gelsy};
            queue_for_each(*args, count * least * width,
                           Project<T>{tall ? u : v, out, projected, width, singular});
            queue_for_each(*args, count * least * width,
                           Combine<T>{tall ? v : u, projected, out, least, width});
            const DenseOut<int64_t> ranks(context, rank);
            queue_for_each(*args, count, CountRank<R>{singular, ranks.data()});
            ranks.finish();
        }
        if (!tall)
            for (int64_t j = least - 1; j >= 0; --j)
                queue_reflection(*args, count, out, r, tau, least, j, length, width, true, true);
        to.finish();
    });
}

}  // namespace rushlight::cuda
