// Simplification of strided passes before they are queued.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rushlight::cuda {

inline constexpr int kMostDims = 64;

/// The dimensions of `N` operands, which can be sorted and joined. Strides are in bytes.
template <int N>
struct Geometry {
    int ndim = 0;
    int64_t sizes[kMostDims];
    int64_t strides[kMostDims][N];

    /// Adds a dimension. Dimensions of size 1 are omitted.
    void add(int64_t size, const int64_t (&steps)[N]) {
        if (size == 1) return;
        sizes[ndim] = size;
        std::copy_n(steps, N, strides[ndim]);
        ++ndim;
    }
    /// Sorts the dimensions by descending strides of the first operand. If two dimensions have the same stride, the
    /// strides of the next operands decide.
    void sort() {
        for (int i = 1; i < ndim; ++i)
            for (int d = i; d > 0 && before(d, d - 1); --d) {
                std::swap(sizes[d], sizes[d - 1]);
                for (int k = 0; k < N; ++k) std::swap(strides[d][k], strides[d - 1][k]);
            }
    }
    /// Joins neighbouring dimensions that can be described as one dimension with one stride in every operand.
    void join() {
        int made = 0;
        for (int d = 0; d < ndim; ++d) {
            bool continues = made > 0;
            for (int k = 0; continues && k < N; ++k)
                continues = strides[made - 1][k] == strides[d][k] * sizes[d];
            if (continues) {
                sizes[made - 1] *= sizes[d];
                std::copy_n(strides[d], N, strides[made - 1]);
            } else {
                sizes[made] = sizes[d];
                std::copy_n(strides[d], N, strides[made]);
                ++made;
            }
        }
        ndim = made;
    }
    int64_t count() const {
        int64_t n = 1;
        for (int d = 0; d < ndim; ++d) n *= sizes[d];
        return n;
    }

  private:
    bool before(int a, int b) const {
        for (int k = 0; k < N; ++k) {
            const int64_t x = std::abs(strides[a][k]), y = std::abs(strides[b][k]);
            if (x != y) return x > y;
        }
        return false;
    }
};

}  // namespace rushlight::cuda
