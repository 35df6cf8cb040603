// Layer norm and root mean square norm over the last dimensions of row-major arrays, and their gradients. The mean is
// computed first, and then the squared deviations from it, so that no digits are lost if the mean is large.
#include "cuda/kernels.h"
#include "cuda/kernels/rows.cuh"

namespace rushlight::cuda {
namespace {

template <bool centered, class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    normalize_rows(const Rows s, Stored* out, T* means, T* rstds, const Stored* in, const T* weight,
                   const T* bias, T eps) {
    __shared__ Values<T> room;
    const uint32_t lane = threadIdx.x % s.lanes, at_once = kThreads / s.lanes;
    for (int64_t group = blockIdx.x; group * at_once < s.count; group += gridDim.x) {
        const int64_t row = group * at_once + threadIdx.x / s.lanes;
        const int64_t n = row < s.count ? s.size : 0, at = row * s.size;
        const auto value = [&](int64_t i) { return static_cast<T>(in[at + i]); };
        T mean = 0, squares = 0;
        if (centered) {
            for (int64_t i = lane; i < n; i += s.lanes) mean += value(i);
            mean = over_lanes(room.x, lane, s.lanes, mean, Plus()) / static_cast<T>(s.size);
        }
        for (int64_t i = lane; i < n; i += s.lanes) squares += (value(i) - mean) * (value(i) - mean);
        squares = over_lanes(room.x, lane, s.lanes, squares, Plus());
        const T rstd = T(1) / std::sqrt(squares / static_cast<T>(s.size) + eps);
        for (int64_t i = lane; i < n; i += s.lanes) {
            T y = (value(i) - mean) * rstd;
            if (weight) y *= weight[i];
            if (bias) y += bias[i];
            out[at + i] = Stored(y);
        }
        if (lane != 0 || row >= s.count) continue;
        if (means) means[row] = mean;
        if (rstds) rstds[row] = rstd;
    }
}

template <bool centered>
struct RowNorm {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View &out = args.out(0), &in = args.in(0);
        if (out.numel == 0) return;
        const cudaStream_t stream = queue_of(args);
        const int64_t size = size_of(args.params[0].as_ints());
        const Rows rows(in.numel / size, size, 1);
        const DenseOut<Stored> to(args.context, out);
        static constexpr View kAbsent{nullptr, nullptr, nullptr, 0, -1, DType::Float32, 0};
        const DenseOut<T> means(args.context, centered ? args.out(1) : kAbsent),
            rstds(args.context, args.out(centered ? 2 : 1));
        launch(&normalize_rows<centered, T, Stored>, rows.grid(), stream, rows, to.data(), means.data(),
               rstds.data(), dense<Stored>(args.context, in), dense<T>(args.context, args.in(1)),
               centered ? dense<T>(args.context, args.in(2)) : nullptr,
               static_cast<T>(args.params[1].as_float()));
        to.finish();
        means.finish();
        rstds.finish();
    }
    static int64_t size_of(const Ints& shape) {
        int64_t n = 1;
        for (int64_t size : shape) n *= size;
        return n;
    }
};

// With x the normalised input and g the gradient times the weight: rstd (g - mean of g - x times the mean of g x).
template <bool centered, class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    row_gradients(const Rows s, Stored* out, const Stored* grad, const Stored* in, const T* means,
                  const T* rstds, const T* weight) {
    __shared__ Values<T> room;
    const uint32_t lane = threadIdx.x % s.lanes, at_once = kThreads / s.lanes;
    for (int64_t group = blockIdx.x; group * at_once < s.count; group += gridDim.x) {
        const int64_t row = group * at_once + threadIdx.x / s.lanes;
        const int64_t n = row < s.count ? s.size : 0, at = row * s.size;
        const T mean = centered && n ? means[row] : T(0), rstd = n ? rstds[row] : T(0);
        const auto normal = [&](int64_t i) { return (static_cast<T>(in[at + i]) - mean) * rstd; };
        const auto scaled = [&](int64_t i) {
            const T g = static_cast<T>(grad[at + i]);
            return weight ? g * weight[i] : g;
        };
        T sum = 0, product = 0;
        for (int64_t i = lane; i < n; i += s.lanes) {
            if (centered) sum += scaled(i);
            product += scaled(i) * normal(i);
        }
        if (centered) sum = over_lanes(room.x, lane, s.lanes, sum, Plus()) / static_cast<T>(s.size);
        product = over_lanes(room.x, lane, s.lanes, product, Plus()) / static_cast<T>(s.size);
        for (int64_t i = lane; i < n; i += s.lanes)
            out[at + i] = Stored(rstd * (scaled(i) - sum - normal(i) * product));
    }
}

/// Computes sums over rows. Each thread computes the sums of one column over the rows that the thread's group of blocks
/// processes.
template <bool centered, class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    weight_shares(const Rows s, T* weights, T* biases, const Stored* grad, const Stored* in, const T* means,
                  const T* rstds) {
    const int64_t share = (s.count + gridDim.y - 1) / gridDim.y, first = share * blockIdx.y,
                  last = first + share < s.count ? first + share : s.count;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < s.size;
         i += static_cast<int64_t>(gridDim.x) * kThreads) {
        T weight = 0, bias = 0;
        for (int64_t row = first; row < last; ++row) {
            const T g = static_cast<T>(grad[row * s.size + i]), mean = centered ? means[row] : T(0);
            weight += g * (static_cast<T>(in[row * s.size + i]) - mean) * rstds[row];
            bias += g;
        }
        weights[blockIdx.y * s.size + i] = weight;
        if (centered) biases[blockIdx.y * s.size + i] = bias;
    }
}

/// Adds the results of all groups of blocks.
template <class T>
__global__ void __launch_bounds__(kThreads)
    join_columns(T* out, const T* shares, int64_t size, int64_t groups) {
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < size;
         i += static_cast<int64_t>(gridDim.x) * kThreads) {
        T sum = 0;
        for (int64_t group = 0; group < groups; ++group) sum += shares[group * size + i];
        out[i] = sum;
    }
}

template <class T>
__global__ void __launch_bounds__(kThreads) clear(T* out, int64_t n) {
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n;
         i += static_cast<int64_t>(gridDim.x) * kThreads)
        out[i] = 0;
}

template <bool centered>
struct RowNormBackward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        constexpr int kMean = 2, kRstd = centered ? 3 : 2, kWeight = kRstd + 1;
        const View& in = args.in(1);
        const cudaStream_t stream = queue_of(args);
        KernelContext* const context = args.context;
        const int64_t size = RowNorm<centered>::size_of(args.params[0].as_ints());
        static constexpr View kAbsent{nullptr, nullptr, nullptr, 0, -1, DType::Float32, 0};
        const View &out = args.out(0), &grad_weight = args.out(1),
                   &grad_bias = centered ? args.out(2) : kAbsent;
        const DenseOut<Stored> to(context, out);
        const DenseOut<T> to_weight(context, grad_weight), to_bias(context, grad_bias);
        const Grid columns{blocks_for(size), kThreads};
        if (in.numel == 0) {
            for (T* sums : {to_weight.data(), to_bias.data()})
                if (sums && size > 0) launch(&clear<T>, columns, stream, sums, size);
        } else {
            const Rows rows(in.numel / size, size, 1);
            const Stored *grad = dense<Stored>(context, args.in(0)), *x = dense<Stored>(context, in);
            const T *means = centered ? dense<T>(context, args.in(kMean)) : nullptr,
                    *rstds = dense<T>(context, args.in(kRstd));
            if (to.data())
                launch(&row_gradients<centered, T, Stored>, rows.grid(), stream, rows, to.data(), grad, x,
                       means, rstds, dense<T>(context, args.in(kWeight)));
            if (to_weight.data() || to_bias.data()) {
                // Enough groups of blocks to occupy a GPU. The number depends only on the shape, so that the sums are
                // deterministic.
                constexpr int64_t kRowsPerGroup = 32, kMostGroups = 128;
                const int64_t wanted = (rows.count + kRowsPerGroup - 1) / kRowsPerGroup;
                const int64_t groups = wanted < kMostGroups ? wanted : kMostGroups;
                auto* weights = scratch<T>(context, groups * size);
                auto* biases = centered ? scratch<T>(context, groups * size) : nullptr;
                launch(&weight_shares<centered, T, Stored>,
                       Grid{columns.blocks, kThreads, static_cast<unsigned>(groups)}, stream, rows, weights,
                       biases, grad, x, means, rstds);
                if (to_weight.data())
                    launch(&join_columns<T>, columns, stream, to_weight.data(), weights, size, groups);
                if (to_bias.data())
                    launch(&join_columns<T>, columns, stream, to_bias.data(), biases, size, groups);
            }
        }
        to.finish();
        to_weight.finish();
        to_bias.finish();
    }
};

}  // namespace

BackendStatus layer_norm(const KernelArgs* args) {
    return by_floating_dtype<RowNorm<true>>(args, args->in(0).dtype);
}
BackendStatus layer_norm_backward(const KernelArgs* args) {
    return by_floating_dtype<RowNormBackward<true>>(args, args->in(1).dtype);
}
BackendStatus rms_norm(const KernelArgs* args) {
    return by_floating_dtype<RowNorm<false>>(args, args->in(0).dtype);
}
BackendStatus rms_norm_backward(const KernelArgs* args) {
    return by_floating_dtype<RowNormBackward<false>>(args, args->in(1).dtype);
}

}  // namespace rushlight::cuda
