#include "python/python.h"
namespace rushlight::python {
PyMethodDef interchange_methods[] = {{nullptr, nullptr, 0, nullptr}};
PyBufferProcs tensor_buffer{};
int add_interchange(PyObject*) { return 0; }
int add_introspection(PyObject*) { return 0; }
}
