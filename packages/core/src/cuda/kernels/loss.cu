// Losses for classes: nll_loss and the cross entropy, which saves the logarithms of the sums for the gradient.
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/rows.cuh"

namespace rushlight::cuda {
namespace {

enum Reduction : int64_t { kNone, kMean, kSum };

/// An input (batch, classes, ...), with one target for each position, and the weights of the classes.
template <class Stored>
struct Classes {
    int64_t positions = 1, classes, inner = 1, ignore_index;
    const int64_t* target;
    const Stored* weight;  // one for each class, or null
    Alarm alarm;

    Classes(const KernelArgs& args, const int64_t* sizes, int ndim, const View& targets, const View& weights,
            int64_t ignored)
        : classes(ndim == 1 ? sizes[0] : sizes[1]),
          ignore_index(ignored),
          target(dense<int64_t>(args.context, targets)),
          weight(dense<Stored>(args.context, weights)),
          alarm(alarm_of(args.context)) {
        for (int d = 2; d < ndim; ++d) inner *= sizes[d];
        positions = (ndim == 1 ? 1 : sizes[0]) * inner;
    }
    /// Returns the class of a position, or -1 if the position is ignored. If the target is not a class, raises the
    /// alarm and returns -1.
    __device__ int64_t class_of(int64_t position) const {
        const int64_t t = target[position];
        if (t == ignore_index) return -1;
        if (t >= 0 && t < classes) return t;
        alarm.raise();
        return -1;
    }
    template <class T>
    __device__ T weight_of(int64_t c) const {
        return weight ? static_cast<T>(weight[c]) : T(1);
    }
    /// Returns the offset of a position and a class in the input.
    __device__ int64_t at(int64_t position, int64_t c) const {
        return (position / inner * classes + c) * inner + position % inner;
    }
    /// Returns the layout of the input as rows. Each row holds the scores of all classes at one position.
    Rows scores() const { return {positions / inner, classes, inner}; }
};

// --- Reduction of the losses of positions ---------------------------------------------------------------

/// The number of blocks that compute a sum. It depends only on the shape, so that results are deterministic.
inline unsigned shares_of(int64_t positions) {
    constexpr int64_t kPositionsPerShare = 4 * kThreads;
    const int64_t wanted = (positions + kPositionsPerShare - 1) / kPositionsPerShare;
    return static_cast<unsigned>(wanted < 1 ? 1 : wanted < kThreads ? wanted : kThreads);
}

/// Computes, in float64, the sum of the losses of a share of the positions, and the sum of the weights of their
/// classes.
template <class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    sum_shares(const Classes<Stored> c, const T* losses, double* sums) {
    __shared__ Values<double> room;
    double loss = 0, weight = 0;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < c.positions;
         i += static_cast<int64_t>(gridDim.x) * kThreads) {
        const int64_t t = c.class_of(i);
        if (t < 0) continue;
        loss += static_cast<double>(losses[i]);
        weight += c.template weight_of<double>(t);
    }
    loss = over_lanes(room.x, threadIdx.x, kThreads, loss, Plus());
    weight = over_lanes(room.x, threadIdx.x, kThreads, weight, Plus());
    if (threadIdx.x != 0) return;
    sums[blockIdx.x] = loss;
    sums[gridDim.x + blockIdx.x] = weight;
}

template <class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    join_sums(const double* sums, uint32_t shares, Stored* loss, T* total_weight, int64_t reduction) {
    if (threadIdx.x != 0) return;
    double total = 0, weight = 0;
    for (uint32_t k = 0; k < shares; ++k) {
        total += sums[k];
        weight += sums[shares + k];
    }
    if (loss) *loss = Stored(static_cast<T>(reduction == kMean ? total / weight : total));
    if (total_weight) *total_weight = static_cast<T>(weight);
}

template <class T, class Stored>
struct CopyLosses {
    const T* losses;
    Stored* out;
    __device__ void operator()(int64_t i) const { out[i] = Stored(losses[i]); }
};

template <class T, class Stored>
void queue_reduced(const KernelArgs& args, const Classes<Stored>& c, const T* losses, const View& out,
                   const View& total_weight, int64_t reduction, cudaStream_t stream) {
    const unsigned shares = shares_of(c.positions);
    auto* sums = scratch<double>(args.context, 2 * shares);
    const DenseOut<T> weight(args.context, total_weight);
    launch(&sum_shares<T, Stored>, Grid{shares, kThreads}, stream, c, losses, sums);
    launch(&join_sums<T, Stored>, Grid{1, kThreads}, stream, sums, shares,
           reduction == kNone ? nullptr : out.as<Stored>(), weight.data(), reduction);
    weight.finish();
    if (reduction != kNone) return;
    const DenseOut<Stored> to(args.context, out);
    queue_for_each(CopyLosses<T, Stored>{losses, to.data()}, c.positions, stream);
    to.finish();
}

/// The gradient of a position's loss. If the losses are not reduced, it is the element of `grad` at the same position.
/// If they are summed, it is the only element of `grad`. If they are averaged, it is this element divided by the total
/// weight.
template <class T, class Stored>
struct PositionGradients {
    const Stored* grad;
    const T* total_weight;
    int64_t reduction;
    PositionGradients(const KernelArgs& args, const View& grads, const View& total, int64_t kind)
        : grad(dense<Stored>(args.context, grads)),
          total_weight(dense<T>(args.context, total)),
          reduction(kind) {}
    __device__ T of(int64_t position) const {
        if (reduction == kNone) return static_cast<T>(grad[position]);
        const T whole = static_cast<T>(grad[0]);
        return reduction == kMean ? whole / *total_weight : whole;
    }
};

// --- nll_loss ----------------------------------------------------------------------------------------

template <class T, class Stored>
struct NllLosses {
    Classes<Stored> c;
    const Stored* in;
    T* losses;
    __device__ void operator()(int64_t i) const {
        const int64_t t = c.class_of(i);
        losses[i] = t < 0 ? T(0) : -static_cast<T>(in[c.at(i, t)]) * c.template weight_of<T>(t);
    }
};
struct NllLoss {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View& in = args.in(0);
        const cudaStream_t stream = queue_of(args);
        const int64_t reduction = args.params[0].as_int();
        const Classes<Stored> c(args, in.sizes, in.ndim, args.in(1), args.in(2), args.params[1].as_int());
        auto* losses = scratch<T>(args.context, c.positions);
        queue_for_each(NllLosses<T, Stored>{c, dense<Stored>(args.context, in), losses}, c.positions, stream);
        queue_reduced(args, c, losses, args.out(0), args.out(1), reduction, stream);
    }
};

template <class T, class Stored>
struct NllGradients {
    Classes<Stored> c;
    PositionGradients<T, Stored> grads;
    Stored* out;
    __device__ void operator()(int64_t i) const {
        const int64_t row = i / c.inner, position = row / c.classes * c.inner + i % c.inner;
        const int64_t t = c.class_of(position);
        out[i] = Stored(t == row % c.classes ? -grads.of(position) * c.template weight_of<T>(t) : T(0));
    }
};
struct NllLossBackward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View& out = args.out(0);
        if (out.numel == 0) return;
        const cudaStream_t stream = queue_of(args);
        const Classes<Stored> c(args, out.sizes, out.ndim, args.in(1), args.in(2), args.params[1].as_int());
        const DenseOut<Stored> to(args.context, out);
        const PositionGradients<T, Stored> grads(args, args.in(0), args.in(3), args.params[0].as_int());
        queue_for_each(NllGradients<T, Stored>{c, grads, to.data()}, out.numel, stream);
        to.finish();
    }
};

// --- The cross entropy -------------------------------------------------------------------------------

// With p the probabilities and s the smoothing: (1 - s) w_t (-log p_t) + s / classes * sum over c of w_c (-log p_c).
template <class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    cross_entropies(const Classes<Stored> c, const Rows s, const Stored* in, T smoothing, T* log_sums,
                    T* losses) {
    __shared__ Values<T> room;
    const uint32_t lane = threadIdx.x % s.lanes, at_once = kThreads / s.lanes;
    for (int64_t group = blockIdx.x; group * at_once < s.count; group += gridDim.x) {
        const int64_t row = group * at_once + threadIdx.x / s.lanes;
        const int64_t n = row < s.count ? s.size : 0, at = n ? s.first(row) : 0;
        const auto value = [&](int64_t k) { return static_cast<T>(in[at + k * s.inner]); };
        T top = -static_cast<T>(INFINITY), total = 0, apart = 0;
        for (int64_t k = lane; k < n; k += s.lanes) top = Larger()(top, value(k));
        top = over_lanes(room.x, lane, s.lanes, top, Larger());
        for (int64_t k = lane; k < n; k += s.lanes) total += std::exp(value(k) - top);
        total = over_lanes(room.x, lane, s.lanes, total, Plus());
        const T log_sum = top + std::log(total);
        if (smoothing != T(0)) {
            for (int64_t k = lane; k < n; k += s.lanes)
                apart += c.template weight_of<T>(k) * (log_sum - value(k));
            apart = over_lanes(room.x, lane, s.lanes, apart, Plus());
        }
        if (lane != 0 || row >= s.count) continue;
        const int64_t t = c.class_of(row);
        log_sums[row] = log_sum;
        T loss = 0;
        if (t >= 0) {
            loss = (1 - smoothing) * c.template weight_of<T>(t) * (log_sum - value(t));
            if (smoothing != T(0)) loss += smoothing / static_cast<T>(c.classes) * apart;
        }
        losses[row] = loss;
    }
}
struct CrossEntropy {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View& in = args.in(0);
        const cudaStream_t stream = queue_of(args);
        const int64_t reduction = args.params[0].as_int();
        const Classes<Stored> c(args, in.sizes, in.ndim, args.in(1), args.in(2), args.params[1].as_int());
        const DenseOut<T> kept(args.context, args.out(1));
        T* log_sums = kept.data() ? kept.data() : scratch<T>(args.context, c.positions);
        auto* losses = scratch<T>(args.context, c.positions);
        const Rows rows = c.scores();
        if (rows.count > 0)
            launch(&cross_entropies<T, Stored>, rows.grid(), stream, c, rows, dense<Stored>(args.context, in),
                   static_cast<T>(args.params[2].as_float()), log_sums, losses);
        kept.finish();
        queue_reduced(args, c, losses, args.out(0), args.out(2), reduction, stream);
    }
};

/// Computes the sum of the weights of all classes. Only one block is used.
template <class T, class Stored>
__global__ void __launch_bounds__(kThreads) sum_weights(const Classes<Stored> c, T* sum) {
    __shared__ Values<T> room;
    T own = 0;
    for (int64_t k = threadIdx.x; k < c.classes; k += kThreads) own += c.template weight_of<T>(k);
    own = over_lanes(room.x, threadIdx.x, kThreads, own, Plus());
    if (threadIdx.x == 0) *sum = own;
}

// For input k: p_k ((1 - s) w_t + s / classes * sum of w) - s / classes * w_k, and minus (1 - s) w_t if k is the target.
template <class T, class Stored>
struct CrossEntropyGradients {
    Classes<Stored> c;
    PositionGradients<T, Stored> grads;
    const Stored* in;
    const T* log_sums;
    const T* sum_of_weights;  // only with smoothing
    T smoothing;
    Stored* out;
    __device__ void operator()(int64_t i) const {
        const int64_t row = i / c.inner, k = row % c.classes,
                      position = row / c.classes * c.inner + i % c.inner;
        const int64_t t = c.class_of(position);
        T value = 0;
        if (t >= 0) {
            const T g = grads.of(position), own = (1 - smoothing) * c.template weight_of<T>(t);
            const T even = smoothing / static_cast<T>(c.classes);
            const T weights = sum_of_weights ? own + even * *sum_of_weights : own;
            value = std::exp(static_cast<T>(in[i]) - log_sums[position]) * (g * weights);
            if (sum_of_weights) value -= g * even * c.template weight_of<T>(k);
            if (k == t) value -= g * own;
        }
        out[i] = Stored(value);
    }
};
struct CrossEntropyBackward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View& in = args.in(1);
        if (in.numel == 0) return;
        const cudaStream_t stream = queue_of(args);
        const Classes<Stored> c(args, in.sizes, in.ndim, args.in(2), args.in(3), args.params[1].as_int());
        const T smoothing = static_cast<T>(args.params[2].as_float());
        T* sum = nullptr;
        if (smoothing != T(0)) {
            sum = scratch<T>(args.context, 1);
            launch(&sum_weights<T, Stored>, Grid{1, kThreads}, stream, c, sum);
        }
        const DenseOut<Stored> to(args.context, args.out(0));
        const PositionGradients<T, Stored> grads(args, args.in(0), args.in(5), args.params[0].as_int());
        queue_for_each(
            CrossEntropyGradients<T, Stored>{c, grads, dense<Stored>(args.context, in),
                                             dense<T>(args.context, args.in(4)), sum, smoothing, to.data()},
            in.numel, stream);
        to.finish();
    }
};

}  // namespace

BackendStatus nll_loss(const KernelArgs* args) { return by_floating_dtype<NllLoss>(args, args->in(0).dtype); }
BackendStatus nll_loss_backward(const KernelArgs* args) {
    return by_floating_dtype<NllLossBackward>(args, args->out(0).dtype);
}
BackendStatus cross_entropy(const KernelArgs* args) {
    return by_floating_dtype<CrossEntropy>(args, args->in(0).dtype);
}
BackendStatus cross_entropy_backward(const KernelArgs* args) {
    return by_floating_dtype<CrossEntropyBackward>(args, args->in(1).dtype);
}

}  // namespace rushlight::cuda
