// Introspection: operators by name, boxed calls, memory.
#include "python/docstrings.h"
#include "python/results.h"
#include "python/values.h"
#include "rushlight/allocator.h"

namespace rushlight::python {
namespace {

// _operators(): returns (name, schema) of every form of every overload.
PyObject* operators_py(PyObject*, PyObject*) {
    RL_PY_TRY
    Object list = Object::steal(PyList_New(0));
    for (const Operator* op : operators()) {
        Object entry = Object::steal(Py_BuildValue("(ss)", op->name, op->schema));
        if (PyList_Append(list.get(), entry.get()) < 0) return nullptr;
    }
    return list.release();
    RL_PY_CATCH
}

// _call_boxed(name, *args): calls an operator in the way that fallbacks and other languages do.
PyObject* call_boxed_py(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    RL_CHECK(nargs >= 1 && PyUnicode_Check(args[0]), throw_type,
             "_call_boxed(name, *args): name must be a str");
    const char* name = PyUnicode_AsUTF8(args[0]);
    if (!name) return nullptr;
    const Operator* op = find_operator(name);
    RL_CHECK(op, throw_runtime, "_call_boxed(name): there is no operator '%s'", name);
    RL_PY_TRY
    return results_to_python(call_operator(*op, args + 1, nargs - 1)).release();
    RL_PY_CATCH_OF(name)
    RL_PY_CATCH
}

PyObject* memory_stats(PyObject*, PyObject*) {
    RL_PY_TRY
    MemoryStatistics s = memory_statistics();
    struct {
        const char* name;
        uint64_t value;
    } entries[] = {{"allocated_bytes", s.allocated_bytes},
                   {"allocated_bytes_peak", s.allocated_bytes_peak},
                   {"active_bytes", s.active_bytes},
                   {"active_bytes_peak", s.active_bytes_peak},
                   {"reserved_bytes", s.reserved_bytes},
                   {"reserved_bytes_peak", s.reserved_bytes_peak},
                   {"allocation_count", s.allocation_count},
                   {"release_count", s.release_count},
                   {"map_count", s.map_count},
                   {"unmap_count", s.unmap_count},
                   {"retry_count", s.retry_count},
                   {"failure_count", s.failure_count},
                   {"limit_bytes", s.limit_bytes}};
    Object dict = Object::steal(PyDict_New());
    for (auto& entry : entries) {
        Object value = Object::steal(PyLong_FromUnsignedLongLong(entry.value));
        if (PyDict_SetItemString(dict.get(), entry.name, value.get()) < 0) return nullptr;
    }
    return dict.release();
    RL_PY_CATCH
}
PyObject* reset_peak_memory_stats(PyObject*, PyObject*) {
    reset_peak_memory_statistics();
    Py_RETURN_NONE;
}
PyObject* memory_snapshot_py(PyObject*, PyObject*) {
    RL_PY_TRY
    std::string text = memory_snapshot();
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
    RL_PY_CATCH
}
PyObject* empty_cache_py(PyObject*, PyObject*) {
    RL_PY_TRY
    empty_cache();
    Py_RETURN_NONE;
    RL_PY_CATCH
}

// _set_allocator(address): sets the AllocatorInterface at an address, or the default allocator for None. Returns the
// previous one.
PyObject* set_allocator_py(PyObject*, PyObject* address) {
    RL_PY_TRY
    const AllocatorInterface* given = nullptr;
    if (address != Py_None) {
        given = static_cast<const AllocatorInterface*>(PyLong_AsVoidPtr(address));
        if (!given && PyErr_Occurred()) return nullptr;
        RL_CHECK(
            given && given->struct_size >= sizeof(AllocatorInterface) && given->allocate && given->release,
            throw_value,
            "set_allocator(address): must be the address of an AllocatorInterface of this version of core, with the "
            "functions allocate and release");
    }
    const AllocatorInterface* former = set_allocator(given);
    if (!former) Py_RETURN_NONE;
    return PyLong_FromVoidPtr(const_cast<AllocatorInterface*>(former));
    RL_PY_CATCH
}

PyMethodDef functions[] = {
    {"_set_allocator", set_allocator_py, METH_O, nullptr},
    {"_operators", operators_py, METH_NOARGS,
     "Return the name and schema of every operator, sorted by name."},
    {"_call_boxed", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_boxed_py)), METH_FASTCALL,
     "_call_boxed(name, *args): call an operator with one argument for each argument of its schema."},
    {"memory_stats", memory_stats, METH_NOARGS, docstrings::memory_stats_},
    {"reset_peak_memory_stats", reset_peak_memory_stats, METH_NOARGS, docstrings::reset_peak_memory_stats_},
    {"memory_snapshot", memory_snapshot_py, METH_NOARGS, docstrings::memory_snapshot_},
    {"empty_cache", empty_cache_py, METH_NOARGS, docstrings::empty_cache_},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_introspection(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
