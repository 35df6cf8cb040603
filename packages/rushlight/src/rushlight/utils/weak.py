"""Weak references that are compared by identity.

References to tensors must be compared by identity, because `==` of two tensors returns a tensor.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any
from weakref import ref as WeakRef

from rushlight_core import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that is equal to other references to the same object, and hashed by the object's identity.

    Args:
        key: the object.
        callback: a function that is called with the reference when the object is destroyed.

    Example:
        >>> from rushlight.utils.weak import WeakIdRef
        >>> x = torch.ones(2)
        >>> WeakIdRef(x) == WeakIdRef(x), WeakIdRef(x) == WeakIdRef(torch.ones(2))
        (True, False)
    """

    __slots__ = ("_identity",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        self._identity = id(key)  # `__new__` has stored the object and the callback

    def __hash__(self) -> int:
        return self._identity

    def __eq__(self, other: object) -> bool:
        # A dead reference is equal only to itself, because a new object may have the same identity.
        found = self() if isinstance(other, WeakIdRef) else None
        return self is other or (found is not None and found is other())  # type: ignore[operator]

    def __ne__(self, other: object) -> bool:
        return not self == other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary whose keys are compared by identity. An entry is removed when its key is destroyed.

    Args:
        dict: a mapping whose entries are copied, or None.
        ref_type: the class of the weak references to keys.

    Raises:
        KeyError: there is no entry for a key.

    Example:
        >>> from rushlight.utils.weak import WeakIdKeyDictionary
        >>> x, names = torch.ones(2), WeakIdKeyDictionary()
        >>> names[x] = "x"
        >>> names[x], torch.ones(2) in names, len(names)
        ('x', False, 1)
        >>> del x
        >>> len(names)
        0
    """

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: type[Any] = WeakIdRef) -> None:
        self.ref_type = ref_type
        self.data: Any = {}
        # A function and not a method, because entries would otherwise keep the dictionary alive.
        data = self.data

        def forget(reference: Any) -> None:
            data.pop(reference, None)

        self._forget = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.data[self.ref_type(key)]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        try:
            del self.data[self.ref_type(key)]
        except KeyError:
            raise KeyError(key) from None

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # the object does not support weak references
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} entries at {id(self):#x}>"

    def keyrefs(self) -> list[Any]:
        """Return a list of the weak references to the keys."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Return a new dictionary with the same entries."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __or__(self, other: Any) -> WeakIdKeyDictionary:
        if not isinstance(other, Mapping):
            return NotImplemented
        result = self.copy()
        result.update(other)
        return result

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor: calling it returns the tensor, or None after the tensor was destroyed.

    Args:
        tensor: the tensor.

    Shape:
        - Input: (*), of any shape.

    Raises:
        TypeError: `tensor` is not a tensor.

    Example:
        >>> x = torch.ones(2)
        >>> torch.utils.weak.TensorWeakRef(x)() is x
        True
    """

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"TensorWeakRef(tensor): needs a Tensor, got {type(tensor).__name__}")
        self.ref: Any = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        found: Tensor | None = self.ref()
        return found
