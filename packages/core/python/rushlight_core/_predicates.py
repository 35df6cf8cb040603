"""Predicates of tensors as functions: `is_floating_point(t)` for `t.is_floating_point()`."""

from __future__ import annotations

from ._C import Tensor, UntypedStorage, overridable


def _tensor(function: str, input: object) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"{function}(input): must be a Tensor, not {type(input).__name__}")
    return input


@overridable
def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype of the tensor is of floating point."""
    return _tensor("is_floating_point", input).is_floating_point()


@overridable
def is_complex(input: Tensor) -> bool:
    """Return whether the dtype of the tensor is complex."""
    return _tensor("is_complex", input).is_complex()


@overridable
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype of the tensor has negative numbers."""
    return _tensor("is_signed", input).is_signed()


@overridable
def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element of the tensor is not zero.

    Raises:
        RuntimeError: the tensor does not have one element.
    """
    return bool(_tensor("is_nonzero", input))


@overridable
def is_conj(input: Tensor) -> bool:
    """Return False: `conj` computes at once, so that no conjugation is ever pending."""
    _tensor("is_conj", input)
    return False


@overridable
def is_neg(input: Tensor) -> bool:
    """Return False: no negation is ever pending."""
    _tensor("is_neg", input)
    return False


@overridable
def is_inference(input: Tensor) -> bool:
    """Return whether the tensor was made in inference mode."""
    return _tensor("is_inference", input).is_inference()


@overridable
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape."""
    return _tensor("is_same_size", input).shape == _tensor("is_same_size", other).shape


def is_storage(obj: object) -> bool:
    """Return whether `obj` is the storage of a tensor."""
    return isinstance(obj, UntypedStorage)


@overridable
def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return _tensor("numel", input).numel()
