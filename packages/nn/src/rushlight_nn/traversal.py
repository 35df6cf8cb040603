"""Iteration over a tree of modules: children, parameters and buffers, with or without names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rushlight_core import Tensor

from ._typing import Any
from .parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .module import Module


def _own_parameters(module: Any) -> Iterable[tuple[str, Any]]:
    return module._parameters.items()


def _own_buffers(module: Any) -> Iterable[tuple[str, Any]]:
    return module._buffers.items()


class Traversal:
    """The methods of Module that iterate over the module and its descendants.

    By default, an object with several names is visited once, under its first name.
    """

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        # Libraries call this method with PyTorch's arguments.
        seen: set[int] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            start = f"{path}." if path else ""
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield start + name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters of the module and, if `recurse` is true, of its descendants."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield (dotted name, parameter) pairs."""
        return self._named_members(_own_parameters, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers of the module and, if `recurse` is true, of its descendants."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (dotted name, buffer) pairs."""
        return self._named_members(_own_buffers, prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Yield the children of this module."""
        for _, child in self.named_children():
            yield child

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) pairs for the children of this module."""
        seen: set[int] = set()
        for name, child in self._modules.items():  # type: ignore[attr-defined]
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all its descendants, parents first."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield (dotted name, module) pairs: first this module, named `prefix`, and then its descendants."""
        seen = set() if memo is None else memo
        if id(self) in seen:
            return
        if remove_duplicate:
            seen.add(id(self))
        yield prefix, self  # type: ignore[misc]
        start = f"{prefix}." if prefix else ""
        for name, child in self._modules.items():  # type: ignore[attr-defined]
            if child is not None:
                yield from child.named_modules(seen, start + name, remove_duplicate)

    def get_submodule(self, target: str) -> Module:
        """Return the module at the dotted path `target`; the empty path is the module itself.

        Raises:
            AttributeError: `target` does not exist or is not a module.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            child = getattr(module, name, None)
            if not isinstance(child, Traversal):
                raise AttributeError(
                    f"get_submodule({target!r}): {type(module).__name__} has no module {name!r}"
                )
            module = child
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the module at the dotted path `target`. If `strict` is true, a module must already exist at this path."""
        if not target:
            raise ValueError("set_submodule(target): got an empty path, needs the path of a descendant")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and name not in parent._modules:
            raise AttributeError(f"set_submodule({target!r}): {type(parent).__name__} has no module {name!r}")
        if not isinstance(module, Traversal):
            raise TypeError(f"set_submodule(module): got {type(module).__name__}, needs a Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at the dotted path `target`.

        Raises:
            AttributeError: `target` does not exist or is not a parameter.
        """
        return self._get_member("_parameters", "parameter", target)

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at the dotted path `target`.

        Raises:
            AttributeError: `target` does not exist or is not a buffer.
        """
        return self._get_member("_buffers", "buffer", target)

    def _get_member(self, table: str, kind: str, target: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        value = getattr(module, name, None) if name in getattr(module, table) else None
        if value is None:
            raise AttributeError(f"get_{kind}({target!r}): {type(module).__name__} has no {kind} {name!r}")
        return value
