// Pooling in two steps: the rows under a window are combined into one row, then neighbours in that row are combined
// into outputs. Both steps process adjacent elements.
#include "cpu/pool_kernels.h"

#include <type_traits>

#include "cpu/contiguous.h"
#include "cpu/kernels/rows.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int64_t kElementsPerThread = 1 << 14;

int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

// Runs body(plane, buffer) for all planes, where each thread has a buffer of `size` elements.
template <class B, class Body>
void run_planes(KernelContext& ctx, const PoolGeometry& g, int64_t size, Body&& body) {
    const int64_t workers =
        max(1, min(min(num_threads(), g.planes), g.planes * g.in_size() / kElementsPerThread));
    size = (size + 15) / 16 * 16;
    B* buffers = scratch<B>(ctx, size * workers);
    parallel_for(0, workers, 1, [&](int64_t first, int64_t last) {
        for (int64_t w = first; w < last; ++w) {
            for (int64_t p = g.planes * w / workers; p < g.planes * (w + 1) / workers; ++p)
                body(p, buffers + w * size);
        }
    });
}

// The part of output `o`'s window along one dimension that is inside the input, in steps of the dilation.
struct Window {
    int64_t start;  // input position of step 0, which may be outside
    int64_t first, last;  // the steps inside are [first, last)
    Window(const PoolGeometry& g, int d, int64_t o) : start(o * g.stride[d] - g.padding[d]) {
        const int64_t step = g.dilation[d];
        first = start >= 0 ? 0 : (-start + step - 1) / step;
        last = start >= g.in[d] ? 0 : min(g.kernel[d], (g.in[d] - 1 - start) / step + 1);
    }
};

// The rows of the input under one output row.
struct Rows {
    const PoolGeometry& g;
    Window z, y;
    Rows(const PoolGeometry& geometry, int64_t row)
        : g(geometry), z(geometry, 0, row / geometry.out[1]), y(geometry, 1, row % geometry.out[1]) {}

    template <class Body>
    [[gnu::always_inline]] void each(Body&& body) const {
        for (int64_t i = z.first; i < z.last; ++i) {
            for (int64_t j = y.first; j < y.last; ++j) {
                body((z.start + i * g.dilation[0]) * g.in[1] + y.start + j * g.dilation[1]);
            }
        }
    }
};

// --- maximum -----------------------------------------------------------------------------------------------

template <class T>
using Index = std::remove_reference_t<decltype(LaneIndex<T>{}[0])>;
template <class T>
using IndexVec = Vec<Index<T>>;

template <class T>
RL_INLINE IndexVec<T> load_index(const Index<T>* p) {
    IndexVec<T> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

// Replaces `best` by `v` where `v` is larger. NaN is larger than any number. The first of equal numbers is
// selected, and the last of several NaNs. `later` means that no position in `at` precedes `position`.
template <class T, bool later>
RL_INLINE void take_larger(Vec<T>& best, IndexVec<T>& position, Vec<T> v, IndexVec<T> at) {
    IndexVec<T> nan = (IndexVec<T>)(v != v);
    if constexpr (!later) nan &= ~((IndexVec<T>)(best != best) & (at < position));
    const IndexVec<T> better = (IndexVec<T>)(v > best) | nan | ((IndexVec<T>)(v == best) & (at < position));
    best = (Vec<T>)((better & (IndexVec<T>)v) | (~better & (IndexVec<T>)best));
    position = (better & at) | (~better & position);
}

// Replaces `best` in the same way, but without positions.
template <class T>
RL_INLINE void take_larger(Vec<T>& best, Vec<T> v) {
    const IndexVec<T> better = (IndexVec<T>)(v > best) | (IndexVec<T>)(v != v);
    best = better ? v : best;
}

// Loads the elements p[step * l], which may be adjacent, every second element, or any.
template <class V, class E>
RL_INLINE V strided(const E* p, int64_t step) {
    constexpr int kL = sizeof(V) / sizeof(E);
    V low, high;
    __builtin_memcpy(&low, p, sizeof low);
    if (step == 1) return low;
    if (step == 2) {
        __builtin_memcpy(&high, p + kL, sizeof high);
        Vec<std::conditional_t<sizeof(E) == 4, int32_t, int64_t>> even;
#pragma GCC unroll 16
        for (int l = 0; l < kL; ++l) even[l] = 2 * l;
        return __builtin_shuffle(low, high, even);
    }
    alignas(64) E gathered[kL];
    for (int l = 0; l < kL; ++l) gathered[l] = p[l * step];
    __builtin_memcpy(&low, gathered, sizeof low);
    return low;
}

template <class T, bool kIndices>
void max_pool(KernelContext& ctx, const PoolGeometry& g, T* out, int64_t* indices, const T* in) {
    constexpr int kL = kLanes<T>;
    // The row of column maxima includes the padding on both sides, and slack for whole vectors of windows.
    const int64_t width = g.in[2], left = g.padding[2];
    const int64_t reach = (g.out[2] + kL) * g.stride[2] + g.kernel[2] * g.dilation[2] + 2 * kL;
    const int64_t length = max(left + width, reach) + kL;
    // Whether the column maxima are the elements themselves.
    const bool copies =
        !kIndices && g.kernel[0] == 1 && g.kernel[1] == 1 && g.padding[0] == 0 && g.padding[1] == 0;
    // A position after all others, so that any element is selected before it, even minus infinity.
    constexpr auto nowhere = static_cast<Index<T>>(~uint64_t{0} >> 1 >> (64 - 8 * sizeof(T)));
    run_planes<T>(ctx, g, 2 * length, [&](int64_t plane, T* values) {
        Index<T>* positions = reinterpret_cast<Index<T>*>(values + length);
        const T* x = in + plane * g.in_size();
        const auto leave_out = [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                values[i] = -static_cast<T>(__builtin_inf());
                if constexpr (kIndices) positions[i] = nowhere;
            }
        };
        leave_out(0, left);
        leave_out(left + width, length);
        IndexVec<T> count;
#pragma GCC unroll 16
        for (int l = 0; l < kL; ++l) count[l] = l;
        for (int64_t row = 0; row < g.out[0] * g.out[1]; ++row) {
            const Rows rows(g, row);
            if (copies) {
                rows.each([&](int64_t r) {
                    map_row(values + left, width,
                            [&](int64_t j, auto lanes) { return load(x + r * width + j, lanes); });
                });
            }
            for (int64_t j = copies ? width : 0; j < width; j += kL) {
                const Lanes<T> lanes(min(kL, width - j));
                Vec<T> best = -static_cast<T>(__builtin_inf()) - Vec<T>{};
                IndexVec<T> position = nowhere - IndexVec<T>{};
                rows.each([&](int64_t r) {
                    const Vec<T> v =
                        j + kL <= width ? load(x + r * width + j) : load(x + r * width + j, lanes);
                    if constexpr (kIndices)
                        take_larger<T, true>(best, position, v, static_cast<Index<T>>(r * width + j) + count);
                    else take_larger<T>(best, v);
                });
                if (j + kL <= width) {
                    store(values + left + j, best);
                    if constexpr (kIndices)
                        __builtin_memcpy(positions + left + j, &position, sizeof position);
                } else {
                    store(values + left + j, best, lanes);
                    if constexpr (kIndices)
                        store(reinterpret_cast<T*>(positions + left + j), (Vec<T>)position, lanes);
                }
            }
            T* y = out + plane * g.out_size() + row * g.out[2];
            for (int64_t j = 0; j < g.out[2]; j += kL) {
                const int64_t at = j * g.stride[2], n = min(kL, g.out[2] - j);
                Vec<T> best = strided<Vec<T>>(values + at, g.stride[2]);
                if constexpr (!kIndices) {
                    for (int64_t k = 1; k < g.kernel[2]; ++k)
                        take_larger<T>(best, strided<Vec<T>>(values + at + k * g.dilation[2], g.stride[2]));
                    store(y + j, best, Lanes<T>(n));
                    continue;
                }
                IndexVec<T> position = strided<IndexVec<T>>(positions + at, g.stride[2]);
                for (int64_t k = 1; k < g.kernel[2]; ++k) {
                    const int64_t tap = at + k * g.dilation[2];
                    take_larger<T, false>(best, position, strided<Vec<T>>(values + tap, g.stride[2]),
                                          strided<IndexVec<T>>(positions + tap, g.stride[2]));
                }
                store(y + j, best, Lanes<T>(n));
                Index<T> lanes[kL];
                __builtin_memcpy(lanes, &position, sizeof position);
                int64_t* to = indices + plane * g.out_size() + row * g.out[2] + j;
                for (int64_t l = 0; l < n; ++l) to[l] = lanes[l] == nowhere ? -1 : lanes[l];
            }
        }
    });
}

template <class T>
void max_pool_of(KernelContext& ctx, const PoolGeometry& g, T* out, int64_t* indices, const T* in) {
    if (indices == nullptr) max_pool<T, false>(ctx, g, out, nullptr, in);
    else max_pool<T, true>(ctx, g, out, indices, in);
}

template <class T>
bool max_backward(const PoolGeometry& g, T* grad_in, const T* grad_out, const int64_t* indices) {
    const int64_t in = g.in_size(), out = g.out_size();
    const auto positions = static_cast<uint64_t>(in);
    bool fits = true;
    parallel_for(0, g.planes, kElementsPerThread / (in + 1) + 1, [&](int64_t first, int64_t last) {
        for (int64_t p = first; p < last; ++p) {
            T* dx = grad_in + p * in;
            __builtin_memset(dx, 0, sizeof(T) * static_cast<size_t>(in));
            for (int64_t i = 0; i < out; ++i) {
                const auto position = static_cast<uint64_t>(indices[p * out + i]);
                if (position >= positions) [[unlikely]] {
                    if (indices[p * out + i] == -1) continue;  // window without elements
                    __atomic_store_n(&fits, false, __ATOMIC_RELAXED);
                    return;
                }
                dx[position] += grad_out[p * out + i];
            }
        }
    });
    return fits;
}

// --- average -----------------------------------------------------------------------------------------------

// Returns the extent of output o's window along dimension d that the divisor counts.
int64_t extent(const PoolGeometry& g, PoolDivisor divisor, int d, int64_t o) {
    const int64_t start = o * g.stride[d] - g.padding[d],
                  end = min(start + g.kernel[d], g.in[d] + g.padding[d]);
    return divisor.include_padding ? end - start : min(end, g.in[d]) - max(start, 0);
}

// Writes the divisors of the sums at each column of one output row.
template <class T>
void fill_divisors(const PoolGeometry& g, PoolDivisor divisor, int64_t z, int64_t y, T* divisors) {
    if (divisor.override_with != 0) {
        for (int64_t j = 0; j < g.out[2]; ++j) divisors[j] = static_cast<T>(divisor.override_with);
        return;
    }
    const int64_t rows = extent(g, divisor, 0, z) * extent(g, divisor, 1, y);
    for (int64_t j = 0; j < g.out[2]; ++j) divisors[j] = static_cast<T>(rows * extent(g, divisor, 2, j));
}

template <class T>
void average(KernelContext& ctx, const PoolGeometry& g, PoolDivisor divisor, T* out, const T* in) {
    constexpr int kL = kLanes<T>;
    const int64_t width = g.in[2], left = g.padding[2], rows = g.out[0] * g.out[1];
    const int64_t length = max(left + width, (g.out[2] + kL) * g.stride[2] + g.kernel[2] + 2 * kL) + kL;
    T* divisors = scratch<T>(ctx, rows * g.out[2]);
    for (int64_t r = 0; r < rows; ++r)
        fill_divisors(g, divisor, r / g.out[1], r % g.out[1], divisors + r * g.out[2]);
    run_planes<T>(ctx, g, length, [&](int64_t plane, T* sums) {
        const T* x = in + plane * g.in_size();
        for (int64_t i = 0; i < length; ++i) sums[i] = T(0);
        for (int64_t row = 0; row < rows; ++row) {
            const Rows under(g, row);
            map_row(sums + left, width, [&](int64_t j, auto lanes) {
                Vec<T> s = {};
                under.each([&](int64_t r) { s += load(x + r * width + j, lanes); });
                return s;
            });
            T* y = out + plane * g.out_size() + row * g.out[2];
            map_row(y, g.out[2], [&](int64_t j, auto lanes) {
                Vec<T> s = {};
                for (int64_t k = 0; k < g.kernel[2]; ++k)
                    s += strided<Vec<T>>(sums + j * g.stride[2] + k, g.stride[2]);
                return s / load(divisors + row * g.out[2] + j, lanes);
            });
        }
    });
}

template <class T>
void average_backward(KernelContext& ctx, const PoolGeometry& g, PoolDivisor divisor, T* grad_in,
                      const T* grad_out) {
    const int64_t width = g.in[2], rows = g.out[0] * g.out[1];
    T* divisors = scratch<T>(ctx, rows * g.out[2]);
    for (int64_t r = 0; r < rows; ++r)
        fill_divisors(g, divisor, r / g.out[1], r % g.out[1], divisors + r * g.out[2]);
    run_planes<T>(ctx, g, width, [&](int64_t plane, T* buffer) {
        T* dx = grad_in + plane * g.in_size();
        __builtin_memset(dx, 0, sizeof(T) * static_cast<size_t>(g.in_size()));
        for (int64_t row = 0; row < rows; ++row) {
            const T* dy = grad_out + plane * g.out_size() + row * g.out[2];
            const T* d = divisors + row * g.out[2];
            for (int64_t j = 0; j < width; ++j) buffer[j] = T(0);
            for (int64_t j = 0; j < g.out[2]; ++j) {
                const Window w(g, 2, j);
                const T share = dy[j] / d[j];
                for (int64_t k = w.first; k < w.last; ++k) buffer[w.start + k] += share;
            }
            Rows(g, row).each([&](int64_t r) {
                map_row(dx + r * width, width, [&](int64_t j, auto lanes) {
                    return load(dx + r * width + j, lanes) + load(buffer + j, lanes);
                });
            });
        }
    });
}

// --- adaptive ----------------------------------------------------------------------------------------------

struct Range {
    int64_t begin, end;
    Range(const PoolGeometry& g, int d, int64_t o)
        : begin(o * g.in[d] / g.out[d]), end(((o + 1) * g.in[d] + g.out[d] - 1) / g.out[d]) {}
    int64_t size() const { return end - begin; }
};

// Returns the windows along a row, which are the same for all rows.
Range* column_ranges(KernelContext& ctx, const PoolGeometry& g) {
    Range* ranges = scratch<Range>(ctx, g.out[2]);
    for (int64_t j = 0; j < g.out[2]; ++j) ranges[j] = Range(g, 2, j);
    return ranges;
}

// Whether the only window is the whole plane.
bool is_global(const PoolGeometry& g) { return g.out_size() == 1; }

template <class T>
void adaptive_average(KernelContext& ctx, const PoolGeometry& g, T* out, const T* in) {
    if (is_global(g)) {
        const int64_t size = g.in_size();
        parallel_for(0, g.planes, kElementsPerThread / (size + 1) + 1, [&](int64_t first, int64_t last) {
            for (int64_t p = first; p < last; ++p)
                out[p] = row_sum(in + p * size, size) / static_cast<T>(size);
        });
        return;
    }
    const Range* columns = column_ranges(ctx, g);
    const int64_t width = g.in[2];
    run_planes<T>(ctx, g, width, [&](int64_t plane, T* buffer) {
        const T* x = in + plane * g.in_size();
        for (int64_t row = 0; row < g.out[0] * g.out[1]; ++row) {
            const Range z(g, 0, row / g.out[1]), y(g, 1, row % g.out[1]);
            map_row(buffer, width, [&](int64_t k, auto lanes) {
                Vec<T> s = {};
                for (int64_t i = z.begin; i < z.end; ++i) {
                    for (int64_t j = y.begin; j < y.end; ++j)
                        s += load(x + (i * g.in[1] + j) * width + k, lanes);
                }
                return s;
            });
            T* to = out + plane * g.out_size() + row * g.out[2];
            for (int64_t j = 0; j < g.out[2]; ++j) {
                T total = T(0);
                for (int64_t k = columns[j].begin; k < columns[j].end; ++k) total += buffer[k];
                to[j] = total / static_cast<T>(z.size() * y.size() * columns[j].size());
            }
        }
    });
}

template <class T>
void adaptive_average_backward(KernelContext& ctx, const PoolGeometry& g, T* grad_in, const T* grad_out) {
    const int64_t size = g.in_size(), width = g.in[2];
    if (is_global(g)) {
        parallel_for(0, g.planes, kElementsPerThread / (size + 1) + 1, [&](int64_t first, int64_t last) {
            for (int64_t p = first; p < last; ++p) {
                const Vec<T> share = broadcast<T>(grad_out[p] / static_cast<T>(size));
                map_row(grad_in + p * size, size, [&](int64_t, auto) { return share; });
            }
        });
        return;
    }
    const Range* columns = column_ranges(ctx, g);
    run_planes<T>(ctx, g, width, [&](int64_t plane, T* buffer) {
        T* dx = grad_in + plane * size;
        __builtin_memset(dx, 0, sizeof(T) * static_cast<size_t>(size));
        for (int64_t row = 0; row < g.out[0] * g.out[1]; ++row) {
            const Range z(g, 0, row / g.out[1]), y(g, 1, row % g.out[1]);
            const T* dy = grad_out + plane * g.out_size() + row * g.out[2];
            for (int64_t k = 0; k < width; ++k) buffer[k] = T(0);
            for (int64_t j = 0; j < g.out[2]; ++j) {
                const T share = dy[j] / static_cast<T>(z.size() * y.size() * columns[j].size());
                for (int64_t k = columns[j].begin; k < columns[j].end; ++k) buffer[k] += share;
            }
            for (int64_t i = z.begin; i < z.end; ++i) {
                for (int64_t j = y.begin; j < y.end; ++j) {
                    T* to = dx + (i * g.in[1] + j) * width;
                    map_row(to, width, [&](int64_t k, auto lanes) {
                        return load(to + k, lanes) + load(buffer + k, lanes);
                    });
                }
            }
        }
    });
}

template <class T>
void adaptive_max(KernelContext&, const PoolGeometry& g, T* out, int64_t* indices, const T* in) {
    parallel_for(0, g.planes, kElementsPerThread / (g.in_size() + 1) + 1, [&](int64_t first, int64_t last) {
        for (int64_t o = first * g.out_size(); o < last * g.out_size(); ++o) {
            const T* values = in + o / g.out_size() * g.in_size();
            const int64_t at = o % g.out_size();
            const Range z(g, 0, at / (g.out[1] * g.out[2])), y(g, 1, at / g.out[2] % g.out[1]),
                x(g, 2, at % g.out[2]);
            int64_t position = (z.begin * g.in[1] + y.begin) * g.in[2] + x.begin;
            T best = values[position];
            for (int64_t i = z.begin; i < z.end; ++i) {
                for (int64_t j = y.begin; j < y.end; ++j) {
                    for (int64_t k = x.begin; k < x.end; ++k) {
                        const int64_t here = (i * g.in[1] + j) * g.in[2] + k;
                        const T v = values[here];
                        if (v > best || v != v) {
                            best = v;
                            position = here;
                        }
                    }
                }
            }
            out[o] = best;
            if (indices != nullptr) indices[o] = position;
        }
    });
}

template <class T>
constexpr PoolLoops<T> table() {
    return {max_pool_of<T>,      max_backward<T>,     average<T>,
            average_backward<T>, adaptive_average<T>, adaptive_average_backward<T>,
            adaptive_max<T>};
}

}  // namespace

const PoolKernels pool_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
