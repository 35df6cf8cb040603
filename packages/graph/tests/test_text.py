"""Graphs as text that can be parsed, differences of graphs, drawings, and memory plans."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from control_flow_cases import CASES, X, nested
from program_files import ERRORS

import rushlight_core as core
from rushlight_graph import Dim, ExportedProgram, Graph, export
from rushlight_graph._C import Capture, Program


def captured(function: Any, *tensors: Any, below: bool = False) -> Program:
    region = Capture([(f"x{i}", "constant", t) for i, t in enumerate(tensors)], [], (), below)
    region.start()
    try:
        result = function(*tensors)
    finally:
        region.stop()
    return region.finish(list(result) if isinstance(result, (tuple, list)) else [result], {})


def again(program: Program) -> Program:
    """Return the program with the graph that is parsed from its text."""
    graph = Graph.parse(program.text())
    assert str(graph) == program.text()
    tensors = {name: tensor for name, _, tensor in program.constants()}
    return Program.of(graph, [tensors[name] for name in graph.constants()])


ARGUMENTS = {
    "numbers": lambda x: x * 2 + 1.5 - x.clamp(-1e-300, 1e300),
    "no numbers": lambda x: x.nan_to_num(float("inf"), float("-inf"), 0.0).clamp(float("-inf"), None),
    "negative zero": lambda x: core.full_like(x, -0.0) + 1e22,
    "complex": lambda x: x.to(core.complex64) * (1 - 2.5j),
    "truth": lambda x: core.full_like(x > 0, True),
    "strings": lambda x: core.div(x, 2, rounding_mode="floor"),
    "lists": lambda x: (x.reshape([3, 1]).permute([1, 0]), x.sum([]), core.stack([x, x])),
    "several results": lambda x: (*x.split(2), *core.max(x, 0)),
    "views and writes": lambda x: (y := x + 1, y[1:].mul_(2), y.view(3, 1))[0],
    "random": lambda x: core.rand(3) + x,
    "dtypes": lambda x: x.to(core.float16).to(core.int8) + core.zeros(3, dtype=core.uint8),
    "what is left out": lambda x: core.linear(x, core.eye(3), None),
    "an index": lambda x: x[core.tensor([0, 2])],
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_texts_are_read_again(name: str) -> None:
    function = ARGUMENTS[name]
    program = captured(function, X)
    other = again(program)
    core.manual_seed(0)
    wanted = program.run([X])
    core.manual_seed(0)
    for a, b in zip(other.run([X]), wanted, strict=True):
        assert a.dtype == b.dtype
        assert a.contiguous().numpy().tobytes() == b.contiguous().numpy().tobytes()
    assert other.structure().differences(program.structure()) == []


@pytest.mark.parametrize("name", CASES)
def test_texts_of_control_flow(name: str, function_module: Any) -> None:
    function, inputs = CASES[name]
    program = export(function_module(function), (inputs[0],)).program
    other = again(program)
    for x in inputs:
        core.manual_seed(0)
        wanted = program.run([x])
        core.manual_seed(0)
        assert all(map(core.equal, other.run([x]), wanted))


def test_texts_of_sizes_that_change(function_module: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        flat = x.reshape(-1)
        return core.cat([flat, flat, y.reshape(-1)])[: (x.shape[0] + 1) * x.shape[1]], y.sum(0) / (
            x.shape[1] // 2
        )

    rows, columns = Dim("rows", min=3, max=64), Dim("columns", min=4)
    shapes = ({0: rows, 1: columns}, {0: 2 * rows + 1})
    x, y = core.randn(8, 6), core.randn(17, 2)
    program = export(function_module(function), (x, y), dynamic_shapes=shapes).program
    assert "input 1[0] = 2*rows+1" in program.text()
    other = again(program)
    for n, m in ((3, 5), (20, 9)):
        given = [core.randn(n, m), core.randn(2 * n + 1, 2)]
        assert all(map(core.equal, other.run(given), program.run(given)))
    with pytest.raises(ValueError, match="must be from 3 to 64"):
        other.run([core.randn(65, 4), core.randn(131, 2)])


def test_names_that_need_quotes() -> None:
    hostile = "a'b\\c\n# ) in x; writes\x01ü"
    region = Capture([(hostile, "constant", X)], [("w'\n", "parameter", core.ones(3))])
    region.start()
    region.enter_module("in ; odd 'name'")
    y = X * 2
    region.leave_module()
    region.stop()
    program = region.finish([y], {})
    assert again(program).inputs() == [hostile]


def test_gradients_are_in_the_text() -> None:
    def function(x: Any) -> Any:
        return x * x

    program = captured(function, X, below=True)
    assert program.text().startswith("program(  # with its gradients\n")
    assert "with its gradients" in again(program).text()
    (line,) = captured(function, X).structure().differences(program.structure())
    assert line == "gradients are a part of the second graph only"


BAD = {
    "": "expected 'program\\(' at the end of the text",
    "x": "line 1, column 1: expected 'program\\('",
    "program(\n": "expected '\\)' at the end of the text",
    "program(\n)\n": "expected 'return' at the end of the text",
    "program(\n  %0: float31[3],  # x\n)\n  return": "line 2, column 14: expected the name of a dtype",
    "program(\n  %0: float32[3]  # x\n)\n  return": "expected ','",
    "program(\n  %0: float32[n],  # x\n)\n  return": "a size that is declared earlier",
    "program(\n  %0: float32[-3],  # x\n)\n  return": "negative size",
    "program(\n  %1: float32[3],  # x\n)\n  return": "value %0 is never defined",
    "program(\n  %4294967295: float32[3],  # x\n)\n  return": "value %0 is never defined",
    "program(\n  %99999999999999999999: float32[3],  # x\n)\n  return": "an integer",
    "program(\n)\n  return %0": "a result of the program uses value 0, but the number of values is 0",
    "program(\n)\n  return\n  x": "the end of the text after the results",
    "program(\n)\n  %0: float32[3] = nothing(n=3)\n  return": "an operator of this library",
    "program(\n)\n  %0: float32[3] = zeros(size=[3\n  return": "expected '\\]'",
    "program(\n)\n  %0: float32[3] = zeros(size=[3], 1, 2, 3, 4, 5, 6, 7, 8)\n  return": "line 3",
    "program(\n)\n  %0: float32[] = cond(%0) {\n": "expected '}' at the end of the text",
    "program(\n)\n  n: 2 to 5\n  return": "expected '#'",
    "program(\n  %0: float32[" + "(" * 200 + "n,  # x\n)\n  n: 2 to 9  # 3 in the capture; input 0[0]\n": (
        "fewer nested parentheses"
    ),
    "program(\n)\n" + "  cond(%0) {\n  block():\n" * 80: "fewer nested blocks",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_texts(text: str) -> None:
    with pytest.raises(ValueError, match=BAD[text]):
        Graph.parse(text)


def test_damaged_texts(function_module: Any) -> None:
    rng = random.Random(3)
    whole = str(export(function_module(nested), (X,)))
    read = 0
    for _ in range(1500):
        text = list(whole)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text))
            kind = rng.randrange(3)
            if kind == 0:
                text[at] = rng.choice("0123456789[](){}:,%#='\n -_atn")
            elif kind == 1:
                del text[at : at + rng.randint(1, 20)]
            else:
                other = rng.randrange(len(text))
                text[at:at] = text[other : other + rng.randint(1, 40)]
        try:
            graph = Graph.parse("".join(text))
            read += 1
            assert str(Graph.parse(str(graph))) == str(graph)
            graph.svg()
            graph.memory()
        except (*ERRORS, TypeError, IndexError):
            pass
    assert read > 0


def test_differences() -> None:
    def first(x: Any) -> Any:
        return (x.exp() + 1).clamp(0, 5).sum()

    def second(x: Any) -> Any:
        y = x.sin()
        return (y.exp() + 2).sum().cos()

    a, b = captured(first, X).structure(), captured(second, X).structure()
    assert a.differences(a) == []
    lines = [re.sub(r" at \S*:\d+", "", line.split("  #")[0]) for line in a.differences(b)]
    assert lines == [
        "+ node 0: %1: float32[3] = sin(%0)",
        "~ node 0 (exp): argument 'input' is %0, and %1",
        "~ node 1 (add): argument 'other' is 1, and 2",
        "- node 2: %3: float32[3] = clamp(%2, 0, 5)",
        "~ node 3 (sum): argument 'input' is %3, and %3",
        "+ node 4: %5: float32[] = cos(%4)",
        "the results are %4, and %5",
    ]
    wider = captured(first, core.ones(4)).structure()
    assert "- input x0: float32[3]" in a.differences(wider)


def test_differences_inside_of_branches() -> None:
    def program(number: int) -> Graph:
        return captured(lambda x: core.cond(x.sum() > 0, lambda: x + number, lambda: x * 2), X).structure()

    (line,) = program(1).differences(program(3))
    assert re.match(
        r"in block 0 of node 2 \(cond at .*\): ~ node 0 \(add at .*\): argument 'other' is 1, and 3", line
    )


def test_many_nodes_are_compared() -> None:
    def chain(x: Any, extra: int) -> Any:
        for i in range(3000):
            x = x + i
            if i == extra:
                x = x * 2
        return x

    a, b = (captured(lambda x, n=n: chain(x, n), X).structure() for n in (-1, 1500))
    lines = a.differences(b)
    assert len(lines) == 2
    assert lines[0].startswith("+ node 1501: ")
    assert "argument 'input'" in lines[1]


def test_pictures(function_module: Any) -> None:
    function, inputs = CASES["nested"]
    program = export(function_module(function), (inputs[0],))
    root = ET.fromstring(program.graph.svg())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(text and text.startswith("while_loop(") for text in texts)
    kinds = [element.get("class") for element in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert (kinds.count("input") >= 1, kinds.count("block")) == (True, 5)
    odd = captured(lambda x: x + 1, X).structure()
    assert "&lt;" not in odd.svg()
    assert float(root.get("width", 0)) > 100


def test_memory_of_runs() -> None:
    def function(x: Any) -> Any:
        a = x.exp()  # 4096 bytes, like the others
        b = a.sin()
        c = b.view(32, 32)[0]  # shares the memory of b
        d = a + 1
        return d.sum() + c.sum()

    graph = captured(function, core.ones(1024)).structure()
    # First a and b are live, then a, b and d, when d is computed. Later results are scalars of 64 bytes each.
    assert graph.memory() == {"peak": 3 * 4096, "block": 3 * 4096}
    chain = captured(lambda x: x.exp().sin().cos().tan(), core.ones(1024)).structure()
    assert chain.memory() == {"peak": 2 * 4096, "block": 2 * 4096}


def test_a_graph_that_was_changed(function_module: Any) -> None:
    weight = core.ones(3)
    program = export(function_module(lambda x: x * weight), (X,))
    changed = program.with_graph(
        Graph.parse(str(program.graph).replace("mul(", "add(").replace(", %1)", ", %1, alpha=1)"))
    )
    assert isinstance(changed, ExportedProgram)
    assert core.equal(changed.module()(X), X + 1)
    with pytest.raises(ValueError, match="has no tensor 'other'"):
        program.with_graph(Graph.parse(str(program.graph).replace("constant_0", "other")))
    with pytest.raises(TypeError, match="needs a Graph"):
        program.graph.differences(program)  # type: ignore[arg-type]
