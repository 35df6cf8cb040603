#include "cpu/sampling.h"

#include <algorithm>
#include <cmath>

#include "cpu/contiguous.h"
#include "cpu/random.h"
#include "cpu/random_fill.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

// Note [Candidates]
// How many candidates an element takes is not known before, so its numbers may not follow those of its neighbour. They come
// from lanes of the call's stream, far apart: lane l has value i at index 2^48 l + i. The first candidates of a block of
// elements are drawn together, by vector code; the few that are rejected go on one by one. There are lanes for 8000
// candidates, of which the worst parameters reject less than a third.
constexpr int64_t kLane = int64_t{1} << 48, kBlock = 256;
constexpr int kCandidates = 8000;

struct Lanes {
    PhiloxKey key;

    void uniform(int lane, int64_t begin, int64_t n, double* out) const {
        random_kernels().uniform_double(key, lane * kLane + begin, n, out);
    }
    void normal(int lane, int64_t begin, int64_t n, double* out) const {
        random_kernels().normal_double(key, lane * kLane + begin, n, out);
    }
};

// Calls f(first, n) for blocks of elements, on several threads.
template <class F>
void blocks(int64_t numel, F f) {
    constexpr int64_t kElementsPerThread = 1024;
    parallel_for(0, numel, kElementsPerThread, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += kBlock) f(at, std::min(kBlock, end - at));
    });
}

// G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", 2000. A candidate d v for a shape d + 1/3 of
// at least 1, v = (1 + x / sqrt(9 d))^3.
struct Cube {
    double d, c;

    explicit Cube(double shape) : d((shape < 1 ? shape + 1 : shape) - 1. / 3), c(1 / std::sqrt(9 * d)) {}

    /// v, or 0 where the candidate of the normal x and the uniform u is rejected.
    double operator()(double x, double u) const {
        const double root = 1 + c * x;
        if (root <= 0) return 0;
        const double v = root * root * root, square = x * x;
        if (u < 1 - 0.0331 * square * square) return v;
        return std::log(u) < 0.5 * square + d * (1 - v + std::log(v)) ? v : 0;
    }
};

// finish(d v, the logarithm of what a shape below 1 multiplies it with) makes the result.
template <class Finish>
void gamma(KernelContext& ctx, const char* op, const View& out, const View& shapes, Finish finish) {
    if (out.numel == 0) return;
    const double* shape = contiguous_in(ctx, shapes, DType::Float64).as<double>();
    for (int64_t i = 0; i < out.numel; ++i)
        RL_CHECK(shape[i] > 0 && std::isfinite(shape[i]), throw_runtime,
                 "%s(input): shapes must be positive and finite, found %g", op, shape[i]);
    double* values = scratch<double>(ctx, out.numel);
    const Lanes lanes{ctx.random};
    blocks(out.numel, [&](int64_t first, int64_t n) {
        double boost[kBlock], normal[kBlock], uniform[kBlock];
        lanes.uniform(0, first, n, boost);
        lanes.normal(1, first, n, normal);
        lanes.uniform(2, first, n, uniform);
        for (int64_t i = 0; i < n; ++i) {
            const double a = shape[first + i];
            const Cube cube(a);
            double v = cube(normal[i], uniform[i]);
            for (int k = 1; v == 0 && k < kCandidates; ++k) {
                lanes.normal(1 + 2 * k, first + i, 1, normal + i);
                lanes.uniform(2 + 2 * k, first + i, 1, uniform + i);
                v = cube(normal[i], uniform[i]);
            }
            // A variable of shape a is one of shape a + 1 times u^(1/a).
            values[first + i] = finish(cube.d * v, a < 1 ? std::log1p(-boost[i]) / a : 0);
        }
    });
    spread(out, values, DType::Float64);
}

double smallest_normal(DType t) {
    return t == DType::Float64 ? 0x1p-1022 : t == DType::Float16 ? 0x1p-14 : 0x1p-126;
}

// C. Loader, "Fast and accurate computation of binomial probabilities", 2000.

// log n! less Stirling's formula.
double stirling_rest(double n) {
    if (n < 16) {
        int sign;
        return ::lgamma_r(n + 1, &sign) - ((n + 0.5) * std::log(n) - n + 0.9189385332046727);
    }
    const double r = 1 / (n * n);
    return (1. / 12 - r * (1. / 360 - r * (1. / 1260 - r * (1. / 1680 - r * (1. / 1188))))) / n;
}

// x log(x / mean) + mean - x, also where the two are close.
double deviance(double x, double mean) {
    const double apart = x - mean;
    if (std::fabs(apart) > 0.1 * (x + mean)) return x * std::log(x / mean) - apart;
    const double v = apart / (x + mean);
    double sum = apart * v, power = 2 * x * v;
    for (int k = 3; k < 100; k += 2) {
        power *= v * v;
        const double next = sum + power / k;
        if (next == sum) break;
        sum = next;
    }
    return sum;
}

// Of n trials of probability p, at most one half.
class Binomial {
  public:
    Binomial(double n, double p) : n_(n), p_(p), q_(1 - p), mean_(n * p) {
        if (mean_ < kRejection) return;
        const double deviation = std::sqrt(mean_ * q_);
        b_ = 1.15 + 2.53 * deviation;
        a_ = -0.0873 + 0.0248 * b_ + 0.01 * p;
        scale_ = (2.83 + 5.1 / b_) * deviation;
        box_ = 0.92 - 4.2 / b_;
        at_mode_ = log_probability(std::floor((n + 1) * p));
    }

    bool by_inversion() const { return mean_ < kRejection; }

    // The number whose distribution function first exceeds u.
    double quantile(double u) const {
        double k = 0, probability = std::exp(n_ * std::log1p(-p_)), sum = probability;
        while (u >= sum && k < n_ && (probability > 1e-17 * sum || k < mean_)) {
            probability *= (n_ - k) / (k + 1) * (p_ / q_);
            sum += probability;
            ++k;
        }
        return k;
    }

    // Hörmann's BTRS: a candidate, or -1 where it is rejected.
    double candidate(double u, double v) const {
        u -= 0.5;
        const double inner = 0.5 - std::fabs(u);
        const double k = std::floor((2 * a_ / inner + b_) * u + mean_ + 0.5);
        if (inner >= 0.07 && v <= box_) return k;
        if (!(k >= 0 && k <= n_)) return -1;
        const double height = v * scale_ / (a_ / (inner * inner) + b_);
        return std::log(height) <= log_probability(k) - at_mode_ ? k : -1;
    }

  private:
    static constexpr double kRejection = 10;  // the least mean for which the constants hold

    double log_probability(double k) const {
        if (k == 0) return n_ * std::log1p(-p_);
        if (k == n_) return n_ * std::log(p_);
        const double rest = stirling_rest(n_) - stirling_rest(k) - stirling_rest(n_ - k);
        return rest - deviance(k, mean_) - deviance(n_ - k, n_ * q_) +
               0.5 * std::log(n_ / (6.283185307179586 * k * (n_ - k)));
    }

    double n_, p_, q_, mean_, a_ = 0, b_ = 0, scale_ = 0, box_ = 0, at_mode_ = 0;
};

}  // namespace

void _standard_gamma(KernelContext& ctx, const View& out, const View& shapes) {
    const double least = smallest_normal(out.dtype);
    gamma(ctx, "standard_gamma", out, shapes,
          [=](double value, double boost) { return std::max(value * std::exp(boost), least); });
}

void _standard_log_gamma(KernelContext& ctx, const View& out, const View& shapes) {
    gamma(ctx, "standard_log_gamma", out, shapes,
          [](double value, double boost) { return std::log(value) + boost; });
}

void binomial(KernelContext& ctx, const View& out, const View& counts, const View& probs) {
    if (out.numel == 0) return;
    const double* count = contiguous_in(ctx, counts, DType::Float64).as<double>();
    const double* prob = contiguous_in(ctx, probs, DType::Float64).as<double>();
    for (int64_t i = 0; i < out.numel; ++i) {
        RL_CHECK(count[i] >= 0 && count[i] <= 0x1p53 && count[i] == std::floor(count[i]), throw_runtime,
                 "binomial(count): numbers of trials must be whole, from 0 to 2^53, found %g", count[i]);
        RL_CHECK(prob[i] >= 0 && prob[i] <= 1, throw_runtime,
                 "binomial(prob): probabilities must lie between 0 and 1, found %g", prob[i]);
    }
    double* values = scratch<double>(ctx, out.numel);
    const Lanes lanes{ctx.random};
    blocks(out.numel, [&](int64_t first, int64_t n) {
        double u[kBlock], v[kBlock];
        lanes.uniform(0, first, n, u);
        lanes.uniform(1, first, n, v);
        for (int64_t i = 0; i < n; ++i) {
            const double trials = count[first + i], p = prob[first + i];
            const Binomial binomial(trials, std::min(p, 1 - p));
            double k = binomial.by_inversion() ? binomial.quantile(u[i]) : binomial.candidate(u[i], v[i]);
            for (int j = 1; k < 0 && j < kCandidates; ++j) {
                lanes.uniform(2 * j, first + i, 1, u + i);
                lanes.uniform(2 * j + 1, first + i, 1, v + i);
                k = binomial.candidate(u[i], v[i]);
            }
            values[first + i] = p > 0.5 ? trials - k : k;
        }
    });
    spread(out, values, DType::Float64);
}

}  // namespace rushlight::cpu
