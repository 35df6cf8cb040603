"""The machine that reads pickles, with hand-written programs, most of which are malicious."""

from __future__ import annotations

import collections
import contextlib
import datetime
import decimal
import enum
import fractions
import io
import os
import pathlib
import pickle
import pickletools
import struct
import sys
import time
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

import rushlight_core as core
from rushlight_nn import serialization
from rushlight_nn.serialization import CheckpointError, load, save
from rushlight_nn.serialization.errors import RATIO, Budget, FormatError
from rushlight_nn.serialization.machine import Machine
from rushlight_nn.serialization.names import Names


def archive(program, storages=None, **entries):
    """Return a PyTorch archive with this pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("a/data.pkl", program)
        written.writestr("a/byteorder", "little")
        for name, data in (storages or {}).items():
            written.writestr(f"a/data/{name}", data)
        written.writestr("a/version", "3\n")
        for name, data in entries.items():
            written.writestr(name, data)
    file.seek(0)
    return file


def run(program, storages=None):
    return load(archive(program, storages))


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def number(value):
    return b"\x8a\x10" + value.to_bytes(16, "little", signed=True)


def storage(key="0", kind="FloatStorage", count=4, device="cpu", part=b""):
    module = "torch.storage" if kind == "UntypedStorage" else "torch"
    named = text("storage") + name(module, kind) + text(key) + text(device) + number(count)
    return b"(" + named + part + b"tQ"


def tensor(shape=(2, 2), strides=(2, 1), offset=0, given=None, grad=b"\x89"):
    def sizes(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    arguments = (given or storage()) + number(offset) + sizes(shape) + sizes(strides) + grad + b"}"
    return name("torch._utils", "_rebuild_tensor_v2") + b"(" + arguments + b"tR"


MEMORY = {"0": np.arange(4, dtype=np.float32).tobytes()}


def test_the_helpers_of_these_tests():
    found = run(b"\x80\x02" + tensor() + b".", MEMORY)
    assert found.tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_a_storage_within_another():
    """Files of versions before 1.6 describe a view of a storage by its first element and the number of elements."""

    def part(begin, count):
        return b"(" + text("1") + number(begin) + number(count) + b"t"

    given = tensor((2,), (1,), given=storage(part=part(1, 2)))
    assert run(b"\x80\x02" + given + b".", MEMORY).tolist() == [1.0, 2.0]
    beyond = tensor((2,), (1,), given=storage(part=part(1, 4)))
    with pytest.raises(CheckpointError, match="beyond"):
        run(b"\x80\x02" + beyond + b".", MEMORY)


def test_devices_that_map_location_leaves_out_stay():
    file = archive(b"\x80\x02" + tensor(given=storage(device="cuda:63")) + b".", MEMORY)
    assert load(file, map_location={"cuda:63": "cpu"}).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    for where in ({"cuda:62": "cpu"}, {}, None):
        file.seek(0)
        with pytest.raises(RuntimeError, match="'cuda:63', which is not available"):
            load(file, map_location=where)


# Every instruction ------------------------------------------------------------------------------------------

VALUES = [
    None,
    True,
    False,
    0,
    255,
    65535,
    -1,
    2**31,
    -(2**70),
    2**3000,
    1.5,
    float("inf"),
    "",
    "é\ud800",
    "x" * 300,
    b"",
    b"a" * 300,
    (),
    (1,),
    (1, 2),
    (1, 2, 3),
    (1, 2, 3, 4),
    [],
    [1],
    list(range(2500)),
    {},
    {"a": 1},
    dict.fromkeys(range(2500)),
    set(),
    {1, 2},
    frozenset([1]),
    bytearray(b"x"),
    1j,
    range(3),
    slice(1, None),
]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_what_pythons_pickle_writes(protocol):
    for value in VALUES:
        found = run(pickle.dumps(value, protocol))
        assert type(found) is type(value)
        assert found == value
    shared = [1]
    found = run(pickle.dumps([shared, shared], protocol))
    assert found[0] is found[1]


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_arrays_in_every_protocol(protocol):
    for array in (np.arange(6), np.asfortranarray(np.ones((2, 3))), np.arange(3, dtype=">i2"), np.zeros(0)):
        first, second = run(pickle.dumps([array, array], protocol))
        assert first is second
        assert first.dtype == array.dtype.newbyteorder("=")
        assert first.flags.f_contiguous == array.flags.f_contiguous
        np.testing.assert_array_equal(first, array)
    fixed = np.frombuffer(b"abcd", np.uint8)  # protocol 5 writes arrays that are read-only as bytes
    np.testing.assert_array_equal(run(pickle.dumps(fixed, protocol)), fixed)


def test_copies_of_conjugated_tensors_are_counted():
    def program(count, typed):
        part = storage(kind="ComplexFloatStorage", count=2) + number(0)
        arguments = (
            b"(" + part + b"(" + number(count) + b"t(" + number(0) + b"t\x89}}" + text("conj") + b"\x88st"
        )
        build = name("torch._utils", "_rebuild_tensor_v2")
        if not typed:
            return b"\x80\x02" + build + arguments + b"R."
        start = name("torch._tensor", "_rebuild_from_type_v2") + b"("
        return b"\x80\x02" + start + build + name("torch", "Tensor") + arguments + b"}tR."

    for typed in (False, True):
        assert run(program(3, typed), MEMORY).tolist() == [-1j] * 3
        with pytest.raises(CheckpointError, match="more memory"):
            run(program(2**40, typed), MEMORY)


def test_a_bytearray_that_ends_early():
    program = b"\x80\x05\x96" + struct.pack("<Q", 2**63) + b"a."
    with pytest.raises(CheckpointError, match="truncated"):
        run(program)


def test_every_instruction_is_read_or_refused():
    read = set()
    for opcode in pickletools.opcodes:
        code = opcode.code.encode("latin-1")
        try:
            run(b"\x80\x02" + b"N" * 3 + code + b"\0" * 9 + b".")
        except CheckpointError as error:
            if f"the instruction {code!r}, which" not in str(error):
                read.add(opcode.name)
        else:
            read.add(opcode.name)
    refused = {opcode.name for opcode in pickletools.opcodes} - read
    assert refused == {
        "DUP", "EXT1", "EXT2", "EXT4", "FLOAT", "GET", "INST", "INT", "LONG", "NEWOBJ_EX", "NEXT_BUFFER",
        "OBJ", "PERSID", "POP", "POP_MARK", "PUT", "READONLY_BUFFER", "STRING", "UNICODE",
    }  # fmt: skip


def test_strings_of_python_2():
    assert run(b"\x80\x02U\x02a\xff.") == "a\xff"
    assert run(b"\x80\x02T\x02\0\0\0a\xff.") == "a\xff"


# Nothing is run ---------------------------------------------------------------------------------------------

CALLED = []


class Spy:
    def __reduce__(self):
        return CALLED.append, ("called",)


HOSTILE = [
    name("os", "system") + text("touch /tmp/x") + b"\x85R",
    name("posix", "system") + text("true") + b"\x85R",
    name("builtins", "eval") + text("1") + b"\x85R",
    name("builtins", "getattr") + text("1") + b"\x85R",
    name("builtins", "__import__") + text("os") + b"\x85R",
    name("builtins", "object") + b")\x81",
    name("builtins", "type") + b")\x81",
    name("torch", "load") + text("x") + b"\x85R",
    name("torch", "os") + text("x") + b"\x85R",
    name("torch", "__builtins__"),
    name("torch.serialization", "os.system"),
    name("torch", "float32.__class__"),
    name("collections", "OrderedDict.__init_subclass__"),
    name("rushlight_nn.serialization.object_builders", "encode"),
    name("functools", "partial") + b")R",
    name("copyreg", "_reconstructor") + b")R",
    text("os") + text("system") + b"\x93",
    name("torch._utils", "_rebuild_tensor_v2") + b"}b",
    name("collections", "OrderedDict") + b")R}" + text("items") + b"K\x01sb",
    name("collections", "OrderedDict") + b")R}" + text("__class__") + b"K\x01sb",
    name("argparse", "Namespace") + b")\x81}" + text("__class__") + b"K\x01sb",
    name("torch", "Tensor") + b")R",
    name("torch", "Tensor") + b")\x81",
    name("torch.nn.parameter", "Parameter") + b")\x81",
    name("collections", "defaultdict") + name("torch", "Tensor") + b"\x85R",
    name("torch._tensor", "_rebuild_from_type_v2")
    + b"("
    + name("collections", "OrderedDict")
    + name("torch", "Tensor")
    + b")}tR",
    b"(" + text("module") + b"NNNtQ",
    b"(" + text("storage") + b"NNNNtQ",
    b"]" + text("x") + b"\x85R",
    b"K\x01)R",
]


@pytest.mark.parametrize("program", HOSTILE)
def test_code_is_refused(program):
    with pytest.raises(CheckpointError):
        run(b"\x80\x02" + program + b".")


def test_no_module_is_imported():
    before = set(sys.modules)
    with pytest.raises(
        CheckpointError,
        match=r"this\.s, antigravity\.x.*add_safe_globals\(\[s, x\]\)|this\.s, antigravity\.x",
    ):
        run(b"\x80\x02(" + name("this", "s") + name("antigravity", "x") + b"t.")
    assert not {"this", "antigravity"} & (set(sys.modules) - before)


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("optimize", [False, True])
def test_unknown_names_of_every_protocol(protocol, optimize):
    """Protocols 4 and 5 take the parts of a name from the memo if they occur twice."""
    values = [
        fractions.Fraction(1, 2),
        {"fractions": range(3)},
        slice(1),
        collections.OrderedDict(),
        Point(1),
    ]
    values += [decimal.Decimal(1), pathlib.PurePosixPath("decimal"), fractions.Fraction(1, 3), Other]
    program = pickle.dumps(values, protocol)
    file = archive(pickletools.optimize(program) if optimize else program)
    names = ["fractions.Fraction", f"{__name__}.Point", "decimal.Decimal", f"{__name__}.Other"]
    found = serialization.get_unsafe_globals_in_checkpoint(file)
    assert [name for name in found if name != "copyreg._reconstructor"] == names
    file.seek(0)
    with pytest.raises(CheckpointError, match=rf"not allowed: {', '.join(found)}\. None of them"):
        load(file)


def test_names_of_known_functions_are_not_unsafe():
    program = pickle.dumps([np.float32(1), np.arange(3), {1}, 1j, bytearray(b"a"), slice(2), range(3)], 4)
    assert serialization.get_unsafe_globals_in_checkpoint(archive(program)) == []


def test_reduce_of_a_living_function():
    with pytest.raises(CheckpointError, match=r"do not load this file|add_safe_globals"):
        run(pickle.dumps([Spy()], 2))
    assert not CALLED


# What is allowed --------------------------------------------------------------------------------------------


class Point:
    def __init__(self, x):
        self.x = x


class Other:
    pass


class Slotted:
    __slots__ = ("x", "y")


class Own(dict):
    pass


class OwnList(list):
    pass


class Color(enum.IntEnum):
    RED = 3


Pair = collections.namedtuple("Pair", ["left", "right"])


@pytest.fixture
def allowed():
    with serialization.safe_globals([Point, Slotted, Own, OwnList, Color, Pair]):
        yield


def written(value):
    file = io.BytesIO()
    save(value, file, format="pytorch")
    return file.getvalue()


def test_allowed_classes(allowed):
    slotted = Slotted()
    slotted.x = core.ones(2)
    value = {
        "p": Point([1]),
        "s": slotted,
        "d": Own(a=1),
        "l": OwnList([1, 2]),
        "c": Color.RED,
        "n": Pair(1, (2,)),
    }
    value["again"] = value["p"]
    found = load(io.BytesIO(written(value)))
    assert type(found["p"]) is Point
    assert found["p"].x == [1]
    assert found["again"] is found["p"]
    assert found["s"].x.tolist() == [1.0, 1.0]
    assert found["d"] == Own(a=1)
    assert type(found["d"]) is Own
    assert found["l"] == OwnList([1, 2])
    assert found["c"] is Color.RED
    assert found["n"] == Pair(1, (2,))
    assert type(found["n"]) is Pair


def test_what_is_allowed_is_allowed_in_its_block_only():
    assert serialization.get_safe_globals() == []
    with serialization.safe_globals([Point]):
        data = written(Point(1))
        assert serialization.get_safe_globals() == [Point]
        with serialization.safe_globals([Own]):
            assert load(io.BytesIO(data)).x == 1
        assert load(io.BytesIO(data)).x == 1
    with pytest.raises(
        CheckpointError, match=r"test_pickle_machine\.Point.*\n.*add_safe_globals\(\[Point\]\)"
    ):
        load(io.BytesIO(data), weights_only=False)
    with pytest.raises(TypeError, match=r"Point, which is not data"):
        written(Point(1))


def test_names_of_files_for_allowed_objects():
    program = b"\x80\x02" + name("old.place", "Dot") + b")\x81}" + text("x") + b"K\x02sb."
    with pytest.raises(CheckpointError, match=r"old\.place\.Dot"):
        run(program)
    serialization.add_safe_globals([(Point, "old.place.Dot")])
    try:
        assert run(program).x == 2
        assert serialization.get_safe_globals() == [(Point, "old.place.Dot")]
    finally:
        serialization.clear_safe_globals()
    with pytest.raises(CheckpointError):
        run(program)
    for bad in ("os.system", (Point, 3), 3, (Point,)):
        with pytest.raises(TypeError, match="add_safe_globals"):
            serialization.add_safe_globals([bad])


def test_an_error_of_an_allowed_class_is_told(allowed):
    program = b"\x80\x02" + name(Point.__module__, "Point") + b")R."
    with pytest.raises(CheckpointError, match=r"Point cannot be built.*missing"):
        run(program)


# Geometry ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        tensor((3, 2)),
        tensor(offset=1),
        tensor(offset=-1),
        tensor(strides=(2, -1)),
        tensor((2,)),
        tensor((-2, 2)),
        tensor((2**62,), (0,)),
        tensor((2**62, 2**62), (0, 0)),
        tensor((2**62, 0), (1, 1)),
        tensor((1,) * 1000, (1,) * 1000),
        tensor((2, 2), (2**61, 1)),
        tensor((2, 2), (2, 1), 2**62 - 1),
        tensor(given=storage(count=5)),
        tensor(given=storage(count=2**62)),
        tensor(given=storage(count=-1)),
        tensor(given=storage("1")),
        tensor(given=storage("../0")),
        tensor(given=storage(device="abacus")),
        tensor(given=storage(kind="UntypedStorage")),
        tensor(given=storage(kind="QInt8Storage")),
        tensor(given=storage(kind="BoolStorage")),
        tensor(given=storage(kind="LongStorage", count=2), grad=b"\x88", shape=(2,), strides=(1,)),
        tensor(grad=b"K\x01"),
        tensor(given=b"N"),
        tensor(given=tensor()),
    ],
)
def test_impossible_tensors(program):
    with pytest.raises(CheckpointError):
        run(b"\x80\x02" + program + b".", MEMORY)


def test_possible_tensors():
    assert run(b"\x80\x02" + tensor((2, 3), (1, 1)) + b".", MEMORY).tolist() == [
        [0.0, 1.0, 2.0],
        [1.0, 2.0, 3.0],
    ]
    assert tuple(run(b"\x80\x02" + tensor((2**31, 1), (0, 1)) + b".", MEMORY).shape) == (2**31, 1)
    assert run(b"\x80\x02" + tensor((0, 5), (5, 1), 9) + b".", MEMORY).tolist() == []
    assert run(b"\x80\x02" + tensor((2,), (1,), grad=b"\x88") + b".", MEMORY).requires_grad


# Memory and time --------------------------------------------------------------------------------------------

DEEP = 100_000


def doubled(count):
    """Return the pickle of nested pairs, a tree with 2^count leaves that takes a few bytes per level."""
    return b")q\0" + b"".join(
        b"h" + bytes([i]) + b"h" + bytes([i]) + b"\x86q" + bytes([i + 1]) for i in range(count)
    )


BOMBS = {
    "lists": b"(" + b"]" * 1_000_000 + b"l",
    "dictionaries": b"(" + b"}" * 1_000_000 + b"l",
    "sets": b"(" + b"\x8f" * 300_000 + b"l",
    "marks": b"(" * 1_000_000,
    "copies of a list": b"]q\0("
    + b"N" * 500_000
    + b"eh\0\x85q\x01"
    + (name("builtins", "list") + b"h\x01R") * 20_000,
    "copies of a string": text("x" * 1_000_000) + b"q\0" + (name("_codecs", "encode") + b"h\0\x85R") * 10_000,
    "a large bytearray": name("builtins", "bytearray") + number(2**40) + b"\x85R",
    "a large list": name("builtins", "list") + name("builtins", "range") + number(2**40) + b"\x85R\x85R",
    "a large array": name("numpy._core.multiarray", "_reconstruct")
    + name("numpy", "ndarray")
    + number(2**40)
    + b"\x85C\x01b\x87R"
    + b"(K\x01"
    + number(2**40)
    + b"\x85"
    + name("numpy", "dtype")
    + text("f8")
    + b"\x85R\x89C\0tb",
    "a long string": b"X\xff\xff\xff\xff",
    "a very long string": b"\x8d" + b"\xff" * 8,
    "a long number": b"\x8b\xff\xff\xff\x7f",
    "a negative length": b"\x8b\xff\xff\xff\xff",
    "a far memo": b"Nr\xff\xff\xff\xff",
    "a tuple as a key": b"}" + doubled(100) + b"Ns",
    "a tuple in a set": b"\x8f(" + doubled(100) + b"\x90",
    "a deep key": b"})" + b"\x85" * DEEP + b"Ns",
    "a deep function": b")" + b"\x85" * DEEP + b")R",
    "a deep size": name("torch", "Size") + doubled(100) + b"\x85R",
    "a deep path": name("pathlib", "Path") + doubled(100) + b"R",
    "a deep dtype": name("torch._utils", "_rebuild_meta_tensor_no_storage")
    + b"("
    + doubled(100)
    + b"))\x89tR",
    "a deep array": name("numpy._core.multiarray", "_reconstruct") + b"(" + doubled(100) + b"NNtR",
}


@pytest.mark.parametrize("kind", BOMBS)
def test_bombs(kind):
    data = archive(b"\x80\x02" + BOMBS[kind] + b".").getvalue()
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError):
            load(io.BytesIO(data))
        assert tracemalloc.get_traced_memory()[1] < RATIO * len(data) + (16 << 20)
    finally:
        tracemalloc.stop()


MODULUS = 2**61 - 1  # all its multiples have the hash 0
SAME_TUPLES = [
    tuple(-1 - (i >> k & 1) for k in range(10)) for i in range(300)
]  # -1 and -2 have the same hash


@pytest.mark.parametrize(
    "store",
    [
        b"}(%su",
        b"}%m",
        b"\x8f(%s\x90",
        b"(%s\x91",
        name("builtins", "set") + b"](%se\x85R",
        name("collections", "Counter") + b"}\x85R%m",
        name("collections", "OrderedDict") + b")R(%su",
    ],
)
def test_keys_of_one_hash_are_refused(store):
    for keys in (
        [number(MODULUS * i) for i in range(300)],
        [number(MODULUS * i) + b"\x85" for i in range(300)],
        [b"(" + b"".join(number(part) for part in key) + b"t" for key in SAME_TUPLES],
    ):
        pairs = store.endswith((b"u", b"%m"))
        program = store.replace(b"%s", b"".join(key + b"N" * pairs for key in keys))
        program = program.replace(b"%m", b"".join(b"(" + key + b"Nu" for key in keys))
        with pytest.raises(CheckpointError, match="keys of one container have the same hash"):
            run(b"\x80\x02" + program + b".")


def test_keys_of_one_hash_are_refused_in_json():
    for kind in (set, dict.fromkeys):
        file = io.BytesIO()
        save(kind(MODULUS * i for i in range(300)), file)
        with pytest.raises(CheckpointError, match="keys of one container have the same hash"):
            load(io.BytesIO(file.getvalue()))


def test_the_time_of_keys_is_proportional_to_their_number():
    # The largest allowed number of keys for each hash. Without a limit, such keys would take a minute.
    keys = b"".join(number(MODULUS * i + j) + b"N" for j in range(200) for i in range(200))
    before = time.process_time()
    assert len(run(b"\x80\x02}(" + keys + b"u.")) == 40_000
    assert time.process_time() - before < 5


def test_a_key_that_is_walked_again_and_again_is_refused():
    key = b"(" + b"N" * 5000 + b"tq\0"
    with pytest.raises(CheckpointError, match="hashing its keys reads too many values"):
        run(b"\x80\x02(" + key + b"}h\0Ns" * 3000 + b"l.")


@pytest.mark.parametrize(
    "keys",
    [
        [(i, i + 1) for i in range(25_000)],
        [frozenset([i]) for i in range(100)],
        [tuple(range(2000))],
        [2**70 + i for i in range(1000)],
        [
            pathlib.Path("a"),
            datetime.date(2020, 1, 2),
            datetime.timedelta(3),
            range(3),
            1j,
            None,
            True,
            2.5,
            b"x",
        ],
    ],
)
@pytest.mark.parametrize("form", ["pytorch", "safetensors"])
def test_keys_of_data(keys, form):
    for value in (dict.fromkeys(keys, 1), set(keys)):
        file = io.BytesIO()
        save(value, file, format=form)
        assert load(io.BytesIO(file.getvalue())) == value


def test_names_are_shown_in_letters():
    with pytest.raises(CheckpointError, match=r"'\\x1b\[31m.x'"):
        run(b"\x80\x02" + name("\x1b[31m", "x") + b".")


def test_deep_values_are_values():
    found = run(b"\x80\x02" + b"]" * 1 + b"]" * 50_000 + b"a" * 50_000 + b".")
    depth = 0
    while found:
        found, depth = found[0], depth + 1
    assert depth == 50_000
    cycle = run(b"\x80\x02]q\0h\0a.")
    assert cycle[0] is cycle


def test_the_budget():
    budget = Budget(1000)
    with pytest.raises(FormatError, match="more memory than the 1000 bytes"):
        budget.charge(1 << 30)


@pytest.mark.parametrize(
    "program",
    [
        b"",
        b".",
        b"N",
        b"\x80",
        b"\x80\x01N.",
        b"\x80\x09N.",
        b"NN.",
        b"(N.",
        b"(.",
        b"a.",
        b"Na.",
        b"NNa.",
        b"](e(.",
        b"}(Nu.",
        b"u.",
        b"t.",
        b"h\0.",
        b"Nq\x05.",
        b"cos",
        b"c\n\n.",
        b"NNs.",
        b"}NNss.",
        b"R.",
        b"NR.",
        b"NNR.",
        b"b.",
        b"NNb.",
        b"Q.",
        b"NQ.",
        b"\x85.",
        b"(\x85.",
        b"X\x01\0\0\0\xff.",
        b"\x94.",
        b"\x93.",
        b"NN\x93.",
        b"]]Ns.",
        b"}]Ns.",
        b"\xff",
        b"K",
        b"G\0",
        b"NNN\x86t.",
        b"\x90.",
        b"](\x90.",
    ],
)
def test_programs_that_are_none(program):
    for data in (program, b"\x80\x02" + program):
        with pytest.raises(CheckpointError):
            run(data)


def test_random_programs(rng):
    codes = [opcode.code.encode("latin-1") for opcode in pickletools.opcodes]
    names = [
        name("torch", "Size"),
        name("collections", "OrderedDict"),
        name("torch._utils", "_rebuild_tensor_v2"),
        storage(),
        text("a"),
    ]
    for _ in range(3000):
        program = b"\x80\x02"
        for _ in range(int(rng.integers(1, 25))):
            part = (
                codes[int(rng.integers(len(codes)))]
                if rng.random() < 0.7
                else names[int(rng.integers(len(names)))]
            )
            program += part + rng.bytes(int(rng.integers(0, 3)))
        machine = archive(program + b".", MEMORY)
        with contextlib.suppress(CheckpointError):
            load(machine)


# The archive ------------------------------------------------------------------------------------------------


def test_archives_that_are_none(tmp_path):
    good = archive(b"\x80\x02N.").getvalue()
    assert load(io.BytesIO(good)) is None
    compressed = io.BytesIO()
    with zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a/data.pkl", b"\x80\x02" + b"N" * 1_000_000 + b".")
    with pytest.raises(CheckpointError, match="compressed"):
        load(io.BytesIO(compressed.getvalue()))
    begin = good.index(b"PK\x01\x02")
    encrypted = bytearray(good)
    encrypted[begin + 8] |= 1
    with pytest.raises(CheckpointError, match="encrypted"):
        load(io.BytesIO(bytes(encrypted)))
    overlapping = bytearray(good)
    second = good.index(b"PK\x01\x02", begin + 4)
    overlapping[second + 42 : second + 46] = overlapping[begin + 42 : begin + 46]
    with pytest.raises(CheckpointError):
        load(io.BytesIO(bytes(overlapping)))
    longer = bytearray(good)
    longer[begin + 20 : begin + 28] = struct.pack("<II", 500, 500)
    with pytest.raises(CheckpointError, match="overlaps the next"):
        load(io.BytesIO(bytes(longer)), verify=False)
    for changes in ({"b/data.pkl": b""}, {"data.pkl": b"\x80\x02N."}):
        with pytest.raises(CheckpointError, match=r"does not have exactly one entry data\.pkl"):
            load(archive(b"\x80\x02N.", **changes))
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = archive(b"\x80\x02N.", **{"a/data.pkl": b""})
    with pytest.raises(CheckpointError, match="two entries"):
        load(twice)
    swapped = good.replace(b"little", b"lottle").replace(_crc(b"little"), _crc(b"lottle"))
    with pytest.raises(CheckpointError, match="byte order"):
        load(io.BytesIO(swapped))
    with pytest.raises(CheckpointError, match=r"does not have exactly one entry data\.pkl"):
        other = io.BytesIO()
        with zipfile.ZipFile(other, "w") as file:
            file.writestr("../../etc/passwd", b"x")
        load(io.BytesIO(other.getvalue()))
    assert not os.path.exists(tmp_path.parent / "etc")


def _crc(data):
    return struct.pack("<I", zlib.crc32(data))


def test_archives_of_zip64():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written, written.open("a/data.pkl", "w", force_zip64=True) as entry:
        entry.write(b"\x80\x02K\x07.")
    assert load(io.BytesIO(file.getvalue())) == 7
    many = archive(b"\x80\x02K\x05.", {str(i): b"" for i in range(66_000)})
    assert b"PK\x06\x06" in many.getvalue()
    assert load(many) == 5


def test_our_archives_of_many_entries():
    from rushlight_nn.serialization.archive import Writer

    file = io.BytesIO()
    writer = Writer(file)
    writer.add("a/data.pkl", b"\x80\x02K\x05.")
    for i in range(66_000):
        writer.add(f"a/data/{i}", b"")
    writer.finish()
    assert load(io.BytesIO(file.getvalue())) == 5
    assert len(zipfile.ZipFile(file).namelist()) == 66_001


def test_a_machine_reads_several_pickles():
    machine = Machine(b"\x80\x02N.\x80\x02K\x01.", Names(None, Budget(100)), Budget(100))
    assert machine.load() is None
    assert machine.load() == 1
