"""Signatures in Python's syntax, for stubs, docstrings, documentation pages and `inspect.signature`.

Note [Signatures of builtins]
`inspect.signature` reads the signature of a function that is written in C from the beginning of its docstring: a line
`name(parameters)`, a line `--` and an empty line. Python omits these lines from `__doc__`. A builtin can have only one
signature. The signature of a name with several overloads has the parameters of the overload with the most parameters;
parameters that another overload lacks have the default None. The docstring lists all overloads. The signature is stored as
text in the library, so the import does not have to build it.
"""

from __future__ import annotations

import keyword
import math
from dataclasses import dataclass, replace

from .emit_headers import by_base
from .model import Form, Op
from .schema import Argument

_RETURNS = {"Tensor": "Tensor", "Tensor[]": "tuple[Tensor, ...]", "Scalar": "Number"}


@dataclass(frozen=True)
class Parameter:
    """A parameter in Python's syntax. `default` is source text; it is empty for a required argument."""

    name: str
    annotation: str
    default: str = ""
    keyword_only: bool = False
    star: bool = False  # *name


@dataclass(frozen=True)
class Signature:
    parameters: tuple[Parameter, ...]
    returns: str

    def typed(self) -> str:
        """Return the signature with types, such as "(input: Tensor, dim: int = 0) -> Tensor"."""
        parts = [
            f"{p.shown}: {p.parameter.annotation}" + f" = {p.parameter.default}" * bool(p.parameter.default)
            if p.parameter
            else p.shown
            for p in _parts(self.parameters)
        ]
        return f"({', '.join(parts)}) -> {self.returns}"

    def untyped(self) -> str:
        """Return the signature without types, such as "(input, dim=0)"."""
        parts = [
            p.shown + (f"={p.parameter.default}" if p.parameter and p.parameter.default else "")
            for p in _parts(self.parameters)
        ]
        return f"({', '.join(parts)})"


@dataclass(frozen=True)
class _Part:
    shown: str
    parameter: Parameter | None = None  # None stands for the marker `*`


def _parts(parameters: tuple[Parameter, ...]) -> list[_Part]:
    parts: list[_Part] = []
    starred = False
    for p in parameters:
        if p.keyword_only and not starred:
            parts.append(_Part("*"))
        starred = starred or p.keyword_only or p.star
        parts.append(_Part("*" + p.name if p.star else p.name, p))
    return parts


def hidden(op: Op) -> bool:
    return "hidden" in op.variants


def names_of(ops: list[Op]) -> dict[str, list[Op]]:
    """Return a dict from each Python name to its overloads. In-place forms have names with a trailing underscore."""
    inplace: dict[str, list[Op]] = {}
    for op in ops:
        if "inplace" in op.variants and not op.is_inplace:
            inplace.setdefault(op.base + "_", []).append(op)
    return {**by_base(ops), **inplace}


def form_of(op: Op, name: str) -> Form:
    """Return the form of `op` that Python calls by `name`: the first one for `op.base`, the in-place form for `op.base_`."""
    natural = op.forms()[0]
    return natural if name == op.base else next(f for f in op.forms() if f.kind == "InPlace")


def synonyms(name: str, group: list[Op]) -> list[str]:
    """Return the synonyms of a name. The synonyms of an in-place form end in an underscore, like its name."""
    words = dict.fromkeys(word for op in group for word in op.synonyms)
    return [word + name.removeprefix(group[0].base) for word in words]


def self_index(op: Op) -> int:
    """Return the index of the argument that becomes `self` in a method, such as 1 for where(condition, input, other)."""
    return next((i for i, a in enumerate(op.schema.arguments) if a.name in ("input", "self")), 0)


def takes_out(form: Form) -> bool:
    """Return whether calls of this form accept the keyword `out`."""
    return form.kind == "Functional" and "out" in form.op.variants


def signatures(op: Op, name: str, method: bool) -> list[Signature]:
    """Return the signature of an overload, and a second signature if a list may be passed as separate arguments.

    The signature of a method does not contain `self`.
    """
    form = form_of(op, name)
    arguments = list(form.schema.arguments)
    if method:
        del arguments[self_index(op)]
    parameters = [_parameter(a, op) for a in arguments]
    if any(a.type.name == "device?" and a.keyword_only for a in arguments):
        # Every binding accepts these two keywords. Most operators accept only the strided layout.
        parameters.append(Parameter("layout", "object", "None", keyword_only=True))
        parameters.append(Parameter("pin_memory", "bool | None", "False", keyword_only=True))
    if takes_out(form):
        kind = "Tensor" if len(form.schema.returns) == 1 else "tuple[Tensor, ...]"
        kind = "Sequence[Tensor]" if form.schema.returns[0].type == "Tensor[]" else kind
        parameters.append(Parameter("out", f"{kind} | None", "None", keyword_only=True))
    found = [Signature(tuple(parameters), returned(op, name, method))]
    if any(a.varargs for a in arguments):
        spread = [
            replace(p, annotation="Tensor" if a.type.is_tensor else "int", default="", star=True)
            if a.varargs
            else p
            for p, a in zip(parameters, arguments, strict=False)
        ] + parameters[len(arguments) :]
        found.append(Signature(tuple(spread), found[0].returns))
    return found


def widest(group: list[Op], name: str, method: bool) -> Signature:
    """Return the one signature that stands for all overloads of a name: see Note [Signatures of builtins]."""
    every = [s for op in group for s in signatures(op, name, method)]
    # If an overload has two signatures, use the second, with separate arguments, because programs call it in this form.
    shown = max(
        every, key=lambda s: (sum(p.name != "out" for p in s.parameters), any(p.star for p in s.parameters))
    )
    needed = set.intersection(*({p.name for p in s.parameters} for s in every))
    parameters = list(shown.parameters)
    optional = True  # whether all later positional arguments may be omitted
    for i, p in reversed(list(enumerate(parameters))):
        if not p.default and not p.star and p.name not in needed and (p.keyword_only or optional):
            parameters[i] = replace(p, default="None")
        optional = optional and (p.keyword_only or bool(parameters[i].default))
    return replace(shown, parameters=tuple(parameters))


def text_signature(spelling: str, shown: Signature, method: bool) -> str:
    """Return the first lines of the docstring of a function in C, from which `inspect.signature` reads the signature."""
    first = (Parameter("$self", ""),) if method else ()
    return f"{spelling}{replace(shown, parameters=first + shown.parameters).untyped()}\n--\n\n"


def spelled(name: str) -> str:
    """Return the name of an argument in Python. Python's keywords get an underscore, as in `from_` for `from`."""
    return name + "_" if keyword.iskeyword(name) else name


def _parameter(a: Argument, op: Op) -> Parameter:
    kind = a.type.stub + (" | None" if a.name in op.none_is_default and not a.type.optional else "")
    if a.required:
        default = ""
    else:
        default = "None" if a.default == () and a.name in op.none_is_default else _default(a)
    return Parameter(spelled(a.name), kind, default, a.keyword_only)


def _default(a: Argument) -> str:
    if isinstance(a.default, float) and math.isinf(a.default):
        return "1e999" if a.default > 0 else "-1e999"  # a literal, which `inspect.signature` requires
    return repr(a.default)


def result_name(op: Op) -> str:
    """Return the name of the class that the stubs define for an operator's named tuple."""
    return f"_{op.name.replace('.', '_')}_result"


def returned(op: Op, name: str, method: bool) -> str:
    form = form_of(op, name)
    returns = form.schema.returns
    if method and form.kind == "InPlace" and [r.type for r in returns] == ["Tensor"]:
        return "Self"
    if not returns:
        return "None"
    kinds = [return_type(r.type) for r in returns]
    if len(kinds) == 1:
        return kinds[0]
    return result_name(op) if all(r.name for r in returns) else f"tuple[{', '.join(kinds)}]"


def return_type(kind: str) -> str:
    return _RETURNS.get(kind, kind)
