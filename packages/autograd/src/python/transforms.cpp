// Functions on graphs that function transforms need.
#include "python.h"
#include "rushlight/autograd/batch.h"
#include "rushlight/autograd/transform.h"
#include "rushlight/ops/movedim.h"

namespace rushlight::autograd::python {
namespace {

TransformId id_of(PyObject* o) {
    const TransformId id = PyLong_AsUnsignedLongLong(o);
    if (PyErr_Occurred()) throw PythonFailure();
    return id;
}

PyObject* py_open_transform(PyObject*, PyObject*) {
    RL_TRY return PyLong_FromUnsignedLongLong(open_transform());
    RL_CATCH
}

PyObject* py_close_transform(PyObject*, PyObject* id) {
    RL_TRY
    close_transform(id_of(id));
    Py_RETURN_NONE;
    RL_CATCH
}

PyObject* py_transform_leaf(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 3, throw_type, "_transform_leaf takes 3 arguments");
    Tensor t = require_tensor(args[0], "grad", "input");
    return check(wrap(transform_leaf(t, id_of(args[1]), PyObject_IsTrue(args[2]) == 1)));
    RL_CATCH
}

PyObject* py_reaches_outside(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 2, throw_type, "_reaches_outside takes 2 arguments");
    return PyBool_FromLong(
        reaches_outside(require_tensors(args[0], "_reaches_outside", "tensors"), id_of(args[1])));
    RL_CATCH
}

PyObject* py_finish(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 3, throw_type, "_finish takes 3 arguments");
    const Tensor t = require_tensor(args[0], "_finish", "tensor");
    const Tensor result = finish(t, id_of(args[1]), PyObject_IsTrue(args[2]) == 1);
    return result.is_same(t) ? Py_NewRef(args[0]) : check(wrap(result));
    RL_CATCH
}

// --- vmap ---

PyObject* py_open_batch(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 3, throw_type, "_open_batch takes 3 arguments");
    const int64_t size = PyLong_AsLongLong(args[0]);
    const long randomness = PyLong_AsLong(args[1]);
    if (PyErr_Occurred()) throw PythonFailure();
    open_batch_level(size, static_cast<Randomness>(randomness), PyObject_IsTrue(args[2]) == 1);
    Py_RETURN_NONE;
    RL_CATCH
}

PyObject* py_close_batch(PyObject*, PyObject*) {
    RL_TRY
    close_batch_level();
    Py_RETURN_NONE;
    RL_CATCH
}

int64_t dim_of(PyObject* o) {
    const int64_t dim = PyLong_AsLongLong(o);
    if (dim == -1 && PyErr_Occurred()) throw PythonFailure();
    return dim;
}

// _batch(tensor, dim): returns the tensor batched in the innermost level, with its examples along `dim`.
PyObject* py_batch(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 2, throw_type, "_batch takes 2 arguments");
    const Tensor t = require_tensor(args[0], "vmap", "argument");
    const int64_t dim = dim_of(args[1]);
    return check(
        wrap(batch(dim == 0 ? t : ops::movedim(t, IntList(&dim, 1), kInts<0>), current_batch_level())));
    RL_CATCH
}

// _unbatch(tensor, dim): returns the tensor with the innermost level's examples along `dim`; None for a
// tensor without examples.
PyObject* py_unbatch(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 2, throw_type, "_unbatch takes 2 arguments");
    const Tensor t = require_tensor(args[0], "vmap", "result");
    const BatchLevel& level = *current_batch_level();
    if (args[1] == Py_None) {
        RL_CHECK(
            !is_batched(t) || batched(t).innermost.get() != &level, throw_value,
            "vmap(out_dims): must not be None for a result that differs between the examples of the batch");
        return check(wrap(t));
    }
    const int64_t dim = dim_of(args[1]);
    const Tensor rows = unbatch(t, level, true);
    return check(wrap(dim == 0 ? rows : ops::movedim(rows, kInts<0>, IntList(&dim, 1))));
    RL_CATCH
}

// _suspend_batch(number): hides the level of that number and all levels inside it; _resume_batch() shows them again.
// _suspend_other_batches(tensors): hides all levels in which no tensor is batched, and returns whether there are any.
PyObject* py_suspend_batch(PyObject*, PyObject* number) {
    RL_TRY
    const int64_t wanted = dim_of(number);
    uint64_t levels = 0;
    for (Ref<BatchLevel> level = current_batch_level(); level && level->number >= wanted;
         level = Ref<BatchLevel>(level->outer))
        levels |= uint64_t{1} << level->number;
    RL_CHECK(
        levels >> wanted & 1, throw_runtime,
        "vmap: the call with level %lld has ended\nhint: do not use a batched tensor after the call of vmap that "
        "batched it",
        (long long)wanted);
    hide_batch_levels(levels);
    Py_RETURN_NONE;
    RL_CATCH
}
PyObject* py_suspend_other_batches(PyObject*, PyObject* tensors) {
    RL_TRY
    BatchLevels own;
    for (const Tensor& t : require_tensors(tensors, "_suspend_other_batches", "tensors")) own.add(t);
    uint64_t levels = 0;
    for (Ref<BatchLevel> level = current_batch_level(); level; level = Ref<BatchLevel>(level->outer))
        levels |= uint64_t{1} << level->number;
    levels &= ~own.bits;
    if (levels) hide_batch_levels(levels);
    return PyBool_FromLong(levels != 0);
    RL_CATCH
}
PyObject* py_resume_batch(PyObject*, PyObject*) {
    RL_TRY
    show_batch_levels();
    Py_RETURN_NONE;
    RL_CATCH
}

// _batch_at(tensor, dim, number): returns the tensor batched in the open level of that number.
PyObject* py_batch_at(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    RL_TRY
    RL_CHECK(nargs == 3, throw_type, "_batch_at takes 3 arguments");
    const Tensor t = require_tensor(args[0], "vmap", "result");
    const int64_t dim = dim_of(args[1]), wanted = dim_of(args[2]);
    Ref<BatchLevel> level = current_batch_level();
    while (level && level->number != wanted) level = Ref<BatchLevel>(level->outer);
    RL_CHECK(
        level, throw_runtime,
        "vmap: the call with level %lld has ended\nhint: do not use a batched tensor after the call of vmap that "
        "batched it",
        (long long)wanted);
    const Tensor rows = dim == 0 ? t : ops::movedim(t, IntList(&dim, 1), kInts<0>);
    RL_CHECK(rows.dim() > 0 && rows.sizes()[0] == level->size, throw_runtime,
             "vmap: a result of a Function's vmap() must have size %lld, the batch size, in its batch "
             "dimension, got shape %s",
             (long long)level->size, to_string(rows.sizes()).c_str());
    return check(wrap(batch(rows, level)));
    RL_CATCH
}

// _peel(tensor) -> (tensor unwrapped at the innermost level in which it is batched, number of that level)
PyObject* py_peel(PyObject*, PyObject* tensor) {
    RL_TRY
    const Tensor t = require_tensor(tensor, "repr", "tensor");
    RL_CHECK(is_batched(t), throw_type, "_peel(): the tensor is not batched");
    const Ref<BatchLevel> level = batched(t).innermost;
    Object value(check(wrap(unbatch(t, *level, false))));
    return Py_BuildValue("(Oii)", value.get(), level->number, static_cast<int>(level->randomness));
    RL_CATCH
}

PyObject* slow_path_callback = nullptr;
void report_slow_path(const char* op) {
    WithGil gil;
    Object result(check(PyObject_CallFunction(slow_path_callback, "s", op)));
}

// _on_slow_path(callback): called with the name of an operator when it takes the slow path for the first time.
PyObject* py_on_slow_path(PyObject*, PyObject* callback) {
    Py_XSETREF(slow_path_callback, Py_NewRef(callback));
    set_slow_path_report(report_slow_path);
    Py_RETURN_NONE;
}

PyObject* py_slow_path_taken(PyObject*, PyObject* forget) {
    RL_TRY
    const std::vector<std::string> names = slow_path_taken(PyObject_IsTrue(forget) == 1);
    Object list(check(PyList_New(0)));
    for (const std::string& name : names) {
        Object text(check(PyUnicode_FromString(name.c_str())));
        if (PyList_Append(list.get(), text.get()) < 0) throw PythonFailure();
    }
    return list.release();
    RL_CATCH
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef functions[] = {{"_open_transform", py_open_transform, METH_NOARGS, nullptr},
                           {"_close_transform", py_close_transform, METH_O, nullptr},
                           {"_transform_leaf", fast(py_transform_leaf), METH_FASTCALL, nullptr},
                           {"_reaches_outside", fast(py_reaches_outside), METH_FASTCALL, nullptr},
                           {"_finish", fast(py_finish), METH_FASTCALL, nullptr},
                           {"_open_batch", fast(py_open_batch), METH_FASTCALL, nullptr},
                           {"_close_batch", py_close_batch, METH_NOARGS, nullptr},
                           {"_batch", fast(py_batch), METH_FASTCALL, nullptr},
                           {"_unbatch", fast(py_unbatch), METH_FASTCALL, nullptr},
                           {"_peel", py_peel, METH_O, nullptr},
                           {"_suspend_batch", py_suspend_batch, METH_O, nullptr},
                           {"_suspend_other_batches", py_suspend_other_batches, METH_O, nullptr},
                           {"_resume_batch", py_resume_batch, METH_NOARGS, nullptr},
                           {"_batch_at", fast(py_batch_at), METH_FASTCALL, nullptr},
                           {"_on_slow_path", py_on_slow_path, METH_O, nullptr},
                           {"_slow_path_taken", py_slow_path_taken, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_transforms(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::autograd::python
