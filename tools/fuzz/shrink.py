"""Shrink a program that shows a difference, as long as it shows the same difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from fuzz.compare import Difference
from fuzz.execute import Observation, Record
from fuzz.program import COMPLEX, FLOATS, Input, Program, Ref, examples, literal, refs_in, substituted

MOST_TRIES = 400
# The number of tries that one attempt counts as. A process that crashed must be restarted, and a hang must be waited for.
COSTS = {"crash": 8, "hang": 60}

# Runs a program in both libraries, and returns the difference and PyTorch's observation.
Check = Callable[[Program], tuple[Difference | None, Observation | None]]


def shrink(
    program: Program, found: Difference, seen: Observation | None, check: Check
) -> tuple[Program, Difference]:
    """Return the smallest program found that shows a difference of this kind, and the difference.

    The operator may change: a difference that is detected at a failing call may come from an earlier call.
    """
    tries = 0
    progress = True
    while progress and tries < MOST_TRIES:
        progress = False
        for smaller in _candidates(program, seen):
            tries += 1
            if tries > MOST_TRIES:
                break
            other, observed = check(smaller)
            tries += COSTS.get(other.kind, 0) if other is not None else 0
            if other is not None and other.kind == found.kind:
                program, found, seen, progress = smaller, other, observed, True
                break
    return program, found


def alone(program: Program, found: Difference, seen: Observation) -> Program | None:
    """Return the call that shows a difference, with PyTorch's earlier results as inputs; None if these are not all known."""
    if not 0 < found.call <= len(seen.steps):
        return None
    small = replace(program, calls=program.calls[: found.call + 1])
    for results in seen.steps[: found.call]:
        needed = {name for call in small.calls[1:] for name in refs_in((call.args, call.kwargs))}
        if small.calls[0].result in needed:
            whole = with_results(small, 0, results)
            if whole is None:
                return None
            small = whole
        else:
            small = replace(small, calls=small.calls[1:])
    return _tidy(small)


def _candidates(program: Program, seen: Observation | None) -> Iterator[Program]:
    """Yield slightly smaller programs, the smallest ones first."""
    calls = program.calls
    for n in range(1, len(calls)):
        yield _tidy(replace(program, calls=calls[:n]))
    for i in range(len(calls) - 1, -1, -1):
        kept = calls[:i] + calls[i + 1 :]
        needed = {n for c in kept[i:] for n in refs_in((c.args, c.kwargs))}
        if calls[i].result not in needed:
            if kept:
                yield _tidy(replace(program, calls=kept))
            if calls[i].writes and seen is not None and i < len(seen.steps):
                # Later calls may read the written tensor under its first name.
                replaced = with_results(program, i, seen.steps[i])
                if replaced is not None and replaced.calls:
                    yield _tidy(replaced)
        elif seen is not None and i < len(seen.steps):
            replaced = with_results(program, i, seen.steps[i])
            if replaced is not None:
                yield _tidy(replaced)
        if isinstance(calls[i].args[0] if calls[i].args else None, Ref):
            # Use the first argument instead of the result.
            later = tuple(substituted(c, calls[i].result, calls[i].args[0].name) for c in kept[i:])
            if later and calls[i].result in needed:
                yield _tidy(replace(program, calls=kept[:i] + later))
    if program.mode == "backward2":
        yield replace(program, mode="backward")
    if program.mode in ("backward", "backward2", "jvp"):
        yield replace(program, mode="plain")
    if program.mode == "vmap":
        yield from examples(program)
    for i, call in enumerate(calls):
        for name in call.kwargs:
            rest = {n: v for n, v in call.kwargs.items() if n != name}
            yield _tidy(replace(program, calls=(*calls[:i], replace(call, kwargs=rest), *calls[i + 1 :])))
    for i, one in enumerate(program.inputs):
        for simpler in _simpler(one):
            yield replace(program, inputs=(*program.inputs[:i], simpler, *program.inputs[i + 1 :]))
    yield from _smaller_dimensions(program)


def _tidy(program: Program) -> Program:
    """Return a program without inputs that no call reads."""
    used = set(program.refs())
    kept = tuple(one for one in program.inputs if one.name in used)
    return replace(program, inputs=kept or program.inputs[:1])


def with_results(program: Program, i: int, results: list[Any]) -> Program | None:
    """Return the program with the results of call `i` as inputs; None if they are not tensors."""
    call = program.calls[i]
    names = [call.result] if len(results) == 1 else [f"{call.result}[{k}]" for k in range(len(results))]
    later = program.calls[i + 1 :]
    inputs = list(program.inputs)
    for k, (name, record) in enumerate(zip(names, results, strict=True)):
        if not isinstance(record, Record):
            return None
        new = f"x{call.result[1:]}_{k}"
        grows = program.mode not in ("plain", "vmap") and record.dtype in (*FLOATS, *COMPLEX)
        values = tuple(record.array.reshape(-1).tolist())
        inputs.append(Input(new, record.dtype, record.shape, values, grows, program.mode == "vmap"))
        spellings = {name, f"{call.result}[{k}]"}
        if call.path[0] == "." and call.writes and isinstance(call.args[0], Ref):
            spellings.add(call.args[0].name)  # the written tensor has the same value as the result
        if "out" in call.kwargs:
            out = call.kwargs["out"]
            written = out[k] if isinstance(out, (tuple, list)) else out
            spellings.add(written.name)
        for spelling in spellings:
            later = tuple(substituted(c, spelling, new) for c in later)
    if any(call.result in refs_in((c.args, c.kwargs)) for c in later):
        return None
    return replace(program, inputs=tuple(inputs), calls=program.calls[:i] + later)


def _simpler(one: Input) -> Iterator[Input]:
    if one.requires_grad:
        yield replace(one, requires_grad=False)
    plain: Any = {"bool": True}.get(one.dtype, 1.0 if one.dtype in FLOATS else 1)
    for value in (plain, type(plain)(0)):
        flat = (value,) * len(one.values)
        if flat != one.values and len(set(map(literal, one.values))) > 1:
            yield replace(one, values=flat)
    if one.dtype in FLOATS and one.dtype not in ("float32", "float64"):
        yield replace(one, dtype="float32")
    rounded = tuple(float(round(v)) if isinstance(v, float) and abs(v) < 1e9 else v for v in one.values)
    if one.dtype in FLOATS and rounded != one.values:
        yield replace(one, values=rounded)


def _smaller_dimensions(program: Program) -> Iterator[Program]:
    """Yield programs in which all dimensions of one size become 1 or 2, in all inputs together and in each alone."""
    sizes = sorted({n for one in program.inputs for n in one.shape if n > 1}, reverse=True)
    for size in sizes:
        for new in (1, 2):
            if new < size:
                yield replace(program, inputs=tuple(_resized(one, size, new) for one in program.inputs))
    for i, one in enumerate(program.inputs):
        for size in sorted({n for n in one.shape if n > 1}, reverse=True):
            smaller = _resized(one, size, 1)
            yield replace(program, inputs=(*program.inputs[:i], smaller, *program.inputs[i + 1 :]))


def _resized(one: Input, size: int, new: int) -> Input:
    """Return the input with only the first elements of the dimensions of a size; vmap's dimension is unchanged."""
    import numpy as np

    first = 1 if one.batched else 0
    if size not in one.shape[first:]:
        return one
    array = np.array(one.values, dtype=object).reshape(one.shape)
    cut = tuple(slice(0, new) if k >= first and n == size else slice(None) for k, n in enumerate(one.shape))
    array = array[cut]
    return replace(one, shape=array.shape, values=tuple(array.reshape(-1).tolist()))
