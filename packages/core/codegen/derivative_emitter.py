"""Code that the emitters of derivatives share: names of arguments and results, and the attributes that a node saves."""

from __future__ import annotations

from .derivatives import Derivative
from .formulas import FormulaError, Use
from .model import Op
from .schema import Argument


class DerivativeEmitter:
    """The base class of the emitters, each of which generates one part of the C++ code of a derivative.

    An emitter also collects the headers and the `install_stage` calls that the emitted code needs.
    """

    d: Derivative
    op: Op
    ops: dict[str, list[Op]]
    tensors: list[Argument]
    args: dict[str, Argument]

    def __init__(self, d: Derivative, ops: dict[str, list[Op]]) -> None:
        self.d, self.op, self.ops = d, d.op, ops
        words = "".join(p.capitalize() for p in d.op.name.replace(".", "_").strip("_").split("_"))
        self.node: str = words + ("InPlace" if d.op.is_inplace else "") + "Backward0"
        self.headers: set[str] = set()
        self.installs: list[str] = []
        self.tensors = list(self.op.tensors)
        self.has_list: bool = any(a.type.name.endswith("[]") for a in self.tensors)
        self.list_result: bool = [r.type for r in self.op.schema.returns] == ["Tensor[]"]
        self.results: list[str] = [r.name for r in self.op.schema.returns]
        self.multi: bool = len(self.op.schema.returns) > 1
        self.args = {a.name: a for a in self.op.schema.arguments}
        if "grad" in self.args:  # formulas use the name `grad` for the gradient of the result
            self.args["arg_grad"] = self.args["grad"]

    def kind_of(self, name: str) -> str:
        if name in (
            "grad",
            "grads",
            "tangent",
        ):  # these names have precedence over arguments of the same name
            return "given"
        if name in self.args:
            return "tensor" if self.args[name].type.is_tensor else "param"
        if name in ("result", "results") or name in self.results:
            return "result"
        if name in self.op.aux:
            return "aux"
        if self.d.masked and name in ("activation", "low", "high"):
            return "given"
        raise FormulaError(f"{name!r} is not an argument, result or auxiliary result of {self.op.name}")

    def saved_uses(self) -> dict[Use, list[int]]:
        """Return a dict that maps each value that the node saves to the indices of the formulas using it."""
        saved: dict[Use, list[int]] = {}
        for i, formula in enumerate(self.d.grads.values()):
            for use in sorted(formula.uses(), key=lambda u: (u.name, u.attribute)):
                if self.kind_of(use.name) != "given":
                    saved.setdefault(self.field(use), []).append(i)
        return saved

    @staticmethod
    def field(use: Use) -> Use:
        """Return the field in which the node saves `use`. All attributes of a tensor share one field."""
        return Use(use.name, "shape") if use.attribute else use

    def position(self, name: str) -> int:
        return [a.name for a in self.tensors].index(name)

    def edge(self, name: str) -> str:
        """Return a C++ expression for the index of an argument's first edge."""
        if not self.has_list:
            return str(self.position(name))
        return f"first_[{self.position(name)}]"

    def fitted(self) -> list[str]:
        """Return the names of the arguments that may be broadcast.

        The generated backward function sums each of their gradients over the dimensions that were broadcast.
        """
        if not self.d.broadcasts:
            return []
        return [n for names in self.d.grads for n in names]

    def result_index(self, name: str) -> int:
        return self.results.index(name) if name in self.results else 0
