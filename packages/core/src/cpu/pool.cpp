#include "cpu/pool.h"

#include <algorithm>
#include <limits>

#include "cpu/contiguous.h"
#include "cpu/integers.h"
#include "cpu/pool_kernels.h"
#include "rushlight/error.h"

namespace rushlight::cpu {
namespace {

// Returns the kernels for the channels-last layout if `last` is true, otherwise for the row-major layout.
template <class T> const PoolLoops<T>& loops(bool last);
template <> const PoolLoops<float>& loops(bool last) {
    return (last ? channel_pool_kernels() : pool_kernels()).f32;
}
template <> const PoolLoops<double>& loops(bool last) {
    return (last ? channel_pool_kernels() : pool_kernels()).f64;
}

// Whether a pool is computed in the channels-last layout. An output with one position for each channel may be in both layouts.
bool pools_channels_last(int dims, const View& out, const View& in) {
    if (!out.contiguous) return is_channels_last(out);
    return in.ndim == dims + 2 && is_channels_last(in) && out.numel == out.size(0) * out.size(1);
}

// Returns v with its dimensions in the order of the layout.
View laid_out(KernelContext& ctx, const View& v, bool last) { return last ? channels_inside(ctx, v) : v; }

// Calls f with a value of the element type.
template <class F>
void with_type(const char* op, DType dtype, F&& f) {
    if (dtype == DType::Float32) return f(float{});
    if (dtype == DType::Float64) return f(double{});
    throw_not_implemented("%s: no kernel for dtype %s on the CPU", op, name(dtype));
}

int64_t entry(Ints list, int64_t d, int64_t otherwise) {
    return list.size == 0 ? otherwise : list[list.size == 1 ? 0 : d];
}

// Returns the geometry of a pool over the last `dims` dimensions of `in` and `out`, which are not permuted.
PoolGeometry geometry(int dims, const View& in, const View& out, bool last) {
    PoolGeometry g;
    for (int d = 0; d < 3; ++d) {
        const int i = d - 3;
        const bool real = -i <= dims;
        g.in[d] = real ? in.size(i) : 1;
        g.out[d] = real ? out.size(i) : 1;
        g.kernel[d] = g.stride[d] = g.dilation[d] = 1;
        g.padding[d] = 0;
    }
    g.channels = last ? in.size(1) : 1;
    g.planes = in.numel == 0 ? 0 : in.numel / (g.in_size() * g.channels);
    return g;
}

PoolGeometry geometry(int dims, const View& in, const View& out, Ints kernel, Ints stride, Ints padding,
                      Ints dilation, bool last) {
    PoolGeometry g = geometry(dims, in, out, last);
    for (int i = 0; i < dims; ++i) {
        const int d = 3 - dims + i;
        g.kernel[d] = entry(kernel, i, 1);
        g.stride[d] = entry(stride, i, g.kernel[d]);
        g.padding[d] = entry(padding, i, 0);
        g.dilation[d] = entry(dilation, i, 1);
        // The stride has no effect with a single output, but would make the buffers larger.
        if (g.out[d] == 1) g.stride[d] = 1;
        if (g.kernel[d] == 1) g.dilation[d] = 1;
    }
    return g;
}

constexpr Ints kOnes{nullptr, 0};

// Calls body(position in the plane) for each element of window `at` that is inside the plane, in order.
template <class Body>
void each_position(const PoolGeometry& g, int64_t at, Body&& body) {
    const int64_t window[] = {at / (g.out[1] * g.out[2]), at / g.out[2] % g.out[1], at % g.out[2]};
    int64_t start[3], from[3], to[3];
    for (int d = 0; d < 3; ++d) {
        start[d] = window[d] * g.stride[d] - g.padding[d];
        from[d] = start[d] < 0 ? (-start[d] - 1) / g.dilation[d] + 1 : 0;
        to[d] = start[d] < g.in[d] ? std::min(g.kernel[d], (g.in[d] - start[d] - 1) / g.dilation[d] + 1) : 0;
    }
    for (int64_t i = from[0]; i < to[0]; ++i)
        for (int64_t j = from[1]; j < to[1]; ++j)
            for (int64_t k = from[2]; k < to[2]; ++k)
                body(((start[0] + i * g.dilation[0]) * g.in[1] + start[1] + j * g.dilation[1]) * g.in[2] +
                     start[2] + k * g.dilation[2]);
}

// Calls body(output, window, the first element of its plane and channel) for each output. The elements of a plane are
// `g.channels` apart.
template <class T, class Body>
void each_output(const PoolGeometry& g, const T* in, Body&& body) {
    for (int64_t o = 0; o < g.planes * g.out_size() * g.channels; ++o) {
        const int64_t window = o / g.channels;
        body(o, window % g.out_size(),
             in + window / g.out_size() * g.in_size() * g.channels + o % g.channels);
    }
}

// Computes the maxima of integers, without vector code. The first of equal elements is selected.
template <class T>
void max_of_integers(const PoolGeometry& g, T* out, int64_t* indices, const T* in) {
    each_output(g, in, [&](int64_t o, int64_t window, const T* x) {
        int64_t best = -1;
        each_position(g, window, [&](int64_t position) {
            if (best < 0 || x[position * g.channels] > x[best * g.channels]) best = position;
        });
        out[o] = best < 0 ? std::numeric_limits<T>::min() : x[best * g.channels];
        if (indices) indices[o] = best;
    });
}

// Computes the means of integers, which are rounded toward zero.
void average_of_integers(const PoolGeometry& g, PoolDivisor divisor, int64_t* out, const int64_t* in) {
    each_output(g, in, [&](int64_t o, int64_t at, const int64_t* x) {
        const int64_t window[] = {at / (g.out[1] * g.out[2]), at / g.out[2] % g.out[1], at % g.out[2]};
        uint64_t sum = 0;
        int64_t inside = 0, all = 1;
        each_position(g, at, [&](int64_t position) {
            sum += static_cast<uint64_t>(x[position * g.channels]);
            ++inside;
        });
        for (int d = 0; d < 3; ++d) {
            const int64_t start = window[d] * g.stride[d] - g.padding[d];
            all *= std::min(start + g.kernel[d], g.in[d] + g.padding[d]) - start;
        }
        const int64_t by = divisor.override_with     ? divisor.override_with
                           : divisor.include_padding ? all
                                                     : inside;
        if (by == 0) out[o] = 0;
        else out[o] = by == -1 ? static_cast<int64_t>(-sum) : static_cast<int64_t>(sum) / by;
    });
}

void max_pool(KernelContext& ctx, const char* op, int dims, const View& out, const View& indices,
              const View& input, Ints kernel, Ints stride, Ints padding, Ints dilation) {
    if (out.numel == 0) return;
    const bool last = pools_channels_last(dims, out, input);
    const WidenedOut wide(ctx, laid_out(ctx, out, last));
    const View x = contiguous_in(ctx, widened(ctx, laid_out(ctx, input, last)));
    const PoolGeometry g = geometry(dims, input, out, kernel, stride, padding, dilation, last);
    if (is_integral(x.dtype))
        return with_integer(x.dtype, [&]<class T>(T) {
            max_of_integers<T>(g, out.as<T>(), indices.defined() ? indices.as<int64_t>() : nullptr,
                               x.as<T>());
        });
    with_type(op, x.dtype, [&]<class T>(T) {
        loops<T>(last).max(ctx, g, wide.view().as<T>(), indices.defined() ? indices.as<int64_t>() : nullptr,
                           x.as<T>());
    });
    wide.finish();
}

void max_pool_backward(KernelContext& ctx, const char* op, int dims, const View& grad_input,
                       const View& grad_output, const View& indices) {
    const bool last = is_channels_last(grad_input);
    const WidenedOut wide(ctx, laid_out(ctx, grad_input, last));
    const View dy = contiguous_in(ctx, widened(ctx, laid_out(ctx, grad_output, last))),
               positions = contiguous_in(ctx, laid_out(ctx, indices, last));
    const PoolGeometry g = geometry(dims, grad_input, grad_output, last);
    with_type(op, dy.dtype, [&]<class T>(T) {
        RL_CHECK(loops<T>(last).max_backward(g, wide.view().as<T>(), dy.as<T>(), positions.as<int64_t>()),
                 throw_index,
                 "%s(indices): an index is out of range for the %lld elements of one channel of the input",
                 op, (long long)g.in_size());
    });
    wide.finish();
}

void avg_pool(KernelContext& ctx, const char* op, int dims, const View& out, const View& input, Ints kernel,
              Ints stride, Ints padding, PoolDivisor divisor) {
    if (out.numel == 0) return;
    const bool last = pools_channels_last(dims, out, input);
    const WidenedOut wide(ctx, laid_out(ctx, out, last));
    const View x = contiguous_in(ctx, widened(ctx, laid_out(ctx, input, last)));
    const PoolGeometry g = geometry(dims, input, out, kernel, stride, padding, kOnes, last);
    if (x.dtype == DType::Int64) return average_of_integers(g, divisor, out.as<int64_t>(), x.as<int64_t>());
    with_type(op, x.dtype,
              [&]<class T>(T) { loops<T>(last).average(ctx, g, divisor, wide.view().as<T>(), x.as<T>()); });
    wide.finish();
}

void avg_pool_backward(KernelContext& ctx, const char* op, int dims, const View& grad_input,
                       const View& grad_output, Ints kernel, Ints stride, Ints padding, PoolDivisor divisor) {
    const bool last = is_channels_last(grad_input);
    const WidenedOut wide(ctx, laid_out(ctx, grad_input, last));
    const View dy = contiguous_in(ctx, widened(ctx, laid_out(ctx, grad_output, last)));
    const PoolGeometry g = geometry(dims, grad_input, grad_output, kernel, stride, padding, kOnes, last);
    with_type(op, dy.dtype, [&]<class T>(T) {
        loops<T>(last).average_backward(ctx, g, divisor, wide.view().as<T>(), dy.as<T>());
    });
    wide.finish();
}

void adaptive_avg_pool(KernelContext& ctx, const char* op, int dims, const View& out, const View& input) {
    if (out.numel == 0) return;
    const bool last = pools_channels_last(dims, out, input);
    const WidenedOut wide(ctx, laid_out(ctx, out, last));
    const View x = contiguous_in(ctx, widened(ctx, laid_out(ctx, input, last)));
    with_type(op, x.dtype, [&]<class T>(T) {
        if (x.numel == 0) {  // the mean of no elements
            std::fill_n(wide.view().as<T>(), out.numel, std::numeric_limits<T>::quiet_NaN());
            return;
        }
        loops<T>(last).adaptive_average(ctx, geometry(dims, input, out, last), wide.view().as<T>(),
                                        x.as<T>());
    });
    wide.finish();
}

void adaptive_avg_pool_backward(KernelContext& ctx, const char* op, int dims, const View& grad_input,
                                const View& grad_output) {
    const bool last = is_channels_last(grad_input);
    const WidenedOut wide(ctx, laid_out(ctx, grad_input, last));
    const View dy = contiguous_in(ctx, widened(ctx, laid_out(ctx, grad_output, last)));
    with_type(op, dy.dtype, [&]<class T>(T) {
        loops<T>(last).adaptive_average_backward(ctx, geometry(dims, grad_input, grad_output, last),
                                                 wide.view().as<T>(), dy.as<T>());
    });
    wide.finish();
}

void adaptive_max_pool(KernelContext& ctx, const char* op, int dims, const View& out, const View& indices,
                       const View& input) {
    if (out.numel == 0) return;
    const bool last = pools_channels_last(dims, out, input);
    const WidenedOut wide(ctx, laid_out(ctx, out, last));
    const View x = contiguous_in(ctx, widened(ctx, laid_out(ctx, input, last)));
    with_type(op, x.dtype, [&]<class T>(T) {
        loops<T>(last).adaptive_max(ctx, geometry(dims, input, out, last), wide.view().as<T>(),
                                    indices.defined() ? indices.as<int64_t>() : nullptr, x.as<T>());
    });
    wide.finish();
}

}  // namespace

void max_pool2d(KernelContext& ctx, const View& out, const View& indices, const View& input, Ints kernel_size,
                Ints stride, Ints padding, Ints dilation, bool) {
    max_pool(ctx, "max_pool2d", 2, out, indices, input, kernel_size, stride, padding, dilation);
}
void max_pool3d(KernelContext& ctx, const View& out, const View& indices, const View& input, Ints kernel_size,
                Ints stride, Ints padding, Ints dilation, bool) {
    max_pool(ctx, "max_pool3d", 3, out, indices, input, kernel_size, stride, padding, dilation);
}
void max_pool2d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                         const View& indices) {
    max_pool_backward(ctx, "max_pool2d_backward", 2, grad_input, grad_output, indices);
}
void max_pool3d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                         const View& indices) {
    max_pool_backward(ctx, "max_pool3d_backward", 3, grad_input, grad_output, indices);
}

void avg_pool2d(KernelContext& ctx, const View& out, const View& input, Ints kernel_size, Ints stride,
                Ints padding, bool, bool count_include_pad, int64_t divisor_override) {
    avg_pool(ctx, "avg_pool2d", 2, out, input, kernel_size, stride, padding,
             {count_include_pad, divisor_override});
}
void avg_pool3d(KernelContext& ctx, const View& out, const View& input, Ints kernel_size, Ints stride,
                Ints padding, bool, bool count_include_pad, int64_t divisor_override) {
    avg_pool(ctx, "avg_pool3d", 3, out, input, kernel_size, stride, padding,
             {count_include_pad, divisor_override});
}
void avg_pool2d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                         Ints kernel_size, Ints stride, Ints padding, bool, bool count_include_pad,
                         int64_t divisor_override) {
    avg_pool_backward(ctx, "avg_pool2d_backward", 2, grad_input, grad_output, kernel_size, stride, padding,
                      {count_include_pad, divisor_override});
}
void avg_pool3d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output,
                         Ints kernel_size, Ints stride, Ints padding, bool, bool count_include_pad,
                         int64_t divisor_override) {
    avg_pool_backward(ctx, "avg_pool3d_backward", 3, grad_input, grad_output, kernel_size, stride, padding,
                      {count_include_pad, divisor_override});
}

void adaptive_avg_pool2d(KernelContext& ctx, const View& out, const View& input, Ints) {
    adaptive_avg_pool(ctx, "adaptive_avg_pool2d", 2, out, input);
}
void adaptive_avg_pool3d(KernelContext& ctx, const View& out, const View& input, Ints) {
    adaptive_avg_pool(ctx, "adaptive_avg_pool3d", 3, out, input);
}
void adaptive_avg_pool2d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output) {
    adaptive_avg_pool_backward(ctx, "adaptive_avg_pool2d_backward", 2, grad_input, grad_output);
}
void adaptive_avg_pool3d_backward(KernelContext& ctx, const View& grad_input, const View& grad_output) {
    adaptive_avg_pool_backward(ctx, "adaptive_avg_pool3d_backward", 3, grad_input, grad_output);
}
void adaptive_max_pool2d(KernelContext& ctx, const View& out, const View& indices, const View& input, Ints) {
    adaptive_max_pool(ctx, "adaptive_max_pool2d", 2, out, indices, input);
}
void adaptive_max_pool3d(KernelContext& ctx, const View& out, const View& indices, const View& input, Ints) {
    adaptive_max_pool(ctx, "adaptive_max_pool3d", 3, out, indices, input);
}

}  // namespace rushlight::cpu
