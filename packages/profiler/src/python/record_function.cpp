#include "python/record_function.h"

#include <structmember.h>

#include "recorder.h"
#include "stacks.h"

namespace rushlight::profiler {
namespace {

struct RecordFunction {
    PyObject_HEAD PyObject* name;
    PyObject* args;  // a string or None
    // The number of times that the object has been entered, recorded or not. If it is entered again while its span is
    // open, only the outermost span is recorded.
    uint32_t depth;
    uint32_t id;  // number of the open span; 0 for none
    uint32_t lane;  // number of the lane that has the open span
};

constexpr const char* kDoc =
    "record_function(name, args=None)\n--\n\n"
    "Records a span of time under `name`: the time of a `with` block, or of each call of a decorated function.\n\n"
    "`record_function` has no effect while no profile is being recorded. `args` is a text that is stored with\n"
    "the span. A thread that was running before the recording began is recorded from its first\n"
    "`record_function` on.\n"
    "Raises TypeError if `name` is not a string, or if `args` is neither a string nor None.";

RecordFunction* cast(PyObject* o) { return reinterpret_cast<RecordFunction*>(o); }

PyObject* make_checked(PyTypeObject* type, PyObject* name, PyObject* text) {
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "record_function(name): got %s, needs str",
                            Py_TYPE(name)->tp_name);
    if (text != Py_None && !PyUnicode_Check(text))
        return PyErr_Format(PyExc_TypeError, "record_function(args): got %s, needs str or None",
                            Py_TYPE(text)->tp_name);
    auto* self = cast(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    self->name = Py_NewRef(name);
    self->args = Py_NewRef(text);
    return reinterpret_cast<PyObject*>(self);
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"name", "args", nullptr};
    PyObject* name;
    PyObject* text = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:record_function", const_cast<char**>(names), &name,
                                     &text))
        return nullptr;
    return make_checked(type, name, text);
}

// Creates an object for the usual call `record_function("name")`, without a tuple of arguments.
PyObject* make_quickly(PyObject* type, PyObject* const* args, size_t flags, PyObject* keywords) {
    if (PyVectorcall_NARGS(flags) == 1 && !keywords)
        return make_checked(reinterpret_cast<PyTypeObject*>(type), args[0], Py_None);
    PyObject* tuple = PyTuple_New(PyVectorcall_NARGS(flags));
    PyObject* dict = PyDict_New();
    PyObject* made = nullptr;
    if (tuple && dict) {
        Py_ssize_t n = PyVectorcall_NARGS(flags);
        for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
        bool failed = false;
        for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i)
            failed |= PyDict_SetItem(dict, PyTuple_GET_ITEM(keywords, i), args[n + i]) < 0;
        if (!failed) made = make(reinterpret_cast<PyTypeObject*>(type), tuple, dict);
    }
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    return made;
}

void dealloc(PyObject* o) {
    Py_CLEAR(cast(o)->name);
    Py_CLEAR(cast(o)->args);
    PyTypeObject* type = Py_TYPE(o);
    type->tp_free(o);
    Py_DECREF(type);
}

// Opens the span. If there is no memory or the text cannot be encoded, the span is not recorded, because a profiler
// must not stop the program.
bool open_span(RecordFunction* self) {
    Lane* lane = join();
    if (!lane) return true;
    Py_ssize_t size;
    const char* name = PyUnicode_AsUTF8AndSize(self->name, &size);
    if (!name) return false;
    Details details{lane->words().end(), 0, 0};
    if (self->args != Py_None && lane->words().room()) {
        Py_ssize_t length;
        const char* text = PyUnicode_AsUTF8AndSize(self->args, &length);
        if (!text) return false;
        auto& words = lane->words();
        words[words.end()] = reinterpret_cast<uint64_t>(lane->intern({text, static_cast<size_t>(length)}));
        words.publish(words.end() + 1);
        details.argument_words = 1;
    }
    if (lane->session() & kStacks) details.stack_words = write_stack(lane->words());
    self->lane = lane->number();
    self->id = lane->open(Kind::Annotation, lane->intern({name, static_cast<size_t>(size)}), 0, details);
    return true;
}

PyObject* enter(PyObject* o, PyObject*) {
    RecordFunction* self = cast(o);
    if (self->depth == 0 && current_session() && !open_span(self)) return nullptr;
    ++self->depth;
    return Py_NewRef(o);
}

PyObject* leave(PyObject* o, PyObject* const*, Py_ssize_t) {
    RecordFunction* self = cast(o);
    if (self->depth && --self->depth == 0 && self->id) {
        if (Lane* lane = recording_lane(); lane && lane->number() == self->lane) lane->close(self->id, 0);
        self->id = 0;
    }
    Py_RETURN_NONE;
}

// Decorates a function. The wrapper is a Python function, which is created once for each decorated function.
PyObject* call(PyObject* o, PyObject* args, PyObject* kwargs) {
    PyObject* function;
    static const char* names[] = {"", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:record_function", const_cast<char**>(names), &function))
        return nullptr;
    PyObject* module = PyImport_ImportModule("rushlight_profiler._decorate");
    if (!module) return nullptr;
    PyObject* wrapped = PyObject_CallMethod(module, "decorate", "OO", o, function);
    Py_DECREF(module);
    return wrapped;
}

PyMethodDef methods[] = {
    {"__enter__", enter, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(leave)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {{"name", T_OBJECT, offsetof(RecordFunction, name), READONLY, nullptr},
                         {"args", T_OBJECT, offsetof(RecordFunction, args), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(kDoc)},
                       {Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_call, reinterpret_cast<void*>(call)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {"rushlight_profiler.record_function", sizeof(RecordFunction), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

int add_record_function(PyObject* module) {
    PyObject* type = PyType_FromSpec(&spec);
    if (!type) return -1;
    reinterpret_cast<PyTypeObject*>(type)->tp_vectorcall = make_quickly;
    int result = PyModule_AddObjectRef(module, "record_function", type);
    Py_DECREF(type);
    return result;
}

}  // namespace rushlight::profiler
