// Selection of elements by index tensors and by flat index. An index out of range raises an error when the host next waits
// (cuda/alarm.h). Until then, the first element is used instead.
#include "cuda/kernels.h"
#include "cuda/kernels/walk.cuh"

namespace rushlight::cuda {
namespace {

/// Copies the selected slices to the row-major out (before, n, after). `before` and `after` are the products of the
/// sizes before and after the indexed dimensions.
template <class T>
__global__ void __launch_bounds__(kThreads)
    read_chosen(const Chosen chosen, const Walk positions, const Walk inner, int64_t n, int64_t after,
                int64_t count, T* out, const T* in) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        const int64_t slice = i / after % n, element = i / after / n * after + i % after;
        const int64_t at = chosen.at(slice);
        out[i] = in[positions.offset(at == kNowhere ? 0 : at) + inner.offset(element)];
    }
}

/// Checks the indices even if no element is read.
__global__ void __launch_bounds__(kThreads) look_at_chosen(const Chosen chosen, int64_t n) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step)
        chosen.at(i);
}

void queue_reading(const KernelArgs& args, const Chosen& chosen, const Walk& positions, const Walk& inner,
                   int64_t n, int64_t after) {
    if (n == 0) return;
    for (int k = 0; k < chosen.count; ++k)
        if (chosen.of[k].size == 0)
            fail(BackendStatus::Index, "an index is out of range for a dimension of size 0");
    const View &out = args.out(0), &in = args.in(0);
    const cudaStream_t stream = queue_of(args);
    if (out.numel == 0) return launch(&look_at_chosen, Grid{blocks_for(n), kThreads}, stream, chosen, n);
    by_size(out.dtype, [&]<class T>(T) {
        launch(&read_chosen<T>, Grid{blocks_for(out.numel), kThreads}, stream, chosen, positions, inner, n,
               after, out.numel, out.as<T>(), in.as<const T>());
    });
}

}  // namespace

BackendStatus index(const KernelArgs* args) {
    return guarded([args] {
        queue_of(*args);
        const Indices indices(*args, args->in(0), &args->in(1), args->params[0].as_int());
        queue_reading(*args, indices.chosen, indices.positions, indices.inner, indices.n, indices.after);
    });
}

BackendStatus take(const KernelArgs* args) {
    return guarded([args] {
        queue_of(*args);
        const View &in = args->in(0), &numbers = args->in(1);
        Chosen chosen(*args);
        chosen.from_end = true;
        chosen.count = 1;
        chosen.of[0] = {dense<int64_t>(args->context, numbers), Walk(), in.numel, 1};
        chosen.of[0].walk.push(numbers.numel, 1);
        queue_reading(*args, chosen, Walk(in), Walk(), numbers.numel, 1);
    });
}

}  // namespace rushlight::cuda
