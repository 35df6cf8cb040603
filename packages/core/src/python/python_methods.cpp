// Methods of Tensor that are written in Python. Their modules are imported when they are first called.
#include "python/override.h"
#include "python/tables.h"

namespace rushlight::python {
namespace {

struct PythonMethod {
    const char* name;
    const char* module;
    const char* function;
    PyObject* loaded;
};
PythonMethod python_functions[] = {
    {"__repr__", "_printing", "tensor_repr", nullptr},
    {"__format__", "_printing", "tensor_format", nullptr},
    {"__reduce_ex__", "_pickling", "reduce_tensor", nullptr},
    {"__deepcopy__", "_pickling", "deepcopy_tensor", nullptr},
    {"__reversed__", "_methods", "reversed_tensor", nullptr},
    {"share_memory_", "_methods", "share_memory_", nullptr},
    {"is_shared", "_methods", "is_shared", nullptr},
    {"type", "_methods", "type_of", nullptr},
    {"pin_memory", "_methods", "pin_memory", nullptr},
    {"record_stream", "_methods", "record_stream", nullptr},
    {"apply_", "_methods", "apply_", nullptr},
    {"map_", "_methods", "map_", nullptr},
    {"dim_order", "_methods", "dim_order", nullptr},
    {"to_dense", "_methods", "to_dense", nullptr},
    {"map2_", "_methods", "map2_", nullptr},
    {"new_tensor", "_methods", "new_tensor", nullptr},
    {"backward", "_methods", "backward", nullptr},
    {"register_hook", "_methods", "register_hook", nullptr},
    {"retain_grad", "_methods", "retain_grad", nullptr},
    {"lu", "_lu", "lu", nullptr},
};
constexpr size_t kCount = sizeof(python_functions) / sizeof(PythonMethod);

PyObject* call(size_t index, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    PythonMethod& method = python_functions[index];
    RL_PY_TRY
    if (has_override(self)) [[unlikely]] {
        if (PyObject* answer = answer_by_class({method.name, nullptr}, self, args, nargs, kwnames))
            return answer;
    }
    if (!method.loaded) {
        Object name = Object::steal(PyUnicode_FromFormat("rushlight_core.%s", method.module));
        Object module = Object::steal(PyImport_Import(name.get()));
        method.loaded = Object::steal(PyObject_GetAttrString(module.get(), method.function)).release();
    }
    Py_ssize_t given = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    constexpr Py_ssize_t kMost = 8;
    PyObject* all[kMost + 1];
    RL_CHECK(given <= kMost, throw_type, "%s(): too many arguments: %zd were given", method.name, given);
    all[0] = self;
    for (Py_ssize_t i = 0; i < given; ++i) all[i + 1] = args[i];
    return PyObject_Vectorcall(method.loaded, all, static_cast<size_t>(nargs + 1), kwnames);
    RL_PY_CATCH
}

template <size_t index>
PyObject* entry(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    return call(index, self, args, nargs, kwnames);
}

template <size_t... I>
void fill(PyMethodDef* table, std::index_sequence<I...>) {
    ((table[I] = {python_functions[I].name,
                  reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(entry<I>)),
                  METH_FASTCALL | METH_KEYWORDS, nullptr}),
     ...);
}

}  // namespace

PyObject* tensor_repr(PyObject* self) { return call(0, self, nullptr, 0, nullptr); }

PyMethodDef* python_methods() {
    static PyMethodDef table[kCount + 1];
    fill(table, std::make_index_sequence<kCount>{});
    return table + 1;  // the first, __repr__, is a slot
}

}  // namespace rushlight::python
