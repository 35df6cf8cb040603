"""The YAML key `dtypes`: the dtypes that an operator accepts, on every device that supports the operator.

    dtypes: floating complex       one or more sets, or single dtypes
    dtypes: real -uint64           all dtypes of a set except one
    dtypes: any float8             also float8 tensors, which can be stored and converted

The default is `any float8` for operators of kind view, and `any` for all other kinds. If the dtypes of arguments differ,
the key describes the arguments that contain values, not indices or masks. For dtypes that the key does not contain, the
operator raises NotImplementedError, TypeError or RuntimeError. The tests call all operators with tensors of all dtypes, and
compare the dtypes that an operator accepts with the key. For operators of kind pointwise or reduce, the functor is compiled
for the dtypes in the key. If `result` is `floating` or `numeric`, integers or bools are converted first, so no functor is
compiled for them. float8 is converted to float32, and the result is converted back.
"""

from __future__ import annotations

_INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
ANY = ("bool", *_INTEGERS, *_FLOATS, *_COMPLEX)
ALL = (*ANY, *FLOAT8)
SETS: dict[str, tuple[str, ...]] = {
    "any": ANY,
    "real": ("bool", *_INTEGERS, *_FLOATS),
    "number": (*_INTEGERS, *_FLOATS, *_COMPLEX),
    "bool": ("bool",),
    "integer": _INTEGERS,
    "floating": _FLOATS,
    "complex": _COMPLEX,
    "wide": ("float32", "float64"),
    "lapack": ("float32", "float64", *_COMPLEX),
    "float8": FLOAT8,
}

# Lists of element types in C++, defined in ops/element_types.h. float16 and bfloat16 are converted to float.
_LISTS = {
    "any": "AllAndComplex",
    "real": "All",
    "number": "NumbersAndComplex",
    "integer floating": "Numbers",
    "floating": "Floats",
    "floating complex": "FloatsAndComplex",
    "bool integer": "IntegersAndBool",
    "integer": "Integers",
    "complex": "ComplexOnly",
    "bool": "Bools",
}
# The dtypes that need no loop, because a word of `result` converts them first.
_TURNED = {"floating": frozenset(("bool", *_INTEGERS)), "numeric": frozenset(("bool",))}


class DTypesError(ValueError):
    """Raised for an invalid value of the key `dtypes`. `loader.py` adds the file and the line to the message."""


def dtypes_of(text: str) -> frozenset[str]:
    """Return the dtypes that `text`, a value of the key `dtypes`, describes."""
    chosen: set[str] = set()
    for word in text.split():
        name = word.removeprefix("-")
        if name not in SETS and name not in ALL:
            raise DTypesError(f"dtypes {text!r}: {name!r} is neither a dtype nor one of {', '.join(SETS)}")
        one = set(SETS.get(name, (name,)))
        chosen = chosen - one if word.startswith("-") else chosen | one
    if not chosen:
        raise DTypesError(f"dtypes {text!r} is an empty set")
    return frozenset(chosen)


def takes_float8(text: str) -> bool:
    """Return whether `text`, a value of the key `dtypes`, includes the float8 dtypes.

    Each value contains either all float8 dtypes or none of them.
    """
    return dtypes_of(text).issuperset(FLOAT8)


_LIST_OF = {dtypes_of(text): name for text, name in _LISTS.items()}


def element_types(text: str, result: str) -> str:
    """Return the name of the C++ list of the element types for which a functor is compiled.

    `text` and `result` are the values of the operator's keys `dtypes` and `result`."""
    compiled = dtypes_of(text) - _TURNED.get(result, frozenset()) - frozenset(FLOAT8)
    if compiled not in _LIST_OF:
        raise DTypesError(
            f"ops/element_types.h has no list of the dtypes {text!r}, only of: {', '.join(_LISTS)}"
        )
    return _LIST_OF[compiled]
