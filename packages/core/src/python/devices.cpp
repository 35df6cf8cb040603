// Devices beyond the CPU: attaching plug-ins, counting and choosing devices, waiting for them.
#include "python/arguments.h"
#include "rushlight/backend.h"
#include "rushlight/dispatch.h"

namespace rushlight::python {
namespace {

/// A device or its name; without an index it is the current one of its type.
Device read_device(const char* function, PyObject* o) {
    Device device;
    RL_CHECK(to_device(o, device), throw_type, "%s(device): must be a device or a str, not %s", function,
             Py_TYPE(o)->tp_name);
    return device;
}

PyObject* load_backend_py(PyObject*, PyObject* path) {
    RL_PY_TRY
    Object text = Object::steal(PyOS_FSPath(path));
    RL_CHECK(PyUnicode_Check(text.get()), throw_type, "load_backend(path): must be a str, not bytes");
    const char* utf8 = PyUnicode_AsUTF8(text.get());
    if (!utf8) return nullptr;
    return PyUnicode_FromString(load_backend(utf8).name);
    RL_PY_CATCH
}

PyObject* device_count_py(PyObject*, PyObject* type) {
    RL_PY_TRY return PyLong_FromLong(device_count(read_device("device_count", type).type));
    RL_PY_CATCH
}

PyObject* current_device_py(PyObject*, PyObject* type) {
    RL_PY_TRY
    Device device = read_device("current_device", type);
    device.index = -1;
    return wrap(resolve(device));
    RL_PY_CATCH
}

PyObject* set_device(PyObject*, PyObject* o) {
    RL_PY_TRY
    Device device = read_device("set_device", o);
    RL_CHECK(device.type != DeviceType::Meta, throw_value, "set_device(device): there is one meta device");
    set_current_device(device);
    Py_RETURN_NONE;
    RL_PY_CATCH
}

PyObject* synchronize_py(PyObject*, PyObject* o) {
    RL_PY_TRY
    Device device = read_device("synchronize", o);
    {
        WithoutGil nogil;
        synchronize(device);
    }
    Py_RETURN_NONE;
    RL_PY_CATCH
}

/// Python packages offer backends as entry points: rushlight_core.devices.
bool find_in_packages(std::string_view name) {
    if (!Py_IsInitialized()) return false;
    WithGil gil;
    Object module = Object::steal(PyImport_ImportModule("rushlight_core.devices"));
    Object found = Object::steal(PyObject_CallMethod(module.get(), "find_backend", "s#", name.data(),
                                                     static_cast<Py_ssize_t>(name.size())));
    return found.get() == Py_True;
}

// _kernels(type): what `codegen duty` asks.
PyObject* kernels_py(PyObject*, PyObject* type) {
    RL_PY_TRY
    const Device device = read_device("_kernels", type);
    Object list = Object::steal(PyList_New(0));
    for (std::string_view name : kernels_of(device.type)) {
        Object text =
            Object::steal(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
        if (PyList_Append(list.get(), text.get()) < 0) return nullptr;
    }
    return list.release();
    RL_PY_CATCH
}

// Their documentation is that of rushlight_core.devices.
PyMethodDef functions[] = {{"_load_backend", load_backend_py, METH_O, nullptr},
                           {"_device_count", device_count_py, METH_O, nullptr},
                           {"_current_device", current_device_py, METH_O, nullptr},
                           {"_kernels", kernels_py, METH_O, nullptr},
                           {"_set_device", set_device, METH_O, nullptr},
                           {"_synchronize", synchronize_py, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_devices(PyObject* module) {
    set_backend_finder(find_in_packages);
    return PyModule_AddFunctions(module, functions);
}

}  // namespace rushlight::python
