// What a kernel receives: raw memory, numbers and a context, never a tensor or an operator. Plain C layout, so that a
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
///
/// Strides are any numbers, 0 and negative ones among them: `expand` of a (3, 1) tensor to (3, 4) has strides (1, 0),
/// `x.t()` of a row-major (2, 3) tensor has sizes (3, 2) and strides (1, 3), and a reversed view counts down from `data`.
/// No two elements of an output share memory. An output and an input may be the same elements in the same order (`x.add_(y)`);
/// where they overlap in another way, core has made a copy of the input.
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
    /// A number of any kind.
    operator Complex<double>() const { return as_complex(); }
    Ints as_ints() const { return {ints, static_cast<int64_t>(length)}; }
};

/// Counter-based random numbers: value i of this call is philox(seed, offset, i).
struct PhiloxKey {
    uint64_t seed;
    uint64_t offset;
};

/// What a kernel of a device receives besides its tensors. Later versions may be longer: the struct has `struct_size`
/// bytes.
struct DeviceCall {
    uint32_t struct_size;
    int32_t device;  // its index
    void* stream;  // where the work is queued; null is the default one
    /// Null where the key is `KernelContext::random`. Else a key in the device's memory that is read when the kernel runs:
    /// seed and offset are `random_base->seed` and `random_base->offset + random.offset`, so that a captured kernel draws
    /// other numbers each time it is replayed.
    const PhiloxKey* random_base;
    const char* op;  // the operator, a constant: for errors that are found late
    uint32_t site;  // the line that called it, for HostTable::describe
};

/// Services for a kernel. Scratch memory stays valid until the operator's last kernel returns.
struct KernelContext {
    /// Memory aligned to 64 bytes. If there is none left, it raises on the CPU and returns null on a device.
    void* (*scratch)(KernelContext*, size_t nbytes);
    PhiloxKey random;  // of operators that are marked `random`
    void* impl;  // of the context's creator
    void* kept;  // on the CPU what an operator's first kernel leaves to its second, in scratch memory
    const DeviceCall* call = nullptr;  // of a device; null on the CPU
};

/// Used in place of a dtype: the tensors of the call determine the dtype.
inline constexpr DType kNoDType = static_cast<DType>(0xFF);

/// One call of one kernel. Tensors are the outputs, then the inputs, in the order of the schema.
struct KernelArgs {
    uint32_t struct_size;
    uint16_t num_outputs, num_inputs, num_params;
    /// Of pointwise operators and reductions: the dtype in which elements are computed, to which operands of another are
    /// converted as they are read. `int32 + float32` has float32, and so has `float16 + float16`. An operand that is a
    /// condition (of `where`) stays bool.
    DType compute;
    /// Of reductions: the dtype of the results before they are converted to the output's, in which partial results are no
    /// narrower. The sum of float16 elements has float32.
    DType accumulate;
    const View* tensors;
    const Param* params;
    KernelContext* context;

    const View& out(int i) const { return tensors[i]; }
    const View& in(int i) const { return tensors[num_outputs + i]; }
};

using KernelFn = void (*)(const KernelArgs&);

}  // namespace rushlight
