// Conversion between every pair of dtypes.
#include "cpu/cast.h"

#include "cpu/kernels/halves.h"
#include "ops/cast_element.h"
#include "ops/element_types.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

inline constexpr int64_t kBlock = 256;

template <class To, class From>
void cast_line(To* out, const From* in, int64_t n) {
    if constexpr ((std::is_same_v<To, Half> && std::is_same_v<From, float>) ||
                  (std::is_same_v<To, float> && std::is_same_v<From, Half>)) {
        convert_row(out, in, n);
    } else if constexpr (std::is_same_v<To, Half> && std::is_same_v<From, double>) {
        float block[kBlock];
        for (int64_t at = 0; at < n; at += kBlock) {
            const int64_t count = n - at < kBlock ? n - at : kBlock;
            for (int64_t i = 0; i < count; ++i) block[i] = static_cast<float>(in[at + i]);
            convert_row(out + at, block, count);
        }
    } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) out[i] = cast_element<To>(in[i]);
    }
}

// Copies elements that are `step` bytes apart to adjacent memory. The loop for every second element is vectorised.
template <class T>
void pack_row(T* out, const char* in, int64_t step, int64_t n) {
    constexpr int64_t kTwo = 2 * sizeof(T);
    if (step == kTwo) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) __builtin_memcpy(out + i, in + i * kTwo, sizeof(T));
        return;
    }
    int64_t i = 0;
    if constexpr (sizeof(T) == 4) {  // stores four elements at once
        typedef float Four __attribute__((vector_size(16)));
        for (; i + 4 <= n; i += 4) {
            float x[4];
            for (int k = 0; k < 4; ++k) __builtin_memcpy(x + k, in + (i + k) * step, sizeof(T));
            const Four v{x[0], x[1], x[2], x[3]};
            __builtin_memcpy(out + i, &v, sizeof v);
        }
    }
    for (; i < n; ++i) __builtin_memcpy(out + i, in + i * step, sizeof(T));
}

template <class To, class From>
void cast(char* const* data, const int64_t* s, int64_t n, const int64_t* row_strides, int64_t rows,
          const Scalar*) {
    const bool dense_out = s[0] == static_cast<int64_t>(sizeof(To));
    for (int64_t r = 0; r < rows; ++r) {
        char* const out = data[0] + r * row_strides[0];
        const char* const in = data[1] + r * row_strides[1];
        if (dense_out && s[1] == static_cast<int64_t>(sizeof(From))) {
            cast_line(reinterpret_cast<To*>(out), reinterpret_cast<const From*>(in), n);
            continue;
        }
        if constexpr (std::is_same_v<To, From>) {
            if (dense_out && s[1] == 0) {  // one value for all elements
                const To value = *reinterpret_cast<const To*>(in);
                To* to = reinterpret_cast<To*>(out);
#pragma GCC ivdep
                for (int64_t i = 0; i < n; ++i) to[i] = value;
                continue;
            }
            if (dense_out) {
                pack_row(reinterpret_cast<To*>(out), in, s[1], n);
                continue;
            }
        }
        for (int64_t i = 0; i < n; ++i)
            *reinterpret_cast<To*>(out + i * s[0]) =
                cast_element<To>(*reinterpret_cast<const From*>(in + i * s[1]));
    }
}

template <class To>
constexpr void row(LoopFn* r) {
    r[0] = cast<To, bool>, r[1] = cast<To, uint8_t>, r[2] = cast<To, int8_t>, r[3] = cast<To, int16_t>;
    r[4] = cast<To, int32_t>, r[5] = cast<To, int64_t>, r[6] = cast<To, Half>, r[7] = cast<To, BFloat16>;
    r[8] = cast<To, float>, r[9] = cast<To, double>;
    r[10] = cast<To, uint16_t>, r[11] = cast<To, uint32_t>, r[12] = cast<To, uint64_t>;
    r[13] = cast<To, Complex<float>>, r[14] = cast<To, Complex<double>>;
}

// Conversions from float32 to float8 and back. Elements that are not adjacent are copied to adjacent memory first, so
// that one loop for each direction is enough.
template <class To, class From>
[[gnu::noinline]] void float8_line(To* out, const From* in, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = cast_element<To>(in[i]);
}
template <class T>
[[gnu::noinline]] void move(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
    for (int64_t i = 0; i < n; ++i) __builtin_memcpy(to + i * to_step, from + i * from_step, sizeof(T));
}
template <class To, class From>
void cast_float8_row(char* const* data, const int64_t* s, int64_t n) {
    using Target = std::conditional_t<sizeof(To) == 1, uint8_t, float>;
    using Source = std::conditional_t<sizeof(From) == 1, uint8_t, float>;
    constexpr auto to_size = static_cast<int64_t>(sizeof(To)), from_size = static_cast<int64_t>(sizeof(From));
    if (s[0] == to_size && s[1] == from_size)
        return float8_line(reinterpret_cast<To*>(data[0]), reinterpret_cast<const From*>(data[1]), n);
    To out[kBlock];
    From in[kBlock];
    for (int64_t at = 0; at < n; at += kBlock) {
        const int64_t m = n - at < kBlock ? n - at : kBlock;
        move<Source>(reinterpret_cast<char*>(in), from_size, data[1] + at * s[1], s[1], m);
        float8_line(out, in, m);
        move<Target>(data[0] + at * s[0], s[0], reinterpret_cast<const char*>(out), to_size, m);
    }
}
template <class To, class From>
void cast_float8(char* const* data, const int64_t* s, int64_t n, const int64_t* row_strides, int64_t rows,
                 const Scalar*) {
    for (int64_t r = 0; r < rows; ++r) {
        char* const row[] = {data[0] + r * row_strides[0], data[1] + r * row_strides[1]};
        cast_float8_row<To, From>(row, s, n);
    }
}

// Converts between float8 and dtypes other than float32 in two steps, by way of float32.
void in_two_steps(LoopFn from_source, LoopFn to_target, char* const* data, const int64_t* s, int64_t n,
                  const int64_t* row_strides, int64_t rows) {
    float block[kBlock];
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t at = 0; at < n; at += kBlock) {
            const int64_t m = n - at < kBlock ? n - at : kBlock;
            char* const read[] = {reinterpret_cast<char*>(block), data[1] + r * row_strides[1] + at * s[1]};
            char* const written[] = {data[0] + r * row_strides[0] + at * s[0],
                                     reinterpret_cast<char*>(block)};
            const int64_t read_steps[] = {sizeof(float), s[1]}, written_steps[] = {s[0], sizeof(float)};
            run_row(from_source, read, read_steps, m);
            run_row(to_target, written, written_steps, m);
        }
    }
}
template <class To, class From>
constexpr LoopFn one_step() {
    if constexpr (is_float8(DTypeOf<To>::value) || is_float8(DTypeOf<From>::value))
        return cast_float8<To, From>;
    else return cast<To, From>;
}
template <class To, class From>
void cast_by_float(char* const* data, const int64_t* s, int64_t n, const int64_t* row_strides, int64_t rows,
                   const Scalar*) {
    in_two_steps(one_step<float, From>(), one_step<To, float>(), data, s, n, row_strides, rows);
}

using NotFloat8 = Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, Half,
                        BFloat16, double, Complex<float>, Complex<double>>;
constexpr void add_float8(CastTable& t) {
    each_type(Float8s{}, [&]<class T>(DType dtype) {
        const auto own = static_cast<int>(dtype), single = static_cast<int>(DType::Float32);
        t.loop[own][single] = cast_float8<T, float>, t.loop[single][own] = cast_float8<float, T>;
        each_type(NotFloat8{}, [&]<class Other>(DType other) {
            t.loop[own][static_cast<int>(other)] = cast_by_float<T, Other>;
            t.loop[static_cast<int>(other)][own] = cast_by_float<Other, T>;
        });
        each_type(Float8s{}, [&]<class From>(DType from) {
            if constexpr (std::is_same_v<T, From>) t.loop[own][own] = cast<uint8_t, uint8_t>;
            else t.loop[own][static_cast<int>(from)] = cast_by_float<T, From>;
        });
    });
}
constexpr CastTable make() {
    CastTable t{};
    add_float8(t);
    row<bool>(t.loop[0]), row<uint8_t>(t.loop[1]), row<int8_t>(t.loop[2]), row<int16_t>(t.loop[3]);
    row<int32_t>(t.loop[4]), row<int64_t>(t.loop[5]), row<Half>(t.loop[6]), row<BFloat16>(t.loop[7]);
    row<float>(t.loop[8]), row<double>(t.loop[9]);
    row<uint16_t>(t.loop[10]), row<uint32_t>(t.loop[11]), row<uint64_t>(t.loop[12]);
    row<Complex<float>>(t.loop[13]), row<Complex<double>>(t.loop[14]);
    return t;
}
}  // namespace

const CastTable cast_loops_table = make();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
