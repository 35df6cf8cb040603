// The interface by which other extension modules use core's Python objects: the capsule `rushlight_core._C._capsule`
// contains this struct. No Python header is included here: objects are passed as void pointers (PyObject*).
#pragma once

#include <cstdint>

#include "rushlight/abi.h"
#include "rushlight/tensor.h"

namespace rushlight {

struct PythonApi {
    uint32_t struct_size;
    const char* abi;  // RUSHLIGHT_ABI of the running core
    // An address inside the running librushlight. It differs between two copies of the library in one process.
    const void* instance;
    void* tensor_type;  // PyTypeObject*
    // Returns a new reference to the tensor's Python object; None for null. The argument is borrowed.
    void* (*wrap)(TensorImpl*);
    // Returns a borrowed tensor, or null if the object is not a Tensor.
    TensorImpl* (*unwrap)(void* object);
    // Called inside a catch block: sets the Python error that corresponds to the C++ exception.
    void (*set_error)();
    // Calls the __torch_function__ of a tensor's class, if it has one, for Tensor.<name>(self, *args, **kwargs), and
    // returns the result. `part` is "__get__" or "__set__" for a property, else null. Returns null without a Python
    // error if there is no override; the caller then runs the member itself.
    void* (*answer_by_class)(const char* name, const char* part, void* self, void* args, void* kwargs);
    // To be called before a thread requests the GIL, and by destructors that use Python objects. While the interpreter
    // ends, a thread that requests the GIL would be unwound.
    void (*sleep_if_interpreter_ends)();
};
inline constexpr const char* kPythonCapsule = "rushlight_core._C._capsule";

/// An address inside this copy of the library.
RL_API const void* instance();

}  // namespace rushlight
