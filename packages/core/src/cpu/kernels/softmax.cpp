#include "cpu/softmax_kernels.h"

#include "cpu/kernels/short_rows.h"
#include "cpu/kernels/softmax_rows.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int64_t kElementsPerThread = 1 << 13;

// Number of vectors of adjacent columns that are processed together.
template <int kCount>
struct Count {
    static constexpr int value = kCount;
};

// The output of an operator and its inputs, which have the same shape.
template <class T, int kInputs>
struct Arrays {
    T* out;
    const T* in[kInputs];

    Arrays from(int64_t element) const {
        Arrays a = *this;
        a.out += element;
        for (const T*& x : a.in) x += element;
        return a;
    }
};

// Computes short rows by side(arrays, stride, lanes, Count). The result of a row does not depend on the rows beside it.
template <class T, int kInputs, class Side>
void run_short_rows(const SplitShape& s, const Arrays<T, kInputs>& arrays, Side&& side) {
    constexpr int kL = kLanes<T>;
    const int64_t groups = (s.outer + kL - 1) / kL;
    parallel_for(0, groups, kElementsPerThread / (s.size * kL) + 1, [&](int64_t first, int64_t last) {
        ShortRows<T> out, in[kInputs];
        for (int64_t g = first; g < last; ++g) {
            const int64_t row = g * kL, rows = s.outer - row < kL ? s.outer - row : kL;
            Arrays<T, kInputs> columns{out.elements, {}};
            for (int i = 0; i < kInputs; ++i) {
                in[i].read(arrays.in[i] + row * s.size, rows, s.size, s.size);
                columns.in[i] = in[i].elements;
            }
            side(columns, kL, WholeVector<T>{}, Count<1>{});
            out.write(arrays.out + row * s.size, rows, s.size);
        }
    });
}

// Calls rows(arrays, count) for groups of rows of adjacent elements, or side(arrays, stride, lanes, Count) for vectors of
// adjacent columns, whose next elements are `stride` elements away.
template <class T, int kInputs, class Rows, class Side>
void run(const SplitShape& s, const Arrays<T, kInputs>& arrays, Rows&& rows, Side&& side) {
    constexpr int kL = kLanes<T>;
    if (s.inner == 1) {
        if (s.size <= kShortRow<T>) return run_short_rows(s, arrays, side);
        parallel_for(0, s.outer, kElementsPerThread / s.size + 1, [&](int64_t first, int64_t last) {
            const int64_t step = rows_at_once(s.size);
            for (int64_t o = first; o < last; o += step)
                rows(arrays.from(o * s.size), last - o < step ? last - o : step);
        });
        return;
    }
    const int64_t blocks = (s.inner + 4 * kL - 1) / (4 * kL);
    parallel_for(0, s.outer * blocks, kElementsPerThread / (s.size * 4 * kL) + 1,
                 [&](int64_t first, int64_t last) {
                     for (int64_t b = first; b < last; ++b) {
                         int64_t i = b % blocks * 4 * kL;
                         const Arrays<T, kInputs> plane = arrays.from(b / blocks * s.size * s.inner);
                         if (i + 4 * kL <= s.inner) {
                             side(plane.from(i), s.inner, WholeVector<T>{}, Count<4>{});
                             continue;
                         }
                         for (; i + kL <= s.inner; i += kL)
                             side(plane.from(i), s.inner, WholeVector<T>{}, Count<1>{});
                         if (i < s.inner) side(plane.from(i), s.inner, Lanes<T>(s.inner - i), Count<1>{});
                     }
                 });
}

// Computes the softmax of a row by the operations of a lane of run_short_rows(), so that the result is the same.
template <class T>
void softmax_of_short_row(int64_t n, T* out, const T* in) {
    const T top = row_largest(in, n);
    map_row(out, n, [&](int64_t i, auto lanes) { return exp<T>(load(in + i, lanes) - top); });
    T total = T(0);
    for (int64_t i = 0; i < n; ++i) total += out[i];
    const T scale = T(1) / total;
    map_row(out, n, [&](int64_t i, auto lanes) { return load(out + i, lanes) * scale; });
}

template <class T>
void softmax(const SplitShape& s, T* out, const T* in) {
    // With only a few rows, most lanes would be unused.
    if (s.inner == 1 && s.size <= kShortRow<T> && s.outer <= kLanes<T> / 4) {
        for (int64_t o = 0; o < s.outer; ++o) softmax_of_short_row(s.size, out + o * s.size, in + o * s.size);
        return;
    }
    run<T, 1>(
        s, {out, {in}},
        [&](const Arrays<T, 1>& a, int64_t count) {
            T top[kRowsAtOnce], total[kRowsAtOnce];
            row_exp_sums(a.in[0], count, s.size, top, total, [&](int64_t l, int64_t i, auto lanes, Vec<T> e) {
                store(a.out + l * s.size + i, e, lanes);
            });
            for (int64_t l = 0; l < count; ++l) total[l] = T(1) / total[l];
            for (int64_t l = 0; l < count; ++l) {
                T* row = a.out + l * s.size;
                map_row(row, s.size, [&](int64_t i, auto lanes) { return load(row + i, lanes) * total[l]; });
            }
        },
        [&](const Arrays<T, 1>& a, int64_t stride, auto lanes, auto count) {
            constexpr int kCount = decltype(count)::value;
            auto to = [&](int64_t k, int p) { return a.out + k * stride + p * kLanes<T>; };
            const auto l = side_by_side_log_sum<T, kCount>(
                a.in[0], s.size, stride, lanes,
                [&](int64_t k, int p, Vec<T> e) { store(to(k, p), e, lanes); });
            Vec<T> scale[kCount];
#pragma GCC unroll 4
            for (int p = 0; p < kCount; ++p) scale[p] = T(1) / l.total[p];
            for_side_by_side<T, kCount>(a.out, s.size, stride, lanes, [&](int64_t k, int p, Vec<T> e) {
                store(to(k, p), e * scale[p], lanes);
            });
        });
}

template <class T>
void log_softmax(const SplitShape& s, T* out, const T* in) {
    run<T, 1>(
        s, {out, {in}},
        [&](const Arrays<T, 1>& a, int64_t count) {
            T top[kRowsAtOnce], total[kRowsAtOnce];
            row_exp_sums(a.in[0], count, s.size, top, total, [](int64_t, int64_t, auto, Vec<T>) {});
#pragma omp simd
            for (int64_t l = 0; l < count; ++l) total[l] = math::log(total[l]);
            for (int64_t l = 0; l < count; ++l) {
                const T* x = a.in[0] + l * s.size;
                // This is not written as x - (top + log), because the logarithm could be lost in the rounding of a sum
                // with a large `top`.
                map_row(a.out + l * s.size, s.size,
                        [&](int64_t i, auto lanes) { return load(x + i, lanes) - top[l] - total[l]; });
            }
        },
        [&](const Arrays<T, 1>& a, int64_t stride, auto lanes, auto count) {
            constexpr int kCount = decltype(count)::value;
            auto l = side_by_side_log_sum<T, kCount>(a.in[0], s.size, stride, lanes);
            T rest[kCount * kLanes<T>];
            __builtin_memcpy(rest, l.total, sizeof rest);
#pragma omp simd
            for (int i = 0; i < kCount * kLanes<T>; ++i) rest[i] = math::log(rest[i]);
            __builtin_memcpy(l.total, rest, sizeof rest);
            for_side_by_side<T, kCount>(a.in[0], s.size, stride, lanes, [&](int64_t k, int p, Vec<T> v) {
                store(a.out + k * stride + p * kLanes<T>, v - l.top[p] - l.total[p], lanes);
            });
        });
}

template <class T>
void softmax_backward(const SplitShape& s, T* grad_in, const T* grad_out, const T* out) {
    run<T, 2>(
        s, {grad_in, {out, grad_out}},
        [&](const Arrays<T, 2>& a, int64_t count) {
            for (int64_t at = 0; at < count * s.size; at += s.size) {
                const T* y = a.in[0] + at;
                const T* dy = a.in[1] + at;
                T product;
                row_sums<T, 1>(s.size, &product, [&](int64_t i, auto lanes, Vec<T>* v) {
                    v[0] = load(y + i, lanes) * load(dy + i, lanes);
                });
                map_row(a.out + at, s.size, [&](int64_t i, auto lanes) {
                    return load(y + i, lanes) * (load(dy + i, lanes) - product);
                });
            }
        },
        [&](const Arrays<T, 2>& a, int64_t stride, auto lanes, auto count) {
            constexpr int kCount = decltype(count)::value;
            auto position = [&](int64_t k, int p) { return k * stride + p * kLanes<T>; };
            Vec<T> product[kCount] = {};
            for_side_by_side<T, kCount>(a.in[0], s.size, stride, lanes, [&](int64_t k, int p, Vec<T> y) {
                product[p] += y * load(a.in[1] + position(k, p), lanes);
            });
            for_side_by_side<T, kCount>(a.in[0], s.size, stride, lanes, [&](int64_t k, int p, Vec<T> y) {
                store(a.out + position(k, p), y * (load(a.in[1] + position(k, p), lanes) - product[p]),
                      lanes);
            });
        });
}

template <class T>
void log_softmax_backward(const SplitShape& s, T* grad_in, const T* grad_out, const T* out) {
    run<T, 2>(
        s, {grad_in, {out, grad_out}},
        [&](const Arrays<T, 2>& a, int64_t count) {
            for (int64_t at = 0; at < count * s.size; at += s.size) {
                const T* y = a.in[0] + at;
                const T* dy = a.in[1] + at;
                const T total = row_sum(dy, s.size);
                map_row(a.out + at, s.size, [&](int64_t i, auto lanes) {
                    return load(dy + i, lanes) - exp<T>(load(y + i, lanes)) * total;
                });
            }
        },
        [&](const Arrays<T, 2>& a, int64_t stride, auto lanes, auto count) {
            constexpr int kCount = decltype(count)::value;
            Vec<T> total[kCount] = {};
            for_side_by_side<T, kCount>(a.in[1], s.size, stride, lanes,
                                        [&](int64_t, int p, Vec<T> dy) { total[p] += dy; });
            for_side_by_side<T, kCount>(a.in[1], s.size, stride, lanes, [&](int64_t k, int p, Vec<T> dy) {
                const int64_t i = k * stride + p * kLanes<T>;
                store(a.out + i, dy - exp<T>(load(a.in[0] + i, lanes)) * total[p], lanes);
            });
        });
}

template <class T>
constexpr SoftmaxLoops<T> table() {
    return {softmax<T>, log_softmax<T>, softmax_backward<T>, log_softmax_backward<T>};
}

}  // namespace

const SoftmaxKernels softmax_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
