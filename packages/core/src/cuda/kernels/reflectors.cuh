// Householder reflections and QR decompositions. Reflectors and factors have the signs and the layout of LAPACK's.
#pragma once

#include "cuda/kernels/matrices.cuh"

namespace rushlight::cuda {
namespace {

/// Computes the reflector that makes column j of an m by n matrix zero below the diagonal, and stores the reflector
/// there. One block processes each matrix, and sums the squares in float64.
template <class T>
__global__ void __launch_bounds__(kThreads)
    make_reflector(const Matrices<T> a, int64_t count, int64_t m, int64_t j, T* tau, int64_t steps) {
    using R = Real<T>;
    __shared__ Values<double> room;
    for (int64_t b = blockIdx.x; b < count; b += gridDim.x) {
        // The column is scaled by a power of two, so that squares and reciprocals neither overflow nor underflow.
        double largest = 0;
        for (int64_t i = j + threadIdx.x; i < m; i += kThreads)
            largest = Larger()(static_cast<double>(magnitude(a.at(b, i, j))), largest);
        largest = over_lanes(room.x, threadIdx.x, kThreads, largest, Larger());
        const int exponent = largest > 0 && largest < INFINITY ? std::ilogb(largest) : 0;
        double square = 0;
        for (int64_t i = j + 1 + threadIdx.x; i < m; i += kThreads) {
            const auto size = static_cast<double>(magnitude(scaled(a.at(b, i, j), -exponent)));
            square += size * size;
        }
        square = over_lanes(room.x, threadIdx.x, kThreads, square, Plus());
        const T alpha = scaled(a.at(b, j, j), -exponent);
        const auto own = static_cast<double>(magnitude(alpha));
        const double norm = std::sqrt(own * own + square);
        bool real = true;
        if constexpr (kIsComplex<T>) real = alpha.im == 0;
        __syncthreads();  // all threads have read the diagonal
        if (square == 0 && real) {
            if (threadIdx.x == 0) tau[b * steps + j] = T(0);
            continue;
        }
        const R beta = static_cast<R>(real_part(alpha) >= 0 ? -norm : norm);
        const T by = T(1) / (alpha - T(beta));
        for (int64_t i = j + 1 + threadIdx.x; i < m; i += kThreads)
            a.at(b, i, j) = scaled(a.at(b, i, j), -exponent) * by;
        if (threadIdx.x == 0) {
            tau[b * steps + j] = (T(beta) - alpha) / T(beta);
            a.at(b, j, j) = T(scaled(beta, exponent));
        }
    }
}

/// Applies I - tau v v^H to columns of matrices. The first element of v is 1, and the remaining elements are below the
/// diagonal of `reflectors`. Each thread processes one column.
template <class T>
struct Reflect {
    Matrices<T> to, reflectors;  // both begin at the row of v's first element
    const T* tau;
    int64_t steps, m, width;
    bool conjugate_tau, conjugate_v;

    __device__ void operator()(int64_t index) const {
        const int64_t b = index / width, c = index % width;
        const T given = tau[b * steps], factor = conjugate_tau ? conjugated(given) : given;
        if (factor == T(0)) return;
        T sum = to.at(b, 0, c);
        for (int64_t i = 1; i < m; ++i) sum = sum + conjugated(v(b, i)) * to.at(b, i, c);
        sum = sum * factor;
        to.at(b, 0, c) = to.at(b, 0, c) - sum;
        for (int64_t i = 1; i < m; ++i) to.at(b, i, c) = to.at(b, i, c) - v(b, i) * sum;
    }

  private:
    __device__ T v(int64_t b, int64_t i) const {
        const T found = reflectors.at(b, i, 0);
        return conjugate_v ? conjugated(found) : found;
    }
};

/// Enqueues the reflection of matrices with m rows by reflector k.
template <class T>
void queue_reflection(const KernelArgs& args, int64_t count, const Matrices<T>& to,
                      const Matrices<T>& reflectors, const T* tau, int64_t steps, int64_t k, int64_t m,
                      int64_t width, bool conjugate_tau, bool conjugate_v = false) {
    if (width > 0)
        queue_for_each(args, count * width,
                       Reflect<T>{to.from(k, 0), reflectors.from(k, k), tau + k, steps, m - k, width,
                                  conjugate_tau, conjugate_v});
}

/// Decomposes m by n matrices in place: R is on and above the diagonal, and the reflectors are below it.
template <class T>
void queue_qr(const KernelArgs& args, int64_t count, int64_t m, int64_t n, const Matrices<T>& a, T* tau) {
    const int64_t steps = m < n ? m : n;
    for (int64_t j = 0; count > 0 && j < steps; ++j) {
        launch(&make_reflector<T>, block_for_each(count), queue_of(args), a, count, m, j, tau, steps);
        queue_reflection(args, count, a.from(0, j + 1), a, tau, steps, j, m, n - j - 1, true);
    }
}

/// Writes the product of k reflectors of m rows, of which `width` columns are computed.
template <class T>
void queue_product(const KernelArgs& args, int64_t count, const Matrices<T>& q, int64_t m, int64_t width,
                   int64_t k, const Matrices<T>& reflectors, const T* tau, int64_t steps) {
    queue_identity(args, count, q, m, width);
    for (int64_t i = k - 1; i >= 0; --i)
        queue_reflection(args, count, q, reflectors, tau, steps, i, m, width, false);
}

}  // namespace
}  // namespace rushlight::cuda
