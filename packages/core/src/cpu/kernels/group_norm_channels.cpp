// Group normalisation of channels-last tensors: the sums of the channels are added up for each group.
#include "cpu/kernels/channel_rows.h"
#include "cpu/norm_kernels.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

// Adds up the sums of the channels of each group, each times its factor if `factors` is not null.
template <class T>
double sum_of_group(const double* sums, const T* factors, int64_t first, int64_t channels) {
    double total = 0;
    for (int64_t c = first; c < first + channels; ++c)
        total += factors == nullptr ? sums[c] : sums[c] * static_cast<double>(factors[c]);
    return total;
}

template <class T>
void group_norm(KernelContext& ctx, const GroupNorm<T>& n) {
    const int64_t channels = n.groups * n.channels;
    const ChannelRows<T> m(n.size, channels);
    ChannelSums<T, 1> sum(ctx, m, 1);
    T* mean = scratch<T>(ctx, 3 * m.padded());
    T *scale = mean + m.padded(), *shift = scale + m.padded();
    const auto count = static_cast<double>(n.channels * n.size);
    for (int64_t b = 0; b < n.batch; ++b) {
        const T* x = n.input + b * channels * n.size;
        const double* sums = sum([&](int64_t at, int64_t, auto lanes, Vec<T>* v)
                                     __attribute__((always_inline)) { v[0] = load(x + at, lanes); });
        for (int64_t c = 0; c < channels; ++c) {
            mean[c] = c % n.channels == 0
                          ? static_cast<T>(sum_of_group<T>(sums, nullptr, c, n.channels) / count)
                          : mean[c - 1];
            shift[c] = n.bias == nullptr ? T(0) : n.bias[c];
        }
        m.repeat(mean), m.repeat(shift);
        sums = sum([&](int64_t at, int64_t i, auto lanes, Vec<T>* v) __attribute__((always_inline)) {
            const Vec<T> d = keep(load(x + at, lanes) - load(mean + i, lanes), lanes);
            v[0] = d * d;
        });
        for (int64_t g = 0; g < n.groups; ++g) {
            const int64_t first = g * n.channels;
            const double variance = sum_of_group<T>(sums, nullptr, first, n.channels) / count;
            const T rstd = static_cast<T>(1 / __builtin_sqrt(variance + static_cast<double>(n.eps)));
            if (n.mean != nullptr) n.mean[b * n.groups + g] = mean[first];
            if (n.rstd != nullptr) n.rstd[b * n.groups + g] = rstd;
            for (int64_t c = first; c < first + n.channels; ++c)
                scale[c] = n.weight == nullptr ? rstd : rstd * n.weight[c];
        }
        m.repeat(scale);
        map_channels(m, n.out + b * channels * n.size, false,
                     [&](int64_t at, int64_t i, auto lanes) __attribute__((always_inline)) {
                         return (load(x + at, lanes) - load(mean + i, lanes)) * load(scale + i, lanes) +
                                load(shift + i, lanes);
                     });
    }
}

template <class T>
void group_norm_backward(KernelContext& ctx, const GroupNormBackward<T>& n) {
    const int64_t channels = n.groups * n.channels, sample = n.size * channels;
    const ChannelRows<T> m(n.size, channels);
    ChannelSums<T, 2> sum(ctx, m, 2);
    T* mean = scratch<T>(ctx, 5 * m.padded());
    T *rstd = mean + m.padded(), *scale = rstd + m.padded(), *slope = scale + m.padded(),
      *constant = slope + m.padded();
    double* totals = scratch<double>(ctx, 2 * channels);
    for (int64_t i = 0; i < 2 * channels; ++i) totals[i] = 0;
    const auto count = static_cast<double>(n.channels * n.size);
    for (int64_t b = 0; b < n.batch; ++b) {
        const T *x = n.input + b * sample, *dy = n.grad_output + b * sample;
        for (int64_t c = 0; c < channels; ++c) {
            mean[c] = n.mean[b * n.groups + c / n.channels];
            rstd[c] = n.rstd[b * n.groups + c / n.channels];
        }
        m.repeat(mean), m.repeat(rstd);
        // The sums of grad_output and of grad_output times the normalised input.
        const double* sums =
            sum([&](int64_t at, int64_t i, auto lanes, Vec<T>* v) __attribute__((always_inline)) {
                v[0] = load(dy + at, lanes);
                v[1] = v[0] * ((load(x + at, lanes) - load(mean + i, lanes)) * load(rstd + i, lanes));
            });
        for (int64_t i = 0; i < 2 * channels; ++i) totals[i] += sums[i];
        if (n.grad_input == nullptr) continue;
        for (int64_t g = 0; g < n.groups; ++g) {
            const int64_t first = g * n.channels;
            const double a = sum_of_group(sums, n.weight, first, n.channels) / count;
            const double s = sum_of_group(sums + channels, n.weight, first, n.channels) / count;
            for (int64_t c = first; c < first + n.channels; ++c) {
                scale[c] = n.weight == nullptr ? rstd[c] : rstd[c] * n.weight[c];
                slope[c] = static_cast<T>(-s) * rstd[c] * rstd[c];
                constant[c] = static_cast<T>(-a) * rstd[c];
            }
        }
        m.repeat(scale), m.repeat(slope), m.repeat(constant);
        map_channels(m, n.grad_input + b * sample, false,
                     [&](int64_t at, int64_t i, auto lanes) __attribute__((always_inline)) {
                         return load(dy + at, lanes) * load(scale + i, lanes) +
                                ((load(x + at, lanes) - load(mean + i, lanes)) * load(slope + i, lanes) +
                                 load(constant + i, lanes));
                     });
    }
    for (int64_t c = 0; c < channels; ++c) {
        if (n.grad_bias != nullptr) n.grad_bias[c] = static_cast<T>(totals[c]);
        if (n.grad_weight != nullptr) n.grad_weight[c] = static_cast<T>(totals[channels + c]);
    }
}

template <class T>
constexpr GroupNormLoops<T> table() {
    return {group_norm<T>, group_norm_backward<T>};
}

}  // namespace

const GroupNormKernels channel_group_norm_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
