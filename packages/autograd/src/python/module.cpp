// rushlight_autograd._C.
#include "python.h"

#include "rushlight/autograd/engine.h"
#include "rushlight/autograd/growth.h"
#include "rushlight/autograd/transform.h"

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

Edge edge_or_null(PyObject* o) {
    if (!PyTuple_Check(o) || PyTuple_GET_SIZE(o) < 2 || !PyLong_Check(PyTuple_GET_ITEM(o, 1))) return {};
    Node* node = unwrap_node(PyTuple_GET_ITEM(o, 0));
    if (!node) return {};
    const long index = PyLong_AsLong(PyTuple_GET_ITEM(o, 1));
    RL_CHECK(index >= 0 && index < static_cast<long>(node->num_results()), throw_index,
             "GradientEdge: %s has %u results, output_nr %ld is out of range", node->name().c_str(),
             node->num_results(), index);
    return {Ref<Node>::share(node), static_cast<uint32_t>(index)};
}

bool names_tensors(PyObject* o) {
    if (unwrap(o)) return true;
    if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
        if (!unwrap(PySequence_Fast_GET_ITEM(o, i))) return false;
    return true;
}

std::vector<Edge> require_edges(PyObject* o, const char* function, const char* argument) {
    std::vector<Edge> edges;
    if (TensorImpl* one = unwrap(o)) {
        edges.push_back(input_edge(Tensor::share(one), 0));
    } else if (Edge one = edge_or_null(o)) {
        edges.push_back(std::move(one));
    } else {
        RL_CHECK(PyTuple_Check(o) || PyList_Check(o), throw_type,
                 "%s(): argument '%s' must be a Tensor, a GradientEdge or a sequence of them, not %s",
                 function, argument, Py_TYPE(o)->tp_name);
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
            PyObject* item = PySequence_Fast_GET_ITEM(o, i);
            Edge edge = edge_or_null(item);
            edges.push_back(
                edge ? std::move(edge)
                     : input_edge(require_tensor(item, function, argument), static_cast<size_t>(i)));
        }
    }
    return edges;
}

// Warnings are rare, so the Python function is looked up for each of them.
int warn_of_growth() {
    std::optional<GrowthReport> report = take_growth_report();
    if (!report) [[likely]]
        return 0;
    Object sample(check(wrap_node(report->sample)));
    report->sample = nullptr;
    Object module(check(PyImport_ImportModule("rushlight_autograd._growth")));
    Object done(check(PyObject_CallMethod(module.get(), "warn", "siOn", describe(report->site).c_str(),
                                          int(report->extended), sample.get(),
                                          static_cast<Py_ssize_t>(report->graphs))));
    return 0;
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
    if (!std::current_exception()) throw;  // Note [Interpreter exit] of core
    try {
        throw;
    } catch (PythonFailure& failure) { failure.restore(); } catch (ErrorIsSet&) {
    } catch (...) { core->set_error(); }
    return nullptr;
}

void sleep_if_interpreter_ends() { core->sleep_if_interpreter_ends(); }

namespace {

// Returns the roots of a pass from tensors and GradientEdges.
std::vector<Root> require_roots(PyObject* outputs, PyObject* grads) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(outputs);
    std::vector<Tensor> given = require_tensors(grads, "backward", "grad_tensors");
    RL_CHECK(given.empty() || given.size() == static_cast<size_t>(n), throw_runtime,
             "backward(): expected one gradient for each of the %zd outputs, got %zu gradients", n,
             given.size());
    given.resize(static_cast<size_t>(n));
    std::vector<Root> roots;
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(outputs, static_cast<Py_ssize_t>(i));
        if (Edge edge = edge_or_null(item)) {
            RL_CHECK(given[i].defined(), throw_runtime,
                     "backward(): the shape of output %zu is not known, since it is a GradientEdge\n"
                     "hint: pass its gradient in grad_tensors",
                     i);
            roots.push_back({std::move(edge), std::move(given[i])});
        } else {
            roots.push_back(root_of(require_tensor(item, "backward", "tensors"), std::move(given[i]), i));
        }
    }
    return roots;
}

// _run_backward(outputs, grads, inputs, retain_graph, create_graph, accumulate) -> tuple of gradients of the inputs
PyObject* run_backward_py(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 6, throw_type, "_run_backward takes 6 arguments");
    RL_CHECK(PyTuple_Check(args[0]) && PyTuple_Check(args[2]), throw_type,
             "_run_backward: outputs and inputs must be tuples");
    BackwardOptions options;
    options.retain_graph = PyObject_IsTrue(args[3]);
    options.create_graph = PyObject_IsTrue(args[4]);
    options.accumulate_grad = PyObject_IsTrue(args[5]);
    std::vector<Tensor> result;
    if (!names_tensors(args[0]) || !names_tensors(args[2])) {
        std::vector<Root> roots = require_roots(args[0], args[1]);
        std::vector<Edge> inputs = require_edges(args[2], "backward", "inputs");
        WithoutGil nogil;
        result = run_backward(roots, inputs, options);
    } else {
        std::vector<Tensor> outputs = require_tensors(args[0], "backward", "tensors");
        std::vector<Tensor> grads = require_tensors(args[1], "backward", "grad_tensors");
        std::vector<Tensor> inputs = require_tensors(args[2], "backward", "inputs");
        for (size_t i = 0; i < outputs.size(); ++i)
            RL_CHECK(outputs[i].defined(), throw_type, "backward(): output %zu must be Tensor, not None", i);
        WithoutGil nogil;
        result = run_batched_backward(outputs, grads, inputs, options);
    }
    warn_of_growth();
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
                     " was built for rushlight-core %s, but rushlight-core %s is installed\n"
                     "hint: install rushlight packages of the same release",
                     RUSHLIGHT_ABI, core->abi);
        return -1;
    }
    if (core->instance != instance()) {
        PyErr_SetString(PyExc_ImportError,
                        "two copies of librushlight.so are loaded: rushlight-autograd uses another copy than "
                        "rushlight-core\n"
                        "hint: remove one installation, or unset LD_LIBRARY_PATH");
        return -1;
    }
    try {
        initialize();
    } catch (...) {
        translate();
        return -1;
    }
    if (add_nodes(module) < 0 || add_search(module) < 0 || add_hooks(module) < 0 || add_modes(module) < 0 ||
        add_transforms(module) < 0 || add_functions(module) < 0 || add_tensor_methods(module) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "rushlight_autograd._C",
                          "The autograd graph, and the engine that runs backward passes.",
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
