"""cond, while_loop and scan in programs: captures, runs, files, passes and errors."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control_flow_cases import CASES, WEIGHT, X, doubled, flat, nested
from program_files import ERRORS, joined, parts

import rushlight_core as core
from rushlight_core._control_flow import scan, while_loop
from rushlight_graph import Dim, _run, export, save
from rushlight_graph._C import Capture, Program


def same(got: Any, wanted: Any) -> None:
    for a, b in zip(flat(got), flat(wanted), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.contiguous().numpy().tobytes() == b.contiguous().numpy().tobytes()


def seeded(function: Any, x: Any) -> Any:
    core.manual_seed(3)
    return function(x)


@pytest.mark.parametrize("name", CASES)
def test_runs_are_eager_bit_for_bit(name: str, function_module: Any) -> None:
    function, inputs = CASES[name]
    for example in inputs:  # the program has all branches, whichever branch the example takes
        program = export(function_module(function), (example,))
        again = Program.from_bytes(program.program.to_bytes())
        assert again.text() == str(program)
        for form in (program, program.simplify()):
            for x in inputs:
                same(seeded(form.module(), x), seeded(function, x))
        for x in inputs:
            core.manual_seed(3)
            same(again.run([x]), seeded(function, x))


def test_the_text_shows_blocks(function_module: Any) -> None:
    text = str(export(function_module(doubled), (X,)))
    assert text.count("block(") == 2
    lines = [line.strip() for line in text.splitlines()]
    assert sum(line.startswith("block(%") and "float32[3]" in line for line in lines) == 2
    (head,) = [line for line in lines if " = while_loop([%" in line]
    assert "  # " in head
    (write,) = [line for line in lines if " = mul_(" in line]
    assert " writes input; " in write
    assert "control_flow_cases.py:" in write


def test_a_decoder_runs_without_python(function_module: Any, tmp_path: Path) -> None:
    def decode(start: Any) -> Any:
        """Decode greedily until the state is 4 or eight tokens have been generated."""

        def body(i: Any, out: Any, h: Any) -> Any:
            h = (h @ WEIGHT + out.index_select(0, i.reshape(1)).float()).tanh()
            made = h.argmax().reshape(1)
            return i + 1, out.index_copy(0, (i + 1).reshape(1), made), h

        zero = core.zeros((), dtype=core.int64)
        tokens = core.cat([start, core.zeros(8, dtype=core.int64)])
        count, tokens, _ = while_loop(lambda i, out, h: i < 8, body, (zero, tokens, X))
        return tokens, count

    save(export(function_module(decode), (core.tensor([1]),)), tmp_path / "m.rl")
    for first in (0, 1, 2):
        np.save(tmp_path / "x.npy", np.array([first]))
        command = [
            _run.program(),
            tmp_path / "m.rl",
            "--input",
            tmp_path / "x.npy",
            "--output",
            tmp_path / "y.npy",
        ]
        done = subprocess.run(command, capture_output=True, text=True, env=_run.environment())
        assert (done.returncode, done.stderr) == (0, "")
        assert np.load(tmp_path / "y.npy").tolist() == decode(core.tensor([first]))[0].tolist()


def test_sizes_that_change(function_module: Any) -> None:
    def function(x: Any) -> Any:
        carry, rows = scan(lambda h, row: ((h + row).tanh(), (row * h).reshape(-1)), x[0] * 0, x)
        return core.cond(carry.sum() > 0, lambda: rows.cumsum(0), lambda: core.zeros(x.shape) - 1), carry

    length, width = Dim("length"), Dim("width")
    x = core.arange(12.0).reshape(4, 3) / 10
    program = export(function_module(function), (x,), dynamic_shapes={"x": {0: length, 1: width}})
    assert "float32[length, width]" in str(program)
    for shape in ((2, 2), (9, 5)):
        for sign in (1, -1):
            other = core.rand(shape) * sign
            same(program.module()(other), function(other))

    def branches(x: Any) -> Any:
        if x.shape[0] > 5:
            return core.cond(x.sum() > 0, lambda: x + 1, lambda: x - 1)
        return core.cond(x.sum() > 0, lambda: x + 1, lambda: x * 2)

    with pytest.raises(RuntimeError, match=r"node 0 \(sub at .*\)|node 0 \(mul at"):
        export(function_module(branches), (x,), dynamic_shapes={"x": {0: length}})


def test_passes_see_blocks(function_module: Any) -> None:
    def function(x: Any) -> Any:
        before = x.exp()

        def branch() -> Any:
            unused = x.log()
            return x.exp() + x.exp() * 2, unused.sin()

        a, b = core.cond(x.sum() > 0, branch, lambda: (x + core.ones(3).cumsum(0), x))
        core.cond(x.sum() > 0, lambda: x + 1, lambda: x - 1)
        return a + before, (core.ones(3) * 2).sum() + b, WEIGHT.sum()

    program = export(function_module(function), (X,))
    text = str(program.simplify())
    assert text.count(" = exp(") == 1
    assert text.count(" = cond(") == 1
    assert text.count(" = log(") == 1
    assert "folded_" in text
    for x in (X, -X):
        same(program.simplify().module()(x), function(x))


def test_a_program_inside_of_a_capture_is_refused(function_module: Any) -> None:
    run = export(function_module(doubled), (X,)).module()
    with pytest.raises(RuntimeError, match=r"while_loop\(cond_fn\): reads the values of a tensor"):
        export(function_module(lambda x: run(x + 1)), (X,))


OUTSIDE = core.zeros(3)


def leaking(x: Any) -> Any:
    kept: list[Any] = []
    core.cond(x[0] > 0, lambda: kept.append(x * 2) or x, lambda: x)
    return kept[0] + 1


def accumulating(x: Any) -> Any:
    total = core.tensor([0.0])

    def body(i: Any) -> Any:
        total.add_(1)
        return (i + 1,)

    while_loop(lambda i: i < 3, body, (core.tensor(0),))
    return total


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: core.cond(x[0] > 0, lambda: x, lambda: x[0]), RuntimeError, "false_fn returns float32"),
        (lambda x: core.cond(x[0] > 0, lambda: x, lambda: (x,)), RuntimeError, "in containers of the same structure"),
        (lambda x: core.cond(x[0] > 0, lambda: 1, lambda: 2), RuntimeError, "must return tensors, but got 1"),
        (lambda x: core.cond(x[0] > 0, lambda: x.mul_(2), lambda: x), NotImplementedError, r"mul_ at .*created outside"),
        (lambda x: core.cond(x[0] > 0, lambda: x[0].fill_(2), lambda: x[0]), NotImplementedError, r"fill_ .*outside"),
        (lambda x: core.cond(x[0] > 0, lambda: core.add(x, x, out=x), lambda: x), NotImplementedError, "created outside"),
        (lambda x: core.cond(x.sum() > 0, lambda: x if x[0] > 0 else -x, lambda: x), RuntimeError, "reads the values"),
        (lambda x: while_loop(lambda a: a[0] < 3, lambda a: (a.add_(1),), (x,)), NotImplementedError, "created outside"),
        (lambda x: while_loop(lambda i: True, lambda i: (i + 1,), (x,)), RuntimeError, "got True of type bool"),
        (lambda x: while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a), (0, x)), NotImplementedError, "must be tensors"),
        (lambda x: while_loop(lambda a: a[0] < 3, lambda a: (a[0],), (x,)), RuntimeError, "the same dtype, shape"),
        (accumulating, NotImplementedError, r"add_ at .*created outside"),
        (leaking, RuntimeError, "uses a tensor outside of the branch or loop that created it"),
    ],
)  # fmt: skip
def test_what_cannot_be_captured(
    function: Any, error: type[Exception], message: str, function_module: Any
) -> None:
    x = X.clone()
    with pytest.raises(error, match=message):
        export(function_module(function), (x,))
    assert core.equal(x, X)
    assert (
        len(export(function_module(lambda x: x + 1), (x,)).program.inputs()) == 1
    )  # the state of the thread is restored


def test_a_write_that_the_schema_does_not_name(function_module: Any) -> None:
    mean, var = core.zeros(3), core.ones(3)
    module = function_module(
        lambda x: core.cond(
            x.sum() > 0, lambda: core.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, False), lambda: x
        ),
        ("mean", "var"),
        mean=mean,
        var=var,
    )
    with pytest.raises(NotImplementedError, match=r"batch_norm at .*created outside"):
        export(module, (core.stack([X, -X]),))
    assert mean.tolist() == [0, 0, 0]


# --- files ---


@pytest.fixture
def file(function_module: Any) -> bytes:
    return export(function_module(nested), (X,)).program.to_bytes()


def loop(graph: dict[str, Any]) -> dict[str, Any]:
    return next(node for node in graph["nodes"] if node.get("control") == "while_loop")


def inner(graph: dict[str, Any], control: str) -> dict[str, Any]:
    found = [n for n in loop(graph)["blocks"][1]["nodes"] if n.get("control") == control]
    return found[0]


def test_the_format_is_the_oldest_that_has_what_is_needed(file: bytes, function_module: Any) -> None:
    assert parts(file)[1]["format"] == 2
    assert parts(export(function_module(lambda x: x + 1), (X,)).program.to_bytes())[1]["format"] == 1


def set_to(value: Any, *path: Any) -> Any:
    def change(graph: dict[str, Any]) -> None:
        target = loop(graph)
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value

    return change


def deepen(graph: dict[str, Any]) -> None:
    node = inner(graph, "cond")
    for _ in range(13):
        copied = {**json.loads(json.dumps(node)), "results": []}
        copied["blocks"] = [{"inputs": [], "nodes": [], "outputs": []} for _ in range(2)]
        node["blocks"][0]["nodes"].append(copied)
        node = copied


HOSTILE: dict[str, tuple[Any, str]] = {
    "no blocks": (set_to([], "blocks"), "has 0 blocks, needs 2"),
    "blocks of nothing": (set_to([None, None], "blocks"), "inputs must be there"),
    "an unknown kind": (set_to("goto", "control"), "must be cond, while_loop or scan"),
    "another kind": (set_to("cond", "control"), "argument 0 must be a tensor"),
    "a scan": (set_to("scan", "control"), "has 2 blocks, needs 1"),
    "too many arguments": (set_to([{"values": []}, {"values": []}], "arguments"), "has 2 arguments, needs 1"),
    "an argument that is not a list": (set_to([3], "arguments"), "argument 0 must be a list of tensors"),
    "a missing tensor": (set_to([{"values": [None, None]}], "arguments"), "argument 0 contains None"),
    "nothing is carried": (set_to([{"values": []}], "arguments"), "needs one result for each carried tensor"),
    "no results": (set_to([], "results"), "needs one result for each carried tensor"),
    "a result that is none": (set_to([None, None], "results"), "result 0 must be a tensor"),
    "inputs that are missing": (set_to([], "blocks", 0, "inputs"), "a block has 0 inputs, needs 2"),
    "inputs of other types": (lambda g: loop(g)["blocks"][1]["inputs"].reverse(), "inputs of a block must have the type"),
    "outputs that are missing": (set_to([], "blocks", 1, "outputs"), "a block has 0 outputs, needs 2"),
    "a condition of two": (
        lambda g: loop(g)["blocks"][0]["outputs"].extend(loop(g)["blocks"][0]["outputs"]),
        "the condition must be one tensor",
    ),
    "a condition with elements": (
        lambda g: loop(g)["blocks"][0].update(outputs=[loop(g)["blocks"][0]["inputs"][1]]),
        "must have one element",
    ),
    "an output twice": (
        lambda g: inner(g, "cond")["blocks"][0].update(outputs=[inner(g, "cond")["blocks"][0]["nodes"][0]["results"][0]]),
        "the outputs of a block must have the type|must have its own memory",
    ),
    "an input as an output": (
        lambda g: loop(g)["blocks"][1]["outputs"].__setitem__(0, loop(g)["blocks"][1]["inputs"][0]),
        "must have its own memory",
    ),
    "a value of a block outside": (
        lambda g: g["outputs"].__setitem__(0, loop(g)["blocks"][1]["outputs"][0]),
        "outside of the block that defines it",
    ),
    "a value of the other block": (
        lambda g: loop(g)["blocks"][1]["nodes"][0]["arguments"].__setitem__(
            0, {"value": loop(g)["blocks"][0]["inputs"][0]}
        ),
        "outside of the block that defines it",
    ),
    "a write to what is outside": (
        lambda g: loop(g)["blocks"][1]["nodes"][0].update(writes=[0]),
        "its memory was not allocated in the same block",
    ),
    "blocks of a call": (
        lambda g: loop(g)["blocks"][1]["nodes"][0].update(control="cond", blocks=[]),
        "has 0 blocks, needs 2",
    ),
    "too deep": (deepen, "at most 12 are allowed|nested too deeply"),
    "a later format": (lambda g: g.update(format=4), "has format 4, this library reads formats 1 to 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_graphs(file: bytes, name: str) -> None:
    change, message = HOSTILE[name]
    header, graph, data = parts(file)
    change(graph)
    with pytest.raises(ERRORS, match=message):
        Program.from_bytes(joined(header, graph, data))


def test_mutated_files(function_module: Any) -> None:
    """Try a sample of mutated files. A file that can be loaded is run, except if it has loops, which may not end."""
    rng = random.Random(0)
    region = Capture([("x", "constant", X)], [])
    region.start()
    results = flat(
        core.cond(X.sum() > 0, lambda: scan(lambda c, r: (c + r, c * r), X[0] * 0, X), lambda: (X[0], X + 1))
    )
    region.stop()
    branches = region.finish(results, {}).to_bytes()
    loaded = 0
    for source, runs in ((branches, True), (export(function_module(nested), (X,)).program.to_bytes(), False)):
        header, graph, data = parts(source)
        whole = json.dumps(graph)
        for _ in range(1500):
            text = list(whole)
            for _ in range(rng.randint(1, 3)):
                at = rng.randrange(len(text))
                kind = rng.randrange(3)
                if kind == 0:
                    text[at] = rng.choice('0123456789[]{},"-')
                elif kind == 1:
                    del text[at : at + rng.randint(1, 20)]
                else:
                    other = rng.randrange(len(text))
                    text[at:at] = text[other : other + rng.randint(1, 40)]
            head = {**header, "__metadata__": {"rushlight.program": "".join(text)}}
            coded = json.dumps(head).encode()
            try:
                program = Program.from_bytes(len(coded).to_bytes(8, "little") + coded + data)
                loaded += 1
                program.text()
                program.simplified()
                if runs:
                    program.run([X])
            except (*ERRORS, TypeError, IndexError):
                pass
    assert 0 < loaded < 3000
