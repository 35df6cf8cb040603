// rushlight_autograd._C.
#include "python.h"

#include "rushlight/autograd/engine.h"

namespace rushlight::autograd::python {

const PythonApi* core = nullptr;

Tensor require_tensor(PyObject* o, const char* function, const char* argument) {
    TensorImpl* impl = unwrap(o);
    RL_CHECK(impl, throw_type, "%s(): argument '%s' must be Tensor, not %s", function, argument,
             Py_TYPE(o)->tp_name);
    return Tensor::share(impl);
}

std::vector<Tensor> require_tensors(PyObject* o, const char* function, const char* argument) {
    std::vector<Tensor> list;
    if (o == Py_None) return list;
    if (TensorImpl* one = unwrap(o)) {
        list.push_back(Tensor::share(one));
        return list;
    }
    RL_CHECK(PyTuple_Check(o) || PyList_Check(o), throw_type,
             "%s(): argument '%s' must be a Tensor or a sequence of Tensors, not %s", function, argument,
             Py_TYPE(o)->tp_name);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(o, i);
        list.push_back(item == Py_None ? Tensor() : require_tensor(item, function, argument));
    }
    return list;
}

PythonFailure::PythonFailure() { PyErr_Fetch(&type_, &value_, &traceback_); }
PythonFailure::PythonFailure(const PythonFailure& other)
    : type_(other.type_), value_(other.value_), traceback_(other.traceback_) {
    WithGil gil;
    Py_XINCREF(type_);
    Py_XINCREF(value_);
    Py_XINCREF(traceback_);
}
PythonFailure::~PythonFailure() {
    if (!type_ && !value_) return;
    WithGil gil;
    Py_XDECREF(type_);
    Py_XDECREF(value_);
    Py_XDECREF(traceback_);
}
void PythonFailure::restore() {
    PyErr_Restore(type_, value_, traceback_);
    type_ = value_ = traceback_ = nullptr;
}

PyObject* translate() {
    try {
        throw;
    } catch (PythonFailure& failure) { failure.restore(); } catch (...) {
        core->set_error();
    }
    return nullptr;
}

namespace {

// _run_backward(outputs, grads, inputs, retain_graph, create_graph, accumulate) -> tuple of gradients of the inputs
PyObject* run_backward_py(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 6, throw_type, "_run_backward takes 6 arguments");
    std::vector<Tensor> outputs = require_tensors(args[0], "backward", "tensors");
    std::vector<Tensor> grads = require_tensors(args[1], "backward", "grad_tensors");
    std::vector<Tensor> inputs = require_tensors(args[2], "backward", "inputs");
    BackwardOptions options;
    options.retain_graph = PyObject_IsTrue(args[3]);
    options.create_graph = PyObject_IsTrue(args[4]);
    options.accumulate_grad = PyObject_IsTrue(args[5]);
    std::vector<Tensor> result;
    {
        WithoutGil nogil;
        result = run_backward(outputs, grads, inputs, options);
        outputs.clear();
        grads.clear();
    }
    Object tuple(check(PyTuple_New(static_cast<Py_ssize_t>(result.size()))));
    for (size_t i = 0; i < result.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, check(wrap(result[i])));
    return tuple.release();
    RL_CATCH
}

PyMethodDef functions[] = {
    {"_run_backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run_backward_py)),
     METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

int execute(PyObject* module) {
    core = static_cast<const PythonApi*>(PyCapsule_Import(kPythonCapsule, 0));
    if (!core) return -1;
    if (std::string_view(core->abi) != RUSHLIGHT_ABI) {
        PyErr_Format(PyExc_ImportError,
                     "rushlight-autograd " RUSHLIGHT_VERSION
                     " was built for another rushlight-core (%s) than the "
                     "installed one (%s); install both from one release",
                     RUSHLIGHT_ABI, core->abi);
        return -1;
    }
    if (core->instance != instance()) {
        PyErr_SetString(PyExc_ImportError,
                        "two copies of librushlight.so are loaded: rushlight-autograd found another one than "
                        "rushlight-core; remove one installation or unset LD_LIBRARY_PATH");
        return -1;
    }
    try {
        initialize();
    } catch (...) {
        translate();
        return -1;
    }
    if (add_nodes(module) < 0 || add_hooks(module) < 0 || add_modes(module) < 0 ||
        add_functions(module) < 0 || add_tensor_methods(module) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "rushlight_autograd._C",
                          "The engine and its graph.",
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace rushlight::autograd::python

PyMODINIT_FUNC PyInit__C() {
    PyObject* module = PyModule_Create(&rushlight::autograd::python::definition);
    if (module && rushlight::autograd::python::execute(module) < 0) {
        Py_DECREF(module);
        return nullptr;
    }
    return module;
}
