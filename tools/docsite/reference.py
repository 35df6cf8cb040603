"""Write the API reference from the installed packages: a page for each family of operators and each public module."""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import re
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rushlight import Tensor

from . import operators
from .docstrings import first_sentence, markdown
from .modules import CHAPTERS, Module
from .operators import Operator, directive
from .stubs import Stub, read_stub

# A page with more names than this is divided by the files that define them.
DIVIDED = 40


class Reference:
    """The pages of the reference. `names` maps each name that is documented to its page."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self._operators: dict[str, Operator] = {}
        self._objects: dict[int, str] = {}  # pages of classes and functions, by identity
        self._families: dict[str, list[Operator]] = operators.families()
        self._core = read_stub("rushlight_core")
        for family, group in self._families.items():
            for operator in group:
                self._operators |= dict.fromkeys([operator.name, *operator.synonyms], operator)
                if not operator.fronted:
                    self.names[operator.full_name] = operators.page_name(family)
        modules = [module for chapter in CHAPTERS.values() for module in chapter]
        public = {module: dict(_public(importlib.import_module(module.name))) for module in modules}
        for module, members in public.items():
            for name, value in members.items():
                if _is_documented(value):
                    self._objects.setdefault(id(value), f"{module.name}.{name}")
        short = [name.rpartition(".")[2] for name in self._objects.values()]
        # Short names of several objects, which an annotation must qualify.
        self._ambiguous = {name for name, count in Counter(short).items() if count > 1}
        for family, group in self._families.items():
            self.pages[operators.page_name(family)] = operators.family_page(family, group, self._core)
        for module, members in public.items():
            self.pages[module.page] = self._module_page(module, members)
        self.pages["tensor"] = self._tensor_page()

    def index(self, folder: str) -> str:
        """Return the list of all pages, in Markdown, with links into `folder`."""
        lines: list[str] = []
        for chapter, modules in CHAPTERS.items():
            lines += [f"## {chapter}", ""]
            if chapter == "Tensors":
                lines.append(
                    f"* [`rushlight.Tensor`]({folder}/tensor.md): attributes and methods of tensors."
                )
            for module in modules:
                summary = first_sentence(importlib.import_module(module.name).__doc__)
                lines.append(f"* [`{module.name}`]({folder}/{module.page}.md): {summary or module.title}")
            lines.append("")
        lines += ["## Operators", "", "By family, as functions of `rushlight` and methods of `Tensor`.", ""]
        for family, members in self._families.items():
            sample = ", ".join(f"`{operator.name}`" for operator in members[:6])
            more = "" if len(members) <= 6 else ", …"
            lines.append(f"* [{family}]({folder}/{operators.page_name(family)}.md): {sample}{more}")
        return "\n".join([*lines, ""])

    def write(self, folder: Path) -> None:
        for name, text in self.pages.items():
            path = folder / f"{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    # --- modules ---

    def _module_page(self, module: Module, members: dict[str, Any]) -> str:
        imported = importlib.import_module(module.name)
        lines = [f"# {module.title}", "", directive("py:module", [module.name], ""), ""]
        lines += [f"`import {module.name}`", ""]
        described = _described(imported)
        if described:
            lines += [markdown(described), ""]
        own: list[tuple[str, str]] = []  # the group and the entry of each name that is documented here
        links: list[str] = []
        constants: dict[str, list[str]] = {}
        for name, value in members.items():
            full_name = f"{module.name}.{name}"
            operator = self.operator(value, name)
            elsewhere = self._objects.get(id(value), full_name)
            if operator is not None and not operator.fronted:
                if module.name != "rushlight":  # which has all of them
                    links.append(f"* {_link(name, operator.full_name)}: {operator.summary}")
            elif isinstance(value, types.ModuleType):
                continue
            elif not _is_documented(value):
                constants.setdefault(type(value).__name__, []).append(name)
            elif elsewhere != full_name:
                links.append(f"* {_link(name, elsewhere)}: {first_sentence(_doc(value))}")
            elif value is Tensor:
                links.append("* [`Tensor`](tensor.md): a typed, multi-dimensional array.")
            else:
                self.names[full_name] = module.page
                own.append((_group(value), self._entry(full_name, value)))
        divided = len(own) > DIVIDED and len({group for group, _ in own}) > 1
        shown = ""
        for group, entry in sorted(own, key=lambda each: each[0]) if divided else own:
            if divided and group != shown:
                lines += [f"## {group}", ""]
                shown = group
            lines += [entry, ""]
        if links:
            lines += ["## Documented elsewhere", "", *links, ""]
        if constants:
            lines += ["## Values", ""]
            for kind, names in sorted(constants.items()):
                lines.append(f"* `{kind}`: {', '.join(f'`{name}`' for name in names)}")
        return "\n".join([*lines, ""])

    def operator(self, value: Any, name: str) -> Operator | None:
        """Return the operator behind a compiled function, found by its name or by the name at the start of its docstring."""
        if not isinstance(value, types.BuiltinFunctionType):
            return None
        documented = re.match(r"(\w+)\(", value.__doc__ or "")
        for candidate in (value.__name__, documented[1] if documented else "", name):
            if found := self._operators.get(candidate) or self._operators.get(candidate.removesuffix("_")):
                return found
        return None

    # --- names ---

    def _entry(self, full_name: str, value: Any) -> str:
        stub = read_stub((getattr(value, "__module__", None) or "rushlight_core").split(".")[0])
        if isinstance(value, type):
            return self._class(full_name, value, stub)
        name = full_name.rpartition(".")[2]
        return directive("py:function", self._signatures(name, value, stub, name), _body(value))

    def _class(self, full_name: str, value: type, stub: Stub) -> str:
        kind = "py:exception" if issubclass(value, BaseException) else "py:class"
        name = full_name.rpartition(".")[2]
        parts = [_body(value)]
        if bases := [self._objects[id(base)] for base in value.__mro__[1:] if id(base) in self._objects]:
            parts.insert(0, f"Base: {_reference(bases[0])}")
        for member, attribute in sorted(self._members(value)):
            parts.append(self._member(name, member, attribute, stub))
        return directive(
            kind, self._signatures(name, value, stub, name)[:1], "\n\n".join(filter(None, parts))
        )

    def _members(self, value: type) -> Iterator[tuple[str, Any]]:
        """Yield public methods and properties with a docstring that are not documented with a public base."""
        seen: set[str] = set()
        documented = [base for base in value.__mro__[1:] if id(base) in self._objects]
        for base in value.__mro__:
            if any(issubclass(other, base) for other in documented) or not base.__module__.startswith(
                "rushlight"
            ):
                continue
            for name, attribute in vars(base).items():
                if name.startswith("_") or name in seen or not _doc(attribute):
                    continue
                seen.add(name)
                inner = getattr(attribute, "__func__", attribute)
                if isinstance(inner, property | functools.cached_property) or callable(inner):
                    yield name, attribute

    def _member(self, owner: str, name: str, attribute: Any, stub: Stub) -> str:
        if isinstance(attribute, property | functools.cached_property) or inspect.isgetsetdescriptor(
            attribute
        ):
            return directive("py:property", [name], markdown(_doc(attribute)))
        if isinstance(attribute, type):
            return ""
        inner = getattr(attribute, "__func__", attribute)
        kind = {staticmethod: "py:staticmethod", classmethod: "py:classmethod"}.get(
            type(attribute), "py:method"
        )
        heads = self._signatures(name, inner, stub, f"{owner}.{name}", drop_first=kind != "py:staticmethod")
        return directive(kind, heads, _body(inner))

    def _tensor_page(self) -> str:
        lines = [
            "# Tensor",
            "",
            "The methods that are operators have their entries on the pages of their families.",
            "",
        ]
        parts = [markdown(Tensor.__doc__ or "")]
        links = []
        for name in sorted(dir(Tensor)):
            value = getattr(Tensor, name)
            operator = self._operators.get(name) or self._operators.get(name.rstrip("_"))
            if name.startswith("_") or not _doc(value):
                continue
            if operator is not None:
                links.append(f"* {_link(name, operator.full_name)}: {operator.summary}")
            else:
                self.names[f"rushlight.Tensor.{name}"] = "tensor"
                raw = inspect.getattr_static(Tensor, name)
                parts.append(self._member("Tensor", name, raw, self._core))
        lines += [directive("py:currentmodule", ["rushlight"], ""), ""]
        lines += [directive("py:class", ["Tensor"], "\n\n".join(filter(None, parts))), ""]
        return "\n".join([*lines, "## Methods that are operators", "", *links, ""])

    # --- signatures ---

    def _signatures(
        self, shown: str, value: Any, stub: Stub, key: str, drop_first: bool = False
    ) -> list[str]:
        """Return the signatures of a function or class: its own, or those of the stub if it is compiled."""
        try:
            signature = inspect.signature(value)
        except (TypeError, ValueError):
            found = stub.signatures.get(key) or stub.signatures.get(f"{key}.__init__")
            found = found or ([""] if isinstance(value, type) else ["(...)"])
            if isinstance(value, type):
                found = [text.removesuffix(" -> None") for text in found]
            return [shown + text for text in found]
        inner = inspect.unwrap(getattr(value, "__init__") if isinstance(value, type) else value)  # noqa: B009
        names = getattr(inner, "__globals__", {})
        parameters = [
            parameter.replace(
                annotation=self._annotation(parameter.annotation, names), default=_default(parameter.default)
            )
            for parameter in list(signature.parameters.values())[1 if drop_first else 0 :]
        ]
        result = signature.return_annotation
        result = inspect.Signature.empty if isinstance(value, type) else self._annotation(result, names)
        return [shown + str(signature.replace(parameters=parameters, return_annotation=result))]

    def _annotation(self, annotation: Any, names: dict[str, Any]) -> Any:
        """Return an annotation as it is written, but with the full names of documented classes, which become links."""
        if not isinstance(annotation, str):
            return annotation

        def qualified(found: re.Match[str]) -> str:
            value = names.get(found[0])
            if id(value) in self._objects and isinstance(value, type):
                return self._objects[id(value)]
            if found[0] in self._ambiguous and isinstance(value, type):
                return f"{value.__module__}.{value.__qualname__}"
            return found[0]

        return _Annotation(re.sub(r"(?<![\w.])[A-Z]\w*", qualified, annotation))


def _described(module: types.ModuleType) -> str:
    """Return the docstring of the module that defines the names, if the imported module only re-exports them."""
    own = module.__doc__ or ""
    home = re.match(r".*: `?(rushlight_\w+(?:\.\w+)*)`?[.,;]?(?:$|\s)", own)
    return (importlib.import_module(home[1]).__doc__ or own) if home else own


def _public(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name in vars(module) if not name.startswith("_")]
    for name in sorted(set(names), key=lambda name: (name.lower(), name)):
        if not name.startswith("_"):
            yield name, getattr(module, name)


def _is_documented(value: Any) -> bool:
    """Return whether a value is a class or a function, with its own documentation."""
    if isinstance(value, types.ModuleType | enum.Enum):
        return False
    return isinstance(value, type) or (callable(value) and bool(_doc(value)) and hasattr(value, "__name__"))


def _doc(value: Any) -> str:
    doc = getattr(value, "__doc__", None)
    return doc if isinstance(doc, str) else ""


def _body(value: Any) -> str:
    """Return the docstring without the signatures with which docstrings of compiled functions begin."""
    doc = inspect.cleandoc(_doc(value))
    if isinstance(value, types.BuiltinFunctionType | types.MethodDescriptorType):
        doc = re.sub(r"\A(?:\w+\(.*\n)+\n?", "", doc + "\n")
    if isinstance(value, type) and value.__doc__ and re.match(rf"{value.__name__}\(", value.__doc__):
        doc = doc.partition("\n\n")[2] or doc  # the docstring that Python generates for a dataclass
    return markdown(doc)


def _group(value: Any) -> str:
    """Return a title from the file that defines a name."""
    home = (getattr(value, "__module__", "") or "").split(".")
    words = home[-1].strip("_").replace("_", " ")
    return "Types and settings" if len(home) < 2 or words == "C" else words[:1].upper() + words[1:]


class _Annotation:
    """An annotation that is shown as it is written in the source, without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _default(value: Any) -> Any:
    """Return a default as source text; an object without one is shown as `...`."""
    if value is inspect.Parameter.empty:
        return value
    text = repr(value)
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return _Annotation(value.__name__)
    return _Annotation("...") if "<" in text and not isinstance(value, str) else value


def _reference(full_name: str) -> str:
    return f"{{py:obj}}`{full_name}`"


def _link(name: str, target: str) -> str:
    return f"{{py:obj}}`{name} <{target}>`"
