// Solutions of systems with triangular matrices.
#pragma once

#include "cuda/kernels/matrices.cuh"

namespace rushlight::cuda {
namespace {

/// Solves with a block of `size` rows of a triangle, in place. Each thread processes one column.
template <class T>
struct SolveBlock {
    Matrices<T> a, x;
    int64_t size, width;
    bool upper, unit, conjugate;
    __device__ void operator()(int64_t index) const {
        const int64_t b = index / width, c = index % width;
        for (int64_t k = 0; k < size; ++k) {
            const int64_t i = upper ? size - 1 - k : k, begin = upper ? i + 1 : 0, end = upper ? size : i;
            T value = x.at(b, i, c);
            for (int64_t j = begin; j < end; ++j) value = value - element(b, i, j) * x.at(b, j, c);
            x.at(b, i, c) = unit ? value : value / element(b, i, i);
        }
    }

  private:
    __device__ T element(int64_t b, int64_t i, int64_t j) const {
        const T found = a.at(b, i, j);
        return conjugate ? conjugated(found) : found;
    }
};

/// Solves a X = x in place, for triangular matrices of n rows and `width` columns of x.
template <class T>
void queue_triangular(const KernelArgs& args, int64_t count, int64_t n, int64_t width, const Matrices<T>& a,
                      const Matrices<T>& x, bool upper, bool unit, bool conjugate = false) {
    if (width == 0) return;
    const int64_t blocks = (n + kPanel - 1) / kPanel;
    for (int64_t k = 0; k < blocks; ++k) {
        const int64_t at = (upper ? blocks - 1 - k : k) * kPanel, size = n - at < kPanel ? n - at : kPanel;
        queue_for_each(args, count * width,
                       SolveBlock<T>{a.from(at, at), x.from(at, 0), size, width, upper, unit, conjugate});
        const int64_t rest = upper ? 0 : at + size, rows = upper ? at : n - rest;
        queue_update(args, count,
                     SubtractProduct<T>{x.from(rest, 0), a.from(rest, at), x.from(at, 0), rows, width, size,
                                        conjugate, false, false});
    }
}

}  // namespace
}  // namespace rushlight::cuda
