"""Generate programs of one call for every operator: with values and shapes at which formulas and kernels may differ, and
with one argument of a sample replaced."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from fuzz.operators import Array, Operator
from fuzz.program import COMPLEX, FLOATS, MODES, Call, Input, Named, Program, Ref, mapped
from fuzz.values import DTYPES, Values

INFINITE = (float("inf"), float("-inf"), float("nan"))
# The values of floating-point arguments, as far as their dtype can represent them.
POOLS: dict[str, tuple[float, ...]] = {
    "ordinary": (),
    "zeros": (0.0,),
    "ties": (1.5,),
    "whole": (0.0, 1.0, -1.0, 2.0, -2.0, 3.0),
    "tiny": (1e-7, -1e-7, 6e-5, -3e-4, 1e-3, 0.0),
    "smallest": (1e-30, -1e-30, 1e-20, -1e-10, 0.0),
    "large": (30.0, -30.0, 100.0, -100.0, 250.0),
    "huge": (1e4, -1e4, 5e4, 1e3),
    "largest": (1e30, -1e30, 1e20, 1e10),
    "ends": (0.0, -0.0, 1.0, *INFINITE),
    "far apart": (1e-6, 1e4, -1e4, 1.0, 0.0),
}
SHAPES = ("as it is", "empty", "one less", "one more", "of ones", "0-d")
# What replaces an argument that is a number. Bools do not replace numbers: PyTorch accepts them in place of ints in some
# positions of a list only.
NUMBERS: tuple[Any, ...] = (
    -3, -1, 0, 1, 2, 5, 100, 0.0, 0.5, -1.5, 1e-30, 1e30, *INFINITE, 1j,
    Array("float64", (), (-2.0,)), Array("int64", (), (300,)), Array("complex64", (), (1j,)),
)  # fmt: skip
LISTS: tuple[tuple[int, ...], ...] = ((), (0,), (-1,), (1,), (0, 0), (0, 1), (2, 2), (-3,), (1, 1, 1))
WORDS = ("", "mean", "nonsense")
# The values of arguments that samples leave out, by type.
OPTIONS: dict[str, tuple[Any, ...]] = {
    "dtype": tuple(Named(dtype) for dtype in DTYPES),
    "bool": (True, False),
    "int": (-2, -1, 0, 1, 2),
    "float": (0.0, 2.0, -1.0, float("inf")),
    "Scalar": (0, 2, -1.5, 1j),
    "int[]": ((), (0,), (-1,), (0, 1), 0),
    "str": WORDS,
}
# The smallest and the largest value of each dtype that cannot represent all values.
ENDS = {"float16": (1e-7, 6e4)}


def programs(operators: list[Operator], seed: int) -> Iterator[Program]:
    """Return one program for each operator, form, mode, kind of values and kind of shapes, in random order."""
    rng = random.Random(f"each {seed}")
    kinds = [*((pool, SHAPES[0]) for pool in POOLS), *(("ordinary", shape) for shape in SHAPES[1:])]
    combinations = [
        (op, form, mode, *kind) for op in operators for form in _forms(op) for mode in MODES for kind in kinds
    ]
    rng.shuffle(combinations)
    for combination in combinations:
        made = _program(*combination, rng)
        if made is not None:
            yield made


def replaced(operators: list[Operator], seed: int) -> Iterator[Program]:
    """Return a program for every sample, argument and replacement of this argument, in random order.

    A tensor is replaced by one of each other dtype, and a list by the same list with a replaced item as well. Arguments
    with defaults that a sample leaves out are added.
    """
    rng = random.Random(f"replaced {seed}")
    combinations = []
    for op in operators:
        for template in op.templates:
            changed = [
                _with_part(template, place, other)
                for place, part in _parts(template)
                for other in _others(part, Values(rng, False))
            ]
            changed += [
                (template[0], {**template[1], name: value})
                for name, kind, position in op.options
                if position >= len(template[0]) and name not in template[1]
                for value in OPTIONS.get(kind.rstrip("?"), ())
            ]
            combinations += [(op, form, one) for form in _forms(op) for one in changed]
    rng.shuffle(combinations)
    for op, form, (args, kwargs) in combinations:
        inputs: list[Input] = []

        def as_input(value: Any, inputs: list[Input] = inputs) -> Any:
            if not isinstance(value, Array):
                return value
            inputs.append(Input(f"x{len(inputs)}", value.dtype, value.shape, value.values))
            return Ref(inputs[-1].name)

        args, kwargs = (
            mapped(args, as_input),
            {name: mapped(value, as_input) for name, value in kwargs.items()},
        )
        if form != "function" and not (args and isinstance(args[0], Ref)):
            continue
        name = op.name.partition(".")[0] if form == "function" else getattr(op, form)
        yield Program(
            tuple(inputs),
            (Call(name, op.function if form == "function" else "." + name, "v0", args, kwargs),),
        )


def _parts(value: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the place and the value of every argument of a sample, and of the items of lists."""
    items = enumerate(value) if isinstance(value, (tuple, list)) else value.items()
    for key, part in items:
        yield (key,), part
        if isinstance(part, (tuple, list, dict)):
            for place, inner in _parts(part):
                yield (key, *place), inner


def _with_part(value: Any, place: tuple[Any, ...], other: Any) -> Any:
    if not place:
        return other
    key, *rest = place
    if isinstance(value, dict):
        return {**value, key: _with_part(value[key], tuple(rest), other)}
    changed = list(value)
    changed[key] = _with_part(value[key], tuple(rest), other)
    return type(value)(changed)


def _others(part: Any, values: Values) -> list[Any]:
    if isinstance(part, Array):
        return [values.recast(part, dtype) for dtype in DTYPES if dtype != part.dtype]
    if isinstance(part, Named):
        return [Named(dtype) for dtype in DTYPES if dtype != part.name]
    if isinstance(part, bool):
        return [not part, *NUMBERS]
    if isinstance(part, (int, float, complex)):
        return [other for other in NUMBERS if type(other) is not type(part) or other != part]
    if isinstance(part, str):
        return [other for other in WORDS if other != part]
    if isinstance(part, (tuple, list)) and all(isinstance(one, int) for one in part):
        return [type(part)(other) for other in LISTS if other != tuple(part)]
    return []


def _forms(op: Operator) -> list[str]:
    """Return the ways of calling an operator: as a function or otherwise as a method, and in place."""
    return [form for form in (("function" if op.function else "method"), "inplace") if getattr(op, form)]


def _program(op: Operator, form: str, mode: str, pool: str, shape: str, rng: random.Random) -> Program | None:
    args, kwargs = rng.choice(op.templates)
    values = Values(rng, False)
    dtype = rng.choice([*FLOATS, *FLOATS, *COMPLEX, rng.choice(list(DTYPES))])
    inputs: list[Input] = []
    where = rng.randrange(8)

    def change(value: Any) -> Any:
        if not isinstance(value, Array):
            return value
        if value.dtype in FLOATS:
            array = values.recast(value, dtype if rng.random() < 0.9 else rng.choice(FLOATS))
            if POOLS[pool] and array.dtype in (*FLOATS, *COMPLEX) and (where != 7 or not inputs):
                array = Array(
                    array.dtype, array.shape, tuple(_drawn(pool, array.dtype, rng) for _ in array.values)
                )
        else:
            array = value
        if shape != SHAPES[0] and (where < 5 or where - 5 == len(inputs)):
            array = _reshaped(array, shape, where, values)
        grows = array.dtype in (*FLOATS, *COMPLEX) and mode in ("backward", "backward2", "jvp")
        one = Input(f"x{len(inputs)}", array.dtype, array.shape, array.values, grows and rng.random() < 0.85)
        if mode == "vmap" and (not inputs or rng.random() < 0.75):
            both = one.values + one.values[1:] + one.values[:1]
            one = Input(one.name, one.dtype, (2, *one.shape), both, batched=True)
        inputs.append(one)
        return Ref(one.name)

    args = tuple(mapped(args, change))
    kwargs = {name: mapped(value, change) for name, value in kwargs.items()}
    if not inputs or (form != "function" and not (args and isinstance(args[0], Ref))):
        return None
    base = op.name.partition(".")[0]
    if form == "function":
        call = Call(base, op.function, "v0", args, kwargs)
    else:
        name = getattr(op, form)
        call = Call(name, "." + name, "v0", args, kwargs)
    # An in-place call must not write to a leaf.
    calls = [call]
    if form == "inplace" and mode.startswith("backward") and inputs[0].requires_grad:
        copy = Call("clone", ".clone", "v0", args[:1])
        calls = [copy, Call(call.op, call.path, "v1", (Ref("v0"), *args[1:]), kwargs)]
    return Program(tuple(inputs), tuple(calls), mode)


def _drawn(pool: str, dtype: str, rng: random.Random) -> Any:
    low, high = ENDS.get(dtype, (0.0, math.inf))

    def number() -> float:
        value = rng.choice(POOLS[pool])
        if value == 0 or not math.isfinite(value):
            return value
        return math.copysign(min(max(abs(value), low), high), value)

    return complex(number(), number()) if dtype in COMPLEX else number()


def _reshaped(array: Array, kind: str, where: int, values: Values) -> Array:
    shape = list(array.shape)
    if kind == "0-d":
        shape = []
    elif kind == "one more":
        shape.insert(0, 2)
    elif not shape:
        return array
    elif kind == "one less":
        del shape[0]
    elif kind == "empty":
        shape[where % len(shape)] = 0
    else:
        shape = [1] * len(shape)
    return values.reshaped(array, tuple(shape))
