"""Functions that create sparse tensors, and the methods of sparse tensors."""

from __future__ import annotations

from typing import Any

from . import _C
from ._C import Tensor, overridable

# Note [Checks of sparse tensors]
# The indices of a sparse tensor are checked when it is made, unless `check_invariants=False` is passed or
# `sparse.check_sparse_tensor_invariants` is disabled. Kernels check bounds themselves. If a tensor was made without checks
# and its indices are invalid, operators therefore raise an error and never read or write other memory.
checks_are_on = True

_COO = "torch.sparse_coo"
_ROWS = ("torch.sparse_csr", "torch.sparse_bsr")  # layouts whose rows, or block rows, are compressed
_COLUMNS = ("torch.sparse_csc", "torch.sparse_bsc")
_BLOCKS = ("torch.sparse_bsr", "torch.sparse_bsc")
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
    layout: str,
    size: Any,
    indices: Tensor,
    plain: Tensor | None,
    values: Tensor,
    coalesced: bool,
    check_invariants: bool | None,
    requires_grad: bool,
    pin_memory: bool,
) -> Tensor:
    if pin_memory:
        raise NotImplementedError(f"{name}(pin_memory): sparse tensors cannot be in page-locked memory")
    check = checks_are_on if check_invariants is None else check_invariants
    result = _C._sparse_make(name, layout, tuple(size), indices, plain, values, coalesced, check)
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
    """Return a tensor in coordinate format, with `values[k]` at the coordinates `indices[:, k]` and zeros elsewhere.

    Args:
        indices: the int64 indices, a tensor or a nested list of shape (sparse_dim, nnz), where nnz is the
            number of values.
        values: the values, of shape (nnz, ...). The dimensions after the first are dense dimensions of the result. Gradients
            flow to `values`.
        size: the shape; by default the smallest shape that contains all indices.
        dtype, device: the dtype and the device of the result; by default the dtype and device of `values`.
        requires_grad: whether autograd records operations on the result.
        check_invariants: whether to check the indices. By default, they are checked unless
            `sparse.check_sparse_tensor_invariants` is disabled.
        is_coalesced: whether the indices are sorted and distinct; by default, True if there are fewer than two values.

    A call with only a size returns a tensor of zeros.

    Raises:
        RuntimeError: the shapes of indices, values and size are inconsistent, or an index is out of range.

    Example:
        >>> torch.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2)).to_dense()
        tensor([[0., 2.],
                [3., 0.]])
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
    values = _tensor(values, dtype, device)
    where = values.device if device is None else device
    if isinstance(indices, Tensor) and indices.dtype not in _INDEX_DTYPES:
        raise RuntimeError(f"{name}(indices): must be integers, got {indices.dtype}")
    indices = _tensor(indices, _C.int64, where)
    if size is None:
        if indices.dim() != 2:
            raise RuntimeError(f"{name}: indices must be sparse_dim x nnz, but got: {tuple(indices.shape)}")
        sparse_sizes = [int(n) + 1 for n in indices.amax(1)] if indices.shape[1] else [0] * indices.shape[0]
        size = sparse_sizes + list(values.shape[1:])
    if is_coalesced is None:
        is_coalesced = indices.dim() == 2 and indices.shape[1] < 2
    return _made(
        name,
        _COO,
        size,
        indices,
        None,
        values,
        is_coalesced,
        check_invariants,
        requires_grad,
        pin_memory,
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
    """Return a matrix in compressed row format.

    Row i has `values[k]` in column `col_indices[k]`, for k from `crow_indices[i]` up to, but not including,
    `crow_indices[i + 1]`.

    Args:
        crow_indices: int32 or int64 indices of shape (rows + 1).
        col_indices: indices of the same dtype, of shape (nnz), in ascending order within each row.
        values: the values, of shape (nnz). Gradients flow to `values`.
        size: (rows, columns). By default, the number of columns is the smallest that contains all indices.
        dtype, device: the dtype and the device of the result; by default the dtype and device of `values`.
        requires_grad: whether autograd records operations on the result.
        check_invariants: see :func:`sparse_coo_tensor`.

    Raises:
        RuntimeError: the shapes of the arguments are inconsistent, or an index is out of range.
        NotImplementedError: the arguments describe a batch of matrices, or `values` has more than one dimension.

    Example:
        >>> torch.sparse_csr_tensor([0, 1, 2], [1, 0], [2.0, 3.0], (2, 2)).to_dense()
        tensor([[0., 2.],
                [3., 0.]])
    """
    return _compressed(
        "sparse_csr_tensor", "torch.sparse_csr", crow_indices, col_indices, values, size,
        dtype, device, pin_memory, requires_grad, check_invariants,
    )  # fmt: skip


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Return a matrix in compressed column format.

    Column j has `values[k]` in row `row_indices[k]`, for k from `ccol_indices[j]` up to, but not including,
    `ccol_indices[j + 1]`.

    Args:
        ccol_indices: int32 or int64 indices of shape (columns + 1).
        row_indices: indices of the same dtype, of shape (nnz), in ascending order within each column.
        values: the values, of shape (nnz). Gradients flow to `values`.
        size: (rows, columns). By default, the number of rows is the smallest that contains all indices.
        dtype, device, requires_grad, check_invariants: see :func:`sparse_csr_tensor`.

    Raises:
        RuntimeError: the shapes of the arguments are inconsistent, or an index is out of range.
        NotImplementedError: the arguments describe a batch of matrices, or `values` has more than one dimension.

    Example::

        torch.sparse_csc_tensor([0, 1, 2], [1, 0], [1.0, 2.0])  # [[0, 2], [1, 0]]
    """
    return _compressed(
        "sparse_csc_tensor", "torch.sparse_csc", ccol_indices, row_indices, values, size,
        dtype, device, pin_memory, requires_grad, check_invariants,
    )  # fmt: skip


def sparse_bsr_tensor(
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
    """Return a matrix in block compressed row format.

    Block row i has the block `values[k]` in block column `col_indices[k]`, for k from `crow_indices[i]` up to, but not
    including, `crow_indices[i + 1]`.

    Args:
        crow_indices: int32 or int64 indices of shape (block rows + 1).
        col_indices: indices of the same dtype, of shape (nnz), in ascending order within each block row.
        values: the blocks, of shape (nnz, rows, columns). Gradients flow to `values`.
        size: (rows, columns) of the matrix. By default, the number of columns is the smallest that contains all blocks.
        dtype, device, requires_grad, check_invariants: see :func:`sparse_csr_tensor`.

    Raises:
        RuntimeError: the shapes of the arguments are inconsistent, or an index is out of range.
        NotImplementedError: the arguments describe a batch of matrices, or `values` has more than three dimensions.

    Example::

        torch.sparse_bsr_tensor([0, 1, 2], [1, 0], torch.ones(2, 2, 3))  # of size (4, 6)
    """
    return _compressed(
        "sparse_bsr_tensor", "torch.sparse_bsr", crow_indices, col_indices, values, size,
        dtype, device, pin_memory, requires_grad, check_invariants,
    )  # fmt: skip


def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Return a matrix in block compressed column format.

    Block column j has the block `values[k]` in block row `row_indices[k]`, for k from `ccol_indices[j]` up to, but not
    including, `ccol_indices[j + 1]`.

    Args:
        ccol_indices: int32 or int64 indices of shape (block columns + 1).
        row_indices: indices of the same dtype, of shape (nnz), in ascending order within each block column.
        values: the blocks, of shape (nnz, rows, columns). Gradients flow to `values`.
        size: (rows, columns) of the matrix. By default, the number of rows is the smallest that contains all blocks.
        dtype, device, requires_grad, check_invariants: see :func:`sparse_csr_tensor`.

    Raises:
        RuntimeError: the shapes of the arguments are inconsistent, or an index is out of range.
        NotImplementedError: the arguments describe a batch of matrices, or `values` has more than three dimensions.

    Example::

        torch.sparse_bsc_tensor([0, 1, 2], [1, 0], torch.ones(2, 2, 3))  # of size (4, 6)
    """
    return _compressed(
        "sparse_bsc_tensor", "torch.sparse_bsc", ccol_indices, row_indices, values, size,
        dtype, device, pin_memory, requires_grad, check_invariants,
    )  # fmt: skip


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Return a matrix in the compressed layout `layout`: `sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`.

    For the other arguments and their shapes, see the function for the layout, such as :func:`sparse_csr_tensor`.

    Raises:
        RuntimeError: `layout` is not a compressed layout, or the shapes of the arguments are inconsistent.

    Example:
        >>> x = torch.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0], layout=torch.sparse_csc)
        >>> x.to_dense()
        tensor([[1., 0.],
                [0., 2.]])
    """
    if str(layout) not in _ROWS + _COLUMNS:
        raise RuntimeError(f"sparse_compressed_tensor(layout): must be compressed, got {layout}")
    return _compressed(
        "sparse_compressed_tensor", str(layout), compressed_indices, plain_indices, values, size,
        dtype, device, pin_memory, requires_grad, check_invariants,
    )  # fmt: skip


def _compressed(
    name: str,
    layout: str,
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any,
    dtype: Any,
    device: Any,
    pin_memory: bool,
    requires_grad: bool,
    check_invariants: bool | None,
) -> Tensor:
    values = _tensor(values, dtype, device)
    where = values.device if device is None else device
    compressed = _tensor(compressed_indices, None, where)
    plain = _tensor(plain_indices, None if isinstance(plain_indices, Tensor) else compressed.dtype, where)
    if size is None:
        counts = (compressed.shape[-1] - 1, int(plain.max()) + 1 if plain.numel() else 0)
        block = tuple(values.shape[1:3]) if layout in _BLOCKS and values.dim() == 3 else (1, 1)
        size = [n * of for n, of in zip(counts if layout in _ROWS else counts[::-1], block, strict=True)]
    return _made(
        name, layout, size, compressed, plain, values, True, check_invariants, requires_grad, pin_memory
    )


# --- conversions of indices, under PyTorch's private names, which libraries for graph networks call ---


def _convert_indices_from_coo_to_csr(self: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Return the `crow_indices` of a matrix with `size` rows. `self` contains the sorted row indices of the values."""
    if self.dim() != 1:
        raise RuntimeError(
            f"_convert_indices_from_coo_to_csr(input): must be a vector, got shape {tuple(self.shape)}"
        )
    bounds = _C.arange(size + 1, dtype=self.dtype, device=self.device)
    return _C.searchsorted(self, bounds, out_int32=out_int32)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Return the row and column indices, of shape (2, nnz). If `transpose` is true, the column indices come first."""
    if crow_indices.dim() != 1 or col_indices.dim() != 1:
        raise NotImplementedError(
            "_convert_indices_from_csr_to_coo: batches of matrices are not supported, got shapes "
            f"{tuple(crow_indices.shape)} and {tuple(col_indices.shape)}"
        )
    rows = _C.arange(crow_indices.shape[0] - 1, dtype=col_indices.dtype, device=col_indices.device)
    row = rows.repeat_interleave(crow_indices.diff(), output_size=col_indices.shape[0])
    both = _C.stack([col_indices, row] if transpose else [row, col_indices])
    return both.to(_C.int32 if out_int32 else _C.int64)


# --- methods ---


_KINDS: dict[tuple[str, ...], str] = {
    (): "sparse tensor",
    (_COO,): "sparse coordinate tensor",
    _ROWS: "sparse row compressed tensor",
    _COLUMNS: "sparse column compressed tensor",
}


def _parts(self: Tensor, name: str, layouts: tuple[str, ...] = ()) -> Any:
    parts = _C._sparse_parts(self)
    if parts is None or (layouts and parts[0] not in layouts):
        got = "Strided" if parts is None else parts[0]
        raise RuntimeError(f"{name} expected {_KINDS[layouts]} layout but got {got}")
    return parts


def coalesce(self: Tensor) -> Tensor:
    """Return a tensor with sorted, distinct indices. Values with the same index are summed."""
    return _C._sparse_coalesce(self)


def is_coalesced(self: Tensor) -> bool:
    """Return whether the tensor is known to have sorted, distinct indices."""
    return _parts(self, "is_coalesced", (_COO,))[4]


def _coalesced_(self: Tensor, coalesced: bool) -> Tensor:
    """Mark the tensor as coalesced or not coalesced, in place."""
    return _C._sparse_set_coalesced(self, coalesced)


def _indices(self: Tensor) -> Tensor:
    """Return the indices, even if the tensor is not coalesced."""
    return _parts(self, "_indices", (_COO,))[1]


def _values(self: Tensor) -> Tensor:
    """Return the values, detached from the autograd graph, even if the tensor is not coalesced."""
    return _parts(self, "_values", (_COO,))[3]


def indices(self: Tensor) -> Tensor:
    """Return the indices (sparse_dim, nnz) of a coalesced tensor."""
    if not is_coalesced_for("indices", self):
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return _indices(self)


def is_coalesced_for(name: str, self: Tensor) -> bool:
    return _parts(self, name, (_COO,))[4]


def values(self: Tensor) -> Tensor:
    """Return the values (nnz, ...) of a coalesced or compressed tensor; gradients flow through this call."""
    if _parts(self, "values")[0] == _COO and not is_coalesced_for("values", self):
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return _C._sparse_values(self)


def crow_indices(self: Tensor) -> Tensor:
    """Return the index of the first value of each row (or block row), followed by the number of values."""
    return _parts(self, "crow_indices", _ROWS)[1]


def col_indices(self: Tensor) -> Tensor:
    """Return the column of each value, or the block column of each block, of shape (nnz)."""
    return _parts(self, "col_indices", _ROWS)[2]


def ccol_indices(self: Tensor) -> Tensor:
    """Return the index of the first value of each column (or block column), followed by the number of values."""
    return _parts(self, "ccol_indices", _COLUMNS)[1]


def row_indices(self: Tensor) -> Tensor:
    """Return the row of each value, or the block row of each block, of shape (nnz)."""
    return _parts(self, "row_indices", _COLUMNS)[2]


def _nnz(self: Tensor) -> int:
    """Return the number of stored values."""
    return int(_parts(self, "_nnz")[3].shape[0])


@overridable
def sparse_dim(self: Tensor) -> int:
    """Return the number of sparse dimensions; 0 for a dense tensor."""
    parts = _C._sparse_parts(self)
    return 0 if parts is None else 2 if parts[2] is not None else int(parts[1].shape[0])


def dense_dim(self: Tensor) -> int:
    """Return the number of dense dimensions; `dim()` for a dense tensor."""
    return self.dim() - sparse_dim(self)


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return a dense tensor with the same values. A dense tensor that has the dtype `dtype` is returned unchanged.

    Args:
        dtype: the dtype of the result; by default the dtype of the tensor.
        masked_grad: whether the gradient is sparse, with the same indices. Must be True or None, which means True.
    """
    if masked_grad is False and _C._sparse_parts(self) is not None:
        raise NotImplementedError("to_dense(masked_grad): must be True or None, got False")
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
    """Return the tensor in a sparse layout, in which only the nonzero elements are stored.

    Args:
        sparse_dim: for COO, the number of sparse dimensions; by default all dimensions.
        layout: `sparse_coo` (the default), one of the compressed layouts `sparse_csr`, `sparse_csc`, `sparse_bsr` and
            `sparse_bsc`, or `strided` for the dense tensor.
        blocksize: the numbers of rows and columns of a block; required for BSR and BSC.
        dense_dim: must be None; 0 is also allowed for the compressed layouts, whose matrices have no dense dimensions.

    Raises:
        RuntimeError: an argument is not allowed for the layout, or the matrix cannot be divided into blocks of this size.
    """
    if layout is not None and str(layout) == "torch.strided":
        for name, value in (("sparse_dim", sparse_dim), ("blocksize", blocksize), ("dense_dim", dense_dim)):
            if value is not None:
                raise RuntimeError(f"to_sparse({name}): must be None for layout torch.strided, got {value!r}")
        return self if str(self.layout) == "torch.strided" else _C._sparse_to_dense(self)
    if layout is not None and str(layout) != _COO:
        if str(layout) not in _ROWS + _COLUMNS:
            raise RuntimeError(f"to_sparse(layout): must be a sparse layout, got {layout}")
        if sparse_dim is not None:
            raise RuntimeError(f"to_sparse(sparse_dim): must be None for layout {layout}, got {sparse_dim!r}")
        return _to_compressed("to_sparse", self, str(layout), blocksize, dense_dim)
    if blocksize is not None:
        raise RuntimeError(
            f"to_sparse(blocksize): must be None for layout torch.sparse_coo, got {blocksize!r}"
        )
    if dense_dim is not None:
        raise RuntimeError(
            f"to_sparse(dense_dim): must be None for layout torch.sparse_coo, got {dense_dim!r}"
        )
    return _C._sparse_to_coo(self, _default_sparse_dim(self) if sparse_dim is None else sparse_dim)


def _default_sparse_dim(self: Tensor) -> int:
    return self.dim() if _C._sparse_parts(self) is None else sparse_dim(self)


def to_sparse_coo(self: Tensor) -> Tensor:
    """Return the tensor in coordinate format (COO)."""
    return to_sparse(self)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return the matrix in compressed row format (CSR)."""
    return _to_compressed("to_sparse_csr", self, "torch.sparse_csr", None, dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return the matrix in compressed column format (CSC)."""
    return _to_compressed("to_sparse_csc", self, "torch.sparse_csc", None, dense_dim)


def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """Return the matrix in block compressed row format (BSR), with its nonzero blocks of `blocksize` (rows, columns)."""
    return _to_compressed("to_sparse_bsr", self, "torch.sparse_bsr", blocksize, dense_dim)


def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """Return the matrix in block compressed column format (BSC), with its nonzero blocks of `blocksize` (rows, columns)."""
    return _to_compressed("to_sparse_bsc", self, "torch.sparse_bsc", blocksize, dense_dim)


def _to_compressed(name: str, self: Tensor, layout: str, blocksize: Any, dense_dim: int | None) -> Tensor:
    if dense_dim:
        raise NotImplementedError(
            f"{name}(dense_dim): must be None or 0, because matrices in compressed layouts have no dense dimensions, "
            f"got {dense_dim!r}"
        )
    if (blocksize is None) == (layout in _BLOCKS):
        what = "the numbers of rows and columns of a block" if blocksize is None else "None"
        raise RuntimeError(f"{name}(blocksize): must be {what} for layout {layout}, got {blocksize!r}")
    rows, columns = (1, 1) if blocksize is None else blocksize
    return _C._sparse_to_compressed(self, layout, rows, columns)


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """Return a sparse tensor with the elements of this tensor at the indices of the sparse tensor `mask`."""
    if _C._sparse_parts(mask) is None:
        raise RuntimeError(f"sparse_mask(mask): must be a sparse tensor, got layout {mask.layout}")
    return _C._with_sparse_values(_C._sparse_mask_values(self, mask), mask)


def smm(self: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two sparse matrices, as a sparse matrix.

    Args:
        self: the first matrix.
        mat2: the second matrix.

    Shape:
        - Inputs: (n, m) and (m, p). Output: (n, p).

    Example:
        >>> x = torch.eye(2).to_sparse()
        >>> x.smm(x).to_dense()
        tensor([[1., 0.],
                [0., 1.]])
    """
    product = _C.mm(self, mat2)
    return product if product.is_sparse else to_sparse(product)


def sspaddmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return `beta * self + alpha * (mat1 @ mat2)` as a sparse tensor.

    Shape:
        - Inputs: `self` (n, p), `mat1` (n, m) and `mat2` (m, p).
        - Output: (n, p), sparse.

    Raises:
        RuntimeError: `self` or `mat1` does not have the layout COO, or the shapes do not match.

    Example:
        >>> x = torch.eye(2).to_sparse()
        >>> x.sspaddmm(x, torch.ones(2, 2)).to_dense()
        tensor([[2., 1.],
                [1., 2.]])
    """
    if not (self.is_sparse and mat1.is_sparse):
        raise RuntimeError(
            f"sspaddmm(input, mat1): must have layout torch.sparse_coo, got {self.layout} and {mat1.layout}"
        )
    return self * beta + smm(mat1, mat2) * alpha


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Return whether two tensors of any layout have the same shape.

    Example:
        >>> torch.eye(2).is_same_size(torch.eye(2).to_sparse())
        True
    """
    return self.shape == other.shape


def sparse_resize_(self: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Change the shape of the tensor in place, without changing its indices and values.

    Args:
        size: the new shape.
        sparse_dim, dense_dim: the new numbers of sparse and dense dimensions.

    If the tensor has values, the numbers of dimensions and the sizes of the dense dimensions must not change, and no
    sparse dimension can become smaller.

    Raises:
        RuntimeError: the tensor has values, and `sparse_dim` or `dense_dim` changes or a sparse dimension
            becomes smaller; or `size` does not have `sparse_dim + dense_dim` dimensions, `sparse_dim` or
            `dense_dim` is negative, or the layout is not COO.
        NotImplementedError: the tensor has values, and the size of a dense dimension changes.

    Example:
        >>> x = torch.sparse_coo_tensor([[0]], [2.0], (1,))
        >>> x.sparse_resize_((3,), 1, 0).to_dense()
        tensor([2., 0., 0.])
    """
    name = "sparse_resize_"
    size, old = tuple(size), tuple(self.shape)
    _, indices, _, values, coalesced = _parts(self, name, (_COO,))
    _check_count(name, size, sparse_dim, dense_dim)
    if values.shape[0] == 0:
        return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)
    counts = (indices.shape[0], values.dim() - 1)
    if (sparse_dim, dense_dim) != counts:
        raise RuntimeError(
            f"{name}: the numbers of sparse and dense dimensions of a tensor with values must stay {counts}, "
            f"got {(sparse_dim, dense_dim)}"
        )
    if any(new < n for new, n in zip(size[:sparse_dim], old[:sparse_dim], strict=True)):
        raise RuntimeError(
            f"{name}(size): shrinking the size of sparse dimensions of a tensor with values is not supported, "
            f"got {size} for shape {old}"
        )
    if size[sparse_dim:] != old[sparse_dim:]:
        raise NotImplementedError(
            f"{name}(size): the dense dimensions of a tensor with values must keep their sizes, "
            f"got {size} for shape {old}"
        )
    _C._sparse_assign(name, self, _C._sparse_make(name, _COO, size, indices, None, values, coalesced, False))
    return self


def sparse_resize_and_clear_(self: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Change the shape of the tensor in place and remove all values.

    Args:
        size: the new shape.
        sparse_dim, dense_dim: the new numbers of sparse and dense dimensions.

    Raises:
        RuntimeError: `size` does not have `sparse_dim + dense_dim` dimensions, `sparse_dim` or `dense_dim` is
            negative, or the layout is not COO.

    Example:
        >>> x = torch.sparse_coo_tensor([[0]], [2.0], (1,))
        >>> x.sparse_resize_and_clear_((3, 2), 1, 1).values().shape
        torch.Size([0, 2])
    """
    name = "sparse_resize_and_clear_"
    size = tuple(size)
    _parts(self, name, (_COO,))
    _check_count(name, size, sparse_dim, dense_dim)
    indices = _C.zeros((sparse_dim, 0), dtype=_C.int64, device=self.device)
    values = _C.zeros((0, *size[sparse_dim:]), dtype=self.dtype, device=self.device)
    _C._sparse_assign(name, self, _C._sparse_make(name, _COO, size, indices, None, values, True, False))
    return self


def _check_count(name: str, size: tuple[int, ...], sparse_dim: int, dense_dim: int) -> None:
    """Raise RuntimeError if `sparse_dim` or `dense_dim` is negative, or if their sum is not the length of `size`."""
    if min(sparse_dim, dense_dim) < 0:
        raise RuntimeError(
            f"{name}(sparse_dim, dense_dim): must not be negative, got {sparse_dim} and {dense_dim}"
        )
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"{name}(size): must have sparse_dim + dense_dim = {sparse_dim + dense_dim} dimensions, got {size}"
        )
