// autograd.Function: operators with a derivative written in Python.
//
// An instance of a Function subclass is the context (`ctx`) of one call. `grad_fn` returns it, too.
//
// Note [Context and node]
// The node of a call owns its context, and the context has a plain pointer to the node. If the graph releases the
// node while a Python object refers to the context, the ownership is reversed: from then on the context owns the
// node, so that an object returned by grad_fn stays usable. The two never own each other at the same time, because
// reference counting could not free such a cycle.
#include "python.h"

#include <structmember.h>

#include <algorithm>
#include <optional>

#include "rushlight/autograd/saved.h"
#include "rushlight/autograd/tangent.h"
#include "rushlight/autograd/transform.h"
#include "rushlight/autograd/unrecorded_tangents.h"
#include "rushlight/ops/zeros.h"
#include "rushlight/ops/zeros_like.h"

namespace rushlight::autograd::python {
namespace {

class FunctionNode;

struct PyContext {
    PyObject_HEAD FunctionNode* node;  // null before the call is recorded and after the node is destroyed
    Ref<Node> owned;  // the same node, after the graph has released it
    PyObject* dict;
    PyObject* to_save;  // the arguments of save_for_backward, until forward has returned
    PyObject* for_forward;  // the arguments of save_for_forward, until jvp has run
    PyObject* dirty;
    PyObject* non_differentiable;
    PyObject* needs_input_grad;
    std::vector<SavedTensor> saved;
    bool materialize_grads;
    bool released;
    bool in_jvp;
};
PyTypeObject* ContextType = nullptr;
PyContext* context_of(PyObject* o) { return reinterpret_cast<PyContext*>(o); }

class FunctionNode final : public Node {
  public:
    RL_NODE_MEMORY
    FunctionNode(PyObject* context, uint32_t num_results, std::vector<int> edge_of_argument,
                 uint32_t num_edges)
        : Node("Function", num_results, num_edges),
          context_(Py_NewRef(context)),
          edge_of_argument_(std::move(edge_of_argument)),
          name_text_(std::string(Py_TYPE(context)->tp_name)
                         .substr(std::string_view(Py_TYPE(context)->tp_name).rfind('.') + 1)) {
        context_of(context)->node = this;
    }
    ~FunctionNode() override {
        if (!context_ || !Py_IsInitialized()) return;
        WithGil gil;
        context_of(context_)->node = nullptr;
        if (owns_context_) Py_DECREF(context_);
    }
    bool lives_on() override {
        if (!owns_context_ || !Py_IsInitialized()) return false;
        WithGil gil;
        if (Py_REFCNT(context_) == 1) return false;
        context_of(context_)->owned = Ref<Node>::share(this);
        owns_context_ = false;
        Py_DECREF(context_);
        return true;
    }
    /// Called when a context that owned the node is destroyed.
    void forget_context() { context_ = nullptr; }

    std::string name() const override { return name_text_; }
    void* python_object() const override { return context_; }
    int traverse(int (*visit)(void*, void*), void* argument) override {
        return owns_context_ ? visit(context_, argument) : 0;
    }
    void saved(const SavedVisitor& visit) const override {
        if (!context_) return;
        size_t i = 0;
        for (const SavedTensor& one : context_of(context_)->saved)
            show(visit, "tensors[" + std::to_string(i++) + "]", one);
    }
    void release_saved() override {
        Node::release_saved();
        if (!context_) return;
        WithGil gil;
        context_of(context_)->saved.clear();
        context_of(context_)->released = true;
    }

    void apply(std::span<Tensor> grads, std::span<Tensor> out) override {
        check_not_released();
        WithGil gil;
        RL_CHECK(context_, throw_runtime, "%s: backward cannot run, because ctx was deleted", name().c_str());
        Object arguments(check(PyTuple_New(static_cast<Py_ssize_t>(grads.size()) + 1)));
        PyTuple_SET_ITEM(arguments.get(), 0, Py_NewRef(context_));
        for (size_t i = 0; i < grads.size(); ++i) {
            if (!grads[i].defined() && context_of(context_)->materialize_grads && shapes[i])
                grads[i] = ops::zeros(shapes[i]->shape(), shapes[i]->dtype(), shapes[i]->device());
            PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i) + 1, check(wrap(grads[i])));
        }
        Object backward(
            check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(context_)), "backward")));
        Object result(check(PyObject_CallObject(backward.get(), arguments.get())));
        take(result.get(), out);
    }

    std::vector<std::optional<SavedShape>> shapes;  // shapes of the results that are tensors
    std::vector<SavedShape> argument_shapes;  // shapes of the arguments, one for each edge

  private:
    void take(PyObject* result, std::span<Tensor> out) {
        Object one;
        if (!PyTuple_Check(result)) {
            one = Object(check(PyTuple_Pack(1, result)));
            result = one.get();
        }
        auto n = static_cast<size_t>(PyTuple_GET_SIZE(result));
        // There may be more gradients than arguments if the surplus gradients are None.
        for (size_t i = edge_of_argument_.size(); i < n; ++i)
            RL_CHECK(PyTuple_GET_ITEM(result, static_cast<Py_ssize_t>(i)) == Py_None, throw_runtime,
                     "%s: backward returned %zu gradients for %zu arguments of forward\n"
                     "hint: return one gradient for each argument of forward; further values must be None",
                     name().c_str(), n, edge_of_argument_.size());
        RL_CHECK(n >= edge_of_argument_.size(), throw_runtime,
                 "%s: backward returned %zu gradient(s), but forward took %zu argument(s)\n"
                 "hint: return one gradient, or None, per argument of forward",
                 name().c_str(), n, edge_of_argument_.size());
        for (size_t i = 0; i < edge_of_argument_.size(); ++i) {
            PyObject* item = PyTuple_GET_ITEM(result, static_cast<Py_ssize_t>(i));
            if (item == Py_None) continue;
            TensorImpl* grad = unwrap(item);
            RL_CHECK(grad, throw_type,
                     "%s: backward returned %s as gradient of argument %zu, expected a Tensor or None\n"
                     "hint: return one Tensor, or a tuple with one for each argument of forward",
                     name().c_str(), Py_TYPE(item)->tp_name, i);
            int edge = edge_of_argument_[i];
            RL_CHECK(edge >= 0, throw_runtime,
                     "%s: backward returned a gradient for argument %zu, but this argument is not a Tensor\n"
                     "hint: return None for this argument",
                     name().c_str(), i);
            out[static_cast<size_t>(edge)] = fitted(Tensor::share(grad), static_cast<size_t>(edge), i);
        }
    }
    Tensor fitted(Tensor grad, size_t edge, size_t argument) {
        IntList want = argument_shapes[edge].shape();
        const DType dtype = argument_shapes[edge].dtype();
        RL_CHECK(!is_complex(grad.dtype()) || is_complex(dtype), throw_runtime,
                 "%s: backward returned a %s gradient for argument %zu, but the argument is %s\n"
                 "hint: return the real part of the gradient",
                 name().c_str(), rushlight::name(grad.dtype()), argument, rushlight::name(dtype));
        const Device device = argument_shapes[edge].device();
        RL_CHECK(grad.device() == device, throw_runtime,
                 "%s: backward returned a gradient on %s for argument %zu, but the argument is on %s",
                 name().c_str(), rushlight::name(grad.device()).c_str(), argument,
                 rushlight::name(device).c_str());
        if (std::equal(want.begin(), want.end(), grad.sizes().begin(), grad.sizes().end()) &&
            grad.dtype() == dtype)
            return grad;
        // If the argument's shape broadcasts to the shape of the gradient, the gradient is summed over the
        // broadcast dimensions.
        bool broadcast = want.size() <= grad.sizes().size();
        for (size_t d = 0; broadcast && d < want.size(); ++d) {
            int64_t got = grad.sizes()[grad.sizes().size() - 1 - d], need = want[want.size() - 1 - d];
            broadcast = got == need || need == 1;
        }
        RL_CHECK(broadcast, throw_runtime,
                 "%s: backward returned a gradient of shape %s for argument %zu of shape %s\n"
                 "hint: return a gradient of the argument's shape: sum over the dimensions that forward "
                 "broadcast",
                 name().c_str(), to_string(grad.sizes()).c_str(), argument, to_string(want).c_str());
        SavedShape shape;
        shape.require(want, dtype, device);
        return shape.fit(std::move(grad));
    }

    PyObject* context_;
    bool owns_context_ = true;
    std::vector<int> edge_of_argument_;  // -1 if the argument is not a tensor
    std::string name_text_;
};

// --- the context type ---

PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    new (&context_of(self)->saved) std::vector<SavedTensor>();
    new (&context_of(self)->owned) Ref<Node>();
    context_of(self)->materialize_grads = true;
    return self;
}
int context_traverse(PyObject* self, visitproc visit, void* arg) {
    PyContext* c = context_of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(c->dict);
    Py_VISIT(c->to_save);
    Py_VISIT(c->for_forward);
    Py_VISIT(c->dirty);
    Py_VISIT(c->non_differentiable);
    Py_VISIT(c->needs_input_grad);
    return 0;
}
int context_clear(PyObject* self) {
    PyContext* c = context_of(self);
    Py_CLEAR(c->dict);
    Py_CLEAR(c->to_save);
    Py_CLEAR(c->for_forward);
    Py_CLEAR(c->dirty);
    Py_CLEAR(c->non_differentiable);
    Py_CLEAR(c->needs_input_grad);
    c->saved.clear();
    return 0;
}
void context_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PyContext* c = context_of(self);
    if (c->owned) {
        c->node->forget_context();
        c->owned = nullptr;
    }
    context_clear(self);
    c->saved.~vector();
    c->owned.~Ref();
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

template <PyObject* PyContext::* field>
PyObject* keep_tensors(PyObject* self, PyObject* args) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
        PyObject* item = PyTuple_GET_ITEM(args, i);
        if (item == Py_None || unwrap(item)) continue;
        const char* method = field == &PyContext::dirty ? "mark_dirty" : "mark_non_differentiable";
        return PyErr_Format(PyExc_TypeError, "%s(): argument %zd must be Tensor, not %s", method, i,
                            Py_TYPE(item)->tp_name);
    }
    Py_XSETREF(context_of(self)->*field, Py_NewRef(args));
    Py_RETURN_NONE;
}
template <PyObject* PyContext::* field>
PyObject* keep(PyObject* self, PyObject* args) {
    Py_XSETREF(context_of(self)->*field, Py_NewRef(args));
    Py_RETURN_NONE;
}
PyObject* set_materialize_grads(PyObject* self, PyObject* value) {
    int truth = PyObject_IsTrue(value);
    if (truth < 0) return nullptr;
    context_of(self)->materialize_grads = truth;
    Py_RETURN_NONE;
}
PyObject* saved_tensors(PyObject* self, void*) {
    RL_TRY
    PyContext* c = context_of(self);
    if (c->in_jvp) return c->for_forward ? Py_NewRef(c->for_forward) : check(PyTuple_New(0));
    RL_CHECK(!c->released, throw_runtime,
             "%s: saved_tensors were freed by an earlier backward()\n"
             "hint: pass retain_graph=True to the first backward() if you need a second one",
             Py_TYPE(self)->tp_name);
    if (c->to_save) return Py_NewRef(c->to_save);
    Object tuple(check(PyTuple_New(static_cast<Py_ssize_t>(c->saved.size()))));
    for (size_t i = 0; i < c->saved.size(); ++i)
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), check(wrap(c->saved[i].unpack(c->node))));
    return tuple.release();
    RL_CATCH
}
PyObject* needs_input_grad(PyObject* self, void*) {
    PyObject* value = context_of(self)->needs_input_grad;
    return value ? Py_NewRef(value) : PyTuple_New(0);
}

bool contains(PyObject* tuple, PyObject* item) {
    if (!tuple) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
        if (PyTuple_GET_ITEM(tuple, i) == item) return true;
    return false;
}

// Returns a tuple of bools: whether each argument requires grad.
PyObject* needed_grads(PyObject* args) {
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    Object needs(check(PyTuple_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i) {
        TensorImpl* impl = unwrap(PyTuple_GET_ITEM(args, i));
        PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(impl && Tensor::share(impl).requires_grad()));
    }
    return needs.release();
}

// Returns the context of a call that has not run yet. The class of the context has the name that grad_fn shows.
PyObject* new_context(PyObject* cls, PyObject* args) {
    Object context_class(check(PyObject_GetAttrString(cls, "_context_class")));
    Object context(check(PyObject_CallNoArgs(context_class.get())));
    RL_CHECK(PyObject_TypeCheck(context.get(), ContextType), throw_type,
             "apply(): must be called on a subclass of Function");
    context_of(context.get())->needs_input_grad = needed_grads(args);
    return context.release();
}

bool splits_context(PyObject* cls) {
    Object split(check(PyObject_GetAttrString(cls, "_splits_context")));
    return PyObject_IsTrue(split.get()) == 1;
}
void set_up(PyObject* cls, PyObject* context, PyObject* args, PyObject* output) {
    Object setup(check(PyObject_GetAttrString(cls, "setup_context")));
    Object none(check(PyObject_CallFunctionObjArgs(setup.get(), context, args, output, nullptr)));
}

// Returns the tensors among the items of a tuple.
std::vector<Tensor> tensors_of(PyObject* tuple) {
    std::vector<Tensor> tensors;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
        if (TensorImpl* impl = unwrap(PyTuple_GET_ITEM(tuple, i))) tensors.push_back(Tensor::share(impl));
    return tensors;
}

Object as_tuple(PyObject* output) {
    return Object(PyTuple_Check(output) ? Py_NewRef(output) : check(PyTuple_Pack(1, output)));
}

// If `item` is an output of forward, and not an argument, returns the result that the caller gets for this output.
// Otherwise returns `item`.
PyObject* result_of(PyObject* item, PyObject* args, PyObject* outputs, PyObject* results) {
    if (contains(args, item)) return item;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i)
        if (PyTuple_GET_ITEM(outputs, i) == item) return PyTuple_GET_ITEM(results, i);
    return item;
}

// Replaces the outputs among the tensors that were saved for jvp by results, which have a history and tangents.
void save_results_for_forward(PyContext* c, PyObject* args, PyObject* outputs, PyObject* results) {
    if (!c->for_forward) return;
    const Py_ssize_t n = PyTuple_GET_SIZE(c->for_forward);
    Object saved(check(PyTuple_New(n)));
    for (Py_ssize_t i = 0; i < n; ++i)
        PyTuple_SET_ITEM(saved.get(), i,
                         Py_NewRef(result_of(PyTuple_GET_ITEM(c->for_forward, i), args, outputs, results)));
    Py_XSETREF(c->for_forward, saved.release());
}

// Runs forward under no_grad. forward either receives ctx, or has a separate setup_context.
PyObject* run_forward(PyObject* cls, PyObject* context, PyObject* args) {
    GradMode off(false);
    Object forward(check(PyObject_GetAttrString(cls, "forward")));
    if (splits_context(cls)) {
        Object output(check(PyObject_CallObject(forward.get(), args)));
        set_up(cls, context, args, output.get());
        return output.release();
    }
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    Object all(check(PyTuple_New(n + 1)));
    PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(context));
    for (Py_ssize_t i = 0; i < n; ++i)
        PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
    return check(PyObject_CallObject(forward.get(), all.get()));
}

// Runs forward and records the call. Sets `context` to the context of the call.
PyObject* recorded_call(PyObject* cls, PyObject* args, Object& context) {
    context = Object(new_context(cls, args));
    PyContext* c = context_of(context.get());

    Py_ssize_t n = PyTuple_GET_SIZE(args);
    bool record = false;
    std::vector<int> edge_of_argument(static_cast<size_t>(n), -1);
    std::vector<Edge> edges;
    std::vector<SavedShape> argument_shapes;
    UnrecordedTangents tangents(forward_mode_is_on() ? tensors_of(args) : std::vector<Tensor>());
    for (Py_ssize_t i = 0; i < n; ++i) {
        TensorImpl* impl = unwrap(PyTuple_GET_ITEM(args, i));
        if (!impl) continue;
        Tensor t = Tensor::share(impl);
        edge_of_argument[static_cast<size_t>(i)] = static_cast<int>(edges.size());
        edges.push_back(grad_mode() ? recorded_edge(t) : Edge{});
        argument_shapes.emplace_back().save(t);
        record |= t.requires_grad() && grad_mode();
    }

    Object output(run_forward(cls, context.get(), args));
    bool single = !PyTuple_Check(output.get());
    Object outputs(as_tuple(output.get()));
    Py_ssize_t m = PyTuple_GET_SIZE(outputs.get());
    Object results(check(PyTuple_New(m)));

    for (Py_ssize_t i = 0; c->dirty && i < PyTuple_GET_SIZE(c->dirty); ++i)
        RL_CHECK(contains(outputs.get(), PyTuple_GET_ITEM(c->dirty, i)), throw_runtime,
                 "%s: tensor %zd passed to mark_dirty() was not returned by forward\n"
                 "hint: return every argument that forward modifies in place",
                 Py_TYPE(context.get())->tp_name, i);

    Ref<Node> owner;
    FunctionNode* node = nullptr;
    if (record) {
        node = new FunctionNode(context.get(), static_cast<uint32_t>(m), std::move(edge_of_argument),
                                static_cast<uint32_t>(edges.size()));
        owner = Ref<Node>::adopt(node);
        for (size_t i = 0; i < edges.size(); ++i) node->edges()[i] = std::move(edges[i]);
        node->argument_shapes = std::move(argument_shapes);
        node->shapes.resize(static_cast<size_t>(m));
    }
    for (Py_ssize_t i = 0; i < m; ++i) {
        PyObject* item = PyTuple_GET_ITEM(outputs.get(), i);
        TensorImpl* impl = unwrap(item);
        Object result(Py_NewRef(item));
        Py_ssize_t first = 0;  // the first output that is this object
        while (PyTuple_GET_ITEM(outputs.get(), first) != item) ++first;
        if (impl && first < i) {
            RL_CHECK(!contains(c->dirty, item), throw_runtime,
                     "%s: forward returned a tensor passed to mark_dirty() more than once",
                     Py_TYPE(context.get())->tp_name);
            if (record) node->shapes[static_cast<size_t>(i)].emplace().save(Tensor::share(impl));
            result = Object(Py_NewRef(PyTuple_GET_ITEM(results.get(), first)));
        } else if (impl) {
            Tensor t = Tensor::share(impl);
            bool is_argument = contains(args, item), dirty = contains(c->dirty, item);
            RL_CHECK(is_argument || !dirty, throw_runtime,
                     "%s: mark_dirty() accepts only arguments of forward", Py_TYPE(context.get())->tp_name);
            auto index = static_cast<uint32_t>(i);
            if (record) node->shapes[static_cast<size_t>(i)].emplace().save(t);
            if (record && !contains(c->non_differentiable, item) && is_differentiable(t.dtype())) {
                if (dirty) {
                    check_inplace(node->name().c_str(), t);
                    rebase_history(t, owner, index);
                } else if (is_argument || impl->has(Flag::DetachedView)) {
                    // forward returned an argument itself, or a view that it made under no_grad: return an alias of
                    // it, with its tangents.
                    Tensor alias = cut_off(t);
                    set_history(alias, owner, index);
                    result = Object(check(wrap(alias)));
                } else {
                    RL_CHECK(!t.requires_grad() || !meta_or_null(impl) || !meta_or_null(impl)->grad_fn,
                             throw_runtime, "%s: forward returned a tensor that already has a grad_fn",
                             Py_TYPE(context.get())->tp_name);
                    set_history(t, owner, index);
                }
            }
        }
        PyTuple_SET_ITEM(results.get(), i, result.release());
    }
    if (c->to_save) {
        if (record) {
            for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(c->to_save); ++k) {
                PyObject* item = PyTuple_GET_ITEM(c->to_save, k);
                SavedTensor& slot = c->saved.emplace_back();
                if (item == Py_None) continue;
                item = result_of(item, args, outputs.get(), results.get());
                Tensor t = require_tensor(item, "save_for_backward", "tensors");
                Meta* m = meta_or_null(t.impl());
                if (m && m->grad_fn.get() == node) slot.save_result(t, m->index);
                else slot.save(t);
            }
        }
        Py_CLEAR(c->to_save);
    }
    save_results_for_forward(c, args, outputs.get(), results.get());
    if (tangents)
        tangents.connect(reinterpret_cast<PyTypeObject*>(cls)->tp_name, tensors_of(results.get()),
                         c->dirty ? tensors_of(c->dirty) : std::vector<Tensor>());
    Py_CLEAR(c->dirty);
    if (single) return Py_NewRef(PyTuple_GET_ITEM(results.get(), 0));
    return results.release();
}

// Returns the innermost level at which an argument is dual; 0 if no argument is dual.
Level level_of(PyObject* args) {
    if (!forward_mode_is_on() || dispatch_state.off & bit(Stage::Dual)) return 0;
    Level level = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
        if (TensorImpl* impl = unwrap(PyTuple_GET_ITEM(args, i)))
            level = std::max(level, innermost_level(Tensor::share(impl)));
    return level;
}
bool has_jvp(PyObject* cls) {
    Object own(check(PyObject_GetAttrString(cls, "_has_jvp")));
    return own.get() == Py_True;
}

// Raises an error if an output lost its tangent. Without jvp, forward is differentiated through the operators that it
// calls, so values that it computes by other means have no tangent.
void check_tangents(PyObject* context, PyObject* output, Level level) {
    PyObject* constant = context_of(context)->non_differentiable;
    const bool many = PyTuple_Check(output);
    for (Py_ssize_t i = 0; i < (many ? PyTuple_GET_SIZE(output) : 1); ++i) {
        PyObject* item = many ? PyTuple_GET_ITEM(output, i) : output;
        TensorImpl* impl = unwrap(item);
        if (!impl || !is_differentiable(impl->dtype()) || contains(constant, item)) continue;
        RL_CHECK(tangent(Tensor::share(impl), level).defined(), throw_not_implemented,
                 "%s: output %zd has no tangent, although an argument has a tangent, because forward did not "
                 "compute the output with operators\n"
                 "hint: write a static method jvp(ctx, *tangents), or call mark_non_differentiable() on the "
                 "output",
                 Py_TYPE(context)->tp_name, i);
    }
}

// Runs one call; a call with dual arguments uses the subclass's jvp, if it has one.
PyObject* call(PyObject* cls, PyObject* args) {
    const Level level = level_of(args);
    if (level && has_jvp(cls))
        return check(
            PyObject_CallMethod(cls, "_apply_dual", "(OK)", args, static_cast<unsigned long long>(level)));
    Object context, output(recorded_call(cls, args, context));
    if (level) check_tangents(context.get(), output.get(), level);
    Py_CLEAR(context_of(context.get())->for_forward);
    Py_CLEAR(context_of(context.get())->non_differentiable);
    return output.release();
}

// _function_apply(cls, args): runs one call.
PyObject* function_apply(PyObject*, PyObject* const* given, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 2 && PyTuple_Check(given[1]), throw_type, "_function_apply(cls, args)");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given[1]); ++i)
        if (TensorImpl* impl = unwrap(PyTuple_GET_ITEM(given[1], i)); impl && is_batched(Tensor::share(impl)))
            return check(PyObject_CallMethod(given[0], "_apply_batched", "(O)", given[1]));
    return call(given[0], given[1]);
    RL_CATCH
}

// _function_jvp(cls, args, tangents, level) -> (output, tangents of the output): runs one call while tangents of
// `level` are hidden. If arguments have tangents of outer levels, jvp also computes the output's tangents of these
// levels. For this, the tensors that jvp reads must have a history and tangents of the outer levels. So setup_context runs
// once more, with the results. Without setup_context, forward runs once more on dual tensors, and the results replace its
// outputs.
PyObject* function_jvp(PyObject*, PyObject* const* given, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 4 && PyTuple_Check(given[1]) && PyTuple_Check(given[2]), throw_type,
             "_function_jvp(cls, args, tangents, level)");
    PyObject *cls = given[0], *tangents = given[2];
    const HideLevels hide(PyLong_AsUnsignedLongLong(given[3]));
    Object output, context;
    if (level_of(given[1])) {
        output = Object(call(cls, given[1]));
        GradMode off(false);
        if (splits_context(cls)) {
            context = Object(new_context(cls, given[1]));
            set_up(cls, context.get(), given[1], output.get());
            Py_CLEAR(context_of(context.get())->to_save);
            Py_CLEAR(context_of(context.get())->dirty);
        } else {
            const Object again(recorded_call(cls, given[1], context));
            save_results_for_forward(context_of(context.get()), given[1], as_tuple(again.get()).get(),
                                     as_tuple(output.get()).get());
        }
    } else {
        output = Object(recorded_call(cls, given[1], context));
    }
    PyContext* c = context_of(context.get());
    const Py_ssize_t n = PyTuple_GET_SIZE(tangents);
    Object all(check(PyTuple_New(n + 1)));
    PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(context.get()));
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* item = PyTuple_GET_ITEM(tangents, i);
        TensorImpl* argument = unwrap(PyTuple_GET_ITEM(given[1], i));
        const bool zeros =
            item == Py_None && argument && c->materialize_grads && is_differentiable(argument->dtype());
        PyTuple_SET_ITEM(all.get(), i + 1,
                         zeros ? check(wrap(ops::zeros_like(Tensor::share(argument)))) : Py_NewRef(item));
    }
    Object jvp(check(PyObject_GetAttrString(cls, "jvp")));
    c->in_jvp = true;
    PyObject* made = PyObject_CallObject(jvp.get(), all.get());
    c->in_jvp = false;
    Object result(check(made));
    Py_CLEAR(c->for_forward);
    Py_CLEAR(c->non_differentiable);
    return check(PyTuple_Pack(2, output.get(), result.get()));
    RL_CATCH
}

PyMethodDef context_methods[] = {
    {"save_for_backward", keep<&PyContext::to_save>, METH_VARARGS,
     "Save arguments or results for backward, which reads them from ctx.saved_tensors."},
    {"save_for_forward", keep<&PyContext::for_forward>, METH_VARARGS,
     "Save tensors for jvp, which reads them from ctx.saved_tensors."},
    {"mark_dirty", keep_tensors<&PyContext::dirty>, METH_VARARGS,
     "Mark the arguments that forward modified in place."},
    {"mark_non_differentiable", keep_tensors<&PyContext::non_differentiable>, METH_VARARGS,
     "Mark the results of forward that are not differentiable."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "Set whether backward receives zeros (the default) or None for a result whose gradient is undefined."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef context_properties[] = {
    {"saved_tensors", saved_tensors, nullptr,
     "The saved tensors. Raises RuntimeError if one of them was changed in place after it was saved.",
     nullptr},
    {"needs_input_grad", needs_input_grad, nullptr,
     "A tuple with one bool for each argument of forward: whether its gradient is needed.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef functions[] = {
    {"_function_apply", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function_apply)),
     METH_FASTCALL, nullptr},
    {"_function_jvp", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function_jvp)),
     METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

extern PyMethodDef node_methods[];
extern PyGetSetDef node_properties[];

Node* function_node_or_null(PyObject* o) {
    return PyObject_TypeCheck(o, ContextType) ? context_of(o)->node : nullptr;
}

int add_functions(PyObject* module) {
    // A context also represents its node: it has the node's methods and attributes (name, edges, hooks), which work
    // as long as the node exists.
    static std::vector<PyMethodDef> methods;
    for (PyMethodDef* m = context_methods; m->ml_name; ++m) methods.push_back(*m);
    for (PyMethodDef* m = node_methods; m->ml_name; ++m) methods.push_back(*m);
    methods.push_back({nullptr, nullptr, 0, nullptr});
    static std::vector<PyGetSetDef> properties;
    for (PyGetSetDef* p = context_properties; p->name; ++p) properties.push_back(*p);
    for (PyGetSetDef* p = node_properties; p->name; ++p) properties.push_back(*p);
    properties.push_back({nullptr, nullptr, nullptr, nullptr, nullptr});
    static PyMemberDef members[] = {
        {"__dictoffset__", T_PYSSIZET, offsetof(PyContext, dict), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr}};
    static constexpr char text[] =
        R"doc(The node of a Function, which is also the `ctx` of its methods: attributes may be set on it.

Example::

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad)doc";
    static PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(text)},
                                  {Py_tp_new, (void*)context_new},
                                  {Py_tp_dealloc, (void*)context_dealloc},
                                  {Py_tp_traverse, (void*)context_traverse},
                                  {Py_tp_clear, (void*)context_clear},
                                  {Py_tp_methods, methods.data()},
                                  {Py_tp_getset, properties.data()},
                                  {Py_tp_members, members},
                                  {0, nullptr}};
    static PyType_Spec spec{"rushlight_autograd.FunctionCtx", sizeof(PyContext), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    ContextType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!ContextType) return -1;
    if (PyModule_AddObjectRef(module, "FunctionCtx", reinterpret_cast<PyObject*>(ContextType)) < 0) return -1;
    return PyModule_AddFunctions(module, functions);
}

}  // namespace rushlight::autograd::python
