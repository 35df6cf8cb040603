"""Generate programs call by call. Each call is tried in one library, so that most calls are valid."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.execute import SIGNS, Machine, is_tensor, name_of
from fuzz.operators import Array, Operator
from fuzz.program import (
    COMPLEX,
    FLOATS,
    Call,
    Input,
    Named,
    Program,
    Ref,
    example,
    mapped,
)
from fuzz.undefined import Draft, Undefined
from fuzz.values import DTYPES, SIZES, Values, weighted

MODES = {"plain": 36, "backward": 32, "backward2": 5, "jvp": 14, "vmap": 13}
NO_RESULT_WITH_OUT = {"split_copy", "unbind_copy", "split_with_sizes_copy"}  # PyTorch returns None
NUMBERS: tuple[Any, ...] = (0, 1, -1, 2, 3, 0.5, -2.5, 1.0, True, False)
MOST_ELEMENTS = 400  # of the results of a call
TRIES = 80
BATCH = 2


def _is_ordinary(t: Any) -> bool:
    """Return whether a result is usable: PyTorch can also return sizes of -1 and half-precision complex numbers."""
    return name_of(t.dtype) in DTYPES and all(n >= 0 for n in t.shape)


def _takes_all(index: Any, shape: tuple[int, ...]) -> bool:
    """Return whether an index of slices selects all elements in the same shape."""
    parts = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(part, slice) or part is Ellipsis for part in parts):
        return False
    return np.empty(shape)[parts].shape == shape


class Generator:
    """Generator of programs over these operators; `machine` tries the calls.

    With `extremes` some tensors have infinities, NaN, negative zeros, large and tiny numbers, and the ends of the range of
    integers.
    """

    def __init__(self, operators: list[Operator], machine: Machine, extremes: bool = False) -> None:
        self.operators, self.extremes = operators, extremes
        self.views = [op for op in operators if op.view and (op.function or op.method)]
        self.inplace = [op for op in operators if op.inplace]
        self.functions = [op for op in operators if op.function or op.method]
        self.machine = machine

    def program(self, seed: int, number: int) -> Program:
        """Return the program with this number. No other program influences it."""
        self.rng = random.Random(f"{seed}:{number}")
        self.values = Values(self.rng, self.extremes)
        self.draft = Draft(weighted(self.rng, MODES))
        for _ in range(self.rng.randint(1, 2)):
            self._add(self.values.fresh(self.values.shape()))
        wanted = self.rng.randint(3, 12)
        for _ in range(TRIES):
            if len(self.draft.calls) >= wanted or not self._extend():
                break
        inputs, calls = self.draft.inputs, self.draft.calls
        used = {name for call in calls for name in Program((), (call,)).refs()}
        inputs = [one for one in inputs if one.name in used] or inputs[:1]
        if self.draft.mode == "vmap":
            inputs = [self._batched(one) for one in inputs]
            if not any(one.batched for one in inputs):
                inputs[0] = self._batched(inputs[0], always=True)
        made = Program(tuple(inputs), tuple(calls), self.draft.mode)
        if made.mode == "vmap" and not self.is_defined(made):
            # The first example is defined, so a later example is not.
            return replace(made, mode="plain", inputs=tuple(example(one) for one in made.inputs))
        return made

    def is_defined(self, program: Program) -> bool:
        """Return whether both libraries define the results of every call before the first failing one, for each example."""
        count = BATCH if program.mode == "vmap" else 1
        return all(self._is_defined_of(program, k) for k in range(count))

    def _is_defined_of(self, program: Program, k: int) -> bool:
        inputs = [example(one, k) for one in program.inputs]
        variables = self.machine.start(replace(program, inputs=tuple(inputs)))
        self.draft = Draft(program.mode, inputs, [], variables)
        for call in program.calls:
            if self._is_undefined(call, variables):
                return False
            try:
                results = self.machine.bind(call, self.machine.apply(call, variables), variables)
            except Exception:
                return True
            if not all(_is_ordinary(r) for r in results if is_tensor(r)):
                return False
            if call.writes and Undefined(self.machine, self.draft).has_nan_bytes(variables):
                return False
            self.draft.calls.append(call)
        return True

    # --- tensors ---

    def _input(self, array: Array) -> Input:
        """Return the array as an input that is not yet part of the program."""
        grows = array.dtype in (*FLOATS, *COMPLEX) and self.draft.mode in ("backward", "backward2", "jvp")
        self.draft.made += 1
        name = f"x{self.draft.made - 1}"
        return Input(name, array.dtype, array.shape, array.values, grows and self.rng.random() < 0.75)

    def _add(self, array: Array) -> Ref:
        one = self._input(array)
        self._adopt([one])
        return Ref(one.name)

    def _adopt(self, inputs: list[Input]) -> None:
        self.draft.inputs += inputs
        started = self.machine.start(Program(tuple(inputs), (), self.draft.mode))
        self.draft.variables.update(started)

    def _batched(self, one: Input, always: bool = False) -> Input:
        """Return a batched input of two examples: the values, and the same values in another order."""
        if not always and self.rng.random() < 0.2:
            return one
        values = one.values + one.values[1:] + one.values[:1]
        return replace(one, shape=(BATCH, *one.shape), values=values, batched=True)

    def _pick(self, fits: Callable[[Any], bool] = lambda t: True) -> str:
        """Return the name of a variable, more often a late one than an early one; empty if none fits."""
        names = [n for n, t in self.draft.tensors().items() if fits(t)]
        if not names:
            return ""
        return self.rng.choices(names, range(1, len(names) + 1))[0]

    # --- calls ---

    def _extend(self) -> bool:
        """Try one more call, and return False if the program ends here."""
        draft, rng = self.draft, self.rng
        before, state = draft.made, len(draft.inputs)
        made: list[Input] = []
        kind = rng.random()
        if kind < 0.12:
            call = self._index(made)
        elif kind < 0.18:
            call = self._assign(made)
        elif kind < 0.25:
            call = self._sign(made)
        elif kind < 0.28:
            call = self._convert()
        elif kind < 0.40:
            call = self._operator(self.views, made)
        elif kind < 0.52 and self.inplace:
            call = self._operator(self.inplace, made, "inplace")
        else:
            call = self._operator(self.functions, made)
        if call is None:
            draft.made = before
            return True
        self._adopt(made)
        variables = dict(draft.variables)
        if self._is_undefined(call, variables):
            self._forget(state)
            draft.made = before
            return True
        try:
            results = self.machine.bind(call, self.machine.apply(call, variables), variables)
        except Exception:
            if call.writes or rng.random() < 0.03:
                # The values that a failed call wrote are unknown, so the program ends, sometimes with this call.
                if rng.random() < 0.3:
                    draft.calls.append(call)
                return False
            self._forget(state)
            draft.made = before
            return True
        tensors = [r for r in results if is_tensor(r)]
        if not all(map(_is_ordinary, tensors)):
            return False  # end the program, because a written tensor may be unusable, too
        if call.writes and Undefined(self.machine, draft).has_nan_bytes(variables):
            return False
        if sum(t.numel() for t in tensors) > MOST_ELEMENTS or len(results) > 12 or self._is_lost(tensors):
            self._forget(state)
            draft.made = before
            return not call.writes
        draft.calls.append(call)
        draft.variables = variables
        return True

    def _is_undefined(self, call: Call, variables: dict[str, Any]) -> bool:
        undefined = Undefined(self.machine, self.draft)
        return undefined.overlaps(call, variables) or undefined.is_undefined(call, variables)

    def _forget(self, inputs: int) -> None:
        for one in self.draft.inputs[inputs:]:
            del self.draft.variables[one.name]
        del self.draft.inputs[inputs:]

    def _is_lost(self, tensors: list[Any]) -> bool:
        """Return whether a result has no finite values for later calls. Sometimes such a result is kept."""
        if self.rng.random() < 0.2:
            return False
        for t in tensors:
            if name_of(t.dtype) in (*FLOATS, *COMPLEX) and t.numel():
                record = self.machine.record(t)
                if not (abs(record.array.astype(complex)) < 1e6).any():
                    return True
        return False

    def _name(self) -> str:
        return f"v{len(self.draft.calls)}"

    def _operator(self, table: list[Operator], made: list[Input], form: str = "") -> Call | None:
        rng = self.rng
        if not table:
            return None
        op = rng.choice(table)
        args, kwargs = rng.choice(op.templates)
        forms = [f for f in ("function", "method") if getattr(op, f)]
        form = form or rng.choice(forms)
        if op.has_out and form == "function" and rng.random() < 0.15:
            form = "out"
        args, kwargs = self._fill(op, args, kwargs, made, form == "inplace")
        if form in ("method", "inplace") and not (args and isinstance(args[0], Ref)):
            return None
        base = op.name.partition(".")[0]
        if form == "out" and base in NO_RESULT_WITH_OUT:
            return None
        if form == "out":
            call = Call(base + ".out", op.function, self._name(), args, kwargs)
            return self._with_out(call, made)
        if form == "function":
            return Call(base, op.function, self._name(), args, kwargs)
        name = getattr(op, form)
        return Call(name, "." + name, self._name(), args, kwargs)

    def _fill(
        self, op: Operator, args: Any, kwargs: Any, made: list[Input], written: bool
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return a template with variables and new inputs in place of its arrays."""
        rng = self.rng
        arrays: list[Array] = []
        mapped((args, kwargs), lambda v: arrays.append(v) if isinstance(v, Array) else None)
        # One argument becomes a variable. Other arguments that had the same shape get the shape of this variable.
        position = 0 if written or rng.random() < 0.75 else rng.randrange(max(1, len(arrays)))
        chosen = self._pick() if rng.random() < 0.85 else ""
        shape = arrays[position].shape if arrays else ()
        actual = tuple(self.draft.variables[chosen].shape) if chosen else shape
        rank = len(actual)
        dtype = weighted(rng, DTYPES)
        seen = -1

        def change(value: Any) -> Any:
            nonlocal seen
            if isinstance(value, Array):
                seen += 1
                if seen == position and chosen:
                    return Ref(chosen)
                return self._tensor(value, value.shape == shape and bool(chosen), actual, dtype, made)
            if isinstance(value, bool) or value is None:
                return (not value) if value is not None and rng.random() < 0.1 else value
            if isinstance(value, int) and rng.random() < 0.15:
                return rng.randint(-max(rank, 1), max(rank, 2))
            if isinstance(value, float) and rng.random() < 0.15:
                return rng.choice(NUMBERS)
            if isinstance(value, Named) and rng.random() < 0.3:
                return Named(weighted(rng, DTYPES))
            return value

        args = tuple(mapped(args, change))
        kwargs = {n: mapped(v, change) for n, v in kwargs.items() if rng.random() < 0.85}
        return args, kwargs

    def _tensor(
        self, array: Array, follows: bool, actual: tuple[int, ...], dtype: str, made: list[Input]
    ) -> Ref:
        """Return a variable or a new input for an array of a template."""
        rng = self.rng
        if follows:
            array = self.values.reshaped(array, self.values.narrowed(actual))
        if array.dtype in FLOATS:
            array = self.values.recast(array, dtype if rng.random() < 0.7 else weighted(rng, DTYPES))
            if rng.random() < 0.4:
                array = Array(array.dtype, array.shape, self.values.numbers(array.dtype, len(array.values)))
        elif rng.random() < 0.1:
            array = self.values.recast(array, weighted(rng, DTYPES))
        array = self.values.mutated(array)
        if rng.random() < 0.4:
            other = self._pick(lambda t: tuple(t.shape) == array.shape and name_of(t.dtype) == array.dtype)
            if other:
                return Ref(other)
        one = self._input(array)
        made.append(one)
        return Ref(one.name)

    def _with_out(self, call: Call, made: list[Input]) -> Call | None:
        """Return the call with `out=`, whose tensors fit or nearly fit."""
        variables = {**self.draft.variables, **self.machine.start(Program(tuple(made), (), self.draft.mode))}
        try:
            result = self.machine.apply(call, variables)
        except Exception:
            return None
        rng, outs = self.rng, []
        results = result if isinstance(result, (tuple, list)) and not is_tensor(result) else [result]
        if not all(is_tensor(r) for r in results):
            return None
        for r in results:
            shape, dtype = tuple(int(n) for n in r.shape), name_of(r.dtype)
            like = self._pick(lambda t, s=shape, d=dtype: tuple(t.shape) == s and name_of(t.dtype) == d)  # type: ignore[misc]
            if like and rng.random() < 0.6:
                outs.append(Ref(like))
                continue
            if rng.random() < 0.15:
                dtype = weighted(rng, DTYPES)
            if dtype not in DTYPES:
                return None
            kind = rng.random()
            shape = (0,) if kind < 0.2 else (*shape, 2) if kind < 0.25 else shape
            one = replace(self._input(self.values.fresh(shape, dtype)), requires_grad=False)
            made.append(one)
            outs.append(Ref(one.name))
        out = tuple(outs) if results is result else outs[0]
        return replace(call, kwargs={**call.kwargs, "out": out})

    def _index_of(self, shape: tuple[int, ...], made: list[Input]) -> Any:
        """Return a random index of a tensor of this shape."""
        rng = self.rng
        parts: list[Any] = []
        for n in shape[: rng.randint(0, len(shape))]:
            kind = rng.random()
            if kind < 0.3 and n:
                parts.append(rng.randint(-n, n - 1))
            elif kind < 0.7:
                first, last = (rng.choice((None, rng.randint(-n - 1, n + 1))) for _ in range(2))
                parts.append(slice(first, last, rng.choice((None, None, 1, 2))))
            elif kind < 0.8 and n:
                parts.append([rng.randint(-n, n - 1) for _ in range(rng.randint(1, 3))])
            elif kind < 0.9 and n:
                length = weighted(rng, SIZES)
                array = Array("int64", (length,), tuple(rng.randint(-n, n - 1) for _ in range(length)))
                made.append(self._input(array))
                parts.append(Ref(made[-1].name))
            elif kind < 0.96:
                made.append(self._input(self.values.fresh((n,), "bool")))
                parts.append(Ref(made[-1].name))
            else:
                parts.append(None)
        if rng.random() < 0.15:
            parts.insert(rng.randint(0, len(parts)), Ellipsis)
        if not parts and rng.random() < 0.5:
            made.append(self._input(self.values.fresh(shape, "bool")))
            return Ref(made[-1].name)
        return parts[0] if len(parts) == 1 else tuple(parts)

    def _index(self, made: list[Input]) -> Call | None:
        name = self._pick()
        if not name:
            return None
        shape = tuple(self.draft.variables[name].shape)
        index = self._index_of(shape, made)
        if self.draft.mode == "jvp" and _takes_all(index, shape):
            return None  # in PyTorch a write to such a view gives the base no tangent
        return Call("getitem", "[]", self._name(), (Ref(name), index))

    def _assign(self, made: list[Input]) -> Call | None:
        name = self._pick()
        if not name:
            return None
        rng = self.rng
        index = self._index_of(tuple(self.draft.variables[name].shape), made)
        call = Call("getitem", "[]", self._name(), (Ref(name), index))
        variables = {**self.draft.variables, **self.machine.start(Program(tuple(made), (), self.draft.mode))}
        try:
            part = self.machine.apply(call, variables)
        except Exception:
            return None
        value: Any = rng.choice(NUMBERS)
        if rng.random() < 0.7:
            shape = self.values.narrowed(tuple(int(n) for n in part.shape))
            other = self._pick(lambda t: tuple(t.shape) == shape)
            if not other or rng.random() < 0.5:
                dtype = name_of(part.dtype) if rng.random() < 0.7 else ""
                made.append(self._input(self.values.fresh(shape, dtype if dtype in DTYPES else "")))
                other = made[-1].name
            value = Ref(other)
        return Call("setitem", "[]=", self._name(), (Ref(name), index, value))

    def _sign(self, made: list[Input]) -> Call | None:
        rng = self.rng
        name, sign = self._pick(), rng.choice(tuple(SIGNS))
        if not name:
            return None
        shape = tuple(int(n) for n in self.draft.variables[name].shape)
        kind = rng.random()
        other: Any = rng.choice(NUMBERS)
        if kind < 0.35:
            picked = self._pick()
            other = Ref(picked) if picked else other
        elif kind < 0.7:
            made.append(self._input(self.values.fresh(self.values.narrowed(shape))))
            other = Ref(made[-1].name)
        sides = (Ref(name), other) if rng.random() < 0.7 else (other, Ref(name))
        return Call(SIGNS[sign][0], sign, self._name(), sides)

    def _convert(self) -> Call | None:
        name = self._pick()
        if not name:
            return None
        if self.rng.random() < 0.3:
            return Call("clone", ".clone", self._name(), (Ref(name),))
        return Call("to", ".to", self._name(), (Ref(name), Named(weighted(self.rng, DTYPES))))
