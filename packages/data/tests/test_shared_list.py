"""Lists whose items are in shared buffers."""

from __future__ import annotations

import copy
import math
import pickle

import pytest

from rushlight_data import DataLoader, SharedList, Subset

LISTS = [
    [],
    [3, -(1 << 63), (1 << 63) - 1],
    [1 << 63, 0],  # more than 64 bits
    [0.5, -0.0, math.inf],
    [True, False],
    [1, 2.0, "three"],
    ["", "ä", "\udcff", "longer than the others"],
    [b"", b"\0\1", b"x" * 300],
    [{"path": "a", "box": [1, 2]}, {"path": "b", "box": []}],
    [("a", 1), None, ("b", 2)],
]


@pytest.mark.parametrize("items", LISTS, ids=repr)
def test_items(items):
    shared = SharedList(items)
    assert len(shared) == len(items)
    assert list(shared) == items
    assert [shared[i] for i in range(-len(items), len(items))] == items * 2
    assert list(map(type, shared)) == list(map(type, items))
    assert list(map(repr, shared)) == list(map(repr, items))
    assert list(reversed(shared)) == items[::-1]
    for item in items:
        assert item in shared
        assert shared.index(item) == items.index(item)
    for index in (len(items), -len(items) - 1):
        with pytest.raises(IndexError, match=f"index {index} is out of range for {len(items)}"):
            shared[index]


@pytest.mark.parametrize("items", LISTS, ids=repr)
@pytest.mark.parametrize("part", [slice(1, None), slice(None, None, -1), slice(0, 2), slice(5, 9)], ids=repr)
def test_slices(items, part):
    shared = SharedList(items)[part]
    assert isinstance(shared, SharedList)
    assert list(shared) == items[part]
    assert list(shared[1:]) == items[part][1:]
    assert pickle.loads(pickle.dumps(shared)) == items[part]


def test_slices_are_pickled_without_the_rest():
    shared = SharedList(["x" * 1000] * 100)
    assert len(pickle.dumps(shared)) > 100_000
    assert len(pickle.dumps(shared[:2])) < 5_000
    assert shared[:2]._data is shared._data


def test_equality():
    assert SharedList([1, 2]) == SharedList([1.0, 2.0])
    assert SharedList([1, 2]) == [1, 2]
    assert SharedList([1, 2]) == [1, 2]
    assert SharedList([1, 2]) != [1, 2, 3]
    assert SharedList([1, 2]) != [1, 3]
    assert SharedList([1, 2]) != (1, 2)  # as for a list
    with pytest.raises(TypeError, match="unhashable"):
        hash(SharedList([]))
    assert repr(SharedList(range(9))) == "SharedList([0, 1, 2, 3, ...]) of 9 items"


def test_copies_and_iterables():
    shared = SharedList(str(i) for i in range(5))
    for other in (copy.copy(shared), copy.deepcopy(shared), pickle.loads(pickle.dumps(shared))):
        assert other == list("01234")
        with pytest.raises(ValueError, match="read-only"):
            other._data[0] = 1


def test_writing_is_refused():
    items = [{"a": 1}, {"a": 2}]
    shared = SharedList(items)
    with pytest.raises(TypeError, match="cannot be changed"):
        shared[0] = 1
    with pytest.raises(TypeError, match="cannot be removed"):
        del shared[0]
    for name in ("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"):
        with pytest.raises(AttributeError, match=f"{name}'\nIt is read-only"):
            getattr(shared, name)
    with pytest.raises(AttributeError, match=r"'nothing'$"):
        shared.nothing
    shared[0]["a"] = 9
    assert shared == items
    with pytest.raises((pickle.PicklingError, AttributeError)):
        SharedList([lambda: 1])


def test_loaders_keep_workers_of_shared_lists():
    dataset = Subset(SharedList(range(8)), [7, 6, 5, 4])
    loader = DataLoader(dataset, 2, num_workers=1)
    assert [batch.tolist() for batch in loader] == [[7, 6], [5, 4]]
    assert [batch.tolist() for batch in loader] == [[7, 6], [5, 4]]
    assert loader._pool is not None
    assert loader._pool.is_known


def test_workers_do_not_copy_the_memory(run_script):
    # Private memory consists of the pages that a process has written to since the fork.
    out = run_script("""
        import gc, os, sys
        from rushlight_data import SharedList

        def private():
            with open("/proc/self/smaps_rollup") as file:
                return sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty"))

        def growth(items):
            ends = [os.pipe() for worker in range(4)]
            for worker, (_, writing) in enumerate(ends):
                if os.fork() == 0:
                    before = private()
                    for epoch in range(3):
                        for i in range(worker, len(items), 4):
                            assert items[i]["name"] == f"image-{i:07d}.jpg"
                    os.write(writing, str(private() - before).encode())
                    os._exit(0)
            grown = [int(os.read(reading, 100)) for reading, _ in ends]
            for _ in ends:
                os.wait()
            return max(grown)

        plain = [{"name": f"image-{i:07d}.jpg"} for i in range(40_000)]
        shared = SharedList(plain)
        gc.disable()
        print(growth(shared), growth(plain))
    """)
    shared, plain = map(int, out.split())
    assert shared < 2_000  # KB
    assert plain > 5_000
