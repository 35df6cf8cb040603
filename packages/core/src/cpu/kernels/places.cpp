#include "cpu/places.h"

#include <type_traits>

#include "cpu/kernels/simd.h"
#include "rushlight/complex.h"
#include "rushlight/half.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

RL_INLINE bool all_within(const int64_t* index, int64_t n, int64_t size) {
    // Negative where one of both is: vector code without comparisons.
    uint64_t bad = 0;
    const auto last = static_cast<uint64_t>(size) - 1;
    for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<uint64_t>(index[i]);
        bad |= at | (last - at);
    }
    return !(bad >> 63);
}
bool within(const int64_t* index, int64_t n, int64_t size) { return all_within(index, n, size); }

bool from_the_front(int64_t* to, const int64_t* from, int64_t n, int64_t size) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i] + (from[i] >> 63 & size);
    return all_within(to, n, size);
}

bool offsets(int64_t* to, const int64_t* index, int64_t n, int64_t size, int64_t stride, bool add) {
    uint64_t bad = 0;
    const auto last = static_cast<uint64_t>(size) - 1;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t front = index[i] + (index[i] >> 63 & size);
        bad |= static_cast<uint64_t>(front) | (last - static_cast<uint64_t>(front));
        // Of an index that is out of range the product may overflow; it is not used.
        const uint64_t offset = static_cast<uint64_t>(front) * static_cast<uint64_t>(stride);
        to[i] = static_cast<int64_t>(offset + static_cast<uint64_t>(add ? to[i] : 0));
    }
    return !(bad >> 63);
}

struct Pair {
    uint64_t a, b;
};

template <class F>
auto with_size(size_t itemsize, F f) {
    switch (itemsize) {
        case 1: return f(uint8_t());
        case 2: return f(uint16_t());
        case 4: return f(uint32_t());
        case 8: return f(uint64_t());
        default: return f(Pair());
    }
}

// --- rows of indices ---

// A dimension that fits no near cache is read a while ahead.
constexpr int64_t kNearBytes = 1 << 20, kAhead = 192;
template <class T>
RL_INLINE bool is_far(const IndexRows& r) {
    return r.size * r.stride * static_cast<int64_t>(sizeof(T)) > kNearBytes;
}

// one(j, place) for indices begin .. end-1 of a row that has `width`; fetch(place) some of them before.
template <bool far, class Fetch, class One>
RL_INLINE void each_index(const int64_t* index, int64_t begin, int64_t end, int64_t width, int64_t stride,
                          int64_t step, Fetch fetch, One one) {
    int64_t j = begin;
    if constexpr (far) {
        const int64_t last = end < width - kAhead ? end : width - kAhead;
        for (; j < last; ++j) {
            fetch((j + kAhead) * step + index[j + kAhead] * stride);
            one(j, j * step + index[j] * stride);
        }
    }
    if (stride == 1 && step == 0) {
        for (; j < end; ++j) one(j, index[j]);
    } else {
        for (; j < end; ++j) one(j, j * step + index[j] * stride);
    }
}

// row(index, base, number of the row's first index) for every row of the range.
template <class Row>
RL_INLINE void each_row(const IndexRows& r, RowRange range, Row row) {
    Walk walk(r.rows, range.first);
    for (int64_t i = range.first; i < range.last; ++i, walk.next())
        row(r.shared ? r.index : r.index + i * r.width, walk.offset(), i * r.width);
}

template <bool far, class T>
RL_INLINE bool gather_rows(const IndexRows& r, RowRange range, T* out, const T* in) {
    constexpr int64_t kBlock = 1024;  // what is checked is still near when it is followed
    // Short rows together.
    const int64_t indices = (range.last - range.first) * r.width;
    const bool together = range.end - range.begin == r.width && !r.shared && indices <= kBlock;
    bool good = !together || all_within(r.index + range.first * r.width, indices, r.size);
    each_row(r, range, [&](const int64_t* index, int64_t base, int64_t at) {
        for (int64_t b = range.begin; good && b < range.end; b += kBlock) {
            const int64_t end = range.end - b < kBlock ? range.end : b + kBlock;
            good = together || all_within(index + b, end - b, r.size);
            if (!good) return;
            const T* from = in + base;
            T* to = out + at;
            each_index<far>(
                index, b, end, r.width, r.stride, r.step,
                [=](int64_t place) { __builtin_prefetch(from + place); },
                [=](int64_t j, int64_t place) { to[j] = from[place]; });
        }
    });
    return good;
}
bool gather(const IndexRows& r, RowRange range, void* out, const void* in, size_t itemsize) {
    return with_size(itemsize, [&]<class T>(T) {
        T* to = static_cast<T*>(out);
        const T* from = static_cast<const T*>(in);
        return is_far<T>(r) ? gather_rows<true>(r, range, to, from) : gather_rows<false>(r, range, to, from);
    });
}

// write(to, from) for every index, in their order.
template <bool far, class T, class Write>
RL_INLINE void write_rows(const IndexRows& r, RowRange range, T* out, const T* in, int64_t in_step,
                          Write write) {
    each_row(r, range, [&](const int64_t* index, int64_t base, int64_t at) {
        T* to = out + base;
        const T* from = in + at * in_step;
        each_index<far>(
            index, range.begin, range.end, r.width, r.stride, r.step,
            [=](int64_t place) { __builtin_prefetch(to + place, 1); },
            [=](int64_t j, int64_t place) { write(to[place], from[j * in_step]); });
    });
}
template <class T, class Write>
RL_INLINE void write_all(const IndexRows& r, RowRange range, void* to, const void* from, int64_t from_step,
                         Write write) {
    T* out = static_cast<T*>(to);
    const T* in = static_cast<const T*>(from);
    if (is_far<T>(r)) write_rows<true>(r, range, out, in, from_step, write);
    else write_rows<false>(r, range, out, in, from_step, write);
}

void scatter(const IndexRows& r, RowRange range, void* to, const void* from, int64_t from_step,
             size_t itemsize) {
    with_size(itemsize, [&]<class T>(T) {
        write_all<T>(r, range, to, from, from_step, [](T& place, const T& value) { place = value; });
    });
}

template <class T>
void add_rows(const IndexRows& r, RowRange range, void* to, const void* from) {
    write_all<T>(r, range, to, from, 1, [](T& place, const T& value) {
        if constexpr (std::is_same_v<T, bool>) place = place || value;
        else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
            place = static_cast<T>(static_cast<float>(place) + static_cast<float>(value));
        else place = static_cast<T>(place + value);
    });
}

template <class T>
void backwards(char* const* data, const int64_t*, int64_t n, const Scalar*) {
    T* out = reinterpret_cast<T*>(data[0]);
    const T* in = reinterpret_cast<const T*>(data[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = in[-i];
}
LoopFn copy_backwards(size_t itemsize) {
    return with_size(itemsize, []<class T>(T) -> LoopFn { return backwards<T>; });
}

constexpr PlaceKernels make() {
    PlaceKernels k{within, from_the_front, offsets, gather, scatter, {}, copy_backwards};
    const auto of = [&](DType t) -> PlaceKernels::Add& { return k.add[static_cast<int>(t)]; };
    of(DType::Bool) = add_rows<bool>;
    of(DType::UInt8) = add_rows<uint8_t>;
    of(DType::Int8) = add_rows<int8_t>;
    of(DType::Int16) = add_rows<int16_t>;
    of(DType::Int32) = add_rows<int32_t>;
    of(DType::Int64) = add_rows<int64_t>;
    of(DType::UInt16) = add_rows<uint16_t>;
    of(DType::UInt32) = add_rows<uint32_t>;
    of(DType::UInt64) = add_rows<uint64_t>;
    of(DType::Float16) = add_rows<Half>;
    of(DType::BFloat16) = add_rows<BFloat16>;
    of(DType::Float32) = add_rows<float>;
    of(DType::Float64) = add_rows<double>;
    of(DType::Complex64) = add_rows<Complex<float>>;
    of(DType::Complex128) = add_rows<Complex<double>>;
    return k;
}

}  // namespace

const PlaceKernels place_kernels_table = make();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
