"""Containers of modules."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from rushlight_core import Tensor

from .._typing import Any
from ..module import Module


class _Numbered(Module):
    """The base class of Sequential and ModuleList, which name their children "0", "1", and so on."""

    def _position(self, index: Any) -> int:
        """Return `index` as a nonnegative number. A negative index counts from the end."""
        index = operator.index(index)
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"{type(self).__name__}: index {index} is out of range for {size} modules")
        return index % size

    def _get_abs_string_index(self, idx: Any) -> str:
        # Subclasses of ModuleList call this method under PyTorch's name.
        return str(self._position(idx))

    def _name_at(self, index: Any) -> str:
        # Children of a Sequential may have other names.
        return list(self._modules)[self._position(index)]

    def _replace_all(self, modules: Iterable[Module]) -> None:
        self._modules.clear()
        for name, module in enumerate(modules):
            self.add_module(str(name), module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __contains__(self, module: object) -> bool:
        return any(child is module for child in self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [self._name_at(index)]:
            delattr(self, name)
        if names == [str(i) for i in range(len(names))]:
            self._replace_all(list(self._modules.values()))

    def append(self, module: Module) -> Any:
        """Add `module` at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add `modules` at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend(modules): got {type(modules).__name__}, needs an iterable"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Insert `module` before the module at `index`, or at the end if `index` is the length."""
        size = len(self)
        if not isinstance(module, Module):
            raise TypeError(
                f"{type(self).__name__}.insert(module): got {type(module).__name__}, needs a Module"
            )
        if not -size <= index <= size:
            raise IndexError(
                f"{type(self).__name__}.insert(index): {index} is out of range for {size} modules"
            )
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._replace_all(modules)
        return self

    def pop(self, index: int | slice = -1) -> Module:
        """Remove and return the module at `index`."""
        module = self[index]  # type: ignore[index]
        del self[index]
        return module


class Sequential(_Numbered):
    """A module that calls its children in order, and passes the output of each child to the next child.

    Args:
        args: modules, or one OrderedDict from names to modules.

    Shape:
        - Input: the input of the first module. Output: the output of the last module.

    Raises:
        ValueError: a Sequential is multiplied by an object that is not a positive int.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> model(torch.randn(3, 4)).shape
        torch.Size([3, 2])
        >>> model[0], len(model[1:])
        (Linear(in_features=4, out_features=8, bias=True), 2)
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for index, module in enumerate(args):
                self.add_module(str(index), module)

    def forward(self, input: Any) -> Tensor:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            return NotImplemented
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            return NotImplemented
        return self.extend(other)

    def __mul__(self, times: int) -> Sequential:
        if not isinstance(times, int) or times < 1:
            raise ValueError(f"Sequential * times: got {times!r}, needs a positive int")
        return Sequential(*list(self) * times)

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        if not isinstance(times, int) or times < 1:
            raise ValueError(f"Sequential * times: got {times!r}, needs a positive int")
        return self.extend(list(self) * (times - 1))


class ModuleList(_Numbered):
    """A list of modules that are registered as children.

    Methods such as `parameters` and `to` include modules in a ModuleList, but not modules in a plain list. A ModuleList
    has no `forward`.

    Args:
        modules: the modules.

    Example:
        >>> layers = nn.ModuleList([nn.Linear(10, 10) for _ in range(3)])
        >>> layers.append(nn.Linear(10, 2))
        ModuleList(
          (0-2): 3 x Linear(in_features=10, out_features=10, bias=True)
          (3): Linear(in_features=10, out_features=2, bias=True)
        )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[str(self._position(index))]

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return type(self)([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        return self.extend(other)

    def __repr__(self) -> str:
        # Consecutive children with the same text are printed in one line.
        names = list(self._modules)
        lines = []
        begin = 0
        for text, group in groupby(repr(child) for child in self._modules.values()):
            end = begin + len(list(group)) - 1
            alike = (
                f"({names[begin]}): "
                if begin == end
                else f"({names[begin]}-{names[end]}): {end - begin + 1} x "
            )
            lines.append((alike + text).replace("\n", "\n  "))
            begin = end + 1
        body = "".join(f"\n  {line}" for line in lines)
        return f"{self._get_name()}({body}\n)" if lines else f"{self._get_name()}()"


class ModuleDict(Module):
    """A dictionary of modules that are registered as children.

    Methods such as `parameters` and `to` include modules in a ModuleDict, but not modules in a plain dict. A ModuleDict
    has no `forward`.

    Args:
        modules: a mapping from names to modules, or an iterable of (name, module) pairs.

    Example:
        >>> choices = nn.ModuleDict({"conv": nn.Conv2d(10, 10, 3), "pool": nn.MaxPool2d(3)})
        >>> choices["pool"](torch.randn(1, 10, 6, 6)).shape
        torch.Size([1, 10, 2, 2])
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove and return the module called `key`."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Return the (name, module) pairs."""
        return self._modules.items()

    def values(self) -> Any:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the modules of a mapping from names to modules, or of an iterable of (name, module) pairs."""
        _update(self, modules)


def _update(target: Any, entries: Any) -> None:
    if isinstance(entries, (Mapping, ModuleDict)) or hasattr(entries, "keys"):
        entries = entries.items()
    elif not isinstance(entries, Iterable):
        raise TypeError(
            f"{type(target).__name__}.update: got {type(entries).__name__}, needs a mapping or pairs"
        )
    for position, entry in enumerate(entries):
        if not isinstance(entry, Iterable) or isinstance(entry, str):
            raise TypeError(
                f"{type(target).__name__}.update: entry {position} is {type(entry).__name__}, needs a pair of name and value"
            )
        if len(pair := tuple(entry)) != 2:
            raise ValueError(
                f"{type(target).__name__}.update: entry {position} has length {len(pair)}, needs a pair of name and value"
            )
        target[pair[0]] = pair[1]
