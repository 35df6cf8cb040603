"""Convert models to the graphs that TensorBoard draws."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight.utils.tensorboard import _package as pb
from rushlight_graph.onnx.graph import DecodedGraph, Value, read


def _node(name: str, op: str, inputs: Iterable[str], shapes: list[list[int]], text: str = "") -> Any:
    made = pb.node.NodeDef(name=name, op=op, input=inputs)
    for sizes in shapes:
        dims = [pb.shape.TensorShapeProto.Dim(size=size) for size in sizes]
        made.attr["_output_shapes"].list.shape.add(dim=dims)
    if text:
        made.attr["attr"].s = text.encode()
    return made


def _sizes(value: Value) -> list[int]:
    return [size if isinstance(size, int) else -1 for size in value.sizes]


def of_program(program: Any) -> Any:
    """Return a program of `export` as a GraphDef: a node for each argument, parameter, operator and result.

    Operators are in the scope of the module that called them, and parameters are in the scope of their module.
    """
    graph: DecodedGraph = read(program.program)
    names: dict[int, str] = {}
    nodes = []
    for name, value in graph.inputs:
        names[value] = f"input/{name}"
        nodes.append(_node(names[value], "IO Node", [], [_sizes(graph.values[value])]))
    for name, value, kind, _ in graph.constants:
        names[value] = name.replace(".", "/")
        nodes.append(_node(names[value], kind.capitalize(), [], [_sizes(graph.values[value])]))
    for number, call in enumerate(graph.nodes):
        scope = call.module.replace(".", "/")
        name = f"{scope}/{call.op}_{number}" if scope else f"{call.op}_{number}"
        inputs = [names[value] for value in call.uses()]
        results = [_sizes(graph.values[value]) for value in call.defines()]
        nodes.append(_node(name, call.op, inputs, results, call.line))
        for index, value in enumerate(call.defines()):
            names[value] = f"{name}:{index}" if index else name
    for number, value in enumerate(graph.outputs):
        nodes.append(_node(f"output/{number}", "IO Node", [names[value]], [_sizes(graph.values[value])]))
    return pb.graph.GraphDef(node=nodes, versions=pb.versions.VersionDef(producer=22))


def capture(model: Any, inputs: Any) -> Any:
    """Export a module with the example inputs `inputs`, and return the program."""
    arguments = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    return rushlight.export.export(model, arguments)


def of_onnx(model: Any) -> Any:
    """Return the graph of a model in ONNX as a GraphDef."""
    graph = model.graph
    nodes = []
    for kind, values in (("Placeholder", graph.input), ("IO Node", graph.output)):
        for value in values:
            sizes = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            nodes.append(_node(value.name, kind, [], [sizes]))
    for number, call in enumerate(graph.node):
        text = ", ".join(attribute.name for attribute in call.attribute)
        name = call.name or f"{call.op_type}_{number}"
        nodes.append(_node(name, call.op_type, call.input, [], text))
    return pb.graph.GraphDef(node=nodes, versions=pb.versions.VersionDef(producer=22))
