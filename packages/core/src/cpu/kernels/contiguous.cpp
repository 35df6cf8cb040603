#include "cpu/contiguous.h"

#include <type_traits>

#include "cpu/kernels/simd.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int kMaxDims = 64;

// Transposes a plane of 4- or 8-byte elements in square tiles. The elements are moved as floating-point vectors,
// whose loads, shuffles and stores preserve every bit.
template <class T>
void transpose_plane(T* out, int64_t out_row, const T* in, int64_t in_column, int64_t rows, int64_t columns) {
    constexpr int kL = kLanes<T>;
    for (int64_t i = 0; i < rows; i += kL) {
        const int64_t height = rows - i < kL ? rows - i : kL;
        const Lanes<T> read(height);
        for (int64_t j = 0; j < columns; j += kL) {
            const int64_t width = columns - j < kL ? columns - j : kL;
            const Lanes<T> written(width);
            Vec<T> r[kL];
#pragma GCC unroll 16
            for (int l = 0; l < kL; ++l)
                r[l] = l < width ? load(in + i + (j + l) * in_column, read) : Vec<T>{};
            transpose<T>(r);
#pragma GCC unroll 16
            for (int l = 0; l < kL; ++l) {
                if (l < height) store(out + (i + l) * out_row + j, r[l], written);
            }
        }
    }
}

// Copies a plane. out (rows, columns) has adjacent columns and row stride out_row; in has the strides (in_row,
// in_column).
template <class T>
void copy_plane(T* out, int64_t out_row, const T* in, int64_t in_row, int64_t in_column, int64_t rows,
                int64_t columns) {
    if (in_column == 1) {
        for (int64_t i = 0; i < rows; ++i) {
            __builtin_memcpy(out + i * out_row, in + i * in_row, sizeof(T) * static_cast<size_t>(columns));
        }
        return;
    }
    if (in_row == 1 && columns > 1) {
        if constexpr (sizeof(T) == 4) {
            return transpose_plane(reinterpret_cast<float*>(out), out_row, reinterpret_cast<const float*>(in),
                                   in_column, rows, columns);
        } else if constexpr (sizeof(T) == 8) {
            return transpose_plane(reinterpret_cast<double*>(out), out_row,
                                   reinterpret_cast<const double*>(in), in_column, rows, columns);
        } else {
            constexpr int64_t kTile = 32;
            for (int64_t i0 = 0; i0 < rows; i0 += kTile) {
                const int64_t i1 = i0 + kTile < rows ? i0 + kTile : rows;
                for (int64_t j = 0; j < columns; ++j) {
                    for (int64_t i = i0; i < i1; ++i) out[i * out_row + j] = in[i + j * in_column];
                }
            }
            return;
        }
    }
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) out[i * out_row + j] = in[i * in_row + j * in_column];
    }
}

struct Axis {
    int64_t size, in, out;
};

template <class T>
void copy_elements(T* out, const T* in, int ndim, const int64_t* sizes, const int64_t* strides) {
    // The axes of the copy. Axes of size 1 are dropped, and neighbouring axes over which `in` is contiguous are
    // merged.
    Axis axes[kMaxDims];
    int n = 0;
    int64_t step = 1;
    for (int d = ndim - 1; d >= 0; --d) {
        if (sizes[d] == 0) return;
        if (sizes[d] != 1) {
            if (n > 0 && strides[d] == axes[n - 1].in * axes[n - 1].size) {
                axes[n - 1].size *= sizes[d];
            } else {
                axes[n++] = {sizes[d], strides[d], step};
            }
        }
        step *= sizes[d];
    }
    if (n == 0) {
        *out = *in;
        return;
    }
    if (n == 1) axes[n++] = {1, 0, 0};
    // axes[0] varies fastest in `out`. It is paired with the axis along which `in` is contiguous, so that planes
    // are transposed.
    int row = 1;
    if (axes[0].in != 1) {
        for (int d = 1; d < n; ++d) {
            if (axes[d].in == 1) row = d;
        }
    }
    const Axis chosen = axes[row];
    for (int d = row; d > 1; --d) axes[d] = axes[d - 1];
    axes[1] = chosen;

    int64_t outer = 1;
    for (int d = 2; d < n; ++d) outer *= axes[d].size;
    const int64_t plane = axes[0].size * axes[1].size;
    // A single large plane is divided into bands.
    const int64_t bands = outer > 1 || axes[1].size < 64 ? 1 : axes[1].size / 32;
    const int64_t grain = (1 << 15) / (plane / bands + 1) + 1;
    parallel_for(0, outer * bands, grain, [&](int64_t first, int64_t last) {
        for (int64_t w = first; w < last; ++w) {
            const int64_t band = w % bands;
            int64_t index = w / bands, in_offset = 0, out_offset = 0;
            for (int d = 2; d < n; ++d) {
                const int64_t i = index % axes[d].size;
                index /= axes[d].size;
                in_offset += i * axes[d].in;
                out_offset += i * axes[d].out;
            }
            const int64_t begin = axes[1].size * band / bands, end = axes[1].size * (band + 1) / bands;
            copy_plane(out + out_offset + begin * axes[1].out, axes[1].out,
                       in + in_offset + begin * axes[1].in, axes[1].in, axes[0].in, end - begin,
                       axes[0].size);
        }
    });
}

struct Pair16 {
    uint64_t a, b;
};

void copy_strided(void* out, const void* in, DType dtype, int ndim, const int64_t* sizes,
                  const int64_t* strides) {
    auto as = [&](auto* type) {
        using T = std::remove_pointer_t<decltype(type)>;
        copy_elements(static_cast<T*>(out), static_cast<const T*>(in), ndim, sizes, strides);
    };
    switch (kItemSize[static_cast<int>(dtype)]) {
        case 1: return as(static_cast<uint8_t*>(nullptr));
        case 2: return as(static_cast<uint16_t*>(nullptr));
        case 4: return as(static_cast<uint32_t*>(nullptr));
        case 8: return as(static_cast<uint64_t*>(nullptr));
        default: return as(static_cast<Pair16*>(nullptr));
    }
}

}  // namespace

const CopyKernels copy_kernels_table = {copy_strided};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
