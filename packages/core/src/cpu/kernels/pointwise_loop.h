// Makes the loops of one operator from a functor on elements: the elements of a row of the output, and those of each input
// that is not constant, must be adjacent. Included by kernel files only: Note [Kernels compiled twice].
#pragma once

#include <type_traits>
#include <utility>

#include "cpu/loop_table.h"
#include "ops/element_types.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

// Readers of one input: Dense reads adjacent elements, and Held returns the same value for every element.
template <class T>
struct Dense {
    const T* data;
    T operator[](int64_t i) const { return data[i]; }
};
template <class T>
struct Held {
    T value;
    T operator[](int64_t) const { return value; }
};
struct Anything {
    template <class G>
    void operator()(G) const {}
};

// Computes a row of n elements. `data` has the address of the output, then those of the inputs.
using Pass = void (*)(const void* functor, char* const* data, int64_t n);

// The loops over rows are the same for all operators. They are not inlined, so that they take no registers from the loops
// over elements.
[[gnu::noinline, maybe_unused]] void each_row(Pass pass, const void* functor, int operands, char* const* data,
                                              int64_t n, const int64_t* row_strides, int64_t rows) {
    char* row[kMaxOperands];
    for (int i = 0; i < operands; ++i) row[i] = data[i];
    for (;;) {
        pass(functor, row, n);
        if (--rows <= 0) return;
        for (int i = 0; i < operands; ++i) row[i] += row_strides[i];
    }
}

// Computes rows in blocks, in which the values of constant inputs are repeated.
[[gnu::noinline, maybe_unused]] void repeat_constants(Pass pass, const void* functor, int operands,
                                                      const int64_t* itemsizes, char* const* data,
                                                      const int64_t* strides, int64_t n,
                                                      const int64_t* row_strides, int64_t rows) {
    constexpr int64_t kBlock = 64;
    alignas(64) char repeated[kMaxOperands][kBlock * 16];
    char* block[kMaxOperands];
    for (int64_t r = 0; r < rows; ++r) {
        for (int i = 0; i < operands; ++i) {
            block[i] = data[i] + r * row_strides[i];
            if (i == 0 || strides[i] != 0) continue;
            const auto size = static_cast<size_t>(itemsizes[i]);
            const auto count = static_cast<size_t>(n < kBlock ? n : kBlock);
            for (size_t k = 0; k < count; ++k) __builtin_memcpy(repeated[i] + k * size, block[i], size);
            block[i] = repeated[i];
        }
        for (int64_t begin = 0; begin < n; begin += kBlock) {
            pass(functor, block, n - begin < kBlock ? n - begin : kBlock);
            for (int i = 0; i < operands; ++i) block[i] += kBlock * strides[i];
        }
    }
}

// Note [Optional parts of a functor]
// `moderate(values...)` returns whether operator() is valid for these values. `rare(values...)` computes the result
// for other values, by a call that cannot be vectorised. `settled(result, values...)`, instead of moderate(), returns
// whether a result of operator() is right; in this case operator() is called for all values, or, if `common(values...)`
// holds for all of them, `of_common(values...)`, which has the same result and takes less time. `with_second(b, run)` calls
// `run` with a functor that takes only the first value and contains b, the second value. This functor may be simpler than
// the general one. `with_others(b, c, run)` does the same for the second and the third of three values. `OfBits<Half>` is a
// functor on the bits of half types, which are then not converted to float and back.
template <class F, class R, class... In>
struct Loop {
    static constexpr int kOperands = 1 + sizeof...(In);
    static constexpr int64_t kItemsizes[] = {sizeof(R), sizeof(In)...};

    static void run(char* const* data, const int64_t* strides, int64_t n, const int64_t* row_strides,
                    int64_t rows, const Scalar* params) {
        const F f(params);
        // Bit i is set if input i has the same value for all elements.
        unsigned held = 0;
        for (int i = 1; i < kOperands; ++i) held |= strides[i] == 0 ? 1u << (i - 1) : 0u;
        if (const Pass pass = pass_of(held)) {
            if (rows == 1) return pass(&f, data, n);
            return each_row(pass, &f, kOperands, data, n, row_strides, rows);
        }
        repeat_constants(pass_of(0), &f, kOperands, kItemsizes, data, strides, n, row_strides, rows);
    }

  private:
    // Passes with constant inputs are compiled for two and three inputs of which only the first varies, and for those in
    // which only the first or only the last is constant. Returns null for other combinations.
    static Pass pass_of(unsigned held) {
        if (held == 0) return pass<0>;
        if constexpr (kOperands == 3) {
            if (held == 1) return pass<1>;
        }
        if constexpr (kOperands == 3 || kOperands == 4) {
            if (held == 2) return pass<2>;
        }
        if constexpr (kOperands == 4) {
            if (held == 4) return pass<4>;
            if (held == 6) return pass<6>;
        }
        return nullptr;
    }

    template <unsigned held>
    static void pass(const void* functor, char* const* data, int64_t n) {
        pass<held>(*static_cast<const F*>(functor), data, n, std::index_sequence_for<In...>{});
    }
    // `f` is a copy, so the compiler knows that the output does not overlap it.
    template <unsigned held, size_t... I>
    [[gnu::always_inline]] static void pass(const F f, char* const* data, int64_t n,
                                            std::index_sequence<I...>) {
        constexpr int kInputs = sizeof...(In);
        R* out = reinterpret_cast<R*>(data[0]);
        if constexpr (kInputs == 2 && held == 2 && requires(First in) { f.with_second(in, Anything{}); }) {
            const First* a = reinterpret_cast<const First*>(data[1]);
            f.with_second(*reinterpret_cast<const First*>(data[2]),
                          [=](auto g) { fill(g, out, n, Dense<First>{a}); });
        } else if constexpr (kInputs == 3 && held == 6 &&
                             requires(First in) { f.with_others(in, in, Anything{}); }) {
            const First* a = reinterpret_cast<const First*>(data[1]);
            f.with_others(*reinterpret_cast<const First*>(data[2]), *reinterpret_cast<const First*>(data[3]),
                          [=](auto g) { fill(g, out, n, Dense<First>{a}); });
        } else {
            fill(f, out, n, reader<(held >> I & 1) != 0, In>(data[1 + I])...);
        }
    }

    template <class G, class... Reader>
    static void fill(const G& g, R* out, int64_t n, Reader... in) {
        if constexpr (requires { g.moderate(in[0]...); }) {
            constexpr int64_t kBlock = 256;
            for (int64_t begin = 0; begin < n; begin += kBlock) {
                int64_t end = begin + kBlock < n ? begin + kBlock : n;
                Word moderate = kAll;
                for (int64_t i = begin; i < end; ++i) moderate &= g.moderate(in[i]...) ? kAll : Word(0);
                if (moderate) {
#pragma GCC ivdep
                    for (int64_t i = begin; i < end; ++i) out[i] = g(in[i]...);
                } else {
                    for (int64_t i = begin; i < end; ++i) out[i] = one(g, in[i]...);
                }
            }
        } else if constexpr (requires { g.settled(R(), in[0]...); }) {
            constexpr int64_t kBlock = 256;
            R results[kBlock];  // `out` may be an input, which rare() reads
            for (int64_t begin = 0; begin < n; begin += kBlock) {
                const int64_t count = begin + kBlock < n ? kBlock : n - begin;
                Word settled = kAll, common = Word(0);
                if constexpr (requires { g.common(in[0]...); }) {
                    common = kAll;
                    for (int64_t i = 0; i < count; ++i) common &= g.common(in[begin + i]...) ? kAll : Word(0);
                    if (common) {
#pragma GCC ivdep
                        for (int64_t i = 0; i < count; ++i) results[i] = g.of_common(in[begin + i]...);
                    }
                }
                if (!common) {
#pragma GCC ivdep
                    for (int64_t i = 0; i < count; ++i) results[i] = g(in[begin + i]...);
                }
                for (int64_t i = 0; i < count; ++i)
                    settled &= g.settled(results[i], in[begin + i]...) ? kAll : Word(0);
                if (!settled) {
                    for (int64_t i = 0; i < count; ++i)
                        if (!g.settled(results[i], in[begin + i]...)) results[i] = g.rare(in[begin + i]...);
                }
                for (int64_t i = 0; i < count; ++i) out[begin + i] = results[i];
            }
        } else {
            // The engine ensures that each input is the output itself or does not overlap it.
#pragma GCC ivdep
            for (int64_t i = 0; i < n; ++i) out[i] = g(in[i]...);
        }
    }

    template <class G, class... V>
    static R one(const G& g, V... values) {
        if constexpr (requires { g.moderate(values...); })
            return g.moderate(values...) ? g(values...) : g.rare(values...);
        else if constexpr (requires { g.settled(R(), values...); }) {
            const R result = g(values...);
            return g.settled(result, values...) ? result : g.rare(values...);
        } else return g(values...);
    }

    template <bool still, class T>
    static auto reader(const char* data) {
        if constexpr (still) return Held<T>{*reinterpret_cast<const T*>(data)};
        else return Dense<T>{reinterpret_cast<const T*>(data)};
    }

    template <class T, class...>
    struct Head {
        using type = T;
    };
    using First = typename Head<In...>::type;

    // Whether all elements of a block pass a check is computed in words of the elements' size, because the compiler does
    // not vectorise loops that combine bools.
    using Word = std::conditional_t<sizeof(First) == 8, uint64_t, uint32_t>;
    static constexpr Word kAll = ~Word(0);
};

template <class F, class R, class... In>
constexpr LoopFn loop_of(R (F::*)(In...) const) {
    return &Loop<F, R, In...>::run;
}

template <template <class> class F, class... T>
constexpr LoopTable loops(Types<T...>) {
    LoopTable table{};
    ((table.loop[static_cast<int>(DTypeOf<T>::value)] = loop_of(&F<T>::operator())), ...);
    if constexpr (requires { typename F<float>::template OfBits<Half>; }) {
        table.loop[static_cast<int>(DType::Float16)] = loop_of(&F<float>::template OfBits<Half>::operator());
        table.loop[static_cast<int>(DType::BFloat16)] =
            loop_of(&F<float>::template OfBits<BFloat16>::operator());
    }
    return table;
}

}  // namespace
}  // namespace rushlight::cpu::RUSHLIGHT_CPU
