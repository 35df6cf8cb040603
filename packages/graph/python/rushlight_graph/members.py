"""Restore the tensors and numbers of a module that were replaced during a capture."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import rushlight_core as core
from rushlight_core import Size, Tensor, device, dtype
from rushlight_graph import dynamic, trees
from rushlight_graph._C import share_memory

# Note [Members that a capture replaces]
# A program changes the tensors that existed before the capture, but it cannot replace them. So the value that the module
# assigns would exist only during the capture, and is removed afterwards.
# If a buffer is replaced by a tensor of the same dtype and shape, the program copies this tensor into the buffer at its end.
# A replaced parameter, or a buffer that would have a gradient, is an error. Another attribute may hold a tensor only for
# later inspection, such as attention weights. Replacing it is an error only if the program uses the earlier tensor, because
# each run would use the tensor of the capture.
#
# Numbers, strings and containers of them are restored, too. A program contains the numbers of the capture, so a module that
# counts its calls and computes with the count is an error. A module may also count for another purpose, or make a tensor in
# its first call that all later calls use. So if a call leaves other members, `_check_second_call` of `exported` compares
# what the module and the program compute in a second call.

Container = dict[Any, Any] | list[Any] | deque[Any]
_PLAIN = (type(None), bool, int, float, complex, str, bytes, Size, dtype, device, Tensor)


class Members:
    """The attributes of a module and its submodules before a capture, with the items of containers."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._registered = self._named()
        #: Containers with their paths and their earlier entries.
        self._containers: list[tuple[str, Container, dict[Any, Any]]] = []
        self._buffers = dict(module.named_buffers())
        self._carried: set[str] = set()
        self._replaced: list[tuple[str, Tensor]] = []
        #: The paths of the members that the last capture changed, and the entries of the containers after it.
        self.changed: list[str] = []
        self._left: list[tuple[Container, dict[Any, Any]]] = []
        for path, part in module.named_modules():
            self._collect(path, vars(part), set())

    def _named(self) -> dict[str, Tensor]:
        return {**dict(self._module.named_parameters()), **dict(self._module.named_buffers())}

    def _collect(self, path: str, container: Container, seen: set[int]) -> None:
        seen.add(id(container))
        entries = _entries(container)
        self._containers.append((path, container, entries))
        for key, value in entries.items():
            if type(value) in (dict, list, deque) and id(value) not in seen:
                self._collect(_join(path, key), value, seen)

    def carried(self, result: Any) -> Any:
        """At the end of a capture, copy tensors that were assigned in place of buffers into these buffers.

        Return `result`, the result of the module. If a tensor of the result shares memory with such a buffer,
        a copy of the tensor is returned in its place.
        """
        after = dict(self._module.named_buffers())
        pairs = {
            path: (old, after[path])
            for path, old in self._buffers.items()
            if path in after and after[path] is not old and _fits(old, after[path])
        }
        self._carried |= pairs.keys()
        if not pairs:
            return result
        olds = [old for old, _ in pairs.values()]
        found = trees.Flattening("export")
        found.structure(result, "the result")
        with core.no_grad():
            returned = {id(t): t.clone() if _shares(t, olds) else t for _, t in found.tensors}
            news = [new.clone() if _shares(new, olds) else new for _, new in pairs.values()]
            for old, new in zip(olds, news, strict=True):
                old.copy_(new)
        return dynamic.replaced(result, returned)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Return a context manager that, on exit, undoes all replacements, additions and removals of members."""
        try:
            yield
        finally:
            self._restore_registered()
            self.changed = []
            self._left = [(container, _entries(container)) for _, container, _ in self._containers]
            registered = {id(tensor) for tensor in self._named().values()}
            for path, container, before in self._containers:
                self._restore(path, container, before, registered)

    @contextmanager
    def as_left(self) -> Iterator[None]:
        """Return a context manager inside which the members have the values after the last capture again.

        `restored` replaced these values by the values before the capture.
        """
        before = [(container, _entries(container)) for container, _ in self._left]
        left = self._left
        try:
            for container, entries in left:
                _set_entries(container, entries)
            yield
        finally:
            for container, entries in before:
                _set_entries(container, entries)

    def _restore_registered(self) -> None:
        after = self._named()
        for path, tensor in self._registered.items():
            if after.get(path) is not tensor:
                if path not in self._carried:
                    self._replaced.append((path, tensor))
                owner, _, name = path.rpartition(".")
                setattr(_find(self._module, owner), name, tensor)

    def _restore(self, path: str, container: Container, before: dict[Any, Any], registered: set[int]) -> None:
        now = _entries(container)
        changed = False
        for key in {**before, **now}:
            if key == "_hooked":  # of a module: whether it has had hooks, as during the capture
                continue
            old, new = before.get(key), now.get(key)
            if (old is new and (key in before) == (key in now)) or id(new) in registered:
                continue
            if not (_holds_tensors(old) or _holds_tensors(new) or (_is_data(old) and _is_data(new))):
                continue
            changed = True
            if (key in before) != (key in now) or not _same(old, new):
                self.changed.append(_join(path, key))
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
                    "hint: change the tensor in place, for example with copy_(), and register it as a buffer; a buffer may "
                    "be replaced by a tensor of the same dtype and shape that does not require gradients"
                )


def _fits(old: Tensor, new: Any) -> bool:
    same = isinstance(new, Tensor) and new.shape == old.shape and new.dtype == old.dtype
    return same and new.device == old.device and not new.is_sparse and not new.requires_grad


def _shares(tensor: Tensor, others: Iterable[Tensor]) -> bool:
    return any(share_memory(tensor, other) for other in others)


def _is_data(value: Any) -> bool:
    if type(value) in (tuple, list, dict, deque):
        return all(map(_is_data, value.values() if type(value) is dict else value))
    return isinstance(value, _PLAIN)


def _same(old: Any, new: Any) -> bool:
    if _holds_tensors(old) or _holds_tensors(new):
        return old is new
    return type(old) is type(new) and repr(old) == repr(new)


def _entries(container: Container) -> dict[Any, Any]:
    return dict(container) if isinstance(container, dict) else dict(enumerate(container))


def _set_entries(container: Container, entries: dict[Any, Any]) -> None:
    if isinstance(container, list):
        container[:] = entries.values()
        return
    if isinstance(container, deque):
        container.clear()
        container.extend(entries.values())
        return
    for key in [key for key in container if key not in entries]:
        del container[key]
    container.update(entries)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif type(value) in (tuple, list, dict, deque):
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
