#include "cpu/grid_sample_kernels.h"

#include "cpu/vector_math.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

// Places taken at a time: what is read of them, and with which weights, is worked out once for all channels.
constexpr int64_t kBlock = 64;

template <class T>
[[gnu::always_inline]] inline T floor_of(T x) {
    if constexpr (sizeof(T) == 4) return __builtin_floorf(x);
    else return __builtin_floor(x);
}
template <class T>
[[gnu::always_inline]] inline T nearest_of(T x) {
    if constexpr (sizeof(T) == 4) return __builtin_nearbyintf(x);
    else return __builtin_nearbyint(x);
}

template <class T>
[[gnu::always_inline]] inline T remainder_of(T x, T span) {
    if constexpr (sizeof(T) == 4) return __builtin_fmodf(x, span);
    else return __builtin_fmod(x, span);
}

// Along one dimension, up to four elements of the input and their weights.
template <class T>
struct Taps {
    int count;
    int32_t index[4][kBlock];
    T weight[4][kBlock];
};

template <class T>
[[gnu::always_inline]] inline T padded(T x, T size, int64_t padding, bool align) {
    if (padding == kGridZeros) return x;
    if (padding == kGridReflection) {
        const T low = align ? T(0) : T(-0.5), span = align ? size - 1 : size;
        T away = x - low;
        away = away < 0 ? -away : away;
        const T turns = span > 0 ? floor_of(away / span) : T(0);
        const T rest = away < span ? away : remainder_of(away, span);
        const bool even = floor_of(turns * T(0.5)) * 2 == turns;
        x = span > 0 ? (even ? rest + low : low + span - rest) : T(0);
    }
    x = x > 0 ? x : T(0);  // NaN counts as the first place
    return x > size - 1 ? size - 1 : x;
}

// Keys' kernel with a = -0.75.
template <class T>
[[gnu::always_inline]] inline T keys_near(T x) {
    return (T(1.25) * x - T(2.25)) * x * x + 1;
}
template <class T>
[[gnu::always_inline]] inline T keys_far(T x) {
    return ((T(-0.75) * x + T(3.75)) * x - 6) * x + 3;
}

template <class T>
void find_taps(Taps<T>& taps, const T* grid, int64_t n, int dims, int64_t length, const GridShape& s) {
    const T size = static_cast<T>(length);
    const bool align = s.align_corners;
    const int64_t padding = s.padding;
    taps.count = s.mode == kGridNearest ? 1 : s.mode == kGridLinear ? 2 : 4;
    auto place = [=](int64_t j) {
        const T g = grid[j * dims] + 1;
        return align ? g * T(0.5) * (size - 1) : (g * size - 1) * T(0.5);
    };
    auto put = [&](int k, int64_t j, T at, T weight) {
        const bool inside = at >= 0 && at < size;
        taps.index[k][j] = inside ? static_cast<int32_t>(at) : 0;
        taps.weight[k][j] =
            inside || weight != weight ? weight : T(0);  // NaN where a place has no neighbours
    };
    if (s.mode == kGridNearest) {
        for (int64_t j = 0; j < n; ++j) put(0, j, nearest_of(padded(place(j), size, padding, align)), T(1));
    } else if (s.mode == kGridLinear) {
        for (int64_t j = 0; j < n; ++j) {
            const T x = padded(place(j), size, padding, align), low = floor_of(x);
            put(0, j, low, low + 1 - x);
            put(1, j, low + 1, x - low);
        }
    } else {
        for (int64_t j = 0; j < n; ++j) {
            const T x = place(j), low = floor_of(x), f = x - low;
            put(0, j, padded(low - 1, size, padding, align), keys_far(f + 1));
            put(1, j, padded(low, size, padding, align), keys_near(f));
            put(2, j, padded(low + 1, size, padding, align), keys_near(1 - f));
            put(3, j, padded(low + 2, size, padding, align), keys_far(2 - f));
        }
    }
}

// Every combination of the dimensions' taps.
template <class T>
struct Corners {
    int count = 1;
    int32_t index[16][kBlock];
    T weight[16][kBlock];

    void join(const Taps<T>& taps, int64_t step, int64_t n) {
        // From the last one on, so that those still needed are not written over.
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
    const int64_t blocks = (s.places + kBlock - 1) / kBlock;
    const int64_t grain = (1 << 14) / (kBlock * (s.channels + 4)) + 1;
    parallel_for(0, s.batch * blocks, grain, [&](int64_t first, int64_t last) {
        Taps<T> taps;
        Corners<T> corners;
        for (int64_t b = first; b < last; ++b) {
            const int64_t sample = b / blocks, begin = b % blocks * kBlock;
            const int64_t n = s.places - begin < kBlock ? s.places - begin : kBlock;
            corners.count = 1;
            for (int64_t j = 0; j < n; ++j) {
                corners.index[0][j] = 0;
                corners.weight[0][j] = 1;
            }
            int64_t step = 1;
            for (int d = 0; d < s.dims; ++d) {
                find_taps(taps, grid + (sample * s.places + begin) * s.dims + d, n, s.dims, s.sizes[d], s);
                corners.join(taps, step, n);
                step *= s.sizes[d];
            }
            for (int64_t c = 0; c < s.channels; ++c) {
                const T* plane = in + (sample * s.channels + c) * length;
                T* to = out + (sample * s.channels + c) * s.places + begin;
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
