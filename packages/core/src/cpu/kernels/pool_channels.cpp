// Pooling of channels-last tensors. The channels of one pixel are adjacent and form a row. The rows of the pixels in a
// window are combined element by element.
#include <type_traits>

#include "cpu/contiguous.h"
#include "cpu/kernels/rows.h"
#include "cpu/pool_kernels.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int64_t kElementsPerThread = 1 << 14;

int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

// The positions that an output reads along one dimension: `count` positions that begin at `begin`, in steps of `step`.
struct Span {
    int64_t begin, count, step;
    double extent;  // the size of the window by which a mean is divided
};

// The spans of all outputs, dimension by dimension.
struct Windows {
    const Span* of[3];
    const PoolGeometry& g;

    template <class Make>
    Windows(KernelContext& ctx, const PoolGeometry& geometry, Make&& make) : g(geometry) {
        Span* spans = scratch<Span>(ctx, g.out[0] + g.out[1] + g.out[2]);
        for (int d = 0; d < 3; ++d) {
            of[d] = spans;
            for (int64_t o = 0; o < g.out[d]; ++o) *spans++ = make(d, o);
        }
    }

    // The three spans of one output of a plane.
    struct Window {
        const Span &z, &y, &x;
        const PoolGeometry& g;

        // Calls body(position) for each position of the window, in order.
        template <class Body>
        [[gnu::always_inline]] void each(Body&& body) const {
            for (int64_t i = 0; i < z.count; ++i) {
                for (int64_t j = 0; j < y.count; ++j) {
                    int64_t at =
                        ((z.begin + i * z.step) * g.in[1] + y.begin + j * y.step) * g.in[2] + x.begin;
                    for (int64_t k = 0; k < x.count; ++k, at += x.step) body(at);
                }
            }
        }
        double extent() const { return z.extent * y.extent * x.extent; }
    };
    Window at(int64_t output) const {
        return {of[0][output / (g.out[1] * g.out[2])], of[1][output / g.out[2] % g.out[1]],
                of[2][output % g.out[2]], g};
    }
};

// The windows of a pool with kernel, stride, padding and dilation.
Windows sliding(KernelContext& ctx, const PoolGeometry& g, bool include_padding) {
    return Windows(ctx, g, [&](int d, int64_t o) {
        const int64_t start = o * g.stride[d] - g.padding[d], step = g.dilation[d];
        const int64_t first = start >= 0 ? 0 : (-start + step - 1) / step;
        const int64_t last = start >= g.in[d] ? 0 : min(g.kernel[d], (g.in[d] - 1 - start) / step + 1);
        const int64_t end = min(start + g.kernel[d], g.in[d] + g.padding[d]);
        const int64_t extent = include_padding ? end - start : min(end, g.in[d]) - max(start, 0);
        return Span{start + first * step, max(last - first, 0), step, static_cast<double>(extent)};
    });
}

// The windows of an adaptive pool, which divide the input as evenly as possible.
Windows dividing(KernelContext& ctx, const PoolGeometry& g) {
    return Windows(ctx, g, [&](int d, int64_t o) {
        const int64_t begin = o * g.in[d] / g.out[d], end = ((o + 1) * g.in[d] + g.out[d] - 1) / g.out[d];
        return Span{begin, end - begin, 1, static_cast<double>(end - begin)};
    });
}

// Calls body(output, first element of its plane) for all outputs, in parallel.
template <class T, class Body>
void each_output(const PoolGeometry& g, const T* in, Body&& body) {
    const int64_t outputs = g.planes * g.out_size(), plane = g.in_size() * g.channels;
    const int64_t work = g.planes * plane / (outputs + 1) + g.channels;
    parallel_for(0, outputs, kElementsPerThread / work + 1, [&](int64_t first, int64_t last) {
        for (int64_t o = first; o < last; ++o) body(o, in + o / g.out_size() * plane);
    });
}

// --- maximum ---

template <class T>
using Index = std::remove_reference_t<decltype(LaneIndex<T>{}[0])>;
template <class T>
using IndexVec = Vec<Index<T>>;

template <class T>
RL_INLINE IndexVec<T> larger_lanes(Vec<T> v, Vec<T> best) {  // NaN is larger than any number
    return (IndexVec<T>)(v > best) | (IndexVec<T>)(v != v);
}

template <class T>
void max_of_windows(const Windows& w, T* out, int64_t* indices, const T* in) {
    const PoolGeometry& g = w.g;
    constexpr int kL = kLanes<T>;
    constexpr auto least = -static_cast<T>(__builtin_inf());
    each_output(g, in, [&](int64_t o, const T* x) {
        const auto window = w.at(o % g.out_size());
        T* y = out + o * g.channels;
        if (indices == nullptr) {
            map_row(y, g.channels, [&](int64_t c, auto lanes) __attribute__((always_inline)) {
                Vec<T> best = broadcast<T>(least);
                window.each([&](int64_t at) __attribute__((always_inline)) {
                    const Vec<T> v = load(x + at * g.channels + c, lanes);
                    best = larger_lanes<T>(v, best) ? v : best;
                });
                return best;
            });
            return;
        }
        int64_t* positions = indices + o * g.channels;
        map_row(y, g.channels, [&](int64_t c, auto lanes) __attribute__((always_inline)) {
            Vec<T> best = broadcast<T>(least);
            IndexVec<T> position = IndexVec<T>{} - 1;
            window.each([&](int64_t at) __attribute__((always_inline)) {
                const Vec<T> v = load(x + at * g.channels + c, lanes);
                // The first element is selected even if it is minus infinity.
                const IndexVec<T> better = larger_lanes<T>(v, best) | (position < 0);
                best = better ? v : best;
                position = better ? static_cast<Index<T>>(at) - IndexVec<T>{} : position;
            });
            Index<T> lane[kL];
            __builtin_memcpy(lane, &position, sizeof position);
            const int64_t n = min(kL, g.channels - c);
            if (n == kL) {
                for (int l = 0; l < kL; ++l) positions[c + l] = lane[l];
            } else {
                for (int64_t l = 0; l < n; ++l) positions[c + l] = lane[l];
            }
            return best;
        });
    });
}

template <class T>
void max_pool(KernelContext& ctx, const PoolGeometry& g, T* out, int64_t* indices, const T* in) {
    max_of_windows(sliding(ctx, g, false), out, indices, in);
}

template <class T>
void adaptive_max(KernelContext& ctx, const PoolGeometry& g, T* out, int64_t* indices, const T* in) {
    max_of_windows(dividing(ctx, g), out, indices, in);
}

// Calls body(plane, first channel, end of channels) for blocks of channels of the input's planes, in parallel. A block spans whole
// cache lines.
template <class Body>
void each_block(const PoolGeometry& g, Body&& body) {
    const int64_t width = g.planes >= num_threads() ? g.channels : 64;
    const int64_t blocks = (g.channels + width - 1) / width;
    parallel_for(0, g.planes * blocks, kElementsPerThread / (g.in_size() * min(width, g.channels) + 1) + 1,
                 [&](int64_t first, int64_t last) {
                     for (int64_t b = first; b < last; ++b) {
                         const int64_t from = b % blocks * width;
                         body(b / blocks, from, min(from + width, g.channels));
                     }
                 });
}

// Writes zeros to some channels of a plane.
template <class T>
void clear_channels(const PoolGeometry& g, T* plane, int64_t from, int64_t to) {
    if (to - from == g.channels) {
        __builtin_memset(plane, 0, sizeof(T) * static_cast<size_t>(g.in_size() * g.channels));
        return;
    }
    for (int64_t i = 0; i < g.in_size(); ++i)
        __builtin_memset(plane + i * g.channels + from, 0, sizeof(T) * static_cast<size_t>(to - from));
}

template <class T>
bool max_backward(const PoolGeometry& g, T* grad_in, const T* grad_out, const int64_t* indices) {
    const auto positions = static_cast<uint64_t>(g.in_size());
    bool fits = true;
    each_block(g, [&](int64_t plane, int64_t from, int64_t to) {
        T* dx = grad_in + plane * g.in_size() * g.channels;
        clear_channels(g, dx, from, to);
        for (int64_t o = plane * g.out_size(); o < (plane + 1) * g.out_size(); ++o) {
            const T* dy = grad_out + o * g.channels;
            const int64_t* at = indices + o * g.channels;
            for (int64_t c = from; c < to; ++c) {
                const auto position = static_cast<uint64_t>(at[c]);
                if (position >= positions) [[unlikely]] {
                    if (at[c] == -1) continue;  // window without elements
                    __atomic_store_n(&fits, false, __ATOMIC_RELAXED);
                    return;
                }
                dx[static_cast<int64_t>(position) * g.channels + c] += dy[c];
            }
        }
    });
    return fits;
}

// --- average ---

template <class T>
T divisor_of(const Windows::Window& window, PoolDivisor divisor) {
    return static_cast<T>(divisor.override_with != 0 ? static_cast<double>(divisor.override_with)
                                                     : window.extent());
}

template <class T>
void mean_of_windows(const Windows& w, PoolDivisor divisor, T* out, const T* in) {
    const PoolGeometry& g = w.g;
    constexpr int kTogether = 4;  // vectors of adjacent channels, which are added in registers
    constexpr int64_t kL = kLanes<T>;
    each_output(g, in, [&](int64_t o, const T* x) {
        const auto window = w.at(o % g.out_size());
        const T by = divisor_of<T>(window, divisor);
        T* y = out + o * g.channels;
        int64_t c = 0;
        for (; c + kTogether * kL <= g.channels; c += kTogether * kL) {
            Vec<T> s[kTogether] = {};
            window.each([&](int64_t at) __attribute__((always_inline)) {
#pragma GCC unroll 4
                for (int k = 0; k < kTogether; ++k) s[k] += load(x + at * g.channels + c + k * kL);
            });
#pragma GCC unroll 4
            for (int k = 0; k < kTogether; ++k) store(y + c + k * kL, s[k] / by);
        }
        map_row(y + c, g.channels - c, [&](int64_t i, auto lanes) __attribute__((always_inline)) {
            Vec<T> s = {};
            window.each([&](int64_t at) __attribute__((always_inline)) {
                s += load(x + at * g.channels + c + i, lanes);
            });
            return s / by;
        });
    });
}

template <class T>
void average(KernelContext& ctx, const PoolGeometry& g, PoolDivisor divisor, T* out, const T* in) {
    mean_of_windows(sliding(ctx, g, divisor.include_padding), divisor, out, in);
}

template <class T>
void adaptive_average(KernelContext& ctx, const PoolGeometry& g, T* out, const T* in) {
    mean_of_windows(dividing(ctx, g), {false, 0}, out, in);
}

template <class T>
void share_over_windows(const Windows& w, PoolDivisor divisor, T* grad_in, const T* grad_out) {
    const PoolGeometry& g = w.g;
    each_block(g, [&](int64_t plane, int64_t from, int64_t to) {
        T* dx = grad_in + plane * g.in_size() * g.channels;
        clear_channels(g, dx, from, to);
        for (int64_t o = 0; o < g.out_size(); ++o) {
            const auto window = w.at(o);
            const T by = divisor_of<T>(window, divisor);
            const T* dy = grad_out + (plane * g.out_size() + o) * g.channels;
            for_each_vector<T>(to - from, [&](int64_t i, auto lanes, int) __attribute__((always_inline)) {
                const int64_t c = from + i;
                const Vec<T> share = load(dy + c, lanes) / by;
                window.each([&](int64_t at) __attribute__((always_inline)) {
                    T* target = dx + at * g.channels + c;
                    store(target, load(target, lanes) + share, lanes);
                });
            });
        }
    });
}

template <class T>
void average_backward(KernelContext& ctx, const PoolGeometry& g, PoolDivisor divisor, T* grad_in,
                      const T* grad_out) {
    share_over_windows(sliding(ctx, g, divisor.include_padding), divisor, grad_in, grad_out);
}

template <class T>
void adaptive_average_backward(KernelContext& ctx, const PoolGeometry& g, T* grad_in, const T* grad_out) {
    share_over_windows(dividing(ctx, g), {false, 0}, grad_in, grad_out);
}

template <class T>
constexpr PoolLoops<T> table() {
    return {max_pool<T>,         max_backward<T>,     average<T>,
            average_backward<T>, adaptive_average<T>, adaptive_average_backward<T>,
            adaptive_max<T>};
}

}  // namespace

const PoolKernels channel_pool_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
