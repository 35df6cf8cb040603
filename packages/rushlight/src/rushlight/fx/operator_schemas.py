"""Signatures of operators, and calls with normalized arguments, which include all default values."""

from __future__ import annotations

import ast
import functools
import inspect
import numbers
import re
import types
import typing
import warnings
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import rushlight_core as core
from rushlight.fx.immutable_collections import immutable_list
from rushlight.fx.node import Argument, Node

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]

_TYPES: dict[str, Any] = {
    "Generator": core.Generator,
    "Scalar": numbers.Number,
    "Tensor": core.Tensor,
    "TensorOrScalar": typing.Union[core.Tensor, numbers.Number],  # noqa: UP007 - read by get_origin
    "bool": bool,
    "device": core.device,
    "dtype": core.dtype,
    "float": float,
    "int": int,
    "str": str,
}
_SCHEMA = re.compile(r"(?P<name>[^(]+)\((?P<parameters>.*)\) -> (?P<results>.*)")
_PARAMETER = re.compile(r"(?P<type>\S+) (?P<name>\w+)(?:=(?P<default>.*))?")
# A comma that separates parameters. Commas in a default value are inside parentheses.
_COMMA = re.compile(r", (?![^(]*\))")


class ArgsKwargsPair(NamedTuple):
    """The positional and keyword arguments of a call.

    Example:
        >>> ArgsKwargsPair((1,), {"dim": 0})
        ArgsKwargsPair(args=(1,), kwargs={'dim': 0})
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _type(text: str) -> Any:
    """Return the Python type for a type in a schema: `int[2]` is `list[int]`, and `Tensor?` is `Optional[Tensor]`."""
    text = re.sub(r"\([^)]*\)", "", text)  # marks of writes and aliases
    if text.endswith("..."):
        text = text[:-3]
    if text.endswith("?"):
        return typing.Optional[_type(text[:-1])]  # noqa: UP045 - read by get_origin
    if match := re.fullmatch(r"(.*)\[\d*\]", text):
        return list[_type(match.group(1))]  # type: ignore[misc]
    return _TYPES[text]


def _default(text: str, kind: str) -> Any:
    if text == "()" and kind.startswith("int["):
        return immutable_list()
    if kind.startswith("str") and text != "None":
        return text
    value = ast.literal_eval(text)
    return immutable_list(value) if isinstance(value, tuple) else value


class _Schema(NamedTuple):
    text: str
    signature: Signature
    is_mutable: bool


def _schema(text: str) -> _Schema:
    match = _SCHEMA.fullmatch(text)
    assert match is not None
    parameters: list[Parameter] = []
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    for part in _COMMA.split(match.group("parameters")) if match.group("parameters") else ():
        if part == "*":
            kind = Parameter.KEYWORD_ONLY
            continue
        found = _PARAMETER.fullmatch(part)
        assert found is not None
        name, given = found.group("name"), found.group("default")
        if name in ("from", "lambda"):  # a keyword of Python, so that it and all before it are positional
            parameters = [parameter.replace(kind=Parameter.POSITIONAL_ONLY) for parameter in parameters]
        own = Parameter.POSITIONAL_ONLY if name in ("from", "lambda") else kind
        default = Parameter.empty if given is None else _default(given, found.group("type"))
        parameters.append(Parameter(name, own, default=default, annotation=_type(found.group("type"))))
    results = match.group("results")
    if results.startswith("("):
        kinds = [_type(part.split(" ")[0]) for part in results[1:-1].split(", ") if part]
        returned: Any = tuple(kinds) if kinds else None
    else:
        returned = _type(results.split(" ")[0])
    return _Schema(
        text, Signature(parameters, return_annotation=returned), "(w!)" in match.group("parameters")
    )


@functools.cache
def _schemas() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, text in core._C._operators():
        found.setdefault(name.partition(".")[0], []).append(text)
    return found


@functools.cache
def _schemas_of(name: str) -> tuple[_Schema, ...]:
    return tuple(_schema(text) for text in _schemas().get(name, ()))


def _schemas_of_function(op: Callable[..., Any]) -> tuple[_Schema, ...]:
    from rushlight.ops import _Aten, _Overload

    if isinstance(op, _Aten):
        return _schemas_of(op._name)
    if isinstance(op, _Overload):
        name, _, overload = op.__name__.partition(".")
        found = _schemas_of(name)
        exact = tuple(schema for schema in found if schema.text.startswith(f"{name}.{overload}("))
        return exact or found
    if isinstance(op, types.BuiltinFunctionType) and op.__module__ == core._C.__name__:
        return _schemas_of(op.__name__)
    return ()


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """Return the signatures of an operator, one for each of its overloads.

    Args:
        op: a function such as `torch.add`, or an operator of `torch.ops.aten`.
        return_schemas: whether to return a tuple of the signatures and the schemas, which are strings.

    Returns:
        a list of objects of type `inspect.Signature`, whose annotations are types, or None if `op` is not an operator.

    Example:
        >>> for signature in get_signature_for_torch_op(torch.flatten):
        ...     print(list(signature.parameters))
        ['input', 'start_dim', 'end_dim']
    """
    found = _schemas_of_function(op)
    signatures = [schema.signature for schema in found] or None
    if not return_schemas:
        return signatures
    return signatures, [schema.text for schema in found] or None


def check_for_mutable_operation(
    target: Callable[..., Any], args: tuple[Argument, ...], kwargs: dict[str, Argument]
) -> None:
    """Raise RuntimeError if the call of an operator writes to one of its arguments.

    A call that fits several overloads of the operator is not checked.

    Raises:
        RuntimeError: the call writes to an argument.

    Example:
        >>> check_for_mutable_operation(torch.relu_, (torch.ones(2),), {})
        Traceback (most recent call last):
            ...
        RuntimeError: fx: relu_(Tensor(w!) input) -> Tensor writes to an argument, ...
    """
    fitting = [schema for schema in _schemas_of_function(target) if _binds(schema.signature, args, kwargs)]
    if len(fitting) == 1 and fitting[0].is_mutable:
        raise RuntimeError(
            f"fx: {fitting[0].text} writes to an argument, which a tracer with check_mutable_operations does not record\n"
            "hint: use the operator that returns a new tensor"
        )


def create_type_hint(x: Any) -> Any:
    """Convert a list or tuple of types to a type such as `list[int]`, and return any other `x` unchanged.

    The element type is the type in `x` of which all others are subclasses, or Any if there is no such type.

    Example:
        >>> create_type_hint([int, bool])
        list[int]
        >>> create_type_hint((int, str))
        tuple[typing.Any, ...]
    """
    if not isinstance(x, (list, tuple)):
        return x
    base: Any = Any
    try:
        base = next((kind for kind in x if all(issubclass(other, kind) for other in x)), Any)
    except TypeError:
        warnings.warn(f"fx: cannot create a type for the elements of {x}", stacklevel=2)
        return x
    return list[base] if isinstance(x, list) else tuple[base, ...]


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Return whether an argument of type `argument_type` can be passed for a parameter of type `signature_type`.

    An int can be passed for a list of ints, an int or a float for a number, and a tuple for a list.

    Example:
        >>> type_matches(list[int], int), type_matches(list[int], tuple[int, ...]), type_matches(int, str)
        (True, True, False)
    """
    if signature_type is argument_type or signature_type is Any:
        return True
    origin, contained = typing.get_origin(signature_type), typing.get_args(signature_type)
    if origin in (typing.Union, types.UnionType):
        return signature_type == argument_type or any(type_matches(part, argument_type) for part in contained)
    if origin is list:
        element = contained[0]
        if argument_type is int and element is int:
            return True
        if typing.get_origin(argument_type) not in (list, tuple):
            return False
        given = [part for part in typing.get_args(argument_type) if part not in (..., ())]
        return all(type_matches(element, part) for part in given)
    if signature_type is numbers.Number and argument_type in (int, float, bool, complex):
        return True
    if inspect.isclass(argument_type) and inspect.isclass(signature_type):
        return issubclass(argument_type, signature_type)
    return False


def _binds(signature: Signature, args: Any, kwargs: Any) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _accepts(signature: Signature, arg_types: Any, kwarg_types: Any) -> bool:
    try:
        bound = signature.bind(*arg_types, **kwarg_types)
    except TypeError:
        return False
    return all(
        type_matches(signature.parameters[name].annotation, kind) for name, kind in bound.arguments.items()
    )


def _fits_call(signature: Signature, args: Any, kwargs: Any) -> bool:
    """Return whether the arguments, some of which may be nodes without a known type, fit the signature."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return all(_fits(signature.parameters[name].annotation, value) for name, value in bound.arguments.items())


def _fits(annotation: Any, value: Any) -> bool:
    if isinstance(value, Node):
        return True
    origin, contained = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Union:
        return any(_fits(part, value) for part in contained)
    if origin is list:
        if isinstance(value, (list, tuple)):
            return all(_fits(contained[0], part) for part in value)
        return contained[0] is int and isinstance(value, int)
    if annotation is float:
        return isinstance(value, (int, float))
    return isinstance(value, annotation)


def _bound_to_nodes(signature: Signature, args: Any, kwargs: Any) -> str:
    """Return, as text, the name and the declared type of each parameter to which a node is passed."""
    bound = signature.bind(*args, **kwargs).arguments
    found = [
        (name, signature.parameters[name].annotation)
        for name, value in bound.items()
        if isinstance(value, Node)
    ]
    return repr(found)


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the normalized arguments of a function call, which include the defaults of omitted arguments.

    Args:
        target: the function.
        args, kwargs: the arguments, which may be nodes of a graph.
        arg_types, kwarg_types: the types of the arguments. They select the overload of an operator; without them, the
            arguments that are not nodes select it.
        normalize_to_only_use_kwargs: whether to return all arguments as keyword arguments. If False, only the arguments that
            are not in `args` become keyword arguments.

    Returns:
        the arguments, or None if the signature of `target` is not known or has positional-only arguments, `*args` or
        `**kwargs`, or if the call fits no overload.

    Raises:
        RuntimeError: no types are given, and the overload depends on the types of arguments that are nodes.
        TypeError: the arguments do not fit the signature of a function that is written in Python.

    Example:
        >>> x = torch.fx.Graph().placeholder("x")
        >>> normalize_function(torch.flatten, (x, 1))
        ArgsKwargsPair(args=(x, 1), kwargs={'end_dim': -1})
        >>> normalize_function(torch.flatten, (x, 1), normalize_to_only_use_kwargs=True).kwargs
        {'input': x, 'start_dim': 1, 'end_dim': -1}
    """
    given = dict(kwargs or {})
    if schemas := _schemas_of_function(target):
        if arg_types is None and kwarg_types is None:
            found = [schema.signature for schema in schemas if _fits_call(schema.signature, args, given)]
            if len({_bound_to_nodes(signature, args, given) for signature in found}) > 1:
                overloads = "\n".join(schema.text for schema in schemas if schema.signature in found)
                raise RuntimeError(
                    f"fx.normalize_function(target): the call of {target.__name__} fits several overloads\n{overloads}\n"
                    "hint: pass arg_types or kwarg_types"
                )
        else:
            types_ = (arg_types or (), kwarg_types or {})
            found = [schema.signature for schema in schemas if _accepts(schema.signature, *types_)]
        return _normalized(found[0], args, given, normalize_to_only_use_kwargs) if found else None
    known_builtin = getattr(target, "__module__", None) == core._C.__name__
    if isinstance(target, types.BuiltinFunctionType) and not known_builtin:
        return None
    try:
        signature = inspect.signature(inspect.unwrap(target))
    except (TypeError, ValueError):
        return None
    if known_builtin and given.get("out") is None:  # an alias of an operator, such as arcsin
        signature = signature.replace(
            parameters=[p for p in signature.parameters.values() if p.name != "out"]
        )
    return _normalized(signature, args, given, normalize_to_only_use_kwargs)


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the normalized arguments of a layer call, which include the defaults of omitted arguments.

    Args:
        root: the module that contains the layer.
        target: the path of the layer in `root`.
        args, kwargs: the arguments, which may be nodes of a graph.
        normalize_to_only_use_kwargs: whether to return all arguments as keyword arguments.

    Returns:
        the arguments, or None if the module is not a layer of `torch.nn`.

    Raises:
        RuntimeError: `root` has no submodule `target`.
        TypeError: the arguments do not fit the signature of the layer's `forward`.

    Example:
        >>> normalize_module(nn.Sequential(nn.ReLU()), "0", (torch.ones(2),), normalize_to_only_use_kwargs=True).kwargs
        {'input': tensor([1., 1.])}
    """
    import rushlight_nn as nn

    try:
        layer = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(f"fx.normalize_module(target): the module has no submodule '{target}'") from error
    if getattr(nn, type(layer).__name__, None) is not type(layer):
        return None
    signature = inspect.signature(inspect.unwrap(layer.forward))
    return _normalized(signature, args, dict(kwargs or {}), normalize_to_only_use_kwargs)


def _normalized(
    signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any], only_kwargs: bool
) -> ArgsKwargsPair | None:
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    if any(parameter.kind not in kinds for parameter in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    values = list(bound.arguments.items())
    first = 0 if only_kwargs else len(args)
    return ArgsKwargsPair(tuple(value for _, value in values[:first]), dict(values[first:]))
