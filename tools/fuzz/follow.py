"""Runs a program again in another way: with the roundings of another library, or by other code of the same one."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.compare import apart
from fuzz.execute import Machine, Observation, Record, is_tensor, name_of
from fuzz.program import Call, Input, Program, mapped


class Follower(Machine):
    """A library that goes on, after each call, from what the other one computed, as far as they differ by rounding.

    Where a program has a kink or jumps, or loses digits, two right libraries give different answers for it. With the same
    roundings they give the same. A difference that remains is none of rounding: a result that differs by more is not
    taken over, and neither are gradients.
    """

    def __init__(self, library: Any, steps: list[list[Any]]) -> None:
        super().__init__(library)
        self.steps = steps

    def computed(self, number: int, results: list[Any]) -> None:
        for result, wanted in zip(
            results, self.steps[number] if number < len(self.steps) else [], strict=False
        ):
            if not is_tensor(result) or not isinstance(wanted, Record) or wanted.array.dtype.kind not in "fc":
                continue
            if (name_of(result.dtype), tuple(result.shape)) != (wanted.dtype, wanted.shape):
                continue
            # Of a tensor inside jvp only its numbers can be had.
            numbers = np.array(result.data.tolist(), dtype=wanted.array.dtype).reshape(wanted.shape)
            if numbers.tobytes() == wanted.array.tobytes() or apart(replace(wanted, array=numbers), wanted):
                continue
            # `data` has the memory and no history, so what was saved for the backward pass has these numbers, too.
            # Elements of an expanded tensor share a place and cannot be written.
            with contextlib.suppress(RuntimeError):
                result.data.copy_(self.library.tensor(wanted.array))


class Keeper(Machine):
    """A library that copies what it saves for the backward pass, so that later writes do no harm.

    Where it refuses a program since something saved was written, this has the gradients that are right.
    """

    def run(self, program: Program) -> Observation:
        with self.library.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            return super().run(program)


# --- other code of PyTorch for the same program ---


class Strided(Machine):
    """Inputs lie at every second place of the memory, where kernels without vectors compute."""

    def make(self, one: Input) -> Any:
        made = super().make(one)
        return self.library.stack((made, made), -1)[..., 0] if one.values else made


class Decomposed(Machine):
    """Operators are computed by simpler ones, as for compilers."""

    def run(self, program: Program) -> Observation:
        from torch._decomp import decomposition_table
        from torch.utils._python_dispatch import TorchDispatchMode

        class Decomposing(TorchDispatchMode):
            def __torch_dispatch__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
                simpler = decomposition_table.get(function)
                if simpler is None:
                    return function(*args, **(kwargs or {}))
                with self:
                    return simpler(*args, **(kwargs or {}))

        with Decomposing():
            return super().run(program)


class References(Machine):
    """Functions are PyTorch's reference implementations, in Python."""

    def run(self, program: Program) -> Observation:
        from torch._prims.context import TorchRefsMode

        with TorchRefsMode():
            return super().run(program)


class Meta(Machine):
    """Tensors have sizes and dtypes, and no values."""

    def run(self, program: Program) -> Observation:
        with self.library.device("meta"):
            return super().run(program)

    def record(self, value: Any) -> Any:
        if not is_tensor(value):
            return super().record(value)
        shape = tuple(int(n) for n in value.shape)
        return Record(name_of(value.dtype), shape, bool(value.requires_grad), np.broadcast_to(0.0, shape))


class Resolved(Machine):
    """Results are conjugated and negated at once, where PyTorch returns a view and only notes that it is to be done."""

    def apply(self, call: Call, variables: dict[str, Any]) -> Any:
        def resolve(value: Any) -> Any:
            if not is_tensor(value):
                return value
            lazy = value.is_conj() or value.is_neg()
            return value.resolve_conj().resolve_neg() if lazy else value

        return mapped(super().apply(call, variables), resolve)


class WideDefault(Machine):
    """Functions of integers and numbers are computed in float64, since that is the default dtype."""

    def run(self, program: Program) -> Observation:
        kept = self.library.get_default_dtype()
        self.library.set_default_dtype(self.library.float64)
        try:
            return super().run(program)
        finally:
            self.library.set_default_dtype(kept)


WAYS = {
    "wide default": WideDefault,
    "strided": Strided,
    "resolved": Resolved,
    "decomposed": Decomposed,
    "references": References,
    "meta": Meta,
}
