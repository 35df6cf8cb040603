// Conversion of Python data to tensors.
#pragma once

#include <optional>

#include "python/python.h"

namespace rushlight::python {

/// Converts nested lists and tuples of numbers, or one number (creation.cpp).
Tensor from_sequence(PyObject* data, std::optional<DType> dtype);

enum class ArrayCopy : uint8_t {
    Never,     // raises ValueError if the memory cannot be used directly
    IfNeeded,  // copies if strides are negative, bytes are swapped or elements are misaligned
    Always,
};

/// Returns a tensor over the memory of an object with a buffer (NumPy array, memoryview, array.array, mmap), and keeps
/// the object alive. The tensor is read-only if the memory is read-only. `op` names the caller in errors. (buffers.cpp)
Tensor from_array(PyObject* array, ArrayCopy copy, const char* op = "tensor(data)");

/// Whether the object is a numpy.ndarray. Does not import NumPy.
bool is_numpy_array(PyObject* o);

}  // namespace rushlight::python
