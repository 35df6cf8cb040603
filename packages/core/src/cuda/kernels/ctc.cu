// Connectionist temporal classification and its gradient, as defined in cpu/ctc.cpp.
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/rows.cuh"

namespace rushlight::cuda {
namespace {

/// Returns the logarithm of the sum of two probabilities, which are given by their logarithms.
template <class T>
__device__ T log_add(T a, T b) {
    const T high = a < b ? b : a, low = a < b ? a : b;
    return low == -static_cast<T>(INFINITY) ? high : high + std::log1p(std::exp(low - high));
}

/// One sequence. Its target has 2 * length + 1 states: state s is a blank if s is even, and label s / 2 otherwise.
template <class T>
struct Sequence {
    const T* log_probs;  // at time 0; the log-probabilities of the next time are `step` elements later
    const int64_t* labels;
    int64_t step, classes, time, length, blank;

    __device__ int64_t states() const { return 2 * length + 1; }
    /// Returns the class of a state. An invalid label, which raises the alarm, is replaced by the blank.
    __device__ int64_t label(int64_t s) const {
        const int64_t found = s % 2 == 0 ? blank : labels[s / 2];
        return found >= 0 && found < classes ? found : blank;
    }
    __device__ T log_prob(int64_t t, int64_t s) const { return log_probs[t * step + label(s)]; }
    /// Whether state s may directly follow state s - 2.
    __device__ bool skips(int64_t s) const { return s % 2 == 1 && s > 1 && label(s) != label(s - 2); }
    /// Returns the logarithm of the summed probabilities of the last two states, in which a path may end.
    __device__ T at_end(const T* row) const {
        return length == 0 ? row[0] : log_add(row[states() - 1], row[states() - 2]);
    }
};

template <class T>
struct Batch {
    const T* log_probs;  // (time, count, classes)
    const int64_t *targets, *input_lengths, *target_lengths;
    int64_t time, count, classes, longest, blank;

    Batch(const KernelArgs& args, const View& probs, int first, int64_t blank)
        : log_probs(dense<T>(args.context, probs)),
          targets(dense<int64_t>(args.context, args.in(first))),
          input_lengths(dense<int64_t>(args.context, args.in(first + 1))),
          target_lengths(dense<int64_t>(args.context, args.in(first + 2))),
          time(probs.sizes[0]),
          count(probs.sizes[1]),
          classes(probs.sizes[2]),
          longest(args.in(first).sizes[1]),
          blank(blank) {}

    __host__ __device__ int64_t width() const { return 2 * longest + 1; }
    __device__ static int64_t within(int64_t x, int64_t most) { return x < 0 ? 0 : x > most ? most : x; }
    __device__ Sequence<T> at(int64_t n) const {
        return {log_probs + n * classes,
                targets + n * longest,
                count * classes,
                classes,
                within(input_lengths[n], time),
                within(target_lengths[n], longest),
                blank};
    }
};

/// Raises the alarm if a length or a label is out of range.
template <class T>
struct CheckSequence {
    Batch<T> b;
    Alarm alarm;
    __device__ void operator()(int64_t n) const {
        const int64_t steps = b.input_lengths[n], length = b.target_lengths[n];
        bool good = steps >= 0 && steps <= b.time && length >= 0 && length <= b.longest;
        for (int64_t i = n * b.longest; good && i < n * b.longest + length; ++i)
            good = b.targets[i] >= 0 && b.targets[i] < b.classes;
        if (!good) alarm.raise(Cause::BadSequence);
    }
};

/// Computes alpha (count, time, width). An element is the logarithm of the probability of all paths that are in a given
/// state at a given time. Each block computes one sequence.
template <class T>
__global__ void __launch_bounds__(kThreads)
    ctc_forward(const Batch<T> b, T* alpha, T* loss, bool zero_infinity) {
    const T never = -static_cast<T>(INFINITY);
    for (int64_t n = blockIdx.x; n < b.count; n += gridDim.x) {
        const Sequence<T> q = b.at(n);
        const int64_t width = b.width();
        T* const table = alpha + n * b.time * width;
        for (int64_t i = threadIdx.x; i < b.time * width; i += kThreads) {
            const int64_t s = i % width;
            table[i] = i < width && i < q.states() && s < 2 && q.time > 0 ? q.log_prob(0, s) : never;
        }
        for (int64_t t = 1; t < q.time; ++t) {
            __syncthreads();
            const T* const old = table + (t - 1) * width;
            for (int64_t s = threadIdx.x; s < q.states(); s += kThreads) {
                T total = old[s];
                if (s > 0) total = log_add(total, old[s - 1]);
                if (q.skips(s)) total = log_add(total, old[s - 2]);
                table[t * width + s] = total + q.log_prob(t, s);
            }
        }
        __syncthreads();
        if (threadIdx.x != 0) continue;
        const T value = q.time > 0      ? -q.at_end(table + (q.time - 1) * width)
                        : q.length == 0 ? T(0)
                                        : static_cast<T>(INFINITY);
        loss[n] = zero_infinity && value == static_cast<T>(INFINITY) ? T(0) : value;
    }
}

/// Computes beta (count, time, width). An element is the logarithm of the probability that a path continues from a
/// given state at a given time to the end of the target.
template <class T>
__global__ void __launch_bounds__(kThreads) ctc_backward(const Batch<T> b, T* beta) {
    const T never = -static_cast<T>(INFINITY);
    for (int64_t n = blockIdx.x; n < b.count; n += gridDim.x) {
        const Sequence<T> q = b.at(n);
        const int64_t width = b.width(), states = q.states();
        T* const table = beta + n * b.time * width;
        for (int64_t t = q.time - 1; t >= 0; --t) {
            const T* const later = table + (t + 1) * width;
            for (int64_t s = threadIdx.x; s < states; s += kThreads) {
                T sum = s + 2 >= states ? T(0) : never;
                if (t < q.time - 1) {
                    sum = later[s] + q.log_prob(t + 1, s);
                    if (s + 1 < states) sum = log_add(sum, later[s + 1] + q.log_prob(t + 1, s + 1));
                    if (s + 2 < states && q.skips(s + 2))
                        sum = log_add(sum, later[s + 2] + q.log_prob(t + 1, s + 2));
                }
                table[t * width + s] = sum;
            }
            __syncthreads();
        }
    }
}

/// Subtracts the probability of each class at one time, multiplied by the sequence's factor in `scale`, from a row of
/// `grad` that contained zeros. The probability of a class is the sum over all states of the target that have this
/// class. One thread adds them in order.
template <class T>
struct SubtractStates {
    Batch<T> b;
    T* grad;
    const T *scale, *alpha, *beta;
    __device__ void operator()(int64_t i) const {
        const int64_t n = i % b.count, t = i / b.count, width = b.width();
        const Sequence<T> q = b.at(n);
        if (t >= q.time) return;
        const T* const table = alpha + n * b.time * width;
        const T total = q.at_end(table + (q.time - 1) * width);
        if (total == -static_cast<T>(INFINITY)) return;
        const int64_t row = (n * b.time + t) * width;
        for (int64_t s = 0; s < q.states(); ++s)
            grad[i * b.classes + q.label(s)] -= scale[n] * std::exp(alpha[row + s] + beta[row + s] - total);
    }
};

template <class T>
Grid block_for_each(const Batch<T>& b) {
    return {blocks_for(b.count * kThreads), kThreads};
}

struct CtcLoss {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View &loss = args.out(0), &alpha = args.out(1);
        if (loss.numel == 0) return;
        const cudaStream_t stream = queue_of(args);
        const Batch<T> b(args, args.in(0), 1, args.params[0].as_int());
        queue_for_each(args, b.count, CheckSequence<T>{b, alarm_of(args.context)});
        const DenseOut<T> to(args.context, loss), kept(args.context, alpha);
        T* table = kept.data() ? kept.data() : scratch<T>(args.context, b.count * b.time * b.width());
        launch(&ctc_forward<T>, block_for_each(b), stream, b, table, to.data(), args.params[1].as_bool());
        to.finish();
        kept.finish();
    }
};

struct CtcLossBackward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View& out = args.out(0);
        if (out.numel == 0) return;
        const cudaStream_t stream = queue_of(args);
        const Batch<T> b(args, args.in(1), 2, args.params[0].as_int());
        queue_for_each(args, b.count, CheckSequence<T>{b, alarm_of(args.context)});
        const RowMajor strides(out.sizes, out.ndim);
        const DenseOut<T> to(args.context, out);
        queue_zeros(View{to.data(), out.sizes, strides.strides, out.numel, out.ndim, DTypeOf<T>::value, 1},
                    args.context);
        auto* beta = scratch<T>(args.context, b.count * b.time * b.width());
        launch(&ctc_backward<T>, block_for_each(b), stream, b, beta);
        queue_for_each(args, b.time * b.count,
                       SubtractStates<T>{b, to.data(), dense<T>(args.context, args.in(0)),
                                         dense<T>(args.context, args.in(5)), beta});
        to.finish();
    }
};

}  // namespace

BackendStatus ctc_loss(const KernelArgs* args) { return by_floating_dtype<CtcLoss>(args, args->in(0).dtype); }
BackendStatus ctc_loss_backward(const KernelArgs* args) {
    return by_floating_dtype<CtcLossBackward>(args, args->in(1).dtype);
}

}  // namespace rushlight::cuda
