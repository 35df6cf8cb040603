// The element types of kernels, listed once: tables with an entry for each dtype are filled from these lists.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cpu/capability.h"
#include "rushlight/complex.h"
#include "rushlight/dtype.h"
#include "rushlight/half.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// The type in which numbers of an element type are computed.
template <class T>
using Computed = std::conditional_t<kIsHalf<T>, float, T>;

/// Calls `f.template operator()<T>(dtype)` for every dtype of real numbers. Bool is not among them, since some
/// kernels take its elements as bytes and others as truth values.
template <class F>
constexpr void each_real_type(F&& f) {
    f.template operator()<uint8_t>(DType::UInt8);
    f.template operator()<int8_t>(DType::Int8);
    f.template operator()<int16_t>(DType::Int16);
    f.template operator()<int32_t>(DType::Int32);
    f.template operator()<int64_t>(DType::Int64);
    f.template operator()<uint16_t>(DType::UInt16);
    f.template operator()<uint32_t>(DType::UInt32);
    f.template operator()<uint64_t>(DType::UInt64);
    f.template operator()<Half>(DType::Float16);
    f.template operator()<BFloat16>(DType::BFloat16);
    f.template operator()<float>(DType::Float32);
    f.template operator()<double>(DType::Float64);
}

/// The same for every dtype of complex numbers.
template <class F>
constexpr void each_complex_type(F&& f) {
    f.template operator()<Complex<float>>(DType::Complex64);
    f.template operator()<Complex<double>>(DType::Complex128);
}

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
