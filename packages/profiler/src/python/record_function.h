// The Python type `record_function`.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace rushlight::profiler {

/// Adds the type to the module. Returns -1 with a Python error set on failure.
int add_record_function(PyObject* module);

}  // namespace rushlight::profiler
