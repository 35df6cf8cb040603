"""Find the values to which the code of a function refers by name.

The values are globals, variables of enclosing functions, and attributes of modules. The names of the values
are found in the bytecode of the function. A chain of names such as `package.module.LIMIT` is followed as long
as the values are modules. See Note [Snapshots].
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.util
import sys
import sysconfig
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

MISSING = object()

# Functions that return any global for a name that is not in the code.
_LOOKUPS = (eval, exec, globals, builtins.__import__, importlib.import_module)
# Values of libraries whose state is followed. Others, such as objects implemented in C, are only compared by identity.
_FOLLOWED_IN_LIBRARIES = (types.FunctionType, type, list, dict, set)

_LOAD_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_LOAD_FREE = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR")


class _Names(NamedTuple):
    """The names in the code of a function and of the functions that are defined inside of it."""

    from_globals: frozenset[tuple[str, ...]]  # chains of a global and attributes
    from_enclosing: frozenset[tuple[str, ...]]  # chains of a variable of an enclosing function and attributes
    imports: frozenset[str]  # modules that the code imports


class NamedValue(NamedTuple):
    """A value to which a function refers by name. `followed`: whether snapshots include the state of the value."""

    name: str  # the chain of names, joined by dots
    value: Any
    followed: bool


def named_values(function: types.FunctionType) -> list[NamedValue]:
    """Return the values to which the code of a function refers by name, with `MISSING` for names that have no value."""
    return [named for chain in _chains(function) for named in chain]


def may_use_others(function: types.FunctionType) -> bool:
    """Return whether the code of a function may use globals that it does not refer to by name.

    The result is True if the code uses a function such as `eval`, imports a module that does not belong to a library, or
    uses such a module other than in an expression `module.name`."""
    if not all(map(is_library, _names(function.__code__).imports)):
        return True
    for *_, last in _chains(function):
        value = last.value
        if isinstance(value, types.ModuleType) and not is_library(value.__name__):
            return True
        if any(value is lookup for lookup in _LOOKUPS):
            return True
    return False


def _chains(function: types.FunctionType) -> Iterator[list[NamedValue]]:
    names = _names(function.__code__)
    for chain in names.from_globals:
        value = function.__globals__.get(chain[0], MISSING)
        yield _follow(vars(builtins).get(chain[0], MISSING) if value is MISSING else value, chain)
    if names.from_enclosing:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for chain in names.from_enclosing:
            try:
                yield _follow(cells[chain[0]].cell_contents, chain)
            except ValueError:  # the cell is empty
                yield [NamedValue(chain[0], MISSING, False)]


def _follow(value: Any, chain: tuple[str, ...]) -> list[NamedValue]:
    """Return the values of `a`, `a.b`, ... for the chain ("a", "b", ...).

    The list ends with the first value that is not a module. `value` is the value of `a`.
    """
    values = [NamedValue(chain[0], value, not isinstance(value, types.ModuleType))]
    for end in range(1, len(chain)):
        if not isinstance(value, types.ModuleType):
            break
        kinds = _FOLLOWED_IN_LIBRARIES if is_library(value.__name__) else (object,)
        value = vars(value).get(chain[end], MISSING)
        followed = isinstance(value, kinds) and not isinstance(value, types.ModuleType)
        values.append(NamedValue(".".join(chain[: end + 1]), value, followed))
    return values


@functools.lru_cache(maxsize=1024)
def _names(code: types.CodeType) -> _Names:
    import dis  # takes 2 ms, and only workers need it

    from_globals: set[tuple[str, ...]] = set()
    from_enclosing: set[tuple[str, ...]] = set()
    imports: set[str] = set()
    chain: list[str] = []
    into: set[tuple[str, ...]] | None = None  # the set for the chain that is being read
    for instruction in dis.get_instructions(code):
        operation, name = instruction.opname, instruction.argval
        if operation in ("CACHE", "EXTENDED_ARG"):
            continue
        if into is not None:
            if operation in _ATTRIBUTE:
                chain.append(name)
                continue
            into.add(tuple(chain))
            into = None
        if operation in _LOAD_GLOBAL:
            chain, into = [name], from_globals
        elif operation in _LOAD_FREE and name in code.co_freevars:
            chain, into = [name], from_enclosing
        elif operation == "IMPORT_NAME":
            imports.add(name)
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            inner = _names(part)
            from_globals |= inner.from_globals
            from_enclosing |= {chain for chain in inner.from_enclosing if chain[0] in code.co_freevars}
            imports |= inner.imports
    return _Names(frozenset(from_globals), frozenset(from_enclosing), frozenset(imports))


@functools.lru_cache(maxsize=1024)
def is_library(module: str | None) -> bool:
    """Return whether a module belongs to Python, to an installed package or to rushlight."""
    root = (module or "").partition(".")[0]
    if root in ("", "__main__"):
        return False
    if root in sys.stdlib_module_names or root.startswith("rushlight"):
        return True
    if root in sys.modules:
        file = getattr(sys.modules[root], "__file__", None)
    else:  # code imports the module later
        spec = importlib.util.find_spec(root)
        file = None if spec is None else spec.origin
    paths = sysconfig.get_paths()
    return any((file or "").startswith(paths[name]) for name in ("stdlib", "purelib", "platlib"))
