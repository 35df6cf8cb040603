"""Compute the dtypes of results from an operator's YAML entry, by PyTorch's promotion rules.

The rules are implemented independently of core, and tests compare core's results with them. `result_dtypes(op, arguments)`
reads the keys `kind`, `compute` and `result` of an entry; `rushlight_core.codegen.results` defines the language of `result`.
"""

from __future__ import annotations

from typing import Any

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_core.codegen.results import DTYPES, evaluate, rule_of

__all__ = ["promote", "result_dtypes"]

_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_SIGNED = ("int8", "int16", "int32", "int64")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_COMPLEX_OF = {
    "float16": "complex64", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128",
}  # fmt: skip
_REAL_OF = {"complex64": "float32", "complex128": "float64"}


def _category(dtype: str) -> int:
    """Return the category of a dtype: 0 bool, 1 integers, 2 floating point, 3 complex."""
    if dtype == "bool":
        return 0
    return 1 if dtype in _UNSIGNED + _SIGNED else 2 if dtype in _FLOATS else 3


def _pair(a: str, b: str) -> str:
    """Return the dtype to which PyTorch promotes two dtypes."""
    if a == b:
        return a
    first, second = sorted((a, b), key=_category)
    low, high = _category(first), _category(second)
    if low < high:
        if high == 3 and first == "float64":
            return "complex128"
        return second
    if high == 3:
        return "complex128"
    if high == 2:
        if {a, b} == {"float16", "bfloat16"}:
            return "float32"
        return max(a, b, key=_FLOATS.index)
    bits = {name: int(name.lstrip("uint")) for name in (a, b)}
    if (a in _SIGNED) == (b in _SIGNED):
        return max(a, b, key=lambda name: bits[name])
    unsigned, signed = (a, b) if a in _UNSIGNED else (b, a)
    if bits[signed] > bits[unsigned]:
        return signed
    if unsigned == "uint64":
        raise TypeError(f"{a} and {b}: no integer dtype can represent both")
    return f"int{2 * bits[unsigned]}"


def _over(high: str | None, low: str | None) -> str | None:
    """Return the dtype to which operands of dtype `high` and operands of dtype `low` promote.

    The operands of dtype `high` take precedence, as tensors do over numbers: `low` affects the result only if
    its category is higher, as for a float tensor and a complex number. If one of the dtypes is None, return
    the other.
    """
    if high is None or low is None:
        return high or low
    if _category(high) == 3:
        return high
    if _category(high) == 2:
        return _COMPLEX_OF[high] if _category(low) == 3 else high
    return _pair(high, low) if high == "bool" or _category(low) >= 2 else high


def promote(*operands: Any) -> str | None:
    """Return the name of the dtype to which tensors, numbers and lists of these promote.

    Operands that are None are ignored, including those in lists. If all operands are None, the result is
    None.

    Raises:
        TypeError: no dtype can hold the values of all operands, as for uint64 and int8.

    Example:
        >>> promote(torch.ones(2), 1j)
        'complex64'
        >>> promote(torch.ones(2, dtype=torch.int8), torch.tensor(1))
        'int8'
    """
    levels: list[str | None] = [None, None, None]  # tensors with dimensions, 0-d tensors, Python numbers

    def add(level: int, name: str) -> None:
        known = levels[level]
        levels[level] = name if known is None else _pair(known, name)

    def visit(value: Any) -> None:
        if isinstance(value, (list, tuple)):
            for one in value:
                visit(one)
        elif isinstance(value, core.Tensor):
            add(0 if value.dim() else 1, _name(value.dtype))
        elif isinstance(value, (core.dtype, str)):
            add(0, _name(value))
        elif value is not None:
            default = _name(core.get_default_dtype())
            kinds = {bool: "bool", int: "int64", float: default, complex: _COMPLEX_OF[default]}
            add(2, kinds[type(value)])

    visit(operands)
    return _over(_over(levels[0], levels[1]), levels[2])


def _name(value: Any) -> str:
    return str(value).rsplit(".", 1)[-1]


def _dtype_of(value: Any) -> str | None:
    """Return the dtype of a tensor or a number. Return a dtype unchanged."""
    return promote(value)


def _floating(value: Any) -> str:
    name = _dtype_of(value)
    return _name(core.get_default_dtype()) if name is None or _category(name) < 2 else name


def _real(value: Any) -> str | None:
    name = _dtype_of(value)
    return _REAL_OF.get(name or "", name)


def _complexed(value: Any) -> str:
    return _COMPLEX_OF.get(_floating(value), _floating(value))


def _summed(value: Any) -> str | None:
    name = _dtype_of(value)
    return "int64" if name is not None and _category(name) < 2 else name


def _numeric(value: Any) -> str | None:
    name = _dtype_of(value)
    return "int64" if name == "bool" else name


def _computed(value: Any) -> str | None:
    name = _dtype_of(value)
    return "float32" if name in ("float16", "bfloat16") else name


_FUNCTIONS: dict[str, Any] = {
    "promote": promote,
    "each": tuple,
    "floating": _floating,
    "real": _real,
    "complexed": _complexed,
    "summed": _summed,
    "computed": _computed,
    "numeric": _numeric,
}


def result_dtypes(op: Op, arguments: dict[str, Any], count: int) -> list[str | None]:
    """Return the names of the dtypes that an operator's YAML entry declares for the results of a call.

    Args:
        op: the YAML entry.
        arguments: the arguments of the call by name.
        count: the number of results; a rule for a list of results applies to each of its items.

    Raises:
        AssertionError: the entry declares dtypes for more or fewer than `count` results.

    Example:
        >>> from rushlight_testing.operators import operators
        >>> op = next(op for op in operators() if op.name == "add")
        >>> result_dtypes(op, {"input": torch.ones(2), "other": 1j}, 1)
        ['complex64']
    """
    names = (
        _FUNCTIONS | {name: getattr(core, name) for name in DTYPES} | {"default": core.get_default_dtype()}
    )
    declared = evaluate(rule_of(op), arguments, names)
    each = list(declared) if isinstance(declared, tuple) else [declared] * count
    if len(each) != count:
        raise AssertionError(f"{op.name}: {len(each)} dtypes are declared, but there are {count} results")
    return [_dtype_of(one) for one in each]
