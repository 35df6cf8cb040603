// The Python type `record_function`.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace rushlight::profiler {

/// Adds the type to the module; -1 with an error set.
int add_record_function(PyObject* module);

}  // namespace rushlight::profiler
