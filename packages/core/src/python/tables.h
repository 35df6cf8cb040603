// The generated tables of the module and the type.
#pragma once

#include "python/python.h"

namespace rushlight::python {

extern PyMethodDef generated_functions[];
extern PyMethodDef generated_methods[];
void fill_number_slots(PyNumberMethods& slots);
PyObject* compare(PyObject* a, PyObject* b, int how);

}  // namespace rushlight::python
