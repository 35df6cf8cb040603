#include "cpu/loss_kernels.h"

#include "cpu/kernels/short_rows.h"
#include "cpu/kernels/softmax_rows.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int64_t kElementsPerThread = 1 << 13;

// Calls body(batch, first position, count) for vectors of positions, or for single positions if inner is 1.
template <class T, class Body>
void for_positions(const CrossEntropy<T>& c, Body&& body) {
    constexpr int kL = kLanes<T>;
    const int64_t blocks = (c.inner + kL - 1) / kL;
    parallel_for(0, c.batch * blocks, kElementsPerThread / (c.classes * (c.inner == 1 ? 1 : kL) + 1) + 1,
                 [&](int64_t first, int64_t last) {
                     for (int64_t b = first; b < last; ++b) {
                         const int64_t i = b % blocks * kL;
                         body(b / blocks, i, c.inner - i < kL ? c.inner - i : kL);
                     }
                 });
}

// Writes the logarithms of `count` sums. x holds one sum in each lane.
template <class T>
void store_logs(T* to, int64_t count, const LogSums<T, 1>& x) {
    T top[kLanes<T>], total[kLanes<T>];
    store(top, x.top[0]);
    store(total, x.total[0]);
#pragma omp simd
    for (int64_t l = 0; l < count; ++l) to[l] = top[l] + math::log(total[l]);
}

// Writes the logarithms of the sums of short rows.
template <class T>
void log_sums_of_short_rows(const CrossEntropy<T>& c, T* log_sum) {
    constexpr int kL = kLanes<T>;
    const int64_t groups = (c.batch + kL - 1) / kL;
    parallel_for(0, groups, kElementsPerThread / (c.classes * kL) + 1, [&](int64_t first, int64_t last) {
        ShortRows<T> columns;
        for (int64_t g = first; g < last; ++g) {
            const int64_t n = g * kL, rows = c.batch - n < kL ? c.batch - n : kL;
            columns.read(c.input + n * c.classes, rows, c.classes, c.classes);
            store_logs(log_sum + n, rows,
                       side_by_side_log_sum<T, 1>(columns.elements, c.classes, kL, WholeVector<T>{}));
        }
    });
}

template <class T>
void log_sums(const CrossEntropy<T>& c, T* log_sum) {
    if (c.inner == 1 && c.classes <= kShortRow<T>) return log_sums_of_short_rows(c, log_sum);
    if (c.inner == 1) {
        parallel_for(0, c.batch, kElementsPerThread / c.classes + 1, [&](int64_t first, int64_t last) {
            const int64_t step = rows_at_once(c.classes);
            for (int64_t n = first; n < last; n += step) {
                const int64_t count = last - n < step ? last - n : step;
                T top[kRowsAtOnce], total[kRowsAtOnce];
                row_exp_sums(c.input + n * c.classes, count, c.classes, top, total,
                             [](int64_t, int64_t, auto, Vec<T>) {});
#pragma omp simd
                for (int64_t l = 0; l < count; ++l) log_sum[n + l] = top[l] + math::log(total[l]);
            }
        });
        return;
    }
    for_positions(c, [&](int64_t n, int64_t i, int64_t count) {
        const T* x = c.input + n * c.classes * c.inner + i;
        store_logs(log_sum + n * c.inner + i, count,
                   side_by_side_log_sum<T, 1>(x, c.classes, c.inner, Lanes<T>(count)));
    });
}

// The loss, where p are the probabilities, w the weights, s the smoothing and t the target: (1 - s) w_t (-log
// p_t) + s / classes * sum over c of w_c (-log p_c).
template <class T>
void cross_entropy(const CrossEntropy<T>& c, T* loss, const T* log_sum) {
    for_positions(c, [&](int64_t n, int64_t i, int64_t count) {
        const T* x = c.input + n * c.classes * c.inner + i;
        const int64_t position = n * c.inner + i;
        for (int64_t l = 0; l < count; ++l) {
            const int64_t t = c.target[position + l];
            if (t == c.ignore_index) {
                loss[position + l] = T(0);
                continue;
            }
            const T w = c.weight == nullptr ? T(1) : c.weight[t];
            T value = (1 - c.smoothing) * w * (log_sum[position + l] - x[t * c.inner + l]);
            if (c.smoothing != T(0)) {
                T total = T(0);
                for (int64_t k = 0; k < c.classes; ++k) {
                    total += (c.weight == nullptr ? T(1) : c.weight[k]) *
                             (log_sum[position + l] - x[k * c.inner + l]);
                }
                value += c.smoothing / static_cast<T>(c.classes) * total;
            }
            loss[position + l] = value;
        }
    });
}

// The derivative with respect to input k: p_k ((1 - s) w_t + s / classes * sum of w) - s / classes * w_k, minus
// (1 - s) w_t if k is the target.
template <class T>
void cross_entropy_backward(const CrossEntropy<T>& c, T* grad_input, const T* grad, const T* log_sum) {
    constexpr int kL = kLanes<T>;
    const T even = c.smoothing / static_cast<T>(c.classes);
    T weights = static_cast<T>(c.classes);
    if (c.weight != nullptr && c.smoothing != T(0)) {
        weights = T(0);
        for (int64_t k = 0; k < c.classes; ++k) weights += c.weight[k];
    }
    for_positions(c, [&](int64_t n, int64_t i, int64_t count) {
        const int64_t at = n * c.classes * c.inner + i, position = n * c.inner + i;
        const T* x = c.input + at;
        T* dx = grad_input + at;
        // For each position, the gradient of its loss and the factor of its probabilities. Both are 0 if the
        // position is ignored.
        T g[kL] = {}, scale[kL] = {};
        for (int64_t l = 0; l < count; ++l) {
            const int64_t t = c.target[position + l];
            if (t == c.ignore_index) continue;
            g[l] = grad[position + l];
            scale[l] =
                g[l] * ((1 - c.smoothing) * (c.weight == nullptr ? T(1) : c.weight[t]) + even * weights);
        }
        if (c.inner == 1) {
            if (c.target[position] == c.ignore_index) {  // zero even if the input is infinite
                __builtin_memset(dx, 0, sizeof(T) * static_cast<size_t>(c.classes));
                return;
            }
            const T shift = log_sum[position], less = g[0] * even;
            map_row(dx, c.classes, [&](int64_t k, auto lanes) {
                const Vec<T> v = exp<T>(load(x + k, lanes) - shift) * scale[0];
                return c.weight == nullptr ? v - less : v - less * load(c.weight + k, lanes);
            });
        } else {
            const Lanes<T> lanes(count);
            const Vec<T> shift = load(log_sum + position, lanes), factor = load(scale), less = load(g) * even;
            for (int64_t k = 0; k < c.classes; ++k) {
                const Vec<T> v = exp<T>(load(x + k * c.inner, lanes) - shift) * factor;
                store(dx + k * c.inner, v - less * (c.weight == nullptr ? T(1) : c.weight[k]), lanes);
            }
        }
        for (int64_t l = 0; l < count; ++l) {
            const int64_t t = c.target[position + l];
            if (t == c.ignore_index) {
                for (int64_t k = 0; k < c.classes; ++k) dx[k * c.inner + l] = T(0);
            } else {
                dx[t * c.inner + l] -= g[l] * (1 - c.smoothing) * (c.weight == nullptr ? T(1) : c.weight[t]);
            }
        }
    });
}

template <class T>
constexpr LossLoops<T> table() {
    return {log_sums<T>, cross_entropy<T>, cross_entropy_backward<T>};
}

}  // namespace

const LossKernels loss_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
