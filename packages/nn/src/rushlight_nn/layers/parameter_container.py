"""Containers of parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping

from rushlight_core import Tensor

from .._typing import Any
from ..module import Module
from ..parameter import Parameter
from .container import _update


def _as_entry(value: Any) -> Any:
    """Return a tensor as a parameter, and any other value unchanged."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _describe(name: str, value: Any, by_dtype: bool) -> str:
    """Return the line of `repr` for a value.

    A tensor is shown with its dtype, such as torch.float32, if `by_dtype` is true; otherwise with its legacy
    type, such as torch.FloatTensor.
    """
    if not isinstance(value, Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    size = "x".join(map(str, value.shape))
    device = f" (GPU {value.device.index})" if value.is_cuda else ""
    kind = value.dtype if by_dtype else value.type()
    return f"  ({name}): {type(value).__name__} containing: [{kind} of size {size}{device}]"


class ParameterList(Module):
    """A list of registered parameters, which `Module` methods such as `parameters` and `to` find.

    A tensor becomes a parameter when it is added to the list. Other values are stored, but do not become parameters.

    Args:
        values: the initial values.

    Raises:
        TypeError: `values` is a tensor or cannot be iterated over.

    Example:
        >>> parameters = nn.ParameterList([torch.randn(10, 10) for _ in range(3)])
        >>> len(parameters), type(parameters[0]).__name__, len(list(parameters.parameters()))
        (3, 'Parameter', 3)
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name_at(self, index: Any) -> str:
        index = operator.index(index)
        if not -self._size <= index < self._size:
            raise IndexError(f"ParameterList: index {index} is out of range for {self._size} values")
        return str(index % self._size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(self._size))])
        return getattr(self, self._name_at(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name_at(index), _as_entry(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(self._size)])

    def append(self, value: Any) -> ParameterList:
        """Add `value` at the end."""
        setattr(self, str(self._size), _as_entry(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add `values` at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend(values): got {type(values).__name__}, needs an iterable")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join(_describe(str(i), value, True) for i, value in enumerate(self))


class ParameterDict(Module):
    """A dictionary of registered parameters, which `Module` methods such as `parameters` and `to` find.

    A tensor becomes a parameter when it is added to the dictionary. Other values are stored, but do not become parameters.

    Args:
        parameters: a mapping from names to values, or (name, value) pairs.

    Raises:
        TypeError: a key is not a string.
        KeyError: a key is the name of another attribute of the dictionary.

    Example:
        >>> parameters = nn.ParameterDict({"left": torch.randn(5, 10)})
        >>> parameters["right"] = torch.randn(5, 10)
        >>> list(parameters.keys()), type(parameters["right"]).__name__
        (['left', 'right'], 'Parameter')
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._names: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _check_key(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: got a key of type {type(key).__name__}, needs a str")
        return key

    def __getitem__(self, key: str) -> Any:
        if key not in self._names:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if self._check_key(key) not in self._names and hasattr(self, key):
            raise KeyError(
                f"ParameterDict: the key {key!r} is the name of another attribute of the ParameterDict"
            )
        setattr(self, key, _as_entry(value))
        self._names[key] = None

    def __delitem__(self, key: str) -> None:
        del self._names[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._names)

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def __or__(self, other: Any) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Return a new dictionary with the same parameters."""
        return type(self)(OrderedDict(self.items()))

    def keys(self) -> Any:
        """Return the names."""
        return self._names.keys()

    def values(self) -> Iterator[Any]:
        """Return the values."""
        return (self[name] for name in self._names)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Return the (name, value) pairs."""
        return ((name, self[name]) for name in self._names)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value for `key`, or `default` if there is no such key."""
        return getattr(self, key) if key in self._names else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value for `key`. If there is no such key, store and return `default`."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove `key` and return its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last (name, value) pair."""
        if not self._names:
            raise KeyError("ParameterDict.popitem: the dictionary is empty")
        key = next(reversed(self._names))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._names):
            del self[key]

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dictionary in which each of `keys` has the value `default`."""
        return type(self)(OrderedDict.fromkeys(keys, default))

    def update(self, parameters: Any) -> None:
        """Add the entries of a mapping, or (name, value) pairs.

        The entries of a plain mapping are added in sorted order, as in PyTorch, because checkpoints of
        optimizers depend on the order of parameters. The entries of an `OrderedDict` or a `ParameterDict`,
        and pairs, are added in their own order.
        """
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            parameters = sorted(parameters.items())
        _update(self, parameters)

    def extra_repr(self) -> str:
        return "\n".join(_describe(name, value, False) for name, value in self.items())
