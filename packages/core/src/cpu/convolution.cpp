#include "cpu/convolution.h"

#include <algorithm>

#include "cpu/capability.h"
#include "cpu/contiguous.h"
#include "cpu/convolution_kernels.h"
#include "cpu/gemm.h"
#include "cpu/integers.h"
#include "cpu/kernels_in_use.h"
#include "cpu/onednn/convolution.h"
#include "rushlight/error.h"

namespace rushlight::cpu {
namespace {

int64_t entry(Ints list, int64_t d) { return list[list.size == 1 ? 0 : d]; }

// `in` and `out` are the input and output of the underlying cross-correlation. For a transposed convolution, `in`
// is the convolution's output, and `out` its input.
ConvolutionGeometry geometry(const View& in, const View& weight, const View& out, Ints stride, Ints padding,
                             Ints dilation, int64_t groups) {
    ConvolutionGeometry g;
    g.dims = in.ndim - 2;
    RL_CHECK(g.dims >= 1 && g.dims <= 3, throw_value, "convolution: input has %d dimensions, needs 3 to 5",
             in.ndim);
    g.batch = in.size(0);
    g.in_channels = in.size(1);
    g.out_channels = out.size(1);
    g.groups = groups;
    for (int64_t d = 0; d < 3; ++d) {
        const int64_t i = d - (3 - g.dims);  // index of the spatial dimension
        g.in[d] = i < 0 ? 1 : in.sizes[2 + i];
        g.out[d] = i < 0 ? 1 : out.sizes[2 + i];
        g.kernel[d] = i < 0 ? 1 : weight.sizes[2 + i];
        g.stride[d] = i < 0 ? 1 : entry(stride, i);
        g.padding[d] = i < 0 ? 0 : entry(padding, i);
        g.dilation[d] = i < 0 ? 1 : entry(dilation, i);
    }
    // The buffers of depthwise kernels grow with the stride, which has no effect on a single position.
    for (int64_t d = 1; d < 3; ++d) {
        if (g.is_depthwise() && g.out[d] == 1) g.stride[d] = 1;
    }
    return g;
}

// Below this number of multiply-adds, loading the vendor library (oneDNN) and compiling a kernel would take more time
// than the kernel saves.
constexpr int64_t kSmall = 1 << 14;
// Below this size of the output map, the vendor's forward kernels are faster for convolutions of a single input channel
// with many filters.
constexpr int64_t kSmallMap = 24 * 24;

bool use_vendor(const ConvolutionGeometry& g, DType dtype) {
    if (g.multiply_adds() < kSmall) return false;
    // Without AMX, the vendor's kernels for bfloat16 may be slower than a conversion to float32.
    if (dtype == DType::BFloat16) return !g.is_depthwise() && gemm_kernels().has_tiles();
    if (dtype != DType::Float32) return false;
    if (g.is_depthwise()) return g.in_channels == 1 && g.out_size() < kSmallMap;
    return !g.is_pointwise();  // otherwise it is computed as a matrix product
}

// Whether a 1x1 convolution is computed as a matrix product whose rows are pixels. This is so if the map to be written is
// channels-last, or if the map to be read is channels-last and the other map can be written in this layout.
bool use_pixels(KernelContext& ctx, const ConvolutionGeometry& g, const View& written, const View& read) {
    if (!g.is_pointwise() || g.is_depthwise()) return false;
    return is_channels_last(written) || (is_channels_last(read) && channels_inside(ctx, written).contiguous);
}

// Minimal filtering (Winograd) saves three quarters of the multiplications, but needs transforms. With few channels
// or few tiles, the transforms take longer than the multiplications that they save, and the parts of tiles outside
// the map are computed but not used. With AVX-512, the vendor's implementation is a little faster, so it is
// preferred if it is available.
bool use_winograd(const ConvolutionGeometry& g, DType dtype) {
    if (dtype != DType::Float32 || g.dims != 2 || g.groups != 1 || !winograd()) return false;
    for (int d = 1; d < 3; ++d) {
        if (g.kernel[d] != 3 || g.stride[d] != 1 || g.dilation[d] != 1 || g.padding[d] > 2) return false;
    }
    if (capability() == Capability::AVX512 && onednn_in_use()) return false;
    const int64_t tiles = ((g.out[1] + 3) / 4) * ((g.out[2] + 3) / 4);
    return g.in_channels >= 16 && g.out_channels >= 16 && g.batch * tiles >= 24 && 10 * tiles <= g.out_size();
}

// The maximum number of pixels from the input row under the first row of a filter to the input row under its last row. With
// more, the buffers of a strip would not fit into the caches.
constexpr int64_t kReach = 1 << 14;

// Whether a depthwise convolution is computed with one channel in each lane of a vector. With too few channels to fill the
// lanes, or with filters that span too many pixels, it is computed plane by plane.
bool use_depthwise(const ConvolutionGeometry& g, DType dtype) {
    const size_t lanes = (capability() == Capability::AVX512 ? 64 : 32) / itemsize(dtype);
    return g.is_depthwise() && 4 * static_cast<size_t>(g.in_channels) >= 3 * lanes &&
           (g.kernel[1] - 1) * g.dilation[1] * (g.in[2] + 2 * g.padding[2]) <= kReach;
}

onednn::ConvolutionOperand operand(KernelContext& ctx, const View& v) {
    if (!v.defined()) return {nullptr, false};
    if (is_channels_last(v)) return {v.data, true};
    return {contiguous_in(ctx, v).data, false};
}

template <class T> const PlainConvolution<T>& plain();
template <> const PlainConvolution<float>& plain() { return convolution_kernels().f32; }
template <> const PlainConvolution<double>& plain() { return convolution_kernels().f64; }

// Returns the kernels for a geometry. Only float32 has kernels for minimal filtering.
template <class T> const ConvolutionWays<T>& ways(const ConvolutionGeometry& g, bool minimal);
template <> const ConvolutionWays<float>& ways(const ConvolutionGeometry& g, bool minimal) {
    return minimal            ? winograd_kernels().f32
           : g.is_depthwise() ? flat_kernels().f32
           : g.is_pointwise() ? pointwise_kernels().f32
                              : plain<float>().ways;
}
template <> const ConvolutionWays<double>& ways(const ConvolutionGeometry& g, bool) {
    return g.is_depthwise()   ? flat_kernels().f64
           : g.is_pointwise() ? pointwise_kernels().f64
                              : plain<double>().ways;
}

template <class T> const ConvolutionWays<T>& ways_of_pixels();
template <> const ConvolutionWays<float>& ways_of_pixels() { return channel_pointwise_kernels().f32; }
template <> const ConvolutionWays<double>& ways_of_pixels() { return channel_pointwise_kernels().f64; }

// Returns the elements of a map in the channels-last order.
View pixels_in(KernelContext& ctx, const View& map) { return contiguous_in(ctx, channels_inside(ctx, map)); }

// Calls f with a value of the element type.
template <class F>
void with_type(DType dtype, F&& f) {
    if (dtype == DType::Float32) return f(float{});
    if (dtype == DType::Float64) return f(double{});
    throw_not_implemented("convolution: no kernel for dtype %s on the CPU", name(dtype));
}

View absent(DType dtype) { return {nullptr, nullptr, nullptr, 0, -1, dtype, 0}; }

template <class T> const DepthwiseWays<T>& depthwise();
template <> const DepthwiseWays<float>& depthwise() { return depthwise_kernels().f32; }
template <> const DepthwiseWays<double>& depthwise() { return depthwise_kernels().f64; }

// Returns v as an operand of a depthwise convolution. It is copied if it is neither row-major nor channels-last.
template <class T>
DepthwiseMap<T> map(KernelContext& ctx, const View& v) {
    if (!v.defined()) return {nullptr, false};
    const bool channels_last = is_channels_last(v);
    return {(channels_last ? v : contiguous_in(ctx, v)).template as<std::remove_const_t<T>>(), channels_last};
}

void depthwise_forward(KernelContext& ctx, const ConvolutionGeometry& g, const View& out, const View& in,
                       const View& weight, const View& bias) {
    const View w = contiguous_in(ctx, weight), b = contiguous_in(ctx, bias);
    with_type(out.dtype, [&]<class T>(T) {
        depthwise<T>().forward(ctx, g, map<const T>(ctx, in), w.as<T>(), bias.defined() ? b.as<T>() : nullptr,
                               map<T>(ctx, out));
    });
}

// The kernels of depthwise convolutions also multiply gradients by the zeros of the padding. If such a gradient is infinite
// or NaN, the result for the tap is NaN, although padding should not contribute. This function recomputes the gradients of
// taps that are not finite, without the padding.
template <class T>
void recompute_taps(const ConvolutionGeometry& g, T* grad_weight, const View& in, const View& grad_out) {
    const auto strides = [&](const View& v, int64_t* of) {
        of[0] = v.stride(0), of[1] = v.stride(1), of[2] = g.dims > 1 ? v.stride(-2) : 0, of[3] = v.stride(-1);
    };
    int64_t x_strides[4], dy_strides[4];
    strides(in, x_strides), strides(grad_out, dy_strides);
    const int64_t taps = g.kernel[1] * g.kernel[2], multiplier = g.out_channels / g.in_channels;
    for (int64_t k = 0; k < g.out_channels * taps; ++k) {
        if (grad_weight[k] - grad_weight[k] == T(0)) continue;
        const int64_t o = k / taps, y0 = k % taps / g.kernel[2] * g.dilation[1] - g.padding[1],
                      x0 = k % g.kernel[2] * g.dilation[2] - g.padding[2];
        double sum = 0;
        // Once a sum is NaN, it stays NaN, so the loop ends. This saves time if all gradients are NaN.
        for (int64_t row = 0; row < g.batch * g.out[1] && sum == sum; ++row) {
            const int64_t n = row / g.out[1], i = row % g.out[1], y = i * g.stride[1] + y0;
            if (y < 0 || y >= g.in[1]) continue;
            const T* x = in.as<T>() + n * x_strides[0] + o / multiplier * x_strides[1] + y * x_strides[2];
            const T* dy = grad_out.as<T>() + n * dy_strides[0] + o * dy_strides[1] + i * dy_strides[2];
            for (int64_t j = 0; j < g.out[2]; ++j) {
                const int64_t column = j * g.stride[2] + x0;
                if (column < 0 || column >= g.in[2]) continue;
                sum += static_cast<double>(dy[j * dy_strides[3]]) *
                       static_cast<double>(x[column * x_strides[3]]);
            }
        }
        grad_weight[k] = static_cast<T>(sum);
    }
}

// Either gradient may be undefined.
void depthwise_backward(KernelContext& ctx, const ConvolutionGeometry& g, const View& grad_in,
                        const View& grad_weight, const View& in, const View& weight, const View& grad_out) {
    const View w = contiguous_in(ctx, weight);
    with_type(grad_out.dtype, [&]<class T>(T) {
        depthwise<T>().backward(ctx, g, map<T>(ctx, grad_in),
                                grad_weight.defined() ? grad_weight.as<T>() : nullptr, map<const T>(ctx, in),
                                w.as<T>(), map<const T>(ctx, grad_out));
        if (grad_weight.defined()) recompute_taps(g, grad_weight.as<T>(), in, grad_out);
    });
}

// These functions return false and write nothing if the vendor's kernels are not used.
bool vendor_forward(KernelContext& ctx, const ConvolutionGeometry& g, const View& out, const View& in,
                    const View& weight, const View& bias) {
    return use_vendor(g, out.dtype) &&
           onednn::convolution_forward(ctx, g, out.dtype, operand(ctx, in), operand(ctx, weight),
                                       operand(ctx, bias), operand(ctx, out));
}
bool vendor_backward_data(KernelContext& ctx, const ConvolutionGeometry& g, const View& grad_in,
                          const View& weight, const View& grad_out) {
    return use_vendor(g, grad_in.dtype) &&
           onednn::convolution_backward_data(ctx, g, grad_in.dtype, operand(ctx, grad_in),
                                             operand(ctx, weight), operand(ctx, grad_out));
}
bool vendor_backward_weights(KernelContext& ctx, const ConvolutionGeometry& g, const View& grad_weight,
                             const View& in, const View& grad_out) {
    // oneDNN's kernels for bfloat16 do not write the gradients of taps that read only padding.
    return use_vendor(g, grad_weight.dtype) &&
           (grad_weight.dtype != DType::BFloat16 || g.every_tap_reads_input()) &&
           onednn::convolution_backward_weights(ctx, g, grad_weight.dtype, operand(ctx, grad_weight),
                                                operand(ctx, in), operand(ctx, grad_out));
}

// Computes the gradients that are defined. If this function returns false, it may have written some of them.
bool vendor_backward(KernelContext& ctx, const ConvolutionGeometry& g, const View& grad_in,
                     const View& grad_weight, const View& grad_out, const View& in, const View& weight,
                     bool transposed) {
    if (transposed) {
        const View none = absent(grad_out.dtype);
        return (!grad_in.defined() || vendor_forward(ctx, g, grad_in, grad_out, weight, none)) &&
               (!grad_weight.defined() || vendor_backward_weights(ctx, g, grad_weight, grad_out, in));
    }
    return (!grad_in.defined() || vendor_backward_data(ctx, g, grad_in, weight, grad_out)) &&
           (!grad_weight.defined() || vendor_backward_weights(ctx, g, grad_weight, in, grad_out));
}

void forward(KernelContext& ctx, const ConvolutionGeometry& g, const View& out, const View& in,
             const View& weight, const View& bias) {
    if (use_depthwise(g, out.dtype)) return depthwise_forward(ctx, g, out, in, weight, bias);
    if (use_pixels(ctx, g, out, in)) {
        const View x = pixels_in(ctx, in), w = contiguous_in(ctx, weight), b = contiguous_in(ctx, bias);
        return with_type(out.dtype, [&]<class T>(T) {
            ways_of_pixels<T>().forward(ctx, g, x.as<T>(), w.as<T>(), bias.defined() ? b.as<T>() : nullptr,
                                        out.as<T>());
        });
    }
    const bool minimal = use_winograd(g, out.dtype);
    if (!minimal && vendor_forward(ctx, g, out, in, weight, bias)) return;
    const View x = contiguous_in(ctx, in), w = contiguous_in(ctx, weight), b = contiguous_in(ctx, bias);
    const RowMajorOut y(ctx, out);
    with_type(out.dtype, [&]<class T>(T) {
        const auto kernel = ways<T>(g, minimal).forward;
        kernel(ctx, g, x.as<T>(), w.as<T>(), bias.defined() ? b.as<T>() : nullptr, y.view().as<T>());
    });
    y.finish(ctx);
}

void backward_data(KernelContext& ctx, const ConvolutionGeometry& g, const View& grad_in, const View& weight,
                   const View& grad_out) {
    if (use_depthwise(g, grad_in.dtype)) {
        const View none = absent(grad_in.dtype);
        return depthwise_backward(ctx, g, grad_in, none, none, weight, grad_out);
    }
    if (use_pixels(ctx, g, grad_in, grad_out)) {
        const View w = contiguous_in(ctx, weight), dy = pixels_in(ctx, grad_out);
        return with_type(grad_in.dtype, [&]<class T>(T) {
            ways_of_pixels<T>().backward_data(ctx, g, grad_in.as<T>(), w.as<T>(), dy.as<T>());
        });
    }
    const bool minimal = use_winograd(g, grad_in.dtype);
    if (!minimal && !g.is_depthwise() && vendor_backward_data(ctx, g, grad_in, weight, grad_out)) return;
    const View w = contiguous_in(ctx, weight), dy = contiguous_in(ctx, grad_out);
    const RowMajorOut dx(ctx, grad_in);
    with_type(grad_in.dtype, [&]<class T>(T) {
        ways<T>(g, minimal).backward_data(ctx, g, dx.view().as<T>(), w.as<T>(), dy.as<T>());
    });
    dx.finish(ctx);
}

void channel_sums(KernelContext& ctx, const View& sums, const View& x) {
    const int64_t batch = x.size(0), channels = x.size(1), size = x.numel / (batch * channels);
    if (is_channels_last(x)) {
        return with_type(x.dtype, [&]<class T>(T) {
            plain<T>().column_sums(ctx, sums.as<T>(), x.as<T>(), batch * size, channels);
        });
    }
    const View dense = contiguous_in(ctx, x);
    with_type(x.dtype, [&]<class T>(T) {
        plain<T>().channel_sums(sums.as<T>(), dense.as<T>(), batch, channels, size);
    });
}

void backward_weights(KernelContext& ctx, const ConvolutionGeometry& g, const View& grad_weight,
                      const View& in, const View& grad_out) {
    if (use_depthwise(g, grad_weight.dtype)) {
        const View none = absent(grad_weight.dtype);
        return depthwise_backward(ctx, g, none, grad_weight, in, none, grad_out);
    }
    if (g.is_pointwise() && !g.is_depthwise() && (is_channels_last(in) || is_channels_last(grad_out))) {
        const View x = pixels_in(ctx, in), dy = pixels_in(ctx, grad_out);
        return with_type(grad_weight.dtype, [&]<class T>(T) {
            ways_of_pixels<T>().backward_weights(ctx, g, grad_weight.as<T>(), x.as<T>(), dy.as<T>());
        });
    }
    const bool minimal = use_winograd(g, grad_weight.dtype);
    if (!minimal && !g.is_depthwise() && vendor_backward_weights(ctx, g, grad_weight, in, grad_out)) return;
    const View x = contiguous_in(ctx, in), dy = contiguous_in(ctx, grad_out);
    const RowMajorOut dw(ctx, grad_weight);
    with_type(grad_weight.dtype, [&]<class T>(T) {
        ways<T>(g, minimal).backward_weights(ctx, g, dw.view().as<T>(), x.as<T>(), dy.as<T>());
        if (g.is_depthwise()) recompute_taps(g, dw.view().as<T>(), x, dy);
    });
    dw.finish(ctx);
}

// Convolves integers, whose sums wrap around, one tap of the kernel at a time. `g` describes a cross-correlation
// whose input has `many` positions and whose output has `few`. The forward convolution sums into the `few`
// positions, and the transposed convolution into the `many`.
template <class T>
void convolve_integers(const ConvolutionGeometry& g, bool transposed, T* out, const T* in, const T* weight,
                       const T* bias) {
    const int64_t many = g.in[0] * g.in[1] * g.in[2], few = g.out[0] * g.out[1] * g.out[2],
                  taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
    const int64_t per_many = g.in_channels / g.groups, per_few = g.out_channels / g.groups;
    const int64_t size = transposed ? many : few, channels = transposed ? g.in_channels : g.out_channels;
    for (int64_t i = 0; i < g.batch * channels * size; ++i) out[i] = bias ? bias[i / size % channels] : T(0);
    const auto add = [](T& sum, T a, T b) {
        sum =
            static_cast<T>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    };
    for (int64_t row = 0; row < g.batch * g.out_channels * per_many; ++row) {
        const int64_t c = row % per_many, f = row / per_many % g.out_channels,
                      n = row / per_many / g.out_channels;
        const int64_t at_few = (n * g.out_channels + f) * few,
                      at_many = (n * g.in_channels + f / per_few * per_many + c) * many;
        for (int64_t p = 0; p < few; ++p)
            for (int64_t k = 0; k < taps; ++k) {
                const int64_t position[] = {p / (g.out[1] * g.out[2]), p / g.out[2] % g.out[1], p % g.out[2]};
                const int64_t tap[] = {k / (g.kernel[1] * g.kernel[2]), k / g.kernel[2] % g.kernel[1],
                                       k % g.kernel[2]};
                int64_t q = 0;
                bool inside = true;
                for (int d = 0; d < 3; ++d) {
                    const int64_t at = position[d] * g.stride[d] - g.padding[d] + tap[d] * g.dilation[d];
                    inside = inside && at >= 0 && at < g.in[d];
                    q = q * g.in[d] + at;
                }
                if (!inside) continue;
                const T factor = weight[(f * per_many + c) * taps + k];
                if (transposed) add(out[at_many + q], in[at_few + p], factor);
                else add(out[at_few + p], in[at_many + q], factor);
            }
    }
}

}  // namespace

void convolution(KernelContext& ctx, const View& out, const View& input, const View& weight, const View& bias,
                 Ints stride, Ints padding, Ints dilation, bool transposed, Ints output_padding,
                 int64_t groups) {
    if (out.numel == 0) return;
    if (out.dtype == DType::BFloat16) {
        if (transposed
                ? !bias.defined() && vendor_backward_data(
                                         ctx, geometry(out, weight, input, stride, padding, dilation, groups),
                                         out, weight, input)
                : vendor_forward(ctx, geometry(input, weight, out, stride, padding, dilation, groups), out,
                                 input, weight, bias))
            return;
    }
    if (!out.contiguous && (is_reduced(out.dtype) || transposed)) {
        const RowMajorOut dense(ctx, out);
        convolution(ctx, dense.view(), input, weight, bias, stride, padding, dilation, transposed,
                    output_padding, groups);
        return dense.finish(ctx);
    }
    if (is_reduced(out.dtype)) {
        const WidenedOut wide(ctx, out);
        convolution(ctx, wide.view(), widened(ctx, input), widened(ctx, weight), widened(ctx, bias), stride,
                    padding, dilation, transposed, output_padding, groups);
        return wide.finish();
    }
    if (is_integral(out.dtype)) {
        const auto g = transposed ? geometry(out, weight, input, stride, padding, dilation, groups)
                                  : geometry(input, weight, out, stride, padding, dilation, groups);
        const View x = contiguous_in(ctx, input), w = contiguous_in(ctx, weight),
                   b = contiguous_in(ctx, bias);
        const RowMajorOut y(ctx, out);
        with_integer(out.dtype, [&]<class T>(T) {
            convolve_integers<T>(g, transposed, y.view().as<T>(), x.as<T>(), w.as<T>(),
                                 bias.defined() ? b.as<T>() : nullptr);
        });
        return y.finish(ctx);
    }
    if (!transposed) {
        return forward(ctx, geometry(input, weight, out, stride, padding, dilation, groups), out, input,
                       weight, bias);
    }
    backward_data(ctx, geometry(out, weight, input, stride, padding, dilation, groups), out, weight, input);
    if (!bias.defined()) return;
    const View b = contiguous_in(ctx, bias);
    const int64_t batch = out.size(0), channels = out.size(1);
    with_type(out.dtype, [&]<class T>(T) {
        plain<T>().add_to_channels(out.as<T>(), b.as<T>(), batch, channels, out.numel / (batch * channels));
    });
}

void convolution_backward(KernelContext& ctx, const View& grad_input, const View& grad_weight,
                          const View& grad_bias, const View& grad_output, const View& input,
                          const View& weight, Ints stride, Ints padding, Ints dilation, bool transposed,
                          Ints output_padding, int64_t groups) {
    if (input.numel == 0 || grad_output.numel == 0) {
        for (const View* v : {&grad_input, &grad_weight, &grad_bias}) clear(*v);
        // Without input channels, the output may have elements, which are equal to the bias.
        if (!grad_bias.defined() || grad_output.numel == 0) return;
        const WidenedOut db(ctx, grad_bias);
        channel_sums(ctx, db.view(), widened(ctx, grad_output));
        return db.finish();
    }
    if (grad_output.dtype == DType::BFloat16 &&
        vendor_backward(ctx,
                        transposed ? geometry(grad_output, weight, input, stride, padding, dilation, groups)
                                   : geometry(input, weight, grad_output, stride, padding, dilation, groups),
                        grad_input, grad_weight, grad_output, input, weight, transposed)) {
        if (!grad_bias.defined()) return;
        const WidenedOut db(ctx, grad_bias);
        channel_sums(ctx, db.view(), widened(ctx, grad_output));
        return db.finish();
    }
    if (is_reduced(grad_output.dtype)) {
        const RowMajorOut x(ctx, grad_input), w(ctx, grad_weight);
        const WidenedOut dx(ctx, x.view()), dw(ctx, w.view()), db(ctx, grad_bias);
        convolution_backward(ctx, dx.view(), dw.view(), db.view(), widened(ctx, grad_output),
                             widened(ctx, input), widened(ctx, weight), stride, padding, dilation, transposed,
                             output_padding, groups);
        dx.finish(), dw.finish(), db.finish();
        x.finish(ctx), w.finish(ctx);
        return;
    }
    // The gradient of the bias is the sum of each channel. oneDNN's sums are not used, because they add one element after
    // another in single precision.
    if (grad_bias.defined()) channel_sums(ctx, grad_bias, grad_output);
    if (transposed) {
        const ConvolutionGeometry g = geometry(grad_output, weight, input, stride, padding, dilation, groups);
        if (grad_input.defined()) forward(ctx, g, grad_input, grad_output, weight, absent(grad_output.dtype));
        if (grad_weight.defined()) backward_weights(ctx, g, grad_weight, grad_output, input);
        return;
    }
    const ConvolutionGeometry g = geometry(input, weight, grad_output, stride, padding, dilation, groups);
    if (use_depthwise(g, grad_output.dtype) && grad_input.defined() && grad_weight.defined()) {
        return depthwise_backward(ctx, g, grad_input, grad_weight, input, weight, grad_output);
    }
    if (grad_input.defined()) backward_data(ctx, g, grad_input, weight, grad_output);
    if (grad_weight.defined()) backward_weights(ctx, g, grad_weight, input, grad_output);
}

}  // namespace rushlight::cpu
