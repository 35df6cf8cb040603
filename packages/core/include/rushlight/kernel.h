// What a kernel sees: raw memory, numbers and a context, never a tensor or an operator. Plain C layout, so that a
// device plug-in, which links nothing of core, is called with the same structs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rushlight/complex.h"
#include "rushlight/dtype.h"

namespace rushlight {

/// Strided memory. `data` points at the first element; sizes and strides count elements and hold `ndim` entries.
/// An absent optional tensor has `data == nullptr` and `ndim == -1`.
struct View {
    void* data;
    const int64_t* sizes;
    const int64_t* strides;
    int64_t numel;
    int32_t ndim;
    DType dtype;
    uint8_t contiguous;  // row-major without gaps

    bool defined() const { return ndim >= 0; }
    template <class T>
    T* as() const {
        return static_cast<T*>(data);
    }
    int64_t size(int d) const { return sizes[d < 0 ? d + ndim : d]; }
    int64_t stride(int d) const { return strides[d < 0 ? d + ndim : d]; }
};

/// A list of tensors among a kernel's outputs or inputs.
struct Views {
    const View* data;
    int64_t size;

    const View& operator[](int64_t i) const { return data[i]; }
};

/// A list of integers among a kernel's parameters (stride, padding).
struct Ints {
    const int64_t* data;
    int64_t size;

    int64_t operator[](int64_t i) const { return data[i]; }
    const int64_t* begin() const { return data; }
    const int64_t* end() const { return data + size; }
};

/// A number, a string or a list of integers among a kernel's arguments.
struct Param {
    enum class Kind : uint8_t { None, Bool, Int, Float, String, Ints, Complex } kind;
    uint32_t length;  // of a string or a list
    union {
        int64_t integer;
        double floating;
        const char* string;
        const int64_t* ints;
        const double* parts;  // the real and the imaginary one
    };

    int64_t as_int() const { return kind == Kind::Float ? static_cast<int64_t>(floating) : integer; }
    double as_float() const { return kind == Kind::Float ? floating : static_cast<double>(integer); }
    bool as_bool() const { return as_float() != 0; }
    Complex<double> as_complex() const {
        return kind == Kind::Complex ? Complex<double>(parts[0], parts[1]) : Complex<double>(as_float(), 0);
    }
    std::string_view as_string() const { return {string, length}; }
    /// A number that the kernel takes in whatever kind it is.
    operator Complex<double>() const { return as_complex(); }
    Ints as_ints() const { return {ints, static_cast<int64_t>(length)}; }
};

/// Counter-based random numbers: value i of this call is philox(seed, offset, i).
struct PhiloxKey {
    uint64_t seed;
    uint64_t offset;
};

/// Services for a kernel. Scratch memory lives until the operator's last kernel returns.
struct KernelContext {
    void* (*scratch)(KernelContext*, size_t nbytes);  // 64-byte aligned; raises when memory is out
    void* stream;  // of the device; null on the CPU
    PhiloxKey random;  // of operators that are marked `random`
    void* impl;  // of whoever made the context
    int32_t device;  // its index; 0 on the CPU
    void* kept =
        nullptr;  // on the CPU what an operator's first kernel leaves to its second, in scratch memory
};

/// One call of one kernel. Tensors are the outputs, then the inputs, in the order of the schema.
struct KernelArgs {
    uint32_t struct_size;
    uint16_t num_outputs, num_inputs, num_params;
    const View* tensors;
    const Param* params;
    KernelContext* context;

    const View& out(int i) const { return tensors[i]; }
    const View& in(int i) const { return tensors[num_outputs + i]; }
};

using KernelFn = void (*)(const KernelArgs&);

}  // namespace rushlight
