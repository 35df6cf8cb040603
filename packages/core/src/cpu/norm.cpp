#include "cpu/norm.h"

#include <cmath>
#include <cstring>

#include "cpu/contiguous.h"
#include "cpu/norm_kernels.h"
#include "cpu/streaming.h"
#include "rushlight/error.h"

namespace rushlight::cpu {
namespace {

template <class T> const BatchNormLoops<T>& batch_loops();
template <> const BatchNormLoops<float>& batch_loops() { return batch_norm_kernels().f32; }
template <> const BatchNormLoops<double>& batch_loops() { return batch_norm_kernels().f64; }
template <class T> const RowNormLoops<T>& row_loops();
template <> const RowNormLoops<float>& row_loops() { return row_norm_kernels().f32; }
template <> const RowNormLoops<double>& row_loops() { return row_norm_kernels().f64; }

template <class T> const GroupNormLoops<T>& channel_loops();
template <> const GroupNormLoops<float>& channel_loops() { return channel_group_norm_kernels().f32; }
template <> const GroupNormLoops<double>& channel_loops() { return channel_group_norm_kernels().f64; }

// The operands of one call, converted to the dtype of the computation: float64 for float64, otherwise float32.
// Inputs of another dtype are copied. Outputs of another dtype are computed in scratch memory and written by
// finish().
class Operands {
  public:
    Operands(KernelContext& ctx, const char* op, DType dtype) : ctx_(ctx), dtype_(compute_dtype(dtype)) {
        RL_CHECK(dtype_ == DType::Float32 || dtype_ == DType::Float64, throw_not_implemented,
                 "%s: no kernel for dtype %s on the CPU", op, name(dtype));
    }
    bool is_double() const { return dtype_ == DType::Float64; }

    template <class T>
    const T* in(const View& v) {
        return v.defined() ? contiguous_in(ctx_, v, dtype_).as<T>() : nullptr;
    }
    template <class T>
    T* out(const View& v) {
        return keep<T>(v, false);
    }
    /// Returns the address of the memory of an operand that is both read and written.
    template <class T>
    T* updated(const View& v) {
        return keep<T>(v, true);
    }

    void finish() const {
        for (int i = 0; i < count_; ++i) {
            if (narrow_[i].contiguous) {
                copy_to(narrow_[i], wide_[i]);
            } else {
                const View dense = scratch_like(ctx_, narrow_[i], narrow_[i].dtype);
                copy_to(dense, wide_[i]);
                place_elements(narrow_[i], dense);
            }
        }
    }

  private:
    /// Copies row-major elements into a tensor of any strides. Used for running statistics, which are tensors of the
    /// user and may therefore have any strides.
    static void place_elements(const View& out, const View& dense) {
        const auto size = static_cast<int64_t>(itemsize(out.dtype));
        for (int64_t i = 0; i < out.numel; ++i) {
            int64_t at = 0, rest = i;
            for (int d = out.ndim - 1; d >= 0; --d) {
                at += rest % out.sizes[d] * out.strides[d];
                rest /= out.sizes[d];
            }
            std::memcpy(out.as<char>() + at * size, dense.as<char>() + i * size, static_cast<size_t>(size));
        }
    }
    template <class T>
    T* keep(const View& v, bool read) {
        if (!v.defined()) return nullptr;
        if (v.dtype == dtype_ && v.contiguous) return v.as<T>();
        narrow_[count_] = v;
        wide_[count_] = read ? contiguous_in(ctx_, v, dtype_) : scratch_like(ctx_, v, dtype_);
        return wide_[count_++].as<T>();
    }

    KernelContext& ctx_;
    DType dtype_;
    View narrow_[5], wide_[5];
    int count_ = 0;
};

template <class F>
void with_type(const Operands& o, F&& f) {
    o.is_double() ? f(double{}) : f(float{});
}

int64_t product(Ints sizes) {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
}

constexpr View kNone{nullptr, nullptr, nullptr, 0, -1, DType::Float32, 0};

}  // namespace

void batch_norm(KernelContext& ctx, const View& out, const View& save_mean, const View& save_invstd,
                const View& input, const View& weight, const View& bias, const View& running_mean,
                const View& running_var, bool training, double momentum, double eps) {
    if (out.numel == 0) return;
    Operands o(ctx, "batch_norm", input.dtype);
    const bool last = is_channels_last(out);
    with_type(o, [&]<class T>(T) {
        BatchNorm<T> n;
        n.channels = input.size(1);
        n.batch = last ? input.numel / n.channels : input.size(0);
        n.size = input.numel / (n.batch * n.channels);
        n.input = o.in<T>(last ? channels_inside(ctx, input) : input);
        n.weight = o.in<T>(weight);
        n.bias = o.in<T>(bias);
        n.running_mean = training ? o.updated<T>(running_mean) : const_cast<T*>(o.in<T>(running_mean));
        n.running_var = training ? o.updated<T>(running_var) : const_cast<T*>(o.in<T>(running_var));
        n.training = training;
        n.momentum = static_cast<T>(momentum);
        n.eps = static_cast<T>(eps);
        n.stream = worth_streaming(input.numel * static_cast<int64_t>(sizeof(T)));
        n.out = o.out<T>(last ? channels_inside(ctx, out) : out);
        n.save_mean = o.out<T>(save_mean);
        n.save_invstd = o.out<T>(save_invstd);
        batch_loops<T>().batch_norm(ctx, n);
        if (training) return;
        for (int64_t c = 0; n.save_mean != nullptr && c < n.channels; ++c) n.save_mean[c] = n.running_mean[c];
        for (int64_t c = 0; n.save_invstd != nullptr && c < n.channels; ++c)
            n.save_invstd[c] = static_cast<T>(1 / std::sqrt(n.running_var[c] + eps));
    });
    o.finish();
}

void masked_batch_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                                const View& grad_bias, const View& grad_output, const View& activation,
                                const View& input, const View& weight, const View& save_mean,
                                const View& save_invstd, double low, double high, bool training) {
    if (input.numel == 0) {
        for (const View* v : {&grad_weight, &grad_bias}) clear(*v);
        return;
    }
    Operands o(ctx, "batch_norm_backward", input.dtype);
    const bool last = is_channels_last(grad_input.defined() ? grad_input : input);
    const auto laid_out = [&](const View& v) { return last ? channels_inside(ctx, v) : v; };
    with_type(o, [&]<class T>(T) {
        BatchNormBackward<T> n;
        n.channels = input.size(1);
        n.batch = last ? input.numel / n.channels : input.size(0);
        n.size = input.numel / (n.batch * n.channels);
        n.grad_output = o.in<T>(laid_out(grad_output));
        n.activation = o.in<T>(laid_out(activation));
        n.low = static_cast<T>(low);
        n.high = static_cast<T>(high);
        n.input = o.in<T>(laid_out(input));
        n.weight = o.in<T>(weight);
        n.training = training;
        n.stream = worth_streaming(input.numel * static_cast<int64_t>(sizeof(T)));
        n.mean = o.in<T>(save_mean);
        n.invstd = o.in<T>(save_invstd);
        n.grad_input = o.out<T>(laid_out(grad_input));
        n.grad_weight = o.out<T>(grad_weight);
        n.grad_bias = o.out<T>(grad_bias);
        batch_loops<T>().batch_norm_backward(ctx, n);
    });
    o.finish();
}

void batch_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                         const View& grad_bias, const View& grad_output, const View& input,
                         const View& weight, const View& save_mean, const View& save_invstd, bool training) {
    masked_batch_norm_backward(ctx, grad_input, grad_weight, grad_bias, grad_output, kNone, input, weight,
                               save_mean, save_invstd, 0, 0, training);
}

namespace {

void row_norm(KernelContext& ctx, const char* op, bool centered, const View& out, const View& mean,
              const View& rstd, const View& input, const View& weight, const View& bias,
              Ints normalized_shape, double eps) {
    if (out.numel == 0) return;
    Operands o(ctx, op, input.dtype);
    with_type(o, [&]<class T>(T) {
        const int64_t size = product(normalized_shape);
        row_loops<T>().row_norm({input.numel / size, size, centered, o.in<T>(input), o.in<T>(weight),
                                 o.in<T>(bias), static_cast<T>(eps), o.out<T>(out), o.out<T>(mean),
                                 o.out<T>(rstd)});
    });
    o.finish();
}

void row_norm_backward(KernelContext& ctx, const char* op, bool centered, const View& grad_input,
                       const View& grad_weight, const View& grad_bias, const View& grad_output,
                       const View& input, const View& mean, const View& rstd, const View& weight,
                       Ints normalized_shape) {
    if (input.numel == 0) {
        for (const View* v : {&grad_weight, &grad_bias}) clear(*v);
        return;
    }
    Operands o(ctx, op, input.dtype);
    with_type(o, [&]<class T>(T) {
        const int64_t size = product(normalized_shape);
        row_loops<T>().row_norm_backward(
            ctx, {input.numel / size, size, centered, o.in<T>(grad_output), o.in<T>(input), o.in<T>(mean),
                  o.in<T>(rstd), o.in<T>(weight), o.out<T>(grad_input), o.out<T>(grad_weight),
                  o.out<T>(grad_bias)});
    });
    o.finish();
}

}  // namespace

void layer_norm(KernelContext& ctx, const View& out, const View& mean, const View& rstd, const View& input,
                const View& weight, const View& bias, Ints normalized_shape, double eps) {
    row_norm(ctx, "layer_norm", true, out, mean, rstd, input, weight, bias, normalized_shape, eps);
}

void layer_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                         const View& grad_bias, const View& grad_output, const View& input, const View& mean,
                         const View& rstd, const View& weight, Ints normalized_shape) {
    row_norm_backward(ctx, "layer_norm_backward", true, grad_input, grad_weight, grad_bias, grad_output,
                      input, mean, rstd, weight, normalized_shape);
}

void rms_norm(KernelContext& ctx, const View& out, const View& rstd, const View& input, const View& weight,
              Ints normalized_shape, double eps) {
    row_norm(ctx, "rms_norm", false, out, kNone, rstd, input, weight, kNone, normalized_shape, eps);
}

void rms_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                       const View& grad_output, const View& input, const View& rstd, const View& weight,
                       Ints normalized_shape) {
    row_norm_backward(ctx, "rms_norm_backward", false, grad_input, grad_weight, kNone, grad_output, input,
                      kNone, rstd, weight, normalized_shape);
}

void group_norm(KernelContext& ctx, const View& out, const View& mean, const View& rstd, const View& input,
                const View& weight, const View& bias, int64_t num_groups, double eps) {
    if (out.numel == 0) return;
    const bool last = is_channels_last(out);
    Operands o(ctx, "group_norm", input.dtype);
    with_type(o, [&]<class T>(T) {
        const int64_t batch = input.size(0), channels = input.size(1);
        const GroupNorm<T> n{batch,
                             num_groups,
                             channels / num_groups,
                             input.numel / (batch * channels),
                             o.in<T>(last ? channels_inside(ctx, input) : input),
                             o.in<T>(weight),
                             o.in<T>(bias),
                             static_cast<T>(eps),
                             o.out<T>(last ? channels_inside(ctx, out) : out),
                             o.out<T>(mean),
                             o.out<T>(rstd)};
        last ? channel_loops<T>().group_norm(ctx, n) : row_loops<T>().group_norm(n);
    });
    o.finish();
}

void group_norm_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                         const View& grad_bias, const View& grad_output, const View& input, const View& mean,
                         const View& rstd, const View& weight, int64_t num_groups) {
    if (input.numel == 0) {
        for (const View* v : {&grad_weight, &grad_bias}) clear(*v);
        return;
    }
    const bool last = is_channels_last(grad_input.defined() ? grad_input : input);
    const auto laid_out = [&](const View& v) { return last ? channels_inside(ctx, v) : v; };
    Operands o(ctx, "group_norm_backward", input.dtype);
    with_type(o, [&]<class T>(T) {
        const int64_t batch = input.size(0), channels = input.size(1);
        const GroupNormBackward<T> n{batch,
                                     num_groups,
                                     channels / num_groups,
                                     input.numel / (batch * channels),
                                     o.in<T>(laid_out(grad_output)),
                                     o.in<T>(laid_out(input)),
                                     o.in<T>(mean),
                                     o.in<T>(rstd),
                                     o.in<T>(weight),
                                     o.out<T>(laid_out(grad_input)),
                                     o.out<T>(grad_weight),
                                     o.out<T>(grad_bias)};
        last ? channel_loops<T>().group_norm_backward(ctx, n) : row_loops<T>().group_norm_backward(ctx, n);
    });
    o.finish();
}

}  // namespace rushlight::cpu
