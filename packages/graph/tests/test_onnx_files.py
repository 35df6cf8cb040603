"""ONNX files: the wire format, weights in a second file, limits, and errors of `onnx.load`. Needs no other package."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
from rushlight_graph import onnx
from rushlight_graph.onnx import model as models
from rushlight_graph.onnx import protobuf


def bytes_of(*args: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    onnx.export(*args, f=file, **options)
    return file.getvalue()


def changed(data: bytes, change: Callable[[Any], None]) -> io.BytesIO:
    """Return the file with its messages changed by `change`."""
    message = protobuf.decode("ModelProto", memoryview(data))
    change(message)
    return io.BytesIO(b"".join(protobuf.encode("ModelProto", message)))


# --- the wire format ---


def test_known_bytes() -> None:
    # Field 1 (varint) 300, field 2 (text) "testing": the examples of the format's description.
    assert b"".join(protobuf.encode("ModelProto", {"ir_version": 300})) == b"\x08\xac\x02"
    assert b"".join(protobuf.encode("ModelProto", {"producer_name": "testing"})) == b"\x12\x07testing"
    assert b"".join(protobuf.encode("AttributeProto", {"i": -2})) == b"\x18" + b"\xfe" + b"\xff" * 8 + b"\x01"
    assert b"".join(protobuf.encode("AttributeProto", {"floats": [1.0]})) == b"\x3d\x00\x00\x80\x3f"


def test_packed_numbers_and_unknown_fields_are_read() -> None:
    packed = b"\x42\x03\x01\xac\x02"  # ints = [1, 300], packed
    assert protobuf.decode("AttributeProto", memoryview(packed))["ints"] == [1, 300]
    unknown = b"\xf8\x07\x01" + b"\x9a\x08\x01x" + b"\x0a\x01a"  # fields 127 and 131, then the name
    assert protobuf.decode("AttributeProto", memoryview(unknown))["name"] == "a"


@pytest.mark.parametrize(
    "data",
    [b"\x08", b"\x12\x05ab", b"\x0b", b"\x0a\x01\xff", b"\x08" + b"\xff" * 11, b"\x12\xff\xff\xff\xff\x0f"],
)
def test_damaged_messages_are_refused(data: bytes) -> None:
    with pytest.raises(protobuf.ProtobufError):
        protobuf.decode("NodeProto" if data[0] == 0x0A else "ModelProto", memoryview(data))


def test_messages_may_not_be_nested_without_end() -> None:
    data = b""
    for _ in range(40):  # GraphProto.node.attribute.g
        for tag in (b"\x32", b"\x2a", b"\x0a"):
            head = bytearray(tag)
            protobuf_length = len(data)
            while protobuf_length > 0x7F:
                head.append(protobuf_length & 0x7F | 0x80)
                protobuf_length >>= 7
            head.append(protobuf_length)
            data = bytes(head) + data
    with pytest.raises(protobuf.ProtobufError, match="nested deeper"):
        protobuf.decode("GraphProto", memoryview(data))


def test_weights_are_not_copied_on_the_way() -> None:
    weight = core.randn(64, 64)
    pieces = protobuf.encode("TensorProto", {"name": "w", "raw_data": models._bytes(weight)})
    views = [piece for piece in pieces if isinstance(piece, memoryview)]
    assert len(views) == 1
    weight.zero_()
    assert not any(bytes(views[0]))


# --- files ---


@pytest.fixture
def wide(function_module: Callable[..., Any]) -> Any:
    module = function_module(
        lambda x: core.linear(x, module.weight, module.bias), weight=core.randn(300, 8), bias=core.randn(300)
    )
    return module


def test_large_weights_lie_in_a_second_file(wide: Any, tmp_path: Path) -> None:
    x = core.randn(2, 8)
    path = tmp_path / "model.onnx"
    onnx.export(wide, (x,), path)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    assert path.stat().st_size < 2000
    message = protobuf.decode("ModelProto", memoryview(path.read_bytes()))
    locations = {
        entry["name"]: {item["key"]: item["value"] for item in entry["external_data"]}
        for entry in message["graph"]["initializer"]
    }
    assert locations["weight"] == {"location": "model.onnx.data", "offset": "0", "length": "9600"}
    assert locations["bias"] == {"location": "model.onnx.data", "offset": "12288", "length": "1200"}
    loaded = onnx.load(path)
    assert core.equal(loaded.module()(x), wide(x))
    assert set(loaded.state_dict) == {"weight", "bias"}
    onnx.export(wide, (x,), tmp_path / "one.onnx", external_data=False)
    assert not (tmp_path / "one.onnx.data").exists()
    assert core.equal(onnx.load(tmp_path / "one.onnx").module()(x), wide(x))


def test_files_of_two_gigabytes_need_a_second_file(
    wide: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "_LARGEST", 8000)
    with pytest.raises(ValueError, match=r"at most 8000(.|\n)*external_data=True"):
        onnx.export(wide, (core.randn(2, 8),), tmp_path / "model.onnx", external_data=False)
    assert not list(tmp_path.iterdir())
    onnx.export(wide, (core.randn(2, 8),)).save(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx.data").exists()


@pytest.mark.parametrize("location", ["../model.onnx.data", "/etc/passwd", ""])
def test_tensors_outside_of_the_folder_are_refused(wide: Any, tmp_path: Path, location: str) -> None:
    path = tmp_path / "model.onnx"
    onnx.export(wide, (core.randn(2, 8),), path)

    def change(message: Any) -> None:
        for item in message["graph"]["initializer"][0]["external_data"]:
            if item["key"] == "location":
                item["value"] = location

    path.write_bytes(changed(path.read_bytes(), change).getvalue())
    with pytest.raises(onnx.OnnxLoadError, match="outside the model's folder"):
        onnx.load(path)


def test_second_files_that_are_cut_are_refused(wide: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.export(wide, (core.randn(2, 8),), path)
    data = tmp_path / "model.onnx.data"
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(onnx.OnnxLoadError, match="ends beyond the end"):
        onnx.load(path)
    data.unlink()
    with pytest.raises(onnx.OnnxLoadError, match="cannot be read"):
        onnx.load(path)
    with pytest.raises(onnx.OnnxLoadError, match="load the model by its path"):
        onnx.load(io.BytesIO(path.read_bytes()))


# --- load ---


def test_structures_come_back(function_module: Callable[..., Any]) -> None:
    module = function_module(lambda pair, scale: {"sum": pair[0] + pair[1], "scaled": (pair[0] * scale,)})
    x, y = core.randn(2), core.randn(2)
    data = bytes_of(module, ((x, y),), kwargs={"scale": 2.0})
    got = onnx.load(io.BytesIO(data)).module()((x, y), scale=2.0)
    assert core.equal(got["sum"], x + y)
    assert core.equal(got["scaled"][0], x * 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("graph"), "has no graph"),
        (lambda m: m["opset_import"][0].update(version=9), "opset version must be from 17 to 21, got 9"),
        (
            lambda m: m["graph"]["node"][0].update(op_type="Mystery"),
            "operators that are not supported: Mystery",
        ),
        (
            lambda m: m["graph"]["node"][0].update(domain="com.x"),
            "operators that are not supported: com.x.Gemm",
        ),
        (
            lambda m: m["graph"]["node"][0].update(input=["x", "none"]),
            "uses 'none', which no earlier node computes",
        ),
        (lambda m: m["graph"]["output"][0].update(name="none"), "no node computes the output 'none'"),
        (
            lambda m: m["graph"]["initializer"][0].update(dims=[7, 7]),
            "and dtype float32 needs 196 bytes, got 24",
        ),
        (lambda m: m["graph"]["initializer"][0].update(dims=[-2, -3]), "has the invalid shape"),
        (lambda m: m["graph"]["initializer"][0].update(data_type=8), "is of type 8"),
        (lambda m: m["graph"]["input"][0].pop("type"), "must be a tensor of known dtype and rank"),
        (lambda m: m["graph"]["node"][0].update(input=["x", "weight", "x"]), "node 'Gemm_0' \\(Gemm\\): "),
        (lambda m: m["graph"]["node"][0]["attribute"][0].update(type=5), "of a type that is not supported"),
        (lambda m: m["metadata_props"].append({"key": "rushlight.symbols", "value": "{"}), "is damaged"),
        (
            lambda m: m["graph"]["input"][0]["type"]["tensor_type"]["shape"]["dim"][0].update(
                dim_value=1 << 60
            ),
            "an example input cannot be created",
        ),
    ],
)
def test_models_that_cannot_be_read(linear: Any, change: Callable[[Any], None], message: str) -> None:
    data = bytes_of(linear, (core.randn(4, 3),))
    with pytest.raises(onnx.OnnxLoadError, match=message):
        onnx.load(changed(data, change))


def test_damaged_files_raise_and_do_not_crash(linear: Any) -> None:
    data = bytes_of(linear, (core.randn(4, 3),))
    refused = 0
    for size in range(len(data)):
        try:
            onnx.load(io.BytesIO(data[:size]))
        except onnx.OnnxLoadError:
            refused += 1
    assert refused > 0.95 * len(data)  # a file that is cut between two fields behind the graph is still valid
    draw = random.Random(0)
    for _ in range(300):
        mutated = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            mutated[draw.randrange(len(mutated))] = draw.randrange(256)
        try:
            onnx.load(io.BytesIO(bytes(mutated)))
        except onnx.OnnxLoadError:
            continue


# --- the operators' entries ---


def test_every_entry_that_says_function_has_one() -> None:
    from rushlight_graph.onnx._operators import RULES
    from rushlight_graph.onnx.calls import FUNCTIONS

    assert set(FUNCTIONS) == {name for name, rule in RULES.items() if rule.onnx == "function"}


def test_what_export_writes_load_reads() -> None:
    import ast

    from rushlight_graph.onnx import loader  # noqa: F401
    from rushlight_graph.onnx._operators import RULES
    from rushlight_graph.onnx.calls_of_nodes import CALLS

    written = {
        node.func.id
        for rule in RULES.values()
        if rule.onnx != "function"
        for node in ast.walk(ast.parse(rule.onnx))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert written <= set(CALLS)


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: (x.clone(), x.clone()), 2),
        (lambda x: (y := x * 2, (y, y.contiguous()))[1], 2),
        (lambda x: (x, x.detach()), 2),
        (lambda x: (y := x + 1, (y, y, x * 2))[1], 3),
        (lambda x: {"a": x * 2, "b": [x, x]}, 3),
    ],
)
def test_equal_results_are_separate_outputs(function: Any, count: int, function_module: Any) -> None:
    x = core.randn(3, 4)
    made = onnx.export(function_module(function), (x,))
    file = io.BytesIO()
    made.save(file)
    message = protobuf.decode("ModelProto", memoryview(file.getvalue()))
    assert len(message["graph"]["output"]) == count
    got = onnx.load(io.BytesIO(file.getvalue())).module()(x)
    assert str(got) == str(function(x))
