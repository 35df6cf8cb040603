#include "cpu/resample_kernels.h"

#include "cpu/kernels/rows.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int64_t kElementsPerThread = 1 << 14;

int64_t grain(int64_t elements) { return kElementsPerThread / (elements + 1) + 1; }

// Resamples the last dimension by gathering elements of a row. kTaps is the number of taps, or 0 if it is not a
// constant.
template <int kTaps, class T>
void gather_row(const Taps<T>& t, int64_t out, T* to, const T* from) {
    const int64_t taps = kTaps == 0 ? t.taps : kTaps;
#pragma omp simd
    for (int64_t j = 0; j < out; ++j) {
        T total = t.weight[j * taps] * from[t.index[j * taps]];
        for (int64_t k = 1; k < taps; ++k) total += t.weight[j * taps + k] * from[t.index[j * taps + k]];
        to[j] = total;
    }
}

// Computes one position of another dimension as a weighted sum of rows.
template <class T>
void mix_rows(const Taps<T>& t, int64_t j, int64_t inner, T* to, const T* from) {
    const int64_t taps = t.taps, at = j * taps;
    const T* first = from + t.index[at] * inner;
    if (taps == 1) {
        __builtin_memcpy(to, first, sizeof(T) * static_cast<size_t>(inner));
        return;
    }
    if (taps == 2) {
        const T* second = from + t.index[at + 1] * inner;
        const T a = t.weight[at], b = t.weight[at + 1];
        map_row(to, inner, [&](int64_t i, auto lanes) {
            return load(first + i, lanes) * a + load(second + i, lanes) * b;
        });
        return;
    }
    map_row(to, inner, [&](int64_t i, auto lanes) {
        Vec<T> total = load(first + i, lanes) * t.weight[at];
        for (int64_t k = 1; k < taps; ++k)
            total += load(from + t.index[at + k] * inner + i, lanes) * t.weight[at + k];
        return total;
    });
}

template <class T>
void forward(int64_t outer, int64_t in, int64_t out, int64_t inner, Taps<T> t, T* to, const T* from) {
    if (inner == 1) {
        parallel_for(0, outer, grain(out * t.taps), [&](int64_t first, int64_t last) {
            for (int64_t o = first; o < last; ++o) {
                T* row = to + o * out;
                const T* x = from + o * in;
                if (t.taps == 1) gather_row<1>(t, out, row, x);
                else if (t.taps == 2) gather_row<2>(t, out, row, x);
                else if (t.taps == 4) gather_row<4>(t, out, row, x);
                else gather_row<0>(t, out, row, x);
            }
        });
        return;
    }
    parallel_for(0, outer * out, grain(inner * t.taps), [&](int64_t first, int64_t last) {
        for (int64_t p = first; p < last; ++p)
            mix_rows(t, p % out, inner, to + p * inner, from + p / out * in * inner);
    });
}

// Each thread processes whole planes, so that no two threads add to the same element.
template <class T>
void backward(int64_t outer, int64_t in, int64_t out, int64_t inner, Taps<T> t, T* to, const T* from) {
    parallel_for(0, outer, grain(out * inner * t.taps), [&](int64_t first, int64_t last) {
        for (int64_t o = first; o < last; ++o) {
            T* dx = to + o * in * inner;
            const T* dy = from + o * out * inner;
            for (int64_t j = 0; j < out * t.taps; ++j) {
                const T w = t.weight[j];
                if (w == T(0)) continue;
                T* row = dx + t.index[j] * inner;
                const T* grad = dy + j / t.taps * inner;
                if (inner == 1) {
                    *row += w * *grad;
                } else {
                    map_row(row, inner, [&](int64_t i, auto lanes) {
                        return load(row + i, lanes) + load(grad + i, lanes) * w;
                    });
                }
            }
        }
    });
}

template <class T>
constexpr ResampleLoops<T> table() {
    return {forward<T>, backward<T>};
}

}  // namespace

const ResampleKernels resample_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
