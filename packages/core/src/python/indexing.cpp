// tensor[index] and tensor[index] = value.
#include "python/arguments.h"
#include "rushlight/ops/select.h"

namespace rushlight::python {

PyObject* get_item(PyObject* self, PyObject* index) {
    RL_PY_TRY
    int64_t i;
    if (PyLong_CheckExact(index) && to_int(index, i)) return wrap(ops::select(unwrap(self), 0, i));
    throw_type("index of type %s", Py_TYPE(index)->tp_name);
    RL_PY_CATCH
}
int set_item(PyObject*, PyObject* index, PyObject*) {
    RL_PY_TRY
    throw_type("index of type %s", Py_TYPE(index)->tp_name);
    RL_PY_CATCH_INT
}

}  // namespace rushlight::python
