// The arguments of a kernel: raw memory, numbers and a context, never a tensor or an operator. The structs have a plain
// C layout, so that device plug-ins, which are not linked against core, receive the same structs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rushlight/complex.h"
#include "rushlight/dtype.h"

namespace rushlight {

/// A view of strided memory. `data` is the address of the first element. There are `ndim` sizes and `ndim` strides.
/// Strides are in elements. An absent optional tensor has `data == nullptr` and `ndim == -1`.
///
/// Strides may be any numbers, including 0 and negative ones: `expand` of a (3, 1) tensor to (3, 4) has strides (1, 0),
/// `x.t()` of a row-major (2, 3) tensor has sizes (3, 2) and strides (1, 3), and a reversed view has a negative stride.
/// No two elements of an output share memory. An output and an input may consist of the same elements in the same order
/// (`x.add_(y)`). If they overlap in another way, core passes a copy of the input.
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
    uint32_t length;  // the length of a string or a list
    union {
        int64_t integer;
        double floating;
        const char* string;
        const int64_t* ints;
        const double* parts;  // the real and the imaginary part
    };

    int64_t as_int() const { return kind == Kind::Float ? static_cast<int64_t>(floating) : integer; }
    double as_float() const { return kind == Kind::Float ? floating : static_cast<double>(integer); }
    bool as_bool() const { return as_float() != 0; }
    Complex<double> as_complex() const {
        return kind == Kind::Complex ? Complex<double>(parts[0], parts[1]) : Complex<double>(as_float(), 0);
    }
    std::string_view as_string() const { return {string, length}; }
    /// Converts a number of any kind to a complex number.
    operator Complex<double>() const { return as_complex(); }
    Ints as_ints() const { return {ints, static_cast<int64_t>(length)}; }
};

/// Counter-based random numbers: value i of this call is philox(seed, offset, i).
struct PhiloxKey {
    uint64_t seed;
    uint64_t offset;
};

/// The arguments of a device's kernel besides its tensors. Later versions of the struct may be longer; its size is
/// `struct_size` bytes.
struct DeviceCall {
    uint32_t struct_size;
    int32_t device;  // its index
    void* stream;  // the stream on which the work is queued; null is the default stream
    /// Null if the random key is `KernelContext::random`. Otherwise this is the address of a key in the device's
    /// memory, which the kernel reads when it runs. The kernel uses the seed `random_base->seed` and the offset
    /// `random_base->offset + random.offset`, so a captured kernel draws different numbers each time it is replayed.
    const PhiloxKey* random_base;
    const char* op;  // name of the operator, a string constant, for errors that are detected later
    uint32_t site;  // site of the call, for HostTable::describe
};

/// Services for a kernel. Scratch memory stays valid until the operator's last kernel returns.
struct KernelContext {
    /// Returns memory aligned to 64 bytes. If no memory is left, the function raises an error on the CPU, and returns
    /// null on a device.
    void* (*scratch)(KernelContext*, size_t nbytes);
    // For operators that are marked `random`.
    PhiloxKey random;
    // Data of the creator of the context.
    void* impl;
    // Only on the CPU: data in scratch memory that an operator's first kernel passes to its second kernel.
    void* kept;
    // Set for devices; null on the CPU.
    const DeviceCall* call = nullptr;
};

/// If `compute` or `wide` has this value, no dtype is set: the tensors of the call determine the dtype.
inline constexpr DType kNoDType = static_cast<DType>(0xFF);

/// The arguments of one call of one kernel. `tensors` holds the outputs, then the inputs, in the order of the schema.
struct KernelArgs {
    uint32_t struct_size;
    uint16_t num_outputs, num_inputs, num_params;
    /// For pointwise operators and reductions: the dtype of the computation. Operands of another dtype are converted to
    /// `compute` as they are read. `compute` is float32 for `int32 + float32` and for `float16 + float16`. An operand
    /// that is a condition (of `where`) stays bool.
    DType compute;
    /// For reductions: the dtype of the results before they are converted to the output's dtype. Partial results have
    /// this dtype or a wider dtype. `accumulate` is float32 for the sum of float16 elements.
    DType accumulate;
    const View* tensors;
    const Param* params;
    KernelContext* context;

    const View& out(int i) const { return tensors[i]; }
    const View& in(int i) const { return tensors[num_outputs + i]; }
};

using KernelFn = void (*)(const KernelArgs&);

}  // namespace rushlight
