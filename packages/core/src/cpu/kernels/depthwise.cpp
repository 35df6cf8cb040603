// Depthwise convolution of many channels: each lane of a vector holds an element of one channel.
//
// Note [Channels in lanes]
// The planes of kLanes channels of an image are copied into a buffer in which the elements of all these channels at one
// pixel form a vector. The pixels are in row-major order, between rows and columns of zeros for the padding. Then all
// loads are aligned, for any width, stride and dilation, each tap of the filters is one vector too, and only the copies
// depend on the layout of the tensors: planes are transposed, and channels-last pixels are copied as they are. Large
// planes are processed in strips of rows, whose buffers fit into the cache.
#include "cpu/contiguous.h"
#include "cpu/convolution_kernels.h"
#include "cpu/kernels/simd.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }
int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

// The buffers of one strip should fit into the second-level cache, with room for the planes themselves.
constexpr int64_t kBufferBytes = 192 << 10;
constexpr int64_t kSumsBytes = 4 << 20;  // maximum size of the items' weight gradients
constexpr int64_t kWorkPerThread = 1 << 14;  // multiply-adds

// The elements of `count` channels of an image. The channels of a pixel are `channel_step` apart, and the pixels of a
// channel are `pixel_step` apart. When an element is read, the element `ahead` positions later is prefetched, because it is
// needed soon (by the thread's next item if the map is row-major). The rows of small planes are too short for the hardware
// prefetcher.
template <class T>
struct Planes {
    T* data;
    int64_t channel_step, pixel_step, count;
    int64_t ahead = 0;

    Planes from_pixel(int64_t pixel) const {
        return {data + pixel * pixel_step, channel_step, pixel_step, count, ahead};
    }
};

// The rows [top, top + rows) and the columns [left, left + pitch) of the planes of a group of channels. Pixels outside
// of the planes are zero.
struct Tile {
    int64_t top, rows, left, pitch;
    int64_t pixels() const { return rows * pitch; }
    // Index of a pixel of the planes in the tile.
    int64_t at(int64_t y, int64_t x) const { return (y - top) * pitch + x - left; }
};

// Copies `pixels` pixels to the vectors where[0], where[1], ... of a buffer. Missing channels become zero.
template <class T>
void gather_pixels(T* to, const int32_t* where, const Planes<const T>& from, int64_t pixels) {
    constexpr int kL = kLanes<T>;
    const auto put = [&](int64_t p, Vec<T> v) { store(to + int64_t{where[p]} * kL, v); };
    if (from.channel_step == 1) {
        const Lanes<T> lanes(from.count);
        for (int64_t p = 0; p < pixels; ++p) {
            const T* x = from.data + p * from.pixel_step;
            put(p, from.count == kL ? load(x) : load(x, lanes));
            __builtin_prefetch(x + from.ahead, 0, 2);
        }
        return;
    }
    if (from.pixel_step != 1) {
        // A channels-last map from which only every n-th channel is read.
        for (int64_t p = 0; p < pixels; ++p) {
            Vec<T> v{};
            for (int64_t l = 0; l < from.count; ++l)
                v[l] = from.data[p * from.pixel_step + l * from.channel_step];
            put(p, v);
        }
        return;
    }
    for (int64_t p = 0; p < pixels; p += kL) {
        const int64_t n = min(kL, pixels - p);
        const Lanes<T> lanes(n);
        Vec<T> r[kL];
#pragma GCC unroll 16
        for (int l = 0; l < kL; ++l) {
            if (l >= from.count) {
                r[l] = Vec<T>{};
                continue;
            }
            const T* x = from.data + l * from.channel_step + p;
            r[l] = n == kL ? load(x) : load(x, lanes);
            __builtin_prefetch(x + from.ahead, 0, 2);
        }
        transpose<T>(r);
#pragma GCC unroll 16
        for (int l = 0; l < kL; ++l) {
            if (l < n) put(p + l, r[l]);
        }
    }
}

// Copies consecutive vectors of a buffer to pixels. The buffer is readable up to a whole square of vectors.
template <class T>
void scatter_pixels(const Planes<T>& to, const T* from, int64_t pixels) {
    constexpr int kL = kLanes<T>;
    if (to.channel_step == 1) {
        const Lanes<T> lanes(to.count);
        for (int64_t p = 0; p < pixels; ++p) {
            T* x = to.data + p * to.pixel_step;
            const Vec<T> v = load(from + p * kL);
            if (to.count == kL) store(x, v);
            else store(x, v, lanes);
            __builtin_prefetch(x + to.ahead, 1, 2);
        }
        return;
    }
    if (to.pixel_step != 1) {
        for (int64_t p = 0; p < pixels; ++p) {
            for (int64_t l = 0; l < to.count; ++l)
                to.data[p * to.pixel_step + l * to.channel_step] = from[p * kL + l];
        }
        return;
    }
    for (int64_t p = 0; p < pixels; p += kL) {
        const int64_t n = min(kL, pixels - p);
        Vec<T> r[kL];
#pragma GCC unroll 16
        for (int l = 0; l < kL; ++l) r[l] = load(from + (p + l) * kL);
        transpose<T>(r);
        const Lanes<T> lanes(n);
#pragma GCC unroll 16
        for (int l = 0; l < kL; ++l) {
            if (l >= to.count) break;
            T* x = to.data + l * to.channel_step + p;
            if (n == kL) store(x, r[l]);
            else store(x, r[l], lanes);
            __builtin_prefetch(x + to.ahead, 1, 2);
        }
    }
}

// Fills a tile with the pixels of planes of `height` x `width`. The columns outside of the planes must already be zero.
// `where` has the index of each pixel of a whole row, and of the rows after it, in a tile of this pitch.
template <class T>
void fill(T* buffer, const Tile& tile, const int32_t* where, const Planes<const T>& from, int64_t height,
          int64_t width) {
    constexpr int kL = kLanes<T>;
    const auto clear = [&](int64_t first, int64_t last) {
        if (last <= first) return;
        __builtin_memset(buffer + (first - tile.top) * tile.pitch * kL, 0,
                         sizeof(T) * static_cast<size_t>((last - first) * tile.pitch * kL));
    };
    const int64_t end = tile.top + tile.rows;
    const int64_t first = min(end, max(0, tile.top)), last = max(first, min(height, end));
    clear(tile.top, first);
    clear(last, end);
    gather_pixels(buffer + tile.at(first, 0) * kL, where, from.from_pixel(first * width),
                  (last - first) * width);
}

// Taps of the filters: the vector of weights of tap t is `weight[t]`, and it multiplies the pixel that is `offset[t]`
// vectors after the pixel of the first tap.
struct Taps {
    const int32_t* weight;
    const int64_t* offset;
    int64_t count;
};

// Computes P results, each of which is a start vector plus the sum over the taps. With `start_step` 0, all results have
// the same start vector.
template <class T, int P>
RL_INLINE void correlate_few(T* out, int64_t out_step, const T* in, int64_t in_step, const T* weights,
                             const Taps& taps, const T* start, int64_t start_step) {
    constexpr int kL = kLanes<T>;
    Vec<T> s[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) s[p] = load(start + p * start_step);
    for (int64_t t = 0; t < taps.count; ++t) {
        const Vec<T> w = load(weights + int64_t{taps.weight[t]} * kL);
        const T* x = in + taps.offset[t] * kL;
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) s[p] += w * load(x + p * in_step);
    }
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) store(out + p * out_step, s[p]);
}

// Computes n results. If all have the same start vector, some of the last results may be computed twice, which does not
// change them.
template <class T>
void correlate(T* out, int64_t out_step, const T* in, int64_t in_step, const T* weights, const Taps& taps,
               const T* start, int64_t start_step, int64_t n) {
    const auto few = [&]<int P>(int64_t i) {
        correlate_few<T, P>(out + i * out_step, out_step, in + i * in_step, in_step, weights, taps,
                            start + i * start_step, start_step);
    };
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) few.template operator()<8>(i);
    if (i == n) return;
    if (start_step == 0 && n >= 8) return few.template operator()<8>(n - 8);
    for (; i + 4 <= n; i += 4) few.template operator()<4>(i);
    if (i == n) return;
    if (start_step == 0 && n >= 4) return few.template operator()<4>(n - 4);
    for (; i < n; ++i) few.template operator()<1>(i);
}

// Sets the vector sums[t] to the sum, over the results of some rows, of the gradient times the input under tap t.
template <class T>
void correlate_taps(T* sums, const T* grad, int64_t grad_pitch, const T* in, int64_t in_pitch,
                    int64_t in_step, const int64_t* offset, int64_t taps, int64_t rows, int64_t columns) {
    constexpr int kL = kLanes<T>;
    constexpr int kGroup = 9;
    for (int64_t t = 0; t < taps; t += kGroup) {
        const int64_t count = min(kGroup, taps - t);
        Vec<T> s[kGroup] = {};
        for (int64_t i = 0; i < rows; ++i) {
            const T* g = grad + i * grad_pitch;
            const T* x = in + i * in_pitch;
            if (count == kGroup) {
                for (int64_t j = 0; j < columns; ++j) {
                    const Vec<T> v = load(g + j * kL);
#pragma GCC unroll 9
                    for (int p = 0; p < kGroup; ++p) s[p] += v * load(x + j * in_step + offset[t + p] * kL);
                }
            } else {
                for (int64_t j = 0; j < columns; ++j) {
                    const Vec<T> v = load(g + j * kL);
                    for (int p = 0; p < count; ++p) s[p] += v * load(x + j * in_step + offset[t + p] * kL);
                }
            }
        }
        for (int p = 0; p < count; ++p) store(sums + (t + p) * kL, s[p]);
    }
}

// How a convolution is divided into items, which are strips of the planes of kLanes channels of an image.
template <class T>
struct Division {
    static constexpr int kL = kLanes<T>;
    const ConvolutionGeometry& g;
    int64_t multiplier, taps;
    int64_t groups;  // number of groups of channels in an image
    int64_t strip_rows = 0, strips = 0;  // of the output
    int64_t in_pitch;

    explicit Division(const ConvolutionGeometry& geometry)
        : g(geometry),
          multiplier(g.out_channels / g.in_channels),
          taps(g.kernel[1] * g.kernel[2]),
          groups(ceil_div(g.in_channels, kL)),
          in_pitch(max((g.out[2] - 1) * g.stride[2] + (g.kernel[2] - 1) * g.dilation[2] + 1,
                       g.in[2] + g.padding[2])) {}

    // Chooses the rows of a strip such that pixels(rows) vectors fit into the buffers. Strips overlap, and the rows that a
    // strip shares with its neighbours are copied for each strip. So a strip has at least as many rows as it shares.
    template <class Pixels>
    void divide(Pixels&& pixels) {
        const int64_t least = max(1, (g.kernel[1] - 1) * g.dilation[1] / g.stride[1]);
        strip_rows = g.out[1];
        while (strip_rows > least && pixels(strip_rows) * kVectorBytes > kBufferBytes) {
            strip_rows = max(least, (strip_rows + 1) / 2);
        }
        strips = ceil_div(g.out[1], strip_rows);
        strip_rows = ceil_div(g.out[1], strips);
        strips = ceil_div(g.out[1], strip_rows);
    }

    // Returns the planes of a group of channels of an image: the channels first, first + every, first + 2 every, and so
    // on.
    template <class E>
    Planes<E> planes(const DepthwiseMap<E>& map, int64_t image, int64_t channels, int64_t size, int64_t first,
                     int64_t every) const {
        E* data = map.data + image * channels * size;
        const int64_t count = min(kL, ceil_div(channels - first, every));
        if (map.channels_last) return {data + first, every, channels, count, 32 * channels};
        return {data + first * size, every * size, 1, count, strips == 1 ? kL * every * size : size / strips};
    }

    int64_t items_of_image() const { return groups * strips; }
    int64_t first_row(int64_t strip) const { return strip * strip_rows; }
    int64_t last_row(int64_t strip) const { return min(g.out[1], (strip + 1) * strip_rows); }

    // Returns the tile of the input that output rows [first, last) read.
    Tile input(int64_t first, int64_t last) const {
        return {first * g.stride[1] - g.padding[1],
                (last - first - 1) * g.stride[1] + (g.kernel[1] - 1) * g.dilation[1] + 1, -g.padding[2],
                in_pitch};
    }

    // The number of threads that compute the items of some images.
    int64_t workers(int64_t images) const {
        const int64_t work = g.batch * g.out_channels * g.out[1] * g.out[2] * taps;
        return max(1, min(min(num_threads(), images * items_of_image()), work / kWorkPerThread));
    }

    // Allocates `size` zeroed elements for each thread. `size` is a multiple of kL.
    T* buffers(KernelContext& ctx, int64_t images, int64_t size) const {
        const int64_t all = size * workers(images);
        return static_cast<T*>(
            __builtin_memset(scratch<T>(ctx, all), 0, sizeof(T) * static_cast<size_t>(all)));
    }

    // Runs body(image, first channel, strip, item, buffer) for the items of images [first, end). Items are numbered from 0.
    // Each thread processes its items in the order of memory.
    template <class Body>
    void run(int64_t first_image, int64_t end_image, bool channels_last, T* buffers, int64_t size,
             Body&& body) const {
        const int64_t each = items_of_image(), items = (end_image - first_image) * each,
                      workers = this->workers(end_image - first_image);
        parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
            for (int64_t w = begin; w < end; ++w) {
                for (int64_t i = items * w / workers; i < items * (w + 1) / workers; ++i) {
                    const int64_t n = i / each, within = i % each;
                    const int64_t group = channels_last ? within % groups : within / strips;
                    const int64_t strip = channels_last ? within / groups : within % strips;
                    body(first_image + n, group * kL, strip, n * each + group * strips + strip,
                         buffers + w * size);
                }
            }
        });
    }

    // Returns the taps of the filters within the input's tile.
    Taps input_taps(KernelContext& ctx) const {
        int32_t* weight = scratch<int32_t>(ctx, taps);
        int64_t* offset = scratch<int64_t>(ctx, taps);
        for (int64_t t = 0; t < taps; ++t) {
            weight[t] = static_cast<int32_t>(t);
            offset[t] = t / g.kernel[2] * g.dilation[1] * in_pitch + t % g.kernel[2] * g.dilation[2];
        }
        return {weight, offset, taps};
    }

    // Returns the position of each pixel of `rows` rows of `width` in a tile.
    static const int32_t* positions(KernelContext& ctx, int64_t rows, int64_t width, int64_t pitch) {
        int32_t* where = scratch<int32_t>(ctx, rows * width);
        for (int64_t y = 0; y < rows; ++y) {
            for (int64_t x = 0; x < width; ++x) where[y * width + x] = static_cast<int32_t>(y * pitch + x);
        }
        return where;
    }

    // The weights of the filters m of a group of channels: a vector for each tap.
    template <class E>
    Planes<E> filters(E* weight, int64_t channel, int64_t m) const {
        return {weight + (channel * multiplier + m) * taps, multiplier * taps, 1,
                min(kL, g.in_channels - channel)};
    }
};

template <class T>
void forward(KernelContext& ctx, const ConvolutionGeometry& g, DepthwiseMap<const T> in, const T* weight,
             const T* bias, DepthwiseMap<T> out) {
    constexpr int kL = kLanes<T>;
    Division<T> d(g);
    const auto in_pixels = [&](int64_t rows) { return d.input(0, rows).pixels(); };
    const auto out_pixels = [&](int64_t rows) { return rows * g.out[2] + kL; };
    d.divide([&](int64_t rows) { return in_pixels(rows) + out_pixels(rows); });
    const int64_t tile_rows = d.input(0, d.strip_rows).rows;
    const int32_t* where = d.positions(ctx, tile_rows, g.in[2], d.in_pitch);
    const Taps taps = d.input_taps(ctx);
    const int64_t input_size = in_pixels(d.strip_rows) * kL, output_size = out_pixels(d.strip_rows) * kL;
    const int64_t in_size = g.in[1] * g.in[2], out_size = g.out[1] * g.out[2];
    const int64_t size = input_size + output_size + (d.taps + 1) * kL;
    d.run(0, g.batch, in.channels_last, d.buffers(ctx, g.batch, size), size,
          [&](int64_t n, int64_t c, int64_t strip, int64_t, T* buffer) {
              T *result = buffer + input_size, *w = result + output_size, *start = w + d.taps * kL;
              const int64_t first = d.first_row(strip), last = d.last_row(strip);
              const int64_t count = min(kL, g.in_channels - c);
              const Tile tile = d.input(first, last);
              fill<T>(buffer, tile, where, d.planes(in, n, g.in_channels, in_size, c, 1), g.in[1], g.in[2]);
              for (int64_t m = 0; m < d.multiplier; ++m) {
                  gather_pixels<T>(w, taps.weight, d.filters(weight, c, m), d.taps);
                  for (int64_t l = 0; l < count; ++l)
                      start[l] = bias == nullptr ? T(0) : bias[(c + l) * d.multiplier + m];
                  for (int64_t i = first; i < last; ++i) {
                      correlate(result + (i - first) * g.out[2] * kL, kL,
                                buffer + (i - first) * g.stride[1] * d.in_pitch * kL, g.stride[2] * kL, w,
                                taps, start, 0, g.out[2]);
                  }
                  scatter_pixels(
                      d.planes(out, n, g.out_channels, out_size, c * d.multiplier + m, d.multiplier)
                          .from_pixel(first * g.out[2]),
                      result, (last - first) * g.out[2]);
              }
          });
}

// Computes the gradient of the input from a tile of the output's gradients. Element (y, x) of the padded input is in phase
// (y % sy, x % sx), and it is read by the taps of this phase only.
template <class T>
struct InputGradient {
    const ConvolutionGeometry& g;
    int64_t sy, sx, left, pitch;
    int32_t* weight;  // the taps, sorted by phase
    int64_t* offset;
    int64_t* begin;  // index of the first tap of each phase

    InputGradient(KernelContext& ctx, const ConvolutionGeometry& geometry)
        : g(geometry), sy(g.stride[1]), sx(g.stride[2]) {
        left = min(0, first_reader(0, 2));
        pitch = max(g.out[2], last_reader(g.in[2] - 1, 2) + 1) - left;
        const int64_t taps = g.kernel[1] * g.kernel[2];
        weight = scratch<int32_t>(ctx, taps);
        offset = scratch<int64_t>(ctx, taps);
        begin = scratch<int64_t>(ctx, sy * sx + 1);
        int64_t n = 0;
        for (int64_t phase = 0; phase < sy * sx; ++phase) {
            begin[phase] = n;
            for (int64_t t = 0; t < taps; ++t) {
                const int64_t y = phase / sx - t / g.kernel[2] * g.dilation[1],
                              x = phase % sx - t % g.kernel[2] * g.dilation[2];
                if (y % sy != 0 || x % sx != 0) continue;
                weight[n] = static_cast<int32_t>(t);
                offset[n++] = y / sy * pitch + x / sx;
            }
        }
        begin[sy * sx] = n;
    }

    // Return the first and the last position of the output whose window may contain position p of the input, in
    // dimension d.
    int64_t first_reader(int64_t p, int d) const {
        return -floor_div((g.kernel[d] - 1) * g.dilation[d] - p - g.padding[d], g.stride[d]);
    }
    int64_t last_reader(int64_t p, int d) const { return floor_div(p + g.padding[d], g.stride[d]); }

    // Returns the first input row whose gradient is computed together with output row `row`.
    int64_t input_row(int64_t row) const { return row >= g.out[1] ? g.in[1] : min(g.in[1], row * sy); }

    // Returns the tile that contains the gradients of output rows [from, to), and all output gradients from which the
    // gradients of input rows [first, last) are computed.
    Tile tile(int64_t first, int64_t last, int64_t from, int64_t to) const {
        if (first < last)
            from = min(from, first_reader(first, 1)), to = max(to, last_reader(last - 1, 1) + 1);
        return {from, to - from, left, pitch};
    }

    // Computes row y of the gradient. If `add` is true, the sums are added to the row.
    void row(T* out, const T* grads, const Tile& tile, const T* weights, const T* zeros, bool add,
             int64_t y) const {
        constexpr int kL = kLanes<T>;
        for (int64_t x = 0; x < min(sx, g.in[2]); ++x) {
            const int64_t row = y + g.padding[1], column = x + g.padding[2];
            const int64_t phase = row % sy * sx + column % sx, n = begin[phase];
            T* target = out + x * kL;
            correlate(target, sx * kL, grads + tile.at(row / sy, column / sx) * kL, kL, weights,
                      {weight + n, offset + n, begin[phase + 1] - n}, add ? target : zeros, add ? sx * kL : 0,
                      ceil_div(g.in[2] - x, sx));
        }
    }
};

// Adds the weight gradients of the items of some images to the totals of their groups of channels. `size` is the number of
// elements of one such gradient.
template <class T>
void add_items(const Division<T>& d, T* totals, const T* sums, int64_t images, int64_t size) {
    for (int64_t group = 0; group < d.groups; ++group) {
        T* total = totals + group * size;
        for (int64_t n = 0; n < images; ++n) {
            for (int64_t strip = 0; strip < d.strips; ++strip) {
                const T* more = sums + (n * d.items_of_image() + group * d.strips + strip) * size;
                for (int64_t i = 0; i < size; i += kLanes<T>)
                    store(total + i, load(total + i) + load(more + i));
            }
        }
    }
}

template <class T>
void backward(KernelContext& ctx, const ConvolutionGeometry& g, DepthwiseMap<T> grad_in, T* grad_weight,
              DepthwiseMap<const T> in, const T* weight, DepthwiseMap<const T> grad_out) {
    constexpr int kL = kLanes<T>;
    Division<T> d(g);
    const InputGradient<T> gradient(ctx, g);
    const bool with_data = grad_in.data != nullptr, with_weight = grad_weight != nullptr;
    const auto target_row = [&](int64_t row) { return with_data ? gradient.input_row(row) : 0; };
    const auto grads_of = [&](int64_t first, int64_t last) {
        return gradient.tile(target_row(first), target_row(last), first, last);
    };
    d.divide([&](int64_t rows) {
        const int64_t first = (g.out[1] - rows) / 2;  // a strip in the middle reads the most rows
        return grads_of(first, first + rows).pixels() + with_weight * d.input(0, rows).pixels() +
               (target_row(first + rows) - target_row(first)) * g.in[2];
    });
    int64_t grad_rows = 0, target_rows = 0;
    for (int64_t strip = 0; strip < d.strips; ++strip) {
        const int64_t first = d.first_row(strip), last = d.last_row(strip);
        grad_rows = max(grad_rows, grads_of(first, last).rows);
        target_rows = max(target_rows, target_row(last) - target_row(first));
    }
    const Tile whole = d.input(0, d.strip_rows);
    const int32_t* in_positions = d.positions(ctx, whole.rows, g.in[2], d.in_pitch);
    const int32_t* grad_positions = d.positions(ctx, grad_rows, g.out[2], gradient.pitch);
    const Taps taps = d.input_taps(ctx);
    const int64_t input_size = with_weight * whole.pixels() * kL,
                  grads_size = grad_rows * gradient.pitch * kL,
                  target_size = (target_rows * g.in[2] + kL) * kL;
    const int64_t sums_size = d.multiplier * d.taps * kL;
    // The weight gradients of the items are added up after every few images, so that their buffers stay small.
    const int64_t item_bytes = sums_size * static_cast<int64_t>(sizeof(T));
    const int64_t images =
        with_weight ? max(1, min(g.batch, kSumsBytes / (d.items_of_image() * item_bytes))) : g.batch;
    T *sums = nullptr, *totals = nullptr;
    if (with_weight) {
        sums = scratch<T>(ctx, images * d.items_of_image() * sums_size);
        const int64_t size = d.groups * sums_size + kL * kL;  // scatter_pixels reads whole squares
        totals = scratch<T>(ctx, size);
        __builtin_memset(totals, 0, sizeof(T) * static_cast<size_t>(size));
    }
    const int64_t in_size = g.in[1] * g.in[2], out_size = g.out[1] * g.out[2];
    const auto compute = [&](int64_t n, int64_t c, int64_t strip, int64_t item, T* buffer) {
        T *grads = buffer + input_size, *target = grads + grads_size, *w = target + target_size;
        const T* zeros = w + d.taps * kL;
        const int64_t first = d.first_row(strip), last = d.last_row(strip);
        const int64_t from = target_row(first), to = target_row(last);
        const Tile tile = grads_of(first, last);
        if (with_weight) {
            fill<T>(buffer, d.input(first, last), in_positions, d.planes(in, n, g.in_channels, in_size, c, 1),
                    g.in[1], g.in[2]);
        }
        for (int64_t m = 0; m < d.multiplier; ++m) {
            fill<T>(grads, tile, grad_positions,
                    d.planes(grad_out, n, g.out_channels, out_size, c * d.multiplier + m, d.multiplier),
                    g.out[1], g.out[2]);
            if (with_weight) {
                correlate_taps(sums + item * sums_size + m * d.taps * kL, grads + tile.at(first, 0) * kL,
                               tile.pitch * kL, buffer, g.stride[1] * d.in_pitch * kL, g.stride[2] * kL,
                               taps.offset, d.taps, last - first, g.out[2]);
            }
            if (!with_data) continue;
            gather_pixels<T>(w, taps.weight, d.filters(weight, c, m), d.taps);
            for (int64_t y = from; y < to; ++y) {
                gradient.row(target + (y - from) * g.in[2] * kL, grads, tile, w, zeros, m > 0, y);
            }
        }
        if (!with_data) return;
        scatter_pixels(d.planes(grad_in, n, g.in_channels, in_size, c, 1).from_pixel(from * g.in[2]), target,
                       (to - from) * g.in[2]);
    };
    const int64_t size = input_size + grads_size + target_size + (d.taps + 1) * kL;
    T* const buffers = d.buffers(ctx, images, size);
    for (int64_t n = 0; n < g.batch; n += images) {
        const int64_t end = min(g.batch, n + images);
        d.run(n, end, grad_out.channels_last, buffers, size, compute);
        if (with_weight) add_items(d, totals, sums, end - n, sums_size);
    }
    if (!with_weight) return;
    for (int64_t c = 0; c < g.in_channels; c += kL) {
        for (int64_t m = 0; m < d.multiplier; ++m) {
            scatter_pixels(d.filters(grad_weight, c, m), totals + c / kL * sums_size + m * d.taps * kL,
                           d.taps);
        }
    }
}

template <class T>
constexpr DepthwiseWays<T> table() {
    return {forward<T>, backward<T>};
}

}  // namespace

const DepthwiseKernels depthwise_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
