"""Functions of sparse tensors: `torch.sparse`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from . import _C, _sparse
from ._C import Tensor, overridable

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]


def _is_sparse(t: Any) -> bool:
    return isinstance(t, Tensor) and _C._sparse_parts(t) is not None


@overridable
def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """Return the product of two matrices, at least one of which is sparse. The result is sparse if both matrices are sparse.

    The gradient with respect to a sparse matrix is a sparse matrix with the same sparsity pattern.

    Args:
        mat1: the first matrix.
        mat2: the second matrix.
        reduce: how the products that contribute to an element of the result are combined: "sum" (the
            default), "mean", "amax" or "amin". Only the stored elements of `mat1` are multiplied. If a row of
            `mat1` stores no elements, the result is zero in this row. For "amax" and "amin", the gradient is
            distributed equally among the largest or smallest products.

    Shape:
        - Inputs: (n, m) and (m, p).
        - Output: (n, p).

    Raises:
        RuntimeError: the inner sizes differ.
        ValueError: `reduce` is not "sum", "mean", "amax" or "amin".
        NotImplementedError: `reduce` is passed, and `mat1` is not sparse or `mat2` is not dense.

    Example:
        >>> a = torch.tensor([[1.0, 1.0], [0.0, 0.0]]).to_sparse_csr()
        >>> b = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.sparse.mm(a, b)
        tensor([[4., 6.],
                [0., 0.]])
        >>> torch.sparse.mm(a, b, "mean")
        tensor([[2., 3.],
                [0., 0.]])
    """
    if reduce is None:
        return _C.mm(mat1, mat2)
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise ValueError(f'sparse.mm(reduce): must be "sum", "mean", "amax" or "amin", got {reduce!r}')
    if not _is_sparse(mat1) or _is_sparse(mat2):
        raise NotImplementedError(
            f"sparse.mm(reduce): needs a sparse mat1 and a dense mat2, got layouts {mat1.layout} and "
            f"{mat2.layout}"
        )
    product = _C.mm(mat1, mat2)  # checks the operands
    if reduce == "sum":
        return product
    once = mat1.to_sparse_coo().coalesce()
    row, column = once.indices()
    if reduce == "mean":
        count = _C.bincount(row, minlength=mat1.shape[0]).clamp(min=1)
        return product / count.to(product.dtype).unsqueeze(1)
    products = once.values().unsqueeze(1) * mat2.index_select(0, column)
    return _C.zeros_like(product).index_reduce(0, row, products, reduce, include_self=False)


@overridable
def spmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices; an alias of :func:`mm`.

    Shape:
        - Inputs: (n, m) and (m, p).
        - Output: (n, p).

    Raises:
        RuntimeError: the inner sizes differ.

    Example:
        >>> a = torch.eye(2).to_sparse()
        >>> b = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.sparse.spmm(a, b)
        tensor([[1., 2.],
                [3., 4.]])
    """
    return _C.mm(mat1, mat2)


@overridable
def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse matrix and `mat2`, as a sparse matrix.

    Shape:
        - Inputs: (n, m) and (m, p).
        - Output: (n, p).

    Raises:
        RuntimeError: the inner sizes differ.

    Example:
        >>> a = torch.eye(2).to_sparse()
        >>> b = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.smm(a, b).layout
        torch.sparse_coo
    """
    return _sparse.smm(input, mat2)


@overridable
def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices; an alias of :func:`mm`.

    Shape:
        - Inputs: (n, m) and (m, p).
        - Output: (n, p).

    Raises:
        RuntimeError: the inner sizes differ.

    Example:
        >>> a = torch.eye(2).to_sparse()
        >>> torch.dsmm(torch.ones(1, 2), a)
        tensor([[1., 1.]])
    """
    return _C.mm(input, mat2)


@overridable
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse and a dense matrix, as a sparse tensor that stores whole rows.

    The result stores only the rows in which `mat1` has a stored element.

    Shape:
        - Inputs: (n, m) and (m, p).
        - Output: (n, p), with one sparse and one dense dimension.

    Raises:
        RuntimeError: `mat1` does not have the layout COO, `mat2` is sparse, or the inner sizes differ.

    Example:
        >>> a = torch.sparse_coo_tensor([[2], [0]], [3.0], (4, 1))
        >>> torch.hspmm(a, torch.ones(1, 2))
        tensor(indices=tensor([[2]]),
               values=tensor([[3., 3.]]),
               size=(4, 2), nnz=1, layout=torch.sparse_coo)
    """
    if not mat1.is_sparse or _is_sparse(mat2):
        raise RuntimeError(
            f"hspmm: needs a matrix of layout torch.sparse_coo and a dense matrix, got layouts {mat1.layout} and "
            f"{mat2.layout}"
        )
    rows = mat1._indices()[0].unique()
    product = _C.mm(mat1.index_select(0, rows), mat2)
    return _sparse.sparse_coo_tensor(rows[None], product, (mat1.shape[0], mat2.shape[1]), is_coalesced=True)


@overridable
def hsmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse and a dense matrix; an alias of :func:`hspmm`.

    Shape:
        - Inputs: (n, m) and (m, p).
        - Output: (n, p), with one sparse and one dense dimension.

    Raises:
        RuntimeError: `mat1` does not have the layout COO, `mat2` is sparse, or the inner sizes differ.

    Example:
        >>> torch.hsmm(torch.eye(2).to_sparse(), torch.ones(2, 3)).sparse_dim()
        1
    """
    return hspmm(mat1, mat2)


@overridable
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return `beta * input + alpha * (mat1 @ mat2)` as a sparse tensor.

    Shape:
        - Inputs: `input` (n, p), `mat1` (n, m) and `mat2` (m, p).
        - Output: (n, p), sparse.

    Raises:
        RuntimeError: `input` or `mat1` does not have the layout COO, or the shapes do not match.

    Example:
        >>> a = torch.eye(2).to_sparse()
        >>> torch.sspaddmm(a, a, torch.ones(2, 2)).to_dense()
        tensor([[2., 1.],
                [1., 2.]])
    """
    return _sparse.sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


@overridable
def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return `beta * input + alpha * (mat1 @ mat2)`; an alias of :func:`sspaddmm`.

    Shape:
        - Inputs: `input` (n, p), `mat1` (n, m) and `mat2` (m, p).
        - Output: (n, p), sparse.

    Raises:
        RuntimeError: `input` or `mat1` does not have the layout COO, or the shapes do not match.

    Example:
        >>> a = torch.eye(2).to_sparse()
        >>> torch.saddmm(a, a, torch.ones(2, 2)).layout
        torch.sparse_coo
    """
    return _sparse.sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


@overridable
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors of any layout have the same shape.

    Example:
        >>> torch.is_same_size(torch.eye(2), torch.eye(2).to_sparse())
        True
    """
    return _sparse.is_same_size(input, other)


@overridable
def resize_as_sparse_(input: Tensor, template: Tensor) -> Tensor:
    """Resize `input` to the shape of the sparse tensor `template`, in place. See `Tensor.sparse_resize_`.

    Raises:
        RuntimeError: `input` or `template` is not sparse, or `input` has values at indices outside of the shape.

    Example:
        >>> x = torch.sparse_coo_tensor([[0]], [2.0], (1,))
        >>> torch.resize_as_sparse_(x, torch.zeros(2, layout=torch.sparse_coo)).to_dense()
        tensor([2., 0.])
    """
    if not _is_sparse(template):
        raise RuntimeError("resize_as_sparse_(template): must be sparse, got layout torch.strided")
    return _sparse.sparse_resize_(input, template.shape, template.sparse_dim(), template.dense_dim())


@overridable
def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """Return `beta * mat + alpha * (mat1 @ mat2)`, where `mat1` is sparse.

    Shape:
        - Inputs: `mat` broadcasts to (n, p), `mat1` (n, m) and `mat2` (m, p).
        - Output: (n, p).

    Raises:
        RuntimeError: the shapes of the matrices do not match.

    Example:
        >>> a = torch.eye(2).to_sparse()
        >>> b = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.sparse.addmm(torch.ones(2, 2), a, b, beta=10.0)
        tensor([[11., 12.],
                [13., 14.]])
    """
    return _C.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


@overridable
def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0
) -> Tensor:
    """Return `beta * input + alpha * (mat1 @ mat2)` at the positions of the sparse matrix `input`.

    Products at positions that `input` does not store are not computed.

    Shape:
        - Inputs: `input` (n, p), `mat1` (n, m) and `mat2` (m, p).
        - Output: (n, p), sparse.

    Raises:
        RuntimeError: `input` is not sparse, or does not have the shape of `mat1 @ mat2`.

    Example:
        >>> a = torch.eye(2).to_sparse()
        >>> b = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.sparse.sampled_addmm(a.to_sparse_csr(), b, b).values()
        tensor([ 8., 23.])
    """
    if not _is_sparse(input):
        raise RuntimeError("sampled_addmm(input): needs a sparse matrix, got layout torch.strided")
    if str(input.layout) in ("torch.sparse_bsr", "torch.sparse_bsc"):
        raise NotImplementedError(
            f"sampled_addmm(input): block layouts are not supported, got layout {input.layout}\nhint: use to_sparse_csr()"
        )
    if (
        mat1.dim() != 2
        or mat2.dim() != 2
        or input.shape != (mat1.shape[0], mat2.shape[1])
        or mat1.shape[1] != mat2.shape[0]
    ):
        raise RuntimeError(
            f"sampled_addmm: input must have the shape of mat1 @ mat2, got input {tuple(input.shape)}, "
            f"mat1 {tuple(mat1.shape)} and mat2 {tuple(mat2.shape)}"
        )
    row, column = input.to_sparse_coo()._indices()
    if mat1.dtype.is_floating_point:
        products = _C._sampled_products(row, column, mat1, mat2.t())
    else:
        products = (mat1.index_select(0, row) * mat2.t().index_select(0, column)).sum(-1)
    return _C._with_sparse_values(_C._sparse_values(input) * beta + products * alpha, input)


@overridable
def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """Return the sum of a sparse tensor over `dim`, or of all elements.

    The result is dense if all sparse dimensions are summed, and sparse otherwise. If `dim` is given, `dtype`
    defaults to the dtype of `input`, so sums of small integers may wrap around, as in PyTorch. If `dim` is
    None, `dtype` defaults to int64 for integers, as in `torch.sum`.

    Shape:
        - Input: (*).
        - Output: (*) without the dimensions in `dim`; () if `dim` is None.

    Raises:
        RuntimeError: `input` is not sparse.

    Example:
        >>> a = torch.tensor([[1.0, 0.0], [2.0, 3.0]]).to_sparse()
        >>> torch.sparse.sum(a)
        tensor(6.)
        >>> torch.sparse.sum(a, 0).to_dense()
        tensor([3., 3.])
    """
    if not _is_sparse(input):
        raise RuntimeError("sparse.sum(input): needs a sparse tensor, got layout torch.strided")
    if dim is None:
        return _C.sum(input, dtype=dtype)
    return _C.sum(input, dim, dtype=input.dtype if dtype is None else dtype)


@overridable
def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the softmax of the stored elements along `dim`.

    Elements that are not stored are treated as minus infinity.

    Shape:
        - Input and output: (*).

    Raises:
        RuntimeError: `input` is not sparse.
        IndexError: `dim` is out of range.

    Example:
        >>> a = torch.tensor([[1.0, 0.0], [1.0, 1.0]]).to_sparse()
        >>> torch.sparse.softmax(a, 1).to_dense()
        tensor([[1.0000, 0.0000],
                [0.5000, 0.5000]])
    """
    if not _is_sparse(input):
        raise RuntimeError("sparse.softmax(input): needs a sparse tensor, got layout torch.strided")
    return _C.softmax(input, dim, dtype=dtype)


@overridable
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the logarithm of :func:`softmax`; arguments and errors are the same.

    Shape:
        - Input and output: (*).

    Raises:
        RuntimeError: `input` is not sparse.
        IndexError: `dim` is out of range.

    Example:
        >>> a = torch.tensor([[1.0, 0.0], [1.0, 1.0]]).to_sparse()
        >>> torch.sparse.log_softmax(a, 1).values()
        tensor([ 0.0000, -0.6931, -0.6931])
    """
    if not _is_sparse(input):
        raise RuntimeError("sparse.log_softmax(input): needs a sparse tensor, got layout torch.strided")
    return _C.log_softmax(input, dim, dtype=dtype)


@overridable
def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """Return a sparse matrix with `diagonals[i]` on the diagonal `offsets[i]`: `diagonals[i][j]` is in column j.

    Args:
        diagonals: the diagonals, one in each row.
        offsets: the offsets of the diagonals, as distinct int64 values. 0 is the main diagonal, and positive
            offsets are diagonals above it.
        shape: the shape of the result, (rows, columns).
        layout: `sparse_coo`, the default, `sparse_csr` or `sparse_csc`.

    Shape:
        - Inputs: `diagonals` (n, length) or (length), `offsets` (n) or ().
        - Output: `shape`.

    Raises:
        RuntimeError: the numbers of offsets and diagonals differ, `offsets` is not int64, or an offset occurs twice.

    Example:
        >>> torch.sparse.spdiags(torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([0, -1]), (3, 3)).to_dense()
        tensor([[1, 0, 0],
                [4, 2, 0],
                [0, 5, 3]])
    """
    diagonals, offsets = _C.atleast_2d(diagonals), _C.atleast_1d(offsets)
    rows, columns = (int(n) for n in shape)
    if diagonals.dim() != 2 or offsets.dim() != 1 or diagonals.shape[0] != offsets.shape[0]:
        raise RuntimeError(
            f"spdiags(offsets): must have one offset for each row of diagonals, got shapes {tuple(offsets.shape)} and"
            f" {tuple(diagonals.shape)}"
        )
    if offsets.dtype != _C.int64:
        raise RuntimeError(f"spdiags(offsets): must be int64, got {offsets.dtype}")
    if len({*offsets.tolist()}) != offsets.numel():
        raise RuntimeError("spdiags(offsets): an offset occurs twice")
    column = _C.arange(diagonals.shape[1], device=diagonals.device).expand(diagonals.shape[0], -1)
    row = column - offsets.unsqueeze(1)
    inside = (row >= 0) & (row < rows) & (column < columns)
    where = _C.stack([row[inside], column[inside]])
    result = _sparse.sparse_coo_tensor(where, diagonals[inside], (rows, columns)).coalesce()
    return result if layout is None else result.to_sparse(layout=layout)


class check_sparse_tensor_invariants:  # noqa: N801
    """Function, context manager and decorator that turns checks of sparse tensors' indices on or off.

    `with check_sparse_tensor_invariants(False):` disables the checks inside of the block. By default, the
    indices are checked.

    Example:
        >>> torch.sparse.check_sparse_tensor_invariants.is_enabled()
        True
        >>> with torch.sparse.check_sparse_tensor_invariants(False):
        ...     torch.sparse.check_sparse_tensor_invariants.is_enabled()
        False
        >>> torch.sparse.check_sparse_tensor_invariants.is_enabled()
        True
    """

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """Return whether the indices of new sparse tensors are checked."""
        return _sparse.checks_are_on

    @staticmethod
    def enable() -> None:
        """Turn the checks on."""
        _sparse.checks_are_on = True

    @staticmethod
    def disable() -> None:
        """Turn the checks off."""
        _sparse.checks_are_on = False

    def __enter__(self) -> None:
        self._before.append(_sparse.checks_are_on)
        _sparse.checks_are_on = self._wanted

    def __exit__(self, *exception: object) -> None:
        _sparse.checks_are_on = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._wanted):
                return function(*args, **kwargs)

        return checked


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """Return a variant of `gradcheck` that checks functions of sparse tensors by varying only the stored values.

    Args:
        gradcheck: `autograd.gradcheck`, or another function with the same arguments.

    Returns:
        A function with the arguments of `gradcheck`; `masked` is ignored.

    Example:
        >>> a = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
        >>> b = torch.ones(2, 2, dtype=torch.float64)
        >>> check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
        >>> check(lambda a: torch.sparse.mm(a, b), [a])
        True
    """

    @wraps(gradcheck)
    def checked(function: Callable[..., Any], inputs: Any, **kwargs: Any) -> bool:
        kwargs.pop("masked", None)
        return gradcheck(*_of_values(function, inputs), **kwargs)

    return checked


def _of_values(function: Callable[..., Any], inputs: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return a variant of `function` and its arguments: dense tensors of values in place of sparse tensors.

    The variant calls `function` with sparse tensors that contain the given values, and returns the values of
    its results."""
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    plain = [
        _C._sparse_values(t).detach().requires_grad_(t.requires_grad) if _is_sparse(t) else t for t in given
    ]

    def of_values(*varied: Any) -> Any:
        arguments = [
            _C._with_sparse_values(v, t.detach()) if _is_sparse(t) else v
            for v, t in zip(varied, given, strict=True)
        ]
        result = function(*arguments)
        results = result if isinstance(result, (tuple, list)) else (result,)
        return tuple(_C._sparse_values(r) if _is_sparse(r) else r for r in results)

    return of_values, plain
