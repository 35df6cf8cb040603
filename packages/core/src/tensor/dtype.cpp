#include "rushlight/dtype.h"

#include <atomic>

#include "rushlight/error.h"
#include "rushlight/scalar.h"

namespace rushlight {
namespace {

constexpr const char* kNames[kNumDTypes] = {"bool",
                                            "uint8",
                                            "int8",
                                            "int16",
                                            "int32",
                                            "int64",
                                            "float16",
                                            "bfloat16",
                                            "float32",
                                            "float64",
                                            "uint16",
                                            "uint32",
                                            "uint64",
                                            "complex64",
                                            "complex128",
                                            "float8_e4m3fn",
                                            "float8_e5m2",
                                            "float8_e4m3fnuz",
                                            "float8_e5m2fnuz",
                                            "float8_e8m0fnu"};

std::atomic<DType> default_dtype_{DType::Float32};

int bits(DType t) { return static_cast<int>(itemsize(t)) * 8; }
bool is_unsigned(DType t) {
    return t == DType::UInt8 || t == DType::UInt16 || t == DType::UInt32 || t == DType::UInt64;
}
DType signed_of(int bits) {
    return bits <= 8 ? DType::Int8 : bits <= 16 ? DType::Int16 : bits <= 32 ? DType::Int32 : DType::Int64;
}

}  // namespace

const char* name(DType t) { return kNames[static_cast<int>(t)]; }

DType promote(DType a, DType b) {
    if (a == b) return a;
    RL_CHECK(!is_float8(a) && !is_float8(b), throw_runtime,
             "Promotion for Float8 Types is not supported, attempted to promote %s and %s\n"
             "hint: convert one of them first, as in x.to(torch.float32)",
             name(a), name(b));
    DTypeCategory ca = category(a), cb = category(b);
    if (ca != cb) {
        DType high = ca > cb ? a : b, low = ca > cb ? b : a;
        // For a complex dtype and a wider real floating dtype, the complex dtype that holds both.
        if (category(high) == DTypeCategory::Complex && low == DType::Float64) return DType::Complex128;
        return high;
    }
    if (ca == DTypeCategory::Floating) {
        if (itemsize(a) == 2 && itemsize(b) == 2) return DType::Float32;  // float16 with bfloat16
        return itemsize(a) > itemsize(b) ? a : b;
    }
    if (ca == DTypeCategory::Complex) return DType::Complex128;
    // Two integer dtypes: if both are signed or both unsigned, the wider one; else a signed dtype that holds both.
    if (is_unsigned(a) == is_unsigned(b)) return bits(a) > bits(b) ? a : b;
    DType u = is_unsigned(a) ? a : b, s = is_unsigned(a) ? b : a;
    if (bits(s) > bits(u)) return s;
    RL_CHECK(
        bits(u) < 64, throw_runtime,
        "promotion of %s and %s is not defined: no integer type holds both\nhint: convert one of them first",
        name(a), name(b));
    return signed_of(bits(u) * 2);
}

DType default_dtype() { return default_dtype_.load(std::memory_order_relaxed); }

void Scalar::fail_complex() const {
    throw_runtime("expected a real number, got the complex number %g%+gj", floating_, imaginary_);
}

void set_default_dtype(DType t) {
    RL_CHECK(is_floating(t) && !is_float8(t), throw_type,
             "set_default_dtype(d): d must be a floating point dtype other than float8, got %s", name(t));
    default_dtype_.store(t, std::memory_order_relaxed);
}

}  // namespace rushlight
