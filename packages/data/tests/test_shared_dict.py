"""Mappings whose keys and values are in shared buffers."""

from __future__ import annotations

import copy
import pickle
import zlib
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rushlight_data import SharedDict

DICTS = [
    {},
    {"ada": 36, "grace": 85, "": 0, "ä\udcff": -1},
    {3: "three", -1: "minus one", 1 << 70: "large", 0: ""},
    {b"": 1.5, b"\0": 2.5},
    {"1": "string", 1: "int", b"1": "bytes"},
    {True: 1, 0: 0},
    {"image.jpg": {"boxes": [[0, 0, 1, 1]]}, "other.jpg": None},
    {np.int64(7): np.float32(1)},
]


@pytest.mark.parametrize("items", DICTS, ids=repr)
def test_items(items):
    shared = SharedDict(items)
    assert isinstance(shared, Mapping)
    assert len(shared) == len(items)
    assert dict(shared) == items
    assert list(shared) == list(shared.keys()) == list(items)
    assert list(map(type, shared)) == list(map(type, items))
    assert list(shared.values()) == list(items.values())
    assert list(shared.items()) == list(items.items())
    for key, value in items.items():
        assert key in shared
        assert shared[key] == shared.get(key) == value
        assert type(shared[key]) is type(value)
        assert (key, value) in shared.items()
        assert value in shared.values()


def test_missing_keys():
    shared = SharedDict({"a": 1, 2: 3})
    for key in ("b", "A", 3, b"a", None, ("a",), 2.5):
        assert key not in shared
        assert shared.get(key, 9) == 9
        with pytest.raises(KeyError) as caught:
            shared[key]
        assert caught.value.args == (key,)
    with pytest.raises(TypeError, match="unhashable"):
        shared[[]]


def test_keys_that_are_equal_to_others():
    shared = SharedDict({1: "one", "x": "ex"})
    assert shared[True] == shared[1.0] == shared[np.int32(1)] == "one"
    assert shared[np.str_("x")] == "ex"


def test_pairs_and_repeated_keys():
    shared = SharedDict((str(i % 3), i) for i in range(7))
    assert dict(shared) == {"0": 6, "1": 4, "2": 5}


def test_keys_with_equal_hashes():
    assert zlib.crc32(b"plumless") == zlib.crc32(b"buckeroo")
    items = {"plumless": 1, "a": 2, "buckeroo": 3, b"plumless": 4}
    shared = SharedDict(items)
    assert dict(shared) == items
    assert [shared[key] for key in items] == [1, 2, 3, 4]
    del items["buckeroo"]
    assert "buckeroo" not in SharedDict(items)


@settings(deadline=None, max_examples=50)
@given(
    st.dictionaries(st.one_of(st.text(), st.integers(), st.binary()), st.integers()), st.text(), st.integers()
)
def test_any_keys(items, text, number):
    shared = SharedDict(items)
    assert dict(shared) == items
    for key in (*items, text, number):
        assert shared.get(key) == items.get(key)


@pytest.mark.parametrize("key", [1.5, None, ("a", 1), frozenset()], ids=repr)
def test_other_keys_are_refused(key):
    with pytest.raises(TypeError, match=r"keys must be strings, bytes or ints, got .* of type"):
        SharedDict({"a": 1, key: 2})


def test_equality():
    shared = SharedDict({"a": 1, "b": 2})
    assert shared == {"b": 2, "a": 1.0} == shared
    assert shared == SharedDict([("b", 2), ("a", 1)])
    assert shared != {"a": 1}
    assert shared != {"a": 1, "b": 3}
    assert shared != {"a": 1, "c": 2}
    assert shared != [("a", 1), ("b", 2)]
    assert SharedDict({"a": None}) != {"b": None}
    with pytest.raises(TypeError, match="unhashable"):
        hash(shared)
    assert repr(SharedDict({i: str(i) for i in range(9)})) == (
        "SharedDict({0: '0', 1: '1', 2: '2', 3: '3', ...}) of 9 items"
    )
    assert repr(SharedDict({})) == "SharedDict({}) of 0 items"


def test_copies():
    items = {str(i): i for i in range(300)}
    shared = SharedDict(items)
    for other in (copy.copy(shared), copy.deepcopy(shared), pickle.loads(pickle.dumps(shared))):
        assert other == items
        for array in (other._hashes, other._positions):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


def test_writing_is_refused():
    items = {"a": [1], "b": [2]}
    shared = SharedDict(items)
    with pytest.raises(TypeError, match="cannot be changed"):
        shared["a"] = 1
    with pytest.raises(TypeError, match="cannot be removed"):
        del shared["a"]
    for name in ("update", "pop", "popitem", "setdefault", "clear"):
        with pytest.raises(AttributeError, match=f"{name}'\nIt is read-only"):
            getattr(shared, name)
    with pytest.raises(AttributeError, match=r"'nothing'$"):
        shared.nothing
    shared["a"].append(9)
    assert shared == items


def test_spawned_workers_find_keys(run_script):
    """Python hashes strings differently in each new process."""
    out = run_script("""
        from rushlight_data import DataLoader, Dataset, SharedDict

        class Annotated(Dataset):
            def __init__(self):
                self.annotations = SharedDict({f"image-{i}": i for i in range(8)})

            def __len__(self):
                return 8

            def __getitem__(self, i):
                return self.annotations[f"image-{i}"]

        if __name__ == "__main__":
            loader = DataLoader(Annotated(), 4, num_workers=1, multiprocessing_context="spawn")
            for _ in range(2):
                print([batch.tolist() for batch in loader])
            print(loader._pool.is_known)
    """)
    assert out.split("\n")[:3] == ["[[0, 1, 2, 3], [4, 5, 6, 7]]"] * 2 + ["True"]


def test_workers_do_not_copy_the_memory(run_script):
    # Private memory consists of the pages that a process has written to since the fork.
    out = run_script("""
        import gc, os
        from rushlight_data import SharedDict

        def private():
            with open("/proc/self/smaps_rollup") as file:
                return sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty"))

        def growth(items):
            reading, writing = os.pipe()
            if os.fork() == 0:
                before = private()
                for epoch in range(3):
                    for i in range(40_000):
                        assert items[f"image-{i:07d}"] == f"{i:030d}.jpg"
                os.write(writing, str(private() - before).encode())
                os._exit(0)
            os.wait()
            return int(os.read(reading, 100))

        plain = {f"image-{i:07d}": f"{i:030d}.jpg" for i in range(40_000)}
        shared = SharedDict(plain)
        gc.disable()
        print(growth(shared), growth(plain))
    """)
    shared, plain = map(int, out.split())
    assert shared < 2_000  # KB
    assert plain > 2_500
