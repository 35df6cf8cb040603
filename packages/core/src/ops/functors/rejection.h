// Rejection sampling of gamma, binomial and Poisson distributions.
#pragma once

#include <algorithm>
#include <cmath>

#include "rushlight/dtype.h"
#include "rushlight/philox.h"

namespace rushlight::functors {
namespace {

// Note [Candidates]
// Rejection sampling needs a varying number of candidates for each element, so the random numbers of an element cannot
// directly follow the random numbers of its neighbour. They are taken from lanes of the call's stream that are far
// apart: value i of lane l is value 2^48 l + i of the stream. There are lanes for 8000 candidates, and each candidate
// is rejected with a probability of less than one third, even for the worst parameters.
inline constexpr int64_t kLane = int64_t{1} << 48;
inline constexpr int kCandidates = 8000;

/// The random numbers of a call.
class Lanes {
  public:
    RL_HD explicit Lanes(PhiloxKey stream) : key_(stream) {}

    RL_HD double uniform(int lane, int64_t i) const { return uniform_double(block(lane, i).wide(i % 2)); }
    RL_HD double normal(int lane, int64_t i) const {
        const PhiloxBlock words = block(lane, i);
        const NormalPair<double> pair = normal_pair(words.wide(0), words.wide(1));
        return i % 2 ? pair.second : pair.first;
    }

  private:
    RL_HD PhiloxBlock block(int lane, int64_t i) const {
        return philox(key_, static_cast<uint64_t>(lane * kLane + i) / 2);
    }

    PhiloxKey key_;
};

// The candidates of G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", 2000: d v with
// v = (1 + x / sqrt(9 d))^3, for a shape d + 1/3 of at least 1.
struct Cube {
    double d, c;

    RL_HD explicit Cube(double shape)
        : d((shape < 1 ? shape + 1 : shape) - 1. / 3), c(1 / std::sqrt(9 * d)) {}

    /// Returns v for a normal number x, or 0 if the candidate is rejected. The rejection depends on u, a uniform number.
    RL_HD double operator()(double x, double u) const {
        const double root = 1 + c * x;
        if (root <= 0) return 0;
        const double v = root * root * root, square = x * x;
        if (u < 1 - 0.0331 * square * square) return v;
        return std::log(u) < 0.5 * square + d * (1 - v + std::log(v)) ? v : 0;
    }
};

/// Returns the smallest positive normal number of a dtype. Smaller gamma variables are replaced by this number.
inline double smallest_normal(DType t) {
    return t == DType::Float64 ? 0x1p-1022 : t == DType::Float16 ? 0x1p-14 : 0x1p-126;
}

// C. Loader, "Fast and accurate computation of binomial probabilities", 2000.

// Returns log n! minus Stirling's formula, for a positive integer n.
RL_HD_CALL inline double stirling_rest(double n) {
    const double first[] = {0,
                            0.081061466795327258,
                            0.041340695955409294,
                            0.027677925684998339,
                            0.020790672103765093,
                            0.016644691189821192,
                            0.013876128823070748,
                            0.01189670994589177,
                            0.010411265261972096,
                            0.0092554621827127329,
                            0.0083305634333628713,
                            0.0075736754879518408,
                            0.0069428401072095299,
                            0.0064089941880042071,
                            0.0059513701127588477,
                            0.0055547335519628014};
    if (n < 16) return first[static_cast<int>(n)];
    const double r = 1 / (n * n);
    return (1. / 12 - r * (1. / 360 - r * (1. / 1260 - r * (1. / 1680 - r * (1. / 1188))))) / n;
}

// Returns x log(x / mean) + mean - x, which is accurate even if x is close to the mean.
RL_HD_CALL inline double deviance(double x, double mean) {
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

    RL_HD double candidate(double u, double inner) const {
        return std::floor((2 * a / inner + b) * u + centre);
    }
    RL_HD double derivative(double inner) const { return a / (inner * inner) + b; }
};

inline constexpr double kRejection =
    10;  // least mean for which the constants hold; below it, inversion is used

// The binomial distribution of n trials with a probability p of at most one half.
class Binomial {
  public:
    RL_HD Binomial(double n, double p) : n_(n), p_(p), mean_(n * p) {
        const double deviation = std::sqrt(mean_ * (1 - p)), b = 1.15 + 2.53 * deviation;
        hat_ = {-0.0873 + 0.0248 * b + 0.01 * p, b, mean_ + 0.5, 0.92 - 4.2 / b};
        height_ = (2.83 + 5.1 / b) * deviation;
    }

    RL_HD bool is(double n, double p) const { return n == n_ && p == p_; }
    RL_HD bool by_inversion() const { return mean_ < kRejection; }

    // Returns the smallest number whose cumulative distribution function exceeds u.
    RL_HD_CALL double quantile(double u) const {
        double k = 0, probability = std::exp(n_ * std::log1p(-p_)), sum = probability;
        while (u >= sum && k < n_ && (probability > 1e-17 * sum || k < mean_)) {
            probability *= (n_ - k) / (k + 1) * (p_ / (1 - p_));
            sum += probability;
            ++k;
        }
        return k;
    }

    // Returns a candidate, or -1 if it is rejected.
    RL_HD_CALL double candidate(double u, double v) {
        u -= 0.5;
        const double inner = 0.5 - std::fabs(u), k = hat_.candidate(u, inner);
        if (inner >= 0.07 && v <= hat_.box) return k;
        if (!(k >= 0 && k <= n_)) return -1;
        if (at_mode_ > 0) at_mode_ = log_probability(std::floor((n_ + 1) * p_));
        return std::log(v * height_ / hat_.derivative(inner)) <= log_probability(k) - at_mode_ ? k : -1;
    }

  private:
    RL_HD_CALL double log_probability(double k) const {
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
    RL_HD explicit Poisson(double rate) : rate_(rate) {
        const double b = 0.931 + 2.53 * std::sqrt(rate);
        hat_ = {-0.059 + 0.02483 * b, b, rate + 0.43, 0.9277 - 3.6224 / (b - 2)};
        height_ = 1.1239 + 1.1328 / (b - 3.4);
    }

    RL_HD bool is(double rate) const { return rate == rate_; }
    RL_HD bool by_inversion() const { return rate_ < kRejection; }

    RL_HD_CALL double quantile(double u) const {
        double k = 0, probability = std::exp(-rate_), sum = probability;
        while (u >= sum && (probability > 1e-17 * sum || k < rate_)) {
            probability *= rate_ / ++k;
            sum += probability;
        }
        return k;
    }

    RL_HD_CALL double candidate(double u, double v) const {
        u -= 0.5;
        const double inner = 0.5 - std::fabs(u), k = hat_.candidate(u, inner);
        if (inner >= 0.07 && v <= hat_.box) return k;
        if (!(k >= 0) || (inner < 0.013 && v > inner)) return -1;
        return std::log(v * height_ / hat_.derivative(inner)) <= log_probability(k) ? k : -1;
    }

  private:
    RL_HD_CALL double log_probability(double k) const {
        if (k == 0) return -rate_;
        return -stirling_rest(k) - deviance(k, rate_) - 0.5 * std::log(6.283185307179586 * k);
    }

    double rate_, height_;
    Hat hat_;
};

}  // namespace
}  // namespace rushlight::functors
