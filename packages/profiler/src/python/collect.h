// Converts records to Python objects.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "recorder.h"

namespace rushlight::profiler {

/// Returns a tuple (start_time, duration, {thread: name}, dropped, bare, allocated, [event...]) with the events in
/// order of time. Events and arguments are named tuples of rushlight_core.seams.profiler. Returns null with a Python
/// error set on failure.
PyObject* to_python(const Recording& recording, PyTypeObject* event_type, PyTypeObject* argument_type);

}  // namespace rushlight::profiler
