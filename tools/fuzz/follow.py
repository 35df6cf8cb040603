"""Run a program again with the rounding errors of another library, or with other code of the same library."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.compare import apart
from fuzz.execute import Machine, Observation, Record, is_tensor, name_of
from fuzz.program import Call, Input, Program, mapped


class Follower(Machine):
    """A library that continues, after each call, from the other library's results if they differ only by rounding.

    If a program has a kink or a jump, or loses digits, two correct libraries give different results. With the same rounding
    errors they give the same results. A remaining difference is not due to rounding, because neither results that differ by
    more than rounding nor gradients are taken from the other library.
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
            # Inside jvp only the numbers of a tensor can be read.
            numbers = np.array(result.data.tolist(), dtype=wanted.array.dtype).reshape(wanted.shape)
            if numbers.tobytes() == wanted.array.tobytes() or apart(replace(wanted, array=numbers), wanted):
                continue
            # `data` shares the memory and has no history, so tensors saved for the backward pass get these numbers, too.
            # Elements of an expanded tensor share memory and cannot be written.
            with contextlib.suppress(RuntimeError):
                result.data.copy_(self.library.tensor(wanted.array))


class Keeper(Machine):
    """A library that copies the tensors that it saves for the backward pass, so that later writes have no effect.

    If the library refuses a program because a saved tensor was modified, this run has the right gradients.
    """

    def run(self, program: Program) -> Observation:
        with self.library.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            return super().run(program)


# --- other code of PyTorch for the same program ---


class Strided(Machine):
    """A library whose inputs have stride 2, for which kernels without vector instructions compute."""

    def make(self, one: Input) -> Any:
        made = super().make(one)
        return self.library.stack((made, made), -1)[..., 0] if one.values else made


class Decomposed(Machine):
    """A library whose operators are decomposed into simpler ones, as for compilers."""

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
    """A library whose functions are PyTorch's reference implementations in Python."""

    def run(self, program: Program) -> Observation:
        from torch._prims.context import TorchRefsMode

        with TorchRefsMode():
            return super().run(program)


class Meta(Machine):
    """A library whose tensors have sizes and dtypes, but no values."""

    def run(self, program: Program) -> Observation:
        with self.library.device("meta"):
            return super().run(program)

    def record(self, value: Any) -> Any:
        if not is_tensor(value):
            return super().record(value)
        shape = tuple(int(n) for n in value.shape)
        return Record(name_of(value.dtype), shape, bool(value.requires_grad), np.broadcast_to(0.0, shape))


class Resolved(Machine):
    """A library that conjugates and negates results at once, where PyTorch returns a lazy view."""

    def apply(self, call: Call, variables: dict[str, Any]) -> Any:
        def resolve(value: Any) -> Any:
            if not is_tensor(value):
                return value
            lazy = value.is_conj() or value.is_neg()
            return value.resolve_conj().resolve_neg() if lazy else value

        return mapped(super().apply(call, variables), resolve)


WAYS = {
    "strided": Strided,
    "resolved": Resolved,
    "decomposed": Decomposed,
    "references": References,
    "meta": Meta,
}
