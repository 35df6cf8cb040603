"""What PyTorch itself says about a difference: the sentences that known.yaml refers to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from fuzz.compare import Difference, as_computed
from fuzz.execute import Observation, Record
from fuzz.processes import Ended
from fuzz.program import COMPLEX, FLOATS, Call, Input, Program, Ref, example, mapped

NEEDS_ELEMENTS = "PyTorch raises, too, where there are elements"
ONE_EXAMPLE = "PyTorch raises, too, for one example"
EACH_EXAMPLE = "PyTorch gives for each example what is here"
ONLY_OUT = "PyTorch raises only with out="
SIZE = 7  # in place of 0: not that of another dimension

Run = Callable[[Program], "Observation | Ended"]


def explained(program: Program, found: Difference, ours: Run, run: Run) -> Difference:
    """The difference with what PyTorch, which `run` runs, does in a case beside this one."""
    text = ""
    if found.kind == "raises" and program.mode == "vmap" and _raises(run, _one_example(program)):
        text = ONE_EXAMPLE
    elif program.mode == "vmap" and as_each_example(program, ours, run):
        text = EACH_EXAMPLE
    elif found.kind == "raises" and needs_elements(program, run):
        text = NEEDS_ELEMENTS
    elif found.kind == "accepts" and only_with_out(program, run):
        text = ONLY_OUT
    return replace(found, text=f"{found.text}; {text}") if text else found


def _raises(run: Run, program: Program) -> bool:
    """Whether it raises, or the process does not survive it."""
    seen = run(program)
    return not isinstance(seen, Observation) or bool(seen.error)


def _one_example(program: Program, k: int = 0) -> Program:
    return replace(program, mode="plain", inputs=tuple(example(one, k) for one in program.inputs))


def as_each_example(program: Program, ours: Run, run: Run) -> bool:
    """Whether the results under vmap here are those that PyTorch gives for one example after the other."""
    mine = ours(program)
    count = next((one.shape[0] for one in program.inputs if one.batched), 0)
    if not isinstance(mine, Observation) or mine.error or not count:
        return False
    for k in range(count):
        alone = _one_example(program, k)
        seen = run(alone)
        if not isinstance(seen, Observation) or seen.error or seen.final.keys() != mine.final.keys():
            return False
        if not all(as_computed(_part(mine.final[name], k), seen.final[name]) for name in seen.final):
            return False
    return True


def _part(value: Any, k: int) -> Any:
    """The result of one example."""
    if not isinstance(value, Record) or not value.shape:
        return value
    return replace(value, shape=value.shape[1:], array=value.array[k])


def needs_elements(program: Program, run: Run) -> bool:
    """Whether an argument is taken only since there are no elements: with some in every dimension PyTorch raises, too.

    The sizes among the arguments are tried as they are and with the dimensions.
    """
    if not any(0 in one.shape for one in program.inputs):
        return False
    filled = replace(program, inputs=tuple(_filled(one) for one in program.inputs))
    sized = replace(filled, calls=tuple(_with_size(call) for call in program.calls))
    return _raises(run, filled) and _raises(run, sized)


def _filled(one: Input) -> Input:
    if 0 not in one.shape:
        return one
    shape = tuple(n or SIZE for n in one.shape)
    return replace(one, shape=shape, values=(1,) * math.prod(shape))


def _with_size(call: Call) -> Call:
    def change(value: Any) -> Any:
        return SIZE if type(value) is int and value == 0 else value

    return replace(call, args=mapped(call.args, change), kwargs=mapped(call.kwargs, change))


def only_with_out(program: Program, run: Run) -> bool:
    """Whether the last call is fine without `out=`, and `out=` has dtypes that its results can be cast to."""
    call = program.calls[-1]
    if "out" not in call.kwargs:
        return False
    rest = {name: value for name, value in call.kwargs.items() if name != "out"}
    plain = replace(program, mode="plain", calls=(*program.calls[:-1], replace(call, kwargs=rest)))
    seen = run(plain)
    if not isinstance(seen, Observation) or seen.error:
        return False
    return all(
        isinstance(result, Record) and _rank(result.dtype) <= _rank(seen.final[name].dtype)
        for result, name in zip(seen.steps[-1], _names(call.kwargs["out"]), strict=True)
    )


def _names(out: Any) -> Iterator[str]:
    yield from (
        one.name for one in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(one, Ref)
    )


def _rank(dtype: str) -> int:
    """A dtype can be cast to those of the same rank and above."""
    return 3 if dtype in COMPLEX else 2 if dtype in FLOATS else 0 if dtype == "bool" else 1
