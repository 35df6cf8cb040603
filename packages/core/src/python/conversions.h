// From Python data to tensors.
#pragma once

#include <optional>

#include "python/python.h"

namespace rushlight::python {

/// Nested lists and tuples of numbers, or one number (creation.cpp).
Tensor from_sequence(PyObject* data, std::optional<DType> dtype);

enum class ArrayCopy : uint8_t {
    Never,     // ValueError where the memory cannot be used as it is
    IfNeeded,  // negative strides, another byte order, misaligned elements
    Always,
};

/// A tensor over the memory of an object with a buffer (NumPy arrays, memoryview, array.array, mmap), which the tensor owns;
/// read-only memory makes a read-only tensor. `op` names the caller in errors. (buffers.cpp)
Tensor from_array(PyObject* array, ArrayCopy copy, const char* op = "tensor(data)");

/// Whether it is a numpy.ndarray; does not import NumPy.
bool is_numpy_array(PyObject* o);

}  // namespace rushlight::python
