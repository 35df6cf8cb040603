"""Read the operators of YAML files as objects of `model.py`. An unknown key is an error; errors name the file and line."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from .dtypes import DTypesError, dtypes_of, element_types
from .expects import ExpectsError, checks_of
from .layouts import LayoutError, check_layout
from .model import KINDS, SYNCHRONISES, VIEWS, Op, Sample
from .onnx_rules import OnnxRuleError, check_onnx
from .results import WORDS, ResultError, check_result
from .schema import SchemaError, parse_schema
from .shapes import ShapesError, check_shapes


class EntryError(ValueError):
    """Raised for an invalid entry, as in "ops/arithmetic.yaml:12: add: unknown key 'functr'"."""


VARIANTS = {"function", "method", "inplace", "out", "nn", "hidden"}
# Classes that the key `raises` may name.
ERRORS = (
    "IndexError",
    "LinAlgError",
    "NotImplementedError",
    "OutOfMemoryError",
    "RuntimeError",
    "TypeError",
    "ValueError",
)
OPS = Path(__file__).parent.parent / "ops"  # next to codegen/, also when installed
_KEYS = {f.name for f in fields(Op)} - {"name", "schema", "family", "source", "line"} | {"op", "signature"}


# libyaml is ten times faster than the parser in Python, with the same result.
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SCALARS = yaml.constructor.SafeConstructor()


def construct_with_lines(node: yaml.Node) -> object:
    """Convert a YAML node to Python data.

    The entry "__line__" of each mapping contains the number of the line at which the mapping begins."""
    if isinstance(node, yaml.MappingNode):
        data: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key in data:
                raise EntryError(f"{key_node.start_mark.line + 1}: key {key!r} is listed twice")
            data[key] = construct_with_lines(value_node)
        data["__line__"] = node.start_mark.line + 1
        return data
    if isinstance(node, yaml.SequenceNode):
        return [construct_with_lines(item) for item in node.value]
    if node.tag == "tag:yaml.org,2002:str":
        return node.value
    constructor = _SCALARS.yaml_constructors.get(
        node.tag, yaml.constructor.SafeConstructor.construct_undefined
    )
    try:
        return constructor(_SCALARS, node)
    except (yaml.YAMLError, ValueError) as error:
        text = getattr(error, "problem", None) or error
        raise EntryError(f"{node.start_mark.line + 1}: {node.value!r}: {text}") from None


def _compose(text: str) -> yaml.Node | None:
    """Return the root node of a YAML document, or None if the document is empty.

    If libyaml finds an error, the document is parsed again in Python, because the errors of PyYAML's parser state the line.
    """
    try:
        return yaml.compose(text, Loader=_PARSER)
    except yaml.YAMLError:
        return yaml.compose(text, Loader=yaml.SafeLoader)


def load_entries(folder: Path) -> list[tuple[Path, dict[str, object]]]:
    """Return all entries of a folder's YAML files, sorted by file name and then by line.

    Raises:
        FileNotFoundError: the folder has no YAML file.
    """
    entries = []
    paths = sorted(folder.glob("*.yaml"))
    if not paths:
        raise FileNotFoundError(f"{folder} has no YAML files")
    for path in paths:
        try:
            node = _compose(path.read_text())
        except yaml.YAMLError as error:
            raise EntryError(f"{path}: {error}") from None
        if node is None:
            continue
        try:
            data = construct_with_lines(node)
        except EntryError as error:
            raise EntryError(f"{path}:{error}") from None
        if not isinstance(data, list):
            raise EntryError(f"{path}:1: the file must be a list of entries")
        entries += [(path, entry) for entry in data]
    return entries


def load_ops(folder: Path = OPS) -> list[Op]:
    """Read all operators of `folder`, by default the operators of core."""
    ops = [_op(path, entry) for path, entry in load_entries(folder)]
    seen: dict[str, Op] = {}
    for op in ops:
        if op.name in seen:
            other = seen[op.name]
            raise EntryError(
                f"{op.source}:{op.line}: {op.name} is defined in {other.source}:{other.line} already"
            )
        seen[op.name] = op
    _check_symbols(ops)
    return ops


def _check_symbols(ops: list[Op]) -> None:
    """Raise EntryError if two operators get the same C++ name, as a.b and a_b do: dots become underscores."""
    seen: dict[str, tuple[Op, str]] = {}
    for op in ops:
        for form in op.forms():
            other, name = seen.setdefault(form.symbol, (op, form.name))
            if name != form.name:
                raise EntryError(
                    f"{op.source}:{op.line}: {form.name} and {name} of {other.source}:{other.line} are both {form.symbol}"
                    " in C++; give one overload another name"
                )


def _op(path: Path, entry: dict[str, object]) -> Op:
    line = int(entry.pop("__line__"))  # type: ignore[call-overload]
    name = entry.get("op")

    def fail(text: str) -> EntryError:
        return EntryError(f"{path}:{line}: {name}: {text}")

    if not isinstance(name, str):
        raise fail("an entry must begin with `op: name`")
    for key in entry:
        if key not in _KEYS:
            raise fail(f"unknown key {key!r}; known are {', '.join(sorted(_KEYS))}")
    for key in ("signature", "kind", "doc"):
        if key not in entry:
            raise fail(f"key {key!r} is missing")
    if entry["kind"] not in KINDS:
        raise fail(f"unknown kind {entry['kind']!r}; known are {', '.join(KINDS)}")
    try:
        schema = parse_schema(str(entry["signature"]))
    except (SchemaError, ValueError, SyntaxError) as error:
        raise fail(str(error)) from None
    values: dict[str, Any] = {k: v for k, v in entry.items() if k not in ("op", "signature")}
    variants = frozenset(values.get("variants", ("function", "method")))
    if variants - VARIANTS:
        raise fail(f"unknown variants {sorted(variants - VARIANTS)}; known are {sorted(VARIANTS)}")
    values["variants"] = variants
    if not isinstance(values.get("c", False), bool):
        raise fail(f"key 'c' must be true or false, got {values['c']!r}")
    values["result"] = str(values.get("result", ""))
    if values.get("kind") == "view":
        values.setdefault("dtypes", "any float8")
    values["law"] = tuple(str(text) for text in values.get("law", ()))
    if "view" in values and values["view"] not in VIEWS:
        raise fail(f"`view: {values['view']}` is not one of {', '.join(VIEWS)}")
    if "synchronises" in values and values["synchronises"] not in SYNCHRONISES:
        raise fail(f"`synchronises: {values['synchronises']}` is not one of {', '.join(SYNCHRONISES)}")
    layout = values.get("layout", ())
    values["layout"] = (layout,) if isinstance(layout, str) else tuple(str(text) for text in layout)
    for key in (
        "bool_inputs",
        "castable",
        "none_is_default",
        "aux",
        "writes",
        "synonyms",
        "rule_only",
        "host",
    ):
        values[key] = tuple(values.get(key, ()))
    for key in ("bool_inputs", "castable", "none_is_default", "writes", "rule_only", "host"):
        for argument in values[key]:
            if argument not in [a.name for a in schema.arguments]:
                raise fail(f"{key} names {argument!r}, which is not an argument")
    for argument in schema.arguments:
        if argument.required and argument.name in values["none_is_default"]:
            raise fail(f"none_is_default names {argument.name!r}, which has no default")
    for key in ("samples", "errors"):
        texts = values.get(key, [])
        values[key] = tuple(Sample(str(text), line) for text in texts)
    for key in ("aliases", "expects", "arguments", "raises", "shapes"):
        values.get(key, {}).pop("__line__", None)
    expects = values.get("expects", {})
    for key in ("expects", "arguments"):
        for argument in values.get(key, {}):
            if argument not in [a.name for a in schema.arguments]:
                raise fail(f"{key} names {argument!r}, which is not an argument")
    for name_of_error in values.get("raises", {}):
        if name_of_error not in ERRORS:
            raise fail(f"raises names {name_of_error!r}, which is not one of {', '.join(ERRORS)}")
    for key in ("arguments", "raises"):
        for what, text in values.get(key, {}).items():
            if not str(text).endswith("."):
                raise fail(
                    f"{key}: the text of {what!r} is not a sentence, as it does not end with a full stop"
                )
    values["shapes"] = {argument: str(text) for argument, text in values.get("shapes", {}).items()}
    values["expects"] = tuple((argument, str(text)) for argument, text in expects.items())
    op = Op(name=name, schema=schema, family=path.stem, source=path, line=line, **values)
    if op.expects and op.kind not in ("custom", "dynamic", "composite", "storage"):
        raise fail(f"the key 'expects' is not allowed for the kind {op.kind}")
    if op.inplace_body and (op.kind != "composite" or "inplace" not in op.variants):
        raise fail("the key 'inplace_body' is only allowed for composites with the variant inplace")
    if op.overwrites and (op.kind != "custom" or "inplace" not in op.variants or op.aux):
        raise fail(
            "the key 'overwrites' is only allowed for custom kernels with the variant inplace and one result"
        )
    if op.computes_in_out and "out" not in op.variants:
        raise fail("the key 'computes_in_out' is only allowed for operators with the variant out")
    try:
        checks_of(op)
        check_layout(op)
        check_result(op)
        check_shapes(op)
        check_onnx(op)
        dtypes_of(op.dtypes)
        if op.kind in WORDS:
            element_types(op.dtypes, op.result)
    except (DTypesError, ExpectsError, LayoutError, OnnxRuleError, ResultError, ShapesError) as error:
        raise fail(str(error)) from None
    return op
