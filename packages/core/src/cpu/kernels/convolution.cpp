// Convolution as matrix products. For one block of output positions at a time, the input's windows are laid out as
// columns and multiplied by the weights (Chellapilla, Puri and Simard, "High performance convolutional neural
// networks for document processing", 2006).
#include "cpu/convolution_kernels.h"

#include "cpu/contiguous.h"
#include "cpu/gemm.h"
#include "cpu/kernels/simd.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t product_scratch(const Gemm<float>& g) { return gemm_kernels().scratch_f32(g); }
int64_t product_scratch(const Gemm<double>& g) { return gemm_kernels().scratch_f64(g); }
void multiply(const Gemm<float>& g, float* scratch) { gemm_kernels().serial_f32(g, scratch); }
void multiply(const Gemm<double>& g, double* scratch) { gemm_kernels().serial_f64(g, scratch); }

// Returns the number of output positions in a block, so that its columns fit in the second-level cache.
int64_t block_positions(const ConvolutionGeometry& g) {
    const int64_t fit = (1 << 16) / max(g.window(), 1);
    return min(g.out_size(), max(fit / 32 * 32, 128));
}

// Visits the inputs under the window element `tap` for the output positions [first, last), in runs along the
// innermost dimension. Calls inside(at, p, n) for n positions from p whose inputs are in[at], in[at + stride], ...,
// and outside(p, n) for n positions from p whose inputs are in the padding.
template <class Inside, class Outside>
RL_INLINE void for_each_run(const ConvolutionGeometry& g, const int64_t* tap, int64_t first, int64_t last,
                            Inside&& inside, Outside&& outside) {
    const int64_t width = g.out[2], stride = g.stride[2];
    // input column = output column * stride + shift
    const int64_t shift = tap[2] * g.dilation[2] - g.padding[2];
    const int64_t low = shift >= 0 ? 0 : ceil_div(-shift, stride);
    const int64_t high = shift >= g.in[2] ? 0 : (g.in[2] - 1 - shift) / stride + 1;
    for (int64_t p = first; p < last;) {
        const int64_t row = p / width, column = p - row * width, n = min(width - column, last - p);
        const int64_t y = row % g.out[1] * g.stride[1] - g.padding[1] + tap[1] * g.dilation[1];
        const int64_t z = row / g.out[1] * g.stride[0] - g.padding[0] + tap[0] * g.dilation[0];
        const int64_t from = max(column, low), to = min(column + n, high);
        if (y < 0 || y >= g.in[1] || z < 0 || z >= g.in[0] || from >= to) {
            outside(p, n);
        } else {
            if (from > column) outside(p, from - column);
            inside((z * g.in[1] + y) * g.in[2] + from * stride + shift, p + from - column, to - from);
            if (to < column + n) outside(p + to - column, column + n - to);
        }
        p += n;
    }
}

template <class F>
RL_INLINE void for_each_tap(const ConvolutionGeometry& g, F&& f) {
    int64_t tap[3];
    for (tap[0] = 0; tap[0] < g.kernel[0]; ++tap[0]) {
        for (tap[1] = 0; tap[1] < g.kernel[1]; ++tap[1]) {
            for (tap[2] = 0; tap[2] < g.kernel[2]; ++tap[2]) f(tap);
        }
    }
}

// Writes columns (window, last - first) of one group of one image.
template <class T>
void gather(const ConvolutionGeometry& g, const T* in, T* columns, int64_t first, int64_t last) {
    const int64_t stride = g.stride[2];
    for (int64_t c = 0; c < g.in_channels / g.groups; ++c, in += g.in_size()) {
        for_each_tap(g, [&](const int64_t* tap) {
            T* target = columns - first;
            for_each_run(
                g, tap, first, last,
                [&](int64_t at, int64_t p, int64_t n) {
                    if (stride == 1) {
                        for (int64_t i = 0; i < n; ++i) target[p + i] = in[at + i];
                    } else {
                        for (int64_t i = 0; i < n; ++i) target[p + i] = in[at + i * stride];
                    }
                },
                [&](int64_t p, int64_t n) {
                    for (int64_t i = 0; i < n; ++i) target[p + i] = T(0);
                });
            columns += last - first;
        });
    }
}

// The reverse of `gather`: adds columns to the elements of `in` from which `gather` would copy them.
template <class T>
void scatter(const ConvolutionGeometry& g, T* in, const T* columns, int64_t first, int64_t last) {
    const int64_t stride = g.stride[2];
    for (int64_t c = 0; c < g.in_channels / g.groups; ++c, in += g.in_size()) {
        for_each_tap(g, [&](const int64_t* tap) {
            const T* target = columns - first;
            for_each_run(
                g, tap, first, last,
                [&](int64_t at, int64_t p, int64_t n) {
                    if (stride == 1) {
                        for (int64_t i = 0; i < n; ++i) in[at + i] += target[p + i];
                    } else {
                        for (int64_t i = 0; i < n; ++i) in[at + i * stride] += target[p + i];
                    }
                },
                [](int64_t, int64_t) {});
            columns += last - first;
        });
    }
}

// Runs body(task, columns, product_scratch) for all tasks, with buffers for each thread.
template <class T, class Body>
void run_tasks(KernelContext& ctx, const ConvolutionGeometry& g, int64_t tasks, int64_t columns_size,
               int64_t product_size, Body&& body) {
    constexpr int64_t kPerThread = 1 << 17;  // multiply-adds
    const int64_t workers = max(1, min(min(num_threads(), tasks), g.multiply_adds() / kPerThread));
    const int64_t size = ceil_div(columns_size + product_size, 16) * 16;
    T* scratch = cpu::scratch<T>(ctx, size * workers);
    parallel_for(0, workers, 1, [&](int64_t first, int64_t last) {
        for (int64_t w = first; w < last; ++w) {
            T* columns = scratch + w * size;
            for (int64_t t = tasks * w / workers; t < tasks * (w + 1) / workers; ++t)
                body(t, columns, columns + columns_size);
        }
    });
}

template <class T>
void forward(KernelContext& ctx, const ConvolutionGeometry& g, const T* in, const T* weight, const T* bias,
             T* out) {
    const int64_t positions = g.out_size(), window = g.window(), rows = g.out_channels / g.groups;
    const int64_t step = block_positions(g), blocks = ceil_div(positions, step);
    const int64_t group_in = g.in_channels / g.groups * g.in_size();
    Gemm<T> product{rows, step,    window,    nullptr, window, 1,       nullptr, step,
                    1,    nullptr, positions, T(1),    T(1),   nullptr, 1,       0};
    run_tasks<T>(ctx, g, g.batch * g.groups * blocks, window * step, product_scratch(product),
                 [&](int64_t task, T* columns, T* scratch) {
                     // An image is one group of a sample.
                     const int64_t image = task / blocks, group = image % g.groups;
                     const int64_t first = task % blocks * step, last = min(positions, first + step);
                     const T* source = in + image * group_in;
                     Gemm<T> p = product;
                     p.n = last - first;
                     p.a = weight + group * rows * window;
                     p.c = out + image * rows * positions + first;
                     if (bias != nullptr) p.init = bias + group * rows;
                     gather(g, source, columns, first, last);
                     p.b = columns;
                     p.b_row = last - first;
                     multiply(p, scratch);
                 });
}

template <class T>
void backward_data(KernelContext& ctx, const ConvolutionGeometry& g, T* grad_in, const T* weight,
                   const T* grad_out) {
    const int64_t positions = g.out_size(), window = g.window(), depth = g.out_channels / g.groups;
    const int64_t step = block_positions(g);
    const int64_t group_in = g.in_channels / g.groups * g.in_size();
    Gemm<T> product{window, step,    depth, nullptr, 1,    window,  nullptr, positions,
                    1,      nullptr, step,  T(1),    T(0), nullptr, 0,       0};
    // Windows overlap, so the blocks of one image are added one after another.
    run_tasks<T>(ctx, g, g.batch * g.groups, window * step, product_scratch(product),
                 [&](int64_t image, T* columns, T* scratch) {
                     const int64_t group = image % g.groups;
                     T* target = grad_in + image * group_in;
                     __builtin_memset(target, 0, sizeof(T) * static_cast<size_t>(group_in));
                     for (int64_t first = 0; first < positions; first += step) {
                         const int64_t last = min(positions, first + step);
                         Gemm<T> p = product;
                         p.n = last - first;
                         p.a = weight + group * depth * window;
                         p.b = grad_out + image * depth * positions + first;
                         p.c = columns;
                         p.c_row = last - first;
                         multiply(p, scratch);
                         scatter(g, target, columns, first, last);
                     }
                 });
}

template <class T>
void backward_weights(KernelContext& ctx, const ConvolutionGeometry& g, T* grad_weight, const T* in,
                      const T* grad_out) {
    const int64_t positions = g.out_size(), window = g.window(), channels = g.out_channels / g.groups;
    const int64_t step = block_positions(g), total = g.out_channels * window;
    const int64_t group_in = g.in_channels / g.groups * g.in_size();
    // The batch is divided into slices, whose results are added in order afterwards. The number of slices depends
    // on the shape only.
    const int64_t bands = ceil_div(channels, 64);  // of output channels
    const int64_t slices = max(1, min(min(g.batch, 8), (int64_t{1} << 22) / total));
    T* partial = slices > 1 ? cpu::scratch<T>(ctx, (slices - 1) * total) : nullptr;
    Gemm<T> product{ceil_div(channels, bands),
                    window,
                    step,
                    nullptr,
                    positions,
                    1,
                    nullptr,
                    1,
                    step,
                    nullptr,
                    window,
                    T(1),
                    T(1),
                    nullptr,
                    window,
                    1};
    run_tasks<T>(ctx, g, slices * g.groups * bands, window * step, product_scratch(product),
                 [&](int64_t task, T* columns, T* scratch) {
                     const int64_t band = task % bands, group = task / bands % g.groups,
                                   slice = task / bands / g.groups;
                     const int64_t row = channels * band / bands, rows = channels * (band + 1) / bands - row;
                     T* target = (slice == 0 ? grad_weight : partial + (slice - 1) * total) +
                                 (group * channels + row) * window;
                     Gemm<T> p = product;
                     p.m = rows;
                     p.c = target;
                     for (int64_t n = g.batch * slice / slices; n < g.batch * (slice + 1) / slices; ++n) {
                         const int64_t image = n * g.groups + group;
                         const T* source = in + image * group_in;
                         for (int64_t first = 0; first < positions; first += step) {
                             const int64_t last = min(positions, first + step);
                             p.k = last - first;
                             p.a = grad_out + (image * channels + row) * positions + first;
                             p.b = columns;
                             p.b_col = last - first;
                             gather(g, source, columns, first, last);
                             multiply(p, scratch);
                             p.init = target;
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

// Short sums of T are added in double precision: one long sum of T would lose digits.
template <class T>
void channel_sums(T* sums, const T* x, int64_t batch, int64_t channels, int64_t size) {
    constexpr int64_t kL = kLanes<T>, kShort = 64 * 4 * kL;
    parallel_for(0, channels, (1 << 15) / (batch * size + 1) + 1, [&](int64_t first, int64_t last) {
        for (int64_t c = first; c < last; ++c) {
            double total = 0;
            for (int64_t n = 0; n < batch; ++n) {
                const T* plane = x + (n * channels + c) * size;
                for (int64_t begin = 0; begin < size; begin += kShort) {
                    const int64_t end = min(size, begin + kShort);
                    Vec<T> s[4] = {};
                    int64_t i = begin;
                    for (; i + 4 * kL <= end; i += 4 * kL) {
#pragma GCC unroll 4
                        for (int p = 0; p < 4; ++p) s[p] += load(plane + i + p * kL);
                    }
                    for (; i < end; i += kL) s[0] += load(plane + i, Lanes<T>(min(kL, end - i)));
                    total += static_cast<double>(sum((s[0] + s[1]) + (s[2] + s[3])));
                }
            }
            sums[c] = static_cast<T>(total);
        }
    });
}

// The rows are divided into a number of parts that does not depend on the number of threads, so that the rounding does
// not depend on it either.
template <class T>
void column_sums(KernelContext& ctx, T* sums, const T* x, int64_t rows, int64_t columns) {
    constexpr int64_t kShort = 64, kPart = 64 * kShort, kWidth = 64;
    const int64_t parts = (rows + kPart - 1) / kPart;
    double* partial = cpu::scratch<double>(ctx, parts * columns);
    parallel_for(0, parts, (1 << 15) / (kPart * columns) + 1, [&](int64_t first, int64_t last) {
        for (int64_t part = first; part < last; ++part) {
            double* total = partial + part * columns;
            const int64_t end = min(rows, (part + 1) * kPart);
            for (int64_t c = 0; c < columns; ++c) total[c] = 0;
            for (int64_t begin = part * kPart; begin < end; begin += kShort) {
                const int64_t stop = min(end, begin + kShort);
                for (int64_t left = 0; left < columns; left += kWidth) {
                    const int64_t width = min(kWidth, columns - left);
                    T some[kWidth] = {};
                    for (int64_t row = begin; row < stop; ++row)
                        for (int64_t c = 0; c < width; ++c) some[c] += x[row * columns + left + c];
                    for (int64_t c = 0; c < width; ++c) total[left + c] += static_cast<double>(some[c]);
                }
            }
        }
    });
    for (int64_t c = 0; c < columns; ++c) {
        double total = 0;
        for (int64_t part = 0; part < parts; ++part) total += partial[part * columns + c];
        sums[c] = static_cast<T>(total);
    }
}

template <class T>
void add_to_channels(T* x, const T* values, int64_t batch, int64_t channels, int64_t size) {
    parallel_for(0, batch * channels, (1 << 15) / (size + 1) + 1, [&](int64_t first, int64_t last) {
        for (int64_t plane = first; plane < last; ++plane) {
            const T value = values[plane % channels];
            T* out = x + plane * size;
            for (int64_t i = 0; i < size; ++i) out[i] += value;
        }
    });
}

template <class T>
constexpr PlainConvolution<T> table() {
    return {{forward<T>, backward_data<T>, backward_weights<T>},
            channel_sums<T>,
            column_sums<T>,
            add_to_channels<T>};
}

}  // namespace

const ConvolutionKernels convolution_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
