// The interface to dispatch for providers that are written in Python: the function of a stage, and autograd's
// per-tensor state. It is documented in rushlight_core.seams.stages.
#include <string_view>

#include "python/python.h"
#include "python/release.h"
#include "python/results.h"
#include "python/values.h"
#include "rushlight/batched.h"
#include "rushlight/dispatch.h"
#include "rushlight/site.h"
#include "rushlight/tracing.h"

namespace rushlight::python {
namespace {

constexpr const char* kStageNames[kNumStages] = {"recorder", "autograd", "dual",     "sparse",
                                                 "float8",   "batch",    "autocast", "tracer",
                                                 "profiler", "python",   "strict"};

int stage_of(const char* function, PyObject* o) {
    const char* text = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : nullptr;
    for (int i = 0; text && i < kNumStages; ++i)
        if (std::string_view(kStageNames[i]) == text) return i;
    throw_value("%s(stage): must be the name of a stage, such as 'autograd' or 'tracer'", function);
}

// --- the function of a stage ---

PyObject* functions_of_stages[kNumStages];  // never freed, because a call may be about to use them

Object arguments_of(const Stack& stack) {
    Object arguments = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(stack.size())));
    for (size_t i = 0; i < stack.size(); ++i)
        PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i), to_python(stack[i]).release());
    return arguments;
}

/// Converts the objects that the function returned into the results of the operator.
void take_results(const Operator& op, PyObject* returned, Stack& stack) {
    SchemaText schema(op);
    const size_t count = schema.returns.size();
    bool several = count > 1;
    RL_CHECK(!several || (PyTuple_Check(returned) && PyTuple_GET_SIZE(returned) == Py_ssize_t(count)),
             throw_type, "%s: the stage's function must return a tuple of %zu results", op.name, count);
    stack.clear();
    stack.resize(count);
    for (size_t i = 0; i < count; ++i) {
        PyObject* one = several ? PyTuple_GET_ITEM(returned, static_cast<Py_ssize_t>(i)) : returned;
        if (one == Py_None) continue;  // an auxiliary result that was not computed
        RL_CHECK(to_value(one, schema.returns[i], stack[i]), throw_type,
                 "%s: the stage's function returned %s, needs %.*s", op.name, Py_TYPE(one)->tp_name,
                 int(schema.returns[i].size()), schema.returns[i].data());
    }
}

template <int stage>
void call_function(const Operator& op, StageMask rest, Stack& stack) {
    WithGil gil;
    Object arguments = arguments_of(stack);
    Object returned = Object::steal(
        PyObject_CallFunction(functions_of_stages[stage], "sOI", op.name, arguments.get(), rest));
    take_results(op, returned.get(), stack);
}

template <int... stage>
Fallback fallback_for(int wanted, std::integer_sequence<int, stage...>) {
    Fallback found = nullptr;
    ((stage == wanted ? void(found = call_function<stage>) : void()), ...);
    return found;
}

// _provide_stage(stage, function)
PyObject* provide_stage(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    RL_CHECK(nargs == 2, throw_type, "provide_stage takes 2 arguments");
    int stage = stage_of("provide_stage", args[0]);
    RL_CHECK(PyCallable_Check(args[1]), throw_type, "provide_stage(function): must be callable, not %s",
             Py_TYPE(args[1])->tp_name);
    RL_CHECK(!fallback_of(static_cast<Stage>(stage)), throw_runtime,
             "provide_stage(stage): '%s' already has a provider, and can have only one at a time",
             kStageNames[stage]);
    functions_of_stages[stage] = Py_NewRef(args[1]);
    install_fallback(static_cast<Stage>(stage),
                     fallback_for(stage, std::make_integer_sequence<int, kNumStages>()));
    Py_RETURN_NONE;
    RL_PY_CATCH
}

// _withdraw_stage(stage): ends what _provide_stage began.
PyObject* withdraw_stage(PyObject*, PyObject* name) {
    RL_PY_TRY
    int stage = stage_of("withdraw_stage", name);
    RL_CHECK(functions_of_stages[stage], throw_runtime,
             "withdraw_stage(stage): '%s' has no provider that is written in Python", kStageNames[stage]);
    install_fallback(static_cast<Stage>(stage), nullptr);
    functions_of_stages[stage] = nullptr;
    Py_RETURN_NONE;
    RL_PY_CATCH
}

// _check_untraced(what): raises NotImplementedError if this thread captures a program.
PyObject* check_untraced(PyObject*, PyObject* what) {
    RL_PY_TRY
    const char* text = PyUnicode_AsUTF8(what);
    if (!text) return nullptr;
    if (is_tracing()) {
        const std::string line = describe(current_site());
        throw_not_implemented("capture: %s%s cannot be captured so far", text,
                              line.empty() ? "" : (" at " + line).c_str());
    }
    Py_RETURN_NONE;
    RL_PY_CATCH
}

// _require_values(what, tensor): raises RuntimeError if `what` must not read the values of the tensor, because a program is
// captured, or because the tensor is batched.
PyObject* check_values(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    RL_CHECK(nargs == 2 && PyUnicode_Check(args[0]) && is_tensor(args[1]), throw_type,
             "_require_values takes a str and a Tensor");
    require_values(PyUnicode_AsUTF8(args[0]), unwrap(args[1]));
    Py_RETURN_NONE;
    RL_PY_CATCH
}

// _call_from(rest, name, *args): continues a call after the stage whose function was called.
PyObject* call_from(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    RL_CHECK(nargs >= 2 && PyLong_Check(args[0]) && PyUnicode_Check(args[1]), throw_type,
             "_call_from(rest, name, *args): rest must be an int, name a str");
    auto rest = static_cast<StageMask>(PyLong_AsUnsignedLongMask(args[0]));
    const char* name = PyUnicode_AsUTF8(args[1]);
    if (!name) return nullptr;
    const Operator* op = find_operator(name);
    RL_CHECK(op, throw_runtime, "_call_from(name): there is no operator '%s'", name);
    return results_to_python(call_operator(*op, args + 2, nargs - 2, rest)).release();
    RL_PY_CATCH
}

// _set_stage_on(stage, on), _set_stage_off(stage, off): return the former setting of this thread.
PyObject* set_bit(const char* function, StageMask& bits, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    RL_CHECK(nargs == 2, throw_type, "%s takes 2 arguments", function);
    StageMask mask = StageMask{1} << stage_of(function, args[0]);
    int wanted = PyObject_IsTrue(args[1]);
    if (wanted < 0) return nullptr;
    bool before = bits & mask;
    bits = wanted ? bits | mask : bits & ~mask;
    return PyBool_FromLong(before);
    RL_PY_CATCH
}
PyObject* set_stage_on(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return set_bit("_set_stage_on", dispatch_state.on, args, nargs);
}
PyObject* set_stage_off(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return set_bit("_set_stage_off", dispatch_state.off, args, nargs);
}

// --- per-tensor state ---

struct State {
    PyObject* object;
};

void drop_object(void* object) { Py_XDECREF(static_cast<PyObject*>(object)); }

const MetaTable state_table = {
    .destroy =
        [](void* meta) {
            auto* state = static_cast<State*>(meta);
            if (state->object) run_with_gil(drop_object, state->object);
            delete state;
        },
    .traverse =
        [](void* meta, int (*visit)(void*, void*), void* argument) {
            auto* state = static_cast<State*>(meta);
            return state->object ? visit(state->object, argument) : 0;
        },
    .clear =
        [](void* meta) {
            auto* state = static_cast<State*>(meta);
            drop_object(std::exchange(state->object, nullptr));
        },
};
bool is_state_provider = false;

TensorImpl* require_state(const char* function, PyObject* o) {
    RL_CHECK(is_state_provider, throw_runtime, "%s: call provide_state() first", function);
    RL_CHECK(is_tensor(o), throw_type, "%s(tensor): must be a Tensor, not %s", function, Py_TYPE(o)->tp_name);
    return unwrap(o).impl();
}

PyObject* provide_state(PyObject*, PyObject*) {
    RL_PY_TRY
    set_meta_table(state_table);
    is_state_provider = true;
    Py_RETURN_NONE;
    RL_PY_CATCH
}

PyObject* get_state(PyObject*, PyObject* tensor) {
    RL_PY_TRY
    auto* state = static_cast<State*>(require_state("get_state", tensor)->meta());
    return Py_NewRef(state && state->object ? state->object : Py_None);
    RL_PY_CATCH
}

// _set_state(tensor, object, computed)
PyObject* set_state(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_PY_TRY
    RL_CHECK(nargs == 3, throw_type, "_set_state takes 3 arguments");
    TensorImpl* impl = require_state("set_state", args[0]);
    int computed = PyObject_IsTrue(args[2]);
    if (computed < 0) return nullptr;
    auto* state = static_cast<State*>(impl->meta());
    if (!state) impl->set_meta(state = new State{nullptr});
    PyObject* old = std::exchange(state->object, Py_NewRef(args[1]));
    if (computed) {
        impl->set(Flag::NonLeaf);
        impl->set_stage(Stage::Autograd, true);
    }
    Py_XDECREF(old);
    Py_RETURN_NONE;
    RL_PY_CATCH
}

template <class F>
PyCFunction fast(F* function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef functions[] = {{"_provide_stage", fast(provide_stage), METH_FASTCALL, nullptr},
                           {"_withdraw_stage", withdraw_stage, METH_O, nullptr},
                           {"_call_from", fast(call_from), METH_FASTCALL, nullptr},
                           {"_check_untraced", check_untraced, METH_O, nullptr},
                           {"_require_values", fast(check_values), METH_FASTCALL, nullptr},
                           {"_set_stage_on", fast(set_stage_on), METH_FASTCALL, nullptr},
                           {"_set_stage_off", fast(set_stage_off), METH_FASTCALL, nullptr},
                           {"_provide_state", provide_state, METH_NOARGS, nullptr},
                           {"_get_state", get_state, METH_O, nullptr},
                           {"_set_state", fast(set_state), METH_FASTCALL, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_stages(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
