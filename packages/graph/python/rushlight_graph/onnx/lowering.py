"""Lower a program's graph to ONNX nodes.

Note [Memory in ONNX]
A program can write in place and create views; in ONNX each value is defined once and has separate memory. A call that writes
to a tensor therefore defines a new ONNX value for this tensor. If the tensor is a view, its base also gets a new value: the
ONNX operator ScatterElements writes the elements of the view to the base. The view's operator, applied to a tensor of
indices, computes the positions of these elements. Every other view of the same memory is computed again when it is next
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_core._C import _call_boxed
from rushlight_graph.onnx._operators import DYNAMIC, FORMS, RULES
from rushlight_graph.onnx.builder import ELEMENT_TYPES, Builder, Subgraph, Val, ValueType, fixed_sizes
from rushlight_graph.onnx.calls import FUNCTIONS, Call, is_size
from rushlight_graph.onnx.graph import Block, DecodedGraph, DTypeName, Node, UnsupportedError, Use

# Operators that change the shape of their argument, and none of its elements.
_RESHAPE_IN_PLACE = {"squeeze_", "squeeze_.dim", "unsqueeze_", "transpose_", "swapaxes_", "t_"}
_FOLDED_ELEMENTS = 1 << 16


class _IncompleteError(Exception):
    """Raised if a block contains a call that cannot be exported.

    The reason has been added to `Lowering.problems` before.
    """


class Lowering:
    """Converts the calls of a graph to ONNX nodes, one call after the other."""

    def __init__(self, graph: DecodedGraph, constants: Sequence[Tensor], builder: Builder) -> None:
        self.graph = graph
        self.builder = builder
        self.problems: list[str] = []
        self._vals: dict[int, Val] = {}
        self._made: dict[int, int] = {}  # for each value, the version of its memory when it was computed
        self._versions: dict[int, int] = {}  # current version of each memory (the key is its first value)
        self._view_of: dict[int, tuple[Node, int, int]] = {}  # for a view: call, result index, base
        self._same: dict[int, int] = {}  # for a value that is the same tensor as an earlier value: that value
        self._from_outside: dict[int, str] = {}  # for memory of an input or constant: its description
        self._last_use: dict[int, int] = {}
        self._missing: set[int] = set()  # results of calls that cannot be exported
        self._at = 0
        self._sharing: dict[int, list[int]] = {}  # for each memory: the values that use it
        for value, info in enumerate(graph.values):
            self._sharing.setdefault(info.memory, []).append(value)
        # The number of each node, by id(). The nodes of a block come before the node that has the block.
        self._numbers: dict[int, int] = {}
        self._number(graph.nodes)
        for value in graph.outputs:
            self._last_use[value] = len(self._numbers)
        for name, value in graph.inputs:
            info = graph.values[value]
            if info.dtype not in ELEMENT_TYPES:
                self.problems.append(
                    f"input '{name}': dtype {info.dtype}, which is not supported by ONNX's operators"
                )
            given = builder.reserve(name)
            builder.input_names.append(given)
            self._define(value, Val(given, info.dtype))
            self._from_outside[info.memory] = f"its input '{name}'"
        for (name, value, kind, _), tensor in zip(graph.constants, constants, strict=True):
            info = graph.values[value]
            if info.dtype not in ELEMENT_TYPES:
                self.problems.append(
                    f"{kind} '{name}': dtype {info.dtype}, which is not supported by ONNX's operators"
                )
                self._missing.add(value)
                continue
            self._define(value, builder.constant(tensor, name))
            self._from_outside.setdefault(info.memory, f"its {kind} '{name}'")

    def run(self) -> list[Val]:
        """Export all calls, and return the results, or an empty list if `problems` is not empty."""
        self._export_nodes(self.graph.nodes)
        self._at = len(self._numbers)
        if self.problems:
            return []
        return [self._read(value) for value in self.graph.outputs]

    def _number(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            for block in node.blocks:
                self._number(block.nodes)
            number = self._numbers[id(node)] = len(self._numbers)
            for value in [*node.uses(), *(value for block in node.blocks for value in block.outputs)]:
                self._last_use[value] = number

    def _export_nodes(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._at = self._numbers[id(node)]
            if self._missing.intersection(node.uses()):
                self._missing.update(node.defines())
                continue
            self.builder.where = f"{node.op} at {node.line}" if node.line else node.op
            if node.module:
                self.builder.where += f" in {node.module}"
            where = self.builder.where
            try:
                if node.control:
                    self._export_control_flow(node)
                else:
                    self._export(node)
            except UnsupportedError as error:
                self.problems.append(f"{where}: {error}")
                self._missing.update(node.defines())
            except _IncompleteError:
                self._missing.update(node.defines())

    # --- control flow ---

    def _export_control_flow(self, node: Node) -> None:
        given = [self._read(value) for value in node.uses()]
        results = node.defines()
        dtypes = [self.graph.values[value].dtype for value in results]
        for dtype in dtypes:
            if dtype not in ELEMENT_TYPES:
                raise UnsupportedError(
                    f"its result is of dtype {dtype}, which is not supported by ONNX's operators"
                )
        if node.control == "cond":
            yes, no = (self._subgraph([], partial(self._outputs, block, [])) for block in node.blocks)
            made = self.builder.ops(
                "If", self._truth(given[0]), dtypes=dtypes, then_branch=yes, else_branch=no
            )
        elif node.control == "while_loop":
            made = self._while_loop(node, given, dtypes)
        else:
            (block,) = node.blocks
            inputs = self._inputs(block)
            body = self._subgraph(self._types(block, inputs), lambda: self._outputs(block, inputs))
            made = self.builder.ops(
                "Scan", *given, dtypes=dtypes, body=body, num_scan_inputs=len(_uses(node.arguments[1]))
            )
        for value, val in zip(results, made, strict=True):
            self._define(value, val)

    def _while_loop(self, node: Node, given: list[Val], dtypes: list[str]) -> list[Val]:
        """Add a Loop whose body ends by computing the condition of the next iteration, and return its results."""
        condition, block = node.blocks
        with self._scope():
            start = self._condition(condition, given)
        inputs = self._inputs(block)

        def body() -> list[tuple[Val, ValueType]]:
            outputs = self._outputs(block, inputs)
            goes_on = self._condition(condition, [val for val, _ in outputs])
            return [(goes_on, ValueType("", "bool", [])), *outputs]

        counters = [
            ValueType(self.builder.fresh("iteration"), "int64", []),
            ValueType(self.builder.fresh("condition"), "bool", []),
        ]
        subgraph = self._subgraph([*counters, *self._types(block, inputs)], body)
        return self.builder.ops("Loop", None, start, *given, dtypes=dtypes, body=subgraph)

    def _condition(self, block: Block, given: list[Val]) -> Val:
        for value, val in zip(block.inputs, given, strict=True):
            self._define(value, val)
        self._export_nodes(block.nodes)
        if self._missing.intersection(block.outputs):
            raise _IncompleteError
        return self._truth(self._read(block.outputs[0]))

    def _truth(self, val: Val) -> Val:
        return self.builder.op("Reshape", self.builder.cast(val, "bool"), self.builder.ints([]))

    def _inputs(self, block: Block) -> list[Val]:
        return [Val(self.builder.fresh("carried"), self.graph.values[value].dtype) for value in block.inputs]

    def _types(self, block: Block, inputs: list[Val]) -> list[ValueType]:
        return [
            self.builder.type_of(val.name, value) for val, value in zip(inputs, block.inputs, strict=True)
        ]

    def _outputs(self, block: Block, inputs: list[Val]) -> list[tuple[Val, ValueType]]:
        """Export the nodes of a block, and return its results with their types."""
        for value, val in zip(block.inputs, inputs, strict=True):
            self._define(value, val)
        self._export_nodes(block.nodes)
        if self._missing.intersection(block.outputs):
            raise _IncompleteError
        return [(self._read(value), self.builder.type_of("", value)) for value in block.outputs]

    def _subgraph(self, inputs: list[ValueType], make: Callable[[], list[tuple[Val, ValueType]]]) -> Subgraph:
        """Return the graph of the nodes that `make` exports.

        Each output is computed by a node of this graph, as ONNX runtimes require."""
        with self._scope(), self.builder.subgraph() as nodes:
            outputs: list[ValueType] = []
            for val, kind in make():
                own = {output for node in nodes for output in node.outputs}
                if val.name not in own or any(val.name == other.name for other in outputs):
                    val = self.builder.op("Identity", val)
                outputs.append(ValueType(val.name, kind.dtype, kind.sizes))
            return Subgraph(nodes, inputs, outputs)

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """Discard the ONNX values defined in the `with` block at its end: other subgraphs cannot use them."""
        saved = self._vals, self._made, self._versions, self._view_of, self._same
        self._vals, self._made, self._versions = dict(self._vals), dict(self._made), dict(self._versions)
        self._view_of, self._same = dict(self._view_of), dict(self._same)
        where, at = self.builder.where, self._at
        try:
            yield
        finally:
            self._vals, self._made, self._versions, self._view_of, self._same = saved
            self.builder.where, self._at = where, at

    # --- values ---

    def _memory(self, value: int) -> int:
        return self.graph.values[value].memory

    def _representative(self, value: int) -> int:
        while value in self._same:
            value = self._same[value]
        return value

    def _define(self, value: int, val: Val) -> None:
        self._vals[value] = val
        self._made[value] = self._versions.get(self._memory(value), 0)

    def _read(self, value: int) -> Val:
        value = self._representative(value)
        if self._made[value] != self._versions.get(self._memory(value), 0):
            # The value is a view, because the first value with this memory is always up to date.
            node, which, _ = self._view_of[value]
            self._define(value, self._flat(self._call(node))[which])
        return self._vals[value]

    def _flat(self, given: Any) -> list[Val]:
        if isinstance(given, Val):
            return [given]
        return [part for item in given for part in self._flat(item)]

    # --- calls ---

    def _export(self, node: Node) -> None:
        made = self._flat(self._call(node))
        results = node.defines()
        if node.op in _RESHAPE_IN_PLACE:
            self._views(node, made, node.uses()[0], results)
        elif node.writes:
            self._write_all(node, made, results)
        else:
            uses = node.uses()
            for which, (value, val) in enumerate(zip(results, made, strict=False)):
                parents = [use for use in uses if self._memory(use) == self._memory(value)]
                if not parents or self._memory(value) == value:
                    self._define(value, self.builder.cast(val, self.graph.values[value].dtype))
                elif val == self._read(parents[0]):
                    self._same[value] = self._representative(parents[0])
                else:
                    self._view_of[value] = (node, which, self._representative(parents[0]))
                    self._define(value, val)

    def _views(self, node: Node, made: list[Val], parent: int, results: list[int]) -> None:
        for which, (value, val) in enumerate(zip(results, made, strict=True)):
            self._view_of[value] = (node, which, self._representative(parent))
            self._define(value, val)

    def _call(self, node: Node) -> Any:
        name = FORMS.get(node.op, node.op)
        if name not in RULES and _in_place(name) in RULES and self._replaces(node):
            name = _in_place(name)
        if node.random:
            raise UnsupportedError(
                "draws random numbers\nhint: call eval() on the model before it is exported"
            )
        for value in node.defines():
            if self.graph.values[value].dtype not in ELEMENT_TYPES:
                raise UnsupportedError(
                    f"its result is of dtype {self.graph.values[value].dtype}, which is not supported by ONNX's operators"
                )
        if (folded := self._folded(node)) is not None:
            return folded
        results = [self.graph.values[value] for value in node.defines()]
        if results and not node.writes and all(value.fixed and 0 in value.sizes for value in results):
            return [self.builder.empty(value.sizes, value.dtype) for value in results]
        rule = RULES.get(name)
        if rule is None:
            if name in DYNAMIC:
                raise UnsupportedError(
                    "the size of its result depends on values of a tensor, which is not supported"
                )
            raise UnsupportedError("has no equivalent in ONNX")
        # The out= tensors come last among the arguments.
        tensors = {
            use: self._read(use)
            for argument in node.arguments[: len(rule.arguments)]
            for use in _uses(argument)
        }
        call = Call(self.builder, name, node, tensors, self.graph.values)
        made = call.evaluate(rule.onnx) if rule.onnx != "function" else FUNCTIONS[name](self.builder, call)
        call.check_asked()
        return made

    def _replaces(self, node: Node) -> bool:
        """Return whether the result could be written to the first argument, so that the in-place form returns it, too."""
        (first, *_), (result, *_) = node.uses(), node.defines()
        sizes = [self.graph.values[value].sizes for value in (first, result)]
        return sizes[0] == sizes[1] and self.graph.values[first].dtype == self.graph.values[result].dtype

    def _folded(self, node: Node) -> list[Val] | None:
        """Compute a call without tensor arguments, and return its results as constants, or None if it must become nodes."""
        moving = any(is_size(item) for argument in node.arguments for item in _items(argument))
        values = [self.graph.values[value] for value in node.defines()]
        if node.uses() or moving or not values or not all(value.fixed for value in values):
            return None
        number = 1
        for size in fixed_sizes(values[0]):
            number *= size
        if number > _FOLDED_ELEMENTS and node.op in FUNCTIONS:
            return None
        arguments = [getattr(core, a) if isinstance(a, DTypeName) else a for a in node.arguments]
        result = _call_boxed(node.op, *arguments)
        tensors = list(result) if isinstance(result, (list, tuple)) else [result]
        return [self.builder.constant(tensor) for tensor in tensors]

    # --- writes ---

    def _write_all(self, node: Node, made: list[Val], results: list[int]) -> None:
        written = [use for position in node.writes for use in _uses(node.arguments[position])]
        in_place = FORMS.get(node.op, node.op) != node.op or node.op.partition(".")[0].endswith("_")
        if not in_place:
            outside = [self._from_outside.get(self._memory(value)) for value in written]
            what = next((text for text in outside if text), "an argument")
            raise UnsupportedError(
                f"modifies {what} in place\nhint: call eval() on the model before it is exported"
            )
        for value, val in zip(written, made, strict=False):
            if outside_name := self._from_outside.get(self._memory(value)):
                raise UnsupportedError(f"modifies {outside_name} in place, which is not possible in ONNX")
            self._write(self._representative(value), self.builder.cast(val, self.graph.values[value].dtype))
        for value, target in zip(results, written, strict=False):
            self._same[value] = self._representative(target)

    def _write(self, value: int, val: Val) -> None:
        memory = self._memory(value)
        seen = any(
            self._last_use.get(other, -1) > self._at and self._representative(other) != value
            for other in self._sharing[memory]
        )
        # Go from the view to its base, and compute all new values before the version is increased.
        definitions = [(value, val)]
        while seen and value in self._view_of:
            node, which, parent = self._view_of[value]
            val = self._replaced(node, which, parent, value, val)
            value = parent
            definitions.append((value, val))
        if not seen and value in self._view_of:
            # The remaining elements of this memory are not read any more.
            definitions = definitions[:1]
        self._versions[memory] = self._versions.get(memory, 0) + 1
        for changed, new in definitions:
            self._define(changed, new)

    def _replaced(self, node: Node, which: int, parent: int, view: int, val: Val) -> Val:
        """Return the tensor `parent` after the elements of one of its views are replaced by `val`."""
        before, sizes = self._read(parent), self.graph.values[parent].sizes
        base = FORMS.get(node.op, node.op)
        if base in (
            "view",
            "reshape",
            "flatten",
            "unsqueeze",
            "squeeze",
            "squeeze.dim",
            "unflatten",
            "ravel",
            "view_as",
        ):
            return self.builder.reshape(val, sizes)
        try:
            positions = self._positions(node, which, parent)
        except UnsupportedError:
            raise UnsupportedError(
                "changes a part of a tensor of dynamic shape, which is not supported"
            ) from None
        flat = self.builder.op(
            "ScatterElements",
            self.builder.flat(before),
            self.builder.constant(positions.reshape(-1)),
            self.builder.flat(val),
            axis=0,
        )
        return self.builder.reshape(flat, sizes)

    def _positions(self, node: Node, which: int, parent: int) -> Tensor:
        """Return the index of each element of a view in its flattened base."""
        sizes = fixed_sizes(self.graph.values[parent])
        count = 1
        for size in sizes:
            count *= size
        indices = core.arange(count).reshape(sizes)
        arguments = []
        for argument in node.arguments:
            if isinstance(argument, Use):
                if self._representative(argument.value) != parent:
                    raise UnsupportedError("a view cannot have more than one tensor as its base")
                arguments.append(indices)
            elif any(is_size(item) for item in _items(argument)):
                raise UnsupportedError("an argument depends on a dynamic size, which is not supported")
            else:
                arguments.append(getattr(core, argument) if isinstance(argument, DTypeName) else argument)
        result = _call_boxed(node.op, *arguments)
        return (result[which] if isinstance(result, (list, tuple)) else result).contiguous()


def _items(argument: Any) -> list[Any]:
    return argument if isinstance(argument, list) else [argument]


def _in_place(name: str) -> str:
    base, dot, overload = name.partition(".")
    return f"{base}_{dot}{overload}"


def _uses(argument: Any) -> list[int]:
    return [item.value for item in _items(argument) if isinstance(item, Use)]
