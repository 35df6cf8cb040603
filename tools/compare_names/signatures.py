"""Signatures of callables: from stubs, from `inspect`, from docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any


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
            return  # an overload with named dimensions
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        if (
            any(name in names[:-1] and names.index(name) < 2 for name in ("alpha", "beta", "value"))
            and len(names) > 2
        ):
            return  # add(alpha, other) is deprecated and not documented
        table.setdefault(node.name, []).append(signature_of_arguments(node.args))


def signature_of_arguments(arguments: ast.arguments) -> inspect.Signature:
    """Return the signature of a parsed list of parameters. It has no annotations; defaults are literals, or source text."""
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


UNKNOWN = object()  # a default whose value is not documented


def _default(node: ast.expr | None) -> Any:
    if node is None:
        return inspect.Parameter.empty
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node).rsplit(".", 1)[-1]
    return UNKNOWN if value is ... else value


def signatures_of_docstring(name: str, text: str) -> list[inspect.Signature]:
    """Return the signatures at the start of a docstring, `name(input, dim=None) -> Tensor`, that are valid Python."""
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
    """Return the signatures of a callable, from the best available source."""
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
            found = [without_self(s) for s in found] if inspect.isclass(value) else found
            return [s for s in found if not _is_vague(s)]
        said = [] if inspect.isclass(value) else signatures_of_docstring(name, value.__doc__ or "")
        # A Python function may have the name of an operator but be another function: nn.init.eye is not torch.eye.
        return said or ([] if inspect.isfunction(value) else stub.get(name, []))
    return found


def _as_documented(signature: inspect.Signature, said: list[inspect.Signature]) -> inspect.Signature:
    """Return a stub's signature without the defaults that the docstring lacks, such as the obsolete linspace(steps=None)."""
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
    """Return whether a function written in C refuses keyword arguments, by calling it. Its stub may be wrong."""
    try:
        value(*([] if owner is None else [owner()]), **{"no such argument": 0})
    except TypeError as error:
        return "takes no keyword arguments" in str(error)
    except Exception:
        return False
    return False


def refusal(value: Any, owner: Any = None) -> Callable[[list[str], list[str]], bool]:
    """Return a check whether a C function lacks given arguments, which calls it with objects that no function accepts."""

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


def without_self(signature: inspect.Signature) -> inspect.Signature:
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        del parameters[0]
    return signature.replace(parameters=parameters)
