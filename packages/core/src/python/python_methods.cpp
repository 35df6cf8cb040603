// Methods of Tensor that are written in Python. Their modules are imported when they are first called.
#include "python/override.h"
#include "python/tables.h"

namespace rushlight::python {
namespace {

struct PythonMethod {
    const char* name;
    const char* module;
    const char* function;
    const char* doc;
    PyObject* loaded;
};
PythonMethod python_functions[] = {
    {"__repr__", "_printing", "tensor_repr", nullptr, nullptr},
    {"__format__", "_printing", "tensor_format", nullptr, nullptr},
    {"__reduce_ex__", "_pickling", "reduce_tensor", nullptr, nullptr},
    {"__deepcopy__", "_pickling", "deepcopy_tensor", nullptr, nullptr},
    {"__reversed__", "_methods", "reversed_tensor", nullptr, nullptr},
    {"share_memory_", "_methods", "share_memory_",
     "share_memory_($self)\n--\n\nMove the data to shared memory, in place, and return the tensor. A tensor on a GPU stays as it is.",
     nullptr},
    {"is_shared", "_methods", "is_shared", "is_shared($self)\n--\n\nWhether the data is in shared memory.",
     nullptr},
    {"type", "_methods", "type_of",
     "type($self, dtype=None, non_blocking=False)\n--\n\nThe name of the tensor's type, such as \"torch.FloatTensor\", or the tensor converted to `dtype`.",
     nullptr},
    {"pin_memory", "_methods", "pin_memory",
     "pin_memory($self, device=None)\n--\n\nReturn a copy in page-locked memory, or the tensor itself if its memory is page-locked.",
     nullptr},
    {"record_stream", "_methods", "record_stream",
     "record_stream($self, s)\n--\n\nKeep the memory from being reused before the work that is now on the stream `s` is done.",
     nullptr},
    {"apply_", "_methods", "apply_",
     "apply_($self, callable)\n--\n\nReplace each element x by `callable(x)`, in place.", nullptr},
    {"map_", "_methods", "map_",
     "map_($self, other, callable)\n--\n\nReplace each element x by `callable(x, y)` with y of `other`, in place.",
     nullptr},
    {"dim_order", "_methods", "dim_order",
     "dim_order($self, *, ambiguity_check=False)\n--\n\nThe dimensions in the order in which they lie in memory, outermost first.",
     nullptr},
    {"to_dense", "_methods", "to_dense",
     "to_dense($self, dtype=None, *, masked_grad=None)\n--\n\nReturn the tensor itself, which is dense, converted to `dtype` if one is given.",
     nullptr},
    {"map2_", "_methods", "map2_",
     "map2_($self, x, y, callable)\n--\n\nReplace each element z by `callable(z, x, y)` with x and y of two tensors, in place.",
     nullptr},
    {"new_tensor", "_methods", "new_tensor",
     "new_tensor($self, data, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\nReturn a new tensor with a copy of `data`, by default with the dtype and on the device of this tensor.",
     nullptr},
    {"backward", "_methods", "backward",
     "backward($self, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\nRaise RuntimeError that names the package to install, which replaces this method.",
     nullptr},
    {"register_hook", "_methods", "register_hook",
     "register_hook($self, hook)\n--\n\nRaise RuntimeError that names the package to install, which replaces this method.",
     nullptr},
    {"retain_grad", "_methods", "retain_grad",
     "retain_grad($self)\n--\n\nRaise RuntimeError that names the package to install, which replaces this method.",
     nullptr},
    {"lu", "_lu", "lu",
     "lu($self, pivot=True, get_infos=False)\n--\n\nThe factors of A = P L U in one tensor, and the rows exchanged: see `rushlight.lu`.",
     nullptr},
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
                  METH_FASTCALL | METH_KEYWORDS, python_functions[I].doc}),
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
