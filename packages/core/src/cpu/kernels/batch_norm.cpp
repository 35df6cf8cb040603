#include "cpu/kernels/channel_rows.h"
#include "cpu/norm_kernels.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int64_t kElementsPerThread = 1 << 15;

// --- statistics of one channel, gathered from its planes in double -----------------------------------------

// Sums the differences of a channel from `center`, and their squares.
template <class T>
void sum_differences(const BatchNorm<T>& n, int64_t c, T center, double& total, double& squares) {
    total = squares = 0;
    for (int64_t b = 0; b < n.batch; ++b) {
        const T* x = n.input + (b * n.channels + c) * n.size;
        T sums[2];
        row_sums<T, 2>(n.size, sums, [&](int64_t i, auto lanes, Vec<T>* v) {
            v[0] = keep(load(x + i, lanes) - center, lanes);
            v[1] = v[0] * v[0];
        });
        total += sums[0];
        squares += sums[1];
    }
}

// Computes the mean and the sum of squared differences from the mean. The first pass sums the differences from an estimate,
// which is the mean of the first plane, and corrects the sums for the error of the estimate. This correction loses digits if
// the estimate is far from the mean. In this case a second pass uses the computed mean as the estimate.
template <class T>
void channel_moments(const BatchNorm<T>& n, int64_t c, double& mean, double& squares) {
    const double count = static_cast<double>(n.batch * n.size);
    mean = row_sum(n.input + c * n.size, n.size) / static_cast<double>(n.size);
    for (int pass = 0; pass < 2; ++pass) {
        const T center = static_cast<T>(mean);
        double total, all;
        sum_differences(n, c, center, total, all);
        mean = center + total / count;
        squares = all - total * total / count;
        if (all <= 4 * squares) return;
    }
}

template <class T>
void mix_running(const BatchNorm<T>& n, int64_t c, double mean, double squares) {
    const double count = static_cast<double>(n.batch * n.size), m = n.momentum;
    if (n.running_mean != nullptr) n.running_mean[c] = static_cast<T>((1 - m) * n.running_mean[c] + m * mean);
    if (n.running_var != nullptr) {
        const double unbiased = squares / (count - 1);
        n.running_var[c] = static_cast<T>((1 - m) * n.running_var[c] + m * unbiased);
    }
}

// The factor and the offset by which a channel is transformed.
template <class T>
struct Affine {
    T scale, shift;
};

template <class T>
Affine<T> settle(const BatchNorm<T>& n, int64_t c, double mean, double squares) {
    double invstd;
    if (n.training) {
        invstd = 1 / __builtin_sqrt(squares / static_cast<double>(n.batch * n.size) + n.eps);
        mix_running(n, c, mean, squares);
    } else {
        mean = n.running_mean[c];
        invstd = 1 / __builtin_sqrt(static_cast<double>(n.running_var[c]) + n.eps);
    }
    if (n.save_mean != nullptr) n.save_mean[c] = static_cast<T>(mean);
    if (n.save_invstd != nullptr) n.save_invstd[c] = static_cast<T>(invstd);
    const double scale = n.weight != nullptr ? invstd * n.weight[c] : invstd;
    return {static_cast<T>(scale), static_cast<T>((n.bias != nullptr ? n.bias[c] : 0) - mean * scale)};
}

// --- planes: a channel is `batch` rows of `size` elements -------------------------------------------------

template <class T>
void forward_planes(const BatchNorm<T>& n) {
    parallel_for(0, n.channels, kElementsPerThread / (n.batch * n.size) + 1,
                 [&](int64_t first, int64_t last) {
                     for (int64_t c = first; c < last; ++c) {
                         double mean = 0, squares = 0;
                         if (n.training) channel_moments(n, c, mean, squares);
                         const Affine<T> a = settle(n, c, mean, squares);
                         for (int64_t b = 0; b < n.batch; ++b) {
                             const int64_t at = (b * n.channels + c) * n.size;
                             const auto value = [&](int64_t i, auto lanes) {
                                 return load(n.input + at + i, lanes) * a.scale + a.shift;
                             };
                             if (!n.stream) {  // the input is in the cache
                                 map_row(n.out + at, n.size, value);
                                 continue;
                             }
                             map_row(n.out + at, n.size, true, [&](int64_t i, auto lanes) {
                                 __builtin_prefetch(n.input + at + n.size + i, 0, 2);
                                 return value(i, lanes);
                             });
                         }
                     }
                     if (n.stream) _mm_sfence();
                 });
}

// Gradients of the result. Gradient is grad_output itself; MaskedGradient is 0 where the following activation has
// no gradient.
template <class T>
struct Gradient {
    const T* grad;
    explicit Gradient(const BatchNormBackward<T>& n) : grad(n.grad_output) {}
    template <class L>
    [[gnu::always_inline]] Vec<T> at(int64_t i, L lanes) const {
        return load(grad + i, lanes);
    }
    [[gnu::always_inline]] void prefetch(int64_t i) const { __builtin_prefetch(grad + i, 0, 2); }
};
template <class T>
struct MaskedGradient {
    const T* grad;
    const T* activation;
    T low, high;
    explicit MaskedGradient(const BatchNormBackward<T>& n)
        : grad(n.grad_output), activation(n.activation), low(n.low), high(n.high) {}
    template <class L>
    [[gnu::always_inline]] Vec<T> at(int64_t i, L lanes) const {
        const Vec<T> y = load(activation + i, lanes);
        return (y <= low) | (y >= high) ? Vec<T>{} : load(grad + i, lanes);
    }
    [[gnu::always_inline]] void prefetch(int64_t i) const {
        __builtin_prefetch(grad + i, 0, 2);
        __builtin_prefetch(activation + i, 0, 2);
    }
};

// The coefficients in grad_input = p * grad_output + q * input + r.
template <class T>
struct InputGradient {
    T p, q, r;
};

// Computes the gradients of a channel's weight and bias, and the coefficients of its input gradient, from the sums
// of grad_output and of grad_output * (input - mean).
template <class T>
InputGradient<T> settle_gradients(const BatchNormBackward<T>& n, int64_t c, double sum_dy, double sum_dy_x) {
    const double mean = n.mean[c], invstd = n.invstd[c], weight = n.weight != nullptr ? n.weight[c] : 1;
    if (n.grad_weight != nullptr) n.grad_weight[c] = static_cast<T>(sum_dy_x * invstd);
    if (n.grad_bias != nullptr) n.grad_bias[c] = static_cast<T>(sum_dy);
    const double p = invstd * weight;
    if (!n.training) return {static_cast<T>(p), T(0), T(0)};
    const double count = static_cast<double>(n.batch * n.size);
    const double q = -p * invstd * invstd * sum_dy_x / count;
    return {static_cast<T>(p), static_cast<T>(q), static_cast<T>(-p * sum_dy / count - q * mean)};
}

template <class T, class G>
void backward_planes(const BatchNormBackward<T>& n, const G& gradient) {
    parallel_for(
        0, n.channels, kElementsPerThread / (n.batch * n.size) + 1, [&](int64_t first, int64_t last) {
            for (int64_t c = first; c < last; ++c) {
                double sum_dy = 0, sum_dy_x = 0;
                const T mean = n.mean[c];
                for (int64_t b = 0; b < n.batch; ++b) {
                    const int64_t at = (b * n.channels + c) * n.size;
                    T sums[2];
                    row_sums<T, 2>(n.size, sums, [&](int64_t i, auto lanes, Vec<T>* v) {
                        v[0] = gradient.at(at + i, lanes);
                        v[1] = v[0] * (load(n.input + at + i, lanes) - mean);
                    });
                    sum_dy += sums[0];
                    sum_dy_x += sums[1];
                }
                const InputGradient<T> g = settle_gradients(n, c, sum_dy, sum_dy_x);
                if (n.grad_input == nullptr) continue;
                for (int64_t b = 0; b < n.batch; ++b) {
                    const int64_t at = (b * n.channels + c) * n.size;
                    if (!n.training) {  // the gradient does not depend on the input, which may be infinite
                        map_row(n.grad_input + at, n.size, n.stream,
                                [&](int64_t i, auto lanes) { return gradient.at(at + i, lanes) * g.p; });
                        continue;
                    }
                    map_row(n.grad_input + at, n.size, n.stream, [&](int64_t i, auto lanes) {
                        __builtin_prefetch(n.input + at + n.size + i, 0, 2);
                        gradient.prefetch(at + n.size + i);
                        return gradient.at(at + i, lanes) * g.p + (load(n.input + at + i, lanes) * g.q + g.r);
                    });
                }
            }
            if (n.stream) _mm_sfence();
        });
}

// --- rows: one element for each channel and sample, or channels-last, so that vectors run along the channels ----

// Computes the mean of each channel, and the sum of squared differences from it, as channel_moments() does.
template <class T>
void row_moments(KernelContext& ctx, const BatchNorm<T>& n, const ChannelRows<T>& m, double* mean,
                 double* squares) {
    const int64_t channels = n.channels, sample = n.batch < 32 ? n.batch : 32;
    const auto count = static_cast<double>(n.batch);
    ChannelSums<T, 2> sum(ctx, m, 1);
    T* center = scratch<T>(ctx, m.padded());
    for (int64_t c = 0; c < channels; ++c) mean[c] = 0;
    for (int64_t r = 0; r < sample; ++r)
        for (int64_t c = 0; c < channels; ++c) mean[c] += n.input[r * channels + c];
    for (int64_t c = 0; c < channels; ++c) mean[c] /= static_cast<double>(sample);
    for (int pass = 0; pass < 2; ++pass) {
        for (int64_t c = 0; c < channels; ++c) center[c] = static_cast<T>(mean[c]);
        m.repeat(center);
        const double* sums =
            sum([&](int64_t at, int64_t i, auto lanes, Vec<T>* v) __attribute__((always_inline)) {
                v[0] = keep(load(n.input + at, lanes) - load(center + i, lanes), lanes);
                v[1] = v[0] * v[0];
            });
        bool precise = true;
        for (int64_t c = 0; c < channels; ++c) {
            const double total = sums[c], all = sums[channels + c];
            mean[c] = center[c] + total / count;
            squares[c] = all - total * total / count;
            precise = precise && all <= 4 * squares[c];
        }
        if (precise) return;
    }
}

template <class T>
void forward_rows(KernelContext& ctx, const BatchNorm<T>& n) {
    const ChannelRows<T> m(n.batch, n.channels);
    double* mean = scratch<double>(ctx, 2 * n.channels);
    double* squares = mean + n.channels;
    if (n.training) row_moments(ctx, n, m, mean, squares);
    T* scale = scratch<T>(ctx, 2 * m.padded());
    T* shift = scale + m.padded();
    for (int64_t c = 0; c < n.channels; ++c) {
        const Affine<T> a = settle(n, c, n.training ? mean[c] : 0, n.training ? squares[c] : 0);
        scale[c] = a.scale;
        shift[c] = a.shift;
    }
    m.repeat(scale), m.repeat(shift);
    map_channels(m, n.out, n.stream, [&](int64_t at, int64_t i, auto lanes) __attribute__((always_inline)) {
        return load(n.input + at, lanes) * load(scale + i, lanes) + load(shift + i, lanes);
    });
}

template <class T, class G>
void backward_rows(KernelContext& ctx, const BatchNormBackward<T>& n, const G& gradient) {
    const ChannelRows<T> m(n.batch, n.channels);
    const int64_t channels = n.channels, padded = m.padded();
    T* mean = scratch<T>(ctx, 4 * padded);
    T *p = mean + padded, *q = p + padded, *shift = q + padded;
    for (int64_t c = 0; c < channels; ++c) mean[c] = n.mean[c];
    m.repeat(mean);
    ChannelSums<T, 2> sum(ctx, m, 2);
    const double* sums =
        sum([&](int64_t at, int64_t i, auto lanes, Vec<T>* v) __attribute__((always_inline)) {
            v[0] = gradient.at(at, lanes);
            v[1] = v[0] * (load(n.input + at, lanes) - load(mean + i, lanes));
        });
    for (int64_t c = 0; c < channels; ++c) {
        const InputGradient<T> g = settle_gradients(n, c, sums[c], sums[channels + c]);
        p[c] = g.p;
        q[c] = g.q;
        shift[c] = g.r;
    }
    if (n.grad_input == nullptr) return;
    m.repeat(p), m.repeat(q), m.repeat(shift);
    if (!n.training) {  // the gradient does not depend on the input, which may be infinite
        map_channels(m, n.grad_input, n.stream,
                     [&](int64_t at, int64_t i, auto lanes) __attribute__((always_inline)) {
                         return gradient.at(at, lanes) * load(p + i, lanes);
                     });
        return;
    }
    map_channels(m, n.grad_input, n.stream,
                 [&](int64_t at, int64_t i, auto lanes) __attribute__((always_inline)) {
                     return gradient.at(at, lanes) * load(p + i, lanes) +
                            (load(n.input + at, lanes) * load(q + i, lanes) + load(shift + i, lanes));
                 });
}

template <class T>
void batch_norm(KernelContext& ctx, const BatchNorm<T>& n) {
    n.size == 1 ? forward_rows(ctx, n) : forward_planes(n);
}

template <class T, class G>
void backward(KernelContext& ctx, const BatchNormBackward<T>& n, const G& gradient) {
    n.size == 1 ? backward_rows(ctx, n, gradient) : backward_planes(n, gradient);
}

template <class T>
void batch_norm_backward(KernelContext& ctx, const BatchNormBackward<T>& n) {
    n.activation == nullptr ? backward(ctx, n, Gradient<T>(n)) : backward(ctx, n, MaskedGradient<T>(n));
}

template <class T>
constexpr BatchNormLoops<T> table() {
    return {batch_norm<T>, batch_norm_backward<T>};
}

}  // namespace

const BatchNormKernels batch_norm_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
