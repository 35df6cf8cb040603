#include "cpu/grid_sample_kernels.h"

#include "cpu/vector_math.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

// Number of positions that are processed at a time. The indices and weights of the elements that they read are
// computed once for all channels.
constexpr int64_t kBlock = 64;

// Up to four input elements along one dimension, and their weights, for each position.
template <class T>
struct Taps {
    int count;
    int32_t index[4][kBlock];
    T weight[4][kBlock];
};

template <GridMode mode, class T>
void find_taps_of(Taps<T>& taps, const T* grid, int64_t n, int dims, int64_t length, const GridShape& s) {
    const T size = static_cast<T>(length);
    const bool align = s.align_corners;
    const int64_t padding = s.padding;
    taps.count = functors::grid_taps(mode);
    for (int64_t j = 0; j < n; ++j)
        functors::each_grid_tap<mode>(grid[j * dims], size, padding, align,
                                      [&](int k, int32_t index, T weight) {
                                          taps.index[k][j] = index;
                                          taps.weight[k][j] = weight;
                                      });
}
template <class T>
void find_taps(Taps<T>& taps, const T* grid, int64_t n, int dims, int64_t length, const GridShape& s) {
    if (s.mode == kGridNearest) find_taps_of<kGridNearest>(taps, grid, n, dims, length, s);
    else if (s.mode == kGridLinear) find_taps_of<kGridLinear>(taps, grid, n, dims, length, s);
    else find_taps_of<kGridCubic>(taps, grid, n, dims, length, s);
}

// All combinations of the taps along all dimensions.
template <class T>
struct Corners {
    int count = 1;
    int32_t index[16][kBlock];
    T weight[16][kBlock];

    void join(const Taps<T>& taps, int64_t step, int64_t n) {
        // Iterates backwards, so that corners that are still needed are not overwritten.
        for (int c = count - 1; c >= 0; --c)
            for (int k = taps.count - 1; k >= 0; --k)
                for (int64_t j = 0; j < n; ++j) {
                    const int to = c * taps.count + k;
                    index[to][j] = index[c][j] + taps.index[k][j] * static_cast<int32_t>(step);
                    weight[to][j] = weight[c][j] * taps.weight[k][j];
                }
        count *= taps.count;
    }
};

template <int kCount, class T>
void read_plane(T* out, const T* plane, const Corners<T>& corners, int64_t n) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
        T sum = corners.weight[0][j] * plane[corners.index[0][j]];
        for (int k = 1; k < kCount; ++k) sum += corners.weight[k][j] * plane[corners.index[k][j]];
        out[j] = sum;
    }
}

template <class T>
void sample(const GridShape& s, T* out, const T* in, const T* grid) {
    int64_t length = 1;
    for (int d = 0; d < s.dims; ++d) length *= s.sizes[d];
    const int64_t blocks = (s.positions + kBlock - 1) / kBlock;
    const int64_t grain = (1 << 14) / (kBlock * (s.channels + 4)) + 1;
    parallel_for(0, s.batch * blocks, grain, [&](int64_t first, int64_t last) {
        Taps<T> taps;
        Corners<T> corners;
        for (int64_t b = first; b < last; ++b) {
            const int64_t sample = b / blocks, begin = b % blocks * kBlock;
            const int64_t n = s.positions - begin < kBlock ? s.positions - begin : kBlock;
            corners.count = 1;
            for (int64_t j = 0; j < n; ++j) {
                corners.index[0][j] = 0;
                corners.weight[0][j] = 1;
            }
            int64_t step = 1;
            for (int d = 0; d < s.dims; ++d) {
                find_taps(taps, grid + (sample * s.positions + begin) * s.dims + d, n, s.dims, s.sizes[d], s);
                corners.join(taps, step, n);
                step *= s.sizes[d];
            }
            for (int64_t c = 0; c < s.channels; ++c) {
                const T* plane = in + (sample * s.channels + c) * length;
                T* to = out + (sample * s.channels + c) * s.positions + begin;
                switch (corners.count) {
                    case 1: read_plane<1>(to, plane, corners, n); break;
                    case 4: read_plane<4>(to, plane, corners, n); break;
                    case 8: read_plane<8>(to, plane, corners, n); break;
                    default: read_plane<16>(to, plane, corners, n);
                }
            }
        }
    });
}

}  // namespace

const GridSampleKernels grid_sample_kernels_table = {sample<float>, sample<double>};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
