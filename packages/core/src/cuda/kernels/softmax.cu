// Softmax, log-softmax and their gradients, along one dimension of row-major arrays.
#include "cuda/kernels.h"
#include "cuda/kernels/rows.cuh"

namespace rushlight::cuda {
namespace {

template <bool logarithm, class T, class Stored>
__global__ void __launch_bounds__(kThreads) softmax_rows(const Rows s, Stored* out, const Stored* in) {
    __shared__ Values<T> room;
    const uint32_t lane = threadIdx.x % s.lanes, at_once = kThreads / s.lanes;
    for (int64_t group = blockIdx.x; group * at_once < s.count; group += gridDim.x) {
        const int64_t row = group * at_once + threadIdx.x / s.lanes;
        const int64_t n = row < s.count ? s.size : 0, at = n ? s.first(row) : 0;
        const auto value = [&](int64_t i) { return static_cast<T>(in[at + i * s.inner]); };
        T top = -static_cast<T>(INFINITY), total = 0;
        for (int64_t i = lane; i < n; i += s.lanes) top = Larger()(top, value(i));
        top = over_lanes(room.x, lane, s.lanes, top, Larger());
        for (int64_t i = lane; i < n; i += s.lanes) total += std::exp(value(i) - top);
        total = over_lanes(room.x, lane, s.lanes, total, Plus());
        const T scale = logarithm ? std::log(total) : T(1) / total;
        for (int64_t i = lane; i < n; i += s.lanes)
            out[at + i * s.inner] =
                Stored(logarithm ? value(i) - top - scale : std::exp(value(i) - top) * scale);
    }
}

template <bool logarithm, class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    softmax_gradients(const Rows s, Stored* out, const Stored* grad, const Stored* result) {
    __shared__ Values<T> room;
    const uint32_t lane = threadIdx.x % s.lanes, at_once = kThreads / s.lanes;
    for (int64_t group = blockIdx.x; group * at_once < s.count; group += gridDim.x) {
        const int64_t row = group * at_once + threadIdx.x / s.lanes;
        const int64_t n = row < s.count ? s.size : 0, at = n ? s.first(row) : 0;
        T sum = 0;
        for (int64_t i = lane; i < n; i += s.lanes) {
            const T dy = static_cast<T>(grad[at + i * s.inner]);
            sum += logarithm ? dy : dy * static_cast<T>(result[at + i * s.inner]);
        }
        sum = over_lanes(room.x, lane, s.lanes, sum, Plus());
        for (int64_t i = lane; i < n; i += s.lanes) {
            const int64_t k = at + i * s.inner;
            const T dy = static_cast<T>(grad[k]), y = static_cast<T>(result[k]);
            out[k] = Stored(logarithm ? dy - std::exp(y) * sum : y * (dy - sum));
        }
    }
}

Rows rows_of(const View& v, int64_t dim) {
    int64_t outer = 1, size = 1, inner = 1;
    if (dim < 0) dim += v.ndim;
    for (int d = 0; d < v.ndim; ++d) (d < dim ? outer : d == dim ? size : inner) *= v.sizes[d];
    return {outer, size, inner};
}

template <bool logarithm, bool backward>
struct Softmax {
    template <class Stored>
    static void run(const KernelArgs& args) {
        using T = Computed<Stored>;
        const View& out = args.out(0);
        if (out.numel == 0) return;
        const Rows s = rows_of(out, args.params[0].as_int());
        const cudaStream_t stream = queue_of(args);
        if constexpr (backward)
            launch(&softmax_gradients<logarithm, T, Stored>, s.grid(), stream, s, out.as<Stored>(),
                   dense<Stored>(args.context, args.in(0)), dense<Stored>(args.context, args.in(1)));
        else
            launch(&softmax_rows<logarithm, T, Stored>, s.grid(), stream, s, out.as<Stored>(),
                   dense<Stored>(args.context, args.in(0)));
    }
};

}  // namespace

BackendStatus softmax(const KernelArgs* args) {
    return by_floating_dtype<Softmax<false, false>>(args, args->out(0).dtype);
}
BackendStatus log_softmax(const KernelArgs* args) {
    return by_floating_dtype<Softmax<true, false>>(args, args->out(0).dtype);
}
BackendStatus softmax_backward(const KernelArgs* args) {
    return by_floating_dtype<Softmax<false, true>>(args, args->out(0).dtype);
}
BackendStatus log_softmax_backward(const KernelArgs* args) {
    return by_floating_dtype<Softmax<true, true>>(args, args->out(0).dtype);
}

}  // namespace rushlight::cuda
