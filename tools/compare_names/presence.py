"""Modules and members of classes, compared by their names alone."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from compare_names.documented import module_of

# Packages of PyTorch whose modules are compared by their names alone, and the modules among them that rushlight does not
# intend to have: quantisation, pipelines of data, viewers, PyTorch's own build and its test programs.
AREAS = (
    "accelerator", "amp", "autograd", "backends", "compiler", "cpu", "distributions", "fft", "func", "functional", "futures",
    "hub", "library", "linalg", "masked", "multiprocessing", "nn", "optim", "overrides", "profiler", "quasirandom", "random",
    "serialization", "signal", "special", "storage", "torch_version", "types", "utils",
)  # fmt: skip
OUTSIDE = re.compile(
    r"^(nn\.(intrinsic|qat|quantizable|quantized|backends|cpp)|autograd\.profiler_legacy|backends\.(xeon|quantized|cudnn\.rnn)"
    r"|utils\.(benchmark|bundled_inputs|cpp_backtrace|data\.(datapipes|graph|graph_settings|backward_compatibility)|hipify|jit"
    r"|model_dump|serialization|tensorboard|viz|bottleneck|throughput_benchmark|show_pickle|mobile_optimizer|mkldnn|xnnpack"
    r"|backend_registration|backcompat))(\.|$)"
)


@dataclass
class Absence:
    """The part of a module that rushlight lacks: the whole module, or some of its names and members of its classes."""

    count: int  # public names and members that PyTorch's module has
    whole: bool = False
    names: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)


def modules_below(library: ModuleType, areas: Iterable[str], outside: re.Pattern[str]) -> Iterable[str]:
    """Yield the paths of the public modules that can be imported."""
    for area in areas:
        root = module_of(library, area)
        if root is None:
            continue
        found = [area]
        for info in pkgutil.walk_packages(
            getattr(root, "__path__", []), f"{root.__name__}.", onerror=lambda name: None
        ):
            found.append(info.name.removeprefix(f"{library.__name__}."))
        for path in found:
            private = any(part.startswith("_") for part in path.split("."))
            if not private and not outside.match(path) and module_of(library, path) is not None:
                yield path


def names_of_module(module: ModuleType) -> list[str]:
    """Return the public names of a module: those of `__all__`, or otherwise the names that it defines."""
    said = getattr(module, "__all__", None)
    if said is not None:
        return sorted({name for name in said if hasattr(module, name)})
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


def members_of_class(kind: type, library: str, public: set[type]) -> list[str]:
    """Return the public attributes of a class, except those inherited from another public class or a class of Python."""
    inherited = {base for other in kind.__mro__[1:] if other in public for base in other.__mro__}
    own = [
        base
        for base in kind.__mro__
        if base not in inherited and (base.__module__ or "").partition(".")[0] == library
    ]
    return sorted({name for base in own for name in vars(base) if not name.startswith("_")})


def _has_member(kind: Any, member: str) -> bool:
    """Return whether objects of a class have an attribute: the class has it, or one of its methods assigns it."""
    if hasattr(kind, member):
        return True
    for base in getattr(kind, "__mro__", ()):
        try:
            source = inspect.getsource(base)
        except (OSError, TypeError):
            continue
        if re.search(rf"\bself\.{member}\b[^=\n]*=[^=]", source):
            return True
    return False


def absences(
    theirs: ModuleType, ours: ModuleType, areas: Iterable[str], outside: re.Pattern[str]
) -> dict[str, Absence]:
    """Return what rushlight lacks of every public module of PyTorch. A class counts in the first module that has it."""
    found: dict[str, Absence] = {}
    paths = list(modules_below(theirs, areas, outside))
    modules = [module_of(theirs, path) for path in paths]
    values = [getattr(module, name) for module in modules for name in names_of_module(module)]
    # The members of Tensor are not repeated, because the table of documented names has them.
    public = {value for value in values if inspect.isclass(value)} | {getattr(theirs, "Tensor", object)}
    seen: set[int] = set()
    for path in paths:
        module, here = module_of(theirs, path), module_of(ours, path)
        names = names_of_module(module)
        entry = found[path] = Absence(len(names), whole=here is None)
        for name in names:
            value = getattr(module, name)
            if here is not None and not hasattr(here, name):
                entry.names.append(name)
            if not inspect.isclass(value) or id(value) in seen or issubclass(value, type):
                continue
            seen.add(id(value))
            members = members_of_class(value, theirs.__name__, public)
            entry.count += len(members)
            if here is not None and hasattr(here, name):
                own = getattr(here, name)
                entry.members += [f"{name}.{member}" for member in members if not _has_member(own, member)]
    return found
