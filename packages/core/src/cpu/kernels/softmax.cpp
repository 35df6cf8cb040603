#include "cpu/softmax_kernels.h"

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

// Calls rows(at, count) for groups of rows of adjacent elements, or side(at, lanes, Count) for vectors of adjacent
// columns.
template <class T, class Rows, class Side>
void run(const SplitShape& s, Rows&& rows, Side&& side) {
    constexpr int kL = kLanes<T>;
    if (s.inner == 1) {
        parallel_for(0, s.outer, kElementsPerThread / s.size + 1, [&](int64_t first, int64_t last) {
            const int64_t step = rows_at_once(s.size);
            for (int64_t o = first; o < last; o += step) rows(o * s.size, last - o < step ? last - o : step);
        });
        return;
    }
    const int64_t blocks = (s.inner + 4 * kL - 1) / (4 * kL);
    parallel_for(0, s.outer * blocks, kElementsPerThread / (s.size * 4 * kL) + 1,
                 [&](int64_t first, int64_t last) {
                     for (int64_t b = first; b < last; ++b) {
                         int64_t i = b % blocks * 4 * kL;
                         const int64_t at = b / blocks * s.size * s.inner;
                         if (i + 4 * kL <= s.inner) {
                             side(at + i, WholeVector<T>{}, Count<4>{});
                             continue;
                         }
                         for (; i + kL <= s.inner; i += kL) side(at + i, WholeVector<T>{}, Count<1>{});
                         if (i < s.inner) side(at + i, Lanes<T>(s.inner - i), Count<1>{});
                     }
                 });
}

template <class T>
void softmax(const SplitShape& s, T* out, const T* in) {
    run<T>(
        s,
        [&](int64_t at, int64_t count) {
            T* y = out + at;
            T top[kRowsAtOnce], total[kRowsAtOnce];
            row_exp_sums(in + at, count, s.size, top, total, [&](int64_t l, int64_t i, auto lanes, Vec<T> e) {
                store(y + l * s.size + i, e, lanes);
            });
            for (int64_t l = 0; l < count; ++l) total[l] = T(1) / total[l];
            for (int64_t l = 0; l < count; ++l) {
                T* row = y + l * s.size;
                map_row(row, s.size, [&](int64_t i, auto lanes) { return load(row + i, lanes) * total[l]; });
            }
        },
        [&](int64_t at, auto lanes, auto count) {
            constexpr int kCount = decltype(count)::value;
            const auto l = side_by_side_log_sum<T, kCount>(in + at, s.size, s.inner, lanes);
            Vec<T> scale[kCount];
#pragma GCC unroll 4
            for (int p = 0; p < kCount; ++p) scale[p] = T(1) / l.total[p];
            for_side_by_side<T, kCount>(in + at, s.size, s.inner, lanes, [&](int64_t k, int p, Vec<T> v) {
                store(out + at + k * s.inner + p * kLanes<T>, exp<T>(v - l.top[p]) * scale[p], lanes);
            });
        });
}

template <class T>
void log_softmax(const SplitShape& s, T* out, const T* in) {
    run<T>(
        s,
        [&](int64_t at, int64_t count) {
            T top[kRowsAtOnce], total[kRowsAtOnce];
            row_exp_sums(in + at, count, s.size, top, total, [](int64_t, int64_t, auto, Vec<T>) {});
#pragma omp simd
            for (int64_t l = 0; l < count; ++l) total[l] = math::log(total[l]);
            for (int64_t l = 0; l < count; ++l) {
                const T* x = in + at + l * s.size;
                // Not x - (top + log), where a large top would absorb the logarithm.
                map_row(out + at + l * s.size, s.size,
                        [&](int64_t i, auto lanes) { return load(x + i, lanes) - top[l] - total[l]; });
            }
        },
        [&](int64_t at, auto lanes, auto count) {
            constexpr int kCount = decltype(count)::value;
            auto l = side_by_side_log_sum<T, kCount>(in + at, s.size, s.inner, lanes);
            T rest[kCount * kLanes<T>];
            __builtin_memcpy(rest, l.total, sizeof rest);
#pragma omp simd
            for (int i = 0; i < kCount * kLanes<T>; ++i) rest[i] = math::log(rest[i]);
            __builtin_memcpy(l.total, rest, sizeof rest);
            for_side_by_side<T, kCount>(in + at, s.size, s.inner, lanes, [&](int64_t k, int p, Vec<T> v) {
                store(out + at + k * s.inner + p * kLanes<T>, v - l.top[p] - l.total[p], lanes);
            });
        });
}

template <class T>
void softmax_backward(const SplitShape& s, T* grad_in, const T* grad_out, const T* out) {
    run<T>(
        s,
        [&](int64_t begin, int64_t count) {
            for (int64_t at = begin; at < begin + count * s.size; at += s.size) {
                const T* y = out + at;
                const T* dy = grad_out + at;
                T product;
                row_sums<T, 1>(s.size, &product, [&](int64_t i, auto lanes, Vec<T>* v) {
                    v[0] = load(y + i, lanes) * load(dy + i, lanes);
                });
                map_row(grad_in + at, s.size, [&](int64_t i, auto lanes) {
                    return load(y + i, lanes) * (load(dy + i, lanes) - product);
                });
            }
        },
        [&](int64_t at, auto lanes, auto count) {
            constexpr int kCount = decltype(count)::value;
            auto position = [&](int64_t k, int p) { return at + k * s.inner + p * kLanes<T>; };
            Vec<T> product[kCount] = {};
            for_side_by_side<T, kCount>(out + at, s.size, s.inner, lanes, [&](int64_t k, int p, Vec<T> y) {
                product[p] += y * load(grad_out + position(k, p), lanes);
            });
            for_side_by_side<T, kCount>(out + at, s.size, s.inner, lanes, [&](int64_t k, int p, Vec<T> y) {
                store(grad_in + position(k, p), y * (load(grad_out + position(k, p), lanes) - product[p]),
                      lanes);
            });
        });
}

template <class T>
void log_softmax_backward(const SplitShape& s, T* grad_in, const T* grad_out, const T* out) {
    run<T>(
        s,
        [&](int64_t begin, int64_t count) {
            for (int64_t at = begin; at < begin + count * s.size; at += s.size) {
                const T* y = out + at;
                const T* dy = grad_out + at;
                const T total = row_sum(dy, s.size);
                map_row(grad_in + at, s.size, [&](int64_t i, auto lanes) {
                    return load(dy + i, lanes) - exp<T>(load(y + i, lanes)) * total;
                });
            }
        },
        [&](int64_t at, auto lanes, auto count) {
            constexpr int kCount = decltype(count)::value;
            Vec<T> total[kCount] = {};
            for_side_by_side<T, kCount>(grad_out + at, s.size, s.inner, lanes,
                                        [&](int64_t, int p, Vec<T> dy) { total[p] += dy; });
            for_side_by_side<T, kCount>(
                grad_out + at, s.size, s.inner, lanes, [&](int64_t k, int p, Vec<T> dy) {
                    const int64_t i = at + k * s.inner + p * kLanes<T>;
                    store(grad_in + i, dy - exp<T>(load(out + i, lanes)) * total[p], lanes);
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
