// Layer, root-mean-square and group normalisation, whose statistics are over adjacent elements.
#include "cpu/contiguous.h"
#include "cpu/kernels/rows.h"
#include "cpu/norm_kernels.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int64_t kElementsPerThread = 1 << 15;

int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

template <class T>
T inverse_root(T x) {
    if constexpr (sizeof(T) == 4) {
        return 1 / __builtin_sqrtf(x);
    } else {
        return 1 / __builtin_sqrt(x);
    }
}

// --- rows -------------------------------------------------------------------------------------------------

// Elements are centered before they are scaled, so that the elements of a constant row become exactly 0.
template <class T>
void row_norm(const RowNorm<T>& n) {
    const T size = static_cast<T>(n.size);
    parallel_for(0, n.rows, kElementsPerThread / (n.size + 1) + 1, [&](int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
            const T* x = n.input + r * n.size;
            const T mean = n.centered ? row_sum(x, n.size) / size : T(0);
            const T rstd = inverse_root(row_squares(x, n.size, mean) / size + n.eps);
            if (n.mean != nullptr) n.mean[r] = mean;
            if (n.rstd != nullptr) n.rstd[r] = rstd;
            T* y = n.out + r * n.size;
            if (n.weight != nullptr && n.bias != nullptr) {
                map_row(y, n.size, [&](int64_t i, auto lanes) {
                    return (load(x + i, lanes) - mean) * rstd * load(n.weight + i, lanes) +
                           load(n.bias + i, lanes);
                });
            } else if (n.weight != nullptr) {
                map_row(y, n.size, [&](int64_t i, auto lanes) {
                    return (load(x + i, lanes) - mean) * rstd * load(n.weight + i, lanes);
                });
            } else {
                map_row(y, n.size, [&](int64_t i, auto lanes) {
                    const Vec<T> v = (load(x + i, lanes) - mean) * rstd;
                    return n.bias == nullptr ? v : v + load(n.bias + i, lanes);
                });
            }
        }
    });
}

// Let h = (x - mean) rstd and d = grad_output * weight. Then grad_input = rstd (d - average(d) - h average(d h)).
template <class T>
void input_gradient(const RowNormBackward<T>& n, int64_t r) {
    const T* x = n.input + r * n.size;
    const T* dy = n.grad_output + r * n.size;
    const T rstd = n.rstd[r], mean = n.centered ? n.mean[r] : T(0), size = static_cast<T>(n.size);
    auto direction = [&](int64_t i, auto lanes) {
        const Vec<T> d = load(dy + i, lanes);
        return n.weight == nullptr ? d : d * load(n.weight + i, lanes);
    };
    T sums[2];
    row_sums<T, 2>(n.size, sums, [&](int64_t i, auto lanes, Vec<T>* v) {
        v[0] = direction(i, lanes);
        v[1] = v[0] * ((load(x + i, lanes) - mean) * rstd);
    });
    const T a = n.centered ? sums[0] / size : T(0), slope = sums[1] / size * rstd;
    map_row(n.grad_input + r * n.size, n.size, [&](int64_t i, auto lanes) {
        return (direction(i, lanes) - a - (load(x + i, lanes) - mean) * slope) * rstd;
    });
}

// Adds grad_output * h of one row to `weight`, and grad_output to `bias`. Either may be null.
template <class T>
void add_parameter_gradients(const RowNormBackward<T>& n, int64_t r, T* weight, T* bias) {
    const T* x = n.input + r * n.size;
    const T* dy = n.grad_output + r * n.size;
    const T rstd = n.rstd[r], mean = n.centered ? n.mean[r] : T(0);
    for_each_vector<T>(n.size, [&](int64_t i, auto lanes, int) {
        const Vec<T> d = load(dy + i, lanes);
        if (weight != nullptr) {
            store(weight + i, load(weight + i, lanes) + d * ((load(x + i, lanes) - mean) * rstd), lanes);
        }
        if (bias != nullptr) store(bias + i, load(bias + i, lanes) + d, lanes);
    });
}

template <class T>
void row_norm_backward(KernelContext& ctx, const RowNormBackward<T>& n) {
    const bool parameters = n.grad_weight != nullptr || n.grad_bias != nullptr;
    // Rows are summed in slices, whose sums are added in order afterwards. The number of slices depends on the
    // shape only.
    const int64_t slices =
        parameters ? max(1, min(16, n.rows / 16)) : max(1, n.rows * n.size / kElementsPerThread);
    const int64_t width = (n.size + 15) / 16 * 16;
    T* partial = parameters ? scratch<T>(ctx, 2 * slices * width) : nullptr;
    auto slice = [&](int64_t s) {
        T* weight = n.grad_weight == nullptr ? nullptr : partial + 2 * s * width;
        T* bias = n.grad_bias == nullptr ? nullptr : partial + (2 * s + 1) * width;
        if (parameters)
            __builtin_memset(partial + 2 * s * width, 0, sizeof(T) * static_cast<size_t>(2 * width));
        for (int64_t r = n.rows * s / slices; r < n.rows * (s + 1) / slices; ++r) {
            if (n.grad_input != nullptr) input_gradient(n, r);
            if (parameters) add_parameter_gradients(n, r, weight, bias);
        }
    };
    const int64_t grain = kElementsPerThread * slices / (n.rows * n.size + 1) + 1;
    parallel_for(0, slices, grain, [&](int64_t first, int64_t last) {
        for (int64_t s = first; s < last; ++s) slice(s);
    });
    if (!parameters) return;
    for (int which = 0; which < 2; ++which) {
        T* total = which == 0 ? n.grad_weight : n.grad_bias;
        if (total == nullptr) continue;
        for (int64_t i = 0; i < n.size; ++i) total[i] = partial[which * width + i];
        for (int64_t s = 1; s < slices; ++s) {
            for (int64_t i = 0; i < n.size; ++i) total[i] += partial[(2 * s + which) * width + i];
        }
    }
}

// --- groups ------------------------------------------------------------------------------------------------

template <class T>
void group_norm(const GroupNorm<T>& n) {
    const int64_t count = n.channels * n.size;
    parallel_for(
        0, n.batch * n.groups, kElementsPerThread / (count + 1) + 1, [&](int64_t first, int64_t last) {
            for (int64_t g = first; g < last; ++g) {
                const T* x = n.input + g * count;
                const T mean = row_sum(x, count) / static_cast<T>(count);
                const T rstd = inverse_root(row_squares(x, count, mean) / static_cast<T>(count) + n.eps);
                if (n.mean != nullptr) n.mean[g] = mean;
                if (n.rstd != nullptr) n.rstd[g] = rstd;
                for (int64_t c = 0; c < n.channels; ++c) {
                    const int64_t channel = g % n.groups * n.channels + c;
                    const T scale = n.weight == nullptr ? rstd : rstd * n.weight[channel];
                    const T shift = n.bias == nullptr ? T(0) : n.bias[channel];
                    const T* row = x + c * n.size;
                    map_row(n.out + g * count + c * n.size, n.size, [&](int64_t i, auto lanes) {
                        return (load(row + i, lanes) - mean) * scale + shift;
                    });
                }
            }
        });
}

template <class T>
void group_norm_backward(KernelContext& ctx, const GroupNormBackward<T>& n) {
    // The sums of grad_output and of grad_output * h for each channel of each sample, where h is the normalised
    // input.
    const int64_t rows = n.batch * n.groups * n.channels, count = n.channels * n.size;
    T* sums = scratch<T>(ctx, 2 * rows);
    parallel_for(
        0, n.batch * n.groups, kElementsPerThread / (count + 1) + 1, [&](int64_t first, int64_t last) {
            for (int64_t g = first; g < last; ++g) {
                const T rstd = n.rstd[g], mean = n.mean[g];
                const T* weight = n.weight == nullptr ? nullptr : n.weight + g % n.groups * n.channels;
                T a = T(0), b = T(0);
                for (int64_t c = 0; c < n.channels; ++c) {
                    const int64_t row = g * n.channels + c;
                    const T* x = n.input + row * n.size;
                    const T* dy = n.grad_output + row * n.size;
                    row_sums<T, 2>(n.size, sums + 2 * row, [&](int64_t i, auto lanes, Vec<T>* v) {
                        v[0] = load(dy + i, lanes);
                        v[1] = v[0] * ((load(x + i, lanes) - mean) * rstd);
                    });
                    const T w = weight == nullptr ? T(1) : weight[c];
                    a += w * sums[2 * row];
                    b += w * sums[2 * row + 1];
                }
                if (n.grad_input == nullptr) continue;
                a /= static_cast<T>(count);
                b /= static_cast<T>(count);
                const T slope = -b * rstd * rstd, constant = -a * rstd;
                for (int64_t c = 0; c < n.channels; ++c) {
                    const int64_t at = (g * n.channels + c) * n.size;
                    const T scale = weight == nullptr ? rstd : rstd * weight[c];
                    map_row(n.grad_input + at, n.size, [&](int64_t i, auto lanes) {
                        return load(n.grad_output + at + i, lanes) * scale +
                               ((load(n.input + at + i, lanes) - mean) * slope + constant);
                    });
                }
            }
        });
    const int64_t channels = n.groups * n.channels;
    for (int64_t c = 0; c < channels; ++c) {
        T bias = T(0), weight = T(0);
        for (int64_t b = 0; b < n.batch; ++b) {
            bias += sums[2 * (b * channels + c)];
            weight += sums[2 * (b * channels + c) + 1];
        }
        if (n.grad_bias != nullptr) n.grad_bias[c] = bias;
        if (n.grad_weight != nullptr) n.grad_weight[c] = weight;
    }
}

template <class T>
constexpr RowNormLoops<T> table() {
    return {row_norm<T>, row_norm_backward<T>, group_norm<T>, group_norm_backward<T>};
}

}  // namespace

const RowNormKernels row_norm_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
