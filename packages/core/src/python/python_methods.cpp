// Methods of Tensor that are written in Python. Their modules are imported when they are first called.
#include "python/override.h"
#include "python/tables.h"

namespace rushlight::python {
namespace {

struct PythonMethod {
    const char* name;
    const char* module;
    const char* function;
    const char* doc;
    PyObject* loaded;
};
PythonMethod python_functions[] = {
    {"__repr__", "_printing", "tensor_repr", nullptr, nullptr},
    {"__format__", "_printing", "tensor_format", nullptr, nullptr},
    {"__reduce_ex__", "_pickling", "reduce_tensor", nullptr, nullptr},
    {"__deepcopy__", "_pickling", "deepcopy_tensor", nullptr, nullptr},
    {"__reversed__", "_tensor_methods", "reversed_tensor", nullptr, nullptr},
    {"share_memory_", "_shared_memory", "share_memory_",
     "share_memory_($self)\n--\n\nMove the data to shared memory, in place, and return the tensor. A tensor on a GPU is not changed.",
     nullptr},
    {"is_shared", "_shared_memory", "is_shared",
     "is_shared($self)\n--\n\nReturn whether the data is in shared memory.", nullptr},
    {"type", "_tensor_types", "type_of",
     "type($self, dtype=None, non_blocking=False)\n--\n\nReturn the name of the tensor's type, such as \"torch.FloatTensor\", or the tensor converted to `dtype`.",
     nullptr},
    {"pin_memory", "_tensor_methods", "pin_memory",
     "pin_memory($self, device=None)\n--\n\nReturn a copy in page-locked memory, or the tensor itself if its memory is page-locked.",
     nullptr},
    {"record_stream", "_tensor_methods", "record_stream",
     "record_stream($self, s)\n--\n\nPrevent the memory from being reused until the work queued so far on the stream `s`"
     " is done.",
     nullptr},
    {"apply_", "_tensor_methods", "apply_",
     "apply_($self, callable)\n--\n\nReplace each element x by `callable(x)`, in place.", nullptr},
    {"map_", "_tensor_methods", "map_",
     "map_($self, other, callable)\n--\n\nReplace each element x in place by `callable(x, y)`, where y is the element of `other`"
     " at the same position.",
     nullptr},
    {"dim_order", "_tensor_methods", "dim_order",
     "dim_order($self, *, ambiguity_check=False)\n--\n\nReturn the dimensions in the order in which they are stored in memory, outermost first.",
     nullptr},
    {"to_dense", "_sparse", "to_dense",
     "to_dense($self, dtype=None, *, masked_grad=None)\n--\n\nReturn a dense tensor with the same values, converted to"
     " `dtype` if `dtype` is given. A dense tensor of this dtype is returned unchanged.",
     nullptr},
    {"map2_", "_tensor_methods", "map2_",
     "map2_($self, x, y, callable)\n--\n\nReplace each element z in place by `callable(z, x, y)`, with"
     " the elements of `x` and `y` at the same position.",
     nullptr},
    {"new_tensor", "_tensor_methods", "new_tensor",
     "new_tensor($self, data, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\nReturn a new tensor with a copy of `data`, by default with the dtype and on the device of this tensor.",
     nullptr},
    {"backward", "_tensor_methods", "backward",
     "backward($self, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\nRaise RuntimeError,"
     " because the package rushlight-autograd is not imported.",
     nullptr},
    {"register_hook", "_tensor_methods", "register_hook",
     "register_hook($self, hook)\n--\n\nRaise RuntimeError, because the package rushlight-autograd is not imported.",
     nullptr},
    {"retain_grad", "_tensor_methods", "retain_grad",
     "retain_grad($self)\n--\n\nRaise RuntimeError, because the package rushlight-autograd is not imported.",
     nullptr},
    {"lu", "_lu", "lu",
     "lu($self, pivot=True, get_infos=False)\n--\n\nReturn the factors of A = P L U in one tensor, and the pivots: see `rushlight.lu`.",
     nullptr},
    {"coalesce", "_sparse", "coalesce",
     "coalesce($self)\n--\n\nReturn the tensor with sorted indices, each of which occurs once: values of equal indices are added. Raises RuntimeError if the layout is not torch.sparse_coo.",
     nullptr},
    {"is_coalesced", "_sparse", "is_coalesced",
     "is_coalesced($self)\n--\n\nReturn whether the indices are known to be sorted and distinct. Raises RuntimeError if the layout is not torch.sparse_coo.",
     nullptr},
    {"_coalesced_", "_sparse", "_coalesced_",
     "_coalesced_($self, coalesced)\n--\n\nRecord whether the indices are sorted and distinct, without a check, and return the tensor.",
     nullptr},
    {"indices", "_sparse", "indices",
     "indices($self)\n--\n\nReturn the indices, of shape (sparse_dim, nnz). Raises RuntimeError if the tensor is not coalesced.",
     nullptr},
    {"_indices", "_sparse", "_indices",
     "_indices($self)\n--\n\nReturn the indices, of shape (sparse_dim, nnz), even if the tensor is not coalesced.",
     nullptr},
    {"values", "_sparse", "values",
     "values($self)\n--\n\nReturn the values, of shape (nnz, ...). Raises RuntimeError if the layout is torch.sparse_coo and the tensor is not coalesced.",
     nullptr},
    {"_values", "_sparse", "_values",
     "_values($self)\n--\n\nReturn the values, of shape (nnz, ...), even if the tensor is not coalesced.",
     nullptr},
    {"crow_indices", "_sparse", "crow_indices",
     "crow_indices($self)\n--\n\nReturn for each row the index of its first value (or first block), followed by nnz. The shape is (rows + 1). Raises RuntimeError if the layout is not torch.sparse_csr or torch.sparse_bsr.",
     nullptr},
    {"col_indices", "_sparse", "col_indices",
     "col_indices($self)\n--\n\nReturn the column of each value or block, of shape (nnz). Raises RuntimeError if the layout is not torch.sparse_csr or torch.sparse_bsr.",
     nullptr},
    {"ccol_indices", "_sparse", "ccol_indices",
     "ccol_indices($self)\n--\n\nReturn for each column the index of its first value (or first block), followed by nnz. The shape is (columns + 1). Raises RuntimeError if the layout is not torch.sparse_csc or torch.sparse_bsc.",
     nullptr},
    {"row_indices", "_sparse", "row_indices",
     "row_indices($self)\n--\n\nReturn the row of each value or block, of shape (nnz). Raises RuntimeError if the layout is not torch.sparse_csc or torch.sparse_bsc.",
     nullptr},
    {"_nnz", "_sparse", "_nnz", "_nnz($self)\n--\n\nReturn the number of values that are stored.", nullptr},
    {"sparse_dim", "_sparse", "sparse_dim",
     "sparse_dim($self)\n--\n\nReturn the number of sparse dimensions, 0 for a dense tensor.", nullptr},
    {"dense_dim", "_sparse", "dense_dim",
     "dense_dim($self)\n--\n\nReturn the number of dense dimensions, which is `dim()` for a dense tensor.",
     nullptr},
    {"sparse_mask", "_sparse", "sparse_mask",
     "sparse_mask($self, mask)\n--\n\nReturn a sparse tensor with the indices of the sparse tensor `mask` and the elements of `self` at these indices.",
     nullptr},
    {"to_sparse", "_sparse", "to_sparse",
     "to_sparse($self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None)\n--\n\nReturn the tensor in a sparse layout, torch.sparse_coo by default, in which only the nonzero elements are stored.",
     nullptr},
    {"to_sparse_coo", "_sparse", "to_sparse_coo",
     "to_sparse_coo($self)\n--\n\nReturn the tensor in the layout torch.sparse_coo, in which only the nonzero elements are stored.",
     nullptr},
    {"to_sparse_csr", "_sparse", "to_sparse_csr",
     "to_sparse_csr($self, dense_dim=None)\n--\n\nReturn the matrix in the layout torch.sparse_csr, in which only the nonzero elements are stored.",
     nullptr},
    {"to_sparse_csc", "_sparse", "to_sparse_csc",
     "to_sparse_csc($self, dense_dim=None)\n--\n\nReturn the matrix in the layout torch.sparse_csc, in which only the nonzero elements are stored.",
     nullptr},
    {"to_sparse_bsr", "_sparse", "to_sparse_bsr",
     "to_sparse_bsr($self, blocksize, dense_dim=None)\n--\n\nReturn the matrix in the layout torch.sparse_bsr, in which only the nonzero blocks of size `blocksize` are stored. Raises RuntimeError if the matrix cannot be divided into such blocks.",
     nullptr},
    {"to_sparse_bsc", "_sparse", "to_sparse_bsc",
     "to_sparse_bsc($self, blocksize, dense_dim=None)\n--\n\nReturn the matrix in the layout torch.sparse_bsc, in which only the nonzero blocks of size `blocksize` are stored. Raises RuntimeError if the matrix cannot be divided into such blocks.",
     nullptr},
    {"smm", "_sparse", "smm",
     "smm($self, mat2)\n--\n\nReturn the product of this sparse matrix and `mat2`, as a sparse matrix.",
     nullptr},
    {"sspaddmm", "_sparse", "sspaddmm",
     "sspaddmm($self, mat1, mat2, *, beta=1, alpha=1)\n--\n\nReturn `beta * self + alpha * (mat1 @ mat2)` as a sparse tensor. See `sspaddmm`.",
     nullptr},
    {"is_same_size", "_sparse", "is_same_size",
     "is_same_size($self, other)\n--\n\nReturn whether `other` has the same shape, whatever its layout.",
     nullptr},
    {"sparse_resize_", "_sparse", "sparse_resize_",
     "sparse_resize_($self, size, sparse_dim, dense_dim)\n--\n\nChange the shape of a sparse tensor in place; the values keep their indices. Raises RuntimeError if the tensor has values and a sparse dimension becomes smaller.",
     nullptr},
    {"sparse_resize_and_clear_", "_sparse", "sparse_resize_and_clear_",
     "sparse_resize_and_clear_($self, size, sparse_dim, dense_dim)\n--\n\nChange the shape of a sparse tensor in place and remove all of its values.",
     nullptr},
    {"histogram", "_histogram", "histogram",
     "histogram($self, bins=100, *, range=None, weight=None, density=False, out=None)\n--\n\nCount the elements in each bin of a range, and return a named tuple (hist, bin_edges). See `histogram`.",
     nullptr},
    {"unique", "_unique", "unique",
     "unique($self, sorted=True, return_inverse=False, return_counts=False, dim=None)\n--\n\nReturn the distinct elements of the tensor, or its distinct slices along `dim`, in ascending order. See `unique`.",
     nullptr},
    {"unique_consecutive", "_unique", "unique_consecutive",
     "unique_consecutive($self, return_inverse=False, return_counts=False, dim=None)\n--\n\nReturn the elements, or the slices along `dim`, with runs of equal neighbours merged into one. See `unique_consecutive`.",
     nullptr},
    {"module_load", "_tensor_methods", "module_load",
     "module_load($self, other, assign=False)\n--\n\nReturn the tensor that replaces this tensor in a module when `other` is loaded: this tensor with the values of `other`, or `other` itself if `assign` is true.",
     nullptr},
    {"storage", "_tensor_methods", "storage",
     "storage($self)\n--\n\nReturn the tensor's memory as elements of the tensor's dtype; `untyped_storage()` returns the memory as bytes.",
     nullptr},
};
constexpr size_t kCount = sizeof(python_functions) / sizeof(PythonMethod);

PyObject* call(size_t index, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    PythonMethod& method = python_functions[index];
    RL_PY_TRY
    if (has_override(self)) [[unlikely]] {
        if (PyObject* answer = answer_by_class({method.name, nullptr}, self, args, nargs, kwnames))
            return answer;
    }
    if (!method.loaded) {
        Object name = Object::steal(PyUnicode_FromFormat("rushlight_core.%s", method.module));
        Object module = Object::steal(PyImport_Import(name.get()));
        method.loaded = Object::steal(PyObject_GetAttrString(module.get(), method.function)).release();
    }
    Py_ssize_t given = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    constexpr Py_ssize_t kMost = 8;
    PyObject* all[kMost + 1];
    RL_CHECK(given <= kMost, throw_type, "%s(): too many arguments: %zd were given", method.name, given);
    all[0] = self;
    for (Py_ssize_t i = 0; i < given; ++i) all[i + 1] = args[i];
    return PyObject_Vectorcall(method.loaded, all, static_cast<size_t>(nargs + 1), kwnames);
    RL_PY_CATCH
}

template <size_t index>
PyObject* entry(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    return call(index, self, args, nargs, kwnames);
}

template <size_t... I>
void fill(PyMethodDef* table, std::index_sequence<I...>) {
    ((table[I] = {python_functions[I].name,
                  reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(entry<I>)),
                  METH_FASTCALL | METH_KEYWORDS, python_functions[I].doc}),
     ...);
}

}  // namespace

PyObject* tensor_repr(PyObject* self) { return call(0, self, nullptr, 0, nullptr); }

PyMethodDef* python_methods() {
    static PyMethodDef table[kCount + 1];
    fill(table, std::make_index_sequence<kCount>{});
    return table + 1;  // the first, __repr__, is a slot
}

}  // namespace rushlight::python
