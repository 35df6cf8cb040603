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
// Rejection sampling needs a varying number of candidates for each element, so the random numbers of an element
// cannot directly follow those of its neighbour. They are taken from lanes of the call's stream that are far apart:
// value i of lane l is value 2^48 l + i of the stream. The first candidates of a block of elements are drawn
// together, by vector code. An element whose candidate is rejected draws further candidates one by one. There are
// lanes for 8000 candidates, and each candidate is rejected with a probability of less than one third, even for the
// worst parameters.
constexpr int64_t kLane = int64_t{1} << 48, kBlock = 256;
constexpr int kCandidates = 8000;

class Lanes {
  public:
    explicit Lanes(PhiloxKey stream) : key_(stream) {}

    void uniform(int lane, int64_t begin, int64_t n, double* out) const {
        random_kernels().uniform_double(key_, lane * kLane + begin, n, out);
    }
    void normal(int lane, int64_t begin, int64_t n, double* out) const {
        random_kernels().normal_double(key_, lane * kLane + begin, n, out);
    }
    // Returns a single one of these values.
    double uniform(int lane, int64_t i) const { return uniform_double(block(lane, i).wide(i % 2)); }
    double normal(int lane, int64_t i) const {
        const PhiloxBlock words = block(lane, i);
        const NormalPair<double> pair = normal_pair(words.wide(0), words.wide(1));
        return i % 2 ? pair.second : pair.first;
    }

  private:
    PhiloxBlock block(int lane, int64_t i) const {
        return philox(key_, static_cast<uint64_t>(lane * kLane + i) / 2);
    }

    PhiloxKey key_;
};

// Calls f(first, n) for blocks of elements, on several threads.
template <class F>
void blocks(int64_t numel, F f) {
    constexpr int64_t kElementsPerThread = 1024;
    parallel_for(0, numel, kElementsPerThread, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += kBlock) f(at, std::min(kBlock, end - at));
    });
}

// The candidates of G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", 2000: d v with
// v = (1 + x / sqrt(9 d))^3, for a shape d + 1/3 of at least 1.
struct Cube {
    double d, c;

    explicit Cube(double shape) : d((shape < 1 ? shape + 1 : shape) - 1. / 3), c(1 / std::sqrt(9 * d)) {}

    /// Returns v for a normal number x, or 0 if the uniform number u rejects it.
    double operator()(double x, double u) const {
        const double root = 1 + c * x;
        if (root <= 0) return 0;
        const double v = root * root * root, square = x * x;
        if (u < 1 - 0.0331 * square * square) return v;
        return std::log(u) < 0.5 * square + d * (1 - v + std::log(v)) ? v : 0;
    }
};

// Draws gamma variables. finish(value, boost) computes a result from an accepted candidate and the logarithm of the
// factor that a shape below 1 requires; boost is 0 for other shapes.
template <class Finish>
void gamma(KernelContext& ctx, const char* op, const View& out, const View& shapes, Finish finish) {
    if (out.numel == 0) return;
    const double* shape = contiguous_in(ctx, shapes, DType::Float64).as<double>();
    for (int64_t i = 0; i < out.numel; ++i)
        RL_CHECK(shape[i] > 0 && std::isfinite(shape[i]), throw_runtime,
                 "%s(input): the shape parameters must be positive and finite, found %g", op, shape[i]);
    double* values = scratch<double>(ctx, out.numel);
    const Lanes lanes(ctx.random);
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
                v = cube(lanes.normal(1 + 2 * k, first + i), lanes.uniform(2 + 2 * k, first + i));
            }
            // A variable of shape a equals a variable of shape a + 1 multiplied by u^(1/a).
            values[first + i] = finish(cube.d * v, a < 1 ? std::log1p(-boost[i]) / a : 0);
        }
    });
    spread(out, values, DType::Float64);
}

double smallest_normal(DType t) {
    return t == DType::Float64 ? 0x1p-1022 : t == DType::Float16 ? 0x1p-14 : 0x1p-126;
}

// C. Loader, "Fast and accurate computation of binomial probabilities", 2000.

// Returns log n! minus Stirling's formula.
double stirling_rest(double n) {
    if (n < 16) {
        int sign;
        return ::lgamma_r(n + 1, &sign) - ((n + 0.5) * std::log(n) - n + 0.9189385332046727);
    }
    const double r = 1 / (n * n);
    return (1. / 12 - r * (1. / 360 - r * (1. / 1260 - r * (1. / 1680 - r * (1. / 1188))))) / n;
}

// Returns x log(x / mean) + mean - x, which is accurate even if x is close to the mean.
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

// The common part of W. Hörmann's methods of transformed rejection ("The generation of binomial random variates"
// and "The transformed rejection method for generating Poisson random variables", 1993), which compute a candidate
// from two uniform numbers.
struct Hat {
    double a, b, centre, box;  // box: largest v that is accepted without computing logarithms

    double candidate(double u, double inner) const { return std::floor((2 * a / inner + b) * u + centre); }
    double derivative(double inner) const { return a / (inner * inner) + b; }
};

constexpr double kRejection = 10;  // least mean for which the constants hold; below it, inversion is used

// The binomial distribution of n trials with a probability p of at most one half.
class Binomial {
  public:
    Binomial(double n, double p) : n_(n), p_(p), mean_(n * p) {
        const double deviation = std::sqrt(mean_ * (1 - p)), b = 1.15 + 2.53 * deviation;
        hat_ = {-0.0873 + 0.0248 * b + 0.01 * p, b, mean_ + 0.5, 0.92 - 4.2 / b};
        height_ = (2.83 + 5.1 / b) * deviation;
    }

    bool is(double n, double p) const { return n == n_ && p == p_; }
    bool by_inversion() const { return mean_ < kRejection; }

    // Returns the smallest number whose cumulative distribution function exceeds u.
    double quantile(double u) const {
        double k = 0, probability = std::exp(n_ * std::log1p(-p_)), sum = probability;
        while (u >= sum && k < n_ && (probability > 1e-17 * sum || k < mean_)) {
            probability *= (n_ - k) / (k + 1) * (p_ / (1 - p_));
            sum += probability;
            ++k;
        }
        return k;
    }

    // Returns a candidate, or -1 if it is rejected.
    double candidate(double u, double v) {
        u -= 0.5;
        const double inner = 0.5 - std::fabs(u), k = hat_.candidate(u, inner);
        if (inner >= 0.07 && v <= hat_.box) return k;
        if (!(k >= 0 && k <= n_)) return -1;
        if (at_mode_ > 0) at_mode_ = log_probability(std::floor((n_ + 1) * p_));
        return std::log(v * height_ / hat_.derivative(inner)) <= log_probability(k) - at_mode_ ? k : -1;
    }

  private:
    double log_probability(double k) const {
        if (k == 0) return n_ * std::log1p(-p_);
        if (k == n_) return n_ * std::log(p_);
        const double rest = stirling_rest(n_) - stirling_rest(k) - stirling_rest(n_ - k);
        return rest - deviance(k, mean_) - deviance(n_ - k, n_ * (1 - p_)) +
               0.5 * std::log(n_ / (6.283185307179586 * k * (n_ - k)));
    }

    double n_, p_, mean_, height_, at_mode_ = 1;  // at_mode_ is 1 until it is computed
    Hat hat_;
};

class Poisson {
  public:
    explicit Poisson(double rate) : rate_(rate) {
        const double b = 0.931 + 2.53 * std::sqrt(rate);
        hat_ = {-0.059 + 0.02483 * b, b, rate + 0.43, 0.9277 - 3.6224 / (b - 2)};
        height_ = 1.1239 + 1.1328 / (b - 3.4);
    }

    bool is(double rate) const { return rate == rate_; }
    bool by_inversion() const { return rate_ < kRejection; }

    double quantile(double u) const {
        double k = 0, probability = std::exp(-rate_), sum = probability;
        while (u >= sum && (probability > 1e-17 * sum || k < rate_)) {
            probability *= rate_ / ++k;
            sum += probability;
        }
        return k;
    }

    double candidate(double u, double v) const {
        u -= 0.5;
        const double inner = 0.5 - std::fabs(u), k = hat_.candidate(u, inner);
        if (inner >= 0.07 && v <= hat_.box) return k;
        if (!(k >= 0) || (inner < 0.013 && v > inner)) return -1;
        return std::log(v * height_ / hat_.derivative(inner)) <= log_probability(k) ? k : -1;
    }

  private:
    double log_probability(double k) const {
        if (k == 0) return -rate_;
        return -stirling_rest(k) - deviance(k, rate_) - 0.5 * std::log(6.283185307179586 * k);
    }

    double rate_, height_;
    Hat hat_;
};

// Draws one count for each element. of(first) returns a function that returns the distribution of each element,
// beginning with `first`. A count is computed by inversion from the first uniform number, or by rejection.
template <class Of>
void draw_counts(KernelContext& ctx, double* values, int64_t numel, Of of) {
    const Lanes lanes(ctx.random);
    blocks(numel, [&](int64_t first, int64_t n) {
        double u[kBlock], v[kBlock];
        lanes.uniform(0, first, n, u);
        lanes.uniform(1, first, n, v);
        auto law = of(first);
        for (int64_t i = 0; i < n; ++i) {
            auto& one = law(first + i);
            if (one.by_inversion()) {
                values[first + i] = one.quantile(u[i]);
                continue;
            }
            double k = one.candidate(u[i], v[i]);
            for (int j = 1; k < 0 && j < kCandidates; ++j)
                k = one.candidate(lanes.uniform(2 * j, first + i), lanes.uniform(2 * j + 1, first + i));
            values[first + i] = k;
        }
    });
}

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
                 "binomial(count): numbers of trials must be integers from 0 to 2^53, found %g", count[i]);
        RL_CHECK(prob[i] >= 0 && prob[i] <= 1, throw_runtime,
                 "binomial(prob): probabilities must lie between 0 and 1, found %g", prob[i]);
    }
    double* values = scratch<double>(ctx, out.numel);
    auto less_likely = [=](int64_t i) { return std::min(prob[i], 1 - prob[i]); };
    draw_counts(ctx, values, out.numel, [=](int64_t first) {
        return [=, law = Binomial(count[first], less_likely(first))](int64_t i) mutable -> Binomial& {
            if (!law.is(count[i], less_likely(i))) law = Binomial(count[i], less_likely(i));
            return law;
        };
    });
    for (int64_t i = 0; i < out.numel; ++i)
        if (prob[i] > 0.5) values[i] = count[i] - values[i];
    spread(out, values, DType::Float64);
}

void poisson(KernelContext& ctx, const View& out, const View& rates) {
    if (out.numel == 0) return;
    const double* rate = contiguous_in(ctx, rates, DType::Float64).as<double>();
    for (int64_t i = 0; i < out.numel; ++i)
        RL_CHECK(rate[i] >= 0 && std::isfinite(rate[i]), throw_runtime,
                 "poisson(input): rates must be finite and not negative, found %g", rate[i]);
    double* values = scratch<double>(ctx, out.numel);
    draw_counts(ctx, values, out.numel, [=](int64_t first) {
        return [=, law = Poisson(rate[first])](int64_t i) mutable -> Poisson& {
            if (!law.is(rate[i])) law = Poisson(rate[i]);
            return law;
        };
    });
    spread(out, values, DType::Float64);
}

}  // namespace rushlight::cpu
