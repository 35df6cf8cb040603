#include "cpu/index_select_kernels.h"

#include <type_traits>

#include "cpu/kernels/simd.h"
#include "ops/functors/scatter.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

// Calls one(offset in the tensor, offset in the row-major tensor, size, offset of the run that is `kAhead` runs
// later) for each run.
constexpr int64_t kAhead = 8;
template <class One>
RL_INLINE void each_run(const IndexedSlices& s, int64_t begin, int64_t end, One one) {
    constexpr int64_t kColumns = IndexedSlices::kColumns;
    const int64_t across = s.across();
    for (int64_t part = begin; part < end; ++part) {
        const int64_t piece = part / across, first = part % across * kColumns;
        const int64_t width = s.run - first < kColumns ? s.run - first : kColumns;
        const int64_t b = piece / s.after.count, a = piece % s.after.count;
        const int64_t base = s.before.offset(b) + s.after.offset(a) + first;
        int64_t at = (b * s.n * s.after.count + a) * s.run + first;
        for (int64_t k = 0; k < s.n; ++k, at += s.after.count * s.run) {
            const int64_t soon = s.index[k + kAhead < s.n ? k + kAhead : k];
            one(base + s.index[k] * s.stride, at, width, base + soon * s.stride);
        }
    }
}

template <int64_t size>
struct Bytes {
    char c[size];
};
// Copies the first and the last `size` of n bytes, which may overlap.
template <int64_t size>
RL_INLINE void copy_ends(char* to, const char* from, int64_t n) {
    Bytes<size> head, tail;
    __builtin_memcpy(&head, from, size);
    __builtin_memcpy(&tail, from + n - size, size);
    __builtin_memcpy(to, &head, size);
    __builtin_memcpy(to + n - size, &tail, size);
}
// Copies short runs without a function call.
RL_INLINE void copy_run(char* to, const char* from, int64_t n) {
    if (n > 128) __builtin_memcpy(to, from, static_cast<size_t>(n));
    else if (n >= 64) copy_ends<64>(to, from, n);
    else if (n >= 32) copy_ends<32>(to, from, n);
    else if (n >= 16) copy_ends<16>(to, from, n);
    else if (n >= 8) copy_ends<8>(to, from, n);
    else if (n >= 4) copy_ends<4>(to, from, n);
    else
        for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

// Copies runs of `size` bytes.
template <int64_t size>
RL_INLINE void select_words(const IndexedSlices& s, char* out, const char* in, int64_t itemsize,
                            int64_t begin, int64_t end) {
    const int64_t step = s.after.count * size, stride = s.stride * itemsize;
    for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t b = piece / s.after.count, a = piece % s.after.count;
        const char* const base = in + (s.before.offset(b) + s.after.offset(a)) * itemsize;
        char* target = out + (b * s.n * s.after.count + a) * size;
        for (int64_t k = 0; k < s.n; ++k, target += step)
            __builtin_memcpy(target, base + s.index[k] * stride, size);
    }
}

void select(const IndexedSlices& s, void* to, const void* from, size_t itemsize, int64_t begin, int64_t end) {
    const auto size = static_cast<int64_t>(itemsize);
    char* out = static_cast<char*>(to);
    const char* in = static_cast<const char*>(from);
    switch (s.run * size) {
        case 2: return select_words<2>(s, out, in, size, begin, end);
        case 4: return select_words<4>(s, out, in, size, begin, end);
        case 8: return select_words<8>(s, out, in, size, begin, end);
        case 16: return select_words<16>(s, out, in, size, begin, end);
        default: break;
    }
    each_run(s, begin, end, [=](int64_t position, int64_t at, int64_t width, int64_t soon) {
        __builtin_prefetch(in + soon * size);
        copy_run(out + at * size, in + position * size, width * size);
    });
}
void copy(const IndexedSlices& s, void* to, const void* from, size_t itemsize, int64_t begin, int64_t end) {
    const auto size = static_cast<int64_t>(itemsize);
    char* out = static_cast<char*>(to);
    const char* in = static_cast<const char*>(from);
    each_run(s, begin, end, [=](int64_t position, int64_t at, int64_t width, int64_t soon) {
        __builtin_prefetch(out + soon * size, 1);
        copy_run(out + position * size, in + at * size, width * size);
    });
}

struct Pair {
    uint64_t a, b;
};
template <class T>
RL_INLINE void fill_runs(const IndexedSlices& s, void* to, const void* from, int64_t begin, int64_t end) {
    T* out = static_cast<T*>(to);
    const T value = *static_cast<const T*>(from);
    each_run(s, begin, end, [=](int64_t position, int64_t, int64_t width, int64_t) {
        for (int64_t j = 0; j < width; ++j) out[position + j] = value;
    });
}
void fill(const IndexedSlices& s, void* to, const void* from, size_t itemsize, int64_t begin, int64_t end) {
    switch (itemsize) {
        case 1: return fill_runs<uint8_t>(s, to, from, begin, end);
        case 2: return fill_runs<uint16_t>(s, to, from, begin, end);
        case 4: return fill_runs<uint32_t>(s, to, from, begin, end);
        case 8: return fill_runs<uint64_t>(s, to, from, begin, end);
        default: return fill_runs<Pair>(s, to, from, begin, end);
    }
}

template <class T>
void add_runs(const IndexedSlices& s, void* to, const void* from, int64_t begin, int64_t end) {
    T* out = static_cast<T*>(to);
    const T* in = static_cast<const T*>(from);
    each_run(s, begin, end, [=](int64_t position, int64_t at, int64_t width, int64_t soon) {
        __builtin_prefetch(out + soon, 1);
        T* __restrict y = out + position;
        const T* __restrict x = in + at;
        for (int64_t j = 0; j < width; ++j) {
            if constexpr (std::is_same_v<T, bool>) y[j] = y[j] | x[j];
            else y[j] = static_cast<T>(static_cast<Computed<T>>(y[j]) + static_cast<Computed<T>>(x[j]));
        }
    });
}

template <class T>
void scale(void* out, const void* in, const void* factor, int64_t n) {
    T* y = static_cast<T*>(out);
    const T* x = static_cast<const T*>(in);
    const auto by = static_cast<Computed<T>>(*static_cast<const T*>(factor));
    for (int64_t i = 0; i < n; ++i) y[i] = functors::scaled(x[i], by);
}

template <class T>
constexpr void add(IndexSelectKernels& k, DType dtype) {
    k.add[static_cast<int>(dtype)] = add_runs<T>;
    k.scale[static_cast<int>(dtype)] = scale<T>;
}

constexpr IndexSelectKernels make() {
    IndexSelectKernels k{select, copy, fill, {}, {}};
    const auto add_type = [&]<class T>(DType dtype) { add<T>(k, dtype); };
    add<bool>(k, DType::Bool);
    each_type(RealNumbers{}, add_type);
    each_type(ComplexOnly{}, add_type);
    return k;
}

}  // namespace

const IndexSelectKernels index_select_kernels_table = make();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
