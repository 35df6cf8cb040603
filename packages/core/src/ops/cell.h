// Storage of Python numbers as elements.
#pragma once

#include "rushlight/complex.h"
#include "rushlight/dtype.h"
#include "rushlight/float8.h"
#include "rushlight/half.h"
#include "rushlight/kernel.h"
#include "rushlight/scalar.h"

namespace rushlight {

/// Converts a parameter of a kernel to a Scalar.
inline Scalar to_scalar(const Param& p) {
    switch (p.kind) {
        case Param::Kind::Bool: return Scalar(p.as_bool());
        case Param::Kind::Int: return Scalar(p.as_int());
        case Param::Kind::Complex: return Scalar(p.as_complex());
        default: return Scalar(p.as_float());
    }
}

/// Memory that holds a Python number, converted to a dtype. A loop reads it like an element of a tensor.
union Cell {
    bool b;
    uint8_t u8;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f32;
    double f64;
    Complex<float> c64;
    Complex<double> c128;
    uint16_t half;
};

inline void store_number(Cell& cell, Scalar v, DType t) {
    switch (t) {
        case DType::Bool: cell.b = v.to<bool>(); break;
        case DType::UInt8: cell.u8 = static_cast<uint8_t>(v.to<int64_t>()); break;
        case DType::Int8: cell.i8 = static_cast<int8_t>(v.to<int64_t>()); break;
        case DType::Int16: cell.i16 = static_cast<int16_t>(v.to<int64_t>()); break;
        case DType::Int32: cell.i32 = static_cast<int32_t>(v.to<int64_t>()); break;
        case DType::Int64: cell.i64 = v.to<int64_t>(); break;
        case DType::UInt16: cell.u16 = static_cast<uint16_t>(v.to<int64_t>()); break;
        case DType::UInt32: cell.u32 = static_cast<uint32_t>(v.to<int64_t>()); break;
        case DType::UInt64: cell.u64 = static_cast<uint64_t>(v.to<int64_t>()); break;
        case DType::Float16: cell.half = Half::from_float(v.to<float>()); break;
        case DType::BFloat16: cell.half = BFloat16::from_float(v.to<float>()); break;
        case DType::Float8E4M3FN: cell.u8 = Float8E4M3FN::from_float(v.to<float>()); break;
        case DType::Float8E5M2: cell.u8 = Float8E5M2::from_float(v.to<float>()); break;
        case DType::Float8E4M3FNUZ: cell.u8 = Float8E4M3FNUZ::from_float(v.to<float>()); break;
        case DType::Float8E5M2FNUZ: cell.u8 = Float8E5M2FNUZ::from_float(v.to<float>()); break;
        case DType::Float8E8M0FNU: cell.u8 = Float8E8M0FNU::from_float(v.to<float>()); break;
        case DType::Float32: cell.f32 = v.to<float>(); break;
        case DType::Complex64: cell.c64 = v.to<Complex<float>>(); break;
        case DType::Complex128: cell.c128 = v.to<Complex<double>>(); break;
        default: cell.f64 = v.to<double>(); break;
    }
}

}  // namespace rushlight
