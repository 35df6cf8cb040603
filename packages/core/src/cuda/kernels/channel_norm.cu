// Batch norm and group norm of row-major and channels-last arrays (batch, channels, ...), and their gradients. Statistics are
// computed in float64: the mean of each share of a row, and then the squared deviations from it. The division into shares
// depends only on the shape and the format.
#include "cuda/kernels.h"
#include "cuda/kernels/formats.cuh"
#include "cuda/kernels/rows.cuh"

namespace rushlight::cuda {
namespace {

/// `count` rows, each of which consists of `pieces` runs of `size` adjacent elements. Each `together` successive rows have
/// adjacent memory, in which the first runs of these rows come first, then their second runs, and so on. Each row is divided into `shares` parts, and a block processes one
/// part of `width` successive rows. If the runs are single elements, as the channels of a channels-last array, a block
/// processes several rows, so that neighbouring threads read neighbouring elements.
struct Runs {
    int64_t count, size, pieces, together, shares;
    uint32_t width = 1;

    Runs(int64_t rows, int64_t adjacent, int64_t runs, int64_t rows_together)
        : count(rows), size(adjacent), pieces(runs), together(rows_together) {
        constexpr int64_t kPerBlock = kThreads * 16, kBlocks = 1024;
        constexpr uint32_t kWidest = 32;
        while (size == 1 && width < kWidest && width < count) width *= 2;
        const int64_t most = kBlocks / (count > 0 ? tiles() : 1), wanted = size * pieces * width / kPerBlock;
        shares = wanted < most ? wanted : most;
        if (shares < 1) shares = 1;
    }
    __host__ __device__ int64_t length() const { return size * pieces; }
    /// The number of groups of `width` rows.
    __host__ __device__ int64_t tiles() const { return (count + width - 1) / width; }
    /// The first element of a row, and the distance of its element `i` from the first one.
    __device__ int64_t start(int64_t row) const {
        return (row / together * pieces * together + row % together) * size;
    }
    __device__ int64_t distance(int64_t i) const { return i / size * together * size + i % size; }
    __device__ int64_t first(int64_t share) const { return length() * share / shares; }
    Grid grid() const { return {blocks_for(tiles() * kThreads), kThreads, static_cast<unsigned>(shares)}; }

    __device__ uint32_t lanes() const { return kThreads / width; }
    __device__ uint32_t lane() const { return threadIdx.x / width; }
    /// The row of this thread in a group of rows; `count` or more if the last group is smaller.
    __device__ int64_t row(int64_t tile) const { return tile * width + threadIdx.x % width; }
    /// Returns the sum of the values of the threads that process one row. All threads of a block must call it.
    template <class T>
    __device__ T sum(T* room, T value) const {
        __syncthreads();  // all threads have read `room`
        room[threadIdx.x] = value;
        for (uint32_t apart = kThreads / 2; apart >= width; apart /= 2) {
            __syncthreads();
            if (threadIdx.x < apart) room[threadIdx.x] += room[threadIdx.x + apart];
        }
        __syncthreads();
        return room[threadIdx.x % width];
    }
};

/// The statistics of a row, or of a part of a row.
struct Moments {
    double mean, squares;  // sum of squared deviations from the mean
};

template <class Stored>
__global__ void __launch_bounds__(kThreads) find_moments(const Runs s, Moments* moments, const Stored* in) {
    using T = Computed<Stored>;
    __shared__ Values<double> room;
    const int64_t first = s.first(blockIdx.y), last = s.first(blockIdx.y + 1);
    for (int64_t tile = blockIdx.x; tile < s.tiles(); tile += gridDim.x) {
        const int64_t row = s.row(tile), end = row < s.count ? last : first;
        const Stored* from = in + s.start(row);
        const auto value = [&](int64_t i) {
            return static_cast<double>(static_cast<T>(from[s.distance(i)]));
        };
        double mean = 0, squares = 0;
        for (int64_t i = first + s.lane(); i < end; i += s.lanes()) mean += value(i);
        mean = s.sum(room.x, mean) / static_cast<double>(last - first);
        for (int64_t i = first + s.lane(); i < end; i += s.lanes())
            squares += (value(i) - mean) * (value(i) - mean);
        squares = s.sum(room.x, squares);
        if (s.lane() == 0 && row < s.count) moments[row * s.shares + blockIdx.y] = {mean, squares};
    }
}

__device__ Moments joined(const Runs& s, const Moments* shares, int64_t row) {
    const Moments* of = shares + row * s.shares;
    if (s.shares == 1) return of[0];
    Moments all = {0, 0};
    for (int64_t k = 0; k < s.shares; ++k)
        all.mean += of[k].mean * static_cast<double>(s.first(k + 1) - s.first(k));
    all.mean /= static_cast<double>(s.length());
    for (int64_t k = 0; k < s.shares; ++k) {
        const double off = of[k].mean - all.mean;
        all.squares += of[k].squares + off * off * static_cast<double>(s.first(k + 1) - s.first(k));
    }
    return all;
}

/// The gradient of the normalised elements. If there is an activation, the gradient is zero where the activation is not
/// between `low` and `high`.
template <class Stored>
struct Incoming {
    const Stored *grad, *activation;
    Computed<Stored> low, high;
    __device__ Computed<Stored> operator[](int64_t i) const {
        using T = Computed<Stored>;
        const auto g = static_cast<T>(grad[i]);
        if (!activation) return g;
        const auto a = static_cast<T>(activation[i]);
        return a <= low || a >= high ? T(0) : g;
    }
};

/// The sum of the gradient, and the sum of the products of the gradient and the input's deviations from the mean.
struct Sums {
    double grad, product;
};

/// Computes the Sums of each part of each row. Each group of `per_mean` successive rows shares one mean.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    find_sums(const Runs s, Sums* sums, const Incoming<Stored> grad, const Stored* in,
              const Computed<Stored>* means, int64_t per_mean) {
    using T = Computed<Stored>;
    __shared__ Values<double> room;
    const int64_t first = s.first(blockIdx.y), last = s.first(blockIdx.y + 1);
    for (int64_t tile = blockIdx.x; tile < s.tiles(); tile += gridDim.x) {
        const int64_t row = s.row(tile), end = row < s.count ? last : first;
        const T mean = row < s.count ? means[row / per_mean] : T(0);
        const int64_t start = s.start(row);
        Sums sum = {0, 0};
        for (int64_t i = first + s.lane(); i < end; i += s.lanes()) {
            const int64_t at = start + s.distance(i);
            const T g = grad[at];
            sum.grad += g;
            sum.product += static_cast<double>(g) * (static_cast<T>(in[at]) - mean);
        }
        sum.grad = s.sum(room.x, sum.grad);
        sum.product = s.sum(room.x, sum.product);
        if (s.lane() == 0 && row < s.count) sums[row * s.shares + blockIdx.y] = sum;
    }
}

__device__ Sums joined(const Runs& s, const Sums* shares, int64_t row) {
    Sums all = {0, 0};
    for (int64_t k = row * s.shares; k < (row + 1) * s.shares; ++k) {
        all.grad += shares[k].grad;
        all.product += shares[k].product;
    }
    return all;
}

/// Coefficients for a run of elements. Affine stands for input * scale + shift, and InputGradient stands for
/// grad * p + (input * q + r).
template <class T>
struct Affine {
    T scale, shift;
};
template <class T>
struct InputGradient {
    T p, q, r;
};

int64_t elements_per_channel(const View& input) {
    int64_t n = 1;
    for (int d = 2; d < input.ndim; ++d) n *= input.sizes[d];
    return n;
}

/// Where the coefficients of an element are, in an array (samples, channels) or, if all samples have the same coefficients,
/// in an array (channels).
struct Coefficients {
    int64_t size, channels,
        sample;  // the elements of a run; sample is 0 if all samples have the same coefficients

    Coefficients(const View& input, bool channels_last, bool for_each_sample)
        : size(channels_last ? 1 : elements_per_channel(input)),
          channels(input.size(1)),
          sample(for_each_sample ? channels * elements_per_channel(input) : 0) {}
    __device__ int64_t operator()(int64_t i) const {
        return i / size % channels + (sample ? i / sample * channels : 0);
    }
};

/// Compute the formula of Affine or InputGradient for each element.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    apply_affine(Stored* out, const Stored* in, const Affine<Computed<Stored>>* coefficients, int64_t n,
                 const Coefficients at) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        const auto& a = coefficients[at(i)];
        out[i] = Stored(static_cast<Computed<Stored>>(in[i]) * a.scale + a.shift);
    }
}
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    apply_gradient(Stored* out, const Incoming<Stored> grad, const Stored* in,
                   const InputGradient<Computed<Stored>>* coefficients, int64_t n, const Coefficients at) {
    using T = Computed<Stored>;
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        const auto& a = coefficients[at(i)];
        out[i] = Stored(grad[i] * a.p + (static_cast<T>(in[i]) * a.q + a.r));
    }
}

// --- Batch norm -------------------------------------------------------------------------------------

Runs rows_of_channels(const View& input, bool channels_last) {
    const int64_t samples = input.size(0), channels = input.size(1), each = elements_per_channel(input);
    return channels_last ? Runs(channels, 1, samples * each, channels)
                         : Runs(channels, each, samples, channels);
}

template <class T>
struct BatchStatistics {
    const T *weight, *bias, *running_mean, *running_var;  // before the update
    T *new_mean, *new_var, *save_mean, *save_invstd;
    bool training;
    T momentum, eps;
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    settle_batch(const Runs s, const BatchStatistics<T> b, const Moments* shares, Affine<T>* channels) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; c < s.count; c += step) {
        const double count = static_cast<double>(s.length()), eps = b.eps, m = b.momentum;
        double mean, variance;
        if (b.training) {
            const Moments found = joined(s, shares, c);
            mean = found.mean;
            variance = found.squares / count;
            if (b.new_mean) b.new_mean[c] = static_cast<T>((1 - m) * b.running_mean[c] + m * mean);
            if (b.new_var)
                b.new_var[c] = static_cast<T>((1 - m) * b.running_var[c] + m * (found.squares / (count - 1)));
        } else {
            mean = b.running_mean[c];
            variance = b.running_var[c];
        }
        const double invstd = 1 / std::sqrt(variance + eps), scale = b.weight ? invstd * b.weight[c] : invstd;
        if (b.save_mean) b.save_mean[c] = static_cast<T>(mean);
        if (b.save_invstd) b.save_invstd[c] = static_cast<T>(invstd);
        channels[c] = {static_cast<T>(scale), static_cast<T>((b.bias ? b.bias[c] : T(0)) - mean * scale)};
    }
}

struct BatchNorm {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View& input = args.in(0);
        if (args.out(0).numel == 0) return;
        const cudaStream_t stream = queue_of(args);
        KernelContext* const context = args.context;
        const bool last = is_channels_last(input);
        const int64_t channels = input.size(1);
        const Runs runs = rows_of_channels(input, last);
        static constexpr View kAbsent{nullptr, nullptr, nullptr, 0, -1, DType::Float32, 0};
        const bool training = args.params[0].as_bool();
        const FormatOut<Stored> to(context, args.out(0), last);
        const DenseOut<T> save_mean(context, args.out(1)), save_invstd(context, args.out(2)),
            new_mean(context, training ? args.in(3) : kAbsent),
            new_var(context, training ? args.in(4) : kAbsent);
        const BatchStatistics<T> statistics{dense<T>(context, args.in(1)),
                                            dense<T>(context, args.in(2)),
                                            dense<T>(context, args.in(3)),
                                            dense<T>(context, args.in(4)),
                                            new_mean.data(),
                                            new_var.data(),
                                            save_mean.data(),
                                            save_invstd.data(),
                                            training,
                                            static_cast<T>(args.params[1].as_float()),
                                            static_cast<T>(args.params[2].as_float())};
        const Stored* x = in_format<Stored>(context, input, last);
        auto* moments = training ? scratch<Moments>(context, channels * runs.shares) : nullptr;
        auto* positions = scratch<Affine<T>>(context, channels);
        if (training) launch(&find_moments<Stored>, runs.grid(), stream, runs, moments, x);
        launch(&settle_batch<T>, Grid{blocks_for(channels), kThreads}, stream, runs, statistics, moments,
               positions);
        launch(&apply_affine<Stored>, Grid{blocks_for(input.numel), kThreads}, stream, to.data(), x,
               positions, input.numel, Coefficients(input, last, false));
        to.finish();
        for (const DenseOut<T>* made : {&save_mean, &save_invstd, &new_mean, &new_var}) made->finish();
    }
};

/// Computes the gradients of weight and bias, and the coefficients for the gradient of the input. The gradients of an
/// empty batch are zeros, whatever the statistics are.
template <class T>
__global__ void __launch_bounds__(kThreads)
    settle_batch_gradients(const Runs s, const Sums* shares, const T* means, const T* invstds,
                           const T* weights, bool training, T* grad_weight, T* grad_bias,
                           InputGradient<T>* channels) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; c < s.count; c += step) {
        const bool empty = s.length() == 0;
        const Sums sum = empty ? Sums{0, 0} : joined(s, shares, c);
        const double mean = means[c], invstd = invstds[c], p = invstd * (weights ? weights[c] : T(1)),
                     count = static_cast<double>(s.length()),
                     q = training ? -p * invstd * invstd * sum.product / count : 0;
        if (grad_weight) grad_weight[c] = empty ? T(0) : static_cast<T>(sum.product * invstd);
        if (grad_bias) grad_bias[c] = static_cast<T>(sum.grad);
        channels[c] = {static_cast<T>(p), static_cast<T>(q),
                       training ? static_cast<T>(-p * sum.grad / count - q * mean) : T(0)};
    }
}

/// If `masked` is true, the operator has additional arguments: the activation, which follows the gradient, and the
/// bounds of the activation, which precede `training`.
template <bool masked>
struct BatchNormBackward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        constexpr int kMore = masked ? 1 : 0;
        const View& input = args.in(1 + kMore);
        KernelContext* const context = args.context;
        const bool last = is_channels_last(input);
        const int64_t channels = input.size(1);
        if (channels == 0) return;
        const cudaStream_t stream = queue_of(args);
        const Runs runs = rows_of_channels(input, last);
        const FormatOut<Stored> to(context, args.out(0), last);
        const DenseOut<T> grad_weight(context, args.out(1)), grad_bias(context, args.out(2));
        Incoming<Stored> grad{in_format<Stored>(context, args.in(0), last), nullptr, 0, 0};
        if (masked) {
            grad.activation = in_format<Stored>(context, args.in(1), last);
            grad.low = static_cast<T>(args.params[0].as_float());
            grad.high = static_cast<T>(args.params[1].as_float());
        }
        const Stored* x = in_format<Stored>(context, input, last);
        const T* means = dense<T>(context, args.in(3 + kMore));
        auto* sums = scratch<Sums>(context, channels * runs.shares);
        auto* positions = scratch<InputGradient<T>>(context, channels);
        if (input.numel > 0) launch(&find_sums<Stored>, runs.grid(), stream, runs, sums, grad, x, means, 1);
        launch(&settle_batch_gradients<T>, Grid{blocks_for(channels), kThreads}, stream, runs, sums, means,
               dense<T>(context, args.in(4 + kMore)), dense<T>(context, args.in(2 + kMore)),
               args.params[2 * kMore].as_bool(), grad_weight.data(), grad_bias.data(), positions);
        if (to.data() && input.numel > 0)
            launch(&apply_gradient<Stored>, Grid{blocks_for(input.numel), kThreads}, stream, to.data(), grad,
                   x, positions, input.numel, Coefficients(input, last, false));
        to.finish();
        grad_weight.finish();
        grad_bias.finish();
    }
};

// --- Group norm -------------------------------------------------------------------------------------

/// Computes the coefficients of each channel of each sample. A sample has `channels` channels, and each group of
/// `per_group` channels is normalised together.
template <class T>
__global__ void __launch_bounds__(kThreads)
    settle_groups(const Runs s, const Moments* shares, const T* weight, const T* bias, T eps,
                  int64_t channels, int64_t per_group, T* means, T* rstds, Affine<T>* positions) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t k = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; k < s.count * per_group;
         k += step) {
        const int64_t group = k / per_group, c = k % channels;
        const Moments found = joined(s, shares, group);
        const double rstd = 1 / std::sqrt(found.squares / static_cast<double>(s.length()) + eps),
                     scale = weight ? rstd * weight[c] : rstd;
        positions[k] = {static_cast<T>(scale), static_cast<T>((bias ? bias[c] : T(0)) - found.mean * scale)};
        if (k % per_group != 0) continue;
        if (means) means[group] = static_cast<T>(found.mean);
        if (rstds) rstds[group] = static_cast<T>(rstd);
    }
}

struct GroupNorm {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View& input = args.in(0);
        if (args.out(0).numel == 0) return;
        const cudaStream_t stream = queue_of(args);
        KernelContext* const context = args.context;
        const bool last = is_channels_last(input);
        const int64_t channels = input.size(1), each = elements_per_channel(input),
                      groups = args.params[0].as_int(), per_group = channels / groups,
                      rows = input.size(0) * channels, count = input.size(0) * groups;
        const Runs runs = last ? Runs(count, per_group, each, groups) : Runs(count, per_group * each, 1, 1);
        const FormatOut<Stored> to(context, args.out(0), last);
        const DenseOut<T> means(context, args.out(1)), rstds(context, args.out(2));
        const Stored* x = in_format<Stored>(context, input, last);
        auto* moments = scratch<Moments>(context, runs.count * runs.shares);
        auto* positions = scratch<Affine<T>>(context, rows);
        launch(&find_moments<Stored>, runs.grid(), stream, runs, moments, x);
        launch(&settle_groups<T>, Grid{blocks_for(rows), kThreads}, stream, runs, moments,
               dense<T>(context, args.in(1)), dense<T>(context, args.in(2)),
               static_cast<T>(args.params[1].as_float()), channels, per_group, means.data(), rstds.data(),
               positions);
        launch(&apply_affine<Stored>, Grid{blocks_for(input.numel), kThreads}, stream, to.data(), x,
               positions, input.numel, Coefficients(input, last, true));
        to.finish();
        means.finish();
        rstds.finish();
    }
};

/// The rows of `s` are the channels of all samples. Let h be the normalised input, and let g be the gradient multiplied
/// by the weight. The gradient of the input is rstd * (g - mean(g) - h * mean(g * h)).
template <class T>
__global__ void __launch_bounds__(kThreads)
    settle_group_gradients(const Runs s, const Sums* shares, const T* means, const T* rstds, const T* weight,
                           int64_t channels, int64_t per_group, InputGradient<T>* positions) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t k = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; k < s.count; k += step) {
        const int64_t group = k / per_group;
        const double mean = means[group], rstd = rstds[group],
                     count = static_cast<double>(per_group * s.length());
        double grads = 0, products = 0;
        for (int64_t row = group * per_group; row < (group + 1) * per_group; ++row) {
            const Sums sum = joined(s, shares, row);
            const double w = weight ? weight[row % channels] : T(1);
            grads += w * sum.grad;
            products += w * sum.product;
        }
        const double q = -products / count * rstd * rstd * rstd;
        positions[k] = {static_cast<T>(weight ? rstd * weight[k % channels] : rstd), static_cast<T>(q),
                        static_cast<T>(-grads / count * rstd - q * mean)};
    }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    join_samples(const Runs s, const Sums* shares, const T* rstds, int64_t channels, int64_t per_group,
                 T* grad_weight, T* grad_bias) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; c < channels; c += step) {
        double weight = 0, bias = 0;
        for (int64_t row = c; s.length() > 0 && row < s.count; row += channels) {
            const Sums sum = joined(s, shares, row);
            weight += sum.product * rstds[row / per_group];
            bias += sum.grad;
        }
        if (grad_weight) grad_weight[c] = static_cast<T>(weight);
        if (grad_bias) grad_bias[c] = static_cast<T>(bias);
    }
}

struct GroupNormBackward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View& input = args.in(1);
        KernelContext* const context = args.context;
        const bool last = is_channels_last(input);
        const int64_t channels = input.size(1), each = elements_per_channel(input),
                      per_group = channels / args.params[0].as_int(), rows = input.size(0) * channels;
        if (channels == 0) return;
        const cudaStream_t stream = queue_of(args);
        const Runs runs = last ? Runs(rows, 1, each, channels) : Runs(rows, each, 1, 1);
        const FormatOut<Stored> to(context, args.out(0), last);
        const DenseOut<T> grad_weight(context, args.out(1)), grad_bias(context, args.out(2));
        const Incoming<Stored> grad{in_format<Stored>(context, args.in(0), last), nullptr, 0, 0};
        const Stored* x = in_format<Stored>(context, input, last);
        const T *means = dense<T>(context, args.in(2)), *rstds = dense<T>(context, args.in(3));
        auto* sums = scratch<Sums>(context, runs.count * runs.shares);
        if (input.numel > 0)
            launch(&find_sums<Stored>, runs.grid(), stream, runs, sums, grad, x, means, per_group);
        if (grad_weight.data() || grad_bias.data())
            launch(&join_samples<T>, Grid{blocks_for(channels), kThreads}, stream, runs, sums, rstds,
                   channels, per_group, grad_weight.data(), grad_bias.data());
        if (to.data() && input.numel > 0) {
            auto* positions = scratch<InputGradient<T>>(context, runs.count);
            launch(&settle_group_gradients<T>, Grid{blocks_for(runs.count), kThreads}, stream, runs, sums,
                   means, rstds, dense<T>(context, args.in(4)), channels, per_group, positions);
            launch(&apply_gradient<Stored>, Grid{blocks_for(input.numel), kThreads}, stream, to.data(), grad,
                   x, positions, input.numel, Coefficients(input, last, true));
        }
        to.finish();
        grad_weight.finish();
        grad_bias.finish();
    }
};

}  // namespace

BackendStatus batch_norm(const KernelArgs* args) {
    return by_floating_dtype<BatchNorm>(args, args->in(0).dtype);
}
BackendStatus batch_norm_backward(const KernelArgs* args) {
    return by_floating_dtype<BatchNormBackward<false>>(args, args->in(1).dtype);
}
BackendStatus masked_batch_norm_backward(const KernelArgs* args) {
    return by_floating_dtype<BatchNormBackward<true>>(args, args->in(2).dtype);
}
BackendStatus group_norm(const KernelArgs* args) {
    return by_floating_dtype<GroupNorm>(args, args->in(0).dtype);
}
BackendStatus group_norm_backward(const KernelArgs* args) {
    return by_floating_dtype<GroupNormBackward>(args, args->in(1).dtype);
}

}  // namespace rushlight::cuda
