// Convolution with 1x1 filters, computed as one matrix product over the pixels of the whole batch. The pixels are
// read and written in place: Note [Runs] in gemm.h. If the stride is not 1, the pixels that are used are copied
// first. The functions with kLast = true are for channels-last maps, in which the channels of a pixel are adjacent.
#include "cpu/contiguous.h"
#include "cpu/convolution_kernels.h"
#include "cpu/gemm.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

void multiply(KernelContext& ctx, const Gemm<float>& g) { gemm_kernels().gemm_f32(ctx, g); }
void multiply(KernelContext& ctx, const Gemm<double>& g) { gemm_kernels().gemm_f64(ctx, g); }
void multiply(const Gemm<float>& g, float* scratch) { gemm_kernels().serial_f32(g, scratch); }
void multiply(const Gemm<double>& g, double* scratch) { gemm_kernels().serial_f64(g, scratch); }
int64_t product_scratch(const Gemm<float>& g) { return gemm_kernels().scratch_f32(g); }
int64_t product_scratch(const Gemm<double>& g) { return gemm_kernels().scratch_f64(g); }

bool has_stride(const ConvolutionGeometry& g) { return g.stride[0] * g.stride[1] * g.stride[2] != 1; }

// Calls f(first pixel in the input, first pixel in the output) for each row of an output map.
template <class F>
void for_sampled_rows(const ConvolutionGeometry& g, F&& f) {
    for (int64_t z = 0; z < g.out[0]; ++z) {
        for (int64_t y = 0; y < g.out[1]; ++y) {
            f((z * g.stride[0] * g.in[1] + y * g.stride[1]) * g.in[2], (z * g.out[1] + y) * g.out[2]);
        }
    }
}

// Calls body(first element of a map in the input, first element of the map in the output, distance between two pixels) for
// each map, in parallel. The pixels of a channels-last map are rows of channels.
template <bool kLast, class Body>
void for_maps(const ConvolutionGeometry& g, Body&& body) {
    const int64_t width = kLast ? g.in_channels : 1, maps = kLast ? g.batch : g.batch * g.in_channels;
    parallel_for(0, maps, (1 << 14) / (g.in_size() * width + 1) + 1, [&](int64_t first, int64_t last) {
        for (int64_t m = first; m < last; ++m) body(m * g.in_size() * width, m * g.out_size() * width, width);
    });
}

// Copies a pixel.
template <bool kLast, class T>
void copy_pixel(T* to, const T* from, int64_t width) {
    if constexpr (kLast) __builtin_memcpy(to, from, sizeof(T) * static_cast<size_t>(width));
    else *to = *from;
}

// Returns a contiguous copy of the pixels that a convolution with a stride reads, or `in` itself if the stride is
// 1.
template <bool kLast, class T>
const T* sampled(KernelContext& ctx, const ConvolutionGeometry& g, const T* in) {
    if (!has_stride(g)) return in;
    T* dense = cpu::scratch<T>(ctx, g.batch * g.in_channels * g.out_size());
    for_maps<kLast>(g, [&](int64_t source, int64_t target, int64_t width) {
        for_sampled_rows(g, [&](int64_t from, int64_t to) {
            for (int64_t x = 0; x < g.out[2]; ++x)
                copy_pixel<kLast>(dense + target + (to + x) * width,
                                  in + source + (from + x * g.stride[2]) * width, width);
        });
    });
    return dense;
}

// The reverse of `sampled`: copies pixels back, and sets the pixels that no output reads to zero.
template <bool kLast, class T>
void spread(const ConvolutionGeometry& g, const T* dense, T* in) {
    for_maps<kLast>(g, [&](int64_t target, int64_t source, int64_t width) {
        __builtin_memset(in + target, 0, sizeof(T) * static_cast<size_t>(g.in_size() * width));
        for_sampled_rows(g, [&](int64_t to, int64_t from) {
            for (int64_t x = 0; x < g.out[2]; ++x)
                copy_pixel<kLast>(in + target + (to + x * g.stride[2]) * width,
                                  dense + source + (from + x) * width, width);
        });
    });
}

// Computes to = weight from (+ bias) for maps of `from_channels` and `to_channels`. The weights are at row *
// a_row + column * a_col.
template <class T>
void map_channels(KernelContext& ctx, const ConvolutionGeometry& g, const T* from, int64_t from_channels,
                  const T* weight, int64_t a_row, int64_t a_col, const T* bias, T* to, int64_t to_channels) {
    const int64_t pixels = g.out_size(), rows = to_channels / g.groups, depth = from_channels / g.groups;
    for (int64_t group = 0; group < g.groups; ++group) {
        Gemm<T> product{rows,
                        g.batch * pixels,
                        depth,
                        weight + group * rows * depth,
                        a_row,
                        a_col,
                        from + group * depth * pixels,
                        pixels,
                        1,
                        to + group * rows * pixels,
                        pixels,
                        T(1),
                        T(1),
                        bias == nullptr ? nullptr : bias + group * rows,
                        1,
                        0};
        product.column_run = pixels;
        product.b_run = from_channels * pixels;
        product.c_run = to_channels * pixels;
        multiply(ctx, product);
    }
}

// Does the same for channels-last maps: the rows of the product are pixels.
template <class T>
void map_pixels(KernelContext& ctx, const ConvolutionGeometry& g, const T* from, int64_t from_channels,
                const T* weight, int64_t a_row, int64_t a_col, const T* bias, T* to, int64_t to_channels) {
    const int64_t columns = to_channels / g.groups, depth = from_channels / g.groups;
    for (int64_t group = 0; group < g.groups; ++group) {
        multiply(ctx,
                 Gemm<T>{g.batch * g.out_size(), columns, depth, from + group * depth, from_channels, 1,
                         weight + group * columns * depth, a_col, a_row, to + group * columns, to_channels,
                         T(1), T(1), bias == nullptr ? nullptr : bias + group * columns, 0, 1});
    }
}

template <class T, bool kLast>
void forward(KernelContext& ctx, const ConvolutionGeometry& g, const T* in, const T* weight, const T* bias,
             T* out) {
    const auto map = kLast ? map_pixels<T> : map_channels<T>;
    map(ctx, g, sampled<kLast>(ctx, g, in), g.in_channels, weight, g.in_channels / g.groups, 1, bias, out,
        g.out_channels);
}

template <class T, bool kLast>
void backward_data(KernelContext& ctx, const ConvolutionGeometry& g, T* grad_in, const T* weight,
                   const T* grad_out) {
    const auto map = kLast ? map_pixels<T> : map_channels<T>;
    T* dense = has_stride(g) ? cpu::scratch<T>(ctx, g.batch * g.in_channels * g.out_size()) : grad_in;
    map(ctx, g, grad_out, g.out_channels, weight, 1, g.in_channels / g.groups, nullptr, dense, g.in_channels);
    if (has_stride(g)) spread<kLast>(g, dense, grad_in);
}

// Minimum number of pixels over which one product sums, if the batch has that many.
constexpr int64_t kSlice = 1 << 13;
// Maximum number of pixels of channels-last maps over which one product sums.
constexpr int64_t kPiece = 1 << 11;

template <class T, bool kLast>
void backward_weights(KernelContext& ctx, const ConvolutionGeometry& g, T* grad_weight, const T* in,
                      const T* grad_out) {
    const T* const source = sampled<kLast>(ctx, g, in);
    const int64_t pixels = g.out_size(), rows = g.out_channels / g.groups, columns = g.in_channels / g.groups;
    const int64_t total = g.out_channels * columns;
    // The batch is divided into slices, whose results are added in order afterwards. The number of slices depends
    // on the shape only. Each slice is divided into bands of rows; their number does not change the result.
    const int64_t slices = max(1, min(min(g.batch, 8), g.batch * pixels / kSlice));
    const int64_t tasks = slices * g.groups;
    const int64_t bands = max(1, min(ceil_div(num_threads(), tasks), rows / 16));
    const int64_t most = ceil_div(g.batch, slices);
    Gemm<T> product{ceil_div(rows, bands),
                    columns,
                    most * pixels,
                    nullptr,
                    kLast ? 1 : pixels,
                    kLast ? g.out_channels : 1,
                    nullptr,
                    kLast ? g.in_channels : 1,
                    kLast ? 1 : pixels,
                    nullptr,
                    columns,
                    T(1),
                    T(0),
                    nullptr,
                    0,
                    0};
    if (!kLast) {
        product.step_run = pixels;
        product.a_step_run = g.out_channels * pixels;
        product.b_step_run = g.in_channels * pixels;
    }
    const int64_t workers = max(1, min(min(num_threads(), tasks * bands), g.multiply_adds() >> 17));
    const int64_t size = ceil_div(product_scratch(product), 16) * 16;
    T* const scratch = cpu::scratch<T>(ctx, size * workers + (slices - 1) * total);
    T* const partial = scratch + size * workers;
    parallel_for(0, workers, 1, [&](int64_t first, int64_t last) {
        for (int64_t w = first; w < last; ++w) {
            for (int64_t t = tasks * bands * w / workers; t < tasks * bands * (w + 1) / workers; ++t) {
                const int64_t band = t % bands, group = t / bands % g.groups, slice = t / bands / g.groups;
                const int64_t row = rows * band / bands, image = g.batch * slice / slices;
                T* target = slice == 0 ? grad_weight : partial + (slice - 1) * total;
                Gemm<T> p = product;
                p.m = rows * (band + 1) / bands - row;
                const int64_t depth = (g.batch * (slice + 1) / slices - image) * pixels;
                const int64_t channel = kLast ? 1 : pixels;  // distance between two channels
                p.a = grad_out + image * g.out_channels * pixels + (group * rows + row) * channel;
                p.b = source + image * g.in_channels * pixels + group * columns * channel;
                p.c = target + (group * rows + row) * columns;
                // Channels-last maps are read in pieces that fit into the caches.
                const int64_t most = kLast ? min(depth, kPiece) : depth;
                for (int64_t from = 0; from < depth; from += most) {
                    p.k = min(most, depth - from);
                    multiply(p, scratch + w * size);
                    p.a += p.k * p.a_col;
                    p.b += p.k * p.b_row;
                    p.init = p.c, p.init_row = p.c_row, p.init_col = 1;
                    p.beta = T(1);
                }
            }
        }
    });
    parallel_for(0, slices > 1 ? total : 0, 1 << 14, [&](int64_t first, int64_t last) {
        for (int64_t s = 0; s + 1 < slices; ++s) {
            const T* from = partial + s * total;
            for (int64_t i = first; i < last; ++i) grad_weight[i] += from[i];
        }
    });
}

template <class T, bool kLast>
constexpr ConvolutionWays<T> table() {
    return {forward<T, kLast>, backward_data<T, kLast>, backward_weights<T, kLast>};
}

}  // namespace

const PointwiseKernels pointwise_kernels_table = {table<float, false>(), table<double, false>()};
const PointwiseKernels channel_pointwise_kernels_table = {table<float, true>(), table<double, true>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
