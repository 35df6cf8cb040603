// Random choices with given probabilities or weights. The random numbers have the same bits as on the CPU.
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/random_key.cuh"
#include "cuda/kernels/rows.cuh"
#include "cuda/ordering.h"
#include "cuda/sorting.h"
#include "ops/functors/searching.h"

namespace rushlight::cuda {
namespace {

using functors::first_position;

constexpr int64_t kOne = 1;  // the stride of row-major memory with one dimension

/// Writes 1 or 0 to each element. The probability of a 1 is the element at the same position in `probabilities`.
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
    int64_t n, wanted;  // at least `wanted` weights must be above zero
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
/// Selects the first index at which the running sum exceeds the product of the total and a uniform random number.
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
/// Draws the first arrival times of Poisson processes whose rates are the weights (Efraimidis and Spirakis, "Weighted
/// random sampling with a reservoir", 2006).
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

// Note [Permutations in parallel]
// The CPU exchanges the numbers at positions i and h(i), for i from n - 1 down to 0, where h(i) <= i is random. Step i is
// the step with index i; steps with larger indices are executed before it. Step i moves the number at position h(i) to
// position i, where later steps leave it. That number was moved to position h(i) by the last earlier step with the same h.
// This is step j for the smallest j > i with h(j) = h(i), which moved the number from position j. If there is no such step,
// the number is h(i) itself. In the same way, the number at position j before step j was moved there by step k for the
// smallest k > j with h(k) = j. If there is no such step, the number is j. Such chains have O(log n) steps on average. The
// steps are sorted by h. So each step finds the next step with the same h, and each position finds the first step with this
// position as h.

/// Draws h(i).
struct DrawExchange {
    uint64_t* keys;
    KeyPosition position;
    __device__ void operator()(int64_t i) const {
        const PhiloxBlock block = philox(position.key(), static_cast<uint64_t>(i) / 2);
        keys[i] = uniform_below(block.wide(static_cast<int>(i % 2)), static_cast<uint64_t>(i) + 1);
    }
};
/// For each step i, stores in same[i] the smallest step above i with the same h. For each position p, stores in
/// taken[p] the smallest step above p whose h is p.
struct LinkExchanges {
    int64_t *same, *taken;
    Sorted sorted;
    int64_t n;
    __device__ void operator()(int64_t k) const {
        const uint64_t h = sorted.keys[k];
        const int64_t step = sorted.numbers[k], at = static_cast<int64_t>(h);
        const int64_t next = k + 1 < n && sorted.keys[k + 1] == h ? sorted.numbers[k + 1] : -1;
        same[step] = next;
        if (k == 0 || sorted.keys[k - 1] != h) taken[at] = step > at ? step : next;
    }
};
struct FollowExchanges {
    int64_t* out;
    const int64_t *same, *taken;
    const uint64_t* exchanged;
    __device__ void operator()(int64_t i) const {
        int64_t at = same[i];
        if (at < 0) {
            out[i] = static_cast<int64_t>(exchanged[i]);
            return;
        }
        while (taken[at] >= 0) at = taken[at];
        out[i] = at;
    }
};

}  // namespace

BackendStatus randperm(const KernelArgs* args) {
    return guarded([args] {
        const View& out = args->out(0);
        const int64_t n = out.numel;
        if (n == 0) return;
        const cudaStream_t stream = queue_of(*args);
        const KeyPosition position(args->context);
        auto *exchanged = scratch<uint64_t>(args->context, n), *keys = scratch<uint64_t>(args->context, n);
        auto *same = scratch<int64_t>(args->context, n), *taken = scratch<int64_t>(args->context, n);
        queue_for_each(DrawExchange{exchanged, position}, n, stream);
        queue_for_each(DrawExchange{keys, position}, n, stream);
        queue_fill(View{taken, &n, &kOne, n, 1, DType::Int64, 1}, Param{Param::Kind::Int, 0, {-1}}, *args);
        const Sorted sorted = queue_sort(args->context, keys, nullptr, n, bits_below(n));
        queue_for_each(LinkExchanges{same, taken, sorted, n}, n, stream);
        const DenseOut<int64_t> to(args->context, out);
        queue_for_each(FollowExchanges{to.data(), same, taken, exchanged}, n, stream);
        to.finish();
    });
}

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
