#include "cpu/positions.h"

#include <type_traits>

#include "cpu/kernels/simd.h"
#include "ops/element_types.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

RL_INLINE bool all_within(const int64_t* index, int64_t n, int64_t size) {
    // The sign bit of `bad` is set if an index is negative or larger than `last`. This is vector code without
    // comparisons.
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
        // The product may overflow if the index is out of range. In this case it is not used.
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

// Calls one(j, position) for the indices begin .. end-1 of a row. There is no prefetch, because the processor
// overlaps these reads by itself, and prefetching made 16 Mi random reads and writes slower.
template <class One>
RL_INLINE void each_index(const int64_t* index, int64_t begin, int64_t end, int64_t stride, int64_t step,
                          One one) {
    if (stride == 1 && step == 0) {
        for (int64_t j = begin; j < end; ++j) one(j, index[j]);
    } else {
        for (int64_t j = begin; j < end; ++j) one(j, j * step + index[j] * stride);
    }
}

// Calls row(index, base, position of the row's first index) for every row of the range.
template <class Row>
RL_INLINE void each_row(const IndexRows& r, RowRange range, Row row) {
    Walk walk(r.rows, range.first);
    for (int64_t i = range.first; i < range.last; ++i, walk.next())
        row(r.shared ? r.index : r.index + i * r.width, walk.offset(), i * r.width);
}

constexpr int64_t kBlock = 1024;  // checked indices are still in the cache when they are used

// Calls body(row, offset at which the row begins) for the rows first .. last-1.
template <class Body>
RL_INLINE void each_start(const Odometer& rows, int64_t first, int64_t last, Body body) {
    if (rows.ndim == 1) {
        for (int64_t i = first; i < last; ++i) body(i, i * rows.strides[0]);
        return;
    }
    Walk walk(rows, first);
    for (int64_t i = first; i < last; ++i, walk.next()) body(i, walk.offset());
}

// Reads rows that are much shorter than a block, so that the indices of several rows are checked together. `width` is
// r.width, which may be a constant.
template <class T, class Width>
RL_INLINE bool gather_short_rows(const IndexRows& r, RowRange range, T* out, const T* in, Width width) {
    const int64_t together = kBlock / width, stride = r.stride, step = r.step;
    for (int64_t begin = range.first; begin < range.last; begin += together) {
        const int64_t end = range.last - begin < together ? range.last : begin + together;
        if (!all_within(r.index + begin * width, (end - begin) * width, r.size)) return false;
        each_start(r.rows, begin, end, [=, index = r.index](int64_t row, int64_t base) {
            for (int64_t j = 0; j < width; ++j)
                out[row * width + j] = in[base + j * step + index[row * width + j] * stride];
        });
    }
    return true;
}

template <class T>
RL_INLINE bool gather_rows(const IndexRows& r, RowRange range, T* out, const T* in) {
    const bool whole = range.end - range.begin == r.width;
    if (!r.shared && whole && r.width <= kBlock / 8) {
        if (r.width == 1) return gather_short_rows(r, range, out, in, std::integral_constant<int64_t, 1>());
        if (r.width == 2) return gather_short_rows(r, range, out, in, std::integral_constant<int64_t, 2>());
        return gather_short_rows(r, range, out, in, r.width);
    }
    if (r.shared && range.last - range.first > 1) {  // checks the indices once for all rows
        if (!all_within(r.index + range.begin, range.end - range.begin, r.size)) return false;
        each_start(r.rows, range.first, range.last, [=, &r](int64_t row, int64_t base) {
            const T* from = in + base;
            T* to = out + row * r.width;
            each_index(r.index, range.begin, range.end, r.stride, r.step,
                       [=](int64_t j, int64_t position) { to[j] = from[position]; });
        });
        return true;
    }
    bool good = true;
    each_row(r, range, [&](const int64_t* index, int64_t base, int64_t at) {
        for (int64_t b = range.begin; good && b < range.end; b += kBlock) {
            const int64_t end = range.end - b < kBlock ? range.end : b + kBlock;
            good = all_within(index + b, end - b, r.size);
            if (!good) return;
            const T* from = in + base;
            T* to = out + at;
            each_index(index, b, end, r.stride, r.step,
                       [=](int64_t j, int64_t position) { to[j] = from[position]; });
        }
    });
    return good;
}
bool gather(const IndexRows& r, RowRange range, void* out, const void* in, size_t itemsize) {
    return with_size(itemsize, [&]<class T>(T) {
        return gather_rows(r, range, static_cast<T*>(out), static_cast<const T*>(in));
    });
}

// Calls write(to, from) for every index, in order.
template <class T, class Write>
RL_INLINE void write_rows(const IndexRows& r, RowRange range, T* out, const T* in, int64_t in_step,
                          Write write) {
    each_row(r, range, [&](const int64_t* index, int64_t base, int64_t at) {
        T* to = out + base;
        const T* from = in + at * in_step;
        each_index(index, range.begin, range.end, r.stride, r.step,
                   [=](int64_t j, int64_t position) { write(to[position], from[j * in_step]); });
    });
}
void scatter(const IndexRows& r, RowRange range, void* to, const void* from, int64_t from_step,
             size_t itemsize) {
    with_size(itemsize, [&]<class T>(T) {
        write_rows(r, range, static_cast<T*>(to), static_cast<const T*>(from), from_step,
                   [](T& position, const T& value) { position = value; });
    });
}

template <class T>
void add_rows(const IndexRows& r, RowRange range, void* to, const void* from) {
    write_rows(
        r, range, static_cast<T*>(to), static_cast<const T*>(from), 1, [](T& position, const T& value) {
            if constexpr (std::is_same_v<T, bool>) position = position | value;  // has no branches
            else
                position =
                    static_cast<T>(static_cast<Computed<T>>(position) + static_cast<Computed<T>>(value));
        });
}

template <class T>
void backwards(char* const* data, const int64_t*, int64_t n, const int64_t* row_strides, int64_t rows,
               const Scalar*) {
    for (int64_t r = 0; r < rows; ++r) {
        T* out = reinterpret_cast<T*>(data[0] + r * row_strides[0]);
        const T* in = reinterpret_cast<const T*>(data[1] + r * row_strides[1]);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) out[i] = in[-i];
    }
}
LoopFn copy_backwards(size_t itemsize) {
    return with_size(itemsize, []<class T>(T) -> LoopFn { return backwards<T>; });
}

// Copies a run of `least` to 2 * `least` bytes by two moves, which may overlap.
template <int64_t least>
RL_INLINE void copy_short_run(char* to, const char* from, int64_t bytes) {
    struct Bytes {
        char c[least];
    };
    Bytes head, tail;
    __builtin_memcpy(&head, from, least);
    __builtin_memcpy(&tail, from + bytes - least, least);
    __builtin_memcpy(to, &head, least);
    __builtin_memcpy(to + bytes - least, &tail, least);
}
// Copies n runs of params[0] bytes.
void copy_runs(char* const* data, const int64_t* strides, int64_t n, const int64_t* row_strides, int64_t rows,
               const Scalar* params) {
    const auto bytes = params[0].to<int64_t>();
    for (int64_t r = 0; r < rows; ++r) {
        char* to = data[0] + r * row_strides[0];
        const char* from = data[1] + r * row_strides[1];
        const auto each = [=](auto copy) {
            for (int64_t i = 0; i < n; ++i) copy(to + i * strides[0], from + i * strides[1]);
        };
        if (bytes > 64)
            each([=](char* y, const char* x) { __builtin_memcpy(y, x, static_cast<size_t>(bytes)); });
        else if (bytes >= 32) each([=](char* y, const char* x) { copy_short_run<32>(y, x, bytes); });
        else if (bytes >= 16) each([=](char* y, const char* x) { copy_short_run<16>(y, x, bytes); });
        else if (bytes >= 8) each([=](char* y, const char* x) { copy_short_run<8>(y, x, bytes); });
        else if (bytes >= 4) each([=](char* y, const char* x) { copy_short_run<4>(y, x, bytes); });
        else if (bytes >= 2) each([=](char* y, const char* x) { copy_short_run<2>(y, x, bytes); });
        else each([](char* y, const char* x) { *y = *x; });
    }
}

constexpr PositionKernels make() {
    PositionKernels k{within, from_the_front, offsets, gather, scatter, {}, copy_backwards, copy_runs};
    const auto of = [&](DType t) -> PositionKernels::Add& { return k.add[static_cast<int>(t)]; };
    of(DType::Bool) = add_rows<bool>;
    const auto add_type = [&]<class T>(DType t) { of(t) = add_rows<T>; };
    each_type(RealNumbers{}, add_type);
    each_type(ComplexOnly{}, add_type);
    return k;
}

}  // namespace

const PositionKernels position_kernels_table = make();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
