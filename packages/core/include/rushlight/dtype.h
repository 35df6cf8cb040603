// Element types and their promotion.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/export.h"

namespace rushlight {

// The order is part of the ABI and of saved operator tables: new dtypes must be appended.
enum class DType : uint8_t {
    Bool,
    UInt8,
    Int8,
    Int16,
    Int32,
    Int64,
    Float16,
    BFloat16,
    Float32,
    Float64,
    UInt16,
    UInt32,
    UInt64,
    Complex64,
    Complex128,
    // These dtypes can be stored, copied and converted. There is no arithmetic: Note [Float8 tensors].
    Float8E4M3FN,
    Float8E5M2,
    Float8E4M3FNUZ,
    Float8E5M2FNUZ,
    Float8E8M0FNU,
};
inline constexpr int kNumDTypes = 20;

enum class DTypeCategory : uint8_t { Bool, Integral, Floating, Complex };

inline constexpr uint8_t kItemSize[kNumDTypes] = {1, 1, 1, 2, 4,  8, 2, 2, 4, 8,
                                                  2, 4, 8, 8, 16, 1, 1, 1, 1, 1};

constexpr size_t itemsize(DType t) { return kItemSize[static_cast<int>(t)]; }

constexpr DTypeCategory category(DType t) {
    switch (t) {
        case DType::Bool: return DTypeCategory::Bool;
        case DType::Float16:
        case DType::BFloat16:
        case DType::Float32:
        case DType::Float64:
        case DType::Float8E4M3FN:
        case DType::Float8E5M2:
        case DType::Float8E4M3FNUZ:
        case DType::Float8E5M2FNUZ:
        case DType::Float8E8M0FNU: return DTypeCategory::Floating;
        case DType::Complex64:
        case DType::Complex128: return DTypeCategory::Complex;
        default: return DTypeCategory::Integral;
    }
}
constexpr bool is_floating(DType t) { return category(t) == DTypeCategory::Floating; }
constexpr bool is_complex(DType t) { return category(t) == DTypeCategory::Complex; }
constexpr bool is_integral(DType t, bool with_bool = false) {
    return category(t) == DTypeCategory::Integral || (with_bool && t == DType::Bool);
}
constexpr bool is_float8(DType t) { return t >= DType::Float8E4M3FN; }
constexpr bool is_signed(DType t) {
    return t != DType::Bool && t != DType::UInt8 && t != DType::UInt16 && t != DType::UInt32 &&
           t != DType::UInt64 && t != DType::Float8E8M0FNU;
}
constexpr bool is_differentiable(DType t) { return is_floating(t) || is_complex(t); }

/// The dtype of the real and imaginary parts of a complex dtype. Any other dtype is returned unchanged.
constexpr DType real_dtype(DType t) {
    return t == DType::Complex64 ? DType::Float32 : t == DType::Complex128 ? DType::Float64 : t;
}
/// The complex dtype for a real dtype: complex128 for float64, complex64 for all others.
constexpr DType complex_dtype(DType t) {
    return t == DType::Float64 || t == DType::Complex128 ? DType::Complex128 : DType::Complex64;
}

/// The name without a prefix: "float32".
RL_API const char* name(DType t);

/// The smallest dtype that holds the values of both dtypes, by PyTorch's rules (int + float16 = float16,
/// uint8 + int8 = int16, ...). Raises RuntimeError if there is none: for uint64 and a signed integer, and for float8 and any
/// other dtype.
RL_API DType promote(DType a, DType b);

/// Whether an in-place or out= operator may write a value of `from` to `to`. A conversion to a lower category is not
/// allowed: complex to float, float to integer, integer to bool.
constexpr bool can_cast(DType from, DType to) { return category(from) <= category(to); }

/// The dtype in which kernels compute: float32 for float16 and bfloat16, otherwise `t` itself.
constexpr DType compute_dtype(DType t) {
    return t == DType::Float16 || t == DType::BFloat16 ? DType::Float32 : t;
}

RL_API DType default_dtype();
RL_API void set_default_dtype(DType t);

}  // namespace rushlight
