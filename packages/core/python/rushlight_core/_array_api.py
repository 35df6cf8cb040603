"""Names of the Python array API standard (2024.12) that PyTorch does not have, implemented by the corresponding operators.

They are functions of `rushlight` too. The package `array_api`, which `Tensor.__array_namespace__` returns, has the whole
standard, including the functions for which PyTorch uses the same name with another meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

from . import _C, linalg
from ._C import Tensor, overridable
from ._unique import unique
from .linalg import matrix_transpose as matrix_transpose

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def array_namespace(self: Tensor, *, api_version: str | None = None) -> ModuleType:
    """Return `rushlight.array_api`; this is `Tensor.__array_namespace__`.

    Raises:
        ValueError: `api_version` is not a version of the standard that is supported.
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(
            f"__array_namespace__(api_version): got {api_version!r}, needs one of {', '.join(_VERSIONS)}"
        )
    from . import array_api

    return array_api


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Return the tensor on another device: a copy, or the tensor itself (this is `Tensor.to_device`)."""
    if stream is not None:
        raise NotImplementedError("to_device(stream): only None is supported")
    return self.to(device)


@overridable
def astype(x: Tensor, dtype: _C.dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return a tensor converted to a dtype.

    Args:
        x: the tensor.
        dtype: the dtype.
        copy: whether to copy even if the tensor has the dtype already.
        device: the device of the result.

    Shape:
        - Input and output: (*).

    Example:
        >>> torch.array_api.astype(torch.tensor([1.7, -1.7]), torch.int64)
        tensor([ 1, -1])
    """
    return x.to(device=device, dtype=dtype, copy=copy) if device is not None else x.to(dtype, copy=copy)


@overridable
def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Return tensors expanded to one shape.

    Args:
        arrays: tensors whose shapes broadcast.

    Example:
        >>> x, y = torch.array_api.broadcast_arrays(torch.ones(2, 1), torch.zeros(3))
        >>> x.shape, y.shape
        (torch.Size([2, 3]), torch.Size([2, 3]))
    """
    return list(_C.broadcast_tensors(*arrays))


def isdtype(dtype: _C.dtype, kind: Any) -> bool:
    """Return whether a dtype is of a kind.

    Args:
        dtype: the dtype.
        kind: another dtype, "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" or
            "numeric", or a tuple of these, any of which may hold.

    Raises:
        ValueError: the kind is unknown.

    Example:
        >>> torch.array_api.isdtype(torch.uint8, "integral"), torch.array_api.isdtype(torch.float32, ("bool", "integral"))
        (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, _C.dtype):
        return dtype == kind
    name = str(dtype).rsplit(".", 1)[-1]
    kinds = {
        "bool": name == "bool",
        "signed integer": name.startswith("int"),
        "unsigned integer": name.startswith("uint"),
        "real floating": dtype.is_floating_point,
        "complex floating": dtype.is_complex,
    }
    kinds["integral"] = kinds["signed integer"] or kinds["unsigned integer"]
    kinds["numeric"] = name != "bool"
    if kind not in kinds:
        raise ValueError(f"isdtype(kind): got {kind!r}, needs a dtype or one of {', '.join(kinds)}")
    return kinds[kind]


@overridable
def bitwise_invert(x: Tensor, /) -> Tensor:
    """Return the bits of integers inverted, and bools negated.

    Args:
        x: integers or bools.

    Shape:
        - Input and output: (*).

    Example:
        >>> torch.array_api.bitwise_invert(torch.tensor([0, 5]))
        tensor([-1, -6])
    """
    return _C.bitwise_not(x)


@overridable
def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the elements at indices along a dimension.

    Args:
        x: the tensor.
        indices: int64 indices; their dimensions other than `axis` broadcast with those of `x`.
        axis: the dimension.

    Shape:
        - Output: the shape of `indices`, broadcast.

    Example:
        >>> torch.array_api.take_along_axis(torch.tensor([[10, 20, 30]]), torch.tensor([[2, 0]]))
        tensor([[30, 10]])
    """
    return _C.take_along_dim(x, indices, axis)


@overridable
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the sums of products of two tensors along a dimension; the first one is conjugated.

    Args:
        x1: the first tensor.
        x2: the second tensor, which broadcasts with it.
        axis: the dimension.

    Shape:
        - Inputs: (*, n). Output: (*).

    Example:
        >>> torch.array_api.vecdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        tensor(11.)
    """
    return linalg.vecdot(x1, x2, dim=axis)


@overridable
def expand_dims(x: Tensor, /, *, axis: int = 0) -> Tensor:
    """Return a tensor with one more dimension, of size 1.

    Args:
        x: the tensor.
        axis: the position of the new dimension.

    Example:
        >>> torch.array_api.expand_dims(torch.ones(3), axis=0).shape
        torch.Size([1, 3])
    """
    return x.unsqueeze(axis)


@overridable
def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """Return a tensor with its dimensions in another order.

    Args:
        x: the tensor.
        axes: the dimensions in their new order.

    Shape:
        - Output: the sizes of the input in the new order.

    Example:
        >>> torch.array_api.permute_dims(torch.ones(2, 3, 4), (2, 0, 1)).shape
        torch.Size([4, 2, 3])
    """
    return x.permute(axes)


@overridable
def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Return each element, or each slice along a dimension, several times.

    Args:
        x: the tensor.
        repeats: the number of repetitions, one number or one for each slice.
        axis: the dimension; None repeats the elements of the flattened tensor.

    Shape:
        - Output: the shape of the input with another size in dimension `axis`.

    Example:
        >>> torch.array_api.repeat(torch.tensor([1, 2]), 2)
        tensor([1, 1, 2, 2])
    """
    return _C.repeat_interleave(x, repeats, axis)


@overridable
def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices of a tensor along a dimension, as a tuple.

    Args:
        x: the tensor.
        axis: the dimension.

    Shape:
        - Outputs: the shape of the input without dimension `axis`.

    Example:
        >>> torch.array_api.unstack(torch.tensor([[1, 2], [3, 4]]))
        (tensor([1, 2]), tensor([3, 4]))
    """
    return tuple(x.unbind(axis))


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def _different(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the distinct elements in order, each element's position among them, and their counts."""
    if not x.dtype.is_complex:
        return unique(x, return_inverse=True, return_counts=True)
    # Complex numbers as rows of two, by the real parts first.
    rows = _C.view_as_real(x.reshape(-1))
    values, inverse, counts = unique(rows, dim=0, return_inverse=True, return_counts=True)
    return _C.view_as_complex(values.contiguous()), inverse.reshape(x.shape), counts


@overridable
def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the distinct elements in order, their first positions, the inverse and the counts, as a named tuple.

    The inverse has, for every element of `x`, the position of its distinct element.

    Args:
        x: the tensor.

    Shape:
        - Input and inverse: (*). Other outputs: (number of distinct elements).

    Example:
        >>> torch.array_api.unique_all(torch.tensor([3, 1, 3])).inverse_indices
        tensor([1, 0, 1])
    """
    values, inverse, counts = _different(x)
    places = _C.argsort(inverse.flatten(), stable=True)
    return UniqueAll(values, places[counts.cumsum(0) - counts], inverse, counts)


@overridable
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the distinct elements in order, and the number of occurrences of each, as a named tuple.

    Args:
        x: the tensor.

    Shape:
        - Input: (*). Outputs: (number of distinct elements).

    Example:
        >>> torch.array_api.unique_counts(torch.tensor([3, 1, 3])).counts
        tensor([1, 2])
    """
    values, _, counts = _different(x)
    return UniqueCounts(values, counts)


@overridable
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the distinct elements in order, and for every element the position of its distinct element, as a named tuple.

    Args:
        x: the tensor.

    Shape:
        - Input and inverse: (*). Distinct elements: (their number).

    Example:
        >>> torch.array_api.unique_inverse(torch.tensor([3, 1, 3])).inverse_indices
        tensor([1, 0, 1])
    """
    return UniqueInverse(*_different(x)[:2])


@overridable
def unique_values(x: Tensor, /) -> Tensor:
    """Return the distinct elements in order.

    Args:
        x: the tensor.

    Shape:
        - Input: (*). Output: (number of distinct elements).

    Example:
        >>> torch.array_api.unique_values(torch.tensor([3, 1, 3]))
        tensor([1, 3])
    """
    return _different(x)[0] if x.dtype.is_complex else unique(x)


def _cumulative(
    name: str, x: Tensor, axis: int | None, dtype: _C.dtype | None, include_initial: bool, first: int
) -> Tensor:
    if axis is None:
        if x.dim() > 1:
            raise ValueError(f"{name}(axis): must be given for a tensor of {x.dim()} dimensions")
        axis = 0
    function = _C.cumsum if first == 0 else _C.cumprod
    made = function(x.reshape(1) if x.dim() == 0 else x, axis, dtype=dtype)
    if not include_initial:
        return made
    shape = list(made.shape)
    shape[axis] = 1
    return _C.cat([_C.full(shape, first, dtype=made.dtype, device=made.device), made], axis)


@overridable
def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: _C.dtype | None = None, include_initial: bool = False
) -> Tensor:
    """Return the running sums along a dimension.

    Args:
        x: the tensor.
        axis: the dimension, which a tensor of one dimension need not name.
        dtype: dtype of the result.
        include_initial: begin with 0, so that there is one element more.

    Shape:
        - Input: (*). Output: (*), with one element more along `axis` if `include_initial`.

    Example:
        >>> torch.array_api.cumulative_sum(torch.tensor([1, 2, 3]), include_initial=True)
        tensor([0, 1, 3, 6])
    """
    return _cumulative("cumulative_sum", x, axis, dtype, include_initial, 0)


@overridable
def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: _C.dtype | None = None, include_initial: bool = False
) -> Tensor:
    """Return the running products along a dimension.

    Args:
        x: the tensor.
        axis: the dimension, which a tensor of one dimension need not name.
        dtype: dtype of the result.
        include_initial: begin with 1, so that there is one element more.

    Shape:
        - Input: (*). Output: (*), with one element more along `axis` if `include_initial`.

    Example:
        >>> torch.array_api.cumulative_prod(torch.tensor([1, 2, 3]))
        tensor([1, 2, 6])
    """
    return _cumulative("cumulative_prod", x, axis, dtype, include_initial, 1)


class _Information:
    """The standard's information about a namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Return which optional parts of the standard are supported, and the largest number of dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> _C.device:
        """Return the device on which tensors are made unless another is given."""
        return _C.device("cpu")

    def default_dtypes(self, *, device: Any = None) -> dict[str, _C.dtype]:
        """Return the dtypes of numbers that are given without one."""
        real = _C.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": _C.complex128 if real is _C.float64 else _C.complex64,
            "integral": _C.int64,
            "indexing": _C.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, _C.dtype]:
        """Return the standard's dtypes by name, all or those of a kind (see `isdtype`)."""
        names = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
        names += ["float32", "float64", "complex64", "complex128"]
        known = {name: getattr(_C, name) for name in names}
        return {name: t for name, t in known.items() if kind is None or isdtype(t, kind)}

    def devices(self) -> list[_C.device]:
        """Return the devices that can be used."""
        return [_C.device("cpu")]


def __array_namespace_info__() -> _Information:  # noqa: N807
    """Return an object with the standard's queries, such as `capabilities`, `default_device` and `dtypes`."""
    return _Information()
