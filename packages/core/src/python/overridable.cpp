// Functions written in Python that the classes of their arguments can override.
#include "python/override.h"

#include <structmember.h>

namespace rushlight::python {
namespace {

// Note [Functions that classes see]
// Operators check the classes of their arguments for a __torch_function__ (Note [__torch_function__]). A function that
// is written in Python has to check the classes itself. Otherwise, not the function but the operators that it calls
// would be overridden. The decorator `@overridable` replaces the function by an object of this type. The object checks
// the arguments, including elements of lists and tuples, and then calls the function. For plain tensors the check costs
// some nanoseconds for each argument; a wrapper in Python would be slower.
struct Overridable {
    PyObject_HEAD vectorcallfunc call;
    PyObject* function;
    PyObject* weakrefs;
};
Overridable* as_overridable(PyObject* o) { return reinterpret_cast<Overridable*>(o); }

PyObject* protocol = nullptr;  // "__torch_function__"
PyObject* disabled = nullptr;  // _C._disabled_torch_function_impl

bool answers(PyObject* o) {
    PyTypeObject* type = Py_TYPE(o);
    if (type == TensorType || o == Py_None || type == &PyLong_Type || type == &PyFloat_Type ||
        type == &PyBool_Type || type == &PyUnicode_Type || type == DTypeType)
        return false;
    PyObject* method = _PyType_Lookup(type, protocol);
    return method && method != disabled;
}

template <class Visit>
void for_each_candidate(PyObject* o, Visit visit) {
    if (answers(o)) visit(o);
    else if (PyTuple_Check(o) || PyList_Check(o))
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
            if (PyObject* item = PySequence_Fast_GET_ITEM(o, i); answers(item)) visit(item);
}

PyObject* answer(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    RL_PY_TRY
    const Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    Object candidates = Object::steal(PyList_New(0));
    for (Py_ssize_t i = 0; i < nargs + named; ++i)
        for_each_candidate(args[i], [&](PyObject* o) {
            if (PyList_Append(candidates.get(), o) < 0) throw PythonError();
        });
    Object positional = Object::steal(PyTuple_New(nargs + 2)), keywords = Object::steal(PyDict_New());
    PyTuple_SET_ITEM(positional.get(), 0, Py_NewRef(self));
    PyTuple_SET_ITEM(positional.get(), 1, candidates.release());
    for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(positional.get(), i + 2, Py_NewRef(args[i]));
    for (Py_ssize_t k = 0; k < named; ++k)
        if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, k), args[nargs + k]) < 0)
            throw PythonError();
    static constinit Lookup handle{"rushlight_core.overrides", "handle_torch_function"};
    return PyObject_Call(handle.get(), positional.get(), keywords.get());
    RL_PY_CATCH
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    const Py_ssize_t count = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    bool found = false;
    for (Py_ssize_t i = 0; i < count; ++i) for_each_candidate(args[i], [&](PyObject*) { found = true; });
    if (found && !(dispatch_state.off & bit(Stage::Python))) [[unlikely]]
        return answer(self, args, nargs, kwnames);
    return PyObject_Vectorcall(as_overridable(self)->function, args, nargsf, kwnames);
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    PyObject* function;
    if (kwargs && PyDict_GET_SIZE(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "overridable(): takes no keyword arguments");
        return nullptr;
    }
    if (!PyArg_ParseTuple(args, "O!:overridable", &PyFunction_Type, &function)) return nullptr;
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    as_overridable(self)->call = call;
    as_overridable(self)->function = Py_NewRef(function);
    return self;
}
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_overridable(self)->function);
    return 0;
}
int clear(PyObject* self) {
    Py_CLEAR(as_overridable(self)->function);
    return 0;
}
void dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    if (as_overridable(self)->weakrefs) PyObject_ClearWeakRefs(self);
    clear(self);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

// Attributes such as the name, module, documentation and annotations are looked up in the function.
PyObject* get_attribute(PyObject* self, PyObject* name) {
    PyObject* function = as_overridable(self)->function;
    // The type has these two attributes itself, so an ordinary lookup would find the type's values.
    for (const char* shown : {"__module__", "__doc__"})
        if (PyUnicode_CompareWithASCIIString(name, shown) == 0) return PyObject_GetAttr(function, name);
    PyObject* found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    return PyObject_GetAttr(function, name);
}
PyObject* represent(PyObject* self) { return PyObject_Repr(as_overridable(self)->function); }
PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
    return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}
// The object is pickled by its name, as functions are.
PyObject* reduce(PyObject* self, PyObject*) {
    return PyObject_GetAttrString(as_overridable(self)->function, "__qualname__");
}

}  // namespace

int add_overridable(PyObject* module) {
    protocol = PyUnicode_InternFromString("__torch_function__");
    disabled = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
    if (!protocol || !disabled) return -1;
    static PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Overridable, call), READONLY, nullptr},
        {"__weaklistoffset__", T_PYSSIZET, offsetof(Overridable, weakrefs), READONLY, nullptr},
        {"__wrapped__", T_OBJECT_EX, offsetof(Overridable, function), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr}};
    static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(create)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                                  {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                  {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                  {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                  {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                                  {Py_tp_repr, reinterpret_cast<void*>(represent)},
                                  {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
                                  {Py_tp_methods, methods},
                                  {Py_tp_members, members},
                                  {0, nullptr}};
    static PyType_Spec spec{"rushlight_core._C.overridable", sizeof(Overridable), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};
    PyObject* type = PyType_FromSpec(&spec);
    if (!type) return -1;
    const int result = PyModule_AddObjectRef(module, "overridable", type);
    Py_DECREF(type);
    return result;
}

}  // namespace rushlight::python
