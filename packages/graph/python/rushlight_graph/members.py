"""Restore the tensors of a module that were replaced during a capture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight_core import Tensor

# Note [Members that a capture replaces]
# A program changes the tensors that existed before the capture, but it cannot replace them. So the value that the module
# assigns would exist only during the capture, and is removed afterwards.
# A replaced parameter or buffer is an error. Another attribute may hold a tensor only for later inspection, such as
# attention weights. Replacing it is an error only if the program uses the earlier tensor, because each run would use
# the tensor of the capture.

Container = dict[Any, Any] | list[Any]


class Members:
    """The tensors that a module and its submodules hold before a capture, in attributes and in their lists and dicts."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._registered = self._named()
        #: Containers with their paths and their earlier entries.
        self._containers: list[tuple[str, Container, dict[Any, Any]]] = []
        self._replaced: list[tuple[str, Tensor]] = []
        for path, part in module.named_modules():
            self._collect(path, vars(part), set())

    def _named(self) -> dict[str, Tensor]:
        return {**dict(self._module.named_parameters()), **dict(self._module.named_buffers())}

    def _collect(self, path: str, container: Container, seen: set[int]) -> None:
        seen.add(id(container))
        entries = _entries(container)
        self._containers.append((path, container, entries))
        for key, value in entries.items():
            if type(value) in (dict, list) and id(value) not in seen:
                self._collect(_join(path, key), value, seen)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Return a context manager. On exit, it undoes every replacement, addition and removal of a tensor."""
        try:
            yield
        finally:
            self._restore_registered()
            registered = {id(tensor) for tensor in self._named().values()}
            for path, container, before in self._containers:
                self._restore(path, container, before, registered)

    def _restore_registered(self) -> None:
        after = self._named()
        for path, tensor in self._registered.items():
            if after.get(path) is not tensor:
                self._replaced.append((path, tensor))
                owner, _, name = path.rpartition(".")
                setattr(_find(self._module, owner), name, tensor)

    def _restore(self, path: str, container: Container, before: dict[Any, Any], registered: set[int]) -> None:
        now = _entries(container)
        changed = False
        for key in {**before, **now}:
            old, new = before.get(key), now.get(key)
            if old is new or id(new) in registered or not (_holds_tensors(old) or _holds_tensors(new)):
                continue
            changed = True
            self._replaced += [(_join(path, key), tensor) for tensor in _tensors(old)]
            if key in before:
                now[key] = old
            else:
                del now[key]
        if changed:
            _set_entries(container, now)

    def check(self, used: Iterable[Tensor]) -> None:
        """Raise NotImplementedError if a parameter, a buffer, or a tensor that the program uses was replaced.

        Args:
            used: the tensors that the program uses.
        """
        addresses = set(map(_address, used)) - {None}
        for path, tensor in self._replaced:
            if path in self._registered or _address(tensor) in addresses:
                raise NotImplementedError(
                    f"export: the module assigns another tensor to '{path}', which cannot be captured\n"
                    "hint: change the tensor in place, for example with copy_(), and register it as a buffer"
                )


def _entries(container: Container) -> dict[Any, Any]:
    return dict(container) if isinstance(container, dict) else dict(enumerate(container))


def _set_entries(container: Container, entries: dict[Any, Any]) -> None:
    if isinstance(container, list):
        container[:] = entries.values()
        return
    for key in [key for key in container if key not in entries]:
        del container[key]
    container.update(entries)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif type(value) in (tuple, list, dict):
        for part in value.values() if type(value) is dict else value:
            yield from _tensors(part)


def _holds_tensors(value: Any) -> bool:
    return next(_tensors(value), None) is not None


def _address(tensor: Tensor) -> int | None:
    return None if tensor.is_sparse or not tensor.numel() else tensor.data_ptr()


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _find(module: Any, path: str) -> Any:
    for part in path.split(".") if path else ():
        module = getattr(module, part)
    return module
