// Conversion between Python objects and the boxed values of dispatch.
#pragma once

#include <string_view>
#include <vector>

#include "python/python.h"
#include "rushlight/schema.h"
#include "rushlight/value.h"

namespace rushlight::python {

/// Converts a value of any kind. A list of integers or tensors becomes a tuple.
Object to_python(const Value& value);

/// Converts a Python argument to a value of a schema type; returns false if its type does not match.
bool to_value(PyObject* o, std::string_view type, Value& out);

/// Calls an operator, starting with the stages in `mask`, with one Python argument for each argument of its schema.
/// Returns its results.
std::vector<Value> call_operator(const Operator& op, PyObject* const* args, Py_ssize_t count,
                                 StageMask mask = kAllStages);

/// Returns None, one object, or a tuple of several objects.
Object results_to_python(const std::vector<Value>& results);

}  // namespace rushlight::python
