"""Docstrings of operators, for `help()`, editors and the pages of the documentation.

Most parts of a docstring are derived from keys of the operator's YAML entry that also serve other purposes.
The types and defaults of arguments are read from the signature. Dtypes, shapes and errors are derived from
the operator's kind and from the keys `dtypes` and `result`. The keys `arguments`, `returns` and `raises`
contain the rest of the text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from .argument_descriptions import DESCRIPTIONS
from .model import Op
from .python_signatures import Parameter, form_of, self_index, signatures, text_signature, widest
from .results_in_words import accepted, returned
from .shapes import shape_in_words

_DTYPE_ERRORS = "NotImplementedError, TypeError or RuntimeError"
_WIDTH = 120
_TITLES = {"Arguments": "Args"}  # title on a page: title in a docstring
# Integer arguments with these names are dimensions.
_DIMENSIONS = {"dim", "dims", "dimension", "dim0", "dim1", "dim2", "axis0", "axis1", "source", "destination"}
# Errors of arguments with the same meaning in all operators.
_ERRORS_OF_ARGUMENTS = {
    "device": {"RuntimeError": "`device` is of an unknown type, or no backend for it is attached."},
    "requires_grad": {
        "RuntimeError": "`requires_grad` is true, and the dtype is neither floating-point nor complex."
    },
    "memory_format": {
        "RuntimeError": "`memory_format` requires another number of dimensions.",
        "ValueError": "`memory_format` is unknown.",
    },
}


def docstring(spelling: str, name: str, group: list[Op], method: bool) -> str:
    """Return the docstring of a function or a method, preceded by the signature that `inspect.signature` reads."""
    return text_signature(spelling, widest(group, name, method), method) + help_text(
        spelling, name, group, method
    )


def help_text(spelling: str, name: str, group: list[Op], method: bool) -> str:
    """Return the text of a docstring: the full text for a function, and a summary for a method that is also a function.

    If `spelling` is an alias of `name`, the text is only "Alias of ...".
    """
    if spelling != name:
        return f"Alias of `{'Tensor' if method else 'rushlight'}.{name}`."
    if method and any("function" in op.variants for op in group):
        return summary(name, group)
    return body(name, group, method)


def summary(name: str, group: list[Op]) -> str:
    """Return the short docstring of a method, which refers to the function of the same name for details."""
    base = group[0].base
    inplace = name != base
    parts = []
    if len(group) > 1:
        parts += ["\n".join(head for op in group for head in heads(op, name, True))]
    parts.append(group[0].summary)
    if inplace:
        parts.append("In place: the result is written to the tensor, which is returned.")
    parts.append(f"See `rushlight.{base}`.")
    return "\n\n".join(parts)


def body(name: str, group: list[Op], method: bool) -> str:
    """Return the full docstring: the description of each overload, arguments, results, dtypes, errors and examples."""
    inplace = name != group[0].base
    parts: list[str] = []
    for op in group:
        if len(group) > 1:
            parts.append("\n".join(heads(op, name, method)))
        if op.doc.strip() not in parts:
            parts.append(op.doc.strip())
    if inplace:
        parts.append("In place: the result is written to `input`, which is returned.")
    for title, lines in facts(name, group, method).items():
        filled = [
            textwrap.fill(line, _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8) for line in lines
        ]
        parts.append("\n".join([f"{_TITLES.get(title, title)}:", *filled]))
    examples = list(dict.fromkeys(op.example.strip() for op in group if op.example))
    if inplace:
        parts.append(f"See `rushlight.{group[0].base}` for the result and an example.")
    elif examples:
        parts.append("Example::\n\n    " + "\n".join(examples).replace("\n", "\n    "))
    return "\n\n".join(parts)


def heads(op: Op, name: str, method: bool) -> list[str]:
    """Return the typed signatures of an overload, as in "max(input: Tensor) -> Tensor"."""
    returns = form_of(op, name).schema.returns
    shown = []
    for signature in signatures(op, name, method):
        text = signature.typed()
        if len(returns) > 1 and all(r.name for r in returns):
            # The stubs define a class for a named tuple; its fields are more specific.
            text = text.rpartition(" -> ")[0] + f" -> ({', '.join(f'{r.name}: {r.type}' for r in returns)})"
        shown.append(name + text)
    return shown


def facts(name: str, group: list[Op], method: bool) -> dict[str, list[str]]:
    """Return a dict that maps the titles of sections of the docstring, such as "Arguments" and "Raises", to their lines."""
    inplace = name != group[0].base
    found = {
        "Arguments": _arguments(name, group, method),
        "Returns": ["`input`."] if inplace else _each(name, group, method, returned),
        "Dtypes": _each(name, group, method, lambda op: [accepted(op)] if op.tensors else []),
        "Raises": [f"{error}: {text}" for error, text in raised(group, inplace).items()],
    }
    return {title: lines for title, lines in found.items() if lines}


def _each(name: str, group: list[Op], method: bool, lines_of: Callable[[Op], list[str]]) -> list[str]:
    """Return the lines that `lines_of` returns for the overloads of a function.

    If all overloads have the same lines, return these lines once. Otherwise, each line begins with a call of
    the overload that it describes.
    """
    found = {op.name: lines_of(op) for op in group}
    if len({tuple(lines) for lines in found.values()}) == 1:
        return found[group[0].name]
    calls = {op.name: f"`{name}{signatures(op, name, method)[0].untyped()}`" for op in group}
    return [f"{calls[op.name]}: {line}" for op in group for line in found[op.name]]


def _arguments(name: str, group: list[Op], method: bool) -> list[str]:
    """Return a line for each parameter of the overloads: the parameter's types, default and description."""
    shown: dict[str, list[Parameter]] = {}
    texts: dict[str, list[str]] = {}
    shapes: dict[str, list[str]] = {}
    for op in group:
        arguments = list(op.schema.arguments)
        if method:
            del arguments[self_index(op)]
        for i, p in enumerate(signatures(op, name, method)[0].parameters):
            shown.setdefault(p.name, []).append(p)
            own = op.arguments.get(arguments[i].name) if i < len(arguments) else None
            if own and own not in texts.setdefault(p.name, []):
                texts[p.name].append(own)
            shape = op.shapes.get(arguments[i].name) if i < len(arguments) else None
            if shape and (words := shape_in_words(op, shape)) not in shapes.setdefault(p.name, []):
                shapes[p.name].append(words)
    lines = []
    for argument, parameters in shown.items():
        kinds = dict.fromkeys(word for p in parameters for word in p.annotation.split(" | "))
        if "None" in kinds:  # None is written last
            kinds = dict.fromkeys([*(kind for kind in kinds if kind != "None"), "None"])
        defaults = {p.default for p in parameters}
        given = f", default {defaults.pop()}" if len(defaults) == 1 and "" not in defaults else ""
        text = " ".join(texts.get(argument, [])) or DESCRIPTIONS.get(argument, "")
        if argument in shapes:
            text += f" Shape: {', or '.join(shapes[argument])}."
        lines.append(f"{argument} ({' | '.join(kinds)}{given})" + f": {text}" * bool(text))
    return lines


def raised(group: list[Op], inplace: bool = False) -> dict[str, str]:
    """Return a dict that maps each error class to sentences that state when the operators raise it.

    The sentences are derived from the operators' kinds, arguments and dtypes, and from the key `raises`.
    """
    written = "input" if inplace else "out"
    found: dict[str, list[str]] = {}

    def add(error: str, text: str) -> None:
        if text not in found.setdefault(error, []):
            found[error].append(text)

    for op in group:
        if op.kind == "pointwise" and len(op.tensors) > 1:
            add("RuntimeError", "The shapes do not broadcast.")
        integers = {a.name for a in op.schema.arguments if a.type.name.startswith("int")}
        if integers & _DIMENSIONS:
            add("IndexError", "A dimension is out of range.")
        if "reduction" in integers:
            add("ValueError", "`reduction` is not 0 (none), 1 (mean) or 2 (sum).")
        if op.tensors and accepted(op) not in ("all dtypes", "all dtypes except float8"):
            add(_DTYPE_ERRORS, "The dtype is not supported.")
        for argument in op.schema.arguments:
            for error, text in _ERRORS_OF_ARGUMENTS.get(argument.name, {}).items():
                add(error, text)
        if op.computes_in_out and not inplace:
            if "dtype" in {a.name for a in op.schema.arguments}:
                add("RuntimeError", "`dtype` is given and differs from the dtype of `out`.")
        elif "out" in op.variants and op.kind != "create" and not (op.gives_truth or op.result == "bool"):
            add(
                "RuntimeError",
                f"The dtype of `{written}` cannot hold the result, for example int64 for a float32 result.",
            )
        for error, text in op.raises.items():
            add(error, text)
    return {error: " ".join(texts) for error, texts in found.items()} or {
        "TypeError": "The type of an argument differs from the type in the signature."
    }
