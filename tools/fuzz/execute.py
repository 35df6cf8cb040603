"""Run a program in one library and record the values that are compared."""

from __future__ import annotations

import itertools
import operator
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz.program import COMPLEX, FLOATS, Call, Input, Named, Program, Ref, mapped, moves

# The operator of each Python sign, and the function that applies it.
SIGNS = {
    "+": ("add", operator.add), "-": ("sub", operator.sub), "*": ("mul", operator.mul), "/": ("div", operator.truediv),
    "//": ("floor_divide", operator.floordiv), "%": ("remainder", operator.mod), "**": ("pow", operator.pow),
    "@": ("matmul", operator.matmul), "&": ("bitwise_and", operator.and_), "|": ("bitwise_or", operator.or_),
    "^": ("bitwise_xor", operator.xor), "<": ("lt", operator.lt), "<=": ("le", operator.le), ">": ("gt", operator.gt),
    ">=": ("ge", operator.ge), "==": ("eq", operator.eq), "!=": ("ne", operator.ne),
}  # fmt: skip


@dataclass(frozen=True)
class Record:
    """The state of a tensor at some point in the program."""

    dtype: str
    shape: tuple[int, ...]
    requires_grad: bool
    array: np.ndarray  # bfloat16 as float32


@dataclass
class Observation:
    """The recorded behaviour of a program."""

    steps: list[list[Any]] = field(default_factory=list)  # of each call its results: records, or text
    error: str = ""  # why it ended early
    failed_at: str | int = ""  # where: number of the call, or "backward", "jvp", "vmap"
    final: dict[str, Any] = field(default_factory=dict)  # variables at the end
    gradients: list[Record | None] = field(default_factory=list)  # in the order of inputs that require grad
    tangents: list[Record] = field(default_factory=list)
    # Whether tangents share memory although their values do not. A write to one tensor then also changes the tangent of the
    # other, so these tangents cannot be compared.
    tangents_are_shared: bool = False


def complete(seen: object) -> Observation | None:
    """Return the observation of a program that ran to its end; None if it failed or ended the process."""
    return seen if isinstance(seen, Observation) and not seen.error else None


def name_of(dtype: Any) -> str:
    return str(dtype).rsplit(".", 1)[-1]


def is_tensor(value: Any) -> bool:
    return hasattr(value, "requires_grad") and hasattr(value, "dtype")


def _share(a: Any, b: Any) -> bool:
    """Return whether two tensors share memory, if the library shows this."""
    if not (hasattr(a, "untyped_storage") and a.numel() and b.numel()):
        return False
    return bool(a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr())


class Machine:
    """One library, and how programs run in it."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def make(self, one: Input) -> Any:
        """Return an input's tensor, without requires_grad."""
        library = self.library
        values = list(one.values) if one.shape else one.values[0]
        made = library.tensor(values, dtype=getattr(library, one.dtype))
        # A copy, since a view of a tensor that requires grad cannot be resized by `out=`.
        return made if tuple(made.shape) == one.shape else made.reshape(one.shape).clone()

    def function(self, path: str) -> Any:
        found = self.library
        for name in path.split(".")[1:]:
            found = getattr(found, name)
        return found

    def apply(self, call: Call, variables: dict[str, Any]) -> Any:
        def change(value: Any) -> Any:
            if isinstance(value, Ref):
                return variables[value.name]
            return getattr(self.library, value.name) if isinstance(value, Named) else value

        args, kwargs = mapped(call.args, change), mapped(call.kwargs, change)
        if call.path == "[]":
            return args[0][args[1]]
        if call.path == "[]=":
            args[0][args[1]] = args[2]
            return None
        if call.path in SIGNS:
            return SIGNS[call.path][1](*args)
        if call.path[0] == ".":
            return getattr(args[0], call.path[1:])(*args[1:], **kwargs)
        return self.function(call.path)(*args, **kwargs)

    def bind(self, call: Call, result: Any, variables: dict[str, Any]) -> list[Any]:
        """Assign the result to the call's variable, and return its tensors and other values as a flat list."""
        if call.path == "[]=":
            return []
        variables[call.result] = result
        if not isinstance(result, (tuple, list)) or is_tensor(result):
            return [result]
        for i, one in enumerate(result):
            variables[f"{call.result}[{i}]"] = one
        return list(result)

    def computed(self, number: int, results: list[Any]) -> None:
        """Process the results of each call before the next call."""

    def record(self, value: Any) -> Any:
        if not is_tensor(value):
            if isinstance(value, (bool, int, float, complex)):
                return value
            return "None" if value is None else type(value).__name__
        plain = value.detach()
        if name_of(plain.dtype) == "bfloat16":
            plain = plain.to(self.library.float32)
        array = np.array(
            plain.numpy(force=True), copy=True
        )  # PyTorch may only mark a tensor as conjugated, or as zero
        return Record(
            name_of(value.dtype), tuple(int(n) for n in value.shape), bool(value.requires_grad), array
        )

    # --- whole programs ---

    def run(self, program: Program) -> Observation:
        seen = Observation()
        kept = self.library.get_default_dtype()
        self.library.set_default_dtype(getattr(self.library, program.default_dtype))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                getattr(self, "_" + program.mode.rstrip("2"))(program, seen)
            except Exception as error:
                seen.error = seen.error or f"{type(error).__name__}: {error}"
            finally:
                self.library.set_default_dtype(kept)
        return seen

    def start(self, program: Program) -> dict[str, Any]:
        variables = {one.name: self.make(one) for one in program.inputs}
        if program.mode.startswith("backward"):
            for one in program.inputs:
                if one.requires_grad:
                    variables[one.name].requires_grad_()
        return variables

    def _calls(
        self, program: Program, variables: dict[str, Any], seen: Observation, *, recorded: bool
    ) -> None:
        for i, call in enumerate(program.calls):
            seen.failed_at = i
            results = self.bind(call, self.apply(call, variables), variables)
            self.computed(i, results)
            if recorded and call.writes:
                for t in variables.values():
                    getattr(
                        t, "grad_fn", None
                    )  # PyTorch creates the grad_fn of a view of a written base when it is read
            if recorded:
                seen.steps.append([self.record(r) for r in results])
        seen.failed_at = ""

    def _outputs(self, program: Program, variables: dict[str, Any]) -> dict[str, Any]:
        """Return all tensors that exist at the end, inputs first."""
        names = [one.name for one in program.inputs]
        for call in program.calls:
            names += [n for n in variables if n == call.result or n.startswith(call.result + "[")]
        return {n: variables[n] for n in names if is_tensor(variables.get(n))}

    def _plain(self, program: Program, seen: Observation) -> None:
        variables = self.start(program)
        self._calls(program, variables, seen, recorded=True)
        seen.final = {n: self.record(t) for n, t in self._outputs(program, variables).items()}

    def _backward(self, program: Program, seen: Observation) -> None:
        variables = self.start(program)
        self._calls(program, variables, seen, recorded=True)
        outputs = self._outputs(program, variables)
        seen.final = {n: self.record(t) for n, t in outputs.items()}
        leaves = [variables[one.name] for one in program.inputs if one.requires_grad]
        made = [t for t in outputs.values() if t.requires_grad]
        if not leaves or not made:
            return
        seen.failed_at = "backward"
        loss = self._total(made)
        grad = self.library.autograd.grad
        second = program.mode == "backward2"
        found = grad(loss, leaves, allow_unused=True, **({"create_graph": True} if second else {}))
        seen.gradients = [None if g is None else self.record(g) for g in found]
        again = [g for g in found if g is not None and g.requires_grad]
        if second and again:
            seen.failed_at = "backward of backward"
            found = grad(self._total(again), leaves, allow_unused=True)
            seen.gradients += [None if g is None else self.record(g) for g in found]
        seen.failed_at = ""

    def weights(self, t: Any) -> Any:
        """Return the incoming gradients or tangents, which are different numbers for each element."""
        library = self.library
        ramp = library.arange(1, t.numel() + 1, dtype=library.float64) / (t.numel() + 1)
        return ramp.reshape(tuple(t.shape)).to(t.dtype)

    def _total(self, tensors: list[Any]) -> Any:
        library = self.library
        return sum(library.real((t * self.weights(t)).sum()).to(library.float64) for t in tensors)

    def _jvp(self, program: Program, seen: Observation) -> None:
        made = self.start(program)
        moving = [one.name for one in program.inputs if moves(one)]
        kept: list[str] = []

        def f(*primals: Any) -> tuple[Any, ...]:
            variables = {**made, **dict(zip(moving, primals, strict=True))}
            self._calls(program, variables, seen, recorded=False)
            outputs = self._outputs(program, variables)
            outputs = {n: t for n, t in outputs.items() if name_of(t.dtype) in (*FLOATS, *COMPLEX)}
            kept[:] = outputs
            return tuple(outputs.values())

        primals = tuple(made[n] for n in moving)
        tangents = tuple(self.weights(t) for t in primals)
        values, moved = self.library.func.jvp(f, primals, tangents)
        seen.failed_at = ""
        seen.final = {n: self.record(t) for n, t in zip(kept, values, strict=True)}
        seen.tangents = [self.record(t) for t in moved]
        given = list(zip([*primals, *values], [*tangents, *moved], strict=True))
        seen.tangents_are_shared = any(
            _share(t, other_t) and not _share(v, other)
            for (v, t), (other, other_t) in itertools.combinations(given, 2)
        )

    def _vmap(self, program: Program, seen: Observation) -> None:
        made = self.start(program)
        kept: list[str] = []

        def f(*given: Any) -> tuple[Any, ...]:
            variables = dict(zip(made, given, strict=True))
            self._calls(program, variables, seen, recorded=False)
            outputs = self._outputs(program, variables)
            kept[:] = outputs
            return tuple(outputs.values())

        dims = tuple(0 if one.batched else None for one in program.inputs)
        values = self.library.func.vmap(f, in_dims=dims)(*made.values())
        seen.failed_at = ""
        seen.final = {n: self.record(t) for n, t in zip(kept, values, strict=True)}
