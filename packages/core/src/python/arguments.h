// Conversion of Python's arguments to C++ values: one table-driven parser for all operators.
//
// Values borrow from the caller's arguments, which exist until the call returns. Only lists are allocated.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "python/python.h"
#include "rushlight/sparse.h"

namespace rushlight::python {

enum class ArgType : uint8_t {
    Tensor,
    OptTensor,
    TensorList,
    OptTensorList,
    TensorOrScalar,
    OptTensorOrScalar,
    Scalar,
    OptScalar,
    Int,
    OptInt,
    IntList,
    OptIntList,
    Bool,
    OptBool,
    Float,
    OptFloat,
    Str,
    OptStr,
    DType,
    OptDType,
    OptDevice,
    OptGenerator,
    Out,
};

struct ArgSpec {
    static constexpr uint8_t kDefaulted = 1, kKeywordOnly = 2, kVarargs = 4;
    static constexpr uint8_t kComplex = 8;  // a number that may be complex
    static constexpr uint8_t kHere = 16;  // if omitted, the default device is used
    static constexpr uint8_t kNoneIsDefault = 64;  // None counts as omitted
    static constexpr uint8_t kNumber = 32;  // rejects 0-d tensors, which another signature accepts here
    static constexpr uint8_t kSparse = 128;  // a device of an operator that also makes sparse tensors
    const char* name;
    const char* alias;  // an alternative name, or null
    ArgType type;
    uint8_t fill;  // for int[n]: n, if one int stands for n equal ints
    uint8_t flags;
};

struct Signature {
    const char* text;
    const ArgSpec* args;
    uint8_t count;
    uint8_t self;  // index of the argument that is the object of a method
};

/// Converts a Python number, a NumPy number or a 0-d tensor. Returns false for other objects.
bool to_scalar(PyObject* o, Scalar& out);
/// The error for a Python integer that does not fit 64 bits. It becomes an OverflowError in Python.
class IntegerOverflow : public Error {
  public:
    IntegerOverflow() : Error(ErrorKind::Value, "an integer argument does not fit 64 bits") {}
};

/// Converts an int, or another object that Python accepts as an index. Returns false for other objects. Raises
/// OverflowError if the integer does not fit 64 bits.
bool to_int(PyObject* o, int64_t& out);

class Parser {
  public:
    static constexpr int kMaxArgs = 24;

    /// Returns the index of the first signature that fits. If no signature fits, raises a TypeError that names the
    /// argument that does not fit.
    int parse(const char* name, const Signature* signatures, int count, PyObject* self, PyObject* const* args,
              Py_ssize_t nargs, PyObject* kwnames);

    bool has(int i) const { return object_[i] != nullptr; }

    const Tensor& tensor(int i) const { return given(i) ? unwrap(object_[i]) : undefined(); }
    TensorOrScalar tensor_or_scalar(int i) const {
        return is_tensor(object_[i]) ? TensorOrScalar(unwrap(object_[i])) : TensorOrScalar(slot_[i].scalar);
    }
    std::optional<TensorOrScalar> opt_tensor_or_scalar(int i) const {
        return given(i) ? std::optional(tensor_or_scalar(i)) : std::nullopt;
    }
    TensorList tensors(int i) const { return {tensors_.data() + slot_[i].list.begin, slot_[i].list.size}; }
    Scalar scalar(int i) const { return slot_[i].scalar; }
    std::optional<Scalar> opt_scalar(int i) const { return opt(i, slot_[i].scalar); }
    int64_t integer(int i) const { return slot_[i].integer; }
    std::optional<int64_t> opt_integer(int i) const { return opt(i, slot_[i].integer); }
    IntList ints(int i) const { return {ints_data() + slot_[i].list.begin, slot_[i].list.size}; }
    std::optional<IntList> opt_ints(int i) const { return given(i) ? std::optional(ints(i)) : std::nullopt; }
    bool boolean(int i) const { return slot_[i].integer != 0; }
    std::optional<bool> opt_boolean(int i) const { return opt(i, slot_[i].integer != 0); }
    double floating(int i) const { return slot_[i].scalar.to<double>(); }
    std::optional<double> opt_floating(int i) const {
        // An omitted argument is not converted, since that might raise an error.
        return given(i) ? std::optional(floating(i)) : std::nullopt;
    }
    std::string_view string(int i) const { return {slot_[i].text.data, slot_[i].text.size}; }
    std::optional<std::string_view> opt_string(int i) const { return opt(i, string(i)); }
    DType dtype(int i) const { return slot_[i].dtype; }
    std::optional<DType> opt_dtype(int i) const { return opt(i, slot_[i].dtype); }
    std::optional<Device> opt_device(int i) const { return opt(i, slot_[i].device); }
    Generator* generator(int i) const {
        return given(i) ? reinterpret_cast<PyGenerator*>(object_[i])->generator.get() : nullptr;
    }
    /// Returns tensor k of the `count` tensors that were passed as `out`.
    const Tensor& out(int i, int k, int count) const;
    /// Returns a new tensor; moves it to page-locked memory if `pin_memory=True` was passed.
    Tensor placed(Tensor t) const { return pins_ ? pinned(t) : t; }
    /// Whether a sparse layout was passed.
    bool sparse() const { return layout_.has_value(); }
    /// Returns a tensor of zeros in the sparse layout that was passed.
    Tensor sparse_zeros(const char* op, IntList size, std::optional<DType> dtype,
                        std::optional<Device> device, bool requires_grad,
                        std::optional<std::string_view> memory_format = {}) const;
    /// Returns a tensor of zeros in the sparse layout that was passed, by default with the dtype and device of `like`.
    Tensor sparse_zeros(const char* op, const Tensor& like, IntList size, std::optional<DType> dtype,
                        std::optional<Device> device, bool requires_grad) const;
    /// Returns a tensor of zeros of the shape of `like`.
    Tensor sparse_zeros(const char* op, const Tensor& like, std::optional<DType> dtype,
                        std::optional<Device> device, bool requires_grad,
                        std::optional<std::string_view> memory_format) const;
    /// Returns tensor i. If `layout=torch.strided` was passed and tensor i is sparse, returns a dense tensor of the
    /// same shape, dtype and device.
    Tensor like(int i) const;
    /// Returns the tensors of out=, for operators that return a list of tensors.
    TensorList outs(int i) const;

  private:
    struct List {
        uint32_t begin, size;
    };
    union Slot {
        Slot() {}
        int64_t integer;
        Scalar scalar;
        List list;
        struct {
            const char* data;
            size_t size;
        } text;
        DType dtype;
        Device device;
    };
    // Written by `bind` if it fails. The fields have no initialisers, because every call allocates several of these
    // structs.
    struct Failure {
        enum Kind { Type, Missing, TooMany, Unknown, Twice } kind;
        int arg;
        int position;
        PyObject* object;  // the value or the keyword, borrowed
    };

    bool given(int i) const { return object_[i] && object_[i] != Py_None; }
    template <class T>
    std::optional<T> opt(int i, T value) const {
        return given(i) ? std::optional<T>(value) : std::nullopt;
    }
    static const Tensor& undefined();
    const int64_t* ints_data() const { return more_ints_.empty() ? ints_ : more_ints_.data(); }
    void push_int(int64_t v);

    bool bind(const char* name, const Signature& s, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
              PyObject* kwnames, Failure& failure);
    bool convert(const ArgSpec& spec, PyObject* o, int i);
    bool convert_ints(const ArgSpec& spec, PyObject* o, int i);
    bool convert_tensors(PyObject* o, int i, bool optional);
    [[noreturn]] void fail(const char* name, const Signature* signatures, int count, const Failure* failures,
                           PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

    static Tensor pinned(const Tensor& t);

    PyObject* object_[kMaxArgs];
    bool pins_ = false;
    bool strided_ = false;
    std::optional<Layout> layout_;
    Slot slot_[kMaxArgs];
    int64_t ints_[kMaxDims];
    uint32_t num_ints_ = 0;
    std::vector<int64_t> more_ints_;
    std::vector<Tensor> tensors_;
};

using BinarySlot = PyObject* (*)(PyObject*, PyObject*);
/// Computes the result of a number slot if an operand is neither a tensor nor a number. If the class of such an operand
/// has a __torch_function__, calls it. Otherwise converts NumPy arrays to tensors and calls `slot`, and returns
/// NotImplemented for operands of other classes. `name` is the name of the operator.
PyObject* other_operands(BinarySlot slot, const char* name, PyObject* a, PyObject* b);

/// An operand of a function in a slot of Python's number protocol, such as `nb_add`: a tensor or a number.
class Operand {
  public:
    explicit Operand(PyObject* o)
        : tensor_(is_tensor(o) ? &unwrap(o) : nullptr), ok_(tensor_ || to_scalar(o, scalar_)) {}
    explicit operator bool() const { return ok_; }
    operator TensorOrScalar() const { return tensor_ ? TensorOrScalar(*tensor_) : TensorOrScalar(scalar_); }

  private:
    const Tensor* tensor_;
    Scalar scalar_;
    bool ok_;
};

/// An operand of a function in a slot of Python's number protocol that accepts only tensors.
class TensorOperand {
  public:
    explicit TensorOperand(PyObject* o) : tensor_(is_tensor(o) ? &unwrap(o) : nullptr) {}
    explicit operator bool() const { return tensor_; }
    const Tensor& tensor() const { return *tensor_; }

  private:
    const Tensor* tensor_;
};

}  // namespace rushlight::python
