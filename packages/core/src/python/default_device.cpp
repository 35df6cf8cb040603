#include "python/default_device.h"

#include <vector>

#include "python/arguments.h"
#include "rushlight/error.h"

namespace rushlight::python {

constinit thread_local std::optional<Device> default_device;

namespace {

// The default devices outside of each `with` block that the thread is in.
thread_local std::vector<std::optional<Device>> outer;

// _set_default_device(device or None), _default_device() -> device or None
PyObject* set_default_device(PyObject*, PyObject* given) {
    RL_PY_TRY
    if (given == Py_None) {
        default_device.reset();
    } else {
        Device device;
        RL_CHECK(to_device(given, device), throw_type,
                 "set_default_device(device): must be a device, a str, an int or None, not %s",
                 Py_TYPE(given)->tp_name);
        default_device = device;
    }
    Py_RETURN_NONE;
    RL_PY_CATCH
}
PyObject* get_default_device(PyObject*, PyObject*) {
    RL_PY_TRY
    if (default_device) return wrap(*default_device);
    Py_RETURN_NONE;
    RL_PY_CATCH
}

}  // namespace

void enter_device(Device device) {
    outer.push_back(default_device);
    default_device = device;
}
void leave_device() {
    RL_CHECK(!outer.empty(), throw_runtime, "device.__exit__: this thread is not in a `with device:` block");
    default_device = outer.back();
    outer.pop_back();
}

int add_default_device(PyObject* module) {
    static PyMethodDef functions[] = {{"_set_default_device", set_default_device, METH_O, nullptr},
                                      {"_default_device", get_default_device, METH_NOARGS, nullptr},
                                      {nullptr, nullptr, 0, nullptr}};
    return PyModule_AddFunctions(module, functions);
}

}  // namespace rushlight::python
