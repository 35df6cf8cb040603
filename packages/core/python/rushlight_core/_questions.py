"""What a tensor is, asked by functions: `is_floating_point(t)` as well as `t.is_floating_point()`."""

from __future__ import annotations

from ._C import Tensor, UntypedStorage, overridable


def _tensor(function: str, input: object) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"{function}(input): must be a Tensor, not {type(input).__name__}")
    return input


@overridable
def is_floating_point(input: Tensor) -> bool:
    """Whether the tensor's dtype is a floating-point one."""
    return _tensor("is_floating_point", input).is_floating_point()


@overridable
def is_complex(input: Tensor) -> bool:
    """Whether the tensor's dtype is a complex one."""
    return _tensor("is_complex", input).is_complex()


@overridable
def is_signed(input: Tensor) -> bool:
    """Whether the tensor's dtype has negative numbers."""
    return _tensor("is_signed", input).is_signed()


@overridable
def is_nonzero(input: Tensor) -> bool:
    """Whether the tensor's only element is not zero.

    Raises:
        RuntimeError: the tensor does not have one element.
    """
    return bool(_tensor("is_nonzero", input))


@overridable
def is_conj(input: Tensor) -> bool:
    """Whether a conjugation is pending: never, conj() computes at once."""
    _tensor("is_conj", input)
    return False


@overridable
def is_neg(input: Tensor) -> bool:
    """Whether a negation is pending: never."""
    _tensor("is_neg", input)
    return False


@overridable
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return _tensor("is_inference", input).is_inference()


@overridable
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    return _tensor("is_same_size", input).shape == _tensor("is_same_size", other).shape


def is_storage(obj: object) -> bool:
    """Whether `obj` is a tensor's storage."""
    return isinstance(obj, UntypedStorage)


@overridable
def numel(input: Tensor) -> int:
    """The number of elements."""
    return _tensor("numel", input).numel()
