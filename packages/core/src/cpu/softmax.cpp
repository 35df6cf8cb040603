#include "cpu/softmax.h"

#include "cpu/contiguous.h"
#include "cpu/softmax_kernels.h"
#include "rushlight/error.h"

namespace rushlight::cpu {
namespace {

template <class T> const SoftmaxLoops<T>& loops();
template <> const SoftmaxLoops<float>& loops() { return softmax_kernels().f32; }
template <> const SoftmaxLoops<double>& loops() { return softmax_kernels().f64; }

template <class F>
void with_type(const char* op, DType dtype, F&& f) {
    if (dtype == DType::Float32) return f(float{});
    if (dtype == DType::Float64) return f(double{});
    throw_not_implemented("%s: no kernel for dtype %s on the CPU", op, name(dtype));
}

void forward(KernelContext& ctx, const char* op, bool logarithm, const View& out, const View& input,
             int64_t dim) {
    if (out.numel == 0) return;
    const WidenedOut wide(ctx, out);
    const View x = contiguous_in(ctx, widened(ctx, input));
    with_type(op, x.dtype, [&]<class T>(T) {
        const auto kernel = logarithm ? loops<T>().log_softmax : loops<T>().softmax;
        kernel(split_at(out, dim), wide.view().template as<T>(), x.as<T>());
    });
    wide.finish();
}

void backward(KernelContext& ctx, const char* op, bool logarithm, const View& grad_input,
              const View& grad_output, const View& output, int64_t dim) {
    if (grad_input.numel == 0) return;
    const WidenedOut wide(ctx, grad_input);
    const View dy = contiguous_in(ctx, widened(ctx, grad_output)),
               y = contiguous_in(ctx, widened(ctx, output));
    with_type(op, y.dtype, [&]<class T>(T) {
        const auto kernel = logarithm ? loops<T>().log_softmax_backward : loops<T>().softmax_backward;
        kernel(split_at(grad_input, dim), wide.view().template as<T>(), dy.as<T>(), y.as<T>());
    });
    wide.finish();
}

}  // namespace

void softmax(KernelContext& ctx, const View& out, const View& input, int64_t dim) {
    forward(ctx, "softmax", false, out, input, dim);
}

void log_softmax(KernelContext& ctx, const View& out, const View& input, int64_t dim) {
    forward(ctx, "log_softmax", true, out, input, dim);
}

void softmax_backward(KernelContext& ctx, const View& grad_input, const View& grad_output, const View& output,
                      int64_t dim) {
    backward(ctx, "softmax_backward", false, grad_input, grad_output, output, dim);
}

void log_softmax_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                          const View& output, int64_t dim) {
    backward(ctx, "log_softmax_backward", true, grad_input, grad_output, output, dim);
}

}  // namespace rushlight::cpu
