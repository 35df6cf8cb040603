// Random choices with given probabilities or weights. The random numbers have the same bits as on the CPU.
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/random_key.cuh"
#include "cuda/kernels/rows.cuh"
#include "cuda/ordering.h"
#include "ops/functors/searching.h"

namespace rushlight::cuda {
namespace {

using functors::first_position;

/// Writes 1 with the probability at the same position, otherwise 0.
template <class T>
struct Toss {
    uint8_t* out;
    const T* probabilities;
    KeyPosition position;
    Alarm alarm;
    __device__ void operator()(int64_t i) const {
        const T chance = probabilities[i];
        if (!(chance >= 0 && chance <= 1)) alarm.raise(Cause::BadProbability);
        out[i] = uniform_at<T>(position.key(), i) < chance;
    }
};

template <class T>
void queue_tosses(const KernelArgs& args) {
    const View& out = args.out(0);
    const DenseOut<uint8_t> to(args.context, out);
    queue_for_each(args, out.numel,
                   Toss<T>{to.data(), dense<T>(args.context, args.in(0)), KeyPosition(args.context),
                           alarm_of(args.context)});
    to.finish();
}

/// Computes the running sums of the weights of each row, in the same order as the CPU.
struct SumRows {
    double* sums;
    const double* weights;
    int64_t n, wanted;  // `wanted` weights must be above zero
    Alarm alarm;
    __device__ void operator()(int64_t row) const {
        double sum = 0;
        int64_t possible = 0;
        bool good = true;
        for (int64_t i = row * n; i < (row + 1) * n; ++i) {
            const double w = weights[i];
            good = good && w >= 0 && w < INFINITY;
            possible += w > 0;
            sum = sums[i] = sum + w;
        }
        if (!good || possible < wanted) alarm.raise(Cause::BadWeights);
    }
};
/// Selects the index at which the running sum exceeds a uniform fraction of the total.
struct Choose {
    int64_t* out;
    const double* sums;
    int64_t n, samples;
    KeyPosition position;
    __device__ void operator()(int64_t i) const {
        const double* const row = sums + i / samples * n;
        const double total = row[n - 1], share = uniform_at<double>(position.key(), i) * total;
        const int64_t at = first_position(n, [&](int64_t k) { return row[k] <= share; });
        // If rounding makes the fraction equal to the total, the last nonzero weight is selected.
        out[i] = at < n ? at : first_position(n, [&](int64_t k) { return row[k] < total; });
    }
};
/// Draws the first arrival times of Poisson processes with these rates (Efraimidis and Spirakis, "Weighted random sampling
/// with a reservoir", 2006).
struct Arrive {
    double* times;
    const double* weights;
    KeyPosition position;
    __device__ void operator()(int64_t i) const {
        const double w = weights[i];
        times[i] = w > 0 ? -std::log1p(-uniform_at<double>(position.key(), i)) / w : INFINITY;
    }
};
struct TakeFirst {
    int64_t* out;
    const int64_t* order;
    int64_t n, samples;
    __device__ void operator()(int64_t i) const { out[i] = order[i / samples * n + i % samples] % n; }
};

}  // namespace

BackendStatus bernoulli_of(const KernelArgs* args) {
    return guarded([args] {
        if (args->out(0).numel == 0) return;
        queue_of(*args);
        if (args->in(0).dtype == DType::Float64) queue_tosses<double>(*args);
        else queue_tosses<float>(*args);
    });
}

BackendStatus multinomial(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &in = args->in(0);
        if (in.numel == 0) return;
        queue_of(*args);
        const int64_t n = in.size(-1), rows = in.numel / n, samples = args->params[0].as_int();
        const bool replacement = args->params[1].as_bool();
        const auto* weights = dense<double>(args->context, in);
        auto* sums = scratch<double>(args->context, in.numel);
        queue_for_each(*args, rows,
                       SumRows{sums, weights, n, replacement ? 1 : samples, alarm_of(args->context)});
        auto* to = out.as<int64_t>();
        const KeyPosition position(args->context);
        if (replacement) return queue_for_each(*args, out.numel, Choose{to, sums, n, samples, position});
        queue_for_each(*args, in.numel, Arrive{sums, weights, position});
        const int64_t* order = queue_order(args->context, sums, DType::Float64, rows, n, false);
        queue_for_each(*args, out.numel, TakeFirst{to, order, n, samples});
    });
}

}  // namespace rushlight::cuda
