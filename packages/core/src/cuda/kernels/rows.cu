// Selection of slices and rows by index, and sums of rows. An index out of range raises an error when the host next waits
// (cuda/alarm.h). Until then, the first element is used instead.
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/bytes.cuh"

namespace rushlight::cuda {
namespace {

/// Copies slices of in (outer, size, inner) to out (outer, n, inner). The `n` elements of `index` are the positions of
/// the slices in `in`.
template <class T>
__global__ void __launch_bounds__(kThreads)
    take_slices(T* out, const T* in, const int64_t* index, const Alarm alarm, int64_t outer, int64_t n,
                int64_t size, int64_t inner) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < outer * n * inner;
         i += step) {
        const int64_t row = i / inner, at = alarm.checked(index[row % n], size);
        out[i] = in[(row / n * size + at) * inner + i % inner];
    }
}

void queue_slices(const KernelArgs& args, const View& in, const View& index, int64_t dim) {
    const View& out = args.out(0);
    if (out.numel == 0 && index.numel == 0) return;
    int64_t outer = 1, size = 1, inner = 1;
    if (dim < 0) dim += in.ndim;
    for (int d = 0; d < in.ndim; ++d) (d < dim ? outer : d == dim ? size : inner) *= in.sizes[d];
    if (size == 0 && index.numel > 0)
        fail(BackendStatus::Index, "an index is out of range for a dimension of size 0");
    if (out.numel == 0) return;
    use_device(args.context->call->device);
    const auto stream = static_cast<cudaStream_t>(args.context->call->stream);
    const int64_t* numbers = dense<int64_t>(args.context, index);
    const void* from = dense_bytes(args.context, in);
    by_size(out.dtype, [&]<class T>(T) {
        launch(&take_slices<T>, Grid{blocks_for(out.numel), kThreads}, stream, out.as<T>(),
               static_cast<const T*>(from), numbers, alarm_of(args.context), outer, index.numel, size, inner);
    });
}

/// Row b of the result is the sum of the rows table[index[k]] over all k with bags[k] = b. The entries of `bags` must
/// be in ascending order.
template <class T>
struct Bags {
    T* out;
    const T* table;
    const int64_t *index, *bags;
    int64_t n, count, rows, width, padding;
    double divisor;
    Alarm alarm;

    __device__ int64_t begin_of(int64_t bag) const {
        int64_t low = 0, high = n;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (bags[middle] < bag) low = middle + 1;
            else high = middle;
        }
        return low;
    }
};
template <class T>
__global__ void __launch_bounds__(kThreads) sum_bags(const Bags<T> b) {
    using C = Computed<T>;
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < b.count * b.width;
         i += step) {
        const int64_t bag = i / b.width, j = i % b.width;
        C sum = 0;
        bool empty = true;
        for (int64_t k = b.begin_of(bag); k < b.n && b.bags[k] == bag; ++k) {
            if (b.index[k] == b.padding) continue;
            const C x = static_cast<C>(b.table[b.alarm.checked(b.index[k], b.rows) * b.width + j]);
            sum = empty ? x : sum + x;
            empty = false;
        }
        b.out[i] = static_cast<T>(!empty && b.divisor != 1 ? sum / static_cast<C>(b.divisor) : sum);
    }
}
/// Raises the alarm if the index of a row or of a bag is out of range, or if the bags are not in ascending order.
template <class T>
__global__ void __launch_bounds__(kThreads) check_bags(const Bags<T> b) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < b.n; i += step) {
        b.alarm.checked(b.index[i], b.rows);
        b.alarm.checked(b.bags[i], b.count);
        if (i > 0 && b.bags[i] < b.bags[i - 1]) b.alarm.raise(Cause::UnsortedBags);
    }
}

struct EmbeddingBag {
    template <class T>
    static void run(const KernelArgs& args) {
        const View &out = args.out(0), &weight = args.in(0), &indices = args.in(1);
        const cudaStream_t stream = queue_of(args);
        if (weight.sizes[0] == 0 && indices.numel > 0)
            fail(BackendStatus::Index, "an index is out of range for a table of 0 rows");
        const Bags<T> bags{out.as<T>(),
                           dense<T>(args.context, weight),
                           dense<int64_t>(args.context, indices),
                           dense<int64_t>(args.context, args.in(2)),
                           indices.numel,
                           args.params[0].as_int(),
                           weight.sizes[0],
                           weight.sizes[1],
                           args.params[2].as_int(),
                           args.params[1].as_float(),
                           alarm_of(args.context)};
        if (indices.numel > 0)
            launch(&check_bags<T>, Grid{blocks_for(indices.numel), kThreads}, stream, bags);
        if (out.numel > 0) launch(&sum_bags<T>, Grid{blocks_for(out.numel), kThreads}, stream, bags);
    }
};

}  // namespace

BackendStatus index_select(const KernelArgs* args) {
    return guarded([args] { queue_slices(*args, args->in(0), args->in(1), args->params[0].as_int()); });
}

/// Selects the rows of a table.
BackendStatus embedding(const KernelArgs* args) {
    return guarded([args] { queue_slices(*args, args->in(0), args->in(1), 0); });
}

BackendStatus embedding_bag(const KernelArgs* args) {
    return by_floating_dtype<EmbeddingBag>(args, args->out(0).dtype);
}

}  // namespace rushlight::cuda
