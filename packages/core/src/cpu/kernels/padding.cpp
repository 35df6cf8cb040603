#include "cpu/padding_kernels.h"

#include "cpu/kernels/simd.h"
#include "ops/element_types.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

// Calls body(large, small) with the starts of each padded row and of its source row, in units of `inner` elements.
template <class Body>
RL_INLINE void each_row(const PaddedPlanes& p, Body body) {
    const PaddedDim& last = p.dims[p.ndim - 1];
    if (p.ndim == 1) return body(0, 0);  // the planes may be short, so nothing is computed for each plane
    int64_t at[kMaxDims] = {};
    const int64_t rows = p.large / (last.padded * p.inner);
    for (int64_t row = 0; row < rows; ++row) {
        int64_t from = 0;
        for (int d = 0; d < p.ndim - 1; ++d) from = from * p.dims[d].size + p.dims[d].from[at[d]];
        body(row * last.padded, from * last.size);
        for (int d = p.ndim - 1; d-- > 0 && ++at[d] == p.dims[d].padded;) at[d] = 0;
    }
}

// Calls body(position) for the positions of a padded row before and after its source row.
template <class Body>
RL_INLINE void each_position_around(const PaddedDim& last, Body body) {
    for (int64_t i = 0; i < last.before; ++i) body(i);
    for (int64_t i = last.before + last.size; i < last.padded; ++i) body(i);
}

// Copies n elements. For the short rows of images, a call of memcpy takes longer.
template <class T>
RL_INLINE void copy_row(T* to, const T* from, int64_t n) {
    constexpr int64_t whole = kVectorBytes / static_cast<int64_t>(sizeof(T));
    int64_t i = 0;
    for (; i + whole <= n; i += whole) __builtin_memcpy(to + i, from + i, kVectorBytes);
    if (n >= whole) {  // the last vector overlaps the previous vector
        if (i < n) __builtin_memcpy(to + n - whole, from + n - whole, kVectorBytes);
        return;
    }
    for (; i < n; ++i) to[i] = from[i];
}

template <class T>
void extend(const PaddedPlanes& p, void* to, const void* in, int64_t begin, int64_t end) {
    const PaddedDim& last = p.dims[p.ndim - 1];
    const int64_t inner = p.inner;
    for (int64_t plane = begin; plane < end; ++plane) {
        const T* small = static_cast<const T*>(in) + plane * p.small;
        T* large = static_cast<T*>(to) + plane * p.large;
        each_row(p, [&](int64_t at, int64_t from) {
            const T* row = small + from * inner;
            T* padded_row = large + at * inner;
            copy_row(padded_row + last.before * inner, row, last.size * inner);
            if (inner == 1) {
                each_position_around(last, [&](int64_t i) { padded_row[i] = row[last.from[i]]; });
            } else {
                each_position_around(last, [&](int64_t i) {
                    copy_row(padded_row + i * inner, row + last.from[i] * inner, inner);
                });
            }
        });
    }
}

void extend_bytes(const PaddedPlanes& p, void* to, const void* in, size_t itemsize, int64_t begin,
                  int64_t end) {
    struct Wide {
        uint64_t parts[2];
    };
    switch (itemsize) {
        case 1: return extend<uint8_t>(p, to, in, begin, end);
        case 2: return extend<uint16_t>(p, to, in, begin, end);
        case 4: return extend<uint32_t>(p, to, in, begin, end);
        case 8: return extend<uint64_t>(p, to, in, begin, end);
        default: return extend<Wide>(p, to, in, begin, end);
    }
}

// Half types are added in float.
template <class T>
RL_INLINE T sum_of(T a, T b) {
    return static_cast<T>(static_cast<Computed<T>>(a) + static_cast<Computed<T>>(b));
}

template <class T>
void fold(const PaddedPlanes& p, void* to, const void* in, int64_t begin, int64_t end) {
    const PaddedDim& last = p.dims[p.ndim - 1];
    const int64_t inner = p.inner;
    for (int64_t plane = begin; plane < end; ++plane) {
        const T* large = static_cast<const T*>(in) + plane * p.large;
        T* small = static_cast<T*>(to) + plane * p.small;
        __builtin_memset(static_cast<void*>(small), 0, static_cast<size_t>(p.small) * sizeof(T));
        each_row(p, [&](int64_t from, int64_t at) {
            T* row = small + at * inner;
            const T *padded_row = large + from * inner, *middle = padded_row + last.before * inner;
            for (int64_t i = 0; i < last.size * inner; ++i) row[i] = sum_of(row[i], middle[i]);
            each_position_around(last, [&](int64_t i) {
                T* position = row + last.from[i] * inner;
                for (int64_t k = 0; k < inner; ++k)
                    position[k] = sum_of(position[k], padded_row[i * inner + k]);
            });
        });
    }
}

constexpr PaddingKernels make() {
    PaddingKernels k{extend_bytes, {}};
    const auto add = [&]<class T>(DType t) { k.fold[static_cast<int>(t)] = fold<T>; };
    each_type(RealNumbers{}, add);
    each_type(ComplexOnly{}, add);
    return k;
}

}  // namespace

const PaddingKernels padding_kernels_table = make();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
