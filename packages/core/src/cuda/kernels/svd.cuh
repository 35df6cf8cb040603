// Singular value decompositions.
//
// Note [Singular values on a GPU]
// Jacobi's method rotates pairs of columns until all columns are orthogonal (one-sided Jacobi). A rotation changes no other
// column, so n / 2 pairs are rotated at the same time. A round is a set of disjoint pairs, and the rounds of a sweep contain
// all pairs once (a round-robin tournament). Sweeps are repeated until a sweep makes no rotation. `rotated` has an element
// for each sweep and matrix, which the previous sweep sets if it makes a rotation. A block skips the rounds of sweeps whose
// element is 0. The host therefore queues the same work for all matrices, and waits for nothing. One block performs all
// rounds of a matrix of up to kBlockOrder columns. For larger matrices, a round is a launch of many blocks.
//
// The columns of R^T are rotated, where Q R is the decomposition of the matrix with its columns sorted by their norms. This
// needs a third of the sweeps for matrices whose singular values are far apart: Drmac and Veselic, "New fast and accurate
// Jacobi SVD algorithm", 2008.
#pragma once

#include "cuda/kernels/reflectors.cuh"

namespace rushlight::cuda {
namespace {

#ifndef RUSHLIGHT_CUDA_BLOCK_ORDER
#define RUSHLIGHT_CUDA_BLOCK_ORDER 256
#endif
constexpr int64_t kBlockOrder = RUSHLIGHT_CUDA_BLOCK_ORDER;
/// The largest number of sweeps. Few matrices need more than 15 sweeps.
constexpr int64_t kSweeps = 40;

/// The pairs into which a round divides the numbers from 0 to n - 1. If n is odd, one number has no partner in each round,
/// and the second number of its pair is n.
struct Rounds {
    int64_t players;

    __host__ __device__ explicit Rounds(int64_t n) : players(n + n % 2) {}
    __host__ __device__ int64_t count() const { return players - 1; }
    __host__ __device__ int64_t pairs() const { return players / 2; }
    __device__ void pair(int64_t round, int64_t k, int64_t& p, int64_t& q) const {
        const int64_t circle = players - 1;
        const int64_t x = (round + k) % circle, y = k == 0 ? circle : (round + circle - k) % circle;
        p = x < y ? x : y;
        q = x < y ? y : x;
    }
};

/// The sum of the squares of the elements of each of two columns, and the sum of the products of their elements.
template <class T>
struct Products {
    using Wide = std::conditional_t<kIsComplex<T>, Complex<double>, double>;
    double p, q;
    Wide inner;

    __device__ Products operator+(const Products& o) const { return {p + o.p, q + o.q, inner + o.inner}; }
    __device__ void add(T x, T y) {
        const Wide a = Wide(x), c = Wide(y);
        p += real_part(conjugated(a) * a);
        q += real_part(conjugated(c) * c);
        inner = inner + conjugated(a) * c;
    }
};

/// A rotation p' = c p - conj(s) q, q' = s p + c q that makes two columns orthogonal. Of the two possible rotations, it
/// is the one with the smaller angle.
template <class T>
class Rotation {
  public:
    /// `sums.inner` must not be zero.
    __device__ explicit Rotation(const Products<T>& sums) {
        const double size = magnitude(sums.inner), half = (sums.q - sums.p) / (2 * size);
        const double tangent = (half < 0 ? -1 : 1) / (std::abs(half) + std::hypot(1.0, half));
        const double c = 1 / std::sqrt(1 + tangent * tangent), s = c * tangent;
        using Wide = typename Products<T>::Wide;
        s_ = static_cast<T>(Wide(s / size) * sums.inner);
        half_ = static_cast<T>(Wide(s / (1 + c) / size) * sums.inner);
    }
    /// Adds small corrections to the columns, so that they keep their norms better than after a product with c.
    __device__ void apply(T& p, T& q) const {
        const T x = p, y = q;
        p = x - conjugated(s_) * (y + half_ * x);
        q = y + s_ * (x - conjugated(half_) * y);
    }

  private:
    T s_, half_;  // s, and s / (1 + c)
};

/// `count` matrices of n columns, each of which is contiguous and has `length` elements.
template <class T>
struct Columns {
    T* x;
    int64_t count, n, length;
    uint32_t lanes = 1;  // the threads that process a column

    Columns(T* data, int64_t matrices, int64_t columns, int64_t rows)
        : x(data), count(matrices), n(columns), length(rows) {
        while (lanes < kThreads && lanes * 4 < length) lanes *= 2;
    }
    __device__ T* at(int64_t b, int64_t j) const { return x + (b * n + j) * length; }
    Matrices<T> matrices() const { return {x, n * length, 1, length}; }
    int64_t numel() const { return count * n * length; }
};

/// Performs the rounds from `first` to `last`, counted over all sweeps, and applies the rotations to the columns of `v` as
/// well, unless its memory is null.
template <class T>
__global__ void __launch_bounds__(kThreads)
    orthogonalize(const Columns<T> a, const Columns<T> v, int32_t* rotated, int64_t first, int64_t last) {
    __shared__ Values<Products<T>> room;
    const Rounds rounds(a.n);
    const int64_t together = kThreads / a.lanes;
    const uint32_t lane = threadIdx.x % a.lanes;
    // Columns below this norm are not rotated, because their products would underflow.
    constexpr double kNoNorm = sizeof(Real<T>) == 4 ? 1e-30 : 1e-145;
    const double tolerance =
        std::numeric_limits<Real<T>>::epsilon() * (4 + std::sqrt(static_cast<double>(a.length)));
    for (int64_t b = blockIdx.y; b < a.count; b += gridDim.y)
        for (int64_t step = first; step < last; ++step) {
            const int64_t sweep = step / rounds.count();
            if (!rotated[sweep * a.count + b]) break;
            for (int64_t begin = blockIdx.x * together; begin < rounds.pairs();
                 begin += gridDim.x * together) {
                const int64_t k = begin + threadIdx.x / a.lanes;
                int64_t p = 0, q = a.n;
                if (k < rounds.pairs()) rounds.pair(step % rounds.count(), k, p, q);
                T *const x = a.at(b, p), *const y = a.at(b, q);
                Products<T> sums{};
                for (int64_t i = lane; q < a.n && i < a.length; i += a.lanes) sums.add(x[i], y[i]);
                sums = over_lanes(room.x, lane, a.lanes, sums, Plus());
                const double norm_p = std::sqrt(sums.p), norm_q = std::sqrt(sums.q);
                if (!(norm_p > kNoNorm && norm_q > kNoNorm &&
                      magnitude(sums.inner) > tolerance * norm_p * norm_q))
                    continue;
                const Rotation<T> rotation(sums);
                for (int64_t i = lane; i < a.length; i += a.lanes) rotation.apply(x[i], y[i]);
                for (int64_t i = lane; v.x && i < v.length; i += a.lanes)
                    rotation.apply(v.at(b, p)[i], v.at(b, q)[i]);
                if (lane == 0) rotated[(sweep + 1) * a.count + b] = 1;
            }
            __syncthreads();
        }
}

struct StartSweeps {
    int32_t* rotated;
    int64_t count;
    __device__ void operator()(int64_t i) const { rotated[i] = i < count; }
};
struct CheckConverged {
    const int32_t* rotated;
    int64_t count;
    Alarm alarm;
    __device__ void operator()(int64_t b) const {
        if (rotated[kSweeps * count + b]) alarm.raise(Cause::NotConverged);
    }
};

/// Makes columns orthogonal.
template <class T>
void queue_sweeps(const KernelArgs& args, const Columns<T>& a, const Columns<T>& v) {
    auto* rotated = scratch<int32_t>(args.context, (kSweeps + 1) * a.count);
    queue_for_each(args, (kSweeps + 1) * a.count, StartSweeps{rotated, a.count});
    const Rounds rounds(a.n);
    const bool one_block = a.n <= kBlockOrder;
    const Grid grid{one_block ? 1 : blocks_for(rounds.pairs() * a.lanes), kThreads,
                    blocks_for(a.count * kThreads)};
    const int64_t steps = kSweeps * rounds.count(), together = one_block ? steps : 1;
    for (int64_t step = 0; step < steps; step += together)
        launch(&orthogonalize<T>, grid, queue_of(args), a, v, rotated, step, step + together);
    queue_for_each(args, a.count, CheckConverged{rotated, a.count, alarm_of(args.context)});
}

template <class T>
__global__ void __launch_bounds__(kThreads) column_norms(const Columns<T> a, double* norms) {
    __shared__ Values<double> room;
    const int64_t together = kThreads / a.lanes, all = a.count * a.n;
    const uint32_t lane = threadIdx.x % a.lanes;
    for (int64_t begin = blockIdx.x * together; begin < all; begin += gridDim.x * together) {
        const int64_t j = begin + threadIdx.x / a.lanes;
        double sum = 0;
        for (int64_t i = lane; j < all && i < a.length; i += a.lanes) {
            const auto size = static_cast<double>(magnitude(a.x[j * a.length + i]));
            sum += size * size;
        }
        sum = over_lanes(room.x, lane, a.lanes, sum, Plus());
        if (lane == 0 && j < all) norms[j] = std::sqrt(sum);
    }
}
/// Returns the order of columns by descending norms, and writes the norms, multiplied by powers of two, unless `sorted` is
/// null.
template <class T>
int64_t* queue_order(const KernelArgs& args, const Columns<T>& a, const int32_t* exponents, Real<T>* sorted) {
    auto* const norms = scratch<double>(args.context, a.count * a.n);
    auto* const order = scratch<int64_t>(args.context, a.count * a.n);
    launch(&column_norms<T>, Grid{blocks_for(a.count * a.n * a.lanes), kThreads}, queue_of(args), a, norms);
    queue_for_each(args, a.count * a.n, SortValues<Real<T>>{norms, exponents, a.n, true, sorted, order});
    return order;
}
template <class T>
Columns<T> queue_sorted(const KernelArgs& args, const Columns<T>& a, const int64_t* order) {
    Columns<T> made = a;
    made.x = scratch<T>(args.context, a.numel());
    queue_for_each(args, a.numel(), CopyColumns<T>{made.matrices(), a.x, order, a.n, a.length});
    return made;
}

/// Copies the transposes of upper triangles R, whose columns become contiguous.
template <class T>
struct CopyTransposed {
    T* to;
    Matrices<T> r;
    int64_t n;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / (n * n), j = index / n % n, i = index % n;
        to[index] = i >= j ? r.at(b, j, i) : T(0);
    }
};

/// Writes the conjugates of columns in a given order, followed by columns of the identity.
template <class T>
struct PlaceColumns {
    Matrices<T> to;
    const T* columns;  // each is contiguous
    const int64_t* order;
    int64_t n, rows, width;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / (rows * width), i = index / width % rows, j = index % width;
        to.at(b, i, j) = i < n && j < n ? conjugated(columns[(b * n + order[b * n + j]) * n + i]) : T(i == j);
    }
};

/// Writes the columns of Q, multiplied by the signs of the diagonal of R, with their rows in a given order.
template <class T>
struct PlaceRows {
    Matrices<T> to, q, r;
    const int64_t* order;
    int64_t n;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / (n * n), i = index / n % n, j = index % n;
        const T x = q.at(b, i, j);
        to.at(b, order[b * n + i], j) = real_part(r.at(b, j, j)) < 0 ? -x : x;
    }
};

/// Decomposes matrices A = U S V^T with unitary U and V. The columns of A are contiguous and overwritten; there are not more
/// columns than rows. S is written in descending order. U, of which `width` columns are computed, and V are written unless
/// the memory of `u` is null.
template <class T>
void queue_svd(const KernelArgs& args, const Columns<T>& a, Real<T>* values, const Matrices<T>& u,
               int64_t width, const Matrices<T>& v) {
    KernelContext* const context = args.context;
    const int64_t count = a.count, n = a.n, rows = a.length, squares = count * n * n;
    const bool wanted = u.data != nullptr;
    const int32_t* const exponents = queue_scaling(args, a.x, count, n * rows);

    // A P = Q R, where P sorts the columns.
    const int64_t* const sorting = queue_order(args, a, exponents, static_cast<Real<T>*>(nullptr));
    const Matrices<T> qr = queue_sorted(args, a, sorting).matrices();
    T* const tau = scratch<T>(context, count * n);
    queue_qr(args, count, rows, n, qr, tau);

    // R^T Z = W, where the columns of W are orthogonal, and S contains their norms. So A = Q conj(Z) S (P W S^-1)^T.
    const Columns<T> w(scratch<T>(context, squares), count, n, n),
        z(wanted ? scratch<T>(context, squares) : nullptr, count, n, n);
    queue_for_each(args, squares, CopyTransposed<T>{w.x, qr, n});
    if (wanted) queue_identity(args, count, z.matrices(), n, n);
    queue_sweeps(args, w, z);
    const int64_t* const order = queue_order(args, w, exponents, values);
    if (!wanted) return;

    queue_for_each(args, count * rows * width, PlaceColumns<T>{u, z.x, order, n, rows, width});
    for (int64_t j = n - 1; j >= 0; --j) queue_reflection(args, count, u, qr, tau, n, j, rows, width, false);

    // In the QR decomposition of W, R is diagonal, because the columns of W are orthogonal. Q is W S^-1, and it is
    // unitary even if S contains zeros.
    const Matrices<T> of_w = queue_sorted(args, w, order).matrices(),
                      unitary{scratch<T>(context, squares), n * n, n, 1};
    queue_qr(args, count, n, n, of_w, tau);
    queue_product(args, count, unitary, n, n, n, of_w, tau, n);
    queue_for_each(args, squares, PlaceRows<T>{v, unitary, of_w, sorting, n});
}

}  // namespace
}  // namespace rushlight::cuda
