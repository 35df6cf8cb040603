"""Read and check the derivatives of operators, the YAML entries in packages/autograd/derivatives.

    - op: mul                          # the overload, as in ops/*.yaml
      grad:                            # argument: formula; "a, b": a formula that returns a pair of gradients
        input: grad * other
        other: grad * input
      jvp: pointwise                   # linear, constant (overwrites its argument), view (in place), {argument: formula}
      constant: [index]                # arguments without a gradient: integers, bools, shapes, thresholds
      not_differentiable: [weight]     # arguments without a formula: requesting their gradient raises NotImplementedError
      broadcasts: true                 # gradients are reduced to the argument's shape and dtype
      by_hand: [dual]                  # stages (autograd, dual) whose functions are hand-written in src/record.cpp
      mask: {activation: result, low: 0}  # the derivative is 0 where activation <= low or >= high, else 1
      masked: f(grad, activation, low, high)  # the gradient if an operator with `mask` follows: Note [Masks] in pass.cpp

Every tensor argument has a formula or is in one of the lists `constant` and `not_differentiable`, unless
`by_hand` contains autograd. For pointwise operators, `broadcasts` is true by default.

Note [Complex gradients]
The gradient of a real loss L with respect to z = x + iy is dL/dx + i dL/dy. For a holomorphic f, it is conj(f') * grad,
where grad is the gradient of the result. The gradient conj(f') * grad equals conj(f' * conj(grad)), so the formula for real
numbers is correct if grad is conjugated before the formula is evaluated, and the result of the formula is conjugated
afterwards. The generator adds the two conjugations if grad is complex and a formula reads values that may be complex, so the
formulas in the YAML files contain no conjugations. Functions that are not holomorphic (abs, angle, var) have
`holomorphic: false`, and the generator adds no conjugations to their formulas. The tangent of the result is
f' times the tangent of the argument, so tangents are not conjugated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .formulas import Formula, FormulaError
from .loader import EntryError, load_entries
from .model import Op

_KEYS = {
    "op",
    "grad",
    "jvp",
    "holomorphic",
    "constant",
    "not_differentiable",
    "broadcasts",
    "by_hand",
    "mask",
    "masked",
}
STAGES = ("autograd", "dual")


@dataclass(frozen=True)
class Derivative:
    op: Op
    grads: dict[tuple[str, ...], Formula]  # arguments -> formula
    jvp: (
        str | dict[str, Formula]
    )  # "pointwise", "linear", "constant", "view", "" (none) or argument -> formula
    source: Path
    line: int
    holomorphic: bool = True
    not_differentiable: tuple[str, ...] = ()  # the formulas of these arguments in `grads` raise an error
    broadcasts: bool = False
    by_hand: tuple[str, ...] = ()  # subset of STAGES
    mask: dict[str, Formula] = field(default_factory=dict)  # "activation", "low", "high"
    masked: Formula | None = None

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return the arguments for whose gradients the entry has formulas."""
        return tuple(n for names in self.grads for n in names if n not in self.not_differentiable)

    @property
    def complex_values(self) -> set[str]:
        """Return the values that the formulas read and that may be complex: see Note [Complex gradients]."""
        if not self.holomorphic:
            return set()
        kinds = {a.name: a.type.name for a in self.op.schema.arguments}
        kinds |= {"arg_grad": kinds.get("grad", "")} | dict.fromkeys(self.op.bool_inputs, "bool")
        real = ("int", "bool", "float", "str", "dtype", "device", "Generator")
        uses = {use for formula in self.grads.values() for use in formula.uses()}
        return {
            use.name
            for use in uses
            if not use.attribute
            and use.name not in ("grad", "grads")
            and not kinds.get(use.name, "Tensor").startswith(real)
        }


def load_derivatives(folder: Path, ops: list[Op]) -> list[Derivative]:
    """Return the derivatives in the YAML files of `folder`."""
    by_name = {op.name: op for op in ops}
    result: dict[str, Derivative] = {}
    for path, entry in load_entries(folder):
        line = int(entry.pop("__line__"))  # type: ignore[call-overload]
        name = str(entry.get("op"))

        def fail(text: str, where: str = f"{path}:{line}: {name}") -> EntryError:
            return EntryError(f"{where}: {text}")

        if name not in by_name:
            raise fail("core has no such operator")
        if name in result:
            raise fail(f"is defined in {result[name].source}:{result[name].line} already")
        for key in entry:
            if key not in _KEYS:
                raise fail(f"unknown key {key!r}; known are {', '.join(sorted(_KEYS))}")
        op = by_name[name]
        tensors = [a.name for a in op.tensors]
        grads: dict[tuple[str, ...], Formula] = {}
        raw = entry.get("grad", {})
        if not isinstance(raw, dict):
            raise fail("grad must map arguments to formulas")
        raw.pop("__line__", None)
        try:
            for key, text in raw.items():
                names = tuple(part.strip() for part in key.split(","))
                for n in names:
                    if n not in tensors:
                        raise fail(f"grad names {n!r}, which is not a tensor argument")
                grads[names] = Formula.parse(text)
            refused = _names(entry, "not_differentiable")
            by_hand = _names(entry, "by_hand")
            for stage in by_hand:
                if stage not in STAGES:
                    raise fail(f"by_hand names {stage!r}, which is not one of {', '.join(STAGES)}")
            if "autograd" not in by_hand:
                _check_complete(op, [n for names in grads for n in names], refused, _names(entry, "constant"))
            for n in refused:
                grads[(n,)] = Formula.parse(f'_no_gradient(grad, "{op.base.lstrip("_")}", "{n}")')
            jvp = entry.get("jvp", {"pointwise": "pointwise", "view": "linear"}.get(op.kind, ""))
            if isinstance(jvp, dict):
                jvp.pop("__line__", None)
                jvp = {k: Formula.parse(v) for k, v in jvp.items()}
                for names in grads:
                    for n in names:
                        if n not in jvp and n not in refused:
                            raise fail(f"jvp has no formula for {n!r}, so the tangent of {n!r} would be lost")
            elif jvp not in ("pointwise", "linear", "constant", "view", ""):
                raise fail(f"jvp must be pointwise, linear, constant, view or formulas, not {jvp!r}")
            mask = _mask(entry.get("mask"), grads)
            masked = Formula.parse(entry["masked"]) if "masked" in entry else None
            if masked is not None and len(grads) - len(refused) != 1:
                raise fail("masked needs exactly one formula in grad, which covers all arguments")
        except FormulaError as error:
            raise fail(str(error)) from None
        holomorphic = entry.get("holomorphic", True)
        if not isinstance(holomorphic, bool):
            raise fail(f"holomorphic must be true or false, not {holomorphic!r}")
        broadcasts = entry.get("broadcasts", op.kind == "pointwise")
        if not isinstance(broadcasts, bool):
            raise fail(f"broadcasts must be true or false, not {broadcasts!r}")
        result[name] = Derivative(
            op, grads, jvp, path, line, holomorphic, refused, broadcasts, by_hand, mask, masked
        )
    return list(result.values())


def _names(entry: dict[str, object], key: str) -> tuple[str, ...]:
    names = entry.get(key, [])
    if not isinstance(names, list):
        raise FormulaError(f"{key} must be a list of arguments, not {names!r}")
    return tuple(str(n) for n in names)


def _mask(entry: object, grads: dict[tuple[str, ...], Formula]) -> dict[str, Formula]:
    """Return the formulas of the key `mask`.

    The entry must have exactly one formula in `grad`. The formulas of `mask` may read only values that the
    formula in `grad` reads.
    """
    if entry is None:
        return {}
    if not isinstance(entry, dict):
        raise FormulaError(f"mask must map activation, low and high to formulas, not {entry!r}")
    parts = {key: Formula.parse(text) for key, text in entry.items() if key != "__line__"}
    if "activation" not in parts or set(parts) - {"activation", "low", "high"}:
        raise FormulaError(
            f"mask must have the key activation, and may have low and high, got {', '.join(parts)}"
        )
    if len(grads) != 1 or not all(
        part.uses() <= next(iter(grads.values())).uses() for part in parts.values()
    ):
        raise FormulaError(
            "mask needs exactly one formula in grad, and may read only values that this formula reads"
        )
    return parts


def _check_complete(op: Op, given: list[str], refused: tuple[str, ...], constant: tuple[str, ...]) -> None:
    """Check that each tensor argument either has exactly one formula, or is listed exactly once as having no formula."""
    said = [*given, *refused, *constant]
    for n in said:
        if n not in [a.name for a in op.tensors]:
            raise FormulaError(f"{n!r} is not a tensor argument")
        if said.count(n) > 1:
            raise FormulaError(f"{n!r} is listed more than once in grad, constant and not_differentiable")
    for a in op.tensors:
        if a.name not in said:
            raise FormulaError(
                f"the tensor argument {a.name!r} has no gradient: give its formula, or name it in `constant` "
                "(integers, bools, arguments that only give a shape or a threshold) or in `not_differentiable`"
            )
