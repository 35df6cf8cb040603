// Sparse tensors and their parts, for rushlight_core._sparse.
#include "rushlight/sparse.h"

#include "python/python.h"
#include "python/values.h"
#include "rushlight/batched.h"
#include "rushlight/ops/_with_sparse_values.h"

namespace rushlight::python {
namespace {

const Tensor& tensor_of(const char* function, PyObject* o) {
    RL_CHECK(is_tensor(o), throw_type, "%s: must be a Tensor, not %s", function, Py_TYPE(o)->tp_name);
    return unwrap(o);
}

std::vector<int64_t> sizes_of(PyObject* o) {
    Object list = Object::steal(PySequence_Tuple(o));
    std::vector<int64_t> sizes;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); ++i) {
        const long long n = PyLong_AsLongLong(PyTuple_GET_ITEM(list.get(), i));
        if (n == -1 && PyErr_Occurred()) throw PythonError();
        sizes.push_back(n);
    }
    return sizes;
}

Layout layout_of(const char* text) {
    for (Layout layout : {Layout::Coo, Layout::Csr, Layout::Csc, Layout::Bsr, Layout::Bsc})
        if (std::string_view(text) == name(layout)) return layout;
    throw_value("a sparse layout must be torch.sparse_coo, _csr, _csc, _bsr or _bsc, got %s", text);
}

// _sparse_make(op, layout, size, indices, plain, values, coalesced, check): `plain` is None for COO. `check` determines
// whether the values of the indices are checked.
PyObject* make(PyObject*, PyObject* args) {
    RL_PY_TRY
    const char *op, *layout;
    PyObject *size, *indices, *plain, *values;
    int is_coalesced, check;
    if (!PyArg_ParseTuple(args, "ssOOOOpp:_sparse_make", &op, &layout, &size, &indices, &plain, &values,
                          &is_coalesced, &check))
        return nullptr;
    const Tensor given = tensor_of(op, values);
    RL_CHECK(!is_batched(given), throw_not_implemented, "%s: sparse tensors cannot be made inside vmap", op);
    SparseParts parts{layout_of(layout), make_alias(tensor_of(op, indices)), Tensor(), make_alias(given),
                      is_coalesced != 0};
    RL_CHECK((plain == Py_None) == (parts.layout == Layout::Coo), throw_type,
             "%s: a compressed layout needs two tensors of indices, and COO needs exactly one", op);
    if (plain != Py_None) parts.plain = make_alias(tensor_of(op, plain));
    const std::vector<int64_t> sizes = sizes_of(size);
    check_sparse(op, sizes, parts, check);
    const Tensor pattern = make_sparse(sizes, std::move(parts));
    return wrap(given.impl()->stages() ? ops::_with_sparse_values(given, pattern) : pattern);
    RL_PY_CATCH
}

// _sparse_parts(t): returns (layout, indices, plain, values, coalesced), or None for a plain tensor. The values have no
// history.
PyObject* parts_of(PyObject*, PyObject* o) {
    RL_PY_TRY
    const Tensor& t = tensor_of("_sparse_parts", o);
    if (!is_sparse(t)) Py_RETURN_NONE;
    const SparseParts& parts = sparse_parts(t);
    auto alias = [](const Tensor& x) {
        return Object::steal(x.defined() ? wrap(make_alias(x)) : Py_NewRef(Py_None));
    };
    Object indices = alias(parts.indices), plain = alias(parts.plain), values = alias(parts.values);
    return Py_BuildValue("(sOOOO)", layout_name(t), indices.get(), plain.get(), values.get(),
                         parts.coalesced ? Py_True : Py_False);
    RL_PY_CATCH
}

// _sparse_set_coalesced(t, on): called by the code that made the indices.
PyObject* set_coalesced(PyObject*, PyObject* args) {
    RL_PY_TRY
    PyObject* o;
    int on;
    if (!PyArg_ParseTuple(args, "Op:_sparse_set_coalesced", &o, &on)) return nullptr;
    const Tensor& t = tensor_of("_coalesced_", o);
    RL_CHECK(is_sparse(t), throw_runtime, "_coalesced_: needs a sparse tensor");
    SparseParts parts = sparse_parts(t);
    parts.coalesced = on;
    check_sparse("_coalesced_", t.sizes(), parts, on);
    set_sparse_parts(t, std::move(parts));
    return Py_NewRef(o);
    RL_PY_CATCH
}

// _sparse_assign(op, t, other): gives `t` the parts and the shape of `other`, in place.
PyObject* assign(PyObject*, PyObject* args) {
    RL_PY_TRY
    const char* op;
    PyObject *o, *other;
    if (!PyArg_ParseTuple(args, "sOO:_sparse_assign", &op, &o, &other)) return nullptr;
    const Tensor &t = tensor_of(op, o), &from = tensor_of(op, other);
    RL_CHECK(is_sparse(t) && is_sparse(from), throw_runtime, "%s: needs sparse tensors", op);
    assign_sparse(op, t, from);
    Py_RETURN_NONE;
    RL_PY_CATCH
}

template <Tensor (*convert)(const Tensor&)>
PyObject* converted(PyObject*, PyObject* o) {
    RL_PY_TRY return wrap(convert(tensor_of("sparse conversion", o)));
    RL_PY_CATCH
}

PyObject* to_coo(PyObject*, PyObject* args) {
    RL_PY_TRY
    PyObject* o;
    long long sparse_dim;
    if (!PyArg_ParseTuple(args, "OL:_sparse_to_coo", &o, &sparse_dim)) return nullptr;
    return wrap(to_sparse_coo(tensor_of("to_sparse", o), sparse_dim));
    RL_PY_CATCH
}

PyObject* to_compressed(PyObject*, PyObject* args) {
    RL_PY_TRY
    PyObject* o;
    const char* layout;
    long long rows, columns;
    if (!PyArg_ParseTuple(args, "OsLL:_sparse_to_compressed", &o, &layout, &rows, &columns)) return nullptr;
    return wrap(to_sparse_compressed(tensor_of("to_sparse", o), layout_of(layout), rows, columns));
    RL_PY_CATCH
}

PyMethodDef functions[] = {
    {"_sparse_make", make, METH_VARARGS, "Return a sparse tensor made of the given parts."},
    {"_sparse_parts", parts_of, METH_O, "Return the parts of a sparse tensor, or None for another tensor."},
    {"_sparse_set_coalesced", set_coalesced, METH_VARARGS, "Record whether the indices are coalesced."},
    {"_sparse_assign", assign, METH_VARARGS,
     "_sparse_assign(op, t, other): replace the shape, indices and values of the sparse tensor t by those of other."},
    {"_sparse_coalesce", converted<coalesce>, METH_O, "Return a copy with sorted, unique indices."},
    {"_sparse_to_dense", converted<to_dense>, METH_O, "Return a dense tensor with the same values."},
    {"_sparse_to_compressed", to_compressed, METH_VARARGS,
     "_sparse_to_compressed(t, layout, block_rows, block_columns): return the matrix in a compressed layout."},
    {"_sparse_to_coo", to_coo, METH_VARARGS, "_sparse_to_coo(t, sparse_dim): return the tensor in COO."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_sparse(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace rushlight::python
