// Copies with conversion, and the elements of new tensors. Their results are defined in cpu/creation.h.
#include "cuda/kernels.h"
#include "cuda/kernels/pointwise_loop.cuh"
#include "cuda/pointwise.h"
#include "cuda/queue.h"
#include "ops/cell.h"

namespace rushlight::cuda {
namespace {

template <class T>
struct Identity {
    explicit Identity(const Scalar*) {}
    RL_HD T operator()(T x) const { return x; }
};

using Everything = Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, Half,
                         BFloat16, float, double, Complex<float>, Complex<double>, Float8E4M3FN, Float8E5M2,
                         Float8E4M3FNUZ, Float8E5M2FNUZ, Float8E8M0FNU>;
constexpr LoopTable kCopies = loops<Identity>(Everything{});
constexpr Pointwise kCopy{"copy", &kCopies, 1, 0, 0, Pointwise::Result::Compute};

// --- Elements computed from numbers ---------------------------------------------------------------

/// A view with one dimension. The stride is in bytes.
struct Strided {
    char* data;
    DType dtype;
    int64_t stride, n;

    explicit Strided(const View& v)
        : data(v.as<char>()),
          dtype(v.dtype),
          stride(v.stride(0) * static_cast<int64_t>(itemsize(v.dtype))),
          n(v.numel) {}
};

template <class F>
__global__ void __launch_bounds__(kThreads) by_number(const F f, const Strided out) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < out.n; i += step)
        write(out.data + i * out.stride, out.dtype, f(i));
}

template <class F>
void queue_by_number(const KernelArgs& args, const F& f) {
    const Strided out(args.out(0));
    if (out.n) launch(&by_number<F>, Grid{blocks_for(out.n), kThreads}, queue_of(args), f, out);
}

struct IntegerRange {
    uint64_t start, step;
    __device__ int64_t operator()(int64_t i) const {
        return static_cast<int64_t>(start + static_cast<uint64_t>(i) * step);
    }
};
struct FloatRange {
    double start, step;
    __device__ double operator()(int64_t i) const { return start + static_cast<double>(i) * step; }
};

/// Computes numbers in equal steps. The numbers of the first half are computed from the first number, and those of the
/// second half from the last number.
template <class T>
struct EqualSteps {
    T first, last, by;
    int64_t count;

    EqualSteps(T a, T b, int64_t n)
        : first(a), last(b), by(n > 1 ? (b - a) / T(static_cast<double>(n - 1)) : T(0)), count(n) {}
    __device__ T operator()(int64_t i) const {
        return i < count / 2 || count == 1 ? first + by * T(static_cast<double>(i))
                                           : last - by * T(static_cast<double>(count - 1 - i));
    }
};

}  // namespace

void queue_copy(const View& out, const View& in, KernelContext* context) {
    const View views[] = {out, in};
    queue_pointwise(kCopy, {sizeof(KernelArgs), 1, 1, 0, out.dtype, kNoDType, views, nullptr, context},
                    out.dtype);
}

void queue_fill(const View& out, const Param& value, const KernelArgs& args) {
    // The number replaces the input.
    const View views[] = {out, View{nullptr, nullptr, nullptr, 0, -1, out.dtype, 0}};
    KernelArgs given = args;
    given.num_inputs = 1;
    given.num_params = 1;
    given.tensors = views;
    given.params = &value;
    queue_pointwise(kCopy, given, out.dtype);
}

BackendStatus copy_kernel(const KernelArgs* args) {
    return guarded([args] { queue_copy(args->out(0), args->in(0), args->context); });
}

BackendStatus fill_kernel(const KernelArgs* args) {
    return guarded([args] { queue_fill(args->out(0), args->params[0], *args); });
}

BackendStatus range_kernel(const KernelArgs* args) {
    return guarded([args] {
        const Scalar start = to_scalar(args->params[0]), step = to_scalar(args->params[1]);
        if (start.is_integral() && step.is_integral())
            return queue_by_number(*args, IntegerRange{static_cast<uint64_t>(start.to<int64_t>()),
                                                       static_cast<uint64_t>(step.to<int64_t>())});
        queue_by_number(*args, FloatRange{start.to<double>(), step.to<double>()});
    });
}

BackendStatus steps_kernel(const KernelArgs* args) {
    return guarded([args] {
        const Scalar first = to_scalar(args->params[0]), last = to_scalar(args->params[1]);
        const int64_t n = args->out(0).numel;
        if (first.is_complex() || last.is_complex())
            return queue_by_number(*args,
                                   EqualSteps(first.to<Complex<double>>(), last.to<Complex<double>>(), n));
        queue_by_number(*args, EqualSteps(first.to<double>(), last.to<double>(), n));
    });
}

BackendStatus eye_kernel(const KernelArgs* args) {
    return guarded([args] {
        const View& out = args->out(0);
        const auto number = [](int64_t i) { return Param{Param::Kind::Int, 0, {i}}; };
        queue_fill(out, number(0), *args);
        const int64_t size[] = {out.sizes[0] < out.sizes[1] ? out.sizes[0] : out.sizes[1]};
        const int64_t stride[] = {out.strides[0] + out.strides[1]};
        queue_fill(View{out.data, size, stride, size[0], 1, out.dtype, stride[0] == 1}, number(1), *args);
    });
}

}  // namespace rushlight::cuda
