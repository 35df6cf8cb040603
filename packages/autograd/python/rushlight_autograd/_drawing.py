"""Draw the recorded graph as an SVG image, or return the source text from which Graphviz draws the graph."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from rushlight_autograd import _C
from rushlight_core import Tensor

__all__ = ["Graph", "to_dot", "to_svg"]

_FILL = {"operator": "#e9eef5", "leaf": "#d5ead8", "output": "#f7e3c5", "saved": "#f4f4f4"}
_LINE, _TEXT = "#5b6776", "#1d2733"
_CHARACTER, _ROW, _GAP, _LAYER_GAP = 6.7, 16.0, 18.0, 42.0  # character width, line height, distances


@dataclass
class _Box:
    """A box of the drawing: a node, a leaf, an output, a saved tensor, or a bend of a long edge (without text)."""

    kind: str
    lines: list[str] = field(default_factory=list)
    title: str = ""  # the tooltip
    layer: int = 0
    x: float = 0.0  # horizontal position of the center
    y: float = 0.0
    tall: float = 0.0  # for a bend: the length of its vertical part, which passes the boxes beside it

    @property
    def weight(self) -> float:
        """Return the weight of this box in the weighted means of horizontal positions.

        Operators have larger weights than leaves and saved tensors, so that chains of operators are drawn vertically.
        """
        return 1.0 if self.kind in ("leaf", "saved") else 1000.0

    @property
    def width(self) -> float:
        return max((len(line) for line in self.lines), default=0) * _CHARACTER + 16 if self.lines else 2

    @property
    def height(self) -> float:
        return len(self.lines) * _ROW + 8 if self.lines else self.tall


class Graph:
    """A graph to draw: the nodes that computed some outputs, with edges from the outputs to the leaves.

    Raises:
        TypeError: an output is not a tensor.
        ValueError: an output has no graph, or the graph has more than `max_nodes` nodes.

    Example:
        >>> y = torch.ones(2, requires_grad=True).exp()
        >>> graph = Graph(y, None, show_saved=False, max_nodes=10)
        >>> to_dot(graph).splitlines()[0]
        'digraph {'
    """

    def __init__(self, outputs: Any, params: Any, show_saved: bool, max_nodes: int) -> None:
        self.boxes: list[_Box] = []
        self.edges: list[tuple[int, int, str]] = []  # (from, to, kind); kind is "" or "saved"
        self.names = _names(params)
        self.show_saved, self.max_nodes = show_saved, max_nodes
        self._numbers: dict[Any, int] = {}
        tensors = [outputs] if isinstance(outputs, Tensor) else list(outputs)
        for i, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"outputs must be Tensors, not {type(tensor).__name__}")
            if tensor.grad_fn is None:
                raise ValueError(
                    f"output {i} (shape {tuple(tensor.shape)}) has no graph: it is a leaf, or does not require grad"
                )
            name = self.names.get(id(tensor), "output" if len(tensors) == 1 else f"output {i}")
            box = self._add(_Box("output", [name, _shape(tensor)]))
            self.edges.append((box, self._visit(tensor.grad_fn), ""))

    def _add(self, box: _Box) -> int:
        if len(self.boxes) >= self.max_nodes:
            raise ValueError(
                f"the graph has more than max_nodes={self.max_nodes} nodes\n"
                "hint: draw fewer outputs, or pass a larger max_nodes"
            )
        self.boxes.append(box)
        return len(self.boxes) - 1

    def _visit(self, start: Any) -> int:
        todo = [start]
        first = self._number(start)
        done: set[int] = set()
        while todo:
            node = todo.pop()
            here = self._number(node)
            if here in done:
                continue
            done.add(here)
            for following, _ in node.next_functions:
                if following is not None:
                    new = following not in self._numbers
                    self.edges.append((here, self._number(following), ""))
                    if new:
                        todo.append(following)
            if self.show_saved:
                for name, tensor in _C._saved_of(node):
                    lines = [name, "packed by a hook" if tensor is None else _shape(tensor)]
                    self.edges.append((here, self._add(_Box("saved", lines)), "saved"))
        return first

    def _number(self, node: Any) -> int:
        if node not in self._numbers:
            if node.name() == "AccumulateGrad":
                leaf = node.variable
                box = _Box("leaf", [self.names.get(id(leaf), "leaf"), _shape(leaf)])
            else:
                box = _Box("operator", [node.name()], title=f"recorded at {node.site}" if node.site else "")
            self._numbers[node] = self._add(box)
        return self._numbers[node]


def to_dot(graph: Graph) -> str:
    """Return the source text from which Graphviz draws a graph.

    Example:
        >>> y = torch.ones(2, requires_grad=True).exp()
        >>> to_dot(Graph(y, None, show_saved=False, max_nodes=10)).startswith("digraph")
        True
    """
    lines = ["digraph {", '  node [shape=box, style=filled, fontname="monospace"]']
    for i, box in enumerate(graph.boxes):
        label = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in box.lines)
        lines.append(f'  n{i} [label="{label}", fillcolor="{_FILL[box.kind]}"]')
    # Draw edges in the direction of the forward computation.
    lines += [
        f"  n{b} -> n{a}" + (" [style=dashed, arrowhead=none]" if kind else "") for a, b, kind in graph.edges
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _names(params: Any) -> dict[int, str]:
    pairs = params.items() if isinstance(params, Mapping) else (params or ())
    return {id(tensor): name for name, tensor in pairs}


def _shape(tensor: Tensor) -> str:
    dtype = str(tensor.dtype).rpartition(".")[2]
    return f"{dtype}{tuple(tensor.shape)}" if tensor.dim() else f"{dtype}, 0-d"


# --- layout ---
#
# The method of Sugiyama, Tagawa and Toda (1981): assign boxes to layers, insert bends where edges cross layers, order
# each layer so that few edges cross, then compute coordinates.


def to_svg(graph: Graph) -> str:
    """Return an SVG image of a graph, as text.

    Example:
        >>> y = torch.ones(2, requires_grad=True).exp()
        >>> to_svg(Graph(y, None, show_saved=False, max_nodes=10)).startswith("<svg")
        True
    """
    boxes, edges = list(graph.boxes), list(graph.edges)
    _set_layers(boxes, edges)
    chains = _with_bends(boxes, edges)
    layers = _ordered(boxes, chains)
    width, height = _lay_out(boxes, layers, chains)
    return _svg(boxes, edges, chains, width, height)


def _set_layers(boxes: list[_Box], edges: list[tuple[int, int, str]]) -> None:
    """Put each node one layer above the highest of its consumers; outputs are at the bottom, in layer 0.

    Saved tensors are one layer above their node.
    """
    incoming = [0] * len(boxes)
    outgoing: list[list[int]] = [[] for _ in boxes]
    for a, b, _ in edges:
        incoming[b] += 1
        outgoing[a].append(b)
    ready = [i for i, n in enumerate(incoming) if n == 0]
    while ready:
        a = ready.pop()
        for b in outgoing[a]:
            boxes[b].layer = max(boxes[b].layer, boxes[a].layer + 1)
            incoming[b] -= 1
            if incoming[b] == 0:
                ready.append(b)


def _with_bends(boxes: list[_Box], edges: list[tuple[int, int, str]]) -> list[list[int]]:
    """Return each edge as a list of the indices of its boxes, one in every layer from its start to its end.

    A bend is added to `boxes` for every layer between the start and the end.
    """
    chains = []
    for a, b, _ in edges:
        chain = [a]
        for layer in range(boxes[a].layer + 1, boxes[b].layer):
            boxes.append(_Box("bend", layer=layer))
            chain.append(len(boxes) - 1)
        chains.append([*chain, b])
    return chains


def _neighbours(count: int, chains: list[list[int]]) -> tuple[list[list[int]], list[list[int]]]:
    below: list[list[int]] = [[] for _ in range(count)]
    above: list[list[int]] = [[] for _ in range(count)]
    for chain in chains:
        for a, b in itertools.pairwise(chain):
            above[a].append(b)
            below[b].append(a)
    return below, above


def _ordered(boxes: list[_Box], chains: list[list[int]]) -> list[list[int]]:
    """Return the boxes of each layer in an order in which few edges cross.

    Several passes over the layers move each box towards the mean position of its neighbours.
    """
    layers: list[list[int]] = [[] for _ in range(max(box.layer for box in boxes) + 1)]
    for i, box in enumerate(boxes):
        layers[box.layer].append(i)
    below, above = _neighbours(len(boxes), chains)
    position = [0.0] * len(boxes)
    for layer in layers:
        for at, i in enumerate(layer):
            position[i] = at
    for sweep in range(8):
        towards, order = (below, layers) if sweep % 2 == 0 else (above, layers[::-1])
        for layer in order:
            mean = {
                i: sum(position[n] for n in towards[i]) / len(towards[i]) if towards[i] else position[i]
                for i in layer
            }
            layer.sort(key=lambda i: mean[i])
            for at, i in enumerate(layer):
                position[i] = at
    return layers


def _lay_out(boxes: list[_Box], layers: list[list[int]], chains: list[list[int]]) -> tuple[float, float]:
    """Set the centers of the boxes, and return the width and height of the drawing."""
    below, above = _neighbours(len(boxes), chains)
    for layer in layers:
        at = 0.0
        for i in layer:
            boxes[i].x = at + boxes[i].width / 2
            at += boxes[i].width + _GAP
    for sweep in range(12):
        towards = below if sweep % 2 == 0 else above
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wanted = [_mean(boxes, towards[i], boxes[i].x) for i in layer]
            _spread([boxes[i] for i in layer], wanted)
    left = min(box.x - box.width / 2 for box in boxes) - 10
    y = 10.0
    for layer in reversed(layers):
        tallest = max(boxes[i].height for i in layer)
        for i in layer:
            boxes[i].x -= left
            boxes[i].y, boxes[i].tall = y + tallest / 2, tallest
        y += tallest + _LAYER_GAP
    return max(box.x + box.width / 2 for box in boxes) + 10, y - _LAYER_GAP + 10


def _mean(boxes: list[_Box], neighbours: list[int], otherwise: float) -> float:
    weight = sum(boxes[n].weight for n in neighbours)
    return sum(boxes[n].x * boxes[n].weight for n in neighbours) / weight if neighbours else otherwise


def _spread(layer: list[_Box], wanted: list[float]) -> None:
    """Move the boxes of a layer as near to their preferred positions as their widths allow, and keep their order.

    Boxes that would overlap form a block, which is put at the weighted mean of their preferred positions (the
    pool-adjacent-violators algorithm).
    """
    blocks: list[tuple[float, float, list[int]]] = []  # weighted sum of preferred starts, weight, members
    offsets = [0.0]
    for before, after in itertools.pairwise(layer):
        offsets.append(offsets[-1] + (before.width + after.width) / 2 + _GAP)
    for i, box in enumerate(layer):
        blocks.append((box.weight * (wanted[i] - offsets[i]), box.weight, [i]))
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, weight, members = blocks.pop()
            blocks[-1] = (blocks[-1][0] + total, blocks[-1][1] + weight, blocks[-1][2] + members)
    for total, weight, members in blocks:
        for i in members:
            layer[i].x = total / weight + offsets[i]


# --- SVG ---


def _svg(
    boxes: list[_Box], edges: list[tuple[int, int, str]], chains: list[list[int]], width: float, height: float
) -> str:
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="11">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{_LINE}"/></marker></defs>',
        f'<g fill="none" stroke="{_LINE}" stroke-width="1">',
    ]
    for (_, _, kind), chain in zip(edges, chains, strict=True):
        style = ' stroke-dasharray="3 3"' if kind else ' marker-end="url(#tip)"'
        lines.append(f'<path d="{_curve([boxes[i] for i in reversed(chain)])}"{style}/>')
    lines.append(f'</g><g text-anchor="middle" fill="{_TEXT}">')
    for box in boxes:
        if box.lines:
            lines += _shown(box)
    return "\n".join([*lines, "</g></svg>"]) + "\n"


def _curve(chain: list[_Box]) -> str:
    """Return the SVG path of an edge from its upper to its lower box.

    The path is vertical where it crosses a layer between the two boxes.
    """
    x, y = chain[0].x, chain[0].y + chain[0].height / 2
    path = f"M{x:.1f},{y:.1f}"
    for box in chain[1:]:
        to_y = box.y - box.height / 2
        middle = (y + to_y) / 2
        path += f" C{x:.1f},{middle:.1f} {box.x:.1f},{middle:.1f} {box.x:.1f},{to_y:.1f}"
        x, y = box.x, to_y
        if not box.lines:
            y += box.tall
            path += f" V{y:.1f}"
    return path


def _shown(box: _Box) -> list[str]:
    left, top = box.x - box.width / 2, box.y - box.height / 2
    title = f"<title>{escape(box.title)}</title>" if box.title else ""
    dash = f' stroke="{_LINE}"' + (' stroke-dasharray="3 3"' if box.kind == "saved" else "")
    lines = [
        f'<g>{title}<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="4"'
        f' fill="{_FILL[box.kind]}"{dash}/>'
    ]
    for i, text in enumerate(box.lines):
        lines.append(f'<text x="{box.x:.1f}" y="{top + 4 + _ROW * (i + 0.75):.1f}">{escape(text)}</text>')
    return [*lines, "</g>"]
