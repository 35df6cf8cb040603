// Devices other than the CPU: functions that attach plug-ins, and count, select and synchronise devices.
#include <cstring>
#include <utility>

#include "python/arguments.h"
#include "rushlight/backend.h"
#include "rushlight/device_fallback.h"
#include "rushlight/dispatch.h"

namespace rushlight::python {
namespace {

/// Converts a device or its name to a Device. A device without an index becomes the current device of its type.
Device read_device(const char* function, PyObject* o) {
    Device device;
    RL_CHECK(to_device(o, device), throw_type, "%s(device): must be a device, a str or an int, not %s",
             function, Py_TYPE(o)->tp_name);
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
    RL_CHECK(device.type != DeviceType::Meta, throw_value,
             "set_device(device): must not be the meta device, because there is only one meta device");
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

/// Python packages register backends as entry points, which rushlight_core.devices searches.
bool find_in_packages(std::string_view name) {
    if (!Py_IsInitialized()) return false;
    WithGil gil;
    Object module = Object::steal(PyImport_ImportModule("rushlight_core.devices"));
    PyObject* found = PyObject_CallMethod(module.get(), "find_backend", "s#", name.data(),
                                          static_cast<Py_ssize_t>(name.size()));
    if (!found && PyErr_ExceptionMatches(PyExc_RuntimeError)) {
        // Core handles its own class of errors. Queries, such as the number of devices, return that there is no device.
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        Py_DECREF(type);
        Py_XDECREF(traceback);
        const Object error = Object::steal(value), text = Object::steal(PyObject_Str(value));
        const char* utf8 = PyUnicode_AsUTF8(text.get());
        if (!utf8) throw PythonError();
        throw_runtime("%s", utf8);
    }
    return Object::steal(found).get() == Py_True;
}

// _kernels(type) -> {name: [dtypes that the kernel does not support]}: for `codegen duty`.
PyObject* kernels_py(PyObject*, PyObject* type) {
    RL_PY_TRY
    const Device device = read_device("_kernels", type);
    Object kernels = Object::steal(PyDict_New());
    for (std::string_view kernel : kernels_of(device.type)) {
        const Operator* op = find_operator(kernel);  // null if several operators share the kernel
        const uint64_t lacks = op && op->kernels ? lacked_dtypes(device.type, *op->kernels) : 0;
        Object dtypes = Object::steal(PyList_New(0));
        for (int t = 0; t < kNumDTypes; ++t) {
            if (!(lacks >> t & 1)) continue;
            Object text = Object::steal(PyUnicode_FromString(name(static_cast<DType>(t))));
            if (PyList_Append(dtypes.get(), text.get()) < 0) return nullptr;
        }
        Object key =
            Object::steal(PyUnicode_FromStringAndSize(kernel.data(), static_cast<Py_ssize_t>(kernel.size())));
        if (PyDict_SetItem(kernels.get(), key.get(), dtypes.get()) < 0) return nullptr;
    }
    return kernels.release();
    RL_PY_CATCH
}
// _device_fallback() -> str, _set_device_fallback(str)
PyObject* get_device_fallback(PyObject*, PyObject*) {
    return PyUnicode_FromString(device_fallback() == DeviceFallback::Warn ? "warn" : "error");
}
PyObject* set_device_fallback_py(PyObject*, PyObject* o) {
    RL_PY_TRY
    const bool is_text = PyUnicode_Check(o);
    const bool warn = is_text && PyUnicode_CompareWithASCIIString(o, "warn") == 0;
    RL_CHECK(is_text, throw_type, "backends.device_fallback: must be a str, not %s", Py_TYPE(o)->tp_name);
    RL_CHECK(warn || PyUnicode_CompareWithASCIIString(o, "error") == 0, throw_value,
             "backends.device_fallback: got '%s', needs 'error' or 'warn'", PyUnicode_AsUTF8(o));
    set_device_fallback(warn ? DeviceFallback::Warn : DeviceFallback::Error);
    Py_RETURN_NONE;
    RL_PY_CATCH
}
// _plugin_device() -> the name of the device type of the backend other than CUDA; "" if there is none
PyObject* plugin_device(PyObject*, PyObject*) {
    const Backend* b = backend_of(DeviceType::Plugin);
    return PyUnicode_FromString(b ? b->name : "");
}

// _device_properties(device) -> dict
PyObject* device_properties_py(PyObject*, PyObject* o) {
    RL_PY_TRY
    const DeviceProperties p = device_properties(read_device("get_device_properties", o));
    const auto bytes = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    return Py_BuildValue(
        "{ss si si sK si si si si sO sO sK sK sK sK sN}", "name", p.name, "major", p.major, "minor", p.minor,
        "total_memory", bytes(p.total_memory), "multi_processor_count", p.multiprocessors,
        "max_threads_per_multi_processor", p.max_threads_per_multiprocessor, "warp_size", p.warp_size,
        "regs_per_multiprocessor", p.registers_per_multiprocessor, "is_integrated",
        p.integrated ? Py_True : Py_False, "is_multi_gpu_board", p.multi_gpu_board ? Py_True : Py_False,
        "L2_cache_size", bytes(p.l2_cache), "shared_memory_per_block", bytes(p.shared_memory_per_block),
        "shared_memory_per_block_optin", bytes(p.shared_memory_per_block_at_most),
        "shared_memory_per_multiprocessor", bytes(p.shared_memory_per_multiprocessor), "uuid",
        PyBytes_FromStringAndSize(reinterpret_cast<const char*>(p.uuid), sizeof p.uuid));
    RL_PY_CATCH
}
// _memory_info(device) -> (free, total)
PyObject* memory_info_py(PyObject*, PyObject* o) {
    RL_PY_TRY
    uint64_t free = 0, total = 0;
    memory_info(read_device("mem_get_info", o), free, total);
    return Py_BuildValue("(KK)", static_cast<unsigned long long>(free),
                         static_cast<unsigned long long>(total));
    RL_PY_CATCH
}
// _set_setting(name, value) -> the former value
PyObject* set_setting_py(PyObject*, PyObject* args) {
    static constexpr std::pair<const char*, Setting> kSettings[] = {
        {"tf32_products", Setting::Tf32Products},
        {"tf32_convolutions", Setting::Tf32Convolutions},
        {"tf32_recurrent", Setting::Tf32Recurrent},
        {"fp16_accumulation", Setting::Fp16Accumulation},
        {"fp16_split_sums", Setting::Fp16SplitSums},
        {"bfloat16_split_sums", Setting::BFloat16SplitSums},
        {"library_convolutions", Setting::LibraryConvolutions},
        {"timed_convolutions", Setting::TimedConvolutions},
        {"timed_candidates", Setting::TimedCandidates},
        {"deterministic_convolutions", Setting::DeterministicConvolutions},
        {"deterministic_algorithms", Setting::DeterministicAlgorithms},
    };
    const char* name = nullptr;
    int value = 0;
    if (!PyArg_ParseTuple(args, "si:_set_setting", &name, &value)) return nullptr;
    for (const auto& [known, which] : kSettings)
        if (std::strcmp(known, name) == 0) return PyLong_FromLong(set_setting(which, value));
    return PyErr_Format(PyExc_ValueError, "_set_setting(name): unknown setting '%s'", name);
}

// The functions are documented in rushlight_core.devices.
PyMethodDef functions[] = {{"_load_backend", load_backend_py, METH_O, nullptr},
                           {"_device_count", device_count_py, METH_O, nullptr},
                           {"_current_device", current_device_py, METH_O, nullptr},
                           {"_kernels", kernels_py, METH_O, nullptr},
                           {"_set_device", set_device, METH_O, nullptr},
                           {"_device_fallback", get_device_fallback, METH_NOARGS, nullptr},
                           {"_set_device_fallback", set_device_fallback_py, METH_O, nullptr},
                           {"_plugin_device", plugin_device, METH_NOARGS, nullptr},
                           {"_synchronize", synchronize_py, METH_O, nullptr},
                           {"_device_properties", device_properties_py, METH_O, nullptr},
                           {"_memory_info", memory_info_py, METH_O, nullptr},
                           {"_set_setting", set_setting_py, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_devices(PyObject* module) {
    set_backend_finder(find_in_packages);
    return PyModule_AddFunctions(module, functions);
}

}  // namespace rushlight::python
