// Numbers drawn by rejection: Note [Candidates]. The numbers equal the CPU's numbers, except for the rounding of library
// functions. A thread draws the candidates of an element.
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/random_key.cuh"
#include "cuda/kernels/rows.cuh"
#include "ops/functors/rejection.h"

namespace rushlight::cuda {
namespace {

using namespace functors;

/// Draws a number from the gamma distribution, and writes it or its logarithm.
template <bool logarithm>
struct DrawGamma {
    double* out;
    const double* shapes;
    double least;
    KeyPosition position;
    Alarm alarm;

    __device__ void operator()(int64_t i) const {
        const double shape = shapes[i];
        if (!(shape > 0 && shape < INFINITY)) {
            alarm.raise(Cause::BadParameter);
            out[i] = 0;
            return;
        }
        const Lanes lanes(position.key());
        const Cube cube(shape);
        double v = 0;
        for (int k = 0; v == 0 && k < kCandidates; ++k)
            v = cube(lanes.normal(1 + 2 * k, i), lanes.uniform(2 + 2 * k, i));
        // A gamma variable of shape a has the distribution of a variable of shape a + 1 multiplied by u^(1/a).
        const double boost = shape < 1 ? std::log1p(-lanes.uniform(0, i)) / shape : 0, value = cube.d * v;
        if (logarithm) {
            out[i] = std::log(value) + boost;
        } else {
            const double made = value * std::exp(boost);
            out[i] = made < least ? least : made;
        }
    }
};

/// Draws a number from the distribution `law`. Either inverts the distribution function at the first uniform number, or
/// uses rejection sampling.
template <class Law>
__device__ double drawn(Law& law, const Lanes& lanes, int64_t i) {
    if (law.by_inversion()) return law.quantile(lanes.uniform(0, i));
    double k = -1;
    for (int j = 0; k < 0 && j < kCandidates; ++j)
        k = law.candidate(lanes.uniform(2 * j, i), lanes.uniform(2 * j + 1, i));
    return k;
}

struct DrawPoisson {
    double* out;
    const double* rates;
    KeyPosition position;
    Alarm alarm;
    __device__ void operator()(int64_t i) const {
        const double rate = rates[i];
        const bool good = rate >= 0 && rate < INFINITY;
        if (!good) alarm.raise(Cause::BadParameter);
        Poisson law(good ? rate : 0);
        out[i] = drawn(law, Lanes(position.key()), i);
    }
};
struct DrawBinomial {
    double* out;
    const double *counts, *probabilities;
    KeyPosition position;
    Alarm alarm;
    __device__ void operator()(int64_t i) const {
        const double n = counts[i], p = probabilities[i];
        if (!(p >= 0 && p <= 1)) alarm.raise(Cause::BadProbability);
        const bool good = n >= 0 && n <= 0x1p53 && n == std::floor(n) && p >= 0 && p <= 1;
        if (!good) {
            if (p >= 0 && p <= 1) alarm.raise(Cause::BadParameter);
            out[i] = 0;
            return;
        }
        Binomial law(n, p < 1 - p ? p : 1 - p);
        const double k = drawn(law, Lanes(position.key()), i);
        out[i] = p > 0.5 ? n - k : k;
    }
};

template <bool logarithm>
void queue_gamma(const KernelArgs& args) {
    const View& out = args.out(0);
    if (out.numel == 0) return;
    queue_of(args);
    const DenseOut<double> to(args.context, out);
    queue_for_each(
        args, out.numel,
        DrawGamma<logarithm>{to.data(), dense<double>(args.context, args.in(0)), smallest_normal(out.dtype),
                             KeyPosition(args.context), alarm_of(args.context)});
    to.finish();
}

}  // namespace

BackendStatus standard_gamma(const KernelArgs* args) {
    return guarded([args] { queue_gamma<false>(*args); });
}
BackendStatus standard_log_gamma(const KernelArgs* args) {
    return guarded([args] { queue_gamma<true>(*args); });
}

BackendStatus poisson(const KernelArgs* args) {
    return guarded([args] {
        const View& out = args->out(0);
        if (out.numel == 0) return;
        queue_of(*args);
        const DenseOut<double> to(args->context, out);
        queue_for_each(*args, out.numel,
                       DrawPoisson{to.data(), dense<double>(args->context, args->in(0)),
                                   KeyPosition(args->context), alarm_of(args->context)});
        to.finish();
    });
}

BackendStatus binomial(const KernelArgs* args) {
    return guarded([args] {
        const View& out = args->out(0);
        if (out.numel == 0) return;
        queue_of(*args);
        const DenseOut<double> to(args->context, out);
        queue_for_each(*args, out.numel,
                       DrawBinomial{to.data(), dense<double>(args->context, args->in(0)),
                                    dense<double>(args->context, args->in(1)), KeyPosition(args->context),
                                    alarm_of(args->context)});
        to.finish();
    });
}

}  // namespace rushlight::cuda
