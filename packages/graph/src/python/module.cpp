// rushlight_graph._C: captures and programs for Python.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstring>
#include <memory>

#include "rushlight/abi.h"
#include "rushlight/graph/capture.h"
#include "support.h"

namespace rushlight::graph {

const PythonApi* api = nullptr;

namespace {

// Checks that the module was built for the installed core, and that only one copy of librushlight.so is loaded.
bool core_fits() {
    PyObject* core = PyImport_ImportModule("rushlight_core._C");
    if (!core) return false;
    Py_DECREF(core);
    api = static_cast<const PythonApi*>(PyCapsule_Import(kPythonCapsule, 0));
    if (!api) return false;
    if (std::strcmp(api->abi, RUSHLIGHT_ABI) != 0) {
        PyErr_Format(PyExc_ImportError,
                     "rushlight-graph was built for rushlight-core %s, but rushlight-core %s is installed\n"
                     "hint: install rushlight packages of the same release",
                     RUSHLIGHT_ABI, api->abi);
        return false;
    }
    if (api->instance != instance()) {
        PyErr_SetString(PyExc_ImportError,
                        "rushlight-graph found a second copy of librushlight.so in this process\n"
                        "hint: uninstall one of the two copies, or remove it from LD_LIBRARY_PATH");
        return false;
    }
    return true;
}

std::set<std::string> names_of(PyObject* sequence) {
    const Object fast = checked(PySequence_Fast(sequence, "must be a sequence of names"));
    std::set<std::string> names;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
        names.insert(text_of(PySequence_Fast_GET_ITEM(fast.get(), i)));
    return names;
}

// Reads a sequence of (name, kind, tensor).
std::vector<Named> named_of(PyObject* sequence) {
    const Object fast = checked(PySequence_Fast(sequence, "needs a sequence"));
    std::vector<Named> all;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
        const char* name = nullptr;
        const char* kind = nullptr;
        PyObject* tensor = nullptr;
        PyObject* entry = PySequence_Fast_GET_ITEM(fast.get(), i);
        if (!PyTuple_Check(entry) || !PyArg_ParseTuple(entry, "ssO", &name, &kind, &tensor))
            throw PythonError();
        const ConstantKind which = std::string_view(kind) == "parameter" ? ConstantKind::Parameter
                                   : std::string_view(kind) == "buffer"  ? ConstantKind::Buffer
                                                                         : ConstantKind::Constant;
        all.push_back({name, tensor_of(tensor), which});
    }
    return all;
}

// --- Program ---

struct PyProgram {
    PyObject_HEAD Program* program;
};
PyTypeObject* program_type = nullptr;

const Program& program_of(PyObject* self) { return *reinterpret_cast<PyProgram*>(self)->program; }
PyObject* wrap_program(Program&& program) {
    Object self = checked(program_type->tp_alloc(program_type, 0));
    reinterpret_cast<PyProgram*>(self.get())->program = new Program(std::move(program));
    return self.release();
}
void program_dealloc(PyObject* self) {
    delete reinterpret_cast<PyProgram*>(self)->program;
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}
PyObject* program_load(PyObject*, PyObject* path) {
    return guarded([&] {
        const std::string text = text_of(path);
        return wrap_program(without_gil([&] { return Program::load(text); }));
    });
}
PyObject* program_from_bytes(PyObject*, PyObject* bytes) {
    return guarded([&]() -> PyObject* {
        char* data = nullptr;
        Py_ssize_t size = 0;
        if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) throw PythonError();
        return wrap_program(Program::from_bytes({data, static_cast<size_t>(size)}));
    });
}
// generalize(programs, symbols, tried): `symbols` has a tuple (name, least, most, occurrences, values in the programs) for each
// symbol, where an occurrence is a tuple (input, dimension, scale, offset). Returns the program, and the sizes for which
// another program is needed, or None.
PyObject* program_generalize(PyObject*, PyObject* args) {
    return guarded([&]() -> PyObject* {
        PyObject *given, *symbols, *sizes_tried;
        if (!PyArg_ParseTuple(args, "O!O!O!:generalize", &PyList_Type, &given, &PyList_Type, &symbols,
                              &PyList_Type, &sizes_tried))
            throw PythonError();
        std::vector<Program> programs;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(given); ++i) {
            PyObject* program = PyList_GET_ITEM(given, i);
            RL_CHECK(Py_TYPE(program) == program_type, throw_type,
                     "generalize(programs): needs programs, got %s", Py_TYPE(program)->tp_name);
            programs.push_back(program_of(program));
        }
        std::vector<Symbol> all;
        std::vector<std::vector<int64_t>> values(programs.size());
        for (Py_ssize_t s = 0; s < PyList_GET_SIZE(symbols); ++s) {
            const char* name;
            long long least, most;
            PyObject *occurrences, *sizes;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(symbols, s), "sLLO!O!", &name, &least, &most, &PyList_Type,
                                  &occurrences, &PyList_Type, &sizes))
                throw PythonError();
            RL_CHECK(PyList_GET_SIZE(sizes) == PyList_GET_SIZE(given) && !programs.empty(), throw_value,
                     "generalize: '%s' needs a value for each program", name);
            for (size_t i = 0; i < programs.size(); ++i)
                values[i].push_back(PyLong_AsLongLong(PyList_GET_ITEM(sizes, static_cast<Py_ssize_t>(i))));
            if (PyErr_Occurred()) throw PythonError();
            Symbol symbol{name, least, most, values[0].back(), {}};
            for (Py_ssize_t i = 0; i < PyList_GET_SIZE(occurrences); ++i) {
                Symbol::Occurrence occurrence{};
                long long scale, offset;
                if (!PyArg_ParseTuple(PyList_GET_ITEM(occurrences, i), "IILL", &occurrence.input,
                                      &occurrence.dim, &scale, &offset))
                    throw PythonError();
                occurrence.scale = scale;
                occurrence.offset = offset;
                symbol.occurrences.push_back(occurrence);
            }
            all.push_back(std::move(symbol));
        }
        std::vector<std::vector<int64_t>> tried;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(sizes_tried); ++i) {
            PyObject* sizes = PyList_GET_ITEM(sizes_tried, i);
            RL_CHECK(PyTuple_Check(sizes), throw_type, "generalize(tried): needs tuples, got %s",
                     Py_TYPE(sizes)->tp_name);
            tried.emplace_back();
            for (Py_ssize_t s = 0; s < PyTuple_GET_SIZE(sizes); ++s)
                tried.back().push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, s)));
        }
        if (PyErr_Occurred()) throw PythonError();
        std::vector<int64_t> undecided;
        const Object program =
            checked(wrap_program(Program::generalize(programs, std::move(all), values, &undecided, tried)));
        if (undecided.empty()) return Py_BuildValue("(OO)", program.get(), Py_None);
        const Object sizes = checked(PyTuple_New(static_cast<Py_ssize_t>(undecided.size())));
        for (size_t s = 0; s < undecided.size(); ++s)
            PyTuple_SET_ITEM(sizes.get(), static_cast<Py_ssize_t>(s),
                             checked(PyLong_FromLongLong(undecided[s])).release());
        return Py_BuildValue("(OO)", program.get(), sizes.get());
    });
}
PyObject* program_save(PyObject* self, PyObject* path) {
    return guarded([&] {
        const std::string text = text_of(path);
        without_gil([&] {
            program_of(self).save(text);
            return 0;
        });
        return Py_NewRef(Py_None);
    });
}
PyObject* program_to_bytes(PyObject* self, PyObject*) {
    return guarded([&] {
        const std::string bytes = program_of(self).to_bytes();
        return PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
    });
}
PyObject* program_with_metadata(PyObject* self, PyObject* metadata) {
    return guarded([&] { return wrap_program(program_of(self).with_metadata(texts_of(metadata))); });
}
PyObject* program_simplified(PyObject* self, PyObject* args) {
    return guarded([&]() -> PyObject* {
        int fold_batch_norm = 0;
        if (!PyArg_ParseTuple(args, "|p:simplified", &fold_batch_norm)) throw PythonError();
        return wrap_program(without_gil([&] { return program_of(self).simplified(fold_batch_norm != 0); }));
    });
}
PyObject* program_run(PyObject* self, PyObject* inputs) {
    return guarded([&] {
        const std::vector<Tensor> given = tensors_of(inputs);
        const std::vector<Tensor> results = without_gil([&] { return program_of(self).run(given); });
        return tensor_list(results).release();
    });
}
PyObject* program_text(PyObject* self, PyObject*) {
    return guarded([&] { return text_object(to_text(program_of(self).graph())).release(); });
}
PyObject* program_graph(PyObject* self, PyObject*) {
    return guarded([&] { return text_object(to_json(program_of(self).graph())).release(); });
}
PyObject* program_structure(PyObject* self, PyObject*) {
    return guarded([&] { return wrap_graph(program_of(self).graph()); });
}
// of(graph, constants): `constants` is a sequence of tensors in the order of the graph's constants.
PyObject* program_of_graph(PyObject*, PyObject* args) {
    return guarded([&]() -> PyObject* {
        PyObject *graph, *constants;
        if (!PyArg_ParseTuple(args, "OO:of", &graph, &constants)) throw PythonError();
        return wrap_program(Program(graph_of(graph), tensors_of(constants)));
    });
}
PyObject* program_inputs(PyObject* self, PyObject*) {
    return guarded([&] {
        const Graph& graph = program_of(self).graph();
        Object list = checked(PyList_New(0));
        for (const Input& input : graph.inputs) {
            const Object name = text_object(input.name);
            if (PyList_Append(list.get(), name.get()) < 0) throw PythonError();
        }
        return list.release();
    });
}
PyObject* program_outputs(PyObject* self, PyObject*) {
    return guarded([&] { return PyLong_FromSize_t(program_of(self).graph().outputs.size()); });
}
PyObject* program_constants(PyObject* self, PyObject*) {
    return guarded([&] {
        static constexpr const char* kKinds[] = {"parameter", "buffer", "constant"};
        const Program& program = program_of(self);
        const Object tensors = tensor_list(program.constants());
        Object list = checked(PyList_New(0));
        for (size_t i = 0; i < program.constants().size(); ++i) {
            const Constant& constant = program.graph().constants[i];
            const Object entry = checked(Py_BuildValue(
                "(NsO)", text_object(constant.name).release(), kKinds[static_cast<int>(constant.kind)],
                PyList_GET_ITEM(tensors.get(), static_cast<Py_ssize_t>(i))));
            if (PyList_Append(list.get(), entry.get()) < 0) throw PythonError();
        }
        return list.release();
    });
}
PyObject* program_metadata(PyObject* self, PyObject*) {
    return guarded([&] {
        Object dict = checked(PyDict_New());
        for (const auto& [key, text] : program_of(self).graph().metadata) {
            const Object name = text_object(key), value = text_object(text);
            if (PyDict_SetItem(dict.get(), name.get(), value.get()) < 0) throw PythonError();
        }
        return dict.release();
    });
}

PyMethodDef program_methods[] = {
    {"load", program_load, METH_O | METH_STATIC,
     "load(path): Read a program from a file. The tensors are memory-mapped."},
    {"from_bytes", program_from_bytes, METH_O | METH_STATIC,
     "from_bytes(bytes): Read a program from the content of a file."},
    {"generalize", program_generalize, METH_VARARGS | METH_STATIC,
     "generalize(programs, symbols, tried): Build one program from programs that were captured with different sizes.\n"
     "Return it and the sizes for which another capture is needed. If no other capture is needed, None is returned instead of the sizes."},
    {"save", program_save, METH_O, "save(path): Write the program to a file."},
    {"to_bytes", program_to_bytes, METH_NOARGS, "Return the content of the file that `save` would write."},
    {"with_metadata", program_with_metadata, METH_O,
     "with_metadata(dict): Return a copy of the program that has other metadata."},
    {"simplified", program_simplified, METH_VARARGS,
     "simplified(fold_batch_norm=False): Return an equivalent program with fewer nodes."},
    {"run", program_run, METH_O, "run(tensors): Run the program and return a list of tensors."},
    {"text", program_text, METH_NOARGS, "Return the operators as text, one line each."},
    {"graph", program_graph, METH_NOARGS, "Return the graph as JSON, in the form that files contain."},
    {"structure", program_structure, METH_NOARGS, "Return the graph of the program."},
    {"of", program_of_graph, METH_VARARGS | METH_STATIC,
     "of(graph, constants): Build a program from a graph and the tensors of its constants."},
    {"inputs", program_inputs, METH_NOARGS, "Return the names of the inputs."},
    {"outputs", program_outputs, METH_NOARGS, "Return the number of outputs."},
    {"constants", program_constants, METH_NOARGS, "Return the name, kind and tensor of each constant."},
    {"metadata", program_metadata, METH_NOARGS, "Return the metadata that was passed to `finish`."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot program_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(program_dealloc)},
                               {Py_tp_methods, program_methods},
                               {Py_tp_doc, const_cast<char*>("A graph of operators with its constants.")},
                               {0, nullptr}};
PyType_Spec program_spec = {"rushlight_graph._C.Program", sizeof(PyProgram), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, program_slots};

// --- Capture ---

struct PyCapture {
    PyObject_HEAD Capture* capture;
};

Capture& capture_of(PyObject* self) { return *reinterpret_cast<PyCapture*>(self)->capture; }
PyObject* capture_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    return guarded([&]() -> PyObject* {
        static const char* names[] = {"inputs", "state", "expanded", "below_gradients", nullptr};
        PyObject *inputs, *state, *expanded = nullptr;
        int below = 0;
        if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|Op:Capture", const_cast<char**>(names), &inputs,
                                         &state, &expanded, &below))
            throw PythonError();
        auto capture = std::make_unique<Capture>(named_of(inputs), named_of(state),
                                                 expanded ? names_of(expanded) : std::set<std::string>(),
                                                 below ? Level::Below : Level::Above);
        Object self = checked(type->tp_alloc(type, 0));
        reinterpret_cast<PyCapture*>(self.get())->capture = capture.release();
        return self.release();
    });
}
void capture_dealloc(PyObject* self) {
    delete reinterpret_cast<PyCapture*>(self)->capture;
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}
PyObject* capture_start(PyObject* self, PyObject*) {
    return guarded([&] { return capture_of(self).start(), Py_NewRef(Py_None); });
}
PyObject* capture_stop(PyObject* self, PyObject*) {
    return guarded([&] { return capture_of(self).stop(), Py_NewRef(Py_None); });
}
PyObject* capture_enter(PyObject* self, PyObject* path) {
    return guarded([&] { return capture_of(self).enter_module(text_of(path)), Py_NewRef(Py_None); });
}
PyObject* capture_leave(PyObject* self, PyObject*) {
    return guarded([&] { return capture_of(self).leave_module(), Py_NewRef(Py_None); });
}
PyObject* capture_finish(PyObject* self, PyObject* args) {
    return guarded([&]() -> PyObject* {
        PyObject *outputs, *metadata;
        if (!PyArg_ParseTuple(args, "OO:finish", &outputs, &metadata)) throw PythonError();
        return wrap_program(capture_of(self).finish(tensors_of(outputs), texts_of(metadata)));
    });
}

PyObject* capture_carry_gradients(PyObject* self, PyObject*) {
    return guarded([&] { return capture_of(self).carry_gradients(), Py_NewRef(Py_None); });
}
PyObject* capture_changed_gradients(PyObject* self, PyObject*) {
    return guarded([&]() -> PyObject* {
        Object list = checked(PyList_New(0));
        for (const GradChange& change : capture_of(self).changed_gradients()) {
            const Object entry =
                checked(Py_BuildValue("(NNN)", text_object(change.name).release(),
                                      PyBool_FromLong(change.before), PyBool_FromLong(change.after)));
            if (PyList_Append(list.get(), entry.get()) < 0) throw PythonError();
        }
        return list.release();
    });
}
PyObject* capture_needs_below(PyObject* self, PyObject*) {
    return guarded([&] { return PyBool_FromLong(capture_of(self).needs_below()); });
}

PyMethodDef capture_methods[] = {
    {"start", capture_start, METH_NOARGS, "Start recording this thread's operators."},
    {"stop", capture_stop, METH_NOARGS,
     "Stop recording, and restore the tensors that the recorded operators modified."},
    {"enter_module", capture_enter, METH_O,
     "enter_module(path): Name the module to which the next operators belong."},
    {"leave_module", capture_leave, METH_NOARGS, "End the module that was entered last."},
    {"carry_gradients", capture_carry_gradients, METH_NOARGS,
     "If the program read a tensor's `.grad` and then assigned another tensor to `.grad`, record a copy of the new "
     "gradient to the memory of the old one, from which the next run reads it. Call before `stop`."},
    {"changed_gradients", capture_changed_gradients, METH_NOARGS,
     "Return a tuple (name, existed before, existed at the end) for each `.grad` that was set or removed during the "
     "recording. Call after `stop`."},
    {"needs_below", capture_needs_below, METH_NOARGS,
     "Return whether the operation at which this capture raised an error can be recorded with `below_gradients=True`."},
    {"finish", capture_finish, METH_VARARGS, "finish(outputs, metadata): Return the captured Program."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot capture_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(capture_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(capture_dealloc)},
    {Py_tp_methods, capture_methods},
    {Py_tp_doc,
     const_cast<char*>(
         "Capture(inputs, state, expanded=(), below_gradients=False): Record the operators of a region as a "
         "program. `inputs` and `state` are lists of (name, kind, tensor). For operators whose names are in "
         "`expanded`, the operators that they call are recorded instead. If `below_gradients` is true, operators "
         "that compute gradients are recorded as well.")},
    {0, nullptr}};
PyType_Spec capture_spec = {"rushlight_graph._C.Capture", sizeof(PyCapture), 0, Py_TPFLAGS_DEFAULT,
                            capture_slots};

// --- control flow ---

// Wraps a Python function of a list of tensors. The result is used only during the call, so it holds no reference to
// the function.
BlockFunction block_function(PyObject* function) {
    return [function](TensorList inputs) {
        const Object given = tensor_list(inputs);
        return tensors_of(checked(PyObject_CallOneArg(function, given.get())).get());
    };
}

PyObject* is_capturing_now(PyObject*, PyObject*) { return PyBool_FromLong(is_capturing()); }
PyObject* share_memory(PyObject*, PyObject* args) {
    return guarded([&]() -> PyObject* {
        PyObject *a, *b;
        if (!PyArg_ParseTuple(args, "OO:share_memory", &a, &b)) throw PythonError();
        return PyBool_FromLong(tensor_of(a).impl()->storage() == tensor_of(b).impl()->storage());
    });
}
PyObject* cond_node(PyObject*, PyObject* args) {
    return guarded([&]() -> PyObject* {
        PyObject *pred, *true_fn, *false_fn;
        if (!PyArg_ParseTuple(args, "OOO:capture_cond", &pred, &true_fn, &false_fn)) throw PythonError();
        return tensor_list(capture_cond(tensor_of(pred), block_function(true_fn), block_function(false_fn)))
            .release();
    });
}
PyObject* while_loop_node(PyObject*, PyObject* args) {
    return guarded([&]() -> PyObject* {
        PyObject *cond_fn, *body_fn, *carried;
        if (!PyArg_ParseTuple(args, "OOO:capture_while_loop", &cond_fn, &body_fn, &carried))
            throw PythonError();
        return tensor_list(
                   capture_while_loop(block_function(cond_fn), block_function(body_fn), tensors_of(carried)))
            .release();
    });
}
PyObject* scan_node(PyObject*, PyObject* args) {
    return guarded([&]() -> PyObject* {
        PyObject *combine_fn, *init, *xs;
        if (!PyArg_ParseTuple(args, "OOO:capture_scan", &combine_fn, &init, &xs)) throw PythonError();
        return tensor_list(capture_scan(block_function(combine_fn), tensors_of(init), tensors_of(xs)))
            .release();
    });
}

PyMethodDef functions[] = {
    {"is_capturing", is_capturing_now, METH_NOARGS, "Return whether this thread's operators are recorded."},
    {"share_memory", share_memory, METH_VARARGS,
     "share_memory(a, b): Return whether two tensors use the same storage. The values are not read."},
    {"capture_cond", cond_node, METH_VARARGS,
     "capture_cond(pred, true_fn, false_fn): Record a conditional and return a list of tensors. The functions "
     "are called with an empty list."},
    {"capture_while_loop", while_loop_node, METH_VARARGS,
     "capture_while_loop(cond_fn, body_fn, carried): Record a loop and return a list of tensors. The functions "
     "are called with a list of the carried tensors."},
    {"capture_scan", scan_node, METH_VARARGS,
     "capture_scan(combine_fn, init, xs): Record a loop and return a list of tensors. The function is called "
     "with a list of the carried tensors, followed by one slice of each tensor in `xs`."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "rushlight_graph._C",
                          "Capture operators as programs, and run, change and save programs.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace rushlight::graph

PyMODINIT_FUNC PyInit__C() {
    using namespace rushlight::graph;
    if (!core_fits()) return nullptr;
    PyObject* module = PyModule_Create(&definition);
    if (!module) return nullptr;
    program_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&program_spec));
    PyObject* capture = PyType_FromSpec(&capture_spec);
    if (!program_type || !capture || !add_graph_type(module) ||
        PyModule_AddObjectRef(module, "Program", reinterpret_cast<PyObject*>(program_type)) < 0 ||
        PyModule_AddObjectRef(module, "Capture", capture) < 0) {
        Py_XDECREF(capture);
        Py_DECREF(module);
        return nullptr;
    }
    Py_DECREF(capture);
    return module;
}
