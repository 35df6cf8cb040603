"""The documented names of a module, and of the class Tensor."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from compare_names.signatures import Stubs, refusal, signatures_of, signatures_of_docstring, without_self

# Modules of PyTorch that rushlight is intended to have. "Tensor" is a class.
MODULES = (
    "", "Tensor", "linalg", "fft", "special", "random", "autograd", "autograd.functional", "autograd.forward_ad", "func",
    "autograd.graph", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.parametrizations",
    "nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn", "optim", "optim.lr_scheduler",
    "optim.swa_utils", "masked", "signal.windows", "sparse", "distributions", "utils.data", "utils.checkpoint",
    "utils.dlpack",
)  # fmt: skip


@dataclass
class Entry:
    """One name of a module with its signatures; there are none if it cannot be called or no signature is known."""

    name: str
    signatures: list[inspect.Signature] = field(default_factory=list)
    callable: bool = True
    aliases: dict[str, str] = field(default_factory=dict)  # other names of arguments
    refuses: Callable[[list[str], list[str]], bool] = lambda positions, names: (
        False
    )  # whether it refuses a call


def members(
    library: Any,
    path: str,
    stubs: Stubs,
    aliases: dict[str, dict[str, str]],
    names: Iterable[str] | None = None,
) -> dict[str, Entry]:
    """Return the documented names of a module, or of the class Tensor; with `names`, the names among these that exist."""
    owner = library if not path else module_of(library, path)
    if owner is None:
        return {}
    of_tensor = path == "Tensor"
    table = stubs.methods if of_tensor else stubs.functions
    found = {}
    for name in sorted(_public(owner, path, library.__name__) if names is None else names):
        value = getattr(owner, name, None)
        if not hasattr(owner, name) if names is not None else not _has_documentation(owner, name, value):
            continue
        value = inspect.unwrap(value) if inspect.isroutine(value) else value
        entry = Entry(name, callable=callable(value))
        if entry.callable:
            entry.signatures = signatures_of(value, name, table, owner if of_tensor else None)
            if inspect.isbuiltin(value) or inspect.ismethoddescriptor(value):
                entry.refuses = refusal(value, owner if of_tensor else None)
                entry.aliases = aliases.get(value.__name__, {})
            if of_tensor and not isinstance(inspect.getattr_static(owner, name), (staticmethod, classmethod)):
                entry.signatures = [without_self(s) for s in entry.signatures]
        found[name] = entry
    return found


def _public(owner: Any, path: str, library: str) -> Iterable[str]:
    names = getattr(owner, "__all__", None) if isinstance(owner, ModuleType) else None
    if names is None:
        names = dir(owner)
    for name in names:
        value = getattr(owner, name, None)
        if name.startswith("_") or inspect.ismodule(value):
            continue
        where = getattr(value, "__module__", None) or ""
        if path == "" and inspect.isclass(value) and where.startswith("torch._C"):
            continue  # the compiler's and the interpreter's own types
        if isinstance(owner, ModuleType) and "__all__" not in vars(owner):
            # Skip names that the module has imported for its own use. Objects written in C do not name their module.
            if inspect.isbuiltin(value):
                if not signatures_of_docstring(name, value.__doc__ or ""):
                    continue
            elif where and not where.startswith((f"{library}.{path}", f"{library}._jit_internal")):
                continue
        yield name


def _has_documentation(owner: Any, name: str, value: Any) -> bool:
    held = inspect.getattr_static(owner, name, value)
    text = getattr(held, "__doc__", None)
    if not isinstance(text, str) or not text.strip():
        return False
    # The docstring of a constant is that of its class.
    return callable(value) or inspect.isdatadescriptor(held)


def module_of(library: Any, path: str) -> Any:
    if path == "Tensor":
        return library.Tensor
    try:
        return importlib.import_module(f"{library.__name__}.{path}")
    except Exception:  # the module does not exist, or needs a package that is not installed
        return None
