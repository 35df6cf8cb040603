"""Files that are damaged, malicious or written by other programs raise errors of documented types and never crash."""

from __future__ import annotations

import io
import json
import random
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from program_files import ERRORS, joined, parts

import rushlight_core as core
from rushlight_graph import export, load
from rushlight_graph._C import Capture, Program

X = core.tensor([[1.0, -2.0, 3.0]])


@pytest.fixture
def file(counting: Any) -> bytes:
    return export(counting, (X,)).program.to_bytes()


def changed(file: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    header, graph, data = parts(file)
    change(graph)
    return joined(header, graph, data)


def test_the_file_is_one_of_safetensors(file: bytes) -> None:
    header, graph, data = parts(file)
    ends = [entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"]
    assert sorted(ends)[0][0] == 0
    assert max(end for _, end in ends) == len(data)
    assert graph["format"] == 1
    assert graph["writer"].startswith("rushlight ")
    assert {name for name, _ in graph["operators"]} == {"add_", "linear", "relu_", "mul", "add"}
    assert Program.from_bytes(joined(header, graph, data)).text() == Program.from_bytes(file).text()


def test_writing_is_deterministic(file: bytes) -> None:
    assert Program.from_bytes(file).to_bytes() == file


def test_truncated_files(file: bytes) -> None:
    for length in [*range(40), *range(40, len(file), 37), len(file) - 1]:
        with pytest.raises(ERRORS):
            Program.from_bytes(file[:length])


@pytest.mark.parametrize("length", [0, 1, 7, 2**31, 2**32 + 1, 2**63 - 1, 2**64 - 1, 2**64 - 8])
def test_lengths_of_the_header(file: bytes, length: int) -> None:
    with pytest.raises(ValueError, match="header"):
        Program.from_bytes(struct.pack("<Q", length) + file[8:])


def node(graph: dict[str, Any], name: str) -> dict[str, Any]:
    names = [name for name, _ in graph["operators"]]
    return next(n for n in graph["nodes"] if names[n["op"]] == name)


def assign(target: Any, key: Any, value: Any) -> None:
    target[key] = value


HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "cycle": (
        lambda g: node(g, "linear")["arguments"].__setitem__(0, {"value": g["outputs"][0]}),
        "before it is defined",
    ),
    "own result": (
        lambda g: node(g, "linear")["arguments"].__setitem__(0, {"value": node(g, "linear")["results"][0]}),
        r"node \d+ \(linear at .*conftest.py:\d+ in first\) uses value \d+ before",
    ),
    "defined twice": (lambda g: assign(g["nodes"][1], "results", g["nodes"][0]["results"]), "a second time"),
    "index of a value": (lambda g: assign(g["outputs"], 0, 999), "uses value 999, but"),
    "negative index": (lambda g: assign(g["outputs"], 0, -1), r"graph.outputs\[0\] must be an index"),
    "huge index": (lambda g: assign(g["outputs"], 0, 2**40), "must be an index"),
    "index of an operator": (lambda g: assign(g["nodes"][0], "op", 77), "calls operator 77, but"),
    "index of a text": (lambda g: assign(g["nodes"][0], "line", 10**6), "a string that does not exist"),
    "unused value": (lambda g: g["values"].append(g["values"][0]), r"value \d+ is never defined"),
    "dtype": (lambda g: assign(g["values"][0], "dtype", "float33"), "must be the name of a dtype"),
    "negative size": (lambda g: assign(g["values"][0], "sizes", [-1, 3]), "value 0 has a negative size"),
    "too many elements": (
        lambda g: assign(g["values"][0], "sizes", [2**40, 2**40]),
        "larger than any memory",
    ),
    "dimensions": (lambda g: assign(g["values"][0], "sizes", [1] * 65), "65 dimensions"),
    "memory of a later value": (lambda g: assign(g["values"][0], "memory", 3), "comes later"),
    "memory of nothing": (lambda g: assign(g["values"][-1], "memory", 10**9), "comes later"),
    "device": (lambda g: assign(g["values"][0], "device", "toaster"), "toaster"),
    "unknown operator": (
        lambda g: assign(g["operators"][0], 0, "frobnicate"),
        r"has no operator 'frobnicate'\nhint: .*rushlight \d",
    ),
    "hash": (
        lambda g: assign(g["operators"][0], 1, "0123456789abcdef"),
        r"'add_' of this library.*needs 0123456789abcdef.*\nhint: run .* that wrote it, rushlight",
    ),
    "hash of another form": (lambda g: assign(g["operators"][0], 1, "xyz"), "16 hexadecimal digits"),
    "too few arguments": (lambda g: node(g, "linear")["arguments"].pop(), "has 2 arguments, needs 3: linear"),
    "kind of an argument": (lambda g: assign(node(g, "linear")["arguments"], 0, 3), "'input' must be Tensor"),
    "number for a list": (
        lambda g: assign(node(g, "linear")["arguments"], 0, [1, 2]),
        "'input' must be Tensor",
    ),
    "missing tensor": (lambda g: assign(node(g, "linear")["arguments"], 0, None), "'input' must be Tensor"),
    "argument of two kinds": (
        lambda g: assign(node(g, "linear")["arguments"], 0, {"value": 0, "float": 1.0}),
        "an argument",
    ),
    "results": (lambda g: assign(node(g, "linear"), "results", []), "has 0 results, needs 1"),
    "list of results": (
        lambda g: assign(node(g, "linear"), "results", [node(g, "linear")["results"]]),
        "result 0 must be Tensor",
    ),
    "writes": (lambda g: assign(g["nodes"][0], "writes", [9]), "writes argument 9"),
    "later format": (lambda g: assign(g, "format", 4), "has format 4, this library reads formats 1 to 3"),
    "earlier format": (lambda g: assign(g, "format", 0), "has format 0, this library reads formats 1 to 3"),
    "no format": (lambda g: g.pop("format"), "graph.format must be there"),
    "texts": (lambda g: assign(g, "texts", []), "whose first string is empty"),
    "metadata": (lambda g: assign(g, "metadata", []), "graph.metadata must be an object"),
    "name of a constant": (
        lambda g: assign(g["constants"][0], "name", "gone"),
        "no data for the constant 'gone'",
    ),
    "names that are the same": (
        lambda g: assign(g["constants"][0], "name", g["constants"][1]["name"]),
        "two constants",
    ),
    "strides": (lambda g: assign(g["constants"][1], "strides", [2**61, 1]), "negative or too large"),
    "strides with gaps": (lambda g: assign(g["constants"][1], "strides", [10**6, 1]), "leave gaps"),
    "kind of a constant": (
        lambda g: assign(g["constants"][0], "kind", "weight"),
        "parameter, buffer or constant",
    ),
    "shape of a constant": (
        lambda g: assign(g["values"][g["constants"][1]["value"]], "sizes", [3, 4]),
        "another model",
    ),
    "dtype of a constant": (
        lambda g: assign(g["values"][g["constants"][1]["value"]], "dtype", "int32"),
        "another model",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_graphs(file: bytes, name: str) -> None:
    change, message = HOSTILE[name]
    with pytest.raises(ERRORS, match=message):
        Program.from_bytes(changed(file, change))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends too early"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"a":1,"a":2}', "a key occurs twice"),
        ("{} {}", "text after the end"),
        ('{"a":99999999999999999999}', "beyond int64"),
        ('{"a":1e999}', "beyond float64"),
        ('{"a":01}', "begins with 0"),
        (r'{"a":"\ud800"}', "surrogate"),
        (r'{"a":"\x"}', "unknown escape"),
        ('{"a":"\n"}', "control character"),
        ("nul", "invalid JSON"),
        ("[]", "header must be a JSON object"),
        ("{}", "tensors, but no program"),
        ('{"__metadata__":{"rushlight.program":3}}', "no program"),
        ('{"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', "outside of the file"),
        (
            '{"t":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}',
            "has an invalid size",
        ),
        ('{"t":{"dtype":"F99","shape":[],"data_offsets":[0,0]}}', "unknown dtype"),
        ('{"t":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}}', "has an invalid size"),
        ('{"t":{"dtype":"F32","shape":[0],"data_offsets":[1,0]}}', "outside of the file"),
        ('{"t":{"dtype":"F32","shape":[1],"data_offsets":[0,0]}}', "does not match its dtype and shape"),
        ('{"t":[]}', "no dtype, shape or data_offsets"),
    ],
)
def test_hostile_headers(text: str, message: str) -> None:
    data = text.encode()
    with pytest.raises(ValueError, match=message):
        Program.from_bytes(struct.pack("<Q", len(data)) + data)


def test_tensors_that_overlap(file: bytes) -> None:
    """A write to one of them would change the other."""
    header, graph, data = parts(file)
    one, *others = (name for name in header if name != "__metadata__")
    last = header[one]["data_offsets"][1] - 1
    for other in others:
        begin, end = header[other]["data_offsets"]
        moved = {**header[other], "data_offsets": [last, last + end - begin]}
        wrong = joined({**header, other: moved}, graph, data + bytes(last + end - begin))
        with pytest.raises(ValueError, match=r"tensors '.*' and '.*' of the file overlap"):
            Program.from_bytes(wrong)


def test_mutated_files(file: bytes) -> None:
    """Try a sample of mutated files. A file that can be loaded is run."""
    rng = random.Random(0)
    header, graph, data = parts(file)
    texts = [json.dumps(graph).encode(), file]
    pieces = [
        b"-1",
        b"18446744073709551616",
        b"null",
        b"[]",
        b"{}",
        b'"',
        b"\\",
        b"1e308",
        b"\xff",
        b"value",
        b"0",
    ]
    loaded = 0
    for _ in range(3000):
        whole = rng.randrange(2)
        text = bytearray(texts[whole])
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text))
            kind = rng.randrange(4)
            if kind == 0:
                text[at] = rng.randrange(256)
            elif kind == 1:
                text[at : at + rng.randint(1, 8)] = rng.choice(pieces)
            elif kind == 2:
                del text[at : at + rng.randint(1, 20)]
            else:
                other = rng.randrange(len(text))
                text[at:at] = text[other : other + rng.randint(1, 30)]
        if not whole:
            metadata = {"rushlight.program": text.decode("latin-1")}
            head = json.dumps({**header, "__metadata__": metadata}, ensure_ascii=False).encode("latin-1")
            text = bytearray(struct.pack("<Q", len(head)) + head + data)
        try:
            program = Program.from_bytes(bytes(text))
            loaded += 1
            program.text()
            program.run([X])
        except (*ERRORS, TypeError, IndexError):
            pass
    assert 0 < loaded < 3000


@pytest.mark.parametrize("key", ["arguments", "results"])
@pytest.mark.parametrize(
    "structure",
    [
        {"tensor": 7},
        {"tensor": -1},
        {"tensor": True},
        {"tensor": "0"},
        {"value": [1]},
        {"dtype": 3},
        {"list": 3},
        {"list": [3]},
        {"dict": [["x"]]},
        {"dict": [[["x"], {"tensor": 0}]]},
        {"named": ["Pair"]},
        {"node": [1, None, []]},
        {"array": []},
        {"tensor": 0, "value": 0},
        {},
        [],
        None,
    ],
    ids=str,
)
def test_hostile_structures(file: bytes, key: str, structure: Any) -> None:
    """The structures of arguments and results are checked when the file is loaded."""
    text = json.dumps({"list": [structure]})
    with pytest.raises(ValueError, match=f"the structure of the {key} is invalid"):
        load(io.BytesIO(changed(file, lambda graph: graph["metadata"].update({key: text}))))


def test_structures_of_many_levels(file: bytes) -> None:
    text = '{"list": [' * 100_000 + "]}" * 100_000
    with pytest.raises(ValueError, match="program: "):
        load(io.BytesIO(changed(file, lambda graph: graph["metadata"].update(results=text))))


def test_errors_that_quote_invalid_utf_8(file: bytes) -> None:
    damaged = file.replace(b'"calls":{"dtype"', b'"call\xff":{"dtyp\xff"')
    with pytest.raises(ValueError, match=re.escape("tensor 'call\\xff' of the file has no dtype")):
        Program.from_bytes(damaged)


def test_many_nodes() -> None:
    count = 1_000_000
    x = core.ones(1)
    capture = Capture([("x", "constant", x)], [])
    capture.start()
    result = x + 1
    capture.stop()
    _header, graph, _data = parts(capture.finish([result], {}).to_bytes())
    one = graph["nodes"][0]
    # Build the JSON as text, because a million dicts would take gigabytes.
    node = json.dumps({**one, "arguments": [{"value": "FROM"}, *one["arguments"][1:]], "results": ["TO"]})
    before, between, after = re.split('"FROM"|"TO"', node)
    nodes = ",".join(f"{before}{i}{between}{i + 1}{after}" for i in range(count))
    values = ",".join([json.dumps(graph["values"][0])] * (count + 1))
    text = json.dumps({**graph, "values": "VALUES", "nodes": "NODES", "outputs": [count]})
    text = text.replace('"VALUES"', f"[{values}]").replace('"NODES"', f"[{nodes}]")
    entry = {"dtype": "U8", "shape": [len(text)], "data_offsets": [0, len(text)]}
    head = json.dumps({"rushlight.program": entry}).encode()
    program = Program.from_bytes(struct.pack("<Q", len(head)) + head + text.encode())
    assert program.run([core.ones(1)])[0].item() == count + 1


def test_large_graphs_are_a_tensor_of_the_file(tmp_path: Path, function_module: Any) -> None:
    def forward(x: Any) -> Any:
        for _ in range(12000):
            x = x + 1
        return x

    program = export(function_module(forward), (X,)).program
    program.save(str(tmp_path / "m"))
    (length,) = struct.unpack("<Q", (tmp_path / "m").read_bytes()[:8])
    assert length < 1000
    assert core.equal(Program.load(str(tmp_path / "m")).run([X])[0], X + 12000)


def test_weights_of_another_model(counting: Any, linear: Any) -> None:
    _, graph, _ = parts(export(counting, (X,)).program.to_bytes())
    header, _, data = parts(export(linear, (X,)).program.to_bytes())
    with pytest.raises(ValueError, match="the file has no data for the constant 'calls' of its graph"):
        Program.from_bytes(joined(header, graph, data))


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t[::2],
        lambda t: t[1::2],
        lambda t: t[:1].expand(3),
        lambda t: t.reshape(2, 3)[:, :2],
        lambda t: t.reshape(3, 2)[:2].t(),
        lambda t: t.reshape(2, 3).t(),
    ],
)
def test_constants_that_are_views(function_module: Any, view: Callable[..., Any]) -> None:
    constant = view(core.arange(6.0))
    program = export(function_module(lambda x: x + constant), (core.ones(()),)).program
    loaded = Program.from_bytes(program.to_bytes())
    assert loaded.run([core.ones(())])[0].tolist() == (constant + 1).tolist()
