// Dispatches to a template for each integer dtype, for kernels that have no vector code for integers.
#pragma once

#include <cstdint>

#include "rushlight/dtype.h"

namespace rushlight::cpu {

/// Calls f with a zero of the C++ type of `dtype`, so that f can deduce the type.
template <class F>
void with_integer(DType dtype, F&& f) {
    switch (dtype) {
        case DType::UInt8: return f(uint8_t{});
        case DType::Int8: return f(int8_t{});
        case DType::Int16: return f(int16_t{});
        case DType::Int32: return f(int32_t{});
        case DType::UInt16: return f(uint16_t{});
        case DType::UInt32: return f(uint32_t{});
        case DType::UInt64: return f(uint64_t{});
        default: return f(int64_t{});
    }
}

}  // namespace rushlight::cpu
