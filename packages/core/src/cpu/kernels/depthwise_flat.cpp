// Depthwise convolution: each output channel is the correlation of one input plane with one small filter.
//
// Note [Flat planes]
// A plane is copied into a zero-padded buffer in which its rows and columns are sorted by their remainder modulo
// the stride: element (y, x) of the padded plane is in phase (y % sy, x % sx), at (y / sy, x / sx). Then the input
// of output (i, j) under tap (ky, kx) is at i * pitch + j + offset. The offset depends on the tap only, for any
// stride and dilation. So a plane is one long vector, and a convolution is a weighted sum of shifted copies of it.
// Both gradients have the same form. Columns between the output's width and the pitch are computed unnecessarily
// and discarded.
#include "cpu/contiguous.h"
#include "cpu/convolution_kernels.h"
#include "cpu/kernels/simd.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

// Copies a row and adds `add`. Rows are short, so they are copied by masked vectors instead of loops with a
// remainder. Whole vectors are loaded where `readable` elements exist, because a masked load that misses the cache
// is slow.
template <class T>
RL_INLINE void copy_row(T* to, const T* from, int64_t n, int64_t readable, T add = T(0)) {
    constexpr int kL = kLanes<T>;
    for (int64_t i = 0; i < n; i += kL) {
        const Lanes<T> lanes(min(kL, n - i));
        const Vec<T> v = (i + kL <= readable ? load(from + i) : load(from + i, lanes)) + add;
        if (i + kL <= n) {
            store(to + i, v);
        } else {
            store(to + i, v, lanes);
        }
    }
}

// Sets to[i] = from[i * step]. `readable` elements exist from `from` on.
template <class T>
RL_INLINE void gather_row(T* to, const T* from, int64_t n, int64_t step, int64_t readable) {
    constexpr int kL = kLanes<T>;
    if (step != 2) {
        for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
        return;
    }
    LaneIndex<T> even;
#pragma GCC unroll 16
    for (int l = 0; l < kL; ++l) even[l] = 2 * l;
    int64_t i = 0;
    for (; i + kL <= n && 2 * (i + kL) <= readable; i += kL) {
        store(to + i, __builtin_shuffle(load(from + 2 * i), load(from + 2 * i + kL), even));
    }
    for (; i < n; i += kL) {
        const int64_t count = min(kL, n - i), elements = 2 * count - 1;
        const Vec<T> low = load(from + 2 * i, Lanes<T>(min(kL, elements)));
        const Vec<T> high = load(from + 2 * i + kL, Lanes<T>(max(0, elements - kL)));
        store(to + i, __builtin_shuffle(low, high, even), Lanes<T>(count));
    }
}

// Sets to[2 * i] = even[i] for i < n, and to[2 * i + 1] = odd[i] for i < odd_count, which is n or n - 1.
template <class T>
RL_INLINE void interleave_row(T* to, const T* even, const T* odd, int64_t n, int64_t odd_count) {
    constexpr int kL = kLanes<T>;
    LaneIndex<T> low, high;
#pragma GCC unroll 16
    for (int l = 0; l < kL; ++l) {
        low[l] = l / 2 + l % 2 * kL;
        high[l] = kL / 2 + l / 2 + l % 2 * kL;
    }
    int64_t i = 0;
    for (; i + kL <= odd_count; i += kL) {
        const Vec<T> a = load(even + i), b = load(odd + i);
        store(to + 2 * i, __builtin_shuffle(a, b, low));
        store(to + 2 * i + kL, __builtin_shuffle(a, b, high));
    }
    if (i == n) return;
    const Vec<T> a = load(even + i, Lanes<T>(n - i)), b = load(odd + i, Lanes<T>(odd_count - i));
    const int64_t left = n + odd_count - 2 * i;
    store(to + 2 * i, __builtin_shuffle(a, b, low), Lanes<T>(min(kL, left)));
    if (left > kL) store(to + 2 * i + kL, __builtin_shuffle(a, b, high), Lanes<T>(left - kL));
}

// The sizes of the buffers for one plane, and the positions of the plane's rows in them.
template <class T>
struct Flat {
    // The elements of one row of the plane that are in one phase. They are sx apart in the plane, beginning at
    // `plane`, and adjacent in the buffer, beginning at `buffer`.
    struct Run {
        int64_t plane, buffer, count;
    };

    const ConvolutionGeometry& g;
    int64_t sy, sx;  // strides, which are also the numbers of phases
    int64_t rows, pitch;  // the size of one phase
    int64_t phase_size;  // number of elements of a phase, including padding to whole vectors
    int64_t length;  // length of the flat output
    int64_t taps;
    int64_t* offset;  // offset of each tap within the buffer
    int64_t* phase;  // of each tap
    int64_t* shift;  // offset of each tap within its phase
    Run* runs;
    int64_t run_count = 0;
    bool skips;  // whether no tap reads some elements of the plane

    static constexpr int64_t kSlack = 4 * kLanes<T>;

    Flat(KernelContext& ctx, const ConvolutionGeometry& geometry)
        : g(geometry), sy(g.stride[1]), sx(g.stride[2]) {
        rows = g.out[1] + (g.kernel[1] - 1) * g.dilation[1] / sy;
        pitch = g.out[2] + (g.kernel[2] - 1) * g.dilation[2] / sx;
        length = g.out[1] * pitch;
        phase_size = ceil_div(rows * pitch + kSlack, kSlack) * kSlack;
        taps = g.kernel[1] * g.kernel[2];
        offset = scratch<int64_t>(ctx, 3 * taps);
        phase = offset + taps;
        shift = phase + taps;
        for (int64_t t = 0; t < taps; ++t) {
            const int64_t y = t / g.kernel[2] * g.dilation[1], x = t % g.kernel[2] * g.dilation[2];
            phase[t] = y % sy * sx + x % sx;
            shift[t] = y / sy * pitch + x / sx;
            offset[t] = phase[t] * phase_size + shift[t];
        }
        runs = scratch<Run>(ctx, sy * rows * sx);
        int64_t covered = 0;
        for (int64_t y = 0; y < sy * rows; ++y) {
            const int64_t plane_y = y - g.padding[1];
            if (plane_y < 0 || plane_y >= g.in[1]) continue;
            for (int64_t px = 0; px < sx; ++px) {
                // Column c of the phase is column c * sx + left of the plane.
                const int64_t left = px - g.padding[2];
                const int64_t first = left >= 0 ? 0 : ceil_div(-left, sx);
                const int64_t last = left >= g.in[2] ? 0 : min(pitch, (g.in[2] - 1 - left) / sx + 1);
                if (first >= last) continue;
                runs[run_count++] = {plane_y * g.in[2] + first * sx + left,
                                     (y % sy * sx + px) * phase_size + y / sy * pitch + first, last - first};
                covered += last - first;
            }
        }
        skips = covered < g.in[1] * g.in[2];
    }

    int64_t input_size() const { return sy * sx * phase_size; }
    // The buffer has one more block than the output, because a row may be read beyond its end.
    int64_t output_size() const { return (ceil_div(length, kSlack) + 1) * kSlack; }

    // Copies a plane to the buffer, whose padding must already be zero. `readable` elements exist from `plane` on.
    void fill(T* buffer, const T* plane, int64_t readable) const {
        for (int64_t r = 0; r < run_count; ++r) {
            const Run run = runs[r];
            if (sx == 1) {
                copy_row(buffer + run.buffer, plane + run.plane, run.count, readable - run.plane);
            } else {
                gather_row(buffer + run.buffer, plane + run.plane, run.count, sx, readable - run.plane);
            }
        }
    }
    void take(const T* buffer, T* plane) const {
        for (int64_t r = 0; r < run_count; ++r) {
            const Run run = runs[r];
            if (sx == 1) {
                copy_row(plane + run.plane, buffer + run.buffer, run.count, phase_size);
                continue;
            }
            if (sx == 2 && r + 1 < run_count) {
                // The other phase of the same row begins one element earlier or later.
                const Run next = runs[r + 1];
                const bool first = next.plane == run.plane + 1 || next.plane + 1 == run.plane;
                const Run even = next.plane < run.plane ? next : run,
                          odd = next.plane < run.plane ? run : next;
                if (first && even.count - odd.count >= 0 && even.count - odd.count <= 1) {
                    interleave_row(plane + even.plane, buffer + even.buffer, buffer + odd.buffer, even.count,
                                   odd.count);
                    ++r;
                    continue;
                }
            }
            for (int64_t i = 0; i < run.count; ++i) plane[run.plane + i * sx] = buffer[run.buffer + i];
        }
    }
    // Copies the rows of the result to the output, without the gaps between them.
    void crop(T* out, const T* result, T add) const {
        for (int64_t i = 0; i < g.out[1]; ++i)
            copy_row(out + i * g.out[2], result + i * pitch, g.out[2], kSlack, add);
    }
    // Copies the rows of the output to the buffer, with gaps between them that must already be zero.
    void spread(T* buffer, const T* out) const {
        const int64_t size = g.out[1] * g.out[2];
        for (int64_t i = 0; i < g.out[1]; ++i) {
            copy_row(buffer + i * pitch, out + i * g.out[2], g.out[2], size - i * g.out[2]);
        }
    }
};

// Computes out[i] = sum over taps of weight[t] * in[offset[t] + i], for i in whole blocks of vectors that cover [0,
// n).
template <class T>
void correlate(T* out, const T* in, const T* weight, const int64_t* offset, int64_t taps, int64_t n) {
    constexpr int kL = kLanes<T>;
    for (int64_t i = 0; i < n; i += 4 * kL) {
        Vec<T> s[4] = {};
        for (int64_t t = 0; t < taps; ++t) {
            const Vec<T> w = broadcast<T>(weight[t]);
            const T* x = in + offset[t] + i;
#pragma GCC unroll 4
            for (int p = 0; p < 4; ++p) s[p] += w * load(x + p * kL);
        }
#pragma GCC unroll 4
        for (int p = 0; p < 4; ++p) store(out + i + p * kL, s[p]);
    }
}

// Adds the sum of a[i] * in[offset[t] + i] to sums[t]. `a` is zero from n to the end of its last block.
template <class T>
void correlate_taps(T* sums, const T* a, const T* in, const int64_t* offset, int64_t taps, int64_t n) {
    constexpr int kL = kLanes<T>;
    constexpr int kGroup = 9;
    for (int64_t t = 0; t < taps; t += kGroup) {
        const int64_t count = min(kGroup, taps - t);
        Vec<T> s[kGroup] = {};
        if (count == kGroup) {
            for (int64_t i = 0; i < n; i += kL) {
                const Vec<T> x = load(a + i);
#pragma GCC unroll 9
                for (int p = 0; p < kGroup; ++p) s[p] += x * load(in + offset[t + p] + i);
            }
        } else {
            for (int64_t i = 0; i < n; i += kL) {
                const Vec<T> x = load(a + i);
                for (int p = 0; p < count; ++p) s[p] += x * load(in + offset[t + p] + i);
            }
        }
        for (int p = 0; p < count; ++p) sums[t + p] += sum(s[p]);
    }
}

// Runs body(first, last, buffers) for groups of planes, with `size` zeroed elements for each plane of the group.
// The body does each step for all planes of a group before the next step, so that a load does not wait for the
// overlapping stores just before it.
template <class T, class Body>
void run_planes(KernelContext& ctx, int64_t planes, int64_t size, Body&& body) {
    constexpr int64_t kPerThread = 1 << 14, kGroup = 16;  // elements, planes
    const int64_t group = max(1, min(kGroup, 24576 / static_cast<int64_t>(sizeof(T)) / size));
    const int64_t workers = max(1, min(min(num_threads(), planes), planes * size / kPerThread));
    T* buffers = scratch<T>(ctx, size * group * workers);
    __builtin_memset(buffers, 0, sizeof(T) * static_cast<size_t>(size * group * workers));
    parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
        for (int64_t w = begin; w < end; ++w) {
            const int64_t last = planes * (w + 1) / workers;
            for (int64_t p = planes * w / workers; p < last; p += group) {
                body(p, min(last, p + group), buffers + w * size * group);
            }
        }
    });
}

template <class T>
void forward(KernelContext& ctx, const ConvolutionGeometry& g, const T* in, const T* weight, const T* bias,
             T* out) {
    const Flat<T> flat(ctx, g);
    const int64_t multiplier = g.out_channels / g.in_channels, plane = g.in[1] * g.in[2],
                  size = g.out[1] * g.out[2];
    const int64_t planes = g.batch * g.in_channels, stride = flat.input_size() + flat.output_size();
    run_planes<T>(ctx, planes, stride, [&](int64_t first, int64_t last, T* buffers) {
        for (int64_t p = first; p < last; ++p) {
            flat.fill(buffers + (p - first) * stride, in + p * plane, (planes - p) * plane);
        }
        for (int64_t m = 0; m < multiplier; ++m) {
            for (int64_t p = first; p < last; ++p) {
                T* input = buffers + (p - first) * stride;
                const T* w = weight + (p * multiplier + m) % g.out_channels * flat.taps;
                correlate(input + flat.input_size(), input, w, flat.offset, flat.taps, flat.length);
            }
            for (int64_t p = first; p < last; ++p) {
                const int64_t image = p * multiplier + m;
                const T* result = buffers + (p - first) * stride + flat.input_size();
                flat.crop(out + image * size, result, bias == nullptr ? T(0) : bias[image % g.out_channels]);
            }
        }
    });
}

// The gradient of element q of a phase is the sum of weight[t] * grad_out[q - shift[t]] over the taps of that
// phase.
template <class T>
void backward_data(KernelContext& ctx, const ConvolutionGeometry& g, T* grad_in, const T* weight,
                   const T* grad_out) {
    const Flat<T> flat(ctx, g);
    const int64_t multiplier = g.out_channels / g.in_channels, plane = g.in[1] * g.in[2],
                  size = g.out[1] * g.out[2];
    // Lists the taps of each phase and their offsets into the spread gradients, which are preceded by `lead` zeros.
    int64_t lead = 0;
    for (int64_t t = 0; t < flat.taps; ++t) lead = max(lead, flat.shift[t]);
    const int64_t phases = flat.sy * flat.sx;
    int64_t* offset = scratch<int64_t>(ctx, flat.taps);
    int64_t* order = scratch<int64_t>(ctx, flat.taps);
    int64_t* begin = scratch<int64_t>(ctx, phases + 1);
    int64_t n = 0;
    for (int64_t p = 0; p < phases; ++p) {
        begin[p] = n;
        for (int64_t t = 0; t < flat.taps; ++t) {
            if (flat.phase[t] != p) continue;
            order[n] = t;
            offset[n++] = lead - flat.shift[t];
        }
    }
    begin[phases] = n;
    const int64_t spread_size = ceil_div(lead + flat.phase_size + Flat<T>::kSlack, 16) * 16;
    const int64_t taps = ceil_div(flat.taps, 16) * 16, stride = spread_size + 2 * flat.input_size() + taps;
    run_planes<T>(ctx, g.batch * g.in_channels, stride, [&](int64_t first, int64_t last, T* buffers) {
        for (int64_t m = 0; m < multiplier; ++m) {
            for (int64_t p = first; p < last; ++p) {
                flat.spread(buffers + (p - first) * stride + lead, grad_out + (p * multiplier + m) * size);
            }
            for (int64_t p = first; p < last; ++p) {
                T* spread = buffers + (p - first) * stride;
                T* result = spread + spread_size;
                T* part = result + flat.input_size();
                T* sorted = part + flat.input_size();
                const T* w = weight + (p * multiplier + m) % g.out_channels * flat.taps;
                for (int64_t i = 0; i < flat.taps; ++i) sorted[i] = w[order[i]];
                for (int64_t q = 0; q < phases; ++q) {
                    correlate((m == 0 ? result : part) + q * flat.phase_size, spread, sorted + begin[q],
                              offset + begin[q], begin[q + 1] - begin[q], flat.rows * flat.pitch);
                }
                if (m == 0) continue;
                for (int64_t i = 0; i < flat.input_size(); ++i) result[i] += part[i];
            }
        }
        for (int64_t p = first; p < last; ++p) {
            T* target = grad_in + p * plane;
            if (flat.skips) __builtin_memset(target, 0, sizeof(T) * static_cast<size_t>(plane));
            flat.take(buffers + (p - first) * stride + spread_size, target);
        }
    });
}

template <class T>
void backward_weights(KernelContext& ctx, const ConvolutionGeometry& g, T* grad_weight, const T* in,
                      const T* grad_out) {
    const Flat<T> flat(ctx, g);
    const int64_t multiplier = g.out_channels / g.in_channels, plane = g.in[1] * g.in[2],
                  size = g.out[1] * g.out[2];
    const int64_t stride = flat.input_size() + flat.output_size();
    run_planes<T>(ctx, g.in_channels, stride, [&](int64_t first, int64_t last, T* buffers) {
        const int64_t taps = multiplier * flat.taps;
        __builtin_memset(grad_weight + first * taps, 0,
                         sizeof(T) * static_cast<size_t>((last - first) * taps));
        for (int64_t n = 0; n < g.batch; ++n) {
            for (int64_t c = first; c < last; ++c) {
                const int64_t image = n * g.in_channels + c;
                flat.fill(buffers + (c - first) * stride, in + image * plane,
                          (g.batch * g.in_channels - image) * plane);
            }
            for (int64_t m = 0; m < multiplier; ++m) {
                for (int64_t c = first; c < last; ++c) {
                    flat.spread(buffers + (c - first) * stride + flat.input_size(),
                                grad_out + (n * g.out_channels + c * multiplier + m) * size);
                }
                for (int64_t c = first; c < last; ++c) {
                    const T* input = buffers + (c - first) * stride;
                    correlate_taps(grad_weight + c * taps + m * flat.taps, input + flat.input_size(), input,
                                   flat.offset, flat.taps, flat.length);
                }
            }
        }
    });
}

template <class T>
constexpr ConvolutionWays<T> table() {
    return {forward<T>, backward_data<T>, backward_weights<T>};
}

}  // namespace

const FlatKernels flat_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
