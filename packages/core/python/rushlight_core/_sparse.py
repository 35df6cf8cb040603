"""Sparse tensors: how they are made, and the methods that only they have."""

from __future__ import annotations

from typing import Any

from . import _C
from ._C import Tensor, overridable

# Note [Checks of sparse tensors]
# The indices of a sparse tensor are looked at when it is made, unless `check_invariants=False` is passed or
# `sparse.check_sparse_tensor_invariants` is disabled. Kernels check bounds by themselves, so that a tensor made without
# checks raises later and never reads or writes other memory.
checks_are_on = True

_INDEX_DTYPES = (_C.int64, _C.int32, _C.int16, _C.int8, _C.uint8)


def _tensor(data: Any, dtype: Any, device: Any) -> Tensor:
    if isinstance(data, Tensor):
        changed = (dtype is not None and data.dtype != dtype) or (
            device is not None and data.device != _C.device(device)
        )
        return data.to(device=device, dtype=dtype) if changed else data
    return _C.tensor(data, dtype=dtype, device=device)


def _made(
    name: str,
    size: Any,
    indices: Tensor,
    columns: Tensor | None,
    values: Tensor,
    coalesced: bool,
    check_invariants: bool | None,
    requires_grad: bool,
    pin_memory: bool,
) -> Tensor:
    if pin_memory:
        raise NotImplementedError(f"{name}(pin_memory): sparse tensors cannot lie in page-locked memory")
    check = checks_are_on if check_invariants is None else check_invariants
    result = _C._sparse_make(name, tuple(size), indices, columns, values, coalesced, check)
    return result.requires_grad_() if requires_grad else result


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """Return a tensor in coordinate format: `values[k]` at the coordinates `indices[:, k]`, zeros elsewhere.

    Args:
        indices: int64 numbers (sparse_dim, nnz); of a nested list the same.
        values: (nnz, ...), whose further dimensions are dense. Gradients flow to it.
        size: the shape; without it the smallest that holds all indices.
        dtype, device: of the values; by default those of `values`.
        requires_grad: record operators on the result.
        check_invariants: look at the indices. True unless `sparse.check_sparse_tensor_invariants` is disabled.
        is_coalesced: whether the indices are sorted and distinct, if that is known.

    A call with a size alone makes a tensor of zeros.

    Raises:
        RuntimeError: indices, values and size do not fit each other, or an index is out of range.
    """
    name = "sparse_coo_tensor"
    if values is None and indices is not None and size is None:
        indices, size = None, indices
    if values is None:
        if indices is not None or size is None:
            raise TypeError(f"{name}(): needs indices and values, or a size")
        size = tuple(size)
        indices = _C.zeros((len(size), 0), dtype=_C.int64, device=device)
        values = _C.zeros(0, dtype=dtype, device=device)
        is_coalesced = True
    values = _tensor(values, dtype, device)
    where = values.device if device is None else device
    if isinstance(indices, Tensor) and indices.dtype not in _INDEX_DTYPES:
        raise RuntimeError(f"{name}(indices): must be integers, got {indices.dtype}")
    indices = _tensor(indices, _C.int64, where)
    if size is None:
        if indices.dim() != 2:
            raise RuntimeError(f"{name}: indices must be sparse_dim x nnz, but got: {tuple(indices.shape)}")
        if indices.shape[1] == 0:
            raise RuntimeError(f"{name}(size): without values the size must be given")
        size = [int(n) + 1 for n in indices.amax(1)] + list(values.shape[1:])
    return _made(
        name, size, indices, None, values, bool(is_coalesced), check_invariants, requires_grad, pin_memory
    )


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A matrix in compressed row format: row i has `values[k]` in column `col_indices[k]` for k from `crow_indices[i]` to
    `crow_indices[i + 1]`.

    Args:
        crow_indices: int32 or int64 numbers (rows + 1).
        col_indices: numbers of the same dtype (nnz), which rise within a row.
        values: (nnz). Gradients flow to it.
        size: (rows, columns); without it as few columns as hold all indices.
        dtype, device: of the values; by default those of `values`.
        requires_grad: record operators on the result.
        check_invariants: as of :func:`sparse_coo_tensor`.

    Raises:
        RuntimeError: the arguments do not fit each other, or an index is out of range.
        NotImplementedError: batches of matrices, and values with further dimensions.
    """
    name = "sparse_csr_tensor"
    values = _tensor(values, dtype, device)
    where = values.device if device is None else device
    crow = _tensor(crow_indices, None, where)
    columns = _tensor(col_indices, None if isinstance(col_indices, Tensor) else crow.dtype, where)
    if size is None:
        size = (crow.shape[-1] - 1, int(columns.max()) + 1 if columns.numel() else 0)
    return _made(name, size, crow, columns, values, True, check_invariants, requires_grad, pin_memory)


# --- methods ---


def _parts(self: Tensor, name: str, layout: str) -> Any:
    parts = _C._sparse_parts(self)
    if parts is None or (layout != "" and parts[0] != layout):
        kind = {
            "torch.sparse_coo": "sparse coordinate tensor",
            "torch.sparse_csr": "sparse row compressed tensor",
        }
        got = "Strided" if parts is None else parts[0]
        raise RuntimeError(f"{name} expected {kind.get(layout, 'sparse tensor')} layout but got {got}")
    return parts


def coalesce(self: Tensor) -> Tensor:
    """The same tensor with sorted indices, each once: values at one place are added."""
    return _C._sparse_coalesce(self)


def is_coalesced(self: Tensor) -> bool:
    """Return whether the indices are sorted and distinct, and that is known."""
    return _parts(self, "is_coalesced", "torch.sparse_coo")[4]


def _coalesced_(self: Tensor, coalesced: bool) -> Tensor:
    """Says whether the indices are coalesced, in place."""
    return _C._sparse_set_coalesced(self, coalesced)


def _indices(self: Tensor) -> Tensor:
    """The indices, also of a tensor that is not coalesced."""
    return _parts(self, "_indices", "torch.sparse_coo")[1]


def _values(self: Tensor) -> Tensor:
    """The values without their history, also of a tensor that is not coalesced."""
    return _parts(self, "_values", "torch.sparse_coo")[3]


def indices(self: Tensor) -> Tensor:
    """Return the indices (sparse_dim, nnz) of a coalesced tensor."""
    if not is_coalesced_for("indices", self):
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return _indices(self)


def is_coalesced_for(name: str, self: Tensor) -> bool:
    return _parts(self, name, "torch.sparse_coo")[4]


def values(self: Tensor) -> Tensor:
    """Return the values (nnz, ...) of a coalesced tensor, or of one in CSR; gradients flow through."""
    if _parts(self, "values", "")[0] == "torch.sparse_coo" and not is_coalesced_for("values", self):
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return _C._sparse_values(self)


def crow_indices(self: Tensor) -> Tensor:
    """Where each row begins among the values, (rows + 1)."""
    return _parts(self, "crow_indices", "torch.sparse_csr")[1]


def col_indices(self: Tensor) -> Tensor:
    """Return the column of each value, (nnz)."""
    return _parts(self, "col_indices", "torch.sparse_csr")[2]


def _nnz(self: Tensor) -> int:
    """Return how many values are stored."""
    return int(_parts(self, "_nnz", "")[3].shape[0])


@overridable
def sparse_dim(self: Tensor) -> int:
    """Return how many dimensions the indices name; 0 for a plain tensor."""
    parts = _C._sparse_parts(self)
    return 0 if parts is None else 2 if parts[2] is not None else int(parts[1].shape[0])


def dense_dim(self: Tensor) -> int:
    """Return how many dimensions the values have besides the first; all of a plain tensor."""
    return self.dim() - sparse_dim(self)


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return a plain tensor of the same values; of a plain tensor the tensor itself.

    Args:
        dtype: the dtype of the result.
        masked_grad: the gradient is sparse, with the same places: True, and None, which means True.
    """
    if masked_grad is False and (self.is_sparse or self.is_sparse_csr):
        raise NotImplementedError("to_dense(masked_grad): gradients of sparse tensors are always masked")
    dense = _C._sparse_to_dense(self)
    return dense if dtype is None else dense.to(dtype)


def to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Tensor:
    """Return the tensor in a sparse layout, with the elements that are not zero.

    Args:
        sparse_dim: of COO, how many dimensions the indices name; all by default.
        layout: `sparse_coo`, the default, or `sparse_csr`.
        blocksize, dense_dim: of other layouts, which are not supported.
    """
    from ._info import sparse_coo, sparse_csr

    if blocksize is not None or layout not in (None, sparse_coo, sparse_csr):
        raise NotImplementedError("to_sparse(layout): must be torch.sparse_coo or torch.sparse_csr")
    if layout is sparse_csr:
        if sparse_dim is not None:
            raise RuntimeError("to_sparse(sparse_dim): has no meaning for torch.sparse_csr")
        return to_sparse_csr(self, dense_dim)
    if dense_dim is not None:
        raise RuntimeError("to_sparse(dense_dim): has no meaning for torch.sparse_coo")
    return _C._sparse_to_coo(self, _default_sparse_dim(self) if sparse_dim is None else sparse_dim)


def _default_sparse_dim(self: Tensor) -> int:
    return sparse_dim(self) or self.dim()


def to_sparse_coo(self: Tensor) -> Tensor:
    """Return the tensor in COO."""
    return to_sparse(self)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return the matrix in CSR."""
    if dense_dim:
        raise NotImplementedError("to_sparse_csr(dense_dim): matrices in CSR have no dense dimensions")
    return _C._sparse_to_csr(self)


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """Return the elements at the indices of the sparse tensor `mask` of the same shape, as a sparse tensor."""
    if _C._sparse_parts(mask) is None:
        raise RuntimeError("sparse_mask(): `mask` must be a sparse tensor")
    return _C._with_sparse_values(_C._sparse_mask_values(self, mask), mask)


def smm(self: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of this sparse matrix and `mat2`, as a sparse matrix."""
    product = _C.mm(self, mat2)
    return product if product.is_sparse else to_sparse(product)
