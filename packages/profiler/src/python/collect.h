// Converts records to Python objects.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "recorder.h"

namespace rushlight::profiler {

/// (start_time, duration, {thread: name}, dropped, bare, allocated, [event...]): the events in order of time.
/// The types are those of rushlight_core.seams.profiler, named tuples. Null with an error set.
PyObject* to_python(const Recording& recording, PyTypeObject* event_type, PyTypeObject* argument_type);

}  // namespace rushlight::profiler
