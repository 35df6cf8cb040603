// Process groups, for rushlight_core.seams.collectives. Groups and work objects are capsules.
#include "rushlight/collective.h"

#include "python/arguments.h"

namespace rushlight::python {
namespace {

constexpr const char* kGroup = "rushlight.ProcessGroup";
constexpr const char* kWork = "rushlight.CollectiveWork";
constexpr const char* kKinds[] = {"all_reduce", "reduce",         "broadcast",  "gather", "all_gather",
                                  "scatter",    "reduce_scatter", "all_to_all", "barrier"};
constexpr const char* kOps[] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"};

template <class T>
T& from_capsule(PyObject* capsule, const char* kind) {
    auto* found = static_cast<T*>(PyCapsule_GetPointer(capsule, kind));
    if (!found) throw PythonError();
    return *found;
}
using Group = std::shared_ptr<ProcessGroup>;
using Work = std::shared_ptr<CollectiveWork>;

// Frees the object of a capsule. The destructor of a group may wait for the group's thread, which never holds the GIL
// for long.
template <class T>
PyObject* to_capsule(T value, const char* kind) {
    auto* held = new T(std::move(value));
    PyObject* capsule = PyCapsule_New(held, kind, [](PyObject* c) {
        auto* ended = static_cast<T*>(PyCapsule_GetPointer(c, PyCapsule_GetName(c)));
        if constexpr (std::is_same_v<T, Group>)
            if (!(*ended)->is_member()) return;  // a forked child keeps the memory until it ends
        WithoutGil nogil;
        delete ended;
    });
    if (!capsule) delete held;
    return capsule;
}

std::vector<Tensor> tensors(PyObject* list) {
    Object items = Object::steal(PySequence_Fast(list, "collectives need lists of tensors"));
    std::vector<Tensor> out;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
        RL_CHECK(is_tensor(item), throw_type, "collectives need tensors, got %s", Py_TYPE(item)->tp_name);
        out.push_back(unwrap(item));
    }
    return out;
}

template <size_t n>
int index_of(const char* text, const char* const (&names)[n]) {
    for (size_t i = 0; i < n; ++i)
        if (std::string_view(names[i]) == text) return static_cast<int>(i);
    throw_value("unknown collective or reduction '%s'", text);
}

// _group_bytes(size)
PyObject* group_bytes(PyObject*, PyObject* size) {
    const long n = PyLong_AsLong(size);
    if (n == -1 && PyErr_Occurred()) return nullptr;
    return PyLong_FromSize_t(ProcessGroup::file_bytes(static_cast<int>(n)));
}
// _new_group(fd, rank, size, timeout)
PyObject* new_group(PyObject*, PyObject* args) {
    int fd, rank, size;
    double timeout;
    if (!PyArg_ParseTuple(args, "iiid:_new_group", &fd, &rank, &size, &timeout)) return nullptr;
    RL_PY_TRY return to_capsule(std::make_shared<ProcessGroup>(fd, rank, size, timeout), kGroup);
    RL_PY_CATCH
}
// _collective(group, kind, op, root, inputs, outputs, label, where, async_op) -> work
PyObject* collective(PyObject*, PyObject* args) {
    PyObject *capsule, *inputs, *outputs;
    const char *kind, *op, *label, *where;
    int root, async;
    if (!PyArg_ParseTuple(args, "OssiOOssp:_collective", &capsule, &kind, &op, &root, &inputs, &outputs,
                          &label, &where, &async))
        return nullptr;
    RL_PY_TRY
    Group group = from_capsule<Group>(capsule, kGroup);
    Collective what;
    what.kind = static_cast<CollectiveKind>(index_of(kind, kKinds));
    what.op = static_cast<ReduceOp>(index_of(op, kOps));
    what.root = root;
    what.inputs = tensors(inputs);
    what.outputs = tensors(outputs);
    what.label = label;
    what.where = where;
    Work work;
    {
        WithoutGil nogil;
        work = group->submit(std::move(what), async);
    }
    return to_capsule(std::move(work), kWork);
    RL_PY_CATCH
}
// _message(group, sends, tensor, peer, tag, where) -> work
PyObject* message(PyObject*, PyObject* args) {
    PyObject *capsule, *tensor;
    const char* where;
    int sends, peer, tag;
    if (!PyArg_ParseTuple(args, "OpOiis:_message", &capsule, &sends, &tensor, &peer, &tag, &where))
        return nullptr;
    RL_PY_TRY
    Group group = from_capsule<Group>(capsule, kGroup);
    RL_CHECK(is_tensor(tensor), throw_type, "only a tensor can be sent or received, got %s",
             Py_TYPE(tensor)->tp_name);
    Tensor t = unwrap(tensor);
    Work work;
    {
        WithoutGil nogil;
        work = sends ? group->send(t, peer, tag, where) : group->receive(t, peer, tag, where);
    }
    return to_capsule(std::move(work), kWork);
    RL_PY_CATCH
}
// _work_source(work) -> rank
PyObject* work_source(PyObject*, PyObject* capsule) {
    RL_PY_TRY return PyLong_FromLong(from_capsule<Work>(capsule, kWork)->source());
    RL_PY_CATCH
}
// _wait_work(work, seconds) -> bool
PyObject* wait_work(PyObject*, PyObject* args) {
    PyObject* capsule;
    double seconds;
    if (!PyArg_ParseTuple(args, "Od:_wait_work", &capsule, &seconds)) return nullptr;
    RL_PY_TRY
    Work work = from_capsule<Work>(capsule, kWork);
    bool done;
    {
        WithoutGil nogil;
        done = work->wait(seconds);
    }
    return PyBool_FromLong(done);
    RL_PY_CATCH
}
PyObject* work_done(PyObject*, PyObject* capsule) {
    RL_PY_TRY return PyBool_FromLong(from_capsule<Work>(capsule, kWork)->done());
    RL_PY_CATCH
}
PyObject* work_failed(PyObject*, PyObject* capsule) {
    RL_PY_TRY return PyBool_FromLong(from_capsule<Work>(capsule, kWork)->error() != nullptr);
    RL_PY_CATCH
}
// _abort_group(group, why)
PyObject* abort_group(PyObject*, PyObject* args) {
    PyObject* capsule;
    const char* why;
    if (!PyArg_ParseTuple(args, "Os:_abort_group", &capsule, &why)) return nullptr;
    RL_PY_TRY from_capsule<Group>(capsule, kGroup)->abort(why);
    Py_RETURN_NONE;
    RL_PY_CATCH
}
PyObject* close_group(PyObject*, PyObject* capsule) {
    RL_PY_TRY
    Group group = from_capsule<Group>(capsule, kGroup);
    {
        WithoutGil nogil;
        group->close();
    }
    Py_RETURN_NONE;
    RL_PY_CATCH
}
// _set_group_timeout(group, seconds)
PyObject* set_timeout(PyObject*, PyObject* args) {
    PyObject* capsule;
    double seconds;
    if (!PyArg_ParseTuple(args, "Od:_set_group_timeout", &capsule, &seconds)) return nullptr;
    RL_PY_TRY from_capsule<Group>(capsule, kGroup)->set_timeout(seconds);
    Py_RETURN_NONE;
    RL_PY_CATCH
}

PyMethodDef functions[] = {{"_group_bytes", group_bytes, METH_O, nullptr},
                           {"_new_group", new_group, METH_VARARGS, nullptr},
                           {"_collective", collective, METH_VARARGS, nullptr},
                           {"_message", message, METH_VARARGS, nullptr},
                           {"_work_source", work_source, METH_O, nullptr},
                           {"_wait_work", wait_work, METH_VARARGS, nullptr},
                           {"_work_done", work_done, METH_O, nullptr},
                           {"_work_failed", work_failed, METH_O, nullptr},
                           {"_abort_group", abort_group, METH_VARARGS, nullptr},
                           {"_close_group", close_group, METH_O, nullptr},
                           {"_set_group_timeout", set_timeout, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_collective(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
