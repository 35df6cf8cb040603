#include "cpu/sampling.h"

#include <algorithm>
#include <cmath>

#include "cpu/contiguous.h"
#include "cpu/random.h"
#include "cpu/random_fill.h"
#include "ops/functors/rejection.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

using functors::Binomial;
using functors::Cube;
using functors::kCandidates;
using functors::kLane;
using functors::Poisson;

constexpr int64_t kBlock = 256;

// The random numbers of a call: Note [Candidates]. The first candidates of a block of elements are drawn together, by
// vector code. An element whose candidate is rejected draws further candidates one by one.
class Lanes : public functors::Lanes {
  public:
    explicit Lanes(PhiloxKey stream) : functors::Lanes(stream), key_(stream) {}

    using functors::Lanes::normal;
    using functors::Lanes::uniform;
    void uniform(int lane, int64_t begin, int64_t n, double* out) const {
        random_kernels().uniform_double(key_, lane * kLane + begin, n, out);
    }
    void normal(int lane, int64_t begin, int64_t n, double* out) const {
        random_kernels().normal_double(key_, lane * kLane + begin, n, out);
    }

  private:
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
            // A gamma variable of shape a has the distribution of a variable of shape a + 1 multiplied by u^(1/a).
            values[first + i] = finish(cube.d * v, a < 1 ? std::log1p(-boost[i]) / a : 0);
        }
    });
    spread(out, values, DType::Float64);
}

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
    const double least = functors::smallest_normal(out.dtype);
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
