"""The model of an operator, after its YAML entry has been read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from .argument_types import TYPES
from .schema import Argument, Schema, cpp_name

KINDS = {
    # kind: keys that only it may have; the hand-written C++ function it calls
    "pointwise": "functor of src/ops/functors/, run by the pointwise engine",
    "reduce": "reducer of src/ops/reducers/, run by the reduction engine",
    "view": "rule in src/ops/views/: geometry in, geometry out",
    "custom": "rule in src/ops/rules/ (shapes and dtypes) and a kernel on raw views in src/cpu/",
    "dynamic": "rule in src/ops/rules/ and two kernels in src/cpu/: one counts what the other fills in",
    "composite": "body in src/ops/composites/, made of operators",
    "create": "rule in src/ops/rules/: shape, dtype, device and the shared kernel that writes the elements",
    "storage": "body in src/ops/storage/: geometry, memory and copies, by services that every device has",
}

# For each kind: the folder below src/ops of the functions that are written by hand, and the suffix of its
# files.
FOLDERS = {
    "pointwise": ("functors", ".h"),
    "reduce": ("reducers", ".h"),
    "view": ("views", ".cpp"),
    "custom": ("rules", ".cpp"),
    "dynamic": ("rules", ".cpp"),
    "create": ("rules", ".cpp"),
    "composite": ("composites", ".cpp"),
    "storage": ("storage", ".cpp"),
}


# The facts that decide whether a result is a view: none, strides and sizes, or dtypes and other arguments.
# Without the key, no result is.
VIEWS = ("always", "if possible", "by arguments")
# The facts that decide whether a call waits for the device: none, or the arguments (masks among indices).
# Without the key, no call does.
SYNCHRONISES = ("always", "by arguments")


@dataclass(frozen=True)
class Sample:
    """Arguments of one generated test, as Python source over the helpers of rushlight_testing.samples."""

    text: str
    line: int


@dataclass(frozen=True)
class Op:
    """One overload. `name` is "sum.dim": operator and overload; users see "sum"."""

    name: str
    schema: Schema
    kind: str
    doc: str
    family: str
    source: Path
    line: int
    variants: frozenset[str] = frozenset({"function", "method"})
    synonyms: tuple[str, ...] = ()  # other names that users call it by: multiply for mul
    dunder: str = ""  # number slot of Python: add, multiply, ...
    example: str = ""
    body: str = ""  # functor, reducer, rule or body; the name by default
    kernel: str = ""  # typed CPU kernel of kinds custom and dynamic; "" = the body's name
    dtypes: str = "any"  # what it takes: dtypes.py
    result: str = ""  # dtypes of the results: a word of kinds pointwise and reduce, else a rule of results.py
    view: str = ""  # whether results share memory with inputs: one of VIEWS; kind view implies "always"
    check: str = ""  # receives the arguments first; pointwise: of src/ops/checks.h; custom: a CPU kernel that checks values
    bool_inputs: tuple[str, ...] = ()
    castable: tuple[
        str, ...
    ] = ()  # numbers that may be complex; of pointwise operators in the operands' category
    none_is_default: tuple[str, ...] = ()  # arguments for which users may write None instead of the default
    wraps: bool = False  # pointwise: integers beyond the dtype's range are taken modulo it
    aux: tuple[str, ...] = ()  # hidden results, made when a formula needs them
    aliases: dict[str, str] = field(default_factory=dict, hash=False)  # other names of arguments: axis -> dim
    arguments: dict[str, str] = field(
        default_factory=dict, hash=False
    )  # what they mean: argument_descriptions.py
    shapes: dict[str, str] = field(
        default_factory=dict, hash=False
    )  # of arguments and results, where the kind does not determine them: shapes.py
    returns: str = ""  # what is returned, where docstrings.py cannot derive it
    raises: dict[str, str] = field(default_factory=dict, hash=False)  # class of an error to when it is raised
    random: bool = False
    synchronises: str = ""  # whether the host waits for values: one of SYNCHRONISES
    host: tuple[str, ...] = ()  # tensors that lie on the CPU, wherever the others do
    across_devices: bool = (
        False  # its tensors may lie on several devices: what it does is to copy, or to read a shape
    )
    writes: tuple[str, ...] = ()  # arguments that are written besides the result
    writes_if: str = ""  # bool argument without which they are not
    rule_only: tuple[str, ...] = ()  # custom: arguments that the rule receives and the kernel does not
    expects: tuple[
        tuple[str, str], ...
    ] = ()  # what is required of arguments before the body runs: expects.py
    differentiable: bool = True
    onnx: str = (
        ""  # how it is exported: an expression over ONNX's operators, or "function"; see onnx_rules.py
    )
    c: bool = False  # whether rushlight.h has a function of its own for it, besides rl_call
    oracle: str = ""  # expression over the arguments as NumPy arrays that gives the results
    law: tuple[
        str, ...
    ] = ()  # where there is no oracle: expressions that hold of each sample's `result`, or by themselves
    samples: tuple[Sample, ...] = ()
    errors: tuple[Sample, ...] = ()

    @property
    def base(self) -> str:
        """The name that users call."""
        return self.name.split(".")[0]

    @property
    def summary(self) -> str:
        """The first paragraph of the description, on one line."""
        return " ".join(self.doc.strip().split("\n\n")[0].split())

    @property
    def symbol(self) -> str:
        """Name of the Operator variable in C++."""
        return "op_" + self.name.replace(".", "_")

    @property
    def body_name(self) -> str:
        return self.body or cpp_name(self.name.replace(".", "_"))

    @property
    def body_file(self) -> str:
        """Path of the source below packages/core to which the body belongs: its folder is the kind, its name the family."""
        folder, suffix = FOLDERS[self.kind]
        return f"src/ops/{folder}/{self.family}{suffix}"

    @property
    def gives_truth(self) -> bool:
        """Whether its loop writes truth values, which have no gradient."""
        return self.kind in ("pointwise", "reduce") and self.result in ("bool", "truth")

    @property
    def header(self) -> str:
        return f"rushlight/ops/{self.base}.h"

    @property
    def tensors(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.schema.arguments if a.type.is_tensor)

    @property
    def broadcasts(self) -> bool:
        """Whether its operands are brought to one shape and dtype; for composites, their samples decide."""
        return self.kind == "pointwise" or any(s.text.startswith("pairs(") for s in self.samples)

    @property
    def is_inplace(self) -> bool:
        """Whether the natural form writes its first argument (copy_, zero_), so that no functional form exists."""
        return self.base.endswith("_") and not self.base.endswith("__")

    # --- derived forms: each is a separate Op in the table ---

    def forms(self) -> list[Form]:
        result = [Form(self, "InPlace" if self.is_inplace else "Functional")]
        if "inplace" in self.variants and not self.is_inplace:
            result.append(Form(self, "InPlace"))
        if "out" in self.variants:
            result.append(Form(self, "Out"))
        if self.aux:
            result.append(Form(self, "Aux"))
        return result


@dataclass(frozen=True)
class Form:
    """An operator in one form: functional, in-place, out= or with its auxiliary results."""

    op: Op
    kind: str  # Functional, InPlace, Out, Aux

    @property
    def name(self) -> str:
        base, _, overload = self.op.name.partition(".")
        if self.kind == "InPlace" and not self.op.is_inplace:
            base += "_"
        if self.kind in ("Out", "Aux"):
            overload = (overload + "_" if overload else "") + self.kind.lower()
        return base + ("." + overload if overload else "")

    @property
    def symbol(self) -> str:
        return "op_" + self.name.replace(".", "_")

    @property
    def function(self) -> str:
        """The C++ function in rushlight::ops."""
        suffix = {
            "Functional": "",
            "InPlace": "" if self.op.is_inplace else "_",
            "Out": "_out",
            "Aux": "_aux",
        }
        return cpp_name(self.op.base) + suffix[self.kind]

    @property
    def schema(self) -> Schema:
        schema = self.op.schema
        if self.kind == "InPlace" and not self.op.is_inplace:
            first = replace(schema.arguments[0], type=TYPES["Tensor"], write=True)
            return replace(schema, arguments=(first, *schema.arguments[1:]))
        if self.kind == "Out":
            extra = tuple(
                Argument(r.name or "out", TYPES[r.type], keyword_only=True, write=True)
                for r in schema.returns
            )
            return replace(schema, arguments=schema.arguments + extra)
        if self.kind == "Aux":
            from .schema import Return

            return replace(schema, returns=schema.returns + tuple(Return("Tensor", n) for n in self.op.aux))
        return schema

    @property
    def table_form(self) -> str:
        return "Functional" if self.kind == "Aux" else self.kind

    @property
    def text(self) -> str:
        return self.schema.text(self.name)

    @property
    def hash(self) -> int:
        return self.schema.hash(self.name)
