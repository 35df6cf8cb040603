"""Record operators for the backward pass: create a node for each call, and save the tensors that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core.codegen.derivatives import Derivative
from rushlight_core.codegen.formulas import Use
from rushlight_core.codegen.model import Form, Op
from rushlight_core.seams.stages import go_on, stage_off
from rushlight_testing.tape.formulas import Evaluator, Operators, Shape, fit
from rushlight_testing.tape.graph import (
    Edge,
    Gradients,
    Node,
    NotDifferentiable,
    Overwritten,
    Saved,
    ViewOfRoot,
    check_inplace,
    edge_of,
    rebase_history,
    set_history,
)


def tensors_of(values: Sequence[Any]) -> Iterator[Tensor]:
    """Yield the tensors in arguments, including those in lists."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from (item for item in value if isinstance(item, Tensor))


def _wants_grad(value: Any) -> bool:
    return any(t.requires_grad for t in tensors_of([value]))


class FormulaNode(Node):
    """A node that evaluates the derivative formulas of its operator."""

    derivative: Derivative
    operators: Operators

    __slots__ = (
        "derivative",
        "operators",
        "positions",
        "result_shapes",
        "saved",
        "shapes",
        "uses_of_arguments",
    )

    def __init__(
        self, derivative: Derivative, operators: Operators, bound: dict[str, Any], inplace: bool
    ) -> None:
        self.derivative, self.operators = derivative, operators
        self.positions: dict[str, slice] = {}
        edges: list[Edge | None] = []
        wanted = {name for names in derivative.grads for name in names}
        for argument in derivative.op.tensors:
            value = bound[argument.name]
            values = value if isinstance(value, (tuple, list)) else [value]
            self.positions[argument.name] = slice(len(edges), len(edges) + len(values))
            edges += [edge_of(v) if argument.name in wanted else None for v in values]
        words = derivative.op.name.replace(".", "_").strip("_").split("_")
        title = "".join(word.capitalize() for word in words) + ("InPlace" if derivative.op.is_inplace else "")
        super().__init__(title + "Backward0", edges, len(derivative.op.schema.returns))
        self.saved: dict[str, Any] = {}
        self.shapes: dict[str, Any] = {}
        self.result_shapes: list[Shape] = []
        # An in-place operator is about to overwrite the first argument.
        overwritten = derivative.op.schema.arguments[0].name if inplace else None
        self.uses_of_arguments: set[Use] = {use for use in self.uses() if _argument(use) in bound}
        for use in self.uses_of_arguments:
            value = bound[_argument(use)]
            if use.attribute:
                self.keep_shape(use, value)
            else:
                self.saved[use.name] = _save(value.clone() if _argument(use) == overwritten else value)
        for name in self.fitted():
            self.shapes.setdefault("fit " + name, Shape.of(bound[name]))

    def uses(self) -> set[Use]:
        """Return the values that the formulas of the required gradients use."""
        return {
            use
            for names, formula in self.derivative.grads.items()
            if any(self.wants(name) for name in names)
            for use in formula.uses()
        }

    def fitted(self) -> list[str]:
        """Return the names of the arguments whose gradients must still be summed over broadcast dimensions.

        These are all arguments with a gradient if the operator broadcasts its arguments, and none otherwise.
        """
        op = self.derivative.op
        if op.kind != "pointwise" and op.base != "copy_":
            return []
        return [name for names in self.derivative.grads for name in names]

    def wants(self, name: str) -> bool:
        return any(self.edges[self.positions[name]])

    def keep_shape(self, use: Use, value: Any) -> None:
        if use.attribute == "shapes":
            self.shapes[use.name] = [Shape.of(v) for v in value]
        else:
            self.shapes[use.name] = Shape.of(value)

    def keep_results(self, results: list[Any], auxiliary: dict[str, Any]) -> None:
        """Save the results that formulas use. Formulas refer to a result by its name, by its number, or as `result`."""
        names = [r.name for r in self.derivative.op.schema.returns]
        self.result_shapes = [Shape.of(r) for r in results]
        self.num_results: int = len(results)
        for use in self.uses() - self.uses_of_arguments:
            if use.name in auxiliary:
                self.saved[use.name] = _save(auxiliary[use.name])
            elif use.name == "results":
                self.saved[use.name] = [Saved(r, i) for i, r in enumerate(results)]
            elif use.name == "result" or use.name in names:
                index = names.index(use.name) if use.name in names else 0
                if use.attribute:
                    self.keep_shape(use, results[index])
                else:
                    self.saved[use.name] = Saved(results[index], index)

    def apply(self, grads: Gradients) -> Gradients:
        self.check_not_released()
        if all(g is None for g in grads):
            return [None] * len(self.edges)
        there = next(g for g in grads if g is not None)
        for i, kept in enumerate(self.result_shapes):
            if (
                grads[i] is None
                and kept.dtype is not None
                and (kept.dtype.is_floating_point or kept.dtype.is_complex)
            ):
                grads[i] = core.zeros(kept.shape, dtype=kept.dtype, device=there.device)
        names: dict[str, Any] = {name: _unpack(value, self) for name, value in self.saved.items()}
        names |= {"grad": grads[0], "grads": grads}
        # Note [Complex gradients] in rushlight_core.codegen.derivatives.
        conjugate = bool(self.derivative.complex_values) and any(
            g is not None and g.is_complex() for g in grads
        )
        if conjugate:
            grads[:] = [None if g is None else g.conj() for g in grads]
            names["grad"] = grads[0]
        evaluator = Evaluator(self.operators, names, self.shapes, self.wants)
        out: Gradients = [None] * len(self.edges)
        for arguments, formula in self.derivative.grads.items():
            if not any(self.wants(name) for name in arguments):
                continue
            shares = evaluator.visit(formula.tree)
            for name, share in zip(arguments, shares if len(arguments) > 1 else [shares], strict=True):
                at = self.positions[name]
                listed = isinstance(share, (tuple, list))
                for i, one in enumerate(share if listed else [share], start=at.start):
                    wanted = self.shapes.get("fit " + name)
                    if conjugate and one is not None:
                        one = one.conj()
                    if self.edges[i] is not None:
                        out[i] = fit(one, *wanted[:3]) if wanted else one
        return out

    def release(self) -> None:
        super().release()
        self.saved.clear()


def _argument(use: Use) -> str:
    """Return the name of the argument that a name in a formula refers to, or "" for the incoming gradients."""
    return {"grad": "", "grads": "", "arg_grad": "grad"}.get(use.name, use.name)


def _save(value: Any) -> Any:
    if isinstance(value, Tensor):
        return Saved(value)
    if isinstance(value, (tuple, list)):
        return [_save(v) for v in value]
    return value


def _unpack(value: Any, node: Node) -> Any:
    if isinstance(value, Saved):
        return value.unpack(node)
    if isinstance(value, list):
        return [_unpack(v, node) for v in value]
    return value


class Recorder:
    """The function of the tape that runs an operator and, if an argument requires grad, records the call.

    The tape passes this function to `provide_stage`; see `rushlight_core.seams.stages`.
    """

    def __init__(self, ops: list[Op], derivatives: list[Derivative]) -> None:
        self.operators: Operators = Operators(ops)
        self.forms: dict[str, Form] = {form.name: form for op in ops for form in op.forms()}
        self.derivatives: dict[str, Derivative] = {d.op.name: d for d in derivatives}

    def __call__(self, name: str, args: tuple[Any, ...], rest: int) -> Any:
        form = self.forms[name]
        op = form.op
        derivative = self.derivatives.get(op.name)
        if name == "as_strided":
            return self._as_strided(name, args, rest)
        if form.kind == "Out" or derivative is None or not derivative.grads:
            return self._without_formula(form, args, rest)
        if form.kind == "Aux":
            return go_on(rest, name, *args)
        inplace = form.kind == "InPlace"
        if inplace:
            check_inplace(name, args[0])
        bound = {a.name: value for a, value in zip(form.schema.arguments, args, strict=True)}
        wanted = [name for names in derivative.grads for name in names]
        if not any(_wants_grad(bound[n]) for n in wanted):
            return go_on(rest, name, *args)
        node = FormulaNode(derivative, self.operators, bound, inplace)
        return self._run(form, node, args, rest)

    def _run(self, form: Form, node: FormulaNode, args: tuple[Any, ...], rest: int) -> Any:
        op, inplace = form.op, form.kind == "InPlace"
        auxiliary: dict[str, Any] = {}
        if op.kind == "composite":
            with stage_off("autograd"):
                made = go_on(rest, form.name, *args)
        elif op.aux and not inplace:
            aux = next(f for f in op.forms() if f.kind == "Aux")
            made = go_on(rest, aux.name, *args)
            count = len(op.schema.returns)
            auxiliary = dict(zip(op.aux, made[count:], strict=True))
            made = made[0] if count == 1 else made[:count]
        else:
            made = go_on(rest, form.name, *args)
        results = list(made) if isinstance(made, tuple) else [made]
        for i, result in enumerate(results):
            if inplace:
                rebase_history(result, node, i)
            else:
                set_history(result, node, i)
        node.keep_results(results, auxiliary)
        return made

    def _without_formula(self, form: Form, args: tuple[Any, ...], rest: int) -> Any:
        op = form.op
        passes = op.kind == "composite" or not op.differentiable or op.gives_truth
        needed = any(t.requires_grad for t in tensors_of(args))
        if form.kind == "InPlace" and op.gives_truth:
            check_inplace(form.name, args[0])
            if not args[0].requires_grad:
                return go_on(rest, form.name, *args)
            overwritten = Overwritten(form.name, [edge_of(args[0])])
            made = go_on(rest, form.name, *args)
            rebase_history(made, overwritten)
            return made
        if not needed or (passes and form.kind != "Out"):
            return go_on(rest, form.name, *args)
        if form.kind == "Out":
            raise RuntimeError(
                f"{form.name}: an argument requires grad, but results that are written to out= cannot be differentiated\n"
                "hint: use the form without out=, or torch.no_grad()"
            )
        made = go_on(rest, form.name, *args)
        node = NotDifferentiable(form.name, [edge_of(t) for t in tensors_of(args)])
        for result in tensors_of([made]):
            set_history(result, node)
        return made

    @staticmethod
    def _as_strided(name: str, args: tuple[Any, ...], rest: int) -> Any:
        """Call `as_strided`, the only view operator whose gradient depends on the strides of the base."""
        result = go_on(rest, name, *args)
        if args[0].requires_grad:
            set_history(result, ViewOfRoot(args[0], result))
        return result
