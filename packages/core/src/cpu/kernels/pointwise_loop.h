// From a functor on elements to the loops of one operator. Included by kernel files only: Note [Kernels compiled twice].
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "ops/pointwise.h"
#include "rushlight/half.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

template <class T> struct DTypeOf;
template <> struct DTypeOf<bool> { static constexpr DType value = DType::Bool; };
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::UInt8; };
template <> struct DTypeOf<int8_t> { static constexpr DType value = DType::Int8; };
template <> struct DTypeOf<int16_t> { static constexpr DType value = DType::Int16; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::Int32; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::Int64; };
template <> struct DTypeOf<float> { static constexpr DType value = DType::Float32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::Float64; };

// The element types that most operators are compiled for; float16 and bfloat16 reach them through float.
template <class... T> struct Types {};
using Floats = Types<float, double>;
using Integers = Types<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using IntegersAndBool = Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t>;
using Numbers = Types<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>;
using All = Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>;

template <class F, class R, class... In>
struct Loop {
    static constexpr int kInputs = sizeof...(In);

    static void run(char* const* data, const int64_t* strides, int64_t n, const Scalar* params) {
        const F f(params);
        run(f, data, strides, n, std::index_sequence_for<In...>{});
    }

    template <size_t... I>
    static void run(const F& f, char* const* data, const int64_t* s, int64_t n, std::index_sequence<I...>) {
        constexpr int64_t size[] = {static_cast<int64_t>(sizeof(In))...};
        const bool out_dense = s[0] == static_cast<int64_t>(sizeof(R));
        if (out_dense && ((s[1 + I] == size[I]) && ...)) {
            R* out = reinterpret_cast<R*>(data[0]);
            // An input is the output itself or does not touch it: the engine sees to that.
#pragma GCC ivdep
            for (int64_t i = 0; i < n; ++i) out[i] = f(reinterpret_cast<const In*>(data[1 + I])[i]...);
            return;
        }
        if constexpr (kInputs == 2) {
            using A = std::tuple_element_t<0, Pack>;
            using B = std::tuple_element_t<1, Pack>;
            const A* a = reinterpret_cast<const A*>(data[1]);
            const B* b = reinterpret_cast<const B*>(data[2]);
            R* out = reinterpret_cast<R*>(data[0]);
            if (out_dense && s[1] == size[0] && s[2] == 0) {
                const B held = *b;
#pragma GCC ivdep
                for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], held);
                return;
            }
            if (out_dense && s[1] == 0 && s[2] == size[1]) {
                const A held = *a;
#pragma GCC ivdep
                for (int64_t i = 0; i < n; ++i) out[i] = f(held, b[i]);
                return;
            }
        }
        for (int64_t i = 0; i < n; ++i)
            *reinterpret_cast<R*>(data[0] + i * s[0]) = f(*reinterpret_cast<const In*>(data[1 + I] + i * s[1 + I])...);
    }

    using Pack = std::tuple<In...>;  // a list of types: nothing of std::tuple is emitted
};

template <class F, class R, class... In>
constexpr LoopFn loop_of(R (F::*)(In...) const) {
    return &Loop<F, R, In...>::run;
}

template <template <class> class F, class... T>
constexpr LoopTable loops(Types<T...>) {
    LoopTable table{};
    ((table.loop[static_cast<int>(DTypeOf<T>::value)] = loop_of(&F<T>::operator())), ...);
    return table;
}

}  // namespace
}  // namespace rushlight::cpu::RUSHLIGHT_CPU
