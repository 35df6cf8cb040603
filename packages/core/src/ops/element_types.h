// The element types for which kernels are compiled, on all devices.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rushlight/complex.h"
#include "rushlight/dtype.h"
#include "rushlight/float8.h"
#include "rushlight/half.h"

namespace rushlight {

/// The dtype of an element type: DTypeOf<float>::value is Float32.
template <class T> struct DTypeOf;
#define RL_ELEMENT(T, name)                         \
    template <> struct DTypeOf<T> {                 \
        static constexpr DType value = DType::name; \
    };
RL_ELEMENT(bool, Bool)
RL_ELEMENT(uint8_t, UInt8)
RL_ELEMENT(int8_t, Int8)
RL_ELEMENT(int16_t, Int16)
RL_ELEMENT(int32_t, Int32)
RL_ELEMENT(int64_t, Int64)
RL_ELEMENT(uint16_t, UInt16)
RL_ELEMENT(uint32_t, UInt32)
RL_ELEMENT(uint64_t, UInt64)
RL_ELEMENT(float, Float32)
RL_ELEMENT(double, Float64)
RL_ELEMENT(Complex<float>, Complex64)
RL_ELEMENT(Half, Float16)
RL_ELEMENT(BFloat16, BFloat16)
RL_ELEMENT(Complex<double>, Complex128)
RL_ELEMENT(Float8E4M3FN, Float8E4M3FN)
RL_ELEMENT(Float8E5M2, Float8E5M2)
RL_ELEMENT(Float8E4M3FNUZ, Float8E4M3FNUZ)
RL_ELEMENT(Float8E5M2FNUZ, Float8E5M2FNUZ)
RL_ELEMENT(Float8E8M0FNU, Float8E8M0FNU)
#undef RL_ELEMENT

/// A list of element types.
template <class... T> struct Types {};
// Most operators are compiled for one of these lists. float16 and bfloat16 are converted to float.
using Floats = Types<float, double>;
using Integers = Types<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t>;
using IntegersAndBool = Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t>;
using Numbers =
    Types<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, float, double>;
using All =
    Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, float, double>;

template <class List> struct WithComplex;
template <class... T> struct WithComplex<Types<T...>> {
    using type = Types<T..., Complex<float>, Complex<double>>;
};
using ComplexOnly = Types<Complex<float>, Complex<double>>;
using FloatsAndComplex = WithComplex<Floats>::type;
using NumbersAndComplex = WithComplex<Numbers>::type;
using AllAndComplex = WithComplex<All>::type;

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
/// The type in which elements of type T are computed.
template <class T>
using Computed = std::conditional_t<kIsHalf<T>, float, T>;

/// All dtypes except bool and complex. Kernels differ in whether they handle bools as bytes or as truth values.
using RealNumbers = Types<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, Half,
                          BFloat16, float, double>;

/// Types that can be stored and converted, but have no arithmetic.
using Float8s = Types<Float8E4M3FN, Float8E5M2, Float8E4M3FNUZ, Float8E5M2FNUZ, Float8E8M0FNU>;

/// Calls `f.template operator()<T>(dtype)` for each type of a list, for example to fill a table with an entry for each
/// dtype.
template <class... T, class F>
constexpr void each_type(Types<T...>, F&& f) {
    (f.template operator()<T>(DTypeOf<T>::value), ...);
}

}  // namespace rushlight
