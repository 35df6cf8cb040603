// How another extension module shares core's Python objects: a capsule, `rushlight_core._C._capsule`, of this struct.
// Includes no Python header: objects are passed as void pointers (PyObject*).
#pragma once

#include <cstdint>

#include "rushlight/abi.h"
#include "rushlight/tensor.h"

namespace rushlight {

struct PythonApi {
    uint32_t struct_size;
    const char* abi;  // RUSHLIGHT_ABI of the running core
    const void* instance;  // an address inside the running librushlight: two copies in a process have two
    void* tensor_type;  // PyTypeObject*
    void* (*wrap)(TensorImpl*);  // borrows the tensor, returns a new reference; None for null
    TensorImpl* (*unwrap)(void* object);  // borrowed; null when the object is no Tensor
    void (*set_error)();  // inside a catch block: sets the Python error of the C++ one
    // The result of the class of a tensor for Tensor.<name>(self, *args, **kwargs), if it has a __torch_function__; `part`
    // is "__get__" or "__set__" for a property, else null. Null without a Python error where the member itself has to run.
    void* (*answer_by_class)(const char* name, const char* part, void* self, void* args, void* kwargs);
    // To be called before a thread requests the GIL, and by destructors that touch Python: at the interpreter's end a thread
    // that requests it is unwound.
    void (*sleep_if_interpreter_ends)();
};
inline constexpr const char* kPythonCapsule = "rushlight_core._C._capsule";

/// An address that is this library's own.
RL_API const void* instance();

}  // namespace rushlight
