// Reads and writes elements of any dtype, for loops that compute in one dtype.
#pragma once

#include "cuda/loops.h"
#include "ops/cast_element.h"
#include "ops/element_types.h"

namespace rushlight::cuda {
namespace {

template <class T>
__device__ __noinline__ T converted(const char* from, DType dtype) {
    switch (dtype) {
        case DType::Bool: return cast_element<T>(*reinterpret_cast<const bool*>(from));
        case DType::UInt8: return cast_element<T>(*reinterpret_cast<const uint8_t*>(from));
        case DType::Int8: return cast_element<T>(*reinterpret_cast<const int8_t*>(from));
        case DType::Int16: return cast_element<T>(*reinterpret_cast<const int16_t*>(from));
        case DType::Int32: return cast_element<T>(*reinterpret_cast<const int32_t*>(from));
        case DType::Int64: return cast_element<T>(*reinterpret_cast<const int64_t*>(from));
        case DType::UInt16: return cast_element<T>(*reinterpret_cast<const uint16_t*>(from));
        case DType::UInt32: return cast_element<T>(*reinterpret_cast<const uint32_t*>(from));
        case DType::UInt64: return cast_element<T>(*reinterpret_cast<const uint64_t*>(from));
        case DType::Float16: return cast_element<T>(*reinterpret_cast<const Half*>(from));
        case DType::BFloat16: return cast_element<T>(*reinterpret_cast<const BFloat16*>(from));
        case DType::Float8E4M3FN: return cast_element<T>(*reinterpret_cast<const Float8E4M3FN*>(from));
        case DType::Float8E5M2: return cast_element<T>(*reinterpret_cast<const Float8E5M2*>(from));
        case DType::Float8E4M3FNUZ: return cast_element<T>(*reinterpret_cast<const Float8E4M3FNUZ*>(from));
        case DType::Float8E5M2FNUZ: return cast_element<T>(*reinterpret_cast<const Float8E5M2FNUZ*>(from));
        case DType::Float8E8M0FNU: return cast_element<T>(*reinterpret_cast<const Float8E8M0FNU*>(from));
        case DType::Float32: return cast_element<T>(*reinterpret_cast<const float*>(from));
        case DType::Float64: return cast_element<T>(*reinterpret_cast<const double*>(from));
        case DType::Complex64: return cast_element<T>(*reinterpret_cast<const Complex<float>*>(from));
        default: return cast_element<T>(*reinterpret_cast<const Complex<double>*>(from));
    }
}

template <class T>
__device__ __noinline__ void convert_to(char* to, DType dtype, T value) {
    switch (dtype) {
        case DType::Bool: *reinterpret_cast<bool*>(to) = cast_element<bool>(value); break;
        case DType::UInt8: *reinterpret_cast<uint8_t*>(to) = cast_element<uint8_t>(value); break;
        case DType::Int8: *reinterpret_cast<int8_t*>(to) = cast_element<int8_t>(value); break;
        case DType::Int16: *reinterpret_cast<int16_t*>(to) = cast_element<int16_t>(value); break;
        case DType::Int32: *reinterpret_cast<int32_t*>(to) = cast_element<int32_t>(value); break;
        case DType::Int64: *reinterpret_cast<int64_t*>(to) = cast_element<int64_t>(value); break;
        case DType::UInt16: *reinterpret_cast<uint16_t*>(to) = cast_element<uint16_t>(value); break;
        case DType::UInt32: *reinterpret_cast<uint32_t*>(to) = cast_element<uint32_t>(value); break;
        case DType::UInt64: *reinterpret_cast<uint64_t*>(to) = cast_element<uint64_t>(value); break;
        case DType::Float16: *reinterpret_cast<Half*>(to) = cast_element<Half>(value); break;
        case DType::BFloat16: *reinterpret_cast<BFloat16*>(to) = cast_element<BFloat16>(value); break;
        case DType::Float8E4M3FN:
            *reinterpret_cast<Float8E4M3FN*>(to) = cast_element<Float8E4M3FN>(value);
            break;
        case DType::Float8E5M2: *reinterpret_cast<Float8E5M2*>(to) = cast_element<Float8E5M2>(value); break;
        case DType::Float8E4M3FNUZ:
            *reinterpret_cast<Float8E4M3FNUZ*>(to) = cast_element<Float8E4M3FNUZ>(value);
            break;
        case DType::Float8E5M2FNUZ:
            *reinterpret_cast<Float8E5M2FNUZ*>(to) = cast_element<Float8E5M2FNUZ>(value);
            break;
        case DType::Float8E8M0FNU:
            *reinterpret_cast<Float8E8M0FNU*>(to) = cast_element<Float8E8M0FNU>(value);
            break;
        case DType::Float32: *reinterpret_cast<float*>(to) = cast_element<float>(value); break;
        case DType::Float64: *reinterpret_cast<double*>(to) = cast_element<double>(value); break;
        case DType::Complex64:
            *reinterpret_cast<Complex<float>*>(to) = cast_element<Complex<float>>(value);
            break;
        default: *reinterpret_cast<Complex<double>*>(to) = cast_element<Complex<double>>(value);
    }
}

/// Reads an element stored in any dtype. Only a dtype other than T needs a function call. All threads have the same
/// dtype, so their branches do not diverge.
template <class T>
__device__ inline T read(const char* from, DType dtype) {
    return dtype == DTypeOf<T>::value ? *reinterpret_cast<const T*>(from) : converted<T>(from, dtype);
}
template <class T>
__device__ inline void write(char* to, DType dtype, T value) {
    if (dtype == DTypeOf<T>::value) *reinterpret_cast<T*>(to) = value;
    else convert_to<T>(to, dtype, value);
}

}  // namespace
}  // namespace rushlight::cuda
