// Eigenvalues and eigenvectors of Hermitian matrices: the reduction to a real tridiagonal matrix by reflections, and the QR
// iteration with Wilkinson's shifts. Source: Golub and Van Loan, "Matrix computations", section 8.3 of the fourth edition.
#include "cuda/kernels.h"
#include "cuda/kernels/hessenberg.cuh"

namespace rushlight::cuda {
namespace {

/// Replaces the upper or the lower triangle by the conjugate of the other triangle.
template <class T>
struct MakeHermitian {
    Matrices<T> a;
    int64_t n;
    bool upper;  // whether the upper triangle is read
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / (n * n), i = index / n % n, j = index % n;
        if (i == j) a.at(b, i, i) = T(real_part(a.at(b, i, i)));
        else if (upper == (j < i)) a.at(b, i, j) = conjugated(a.at(b, j, i));
    }
};

/// A rotation of two columns, which replaces x by c * x + s * y and y by c * y - s * x.
struct PlaneRotation {
    double c, s;
};

/// A real symmetric tridiagonal matrix, given by its diagonal and the elements beside the diagonal.
struct Tridiagonal {
    double *diagonal, *beside;
    int64_t n;

    /// Whether the element beside the diagonal that connects rows k - 1 and k is so small that it has no effect on
    /// eigenvalues of the precision `epsilon`, or is at most `least`.
    __device__ bool is_split(int64_t k, double epsilon, double least) const {
        const double size = std::abs(beside[k - 1]);
        return size <= epsilon * (std::abs(diagonal[k - 1]) + std::abs(diagonal[k])) || size <= least;
    }
    /// Performs an iteration on the rows from `first` to `last`. For each k from `first` to `last` - 1, stores the
    /// rotation of the columns k and k + 1.
    __device__ void iterate(int64_t first, int64_t last, PlaneRotation* rotations) const {
        const double half = (diagonal[last - 1] - diagonal[last]) / 2, corner = beside[last - 1],
                     root = std::hypot(half, corner),
                     shift = diagonal[last] - corner / (half < 0 ? half - root : half + root) * corner;
        double x = diagonal[first] - shift, y = beside[first];
        for (int64_t k = first; k < last; ++k) {
            const double norm = std::hypot(x, y), c = norm == 0 ? 1 : x / norm, s = norm == 0 ? 0 : y / norm;
            if (k > first) beside[k - 1] = norm;
            const double p = diagonal[k], q = diagonal[k + 1], g = beside[k];
            const double change = s * ((p - q) * s - 2 * c * g);
            diagonal[k] = p - change;
            diagonal[k + 1] = q + change;
            beside[k] = c * ((q - p) * s + c * g) - s * s * g;
            if (k + 1 < last) {
                x = beside[k];
                y = s * beside[k + 1];
                beside[k + 1] = c * beside[k + 1];
            }
            rotations[k] = {c, s};
        }
    }
};

template <class T>
struct ReadTridiagonal {
    Matrices<T> a;
    int64_t n;
    double *diagonal, *beside;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / n, i = index % n;
        diagonal[index] = static_cast<double>(real_part(a.at(b, i, i)));
        if (i + 1 < n) beside[index] = static_cast<double>(real_part(a.at(b, i + 1, i)));
    }
};

/// Reduces tridiagonal matrices to diagonal matrices. One block processes each matrix. The rotations are applied to the
/// contiguous columns of `vectors`, unless it is null. One thread computes the rotations of an iteration, and each
/// thread applies them to some rows.
template <class T>
__global__ void __launch_bounds__(kThreads)
    make_diagonal(double* diagonal, double* beside, PlaneRotation* rotations, T* vectors, int64_t count,
                  int64_t n, const Alarm alarm) {
    constexpr double kEpsilon = std::numeric_limits<Real<T>>::epsilon();
    // An eigenvalue needs 2 or 3 iterations. Rounding errors of large elements can keep an element between tiny ones from
    // vanishing. It is then compared with the largest element of the matrix, which is about 1.
    constexpr int kMost = 60, kUsual = 10;
    __shared__ struct {
        int64_t first, last;
    } range;
    for (int64_t b = blockIdx.x; b < count; b += gridDim.x) {
        const Tridiagonal matrix{diagonal + b * n, beside + b * n, n};
        PlaneRotation* const own = rotations + b * n;
        T* const columns = vectors + b * n * n;
        int iterations = 0;
        int64_t last = n - 1;  // the rows behind it are diagonal
        while (true) {
            if (threadIdx.x == 0) {
                int64_t first = last;
                while (last > 0 && first == last) {
                    const double least = iterations < kUsual ? kTiny<double> / kEpsilon : kEpsilon / 4;
                    while (first > 0 && !matrix.is_split(first, kEpsilon, least)) --first;
                    if (first < last) break;
                    first = --last;
                    iterations = 0;
                }
                if (first < last && ++iterations > kMost) {
                    alarm.raise(Cause::NotConverged);
                    first = last;
                }
                if (first < last) matrix.iterate(first, last, own);
                range = {first, last};
            }
            __syncthreads();
            const int64_t first = range.first, end = range.last;
            if (first == end) break;
            for (int64_t i = threadIdx.x; vectors && i < n; i += kThreads) {
                T x = columns[first * n + i];
                for (int64_t k = first; k < end; ++k) {
                    const T c = T(static_cast<Real<T>>(own[k].c)), s = T(static_cast<Real<T>>(own[k].s)),
                            y = columns[(k + 1) * n + i];
                    columns[k * n + i] = c * x + s * y;
                    x = c * y - s * x;
                }
                columns[end * n + i] = x;
            }
            __syncthreads();
        }
        __syncthreads();  // all threads have read the range
    }
}

}  // namespace

BackendStatus linalg_eigh(const KernelArgs* args) {
    const View &values = args->out(0), &vectors = args->out(1), &given = args->in(0);
    return by_scalar(args, given.dtype, [&]<class T>(T) {
        if (given.numel == 0) return;
        KernelContext* const context = args->context;
        const bool wanted = args->params[1].as_bool();
        const int64_t n = given.size(-1), count = count_matrices(given);
        T *const data = copied<T>(context, given), *const columns =
                                                       wanted ? scratch<T>(context, given.numel) : nullptr;
        const Matrices<T> a = row_major(data, given);
        queue_for_each(*args, given.numel, MakeHermitian<T>{a, n, args->params[0].as_bool()});
        const int32_t* const exponents = queue_scaling(*args, data, count, n * n);
        // The last reflection makes also the last element beside the diagonal real.
        queue_hessenberg(*args, count, n, a, row_major(columns, given).transposed());

        auto *const diagonal = scratch<double>(context, count * n), *const beside =
                                                                        scratch<double>(context, count * n);
        auto* const order = scratch<int64_t>(context, count * n);
        queue_for_each(*args, count * n, ReadTridiagonal<T>{a, n, diagonal, beside});
        launch(&make_diagonal<T>, block_for_each(count), queue_of(*args), diagonal, beside,
               scratch<PlaneRotation>(context, count * n), columns, count, n, alarm_of(context));
        const DenseOut<Real<T>> sorted(context, values);
        queue_for_each(*args, count * n,
                       SortValues<Real<T>>{diagonal, exponents, n, false, sorted.data(), order});
        sorted.finish();
        if (!wanted) return;
        const DenseOut<T> to(context, vectors);
        queue_for_each(*args, given.numel, CopyColumns<T>{row_major(to.data(), given), columns, order, n, n});
        to.finish();
    });
}

}  // namespace rushlight::cuda
