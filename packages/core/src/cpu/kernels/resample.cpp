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

template <class T>
void sum_row(const Contributions<T>& c, int64_t in, T* to, const T* from) {
    for (int64_t i = 0; i < in; ++i) {
        T total = T(0);
        for (int64_t k = c.begin[i]; k < c.begin[i + 1]; ++k) total += c.weight[k] * from[c.index[k]];
        to[i] = total;
    }
}

// Computes the gradient of position i of another dimension as a weighted sum of rows.
template <class T>
void sum_rows(const Contributions<T>& c, int64_t i, int64_t inner, T* to, const T* from) {
    const int64_t first = c.begin[i], last = c.begin[i + 1];
    if (last - first == 2) {
        const T *a = from + c.index[first] * inner, *b = from + c.index[first + 1] * inner;
        const T u = c.weight[first], v = c.weight[first + 1];
        return map_row(to, inner, [&](int64_t l, auto lanes) {
            return load(a + l, lanes) * u + load(b + l, lanes) * v;
        });
    }
    map_row(to, inner, [&](int64_t l, auto lanes) {
        Vec<T> total{};
        for (int64_t k = first; k < last; ++k)
            total += load(from + c.index[k] * inner + l, lanes) * c.weight[k];
        return total;
    });
}

template <class T>
void backward(int64_t outer, int64_t in, int64_t out, int64_t inner, Contributions<T> c, T* to,
              const T* from) {
    const int64_t terms = c.begin[in];
    if (inner == 1) {
        const Taps<T> t{c.each, c.index, c.weight};
        parallel_for(0, outer, grain(in + terms), [&](int64_t first, int64_t last) {
            for (int64_t o = first; o < last; ++o) {
                T* row = to + o * in;
                const T* dy = from + o * out;
                if (c.each == 1) gather_row<1>(t, in, row, dy);
                else if (c.each == 2) gather_row<2>(t, in, row, dy);
                else if (c.each == 4) gather_row<4>(t, in, row, dy);
                else sum_row(c, in, row, dy);
            }
        });
        return;
    }
    parallel_for(0, outer * in, grain(inner * (terms / in + 1)), [&](int64_t first, int64_t last) {
        for (int64_t p = first; p < last; ++p)
            sum_rows(c, p % in, inner, to + p * inner, from + p / in * out * inner);
    });
}

template <class T>
constexpr ResampleLoops<T> table() {
    return {forward<T>, backward<T>};
}

}  // namespace

const ResampleKernels resample_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
