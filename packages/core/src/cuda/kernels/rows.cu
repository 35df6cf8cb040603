// Slices, rows and elements by index. An index out of range is found when the host next waits: cuda/alarm.h. Until then the first
// element stands for it.
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/bytes.cuh"

namespace rushlight::cuda {
namespace {

/// out (outer, n, inner) = in (outer, size, inner) at the places that an index of `n` names.
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
        fail(BackendStatus::Index, "an index is out of range of a dimension of size 0");
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

}  // namespace

BackendStatus index_select(const KernelArgs* args) {
    return guarded([args] { queue_slices(*args, args->in(0), args->in(1), args->params[0].as_int()); });
}

/// The rows of a table.
BackendStatus embedding(const KernelArgs* args) {
    return guarded([args] { queue_slices(*args, args->in(0), args->in(1), 0); });
}

}  // namespace rushlight::cuda
