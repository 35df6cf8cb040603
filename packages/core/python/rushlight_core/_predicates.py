"""Functions that return properties of tensors, such as `is_floating_point(t)`, which calls `t.is_floating_point()`."""

from __future__ import annotations

from ._C import Tensor, UntypedStorage, overridable


def _tensor(function: str, input: object) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"{function}(input): must be a Tensor, not {type(input).__name__}")
    return input


@overridable
def is_floating_point(input: Tensor) -> bool:
    """Return whether a tensor has a floating-point dtype.

    Args:
        input: a tensor of any shape.

    Example:
        >>> torch.is_floating_point(torch.ones(1)), torch.is_floating_point(torch.tensor([1]))
        (True, False)
    """
    return _tensor("is_floating_point", input).is_floating_point()


@overridable
def is_complex(input: Tensor) -> bool:
    """Return whether a tensor has a complex dtype.

    Args:
        input: a tensor of any shape.

    Example:
        >>> torch.is_complex(torch.tensor([1j])), torch.is_complex(torch.ones(1))
        (True, False)
    """
    return _tensor("is_complex", input).is_complex()


@overridable
def is_signed(input: Tensor) -> bool:
    """Return whether a tensor has a dtype that can represent negative numbers.

    Args:
        input: a tensor of any shape.

    Example:
        >>> torch.is_signed(torch.ones(1)), torch.is_signed(torch.ones(1, dtype=torch.uint8))
        (True, False)
    """
    return _tensor("is_signed", input).is_signed()


@overridable
def is_nonzero(input: Tensor) -> bool:
    """Return whether the single element of a tensor is nonzero.

    Args:
        input: a tensor with one element, of any shape.

    Raises:
        RuntimeError: the tensor does not have one element.

    Example:
        >>> torch.is_nonzero(torch.tensor([0.0])), torch.is_nonzero(torch.tensor(2))
        (False, True)
    """
    return bool(_tensor("is_nonzero", input))


@overridable
def is_conj(input: Tensor) -> bool:
    """Return False: `conj` computes its result immediately, so a conjugation is never pending.

    Args:
        input: a tensor of any shape.

    Example:
        >>> torch.is_conj(torch.tensor([1j]).conj())
        False
    """
    _tensor("is_conj", input)
    return False


@overridable
def is_neg(input: Tensor) -> bool:
    """Return False: negations are computed immediately, so a negation is never pending.

    Args:
        input: a tensor of any shape.

    Example:
        >>> torch.is_neg(torch.ones(1))
        False
    """
    _tensor("is_neg", input)
    return False


@overridable
def is_inference(input: Tensor) -> bool:
    """Return whether a tensor was created in inference mode.

    Args:
        input: a tensor of any shape.

    Example:
        >>> with torch.inference_mode():
        ...     x = torch.ones(1)
        >>> torch.is_inference(x)
        True
    """
    return _tensor("is_inference", input).is_inference()


@overridable
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape.

    Example:
        >>> torch.is_same_size(torch.ones(2, 3), torch.zeros(2, 3))
        True
    """
    return _tensor("is_same_size", input).shape == _tensor("is_same_size", other).shape


def is_storage(obj: object) -> bool:
    """Return whether `obj` is a storage: an UntypedStorage or a TypedStorage.

    Example:
        >>> torch.is_storage(torch.ones(1).untyped_storage()), torch.is_storage(torch.ones(1))
        (True, False)
    """
    from ._typed_storage import TypedStorage

    return isinstance(obj, (UntypedStorage, TypedStorage))


@overridable
def numel(input: Tensor) -> int:
    """Return the number of elements of a tensor of any shape.

    Example:
        >>> torch.numel(torch.ones(2, 3))
        6
    """
    return _tensor("numel", input).numel()
