"""Signatures, such as `(Tensor input, int dim, *, bool keepdim=False) -> (Tensor values, Tensor indices)`."""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass

from .argument_types import TYPES, Type


class SchemaError(ValueError):
    """Raised for an invalid signature. The loader adds the file and the line to the error message."""


@dataclass(frozen=True)
class Argument:
    """A parameter of an operator.

    `fill` is the n of `int[n]`: a single int is accepted, too, and repeated n times. `write` is true for
    `Tensor(w!)`, a tensor that the operator modifies.
    """

    name: str
    type: Type
    default: object = ...  # Ellipsis: required
    keyword_only: bool = False
    write: bool = False
    fill: int = 0
    varargs: bool = False  # `int[]... size`: may also be passed as separate positional arguments

    @property
    def required(self) -> bool:
        return self.default is ...


@dataclass(frozen=True)
class Return:
    """A result. `name` is empty unless the result is a field of a named tuple."""

    type: str  # Tensor, Tensor[], bool, int, float, Scalar
    name: str = ""


@dataclass(frozen=True)
class Schema:
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]

    def text(self, name: str) -> str:
        """Return the canonical text of the signature, which is hashed and which error messages show."""
        parts, starred = [], False
        for a in self.arguments:
            if a.keyword_only and not starred:
                parts.append("*")
                starred = True
            kind = a.type.name.replace("[]", f"[{a.fill}]") if a.fill else a.type.name
            kind = kind.replace("Tensor", "Tensor(w!)", 1) if a.write else kind
            dots = "..." if a.varargs else ""
            parts.append(f"{kind}{dots} {a.name}" + ("" if a.required else f"={a.default}"))
        returns = [f"{r.type} {r.name}".strip() for r in self.returns]
        result = returns[0] if len(returns) == 1 else f"({', '.join(returns)})"
        return f"{name}({', '.join(parts)}) -> {result}"

    def hash(self, name: str) -> int:
        return int.from_bytes(hashlib.sha256(self.text(name).encode()).digest()[:8], "big")

    # --- C++ ---

    @property
    def cpp_return(self) -> str:
        if not self.returns:
            return "void"
        kinds = [CPP_RETURNS[r.type] for r in self.returns]
        return kinds[0] if len(kinds) == 1 else f"std::tuple<{', '.join(kinds)}>"

    @property
    def cpp_signature(self) -> str:
        return f"{self.cpp_return}({', '.join(a.type.cpp for a in self.arguments)})"

    def cpp_parameters(self, defaults: bool = False) -> str:
        parts = []
        for a in self.arguments:
            text = f"{a.type.cpp} {cpp_name(a.name)}"
            if defaults and not a.required:
                text += f" = {cpp_default(a)}"
            parts.append(text)
        return ", ".join(parts)

    def cpp_arguments(self) -> str:
        return ", ".join(cpp_name(a.name) for a in self.arguments)


CPP_RETURNS = {
    "Tensor": "Tensor",
    "Tensor[]": "std::vector<Tensor>",
    "bool": "bool",
    "int": "int64_t",
    "float": "double",
    "Scalar": "Scalar",
}
_CPP_KEYWORDS = {"default", "template", "register", "and", "or", "not", "xor"}
_CPP_KEYWORDS |= {"float", "double", "long", "int", "short", "char", "bool"}


def cpp_name(name: str) -> str:
    return name + "_" if name in _CPP_KEYWORDS else name


def cpp_default(a: Argument) -> str:
    """Return the default value of a parameter as C++ code. If the default is a list, it must contain ints."""
    value = a.default
    if value is None:
        return {"Tensor?": "Tensor()", "Generator?": "nullptr"}.get(a.type.name, "std::nullopt")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        if a.type.name.startswith("int[]"):
            return f"kInts<{', '.join([str(value)] * max(a.fill, 1))}>"
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return f"{'-' if value < 0 else ''}std::numeric_limits<double>::infinity()"
        return f"Scalar({value})" if a.type.name == "Scalar" else str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return f"kInts<{', '.join(map(str, value))}>" if value else "IntList()"
    raise SchemaError(f"default {value!r} of {a.name} cannot be written in C++")


_ARGUMENT = re.compile(
    r"^(?P<type>Tensor(?P<write>\(w!\))?(?:\?)?(?:\[\])?|[A-Za-z]+\??(?:\[(?P<fill>\d*)\])?\??)"
    r"(?P<dots>\.\.\.)?\s+(?P<name>[A-Za-z_]\w*)(?:\s*=\s*(?P<default>.+))?$"
)


def parse_schema(text: str) -> Schema:
    """Parse a signature.

    Raises:
        SchemaError: the signature is invalid. The error message quotes the invalid part.
    """
    match = re.fullmatch(r"\((?P<arguments>.*)\)\s*->\s*(?P<returns>.+)", text.strip(), re.S)
    if not match:
        raise SchemaError(f"{text!r} is not of the form '(arguments) -> result'")
    arguments, keyword_only = [], False
    for part in _split(match["arguments"]):
        if part == "*":
            keyword_only = True
            continue
        arguments.append(_parse_argument(part, keyword_only))
    names = [a.name for a in arguments]
    if len(set(names)) != len(names):
        raise SchemaError(f"{text!r} names an argument twice")
    return Schema(tuple(arguments), _parse_returns(match["returns"]))


def _parse_argument(text: str, keyword_only: bool) -> Argument:
    match = _ARGUMENT.match(text)
    if not match:
        raise SchemaError(f"argument {text!r} is not of the form 'type name=default'")
    kind = match["type"].replace("(w!)", "")
    fill = int(match["fill"]) if match["fill"] else 0
    if fill:
        kind = kind.replace(f"[{fill}]", "[]")
    if kind not in TYPES:
        raise SchemaError(f"argument {text!r}: unknown type {kind!r}; known are {', '.join(TYPES)}")
    default: object = ...
    if match["default"] is not None:
        literal = match["default"].strip()
        default = float(literal) if literal in ("inf", "-inf") else ast.literal_eval(literal)
        if isinstance(default, list):
            default = tuple(default)
    return Argument(
        match["name"], TYPES[kind], default, keyword_only, bool(match["write"]), fill, bool(match["dots"])
    )


def _parse_returns(text: str) -> tuple[Return, ...]:
    text = text.strip()
    if text == "()":
        return ()
    parts = _split(text[1:-1]) if text.startswith("(") else [text]
    returns = []
    for part in parts:
        words = part.split()
        if words[0] not in CPP_RETURNS or len(words) > 2:
            raise SchemaError(f"result {part!r} is not one of {', '.join(CPP_RETURNS)}")
        returns.append(Return(words[0], words[1] if len(words) == 2 else ""))
    return tuple(returns)


def _split(text: str) -> list[str]:
    """Split a text at the commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text + ","):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            if text[start:i].strip():
                parts.append(text[start:i].strip())
            start = i + 1
    return parts
