#include "cpu/loss.h"

#include <limits>

#include "cpu/contiguous.h"
#include "cpu/loss_kernels.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

enum Reduction : int64_t { kNone, kMean, kSum };

template <class T> const LossLoops<T>& loops();
template <> const LossLoops<float>& loops() { return loss_kernels().f32; }
template <> const LossLoops<double>& loops() { return loss_kernels().f64; }

template <class F>
void with_type(const char* op, DType dtype, F&& f) {
    if (dtype == DType::Float32) return f(float{});
    if (dtype == DType::Float64) return f(double{});
    throw_not_implemented("%s: no kernel for dtype %s on the CPU", op, name(dtype));
}

// The shape of an input (batch, classes, ...) or (classes), viewed as (batch, classes, inner).
struct Shape {
    int64_t batch, classes, inner;
    explicit Shape(const View& input) {
        batch = input.ndim == 1 ? 1 : input.size(0);
        classes = input.ndim == 1 ? input.size(0) : input.size(1);
        // This is not numel / (batch * classes): even if there are no classes, the targets must be checked.
        inner = 1;
        for (int d = 2; d < input.ndim; ++d) inner *= input.size(d);
    }
    int64_t positions() const { return batch * inner; }
};

void check_targets(const char* op, const int64_t* target, int64_t count, int64_t classes,
                   int64_t ignore_index) {
    for (int64_t i = 0; i < count; ++i) {
        const int64_t t = target[i];
        RL_CHECK((t >= 0 && t < classes) || t == ignore_index, throw_index,
                 "%s(input, target): target %lld at position %lld is out of range for %lld classes", op,
                 static_cast<long long>(t), static_cast<long long>(i), static_cast<long long>(classes));
    }
}

// Sums the terms in double, in chunks of fixed size and in order, so that the sum is the same for any number of
// threads.
template <class F>
double ordered_sum(KernelContext& ctx, int64_t count, F&& term) {
    constexpr int64_t kChunk = 4096;
    const int64_t chunks = (count + kChunk - 1) / kChunk;
    double* sums = scratch<double>(ctx, chunks);
    parallel_for(0, chunks, 4, [&](int64_t first, int64_t last) {
        for (int64_t c = first; c < last; ++c) {
            sums[c] = 0;
            for (int64_t i = c * kChunk; i < count && i < (c + 1) * kChunk; ++i) sums[c] += term(i);
        }
    });
    double total = 0;
    for (int64_t c = 0; c < chunks; ++c) total += sums[c];
    return total;
}

template <class T>
double sum_of_weights(KernelContext& ctx, const int64_t* target, int64_t count, const T* weight,
                      int64_t ignore_index) {
    return ordered_sum(ctx, count, [&](int64_t i) {
        return target[i] == ignore_index ? 0.0
               : weight == nullptr       ? 1.0
                                         : static_cast<double>(weight[target[i]]);
    });
}

// Reduces the losses of all positions to the output.
template <class T>
void reduce(KernelContext& ctx, T* out, const T* losses, int64_t count, int64_t reduction,
            double total_weight) {
    if (reduction == kNone) return;  // the losses were written to out
    const double total = ordered_sum(ctx, count, [&](int64_t i) { return static_cast<double>(losses[i]); });
    *out = static_cast<T>(reduction == kMean ? total / total_weight : total);
}

// Returns the gradient of each position's loss.
template <class T>
const T* spread_gradient(KernelContext& ctx, const T* grad_output, int64_t count, int64_t reduction,
                         const T* total_weight) {
    if (reduction == kNone) return grad_output;
    const T share = reduction == kMean ? *grad_output / *total_weight : *grad_output;
    T* spread = scratch<T>(ctx, count);
    for (int64_t i = 0; i < count; ++i) spread[i] = share;
    return spread;
}

template <class T>
const T* pointer(const View& v) {
    return v.defined() ? v.as<T>() : nullptr;
}

}  // namespace

void nll_loss(KernelContext& ctx, const View& out, const View& total_weight, const View& input,
              const View& target, const View& weight, int64_t reduction, int64_t ignore_index) {
    const Shape s(input);
    const WidenedOut wide(ctx, out), wide_total(ctx, total_weight);
    const View x = contiguous_in(ctx, widened(ctx, input)), w = contiguous_in(ctx, widened(ctx, weight));
    const View t = contiguous_in(ctx, target);
    const int64_t* classes = t.as<int64_t>();
    check_targets("nll_loss", classes, s.positions(), s.classes, ignore_index);
    with_type("nll_loss", x.dtype, [&]<class T>(T) {
        const T* in = x.as<T>();
        const T* weights = pointer<T>(w);
        T* result = wide.view().template as<T>();
        T* losses = reduction == kNone ? result : scratch<T>(ctx, s.positions());
        for (int64_t i = 0; i < s.positions(); ++i) {
            const int64_t c = classes[i];
            if (c == ignore_index) {
                losses[i] = T(0);
            } else {
                const T p = in[i / s.inner * s.classes * s.inner + c * s.inner + i % s.inner];
                losses[i] = weights == nullptr ? -p : -p * weights[c];
            }
        }
        const double total = sum_of_weights(ctx, classes, s.positions(), weights, ignore_index);
        if (total_weight.defined()) *wide_total.view().template as<T>() = static_cast<T>(total);
        reduce(ctx, result, losses, s.positions(), reduction, total);
    });
    wide.finish();
    wide_total.finish();
}

void nll_loss_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                       const View& target, const View& weight, const View& total_weight, int64_t reduction,
                       int64_t ignore_index) {
    const Shape s(grad_input);
    const WidenedOut wide(ctx, grad_input);
    const View dy = contiguous_in(ctx, widened(ctx, grad_output)),
               w = contiguous_in(ctx, widened(ctx, weight));
    const View t = contiguous_in(ctx, target), total = widened(ctx, total_weight);
    const int64_t* classes = t.as<int64_t>();
    check_targets("nll_loss_backward", classes, s.positions(), s.classes, ignore_index);
    with_type("nll_loss_backward", dy.dtype, [&]<class T>(T) {
        const T* weights = pointer<T>(w);
        T* dx = wide.view().template as<T>();
        if (grad_input.numel) __builtin_memset(dx, 0, sizeof(T) * static_cast<size_t>(grad_input.numel));
        const T* grad = spread_gradient(ctx, dy.as<T>(), s.positions(), reduction, pointer<T>(total));
        for (int64_t i = 0; i < s.positions(); ++i) {
            const int64_t c = classes[i];
            if (c == ignore_index) continue;
            dx[i / s.inner * s.classes * s.inner + c * s.inner + i % s.inner] =
                weights == nullptr ? -grad[i] : -grad[i] * weights[c];
        }
    });
    wide.finish();
}

void cross_entropy(KernelContext& ctx, const View& out, const View& log_sum, const View& total_weight,
                   const View& input, const View& target, const View& weight, int64_t reduction,
                   int64_t ignore_index, double label_smoothing) {
    const Shape s(input);
    const WidenedOut wide(ctx, out), wide_sums(ctx, log_sum), wide_total(ctx, total_weight);
    const View x = contiguous_in(ctx, widened(ctx, input)), w = contiguous_in(ctx, widened(ctx, weight));
    const View t = contiguous_in(ctx, target);
    const int64_t* classes = t.as<int64_t>();
    check_targets("cross_entropy", classes, s.positions(), s.classes, ignore_index);
    with_type("cross_entropy", x.dtype, [&]<class T>(T) {
        const CrossEntropy<T> c{s.batch, s.classes,     s.inner,      x.as<T>(),
                                classes, pointer<T>(w), ignore_index, static_cast<T>(label_smoothing)};
        T* sums = log_sum.defined() ? wide_sums.view().template as<T>() : scratch<T>(ctx, s.positions());
        T* result = wide.view().template as<T>();
        T* losses = reduction == kNone ? result : scratch<T>(ctx, s.positions());
        if (s.classes == 0) {  // all targets are ignore_index
            for (int64_t i = 0; i < s.positions(); ++i) {
                sums[i] = -std::numeric_limits<T>::infinity();
                losses[i] = T(0);
            }
        } else {
            loops<T>().log_sums(c, sums);
            loops<T>().cross_entropy(c, losses, sums);
        }
        const double total = sum_of_weights(ctx, classes, s.positions(), c.weight, ignore_index);
        if (total_weight.defined()) *wide_total.view().template as<T>() = static_cast<T>(total);
        reduce(ctx, result, losses, s.positions(), reduction, total);
    });
    wide.finish();
    wide_sums.finish();
    wide_total.finish();
}

void cross_entropy_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                            const View& input, const View& target, const View& weight, const View& log_sum,
                            const View& total_weight, int64_t reduction, int64_t ignore_index,
                            double label_smoothing) {
    const Shape s(input);
    if (grad_input.numel == 0) return;
    const WidenedOut wide(ctx, grad_input);
    const View x = contiguous_in(ctx, widened(ctx, input)), w = contiguous_in(ctx, widened(ctx, weight));
    const View dy = contiguous_in(ctx, widened(ctx, grad_output)),
               sums = contiguous_in(ctx, widened(ctx, log_sum));
    const View t = contiguous_in(ctx, target), total = widened(ctx, total_weight);
    const int64_t* classes = t.as<int64_t>();
    check_targets("cross_entropy_backward", classes, s.positions(), s.classes, ignore_index);
    with_type("cross_entropy_backward", x.dtype, [&]<class T>(T) {
        const CrossEntropy<T> c{s.batch, s.classes,     s.inner,      x.as<T>(),
                                classes, pointer<T>(w), ignore_index, static_cast<T>(label_smoothing)};
        const T* grad = spread_gradient(ctx, dy.as<T>(), s.positions(), reduction, pointer<T>(total));
        loops<T>().cross_entropy_backward(c, wide.view().template as<T>(), grad, sums.as<T>());
    });
    wide.finish();
}

}  // namespace rushlight::cpu
