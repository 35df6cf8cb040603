// Convolutions with 3x3 filters and stride 1 by minimal filtering. Tiles of the input and the filters are
// transformed, 36 matrix products multiply them, and the products are transformed to tiles of 4x4 outputs. This
// needs a quarter of the multiplications of a direct convolution. Tiles are processed in chunks that fit in the
// caches. Within a chunk, the threads divide first the channels, then the products, then the channels again, so
// that results do not depend on the number of threads.
#include "cpu/contiguous.h"
#include "cpu/convolution_kernels.h"
#include "cpu/kernels/gemm_micro.h"
#include "cpu/kernels/winograd_transforms.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

using namespace winograd;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Maximum number of bytes of transformed tiles in a chunk.
constexpr int64_t kChunkBytes = 6 << 20;

// --- the operands of the products --------------------------------------------------------------------------

// Transforms write their results in the order in which the tiles of the matrix product read them: panels of rows or
// columns, and within a panel the elements of one step along k after the other. Rows are written four at a time.
constexpr int64_t kRows = kRegisters == 32 ? 12 : 4;
constexpr int64_t kColumns = kPackedVectors * kLanes<float>;
constexpr int64_t kSteps = 256;  // steps along k before sums are written to memory

// The left operand of one product, with the shape (length, depth).
struct Left {
    int64_t length, depth;
    int64_t size() const { return length * depth; }
    static int64_t panel(int64_t i) { return i / kRows; }
    int64_t width(int64_t panel) const { return min(kRows, length - panel * kRows); }
    // Writes rows [i, i + 8) of one step, except rows beyond the last. `i` is a multiple of eight.
    void put(float* out, int64_t i, int64_t step, Eight v) const {
        for (int half = 0; half < 8 && i + half < length; half += 4) {
            const int64_t first = i + half, p = panel(first);
            float* o = out + p * kRows * depth + step * width(p) + first % kRows;
            const __m128 four =
                half == 0 ? _mm256_castps256_ps128((__m256)v) : _mm256_extractf128_ps((__m256)v, 1);
            if (first + 4 <= length) {
                _mm_storeu_ps(o, four);
            } else {
                for (int64_t l = 0; first + l < length; ++l) o[l] = four[l];
            }
        }
    }
};

// The right operand, with the shape (depth, length). The last panel is padded to whole vectors with values that are
// never read.
struct Right {
    int64_t length, depth;
    int64_t size() const { return round_up(length, kLanes<float>) * depth; }
    int64_t width(int64_t panel) const {
        return min(kColumns, round_up(length - panel * kColumns, kLanes<float>));
    }
    void put(float* out, int64_t i, int64_t step, Eight v) const {
        const int64_t p = i / kColumns;
        store_eight(out + p * kColumns * depth + step * width(p) + i % kColumns, v);
    }
};

// Computes c = a b, or c += a b if `add`. The rows of c are c_row apart.
void multiply(const Left& left, const float* a, const Right& right, const float* b, float* c, int64_t c_row,
              bool add) {
    for (int64_t k = 0; k < left.depth; k += kSteps) {
        for (int64_t i = 0; i < left.length; i += kRows) {
            const int64_t rows = left.width(i / kRows);
            for (int64_t j = 0; j < right.length; j += kColumns) {
                const int64_t width = right.width(j / kColumns), vectors = width / kLanes<float>;
                float* out = c + i * c_row + j;
                const Epilogue<float> epilogue{1.f, 1.f, k > 0 || add ? out : nullptr, c_row, 1};
                const TileArgs<float> t{min(kSteps, left.depth - k),
                                        a + i * left.depth + k * rows,
                                        1,
                                        rows,
                                        b + j * left.depth + k * width,
                                        width,
                                        out,
                                        c_row,
                                        min(right.length - j - width + kLanes<float>, kLanes<float>),
                                        epilogue,
                                        b,
                                        0};
                tiles<float, true>.fn[rows - 1][vectors - 1](t);
            }
        }
    }
}

// Runs body(point) for all points, on several threads.
template <class Body>
void for_points(Body&& body) {
    parallel_for(0, kPoints, 1, [&](int64_t first, int64_t last) {
        for (int64_t point = first; point < last; ++point) body(point);
    });
}

// Returns the distance between the matrices of two points. The same element of all 36 matrices is accessed in
// succession. If the distance were a multiple of a large power of two, all these addresses would belong to one set of the
// cache, which holds only a few lines.
int64_t point_distance(int64_t floats) { return round_up(floats, 1024) + 80; }

// --- tiles -------------------------------------------------------------------------------------------------

// Feature maps (batch, channels, height, width) that are divided into tiles. A tile begins at 4 * index - (top,
// left).
struct Maps {
    const float* data;
    int64_t channels, height, width, top, left;
};

// The division of maps into tiles. The tiles of a row belong to one image, and a chunk consists of several rows.
struct Tiling {
    int64_t rows, columns, all_rows;  // rows of tiles in an image, tiles in a row, rows in the batch
    int64_t chunk_rows;
    Tiling(int64_t batch, int64_t height, int64_t width, int64_t channels) {
        rows = ceil_div(height, kOut);
        columns = ceil_div(width, kOut);
        all_rows = batch * rows;
        const int64_t bytes = columns * channels * kPoints * static_cast<int64_t>(sizeof(float));
        chunk_rows = ceil_div(all_rows, ceil_div(all_rows * bytes, kChunkBytes));
    }
    // Returns the number of tiles in `count` rows.
    int64_t tiles(int64_t count) const { return count * columns; }
    // Returns the length of a row of elements that contains the tiles of one row. It is rounded up because elements
    // are read eight at a time.
    int64_t row_width() const { return round_up(kOut * columns + 8, 8); }
};

// Transforms of tiles along one dimension, from kSource elements to six.
struct OfInput {
    static constexpr int kSource = kTile;
    template <class V>
    [[gnu::always_inline]] static void apply(const V* x, V* y) {
#pragma GCC unroll 6
        for (int i = 0; i < kTile; ++i) y[i] = x[i];
        input_1d(y);
    }
};
struct OfGradient {
    static constexpr int kSource = kOut;
    template <class V>
    [[gnu::always_inline]] static void apply(const V* x, V* y) {
        gradient_1d(x, y);
    }
};

// Transforms the tiles of one row and channel along columns, in whole vectors. Writes six rows of elements that are
// `step` apart. The elements of `buffer` outside the image are not written and stay zero.
template <class Transform>
void transform_columns(const Maps& maps, const Tiling& tiling, int64_t channel, int64_t row,
                       const float* zeros, float* buffer, int64_t step) {
    const int64_t width = maps.width, y0 = row % tiling.rows * kOut - maps.top;
    const float* image = maps.data + (row / tiling.rows * maps.channels + channel) * maps.height * width;
    const float* source[Transform::kSource];
    for (int i = 0; i < Transform::kSource; ++i) {
        const int64_t y = y0 + i;
        source[i] = y < 0 || y >= maps.height ? zeros : image + y * width;
    }
    buffer += maps.left;
    auto eight = [&](int64_t x) {
        Eight v[Transform::kSource], t[kTile];
#pragma GCC unroll 6
        for (int i = 0; i < Transform::kSource; ++i) v[i] = load_eight(source[i] + x);
        Transform::apply(v, t);
#pragma GCC unroll 6
        for (int i = 0; i < kTile; ++i) store_eight(buffer + i * step + x, t[i]);
    };
    for (int64_t x = 0; x + 8 <= width; x += 8) eight(x);
    if (width % 8 == 0) return;
    if (width > 8) return eight(width - 8);
    for (int64_t x = 0; x < width; ++x) {
        float v[Transform::kSource], t[kTile];
        for (int i = 0; i < Transform::kSource; ++i) v[i] = source[i][x];
        Transform::apply(v, t);
        for (int i = 0; i < kTile; ++i) buffer[i * step + x] = t[i];
    }
}

// Transforms eight tiles, which begin at from[0..8), along rows. Calls put(point, vector) for all 36 points.
template <class Transform, class Put>
RL_INLINE void transform_rows(const float* const* from, int64_t step, Put&& put) {
    for (int i = 0; i < kTile; ++i) {
        Eight v[8], t[kTile];
#pragma GCC unroll 8
        for (int l = 0; l < 8; ++l) v[l] = load_eight(from[l] + i * step);
        transpose_eight(v);
        Transform::apply(v, t);
#pragma GCC unroll 6
        for (int j = 0; j < kTile; ++j) put(i * kTile + j, t[j]);
    }
}

// Returns the number of floats of a thread's buffer for the functions below. It holds eight channels of one row of
// tiles, or one channel of all rows of a chunk, and a row of zeros.
int64_t buffer_size(const Maps& maps, const Tiling& tiling) {
    return round_up(kTile * max(8, tiling.chunk_rows) * tiling.row_width() + round_up(maps.width, 8), 16);
}

// Runs body(item, buffer) for all items, with a zeroed buffer for each thread.
template <class Body>
void for_items(int64_t items, float* buffers, int64_t size, Body&& body) {
    const int64_t workers = min(num_threads(), items);
    parallel_for(0, workers, 1, [&](int64_t first, int64_t last) {
        for (int64_t w = first; w < last; ++w) {
            float* buffer = buffers + w * size;
            __builtin_memset(buffer, 0, sizeof(float) * static_cast<size_t>(size));
            for (int64_t i = items * w / workers; i < items * (w + 1) / workers; ++i) body(i, buffer);
        }
    });
}

// Transforms rows [first, first + count) of tiles. In the operand of the products, tiles are rows and channels are
// steps.
template <class Transform>
void tiles_as_rows(const Maps& maps, const Tiling& tiling, int64_t first, int64_t count, float* buffers,
                   const Right& operand, float* out, int64_t distance) {
    const int64_t width = tiling.row_width(), step = count * width, tiles = tiling.tiles(count),
                  size = buffer_size(maps, tiling);
    for_items(maps.channels, buffers, size, [&](int64_t channel, float* buffer) {
        const float* zeros = buffer + size - round_up(maps.width, 8);
        for (int64_t r = 0; r < count; ++r) {
            transform_columns<Transform>(maps, tiling, channel, first + r, zeros, buffer + r * width, step);
        }
        int64_t row = 0, column = 0;
        for (int64_t tile = 0; tile < tiles; tile += 8) {
            const float* from[8];
            for (int64_t l = 0; l < 8; ++l) {
                from[l] = buffer + row * width + column * kOut;
                if (tile + l + 1 >= tiles) continue;  // lanes without a tile repeat the last tile
                if (++column == tiling.columns) column = 0, ++row;
            }
            transform_rows<Transform>(from, step, [&](int point, Eight v) {
                operand.put(out + point * distance, tile, channel, v);
            });
        }
    });
}

// Does the same, but in the operand of the products channels are rows and tiles are steps.
template <class Transform, class Operand>
void channels_as_rows(const Maps& maps, const Tiling& tiling, int64_t first, int64_t count, float* buffers,
                      const Operand& operand, float* out, int64_t distance) {
    const int64_t width = tiling.row_width(), step = width, size = buffer_size(maps, tiling);
    for_items(ceil_div(maps.channels, 8), buffers, size, [&](int64_t group, float* buffer) {
        const float* zeros = buffer + size - round_up(maps.width, 8);
        const float* from[8];
        for (int64_t r = 0; r < count; ++r) {
            for (int64_t l = 0; l < 8; ++l) {
                const int64_t channel = min(8 * group + l, maps.channels - 1);
                from[l] = buffer + l * kTile * width;
                transform_columns<Transform>(maps, tiling, channel, first + r, zeros,
                                             buffer + l * kTile * width, step);
            }
            for (int64_t column = 0; column < tiling.columns; ++column) {
                transform_rows<Transform>(from, step, [&](int point, Eight v) {
                    operand.put(out + point * distance, 8 * group, r * tiling.columns + column, v);
                });
                for (const float*& f : from) f += kOut;
            }
        }
    });
}

// A range of the output's channels.
struct Channels {
    int64_t first, count, all;
};

// Transforms the products (channels, tiles) of all points to rows of output tiles. The rows of the products are
// `row_step` apart.
void transform_outputs(const Tiling& tiling, int64_t first, int64_t count, const float* products,
                       int64_t row_step, int64_t distance, const Channels& channels, const float* bias,
                       int64_t height, int64_t width, float* out) {
    const int64_t tiles = tiling.tiles(count);
    parallel_for(0, channels.count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
            const float* source = products + item * row_step;
            const int64_t channel = channels.first + item;
            const float add = bias == nullptr ? 0.f : bias[channel];
            int64_t row = first, column = 0;
            for (int64_t tile = 0; tile < tiles; tile += 8) {
                Eight partial[kOut][kTile];
                for (int j = 0; j < kTile; ++j) {
                    Eight x[kTile], y[kOut];
#pragma GCC unroll 6
                    for (int i = 0; i < kTile; ++i)
                        x[i] = load_eight(source + (i * kTile + j) * distance + tile);
                    output_1d(x, y);
#pragma GCC unroll 4
                    for (int i = 0; i < kOut; ++i) partial[i][j] = y[i];
                }
                alignas(32) float pixels[8][kOut][kOut];
                for (int i = 0; i < kOut; ++i) {
                    Eight y[8] = {};
                    output_1d(partial[i], y);
#pragma GCC unroll 4
                    for (int j = 0; j < kOut; ++j) y[j] += add;
                    transpose_eight(y);
#pragma GCC unroll 8
                    for (int l = 0; l < 8; ++l) __builtin_memcpy(pixels[l][i], &y[l], sizeof pixels[l][i]);
                }
                for (int64_t l = 0; l < min(8, tiles - tile); ++l) {
                    const int64_t y = row % tiling.rows * kOut, x = column * kOut;
                    float* o = out + ((row / tiling.rows * channels.all + channel) * height + y) * width + x;
                    const int64_t rows = min(kOut, height - y), columns = min(kOut, width - x);
                    for (int64_t i = 0; i < rows; ++i) {
                        if (columns == kOut) {
                            __builtin_memcpy(o + i * width, pixels[l][i], sizeof pixels[l][i]);
                        } else {
                            for (int64_t j = 0; j < columns; ++j) o[i * width + j] = pixels[l][i][j];
                        }
                    }
                    if (++column == tiling.columns) column = 0, ++row;
                }
            }
        }
    });
}

// --- filters -----------------------------------------------------------------------------------------------

// Transforms filters to the left operand. The nine elements of a filter begin at row * row_step + column *
// column_step, and are rotated by 180 degrees if `rotated`.
void transform_filters(const Left& operand, const float* weight, int64_t row_step, int64_t column_step,
                       bool rotated, float* out, int64_t distance) {
    const int64_t groups = ceil_div(operand.length, 8);
    parallel_for(0, groups, 1 + 512 / operand.depth, [&](int64_t first, int64_t last) {
        for (int64_t row = 8 * first; row < min(8 * last, operand.length); row += 8) {
            const int64_t count = min(8, operand.length - row);
            alignas(32) float taps[9][8] = {};
            for (int64_t column = 0; column < operand.depth; ++column) {
                const float* w = weight + row * row_step + column * column_step;
                for (int64_t l = 0; l < count; ++l) {
                    for (int t = 0; t < 9; ++t) taps[rotated ? 8 - t : t][l] = w[l * row_step + t];
                }
                Eight partial[3][kTile];
                for (int i = 0; i < 3; ++i) {
                    const Eight x[3] = {load_eight(taps[3 * i]), load_eight(taps[3 * i + 1]),
                                        load_eight(taps[3 * i + 2])};
                    filter_1d(x, partial[i]);
                }
                for (int j = 0; j < kTile; ++j) {
                    const Eight x[3] = {partial[0][j], partial[1][j], partial[2][j]};
                    Eight y[kTile];
                    filter_1d(x, y);
                    for (int i = 0; i < kTile; ++i)
                        operand.put(out + (i * kTile + j) * distance, row, column, y[i]);
                }
            }
        }
    });
}

// Computes the gradients of `count` filters, row-major, from the gradients of the transformed filters.
void transform_filter_gradients(int64_t count, const float* sums, int64_t distance, float* grad_weight) {
    parallel_for(0, ceil_div(count, 8), 512, [&](int64_t begin, int64_t end) {
        for (int64_t f = 8 * begin; f < min(8 * end, count); f += 8) {
            const int64_t lanes = min(8, count - f);
            Eight partial[3][kTile];
            for (int j = 0; j < kTile; ++j) {
                Eight x[kTile], y[3];
#pragma GCC unroll 6
                for (int i = 0; i < kTile; ++i) x[i] = load_eight(sums + (i * kTile + j) * distance + f);
                filter_gradient_1d(x, y);
                for (int i = 0; i < 3; ++i) partial[i][j] = y[i];
            }
            for (int i = 0; i < 3; ++i) {
                Eight y[3];
                filter_gradient_1d(partial[i], y);
                for (int j = 0; j < 3; ++j) {
                    for (int64_t l = 0; l < lanes; ++l) grad_weight[(f + l) * 9 + 3 * i + j] = y[j][l];
                }
            }
        }
    });
}

// --- the three directions ----------------------------------------------------------------------------------

// Number of bytes of transformed filters that are multiplied before the next filters are transformed. If there are
// at most kMostTransforms chunks, the filters are transformed again for each chunk, because reading transformed
// filters from memory takes longer.
constexpr int64_t kFilterBytes = 2 << 20;
constexpr int64_t kMostTransforms = 2;

// Convolves `maps` with `filters`, whose rows are output channels. Writes out (batch, channels, height, width).
void convolve(KernelContext& ctx, const Maps& maps, const Left& filters, const float* weight,
              int64_t row_step, int64_t column_step, bool rotated, const float* bias, int64_t batch,
              int64_t height, int64_t width, float* out) {
    const int64_t channels = filters.length, depth = filters.depth;
    const int64_t fit = kFilterBytes / (kPoints * depth * static_cast<int64_t>(sizeof(float)));
    const int64_t block = min(channels, max(24, fit / 24 * 24));  // output channels at a time
    const Tiling tiling(batch, height, width, depth + block);
    const bool keep = tiling.chunk_rows * kMostTransforms < tiling.all_rows;
    const int64_t most = round_up(tiling.tiles(tiling.chunk_rows), kLanes<float>);
    const int64_t filter_distance = point_distance((keep ? channels : block) * depth),
                  input_distance = point_distance(depth * most),
                  product_distance = point_distance(block * most);
    float* const transformed =
        cpu::scratch<float>(ctx, kPoints * (filter_distance + input_distance + product_distance) +
                                     num_threads() * buffer_size(maps, tiling));
    float* const inputs = transformed + kPoints * filter_distance;
    float* const products = inputs + kPoints * input_distance;
    float* const buffers = products + kPoints * product_distance;
    for (int64_t first = 0; first < tiling.all_rows; first += tiling.chunk_rows) {
        const int64_t count = min(tiling.chunk_rows, tiling.all_rows - first);
        const Right tiles{tiling.tiles(count), depth};
        tiles_as_rows<OfInput>(maps, tiling, first, count, buffers, tiles, inputs, input_distance);
        for (int64_t channel = 0; channel < channels; channel += block) {
            const Left part{min(block, channels - channel), depth};
            float* const points = transformed + (keep ? channel * depth : 0);
            if (first == 0 || !keep) {
                transform_filters(part, weight + channel * row_step, row_step, column_step, rotated, points,
                                  filter_distance);
            }
            for_points([&](int64_t point) {
                multiply(part, points + point * filter_distance, tiles, inputs + point * input_distance,
                         products + point * product_distance, most, false);
            });
            transform_outputs(tiling, first, count, products, most, product_distance,
                              {channel, part.length, channels}, bias, height, width, out);
        }
    }
}

void forward(KernelContext& ctx, const ConvolutionGeometry& g, const float* in, const float* weight,
             const float* bias, float* out) {
    const Maps maps{in, g.in_channels, g.in[1], g.in[2], g.padding[1], g.padding[2]};
    convolve(ctx, maps, {g.out_channels, g.in_channels}, weight, 9 * g.in_channels, 9, false, bias, g.batch,
             g.out[1], g.out[2], out);
}

void backward_data(KernelContext& ctx, const ConvolutionGeometry& g, float* grad_in, const float* weight,
                   const float* grad_out) {
    const Maps maps{grad_out, g.out_channels, g.out[1], g.out[2], 2 - g.padding[1], 2 - g.padding[2]};
    convolve(ctx, maps, {g.in_channels, g.out_channels}, weight, 9, 9 * g.in_channels, true, nullptr, g.batch,
             g.in[1], g.in[2], grad_in);
}

void backward_weights(KernelContext& ctx, const ConvolutionGeometry& g, float* grad_weight, const float* in,
                      const float* grad_out) {
    const Maps maps{in, g.in_channels, g.in[1], g.in[2], g.padding[1], g.padding[2]};
    const Maps gradients{grad_out, g.out_channels, g.out[1], g.out[2], 0, 0};
    const Tiling tiling(g.batch, g.out[1], g.out[2], g.in_channels + g.out_channels);
    const int64_t most = tiling.tiles(tiling.chunk_rows), filters = g.out_channels * g.in_channels;
    const int64_t sum_distance = point_distance(filters + 8),
                  input_distance = point_distance(Right{g.in_channels, most}.size()),
                  gradient_distance = point_distance(Left{g.out_channels, most}.size());
    float* const sums = cpu::scratch<float>(
        ctx, kPoints * (sum_distance + input_distance + gradient_distance) +
                 num_threads() * max(buffer_size(maps, tiling), buffer_size(gradients, tiling)));
    float* const inputs = sums + kPoints * sum_distance;
    float* const outputs = inputs + kPoints * input_distance;
    float* const buffers = outputs + kPoints * gradient_distance;
    for (int64_t first = 0; first < tiling.all_rows; first += tiling.chunk_rows) {
        const int64_t count = min(tiling.chunk_rows, tiling.all_rows - first);
        const Left left{g.out_channels, tiling.tiles(count)};
        const Right right{g.in_channels, tiling.tiles(count)};
        channels_as_rows<OfInput>(maps, tiling, first, count, buffers, right, inputs, input_distance);
        channels_as_rows<OfGradient>(gradients, tiling, first, count, buffers, left, outputs,
                                     gradient_distance);
        for_points([&](int64_t point) {
            multiply(left, outputs + point * gradient_distance, right, inputs + point * input_distance,
                     sums + point * sum_distance, g.in_channels, first > 0);
        });
    }
    transform_filter_gradients(filters, sums, sum_distance, grad_weight);
}

}  // namespace

const WinogradKernels winograd_kernels_table = {{forward, backward_data, backward_weights}};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
