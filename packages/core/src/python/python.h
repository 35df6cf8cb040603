// The Python headers, conversion of errors between C++ and Python, and the object types of this module.
#pragma once

#include "python/gil.h"
#include "rushlight/random.h"
#include "rushlight/tensor.h"

namespace rushlight::python {

/// Thrown if a Python error is already set.
struct PythonError {};

/// Sets the Python error that a signal handler raised when it interrupted a call. Returns false if there was no such
/// error.
bool restore_interrupt();

/// Must be called inside a catch block. Sets the Python error that corresponds to the C++ exception, and returns
/// nullptr. For a call that an override has handled (override.h), returns the override's result instead. If the text of
/// an error does not begin with the name of `caller`, that name is added in front, because the error may come from an
/// operator that `caller` called.
PyObject* translate_exception(const char* caller = nullptr);

#define RL_PY_TRY try {
#define RL_PY_CATCH                                        \
    }                                                      \
    catch (...) {                                          \
        return ::rushlight::python::translate_exception(); \
    }
#define RL_PY_CATCH_OF(caller)                                   \
    }                                                            \
    catch (...) {                                                \
        return ::rushlight::python::translate_exception(caller); \
    }
#define RL_PY_CATCH_INT                                                \
    }                                                                  \
    catch (...) {                                                      \
        PyObject* answer = ::rushlight::python::translate_exception(); \
        Py_XDECREF(answer);                                            \
        return answer ? 0 : -1;                                        \
    }

/// An owned reference.
class Object {
  public:
    Object() = default;
    /// Takes ownership of a new reference. Throws PythonError if it is null, which means that a Python error is set.
    static Object steal(PyObject* p) {
        if (!p) throw PythonError();
        return Object(p);
    }
    static Object borrow(PyObject* p) { return Object(Py_XNewRef(p)); }
    Object(Object&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
    Object(const Object& other) : p_(Py_XNewRef(other.p_)) {}
    Object& operator=(Object other) noexcept {
        std::swap(p_, other.p_);
        return *this;
    }
    ~Object() {
        if (!p_) return;
        sleep_if_interpreter_ends();
        Py_DECREF(p_);
    }
    PyObject* get() const { return p_; }
    PyObject* release() { return std::exchange(p_, nullptr); }
    explicit operator bool() const { return p_ != nullptr; }

  private:
    explicit Object(PyObject* p) : p_(p) {}
    PyObject* p_ = nullptr;
};

/// A function or type of a module, looked up when it is first used. Declared `static constinit`, so that its
/// initialisation has no guard. A guard could cause a deadlock: a thread that holds the GIL would wait at the guard for
/// a thread that waits for the GIL during the import.
class Lookup {
  public:
    constexpr Lookup(const char* module, const char* name) : module_(module), name_(name) {}
    /// Returns a borrowed reference that is never freed. Throws if the import fails, and tries again in the next call.
    PyObject* get() {
        if (!found_) [[unlikely]] {
            Object module = Object::steal(PyImport_ImportModule(module_));
            Object found = Object::steal(PyObject_GetAttrString(module.get(), name_));
            if (!found_) found_ = found.release();
        }
        return found_;
    }

  private:
    const char* module_;
    const char* name_;
    PyObject* found_ = nullptr;
};

// --- Tensor (tensor_type.cpp) ---

struct PyTensor {
    PyObject_HEAD Tensor tensor;  // undefined while the tensor owns its wrapper: Note [Wrappers]
    PyObject* dict;
    PyObject* weakrefs;
};
extern PyTypeObject* TensorType;

inline bool is_tensor(PyObject* o) {
    return Py_TYPE(o) == TensorType || PyType_IsSubtype(Py_TYPE(o), TensorType);
}
/// Returns the tensor of an object, without checking the object's type.
inline const Tensor& unwrap(PyObject* o) { return reinterpret_cast<PyTensor*>(o)->tensor; }
/// Returns a new reference to the tensor's wrapper; None for an undefined tensor.
PyObject* wrap(Tensor t);
/// Returns a new wrapper of a subclass. The tensor must not have a wrapper yet.
PyObject* wrap_as(PyTypeObject* type, Tensor t);

// --- dtype, device, Size, Generator (small_types.cpp) ---

struct PyDType {
    PyObject_HEAD DType dtype;
};
struct PyDevice {
    PyObject_HEAD Device device;
};
struct PyGenerator {
    PyObject_HEAD Ref<Generator> generator;
    Device device;  // for whose tensors the generator is used; the numbers are the same on all devices
};
extern PyTypeObject* DTypeType;
extern PyTypeObject* DeviceType_;
extern PyTypeObject* GeneratorType;
extern PyTypeObject* SizeType;
PyObject* wrap(DType t);
PyObject* wrap(Device d);
PyObject* wrap_generator(Ref<Generator> g);
/// torch.Size: a tuple of ints.
PyObject* wrap_size(IntList sizes);
/// Converts a dtype object, or one of Python's types bool, int and float. Returns false for other objects.
bool to_dtype(PyObject* o, DType& out);
bool to_device(PyObject* o, Device& out);

// Each function adds one part of the module. Returns -1 and sets a Python error if it fails.
int add_small_types(PyObject* module);
int add_tensor_type(PyObject* module);
int add_storage_type(PyObject* module);
int add_indexing(PyObject* module);
int add_creation(PyObject* module);
int add_dtype_functions(PyObject* module);
int add_buffers(PyObject* module);
int add_dlpack(PyObject* module);
int add_modes(PyObject* module);
int add_override(PyObject* module);
int add_overridable(PyObject* module);
int add_capsule(PyObject* module);
int add_introspection(PyObject* module);
int add_sites(PyObject* module);
int add_interrupts(PyObject* module);
int add_caller_locks(PyObject* module);
int add_devices(PyObject* module);
int add_streams(PyObject* module);
int add_graphs(PyObject* module);
int add_stages(PyObject* module);
int add_errors(PyObject* module);
int add_lapack(PyObject* module);
int add_compute(PyObject* module);
int add_sparse(PyObject* module);
int add_default_device(PyObject* module);
int add_collective(PyObject* module);

/// Methods and properties that are written by hand. Each table ends with a null name.
extern PyMethodDef tensor_methods[];
extern PyMethodDef buffer_methods[];
extern PyMethodDef dlpack_methods[];
extern PyMethodDef storage_methods[];
extern PyMethodDef override_methods[];
PyMethodDef* python_methods();
extern PyGetSetDef tensor_properties[];
extern PyMappingMethods tensor_mapping;
extern PyBufferProcs tensor_buffer;
PyObject* get_item(PyObject* self, PyObject* index);
int set_item(PyObject* self, PyObject* index, PyObject* value);
PyObject* tensor_iter(PyObject* self);
int tensor_contains(PyObject* self, PyObject* element);
PyObject* tensor_repr(PyObject* self);
PyObject* tensor_invert(PyObject* self);
PyObject* tensor_power(PyObject* base, PyObject* exponent, PyObject* modulus);
PyObject* tensor_inplace_power(PyObject* base, PyObject* exponent, PyObject* modulus);
int tensor_bool(PyObject* self);
PyObject* tensor_int(PyObject* self);
PyObject* tensor_float(PyObject* self);
PyObject* tensor_index(PyObject* self);

/// Returns the value of a tensor with one element.
Scalar item(const Tensor& t);

}  // namespace rushlight::python
