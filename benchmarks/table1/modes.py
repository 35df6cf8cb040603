"""The libraries, each with the modes that its users would try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mode:
    """A library with the enabled switches of its module in `peers`, and "malloc" if malloc is tuned from outside."""

    library: str
    switches: str = "default"

    def __str__(self) -> str:
        return self.library if self.switches == "default" else f"{self.library} {self.switches}"


@dataclass(frozen=True)
class Group:
    """Modes that take turns. The first is rushlight with its defaults, with which the others are compared."""

    name: str
    modes: tuple[Mode, ...]


PEERS = ("torch", "tensorflow", "jax", "paddle", "mxnet", "tinygrad")

# The fastest of a library's ordinary modes come last. If the library has a compiler, these are also compiled.
_SWITCHES: dict[str, tuple[str, ...]] = {
    "torch": ("default", "fused"),
    "torch images": ("default", "fused", "channels_last+fused"),
}
_COMPILED = {"torch": "compile", "tensorflow": "xla"}


def groups(library: str, *, images: bool, compiled: bool = False, tuned: bool = False) -> list[Group]:
    """Return a peer's modes for one model. Groups are measured one after the other, since each mode keeps its memory.

    compiled: whether to include modes with a compiler, which take minutes to warm up. tuned: whether to include modes with
        malloc tuned from outside.
    """
    key = f"{library} images" if images else library
    switches = _SWITCHES.get(key, _SWITCHES.get(library, ("default",)))
    ours = (Mode("rushlight"), Mode("rushlight", "channels_last")) if images else (Mode("rushlight"),)
    found = [_group(library, ours if library == "torch" else ours[:1], switches)]
    if tuned:
        found.append(_group(f"{library} malloc", ours[:1], [_with(one, "malloc") for one in switches]))
    if compiled and library in _COMPILED:
        one = _with(switches[-1], _COMPILED[library])
        more = [_with(one, "malloc")] if tuned else []
        found.append(_group(f"{library} {_COMPILED[library]}", ours[:1], [one, *more]))
    return found


def _group(name: str, ours: tuple[Mode, ...], switches: Sequence[str]) -> Group:
    return Group(name, (*ours, *(Mode(name.split()[0], one) for one in switches)))


def _with(switches: str, one: str) -> str:
    return one if switches == "default" else f"{switches}+{one}"
