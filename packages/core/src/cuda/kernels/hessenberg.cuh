// The reduction of matrices to Hessenberg form by reflections from both sides.
#pragma once

#include "cuda/kernels/reflectors.cuh"

namespace rushlight::cuda {
namespace {

/// Writes zeros below the first subdiagonal.
template <class T>
struct ClearReflectors {
    T* data;
    int64_t n;
    __device__ void operator()(int64_t i) const {
        if (i / n % n > i % n + 1) data[i] = T(0);
    }
};

/// Reduces matrices to Hessenberg form H, with zeros below the first subdiagonal, and writes the unitary Q of A = Q H Q^H if
/// its memory is not null.
template <class T>
void queue_hessenberg(const KernelArgs& args, int64_t count, int64_t n, const Matrices<T>& a,
                      const Matrices<T>& q) {
    const int64_t steps = n - 1;
    T* const tau = scratch<T>(args.context, count * steps);
    const Matrices<T> below = a.from(1, 0);
    for (int64_t j = 0; j < steps; ++j) {
        launch(&make_reflector<T>, block_for_each(count), queue_of(args), below, count, n - 1, j, tau, steps);
        queue_reflection(args, count, below.from(0, j + 1), below, tau, steps, j, n - 1, n - 1 - j, true);
        queue_reflection(args, count, a.from(0, 1).transposed(), below, tau, steps, j, n - 1, n, false, true);
    }
    if (q.data) {
        queue_identity(args, count, q, n, n);
        for (int64_t j = steps - 1; j >= 0; --j)
            queue_reflection(args, count, q.from(1, 1), below, tau, steps, j, n - 1, n - 1, false);
    }
    queue_for_each(args, count * n * n, ClearReflectors<T>{a.data, n});
}

}  // namespace
}  // namespace rushlight::cuda
