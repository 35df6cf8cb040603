#include "cpu/twister.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <type_traits>
#include <vector>

#include "cpu/random_values.h"
#include "runtime/mersenne_twister.h"
#include "rushlight/error.h"
#include "rushlight/half.h"

namespace rushlight::cpu::twister {

namespace {

using Draw = Generator::Draw;

float uniform_float(const Draw& draw) { return static_cast<float>(draw->next() & 0xFFFFFF) * 0x1p-24F; }
double uniform_double(const Draw& draw) {
    return static_cast<double>(draw->next64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

// A view whose dimensions are sorted by the strides of `like`, largest first. `like` has the same sizes as the
// view. If `like` is dense, its elements are visited in the order of memory.
class Reordered {
  public:
    Reordered(const View& v, const View& like) : view_(v) {
        int order[kMaxDims];
        std::iota(order, order + v.ndim, 0);
        std::stable_sort(order, order + v.ndim,
                         [&](int a, int b) { return like.strides[a] > like.strides[b]; });
        int64_t dense = 1;
        view_.contiguous = true;
        for (int d = v.ndim - 1; d >= 0; --d) {
            sizes_[d] = v.sizes[order[d]];
            strides_[d] = v.strides[order[d]];
            if (sizes_[d] == 1) continue;
            view_.contiguous = view_.contiguous && strides_[d] == dense;
            dense *= sizes_[d];
        }
        view_.sizes = sizes_;
        view_.strides = strides_;
    }
    Reordered(const Reordered&) = delete;
    const View& view() const { return view_; }

  private:
    int64_t sizes_[kMaxDims], strides_[kMaxDims];
    View view_;
};

// Fills `self` with the numbers that `next` returns: as double if `self` is float64, otherwise as float.
template <class Next>
void fill_floating(KernelContext& ctx, const View& self, Next next) {
    const Reordered ordered(self, self);
    const auto fill = [&](auto* values) {
        for (int64_t i = 0; i < self.numel; ++i)
            values[i] = static_cast<std::remove_reference_t<decltype(*values)>>(next());
    };
    if (self.dtype == DType::Float64) with_values<double>(ctx, ordered.view(), DType::Float64, fill);
    else with_values<float>(ctx, ordered.view(), DType::Float32, fill);
}

float rounded(float value, DType dtype) {
    if (dtype == DType::Float16) return static_cast<float>(Half(value));
    if (dtype == DType::BFloat16) return static_cast<float>(BFloat16(value));
    return value;
}

void normal_block(double* block, double mean, double std) {
    for (int j = 0; j < 8; ++j) {
        const double radius = std::sqrt(-2 * std::log(1 - block[j])),
                     angle = 2 * std::numbers::pi * block[j + 8];
        block[j] = std::fma(radius * std::cos(angle), std, mean);
        block[j + 8] = std::fma(radius * std::sin(angle), std, mean);
    }
}

// Fills row-major memory of at least 16 numbers: draws uniform numbers and transforms them to normal numbers in
// blocks of 16. If the last block is incomplete, the last 16 numbers are drawn and transformed again.
void fill_normal_blocks(const Draw& draw, double* values, int64_t n, double mean, double std) {
    for (int64_t i = 0; i < n; ++i) values[i] = uniform_double(draw);
    for (int64_t i = 0; i + 16 <= n; i += 16) normal_block(values + i, mean, std);
    if (n % 16 == 0) return;
    for (int64_t i = n - 16; i < n; ++i) values[i] = uniform_double(draw);
    normal_block(values + n - 16, mean, std);
}
// For float32, uniform numbers are also drawn for an incomplete last block, and then discarded. For float16 and
// bfloat16 (`reduced`) these numbers are not drawn.
void fill_normal_blocks(const Draw& draw, float* values, int64_t n, double mean, double std, bool reduced) {
    const auto kernel = twister_kernels().normal_blocks;
    const auto m = static_cast<float>(mean), s = static_cast<float>(std);
    const int64_t drawn = reduced ? n / 16 * 16 : n;
    for (int64_t i = 0; i < drawn; ++i) values[i] = uniform_float(draw);
    kernel(values, n / 16, m, s);
    if (n % 16 == 0) return;
    for (int64_t i = n - 16; i < n; ++i) values[i] = uniform_float(draw);
    kernel(values + n - 16, 1, m, s);
}

}  // namespace

void uniform_(KernelContext& ctx, Generator& generator, const View& self, double from, double to) {
    const Draw draw(generator);
    // A number that is rounded to `to` is replaced by `from`.
    if (self.dtype == DType::Float64) {
        return fill_floating(ctx, self, [&] {
            const double value = std::fma(uniform_double(draw), to - from, from);
            return value == to ? from : value;
        });
    }
    const auto low = static_cast<float>(from), high = static_cast<float>(to);
    const float end = rounded(high, self.dtype);
    fill_floating(ctx, self, [&, dtype = self.dtype] {
        const float value = rounded(std::fma(uniform_float(draw), high - low, low), dtype);
        return value == end ? low : value;
    });
}

void normal_(KernelContext& ctx, Generator& generator, const View& self, double mean, double std) {
    const Draw draw(generator);
    if (!self.contiguous || self.numel < 16)
        return fill_floating(ctx, self, [&] { return std::fma(draw->next_normal(), std, mean); });
    if (self.dtype == DType::Float64)
        return fill_normal_blocks(draw, self.as<double>(), self.numel, mean, std);
    with_values<float>(ctx, self, DType::Float32, [&](float* values) {
        fill_normal_blocks(draw, values, self.numel, mean, std, self.dtype != DType::Float32);
    });
}

void exponential_(KernelContext& ctx, Generator& generator, const View& self, double lambd) {
    const Draw draw(generator);
    fill_floating(ctx, self, [&] { return -1 / lambd * std::log1p(-uniform_double(draw)); });
}

void geometric_(KernelContext& ctx, Generator& generator, const View& self, double p) {
    const Draw draw(generator);
    const double scale = 1 / std::log1p(-p);
    if (is_floating(self.dtype))
        return fill_floating(ctx, self, [&] { return std::ceil(std::log(uniform_double(draw)) * scale); });
    const int bits = 8 * static_cast<int>(itemsize(self.dtype));
    const double largest = std::ldexp(1.0, bits - 1 - (bits == 64)) - 1;
    const Reordered ordered(self, self);
    with_values<double>(ctx, ordered.view(), DType::Float64, [&](double* values) {
        for (int64_t i = 0; i < self.numel; ++i)
            values[i] = std::min(std::ceil(std::log(uniform_double(draw)) * scale), largest);
    });
}

void cauchy_(KernelContext& ctx, Generator& generator, const View& self, double median, double sigma) {
    const Draw draw(generator);
    fill_floating(ctx, self, [&] {
        return std::fma(sigma, std::tan(std::numbers::pi * (uniform_double(draw) - 0.5)), median);
    });
}

void log_normal_(KernelContext& ctx, Generator& generator, const View& self, double mean, double std) {
    const Draw draw(generator);
    fill_floating(ctx, self, [&] { return std::exp(std::fma(draw->next_normal(), std, mean)); });
}

void bernoulli_(KernelContext& ctx, Generator& generator, const View& self, double p) {
    const Draw draw(generator);
    const Reordered ordered(self, self);
    with_values<uint8_t>(ctx, ordered.view(), DType::UInt8, [&](uint8_t* values) {
        for (int64_t i = 0; i < self.numel; ++i) values[i] = uniform_double(draw) < p;
    });
}

void bernoulli(KernelContext& ctx, Generator& generator, const View& out, const View& p) {
    const Reordered ordered(out, out), probabilities(p, out);
    const bool wide = p.dtype == DType::Float64;
    const View dense = contiguous_in(ctx, probabilities.view(), wide ? DType::Float64 : DType::Float32);
    const Draw draw(generator);
    with_values<uint8_t>(ctx, ordered.view(), DType::UInt8, [&](uint8_t* values) {
        for (int64_t i = 0; i < out.numel; ++i) {
            const double probability =
                wide ? dense.as<double>()[i] : static_cast<double>(dense.as<float>()[i]);
            RL_CHECK(probability >= 0 && probability <= 1, throw_runtime,
                     "bernoulli(input): probabilities must lie between 0 and 1, found %g", probability);
            values[i] =
                (wide ? uniform_double(draw) : static_cast<double>(uniform_float(draw))) < probability;
        }
    });
}

void integers_(KernelContext& ctx, Generator& generator, const View& self, int64_t low, int64_t range) {
    const Draw draw(generator);
    const auto count = static_cast<uint64_t>(range);
    // One 32-bit word is drawn for ranges so small that the bias is negligible, and for random_() on int32 tensors.
    const bool int32_random = self.dtype == DType::Int32 && low == 0 && count == uint64_t{1} << 31;
    const bool wide = count == 0 || (count >= uint64_t{1} << 28 && !int32_random);
    const Reordered ordered(self, self);
    with_values<int64_t>(ctx, ordered.view(), DType::Int64, [&](int64_t* values) {
        for (int64_t i = 0; i < self.numel; ++i) {
            const uint64_t word = wide ? draw->next64() : draw->next();
            // If the range comprises all 64-bit numbers, the value is the word itself.
            values[i] = static_cast<int64_t>(count ? static_cast<uint64_t>(low) + word % count : word);
        }
    });
}

void randperm(Generator& generator, const View& out, int64_t n) {
    const Draw draw(generator);
    int64_t* order = out.as<int64_t>();
    std::iota(order, order + n, int64_t{0});
    const bool wide = n >= std::numeric_limits<uint32_t>::max() / 20;
    for (int64_t i = 0; i + 1 < n; ++i) {
        const uint64_t word = wide ? draw->next64() : draw->next();
        std::swap(order[i], order[i + static_cast<int64_t>(word % static_cast<uint64_t>(n - i))]);
    }
}

namespace {

// Chooses the indices at which the cumulative sums of the weights reach uniform fractions of the total.
template <class T>
void choose_with_replacement(const Draw& draw, const T* weights, int64_t n, int64_t* chosen, int64_t count) {
    std::vector<T> sums(weights, weights + n);
    std::partial_sum(sums.begin(), sums.end(), sums.begin());
    const T total = sums.back();
    for (T& sum : sums) sum /= total;
    sums.back() = 1;  // exactly, despite rounding
    for (int64_t s = 0; s < count; ++s) {
        const double share = uniform_double(draw);
        const auto at = std::lower_bound(sums.begin(), sums.end(), share,
                                         [](T sum, double u) { return double(sum) < u; });
        chosen[s] = at - sums.begin();
    }
}

// Writes the indices of the largest values, largest first. Equal values, which are frequent in half types, are in the
// order in which PyTorch's topk leaves them. This order follows from the algorithms of the standard library that PyTorch
// calls, so the same algorithms are called here with the same arguments.
template <class T>
void choose_largest(const std::vector<T>& values, int64_t* chosen, int64_t count) {
    const auto n = static_cast<int64_t>(values.size());
    std::vector<int64_t> order(values.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto before = [&](int64_t a, int64_t b) {
        const T x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
        return (std::isnan(x) && !std::isnan(y)) || x > y;
    };
    const auto first = order.begin(), last = first + count - 1;
    if (count == 1) {
        *chosen = *std::min_element(first, order.end(), before);
        return;
    }
    if (count * 64 <= n) {
        std::partial_sort(first, first + count, order.end(), before);
    } else {
        std::nth_element(first, last, order.end(), before);
        std::sort(first, last, before);
    }
    std::copy_n(first, count, chosen);
}

// Divides the weights by exponentially distributed numbers, and chooses the indices of the largest quotients.
template <class T>
void choose_without_replacement(const Draw& draw, const T* weights, int64_t n, int64_t* chosen, int64_t count,
                                DType dtype) {
    std::vector<T> quotients(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
        auto number = static_cast<T>(-std::log1p(-uniform_double(draw)));
        if constexpr (std::is_same_v<T, float>) {
            number = rounded(number, dtype);
            quotients[i] = rounded(weights[i] / number, dtype);
        } else {
            quotients[i] = weights[i] / number;
        }
    }
    choose_largest(quotients, chosen, count);
}

template <class T>
void multinomial_of(KernelContext& ctx, const Draw& draw, const View& out, const View& input,
                    int64_t num_samples, bool replacement) {
    const View dense =
        contiguous_in(ctx, input, sizeof(T) == sizeof(double) ? DType::Float64 : DType::Float32);
    const int64_t n = input.size(-1), rows = n ? input.numel / n : 0;
    const T* weights = dense.as<T>();
    for (int64_t r = 0; r < rows; ++r, weights += n) check_weights(weights, n, num_samples, replacement);
    weights = dense.as<T>();
    for (int64_t r = 0; r < rows; ++r, weights += n) {
        int64_t* chosen = out.as<int64_t>() + r * num_samples;
        if (replacement && num_samples > 1) choose_with_replacement(draw, weights, n, chosen, num_samples);
        else choose_without_replacement(draw, weights, n, chosen, num_samples, input.dtype);
    }
}

}  // namespace

void multinomial(KernelContext& ctx, Generator& generator, const View& out, const View& input,
                 int64_t num_samples, bool replacement) {
    const Draw draw(generator);
    if (input.dtype == DType::Float64)
        multinomial_of<double>(ctx, draw, out, input, num_samples, replacement);
    else multinomial_of<float>(ctx, draw, out, input, num_samples, replacement);
}

void dropout_mask(KernelContext& ctx, Generator& generator, uint8_t* mask, const View& input, double p) {
    int64_t strides[kMaxDims], step = 1;
    for (int d = input.ndim - 1; d >= 0; --d) {
        strides[d] = step;
        step *= input.sizes[d];
    }
    const View target{mask, input.sizes, strides, input.numel, input.ndim, DType::UInt8, true};
    const Reordered ordered(target, input);
    const Draw draw(generator);
    with_values<uint8_t>(ctx, ordered.view(), DType::UInt8, [&](uint8_t* values) {
        for (int64_t i = 0; i < input.numel; ++i) values[i] = uniform_double(draw) < 1 - p;
    });
}

}  // namespace rushlight::cpu::twister
