"""The model of an operator: the contents of its YAML entry as Python objects."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from .argument_types import TYPES
from .schema import Argument, Schema, cpp_name

KINDS = {
    # kind: the hand-written C++ function that it calls
    "pointwise": "functor of src/ops/functors/, run by the pointwise engine",
    "reduce": "reducer of src/ops/reducers/, run by the reduction engine",
    "view": "rule in src/ops/views/, which computes the geometry of the view",
    "custom": "rule in src/ops/rules/ (shapes and dtypes) and a kernel on raw views in src/cpu/",
    "dynamic": "rule in src/ops/rules/ and two kernels in src/cpu/: one counts the results, the other writes them",
    "composite": "body in src/ops/composites/, which calls operators",
    "create": "rule in src/ops/rules/: shape, dtype, device and the shared kernel that writes the elements",
    "storage": "body in src/ops/storage/: geometry, memory and copies, by functions that every backend has",
}

# For each kind: the folder below src/ops of the hand-written functions, and the suffix of their files.
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


# Whether a result is a view: always, depending on strides and sizes, or depending on dtypes and other arguments. Without the
# key, no result is a view.
VIEWS = ("always", "if possible", "by arguments")
# Whether a call waits for the device: always, or depending on the arguments (masks among indices). Without the key, no call
# waits.
SYNCHRONISES = ("always", "by arguments")


@dataclass(frozen=True)
class Sample:
    """Arguments of a generated test, as Python source that uses the helpers of rushlight_testing.samples."""

    text: str
    line: int


@dataclass(frozen=True)
class Op:
    """An overload of an operator. `name` consists of the operator and the overload, as in "sum.dim"; users call "sum"."""

    name: str
    schema: Schema
    kind: str
    doc: str
    family: str
    source: Path
    line: int
    variants: frozenset[str] = frozenset({"function", "method"})
    synonyms: tuple[str, ...] = ()  # other names of the operator: multiply for mul
    dunder: str = ""  # number slot of Python: add, multiply, ...
    example: str = ""
    body: str = ""  # name of the functor, reducer, rule or body; by default the operator's name
    kernel: str = ""  # typed CPU kernel of kinds custom and dynamic; "": the body's name
    dtypes: str = "any"  # accepted dtypes: dtypes.py
    result: str = ""  # dtypes of the results: a word (kinds pointwise and reduce) or a rule of results.py
    view: str = ""  # whether results share memory with inputs: one of VIEWS; kind view implies "always"
    check: str = ""  # checks the arguments first; pointwise: in src/ops/checks.h; custom: a CPU kernel that checks values
    bool_inputs: tuple[str, ...] = ()
    castable: tuple[
        str, ...
    ] = ()  # numbers that may be complex; for pointwise operators, in the operands' category
    none_is_default: tuple[str, ...] = ()  # arguments for which users may write None instead of the default
    inplace_body: bool = False  # composite: the in-place form has a separate body, whose name ends with "_"
    overwrites: bool = False  # custom: the kernel may write its result over a row-major first tensor
    computes_in_out: bool = False  # the out= form computes in the dtype of `out`, or converts to this dtype
    wraps: bool = False  # pointwise: integers beyond the dtype's range wrap around
    aux: tuple[str, ...] = ()  # hidden results, computed if a formula needs them
    aliases: dict[str, str] = field(default_factory=dict, hash=False)  # other names of arguments: axis -> dim
    arguments: dict[str, str] = field(
        default_factory=dict, hash=False
    )  # descriptions of arguments: argument_descriptions.py
    shapes: dict[str, str] = field(
        default_factory=dict, hash=False
    )  # of arguments and results, if the kind does not determine them: shapes.py
    returns: str = ""  # description of the result, if docstrings.py cannot derive it
    raises: dict[str, str] = field(default_factory=dict, hash=False)  # class of an error -> condition
    random: bool = False
    synchronises: str = ""  # whether the host waits for values: one of SYNCHRONISES
    host: tuple[str, ...] = ()  # tensors that must be on the CPU, whatever the device of the other tensors is
    across_devices: bool = (
        False  # the tensors may be on several devices, because the operator copies them or only reads a shape
    )
    writes: tuple[str, ...] = ()  # arguments that are written besides the result
    writes_if: str = ""  # bool argument; if it is false, `writes` are not written
    rule_only: tuple[str, ...] = ()  # custom: arguments of the rule that the kernel does not receive
    layout: tuple[str, ...] = ()  # custom: arguments whose order of strides the results take: layouts.py
    expects: tuple[
        tuple[str, str], ...
    ] = ()  # requirements on arguments, checked before the body runs: expects.py
    differentiable: bool = True
    onnx: str = ""  # the export to ONNX: an expression of ONNX operators, or "function"; see onnx_rules.py
    c: bool = False  # whether rushlight.h has a function for the operator, besides rl_call
    oracle: str = ""  # expression with NumPy arrays as arguments that computes the expected results
    law: tuple[
        str, ...
    ] = ()  # without an oracle: expressions that must be true for each sample's `result`, or on their own
    samples: tuple[Sample, ...] = ()
    errors: tuple[Sample, ...] = ()

    @property
    def base(self) -> str:
        """The name by which users call the operator."""
        return self.name.split(".")[0]

    @property
    def summary(self) -> str:
        """The first paragraph of the description, on one line."""
        return " ".join(self.doc.strip().split("\n\n")[0].split())

    @property
    def symbol(self) -> str:
        """The name of the Operator variable in C++."""
        return "op_" + self.name.replace(".", "_")

    @property
    def body_name(self) -> str:
        return self.body or cpp_name(self.name.replace(".", "_"))

    @property
    def body_file(self) -> str:
        """The path, relative to packages/core, of the source file in which the operator is implemented."""
        folder, suffix = FOLDERS[self.kind]
        return f"src/ops/{folder}/{self.family}{suffix}"

    @property
    def gives_truth(self) -> bool:
        """Whether the result has truth values, as bools or as uint8 numbers, and therefore no gradient."""
        return self.kind in ("pointwise", "reduce") and self.result in ("bool", "truth")

    @property
    def header(self) -> str:
        return f"rushlight/ops/{self.base}.h"

    @property
    def tensors(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.schema.arguments if a.type.is_tensor)

    @property
    def broadcasts(self) -> bool:
        """Whether the operands are broadcast and promoted.

        A composite operator is assumed to do so if one of its samples is `pairs()`."""
        return self.kind == "pointwise" or any(s.text.startswith("pairs(") for s in self.samples)

    @property
    def is_inplace(self) -> bool:
        """Whether the operator is in-place only, as `copy_` and `zero_` are: it has no functional form."""
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
    """One form of an operator: functional, in-place, out=, or with auxiliary results."""

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
        """The name of the C++ function in rushlight::ops."""
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
