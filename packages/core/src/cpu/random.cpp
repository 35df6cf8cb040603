#include "cpu/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "cpu/cast.h"
#include "cpu/contiguous.h"
#include "cpu/pointwise_driver.h"
#include "cpu/random_fill.h"
#include "cpu/random_values.h"
#include "cpu/twister.h"
#include "ops/functors/random.h"
#include "runtime/cpu_context.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {

void spread(const View& self, const void* values, DType dtype) {
    PointwisePlan plan;
    plan.ndim = self.ndim;
    plan.num_operands = 2;
    plan.loop = cast_loop(self.dtype, dtype);
    plan.params = nullptr;
    plan.data[0] = self.as<char>();
    plan.data[1] = static_cast<char*>(const_cast<void*>(values));
    plan.dtype[0] = plan.loop_dtype[0] = self.dtype;
    plan.dtype[1] = plan.loop_dtype[1] = dtype;
    int64_t step = static_cast<int64_t>(itemsize(dtype));
    for (int d = self.ndim - 1; d >= 0; --d) {
        plan.sizes[d] = self.sizes[d];
        plan.strides[0][d] = self.strides[d] * static_cast<int64_t>(itemsize(self.dtype));
        plan.strides[1][d] = step;
        step *= self.sizes[d];
    }
    coalesce(plan);
    run(plan);
}

namespace {

// Fills `self` with floating-point values. `draw` writes random numbers of float32, or of float64 if that is the
// dtype of `self`, and `map` converts each of them to the result.
template <class Draw, class Map>
void floating(KernelContext& ctx, const View& self, Draw draw, Map map) {
    auto fill = [&](auto* values) {
        draw(values);
        parallel_for(0, self.numel, kGrain, [&](int64_t begin, int64_t end) {
        // Without the pragma, the compiler does not vectorise loops whose map has a condition.
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) values[i] = map(values[i]);
        });
    };
    if (self.dtype == DType::Float64) with_values<double>(ctx, self, DType::Float64, fill);
    else with_values<float>(ctx, self, DType::Float32, fill);
}

// Returns the generator if it draws numbers sequentially (RandomStream::Torch), else null.
Generator* twister_of(const KernelContext& ctx) { return CpuContext::twister(&ctx); }

}  // namespace

void uniform_(KernelContext& ctx, const View& self, double from, double to) {
    if (is_complex(self.dtype)) return uniform_(ctx, Pairs(self).view, from, to);
    if (Generator* twister = twister_of(ctx)) return twister::uniform_(ctx, *twister, self, from, to);
    const auto draw = [&](auto* out) { fill_uniform(ctx.random, out, self.numel); };
    // The generator's numbers are in [0, 1). In single precision they are multiples of 2^-24, which float32 represents
    // exactly.
    if (from == 0 && to == 1 && self.dtype == DType::Float32)
        return with_values<float>(ctx, self, DType::Float32, draw);
    if (from == 0 && to == 1 && self.dtype == DType::Float64)
        return with_values<double>(ctx, self, DType::Float64, draw);
    floating(ctx, self, draw, [=, largest = functors::largest_below(to, from, self.dtype)](auto u) {
        using T = decltype(u);
        return functors::Uniform<T>{static_cast<T>(from), static_cast<T>(to - from),
                                    static_cast<T>(largest)}(u);
    });
}

// The variance of a complex number is divided equally between its real and imaginary parts.
void normal_(KernelContext& ctx, const View& self, double mean, double std) {
    if (is_complex(self.dtype)) return normal_(ctx, Pairs(self).view, mean, std / std::sqrt(2.0));
    if (Generator* twister = twister_of(ctx)) return twister::normal_(ctx, *twister, self, mean, std);
    floating(
        ctx, self, [&](auto* out) { fill_normal(ctx.random, out, self.numel); },
        [=](auto z) {
            using T = decltype(z);
            return functors::Normal<T>{static_cast<T>(mean), static_cast<T>(std)}(z);
        });
}

void exponential_(KernelContext& ctx, const View& self, double lambd) {
    if (Generator* twister = twister_of(ctx)) return twister::exponential_(ctx, *twister, self, lambd);
    floating(
        ctx, self, [&](auto* out) { fill_uniform(ctx.random, out, self.numel); },
        [=](auto u) { return functors::Exponential<decltype(u)>{static_cast<decltype(u)>(lambd)}(u); });
}

void geometric_(KernelContext& ctx, const View& self, double p) {
    if (Generator* twister = twister_of(ctx)) return twister::geometric_(ctx, *twister, self, p);
    const double scale = 1 / std::log1p(-p);
    auto draw = [&](auto* out) { fill_uniform(ctx.random, out, self.numel); };
    if (is_floating(self.dtype)) {
        return floating(ctx, self, draw, [=](auto u) {
            using T = decltype(u);
            return functors::Geometric<T>{static_cast<T>(scale), std::numeric_limits<T>::infinity()}(u);
        });
    }
    // Results of integer dtypes are limited to the largest value of the dtype.
    const double largest =
        std::ldexp(1.0, 8 * static_cast<int>(itemsize(self.dtype)) - 1 - (itemsize(self.dtype) == 8)) - 1;
    with_values<double>(ctx, self, DType::Float64, [&](double* values) {
        draw(values);
        const functors::Geometric<double> map{scale, largest};
        for (int64_t i = 0; i < self.numel; ++i) values[i] = map(values[i]);
    });
}

void cauchy_(KernelContext& ctx, const View& self, double median, double sigma) {
    if (Generator* twister = twister_of(ctx)) return twister::cauchy_(ctx, *twister, self, median, sigma);
    floating(
        ctx, self, [&](auto* out) { fill_uniform(ctx.random, out, self.numel); },
        [=](auto u) {
            using T = decltype(u);
            return functors::Cauchy<T>{static_cast<T>(median), static_cast<T>(sigma)}(u);
        });
}

void log_normal_(KernelContext& ctx, const View& self, double mean, double std) {
    if (Generator* twister = twister_of(ctx)) return twister::log_normal_(ctx, *twister, self, mean, std);
    floating(
        ctx, self, [&](auto* out) { fill_normal(ctx.random, out, self.numel); },
        [=](auto z) {
            using T = decltype(z);
            return functors::LogNormal<T>{static_cast<T>(mean), static_cast<T>(std)}(z);
        });
}

void bernoulli_(KernelContext& ctx, const View& self, double p) {
    if (Generator* twister = twister_of(ctx)) return twister::bernoulli_(ctx, *twister, self, p);
    with_values<uint8_t>(ctx, self, DType::UInt8, [&](uint8_t* values) {
        fill_bernoulli(ctx.random, static_cast<float>(p), values, self.numel);
    });
}

void bernoulli(KernelContext& ctx, const View& out, const View& p) {
    if (Generator* twister = twister_of(ctx)) return twister::bernoulli(ctx, *twister, out, p);
    const View probabilities =
        contiguous_in(ctx, p, p.dtype == DType::Float64 ? DType::Float64 : DType::Float32);
    auto draw = [&](const auto* chance, auto* uniform) {
        fill_uniform(ctx.random, uniform, out.numel);
        uint8_t* values = scratch<uint8_t>(ctx, out.numel);
        for (int64_t i = 0; i < out.numel; ++i) {
            RL_CHECK(chance[i] >= 0 && chance[i] <= 1, throw_runtime,
                     "bernoulli(input): probabilities must lie between 0 and 1, found %g",
                     static_cast<double>(chance[i]));
            values[i] = uniform[i] < chance[i];
        }
        spread(out, values, DType::UInt8);
    };
    if (out.numel == 0) return;
    if (probabilities.dtype == DType::Float64)
        draw(probabilities.as<double>(), scratch<double>(ctx, out.numel));
    else draw(probabilities.as<float>(), scratch<float>(ctx, out.numel));
}

void integers_(KernelContext& ctx, const View& self, int64_t low, int64_t range) {
    if (Generator* twister = twister_of(ctx)) return twister::integers_(ctx, *twister, self, low, range);
    with_values<int64_t>(ctx, self, DType::Int64, [&](int64_t* values) {
        fill_integers(ctx.random, low, static_cast<uint64_t>(range), values, self.numel);
    });
}

void randperm(KernelContext& ctx, const View& out, int64_t n) {
    if (Generator* twister = twister_of(ctx)) return twister::randperm(*twister, out, n);
    int64_t* position = out.as<int64_t>();
    uint64_t* bits = scratch<uint64_t>(ctx, n);
    fill_integers(ctx.random, 0, 0, reinterpret_cast<int64_t*>(bits), n);
    std::iota(position, position + n, int64_t{0});
    for (int64_t i = n - 1; i > 0; --i)
        std::swap(position[i], position[uniform_below(bits[i], static_cast<uint64_t>(i) + 1)]);
}

void multinomial(KernelContext& ctx, const View& out, const View& input, int64_t num_samples,
                 bool replacement) {
    if (Generator* twister = twister_of(ctx))
        return twister::multinomial(ctx, *twister, out, input, num_samples, replacement);
    const int64_t n = input.size(-1), rows = n ? input.numel / n : 0;
    double* weights = scratch<double>(ctx, input.numel);
    const View dense =
        contiguous_in(ctx, input, input.dtype == DType::Float64 ? DType::Float64 : DType::Float32);
    for (int64_t i = 0; i < input.numel; ++i)
        weights[i] =
            dense.dtype == DType::Float64 ? dense.as<double>()[i] : static_cast<double>(dense.as<float>()[i]);
    const int64_t draws = replacement ? num_samples : n;
    double* uniform = scratch<double>(ctx, rows * draws);
    fill_uniform(ctx.random, uniform, rows * draws);
    for (int64_t r = 0; r < rows; ++r) {
        double *w = weights + r * n, *u = uniform + r * draws;
        int64_t* chosen = out.as<int64_t>() + r * num_samples;
        check_weights(w, n, num_samples, replacement);
        if (replacement) {
            // Selects the first index at which the cumulative sum exceeds a uniform fraction of the total.
            std::partial_sum(w, w + n, w);
            for (int64_t s = 0; s < num_samples; ++s) {
                double share = u[s] * w[n - 1];
                int64_t i = std::upper_bound(w, w + n, share) - w;
                // If rounding makes the fraction equal to the total, the last weight that is not zero is selected.
                chosen[s] = i < n ? i : std::lower_bound(w, w + n, w[n - 1]) - w;
            }
        } else {
            // Selects the smallest of exponential arrival times whose rates are the weights (Efraimidis and
            // Spirakis, "Weighted random sampling with a reservoir", 2006).
            for (int64_t i = 0; i < n; ++i) u[i] = w[i] > 0 ? -std::log1p(-u[i]) / w[i] : HUGE_VAL;
            std::vector<int64_t> order(static_cast<size_t>(n));
            std::iota(order.begin(), order.end(), int64_t{0});
            std::partial_sort(order.begin(), order.begin() + num_samples, order.end(),
                              [&](int64_t a, int64_t b) { return u[a] < u[b] || (u[a] == u[b] && a < b); });
            std::copy_n(order.begin(), num_samples, chosen);
        }
    }
}

namespace {

void apply_mask(const uint8_t* mask, const float* in, float scale, float* out, int64_t n) {
    random_kernels().apply_mask_float(mask, in, scale, out, n);
}
void apply_mask(const uint8_t* mask, const double* in, double scale, double* out, int64_t n) {
    random_kernels().apply_mask_double(mask, in, scale, out, n);
}

template <class T>
void dropout_of(PhiloxKey key, const View& out, const View& mask, const View& input, double p,
                const uint8_t* drawn) {
    constexpr int64_t kBlock = 1024;
    const T* in = input.as<T>();
    T* result = out.as<T>();
    uint8_t* kept = mask.defined() ? mask.as<uint8_t>() : nullptr;
    const T scale = static_cast<T>(1 / (1 - p));
    const uint64_t threshold = mask_threshold(1 - p);
    parallel_for(0, out.numel, kGrain, [&](int64_t begin, int64_t end) {
        if (drawn) return apply_mask(drawn + begin, in + begin, scale, result + begin, end - begin);
        uint8_t block[kBlock];
        for (int64_t at = begin; at < end; at += kBlock) {
            int64_t n = std::min(kBlock, end - at);
            uint8_t* bits = kept ? kept + at : block;
            random_kernels().mask(key, at, n, threshold, bits);
            apply_mask(bits, in + at, scale, result + at, n);
        }
    });
}

}  // namespace

void dropout_mask(KernelContext& ctx, const View& out, const View&, int64_t, double p) {
    auto* mask = out.as<uint8_t>();
    if (Generator* twister = twister_of(ctx)) return twister::dropout_mask(ctx, *twister, mask, out, p);
    fill_mask(ctx.random, mask_threshold(1 - p), mask, out.numel);
}

namespace {

// Computes dropout with an output that is not row-major. The mask is drawn in row-major order, so that the strides do not
// change which elements are kept.
void dropout_strided(KernelContext& ctx, const View& out, const View& mask, const View& input, double p) {
    const View drawn = scratch_like(ctx, out, DType::Bool);
    auto* bits = drawn.as<uint8_t>();
    if (Generator* twister = twister_of(ctx)) twister::dropout_mask(ctx, *twister, bits, input, p);
    else fill_mask(ctx.random, mask_threshold(1 - p), bits, drawn.numel);
    const View y = in_order_of(ctx, out, out), none{nullptr, nullptr, nullptr, 0, -1, DType::Bool, 0};
    const View kept = mask.defined() ? in_order_of(ctx, mask, out) : scratch_like(ctx, y, DType::Bool);
    copy_to(kept, in_order_of(ctx, drawn, out));
    const WidenedOut wide(ctx, y);
    const View x = contiguous_in(ctx, in_order_of(ctx, input, out), wide.view().dtype);
    if (x.dtype == DType::Float64)
        dropout_of<double>(ctx.random, wide.view(), none, x, p, kept.as<uint8_t>());
    else dropout_of<float>(ctx.random, wide.view(), none, x, p, kept.as<uint8_t>());
    wide.finish();
}

}  // namespace

void dropout(KernelContext& ctx, const View& out, const View& mask, const View& input, double p) {
    if (!out.contiguous) return dropout_strided(ctx, out, mask, input, p);
    const WidenedOut wide(ctx, out);
    const View x = contiguous_in(ctx, input, wide.view().dtype);
    uint8_t* drawn = nullptr;
    if (Generator* twister = twister_of(ctx)) {
        drawn = mask.defined() ? mask.as<uint8_t>() : scratch<uint8_t>(ctx, input.numel);
        twister::dropout_mask(ctx, *twister, drawn, input, p);
    }
    if (x.dtype == DType::Float64) dropout_of<double>(ctx.random, wide.view(), mask, x, p, drawn);
    else dropout_of<float>(ctx.random, wide.view(), mask, x, p, drawn);
    wide.finish();
}

}  // namespace rushlight::cpu
