"""What PyTorch documents beside what rushlight has: writes docs/names.md (`nox -s names`).

What is public in PyTorch is taken from PyTorch itself: names of a module's `__all__` (or defined in it) that have a
docstring, and Tensor's own attributes. Arguments come from its stubs, from `inspect`, or from the first lines of the
docstring, in this order. Of rushlight the same is looked at in the same way.

A name is *present* if every documented call of it works here with the same meaning: each of PyTorch's signatures is turned
into calls (every number of positional arguments, all by name), and each call must bind to one of our signatures, argument
by argument, with the same defaults for what was left out. What is there and does not bind so is *different*.

Programs also import from modules that no documentation page is about (`torch.nn.modules.padding`), and use members of
classes: of those only the presence is compared, of every public name of every public module below `AREAS`, and of every
public member of their classes.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import pkgutil
import re
import sys
import typing
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "names.md"

# Modules of PyTorch that rushlight means to have; "Tensor" is a class among them.
MODULES = (
    "", "Tensor", "linalg", "fft", "special", "random", "autograd", "autograd.functional", "autograd.forward_ad", "func",
    "autograd.graph", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.parametrizations",
    "nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn", "optim", "optim.lr_scheduler",
    "optim.swa_utils", "masked", "signal.windows", "distributions", "utils.data", "utils.checkpoint", "utils.dlpack",
)  # fmt: skip

# Packages of PyTorch whose modules are compared by their names alone, and what of them rushlight does not mean to have:
# quantisation, pipelines of data, viewers, PyTorch's own build and its test programs.
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

# Arguments of named, sparse and quantised tensors, and of layouts that only those have: see docs/differences.md.
FOREIGN_ARGUMENTS = {"names", "layout", "pin_memory"}


@dataclass
class Entry:
    """One name of a module: its signatures, none where it cannot be called or nobody says how."""

    name: str
    signatures: list[inspect.Signature] = field(default_factory=list)
    callable: bool = True
    aliases: dict[str, str] = field(default_factory=dict)  # other names of arguments
    refuses: Callable[[list[str], list[str]], bool] = lambda positions, names: (
        False
    )  # a call, whatever a stub says


@dataclass
class Row:
    """The verdict over one name."""

    name: str
    verdict: str  # present, different, missing
    how: str = ""
    theirs: str = ""
    ours: str = ""


# --- signatures ---


class Stubs:
    """Signatures of a stub file: functions of the module, methods of its classes."""

    def __init__(self, *paths: Path) -> None:
        self.functions: dict[str, list[inspect.Signature]] = {}
        self.methods: dict[str, list[inspect.Signature]] = {}
        for path in paths:
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.FunctionDef):
                    self._add(self.functions, node)
                elif isinstance(node, ast.ClassDef) and node.name in ("Tensor", "TensorBase"):
                    for method in node.body:
                        if isinstance(method, ast.FunctionDef):
                            self._add(self.methods, method)

    @staticmethod
    def _add(table: dict[str, list[inspect.Signature]], node: ast.FunctionDef) -> None:
        if any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
            return
        texts = [
            ast.unparse(a.annotation) for a in ast.walk(node.args) if isinstance(a, ast.arg) and a.annotation
        ]
        if any("EllipsisType" in text or "Sequence[str" in text for text in texts):
            return  # dimensions by name
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        if (
            any(name in names[:-1] and names.index(name) < 2 for name in ("alpha", "beta", "value"))
            and len(names) > 2
        ):
            return  # add(alpha, other): deprecated, and in no documentation
        table.setdefault(node.name, []).append(signature_of_arguments(node.args))


def signature_of_arguments(arguments: ast.arguments) -> inspect.Signature:
    """A parsed list of parameters; annotations are left out, defaults are literals or their source."""
    kinds = inspect.Parameter
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(
        arguments.defaults
    )
    found = []
    for a, default in zip(positional, defaults, strict=True):
        kind = kinds.POSITIONAL_ONLY if a in arguments.posonlyargs else kinds.POSITIONAL_OR_KEYWORD
        found.append(kinds(a.arg, kind, default=_default(default)))
    if arguments.vararg:
        found.append(kinds(arguments.vararg.arg, kinds.VAR_POSITIONAL))
    for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(kinds(a.arg, kinds.KEYWORD_ONLY, default=_default(default)))
    if arguments.kwarg:
        found.append(kinds(arguments.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(found)


UNKNOWN = object()  # a default that nobody writes down


def _default(node: ast.expr | None) -> Any:
    if node is None:
        return inspect.Parameter.empty
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node).rsplit(".", 1)[-1]
    return UNKNOWN if value is ... else value


def signatures_of_docstring(name: str, text: str) -> list[inspect.Signature]:
    """Those of the first lines: `name(input, dim=None) -> Tensor`; [] where they are no Python."""
    found = []
    for line in text.strip().splitlines()[:8]:
        match = re.match(rf"(?:[\w.]+\.)?{re.escape(name)}\((.*)\)\s*(?:->.*)?$", line.strip())
        if not match:
            continue
        try:
            node = ast.parse(f"def f({match[1]}): ...").body[0]
        except SyntaxError:
            continue
        assert isinstance(node, ast.FunctionDef)
        found.append(signature_of_arguments(node.args))
    return found


def signatures_of(
    value: Any, name: str, stub: dict[str, list[inspect.Signature]], owner: Any = None
) -> list[inspect.Signature]:
    """The signatures of a callable, from the best source that there is."""
    builtin = inspect.isbuiltin(value) or inspect.ismethoddescriptor(value)
    if builtin:
        known = stub.get(value.__name__)  # linalg.norm is linalg_norm
        if known:
            said = signatures_of_docstring(name, value.__doc__ or "")
            known = [_as_documented(s, said) for s in known]
            nameless = _takes_no_keywords(value, None if inspect.isbuiltin(value) else owner)
            return [_by_position(s) for s in known] if nameless else known
    try:
        found = [inspect.signature(value)]
    except (TypeError, ValueError):
        found = []
    if all(_is_vague(s) for s in found):
        function = value.__init__ if inspect.isclass(value) else value
        overloads = typing.get_overloads(function) if inspect.isfunction(function) else []
        if overloads:
            found = [inspect.signature(one) for one in overloads]
            found = [_without_self(s) for s in found] if inspect.isclass(value) else found
            return [s for s in found if not _is_vague(s)]
        said = [] if inspect.isclass(value) else signatures_of_docstring(name, value.__doc__ or "")
        # A function written in Python may have an operator's name and be another: nn.init.eye is not torch.eye.
        return said or ([] if inspect.isfunction(value) else stub.get(name, []))
    return found


def _as_documented(signature: inspect.Signature, said: list[inspect.Signature]) -> inspect.Signature:
    """A stub's signature, without defaults that the docstring has not: linspace(steps=None) was given up long ago."""
    required = [{n for n, p in s.parameters.items() if p.default is p.empty} for s in said]
    known = {n for s in said for n in s.parameters}
    parameters: list[inspect.Parameter] = []
    for p in signature.parameters.values():
        everywhere = p.name in known and all(
            p.name in r or p.name not in s.parameters for r, s in zip(required, said, strict=True)
        )
        before = all(q.default is q.empty for q in parameters if q.kind == q.POSITIONAL_OR_KEYWORD)
        if p.kind == p.POSITIONAL_OR_KEYWORD and p.default is None and everywhere and before:
            p = p.replace(default=p.empty)
        parameters.append(p)
    return signature.replace(parameters=parameters)


def _is_vague(signature: inspect.Signature) -> bool:
    return [p.kind for p in signature.parameters.values()] == [
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    ]


def _takes_no_keywords(value: Any, owner: Any) -> bool:
    """Whether a function written in C refuses names, whatever a stub says: asked of the function itself."""
    try:
        value(*([] if owner is None else [owner()]), **{"no such argument": 0})
    except TypeError as error:
        return "takes no keyword arguments" in str(error)
    except Exception:
        return False
    return False


def refusal(value: Any, owner: Any = None) -> Callable[[list[str], list[str]], bool]:
    """Whether a function written in C has no such arguments: asked of the function itself, with objects that none takes."""

    def refuses(positions: list[str], names: list[str]) -> bool:
        if not positions and not names:
            return False
        try:
            value(
                *([] if owner is None else [owner()]),
                *(object() for _ in positions),
                **dict.fromkeys(names, object()),
            )
        except TypeError as error:
            return bool(
                re.search(r"positional arguments? but|unexpected keyword|keyword arguments?$", str(error))
            )
        except Exception:
            return False
        return False

    return refuses


def _by_position(signature: inspect.Signature) -> inspect.Signature:
    parameters = [
        p.replace(kind=p.POSITIONAL_ONLY) if p.kind == p.POSITIONAL_OR_KEYWORD else p
        for p in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters)


# --- what there is ---


def members(
    library: Any,
    path: str,
    stubs: Stubs,
    aliases: dict[str, dict[str, str]],
    names: Iterable[str] | None = None,
) -> dict[str, Entry]:
    """Those of a module of the library, or of its class Tensor: the documented names, or which there are of `names`."""
    owner = library if not path else _module(library, path)
    if owner is None:
        return {}
    of_tensor = path == "Tensor"
    table = stubs.methods if of_tensor else stubs.functions
    found = {}
    for name in sorted(_public(owner, path, library.__name__) if names is None else names):
        value = getattr(owner, name, None)
        if not hasattr(owner, name) if names is not None else not _has_documentation(owner, name, value):
            continue
        entry = Entry(name, callable=callable(value))
        if entry.callable:
            entry.signatures = signatures_of(value, name, table, owner if of_tensor else None)
            if inspect.isbuiltin(value) or inspect.ismethoddescriptor(value):
                entry.refuses = refusal(value, owner if of_tensor else None)
                entry.aliases = aliases.get(value.__name__, {})
            if of_tensor and not isinstance(inspect.getattr_static(owner, name), (staticmethod, classmethod)):
                entry.signatures = [_without_self(s) for s in entry.signatures]
        found[name] = entry
    return found


def _module(library: Any, path: str) -> Any:
    if path == "Tensor":
        return library.Tensor
    try:
        return importlib.import_module(f"{library.__name__}.{path}")
    except Exception:  # not there, or it needs what is not installed
        return None


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
            # Not what a module has imported for itself. What is written in C says nothing of where it belongs.
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
    # A constant has its class's docstring.
    return callable(value) or inspect.isdatadescriptor(held)


def _without_self(signature: inspect.Signature) -> inspect.Signature:
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        del parameters[0]
    return signature.replace(parameters=parameters)


# --- comparison ---


def compare(theirs: dict[str, Entry], ours: dict[str, Entry]) -> list[Row]:
    """A row for each of their names."""
    return [_compare(entry, ours.get(name)) for name, entry in sorted(theirs.items())]


def _compare(theirs: Entry, ours: Entry | None) -> Row:
    if ours is None:
        return Row(theirs.name, "missing")
    if theirs.callable != ours.callable:
        return Row(theirs.name, "different", "one is a function, the other is none")
    for signature in theirs.signatures:
        if not ours.signatures:
            break
        signature = _without_foreign(signature)
        for call in calls_of(signature):
            if any(binds(mine, *call, signature, ours.aliases) for mine in ours.signatures) or theirs.refuses(
                *call
            ):
                continue
            likeness = [_likeness(signature, mine, ours.aliases) for mine in ours.signatures]
            nearest = ours.signatures[likeness.index(max(likeness))]
            how = difference(signature, nearest, ours.aliases)
            return Row(theirs.name, "different", how, shown(signature), shown(nearest))
    return Row(theirs.name, "present")


def _without_foreign(signature: inspect.Signature) -> inspect.Signature:
    kept = [
        p
        for p in signature.parameters.values()
        if p.kind != p.KEYWORD_ONLY or p.name not in FOREIGN_ARGUMENTS
    ]
    return signature.replace(parameters=kept)


def calls_of(signature: inspect.Signature) -> list[tuple[list[str], list[str]]]:
    """Calls that the signature allows: names given by position, names given by keyword."""
    kinds = inspect.Parameter
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    named = [p.name for p in parameters if p.kind == kinds.KEYWORD_ONLY]
    required = [p.name for p in parameters if p.kind == kinds.KEYWORD_ONLY and p.default is kinds.empty]
    least = sum(p.default is kinds.empty for p in positional)
    calls = [([p.name for p in positional[:n]], required) for n in range(least, len(positional) + 1)]
    calls.append(([p.name for p in positional], named))
    only = [p.name for p in positional if p.kind == kinds.POSITIONAL_ONLY]
    calls.append((only, [p.name for p in positional if p.kind != kinds.POSITIONAL_ONLY] + named))
    return calls


def binds(
    mine: inspect.Signature,
    positions: list[str],
    names: list[str],
    theirs: inspect.Signature,
    aliases: dict[str, str],
) -> bool:
    """Whether `mine` takes the call so that each argument gets where it belongs, with their defaults for the rest."""
    try:
        bound = mine.bind(*positions, **{_here(n, mine, aliases): n for n in names})
    except TypeError:
        return False
    for name, value in bound.arguments.items():
        kind = mine.parameters[name].kind
        if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        nameless = inspect.Parameter.POSITIONAL_ONLY in (kind, theirs.parameters[value].kind)
        if _here(value, mine, aliases) != name and not nameless:
            return False
    left_out = (p for p in theirs.parameters.values() if p.name not in positions and p.name not in names)
    return all(
        _same_default(p.default, mine.parameters[_here(p.name, mine, aliases)].default)
        for p in left_out
        if _here(p.name, mine, aliases) in mine.parameters and p.default is not inspect.Parameter.empty
    )


NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


def _here(name: str, mine: inspect.Signature, aliases: dict[str, str]) -> str:
    """Under which name ours has an argument. NumPy's names are taken by every operator, as PyTorch's do."""
    if name in mine.parameters:
        return name
    spellings = (f"{name}_", aliases.get(name, ""), "input" if name == "self" else NUMPY.get(name, ""))
    return next((other for other in spellings if other in mine.parameters), name)


def _same_default(theirs: Any, ours: Any) -> bool:
    # Orders of strides go by other names here, and none is the order that the input has.
    formats = [str(value).removeprefix("torch.").removesuffix("_format") for value in (theirs, ours)]
    if formats in (["contiguous", "contiguous"], ["preserve", "None"]):
        return True
    if any(value is UNKNOWN or " object at 0x" in str(value) for value in (theirs, ours)):
        return True
    one, other = (_plain(value) for value in (theirs, ours))
    return bool(one == other) or (one != one and other != other)


def _plain(value: Any) -> Any:
    """One int stands for as many as are needed, () for none; objects compare by their names."""
    if isinstance(value, (tuple, list)):
        if not value:
            return None
        return _plain(value[0]) if value and all(v == value[0] for v in value) else tuple(value)
    if isinstance(value, str):
        return value.rsplit(".", 1)[-1]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return getattr(value, "__name__", str(value).rsplit(".", 1)[-1])


def _likeness(theirs: inspect.Signature, mine: inspect.Signature, aliases: dict[str, str]) -> float:
    common = sum(_here(name, mine, aliases) in mine.parameters for name in theirs.parameters)
    return common - 0.1 * len(mine.parameters)


def difference(theirs: inspect.Signature, mine: inspect.Signature, aliases: dict[str, str]) -> str:
    """In words, what keeps a call of theirs from working."""
    said = []
    parameters = [
        p for p in theirs.parameters.values() if p.kind.name not in ("VAR_POSITIONAL", "VAR_KEYWORD")
    ]
    lacking = [p.name for p in parameters if _here(p.name, mine, aliases) not in mine.parameters]
    if lacking:
        said.append("lacks " + ", ".join(f"`{name}`" for name in lacking))
    for p in parameters:
        own = mine.parameters.get(_here(p.name, mine, aliases))
        if own is None:
            continue
        if p.default is not p.empty and own.default is own.empty:
            said.append(f"`{p.name}` is required")
        elif p.default is not p.empty and not _same_default(p.default, own.default):
            said.append(f"`{p.name}` is {_text(own.default)} by default, not {_text(p.default)}")
        if own.kind == own.KEYWORD_ONLY and p.kind != p.KEYWORD_ONLY:
            said.append(f"`{p.name}` by name only")
        if own.kind == own.POSITIONAL_ONLY and p.kind != p.POSITIONAL_ONLY:
            said.append(f"`{p.name}` by position only")
    extra = [p.name for p in mine.parameters.values() if p.default is p.empty and p.kind.name[:3] != "VAR"]
    extra = [name for name in extra if name not in [_here(p.name, mine, aliases) for p in parameters]]
    if extra:
        said.append("wants " + ", ".join(f"`{name}`" for name in extra))
    return "; ".join(said) or "another order"


def _text(value: Any) -> str:
    return f"`{_plain(value)!r}`" if isinstance(value, str) else f"`{_plain(value)}`"


def shown(signature: inspect.Signature) -> str:
    """`(input, dim=None, *, out=None)`."""
    parts, starred = [], False
    for p in signature.parameters.values():
        if p.kind == p.VAR_POSITIONAL:
            parts.append("*" + p.name)
            starred = True
            continue
        if p.kind == p.VAR_KEYWORD:
            parts.append("**" + p.name)
            continue
        if p.kind == p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        default = "…" if p.default is UNKNOWN or " object at 0x" in str(p.default) else str(_plain(p.default))
        parts.append(p.name if p.default is p.empty else f"{p.name}={default}")
    return f"({', '.join(parts)})"


# --- modules and members, by their names alone ---


@dataclass
class Absence:
    """What of a module is not here: all of it, or some of its names and members of its classes."""

    count: int  # public names and members that PyTorch's module has
    whole: bool = False
    names: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)


def modules_below(library: ModuleType, areas: Iterable[str], outside: re.Pattern[str]) -> Iterable[str]:
    """The paths of the public modules that can be imported."""
    for area in areas:
        root = _module(library, area)
        if root is None:
            continue
        found = [area]
        for info in pkgutil.walk_packages(
            getattr(root, "__path__", []), f"{root.__name__}.", onerror=lambda name: None
        ):
            found.append(info.name.removeprefix(f"{library.__name__}."))
        for path in found:
            private = any(part.startswith("_") for part in path.split("."))
            if not private and not outside.match(path) and _module(library, path) is not None:
                yield path


def names_of_module(module: ModuleType) -> list[str]:
    """Its public names: those of `__all__`, else what is defined in it."""
    said = getattr(module, "__all__", None)
    if said is not None:
        return sorted({name for name in said if hasattr(module, name)})
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


def members_of_class(kind: type, library: str, public: set[type]) -> list[str]:
    """Its public attributes, without those that it inherits from another public class, or from Python's own."""
    inherited = {base for other in kind.__mro__[1:] if other in public for base in other.__mro__}
    own = [
        base
        for base in kind.__mro__
        if base not in inherited and (base.__module__ or "").partition(".")[0] == library
    ]
    return sorted({name for base in own for name in vars(base) if not name.startswith("_")})


def _has_member(kind: Any, member: str) -> bool:
    """Whether its objects have it: the class does, or a method of the class assigns it."""
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
    """For every public module of theirs what is not in ours. A class counts in the first module that shows it."""
    found: dict[str, Absence] = {}
    paths = list(modules_below(theirs, areas, outside))
    modules = [_module(theirs, path) for path in paths]
    values = [getattr(module, name) for module in modules for name in names_of_module(module)]
    # Of tensors the table above has every documented member.
    public = {value for value in values if inspect.isclass(value)} | {getattr(theirs, "Tensor", object)}
    seen: set[int] = set()
    for path in paths:
        module, here = _module(theirs, path), _module(ours, path)
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


# --- the table ---


def page(rows: dict[str, list[Row]], version: str, absent: dict[str, Absence] | None = None) -> str:
    """The text of docs/names.md."""
    lines = [
        "# Names", "",
        f"What PyTorch {version} documents beside what rushlight has, written by `nox -s names`. *Present*: every",
        "documented call binds, argument by argument, with the same defaults; *different*: the name is there, and not every",
        "such call binds. Why something is missing stands in [Differences from PyTorch](differences.md).",
        "", "| module | documented | present | different | missing |", "|---|--:|--:|--:|--:|",
    ]  # fmt: skip
    verdicts = ("present", "different", "missing")
    total = dict.fromkeys(verdicts, 0)
    for path, found in rows.items():
        counts = {v: sum(row.verdict == v for row in found) for v in verdicts}
        total = {v: total[v] + counts[v] for v in verdicts}
        lines.append(
            f"| `{_title(path)}` | {len(found)} | " + " | ".join(str(counts[v]) for v in verdicts) + " |"
        )
    lines.append(
        f"| together | {sum(total.values())} | " + " | ".join(str(total[v]) for v in verdicts) + " |"
    )
    for path, found in rows.items():
        lines += ["", f"## {_title(path)}"]
        different = [row for row in found if row.verdict == "different"]
        if different:
            lines += ["", "| different | how | PyTorch's | ours |", "|---|---|---|---|"]
            lines += [f"| `{r.name}` | {r.how} | {_cell(r.theirs)} | {_cell(r.ours)} |" for r in different]
        for verdict in ("missing", "present"):
            names = [f"`{row.name}`" for row in found if row.verdict == verdict]
            if names:
                lines += ["", f"**{verdict.capitalize()}**: {', '.join(names)}."]
    if absent is not None:
        lines += _lines_of_absences(absent)
    return "\n".join([*lines, ""])


def _lines_of_absences(absent: dict[str, Absence]) -> list[str]:
    whole = [path for path, entry in absent.items() if entry.whole]
    names = sum(len(entry.names) for entry in absent.values())
    members = sum(len(entry.members) for entry in absent.values())
    total = sum(entry.count for entry in absent.values())
    lost = sum(entry.count for entry in absent.values() if entry.whole)
    lines = [
        "", "# Modules and members", "",
        "Public names of PyTorch's modules and public members of their classes, compared by their presence alone: of"
        f" {total} in {len(absent)} modules, {lost} are in the {len(whole)} modules that are not here, and {names} names and"
        f" {members} members are missing from modules that are.",
        "", "**Modules that are not here**: " + (", ".join(f"`{_title(path)}`" for path in whole) or "none") + ".",
        "", "| module | missing names | missing members |", "|---|---|---|",
    ]  # fmt: skip
    for path, entry in absent.items():
        if entry.names or entry.members:
            cells = [", ".join(f"`{name}`" for name in part) for part in (entry.names, entry.members)]
            lines.append(f"| `{_title(path)}` | {cells[0]} | {cells[1]} |")
    return lines


def _title(path: str) -> str:
    return f"torch.{path}" if path else "torch"


def _cell(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def rows_of_libraries() -> tuple[dict[str, list[Row]], str, dict[str, Absence]]:
    """The rows of every module, PyTorch's version, and what is absent, from the installed libraries."""
    import torch

    import rushlight
    import rushlight_core
    from rushlight_core.codegen.loader import load_ops

    folder = Path(torch.__file__).parent / "_C"
    theirs = Stubs(folder / "_VariableFunctions.pyi", folder / "__init__.pyi")
    # Of an editable package what is generated lies in another folder than what is written.
    generated = (Path(folder) / "_C.pyi" for folder in rushlight_core.__path__)
    ours = Stubs(next(path for path in generated if path.exists()))
    aliases: dict[str, dict[str, str]] = {}
    for op in load_ops():
        aliases.setdefault(op.base, {}).update(op.aliases)
    rows = {}
    for path in MODULES:
        documented = members(torch, path, theirs, {})
        rows[path] = compare(documented, members(rushlight, path, ours, aliases, documented))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deprecated modules and names
        absent = absences(torch, rushlight, AREAS, OUTSIDE)
    return rows, torch.__version__.partition("+")[0], absent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="fail if the page is not up to date; write nothing"
    )
    options = parser.parse_args(arguments)
    text = page(*rows_of_libraries())
    if options.check:
        if not TABLE.exists() or TABLE.read_text() != text:
            print(f"{TABLE.relative_to(ROOT)} is not up to date: run `nox -s names`", file=sys.stderr)
            return 1
        return 0
    TABLE.write_text(text)
    print(f"{TABLE.relative_to(ROOT)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
