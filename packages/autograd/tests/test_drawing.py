"""Drawings of graphs."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from autograd_samples import leaf

import rushlight_core as core
from rushlight_autograd.graph import to_dot, to_svg

SVG = "{http://www.w3.org/2000/svg}"


def boxes(svg: str) -> list[tuple[float, float, float, float]]:
    tree = ElementTree.fromstring(svg)
    return [
        tuple(float(rect.get(key)) for key in ("x", "y", "width", "height"))
        for rect in tree.iter(f"{SVG}rect")
    ]


def texts(svg: str) -> list[str]:
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def network():
    params = {"weight": leaf(3, 3), "bias": leaf(3)}
    x = core.ones(2, 3, dtype=core.float64)
    h = (x @ params["weight"] + params["bias"]).tanh()
    return (h * h + h).sum(), params


def test_it_names_everything() -> None:
    loss, params = network()
    shown = texts(to_svg(loss, params))
    for text in (
        "weight",
        "bias",
        "float64(3, 3)",
        "TanhBackward0",
        "SumBackward0",
        "output",
        "float64, 0-d",
    ):
        assert text in shown
    svg = to_svg(loss, params.items())
    assert f"<title>recorded at {__file__}:" in svg


def test_boxes_do_not_overlap_and_lie_inside() -> None:
    loss, params = network()
    svg = to_svg([loss, loss * 2], params, show_saved=True)
    tree = ElementTree.fromstring(svg)
    width, height = float(tree.get("width")), float(tree.get("height"))
    found = boxes(svg)
    assert len(found) > 12
    for i, (x, y, w, h) in enumerate(found):
        assert x >= 0
        assert y >= 0
        assert x + w <= width
        assert y + h <= height
        for x2, y2, w2, h2 in found[i + 1 :]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_leaves_are_above_and_outputs_below() -> None:
    loss, params = network()
    svg = to_svg(loss, params)
    rows = {
        "".join(t.text for t in g.iter(f"{SVG}text")): float(next(g.iter(f"{SVG}rect")).get("y"))
        for g in ElementTree.fromstring(svg).iter(f"{SVG}g")
        if len(list(g.iter(f"{SVG}rect"))) == 1
    }
    order = ["weightfloat64(3, 3)", "TanhBackward0", "SumBackward0", "outputfloat64, 0-d"]
    assert [rows[name] for name in order] == sorted(rows[name] for name in order)


def test_saved_tensors_are_drawn_where_asked() -> None:
    loss, params = network()
    assert "result" in texts(to_svg(loss, params, show_saved=True))
    assert "result" not in texts(to_svg(loss, params))


def test_long_edges_and_many_leaves() -> None:
    x = leaf(2)
    y = x
    for _ in range(20):
        y = y * x + leaf(2)
    assert len(boxes(to_svg(y))) == 1 + 40 + 21


def test_the_text_for_graphviz() -> None:
    loss, params = network()
    dot = to_dot(loss, {'we"ight': params["weight"]})
    assert dot.startswith("digraph {")
    assert dot.endswith("}\n")
    names = re.findall(r"^  (n\d+) \[", dot, flags=re.MULTILINE)
    assert len(names) == len(set(names)) == 9
    assert len(re.findall(r"->", dot)) == 10
    assert 'we\\"ight' in dot


def test_names_are_escaped() -> None:
    x = leaf(2)
    assert "a<b&c" in texts(to_svg(x * 2, {"a<b&c": x}))


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match=r"output 0 .* has no graph"):
        to_svg(core.ones(2))
    with pytest.raises(TypeError, match="must be Tensors, not int"):
        to_svg([3])
    with pytest.raises(ValueError, match="more than max_nodes=2 nodes"):
        to_svg(leaf(2) * 2, max_nodes=2)


def test_the_trunk_of_a_deep_network_stays_in_line() -> None:
    """Leaves are moved aside, so that the operators in their layers stay in one vertical line."""
    y = core.ones(2, 2, dtype=core.float64)
    for _ in range(60):
        y = (y @ leaf(2, 2) + leaf(2)).tanh()
    width = float(ElementTree.fromstring(to_svg(y.sum())).get("width"))
    assert width < 600
