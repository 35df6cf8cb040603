// Makes the loops of one operator from a functor on elements. Included by kernel files only: Note [Kernels compiled
// twice].
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

// Note [Optional parts of a functor]
// `moderate(values...)` returns whether operator() is valid for these values. `rare(values...)` computes the result
// for other values, by a call that cannot be vectorised. `settled(result, values...)`, instead of moderate(), returns
// whether a result of operator() is right; in this case operator() is called for all values. `with_second(b, run)` calls
// `run` with a functor that takes only the first value and contains b, the second value. This functor may be simpler than
// the general one. `with_others(b, c, run)` does the same for the second and the third of three values. `OfBits<Half>` is a
// functor on the bits of half types, which are then not converted to float and back.
template <class F, class R, class... In>
struct Loop {
    static constexpr int kInputs = sizeof...(In);

    static void run(char* const* data, const int64_t* strides, int64_t n, const int64_t* row_strides,
                    int64_t rows, const Scalar* params) {
        const F f(params);
        run(f, data, strides, n, {row_strides, rows}, std::index_sequence_for<In...>{});
    }

  private:
    struct Rows {
        const int64_t* strides;
        int64_t count;
    };

    template <size_t... I>
    static void run(const F& f, char* const* data, const int64_t* s, int64_t n, Rows rows,
                    std::index_sequence<I...> inputs) {
        constexpr int64_t size[] = {static_cast<int64_t>(sizeof(In))...};
        // Bit i is set if input i has the same value for all elements. Loops with constant inputs are compiled for two
        // and three inputs of which only the first varies, and for two inputs of which only the first is constant.
        unsigned held = ((s[1 + I] == 0 ? 1u << I : 0u) | ...);
        bool dense =
            s[0] == static_cast<int64_t>(sizeof(R)) && ((s[1 + I] == size[I] || s[1 + I] == 0) && ...);
        if (dense && held == 0) return each_row<0>(f, data, n, rows, inputs);
        if constexpr (kInputs == 2) {
            if (dense && held == 1) return each_row<1>(f, data, n, rows, inputs);
        }
        if constexpr (kInputs == 2 || kInputs == 3) {
            if (dense && held == 2) return each_row<2>(f, data, n, rows, inputs);
        }
        if constexpr (kInputs == 3) {
            if (dense && held == 4) return each_row<4>(f, data, n, rows, inputs);
            if (dense && held == 6) return each_row<6>(f, data, n, rows, inputs);
        }
        for (int64_t r = 0; r < rows.count; ++r) {
            char* const out = data[0] + r * rows.strides[0];
            const char* const in[] = {data[1 + I] + r * rows.strides[1 + I]...};
            for (int64_t i = 0; i < n; ++i)
                *reinterpret_cast<R*>(out + i * s[0]) =
                    one(f, *reinterpret_cast<const In*>(in[I] + i * s[1 + I])...);
        }
    }

    template <unsigned held, size_t... I>
    static void each_row(const F& f, char* const* data, int64_t n, Rows rows,
                         std::index_sequence<I...> inputs) {
        char* row[] = {data[0], data[1 + I]...};
        for (int64_t left = rows.count;;) {
            pass<held>(f, row, n, inputs);
            if (--left <= 0) return;
            row[0] += rows.strides[0];
            ((row[1 + I] += rows.strides[1 + I]), ...);
        }
    }

    template <unsigned held, size_t... I>
    static void pass(const F& f, char* const* data, int64_t n, std::index_sequence<I...>) {
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
                bool moderate = true;
                for (int64_t i = begin; i < end; ++i) moderate &= g.moderate(in[i]...);
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
                bool settled = true;
#pragma GCC ivdep
                for (int64_t i = 0; i < count; ++i) results[i] = g(in[begin + i]...);
                for (int64_t i = 0; i < count; ++i) settled &= g.settled(results[i], in[begin + i]...);
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
