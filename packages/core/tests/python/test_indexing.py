"""tensor[...] compared with NumPy: views, selected elements, assignment, iteration, errors."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import rushlight_core as core


def pair(*shape: int, transposed: bool = False) -> tuple[np.ndarray[Any, Any], core.Tensor]:
    a = np.arange(float(np.prod(shape, dtype=int)), dtype=np.float32).reshape(shape)
    t = core.tensor(a)
    return (a.T, t.permute(tuple(range(t.ndim))[::-1])) if transposed else (a, t)


def random_index(rng: random.Random, ndim: int) -> Any:
    items: list[Any] = []
    for _ in range(rng.randint(0, ndim + 1)):
        kind = rng.randrange(8)
        if kind < 3:
            items.append(rng.randint(-4, 4))
        elif kind < 6:
            items.append(
                slice(*(rng.choice([None, -5, -1, 0, 1, 2, 5]) for _ in range(2)), rng.choice([None, 1, 2]))
            )
        elif kind == 6:
            items.append(None)
        elif ... not in items:
            items.append(...)
    return items[0] if len(items) == 1 and rng.random() < 0.5 else tuple(items)


@pytest.mark.parametrize("recorded", [False, True])
def test_views_are_numpy_s(recorded: bool) -> None:
    """Views are made in one step, or by operators if gradients are recorded; both ways agree with NumPy."""
    rng = random.Random(0)
    compared = 0
    for _ in range(1500):
        shape = [rng.randint(1, 4) for _ in range(rng.randint(0, 4))]
        a, t = pair(*shape, transposed=rng.random() < 0.3)
        index = random_index(rng, len(shape))
        t.requires_grad_(recorded)
        try:
            expected = a[index]
        except IndexError:
            with pytest.raises(IndexError):
                t[index]
            continue
        got = t[index].detach()
        assert tuple(got.shape) == np.shape(expected), (shape, index)
        assert got.tolist() == expected.tolist(), (shape, index)
        if got.numel():
            assert got.untyped_storage() is t.untyped_storage()
            compared += 1
    assert compared > 500


@pytest.mark.parametrize("recorded", [False, True])
def test_steps_backwards_are_numpy_s(recorded: bool) -> None:
    """Negative steps in reads and assignments, alone and with other indices. Reads copy: strides cannot be negative."""
    rng = random.Random(1)
    for _ in range(600):
        shape = [rng.randint(0, 4) for _ in range(rng.randint(1, 3))]
        a, t = pair(*shape, transposed=rng.random() < 0.3)
        lists = rng.random() < 0.5  # if there are lists, NumPy treats integers like lists, too
        items: list[Any] = [
            slice(*(rng.choice([None, -5, -2, 0, 1, 5]) for _ in range(2)), rng.choice([None, 1, -1, -2, -9]))
            if rng.random() < 0.7 or not size
            else ([rng.randrange(size), 0] if lists else rng.randrange(size))
            for size in a.shape
        ]
        if rng.random() < 0.3:
            items.insert(rng.randrange(len(items) + 1), rng.choice([None, ...]))
        index = tuple(items)
        expected = a[index]
        got = (t.requires_grad_() if recorded else t)[index].detach()
        assert (tuple(got.shape), got.tolist()) == (np.shape(expected), expected.tolist()), (shape, index)
        values = np.arange(100.0, 100 + expected.size).reshape(np.shape(expected)).astype(a.dtype)
        for value in (values, values[..., :1] if values.ndim else values, 7.0):
            a, t = a.copy(), t.detach().clone().requires_grad_(recorded)
            a[index] = value
            written = t.clone()
            written[index] = core.tensor(value) if isinstance(value, np.ndarray) else value
            assert written.tolist() == a.tolist(), (shape, index)


def test_an_empty_mask_chooses_nothing() -> None:
    a, t = pair(3, 4)
    mask = core.ones(0, dtype=core.bool)
    assert t[mask].shape == (0, 4)
    assert t[core.ones(0, 4, dtype=core.bool)].shape == (0,)
    t[mask] = 5.0
    assert t.tolist() == a.tolist()
    with pytest.raises(IndexError, match="does not match"):
        t[core.ones(0, 3, dtype=core.bool)]


def test_a_view_writes_through() -> None:
    a, t = pair(3, 4)
    t[1, ::2].fill_(9)
    a[1, ::2] = 9
    assert t.tolist() == a.tolist()
    assert t[...] is not t
    assert t[...].data_ptr() == t.data_ptr()


@pytest.mark.parametrize(
    "index",
    [
        *(np.int64(1), np.array(1), np.int8(-1)),
        *(core.tensor(-1, dtype=t) for t in (core.int8, core.int16, core.int32, core.int64)),
    ],
    ids=repr,
)
def test_integers_of_other_types(index: Any) -> None:
    a, t = pair(2, 3)
    assert t[index].tolist() == a[int(index)].tolist()
    assert t[:, index].tolist() == a[:, int(index)].tolist()
    assert t[: int(index) % 3].tolist() == a[: int(index) % 3].tolist()


@pytest.mark.parametrize(
    "index", [(..., ...), (..., 0, ...), (0, ..., ...), (..., None, ..., 1), (..., [1, 0], ...)]
)
def test_later_ellipses_stand_for_no_dimension(index: Any) -> None:
    first = index.index(...)
    same = tuple(item for i, item in enumerate(index) if item is not ... or i == first)
    a, t = pair(2, 3)
    assert t[index].tolist() == a[same].tolist()
    a[same] = -1
    t[index] = -1
    assert t.tolist() == a.tolist()


def test_slices_take_tensors() -> None:
    a, t = pair(5)
    assert t[core.tensor(1) : core.tensor(4) : core.tensor(2)].tolist() == a[1:4:2].tolist()


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (5, IndexError, "5 is out of bounds for dimension 0 of size 2"),
        ((0, 9), IndexError, "9 is out of bounds for dimension 1 of size 3"),
        ((..., -7), IndexError, "-7 is out of bounds for dimension 1 of size 3"),
        ((0, 0, 0), IndexError, "3 indices, too many for a tensor of 2 dimensions"),
        ((0, ..., 0, 0), IndexError, "3 indices, too many for a tensor of 2 dimensions"),
        ((..., 0, ..., 0, 0), IndexError, "3 indices, too many for a tensor of 2 dimensions"),
        (1.0, IndexError, "not float"),
        ((0, b"a"), TypeError, "not bytes"),
        (1j, IndexError, "not complex"),
        ("x", TypeError, "not str"),
        ({}, IndexError, "not dict"),
        (slice(None, None, 0), ValueError, "zero"),
        (slice("a", None), TypeError, "slice indices"),
        (core.tensor([0.5]), IndexError, "float32"),
        (core.tensor([0], dtype=core.int16), IndexError, "int16"),
        ((0,) * 200, IndexError, "more than"),
    ],
)
@pytest.mark.parametrize("recorded", [False, True])
def test_bad_indices_are_named(index: Any, error: type[Exception], text: str, recorded: bool) -> None:
    _, t = pair(2, 3)
    t.requires_grad_(recorded)
    with pytest.raises(error, match=text):
        t[index]
    before = t.tolist()
    with pytest.raises(error, match=text):
        t.detach()[index] = 1.0
    assert t.tolist() == before


def test_a_0d_tensor_has_no_dimension() -> None:
    t = core.tensor(1.0)
    with pytest.raises(IndexError, match="0-d tensor"):
        t[0]
    with pytest.raises(IndexError, match="0-d tensor"):
        t[0:1]
    assert t[...].item() == 1
    assert t[()].shape == ()
    assert t[None].shape == (1,)


CHOICES = [
    np.array([2, 0, 0]),
    [2, 0],
    (np.array([0, 1]), np.array([1, 2])),
    (np.array([[0, 1], [1, 0]]), slice(1, None)),
    (slice(None), np.array([[2], [0]])),
    (np.array([0, 1]), slice(None), np.array([1, 1])),
    (0, np.array([1, 2])),
    (None, np.array([1, 0])),
    (..., np.array([0, 1])),
    np.array([True, False, True]),
    (slice(None), np.array([True, False, True, True])),
    np.array([], dtype=np.int64),
    (np.array([True, False, True]), np.array([0, 1])),
    np.zeros((3, 4), bool),
    True,
    False,
    (True, slice(1, 2)),
]


def as_index(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(as_index, index))
    return core.tensor(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("index", CHOICES)
def test_chosen_elements_are_numpy_s(index: Any) -> None:
    a, t = pair(3, 4, 2)
    if isinstance(index, tuple) and type(index[0]) is int:
        expected = a[index[0]][index[1]]  # the integer removes its dimension first
    else:
        expected = a[index]
    assert t[as_index(index)].tolist() == expected.tolist()
    assert t[index].tolist() == expected.tolist()  # arrays and lists that are not converted to tensors


def test_a_mask_of_several_dimensions_counts_for_all_of_them() -> None:
    a, t = pair(3, 4, 2)
    mask = a[..., 0] > 8
    assert t[core.tensor(mask)].tolist() == a[mask].tolist()
    assert t[core.tensor(mask), 1].tolist() == a[mask, 1].tolist()


def test_a_list_of_lists_stands_for_a_tuple() -> None:
    a, t = pair(3, 4)
    assert t[[[0, 1], [1, 2]]].tolist() == a[[0, 1], [1, 2]].tolist()
    assert t[[slice(0, 1), 2]].tolist() == a[0:1, 2].tolist()


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (0, 5.0),
        ((slice(None), 1), 7),
        (slice(1, 3), [1.0, 2.0, 3.0, 4.0]),
        (..., True),
        (2, np.arange(4.0)),
        ((0, 0), core.tensor(3)),
        ((None, 0), np.ones((1, 4), np.float32)),
        (slice(None), np.ones((1, 1, 3, 4))),
        ([0, 2], 8.0),
        (np.array([0, 2]), np.arange(4, dtype=np.float32)),
        ((np.array([0, 1]), np.array([1, 1])), 4.0),
        (np.array([True, False, True]), -1.0),
    ],
)
def test_assignment_is_numpy_s(index: Any, value: Any) -> None:
    a, t = pair(3, 4)
    version = t._version
    t[index] = core.tensor(value) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value
    plain = value.item() if isinstance(value, core.Tensor) else np.asarray(value)
    a[index] = plain if np.ndim(plain) <= 2 else plain.reshape(plain.shape[-2:])
    assert t.tolist() == a.tolist()
    assert t._version == version + 1


def test_assignment_reads_what_it_overwrites_first() -> None:
    a, t = pair(5)
    t[1:] = t[:-1]
    a[1:] = a[:-1].copy()
    assert t.tolist() == a.tolist()


@pytest.mark.parametrize(
    ("index", "value", "error", "text"),
    [
        (0, "x", TypeError, "str"),
        (0, None, TypeError, "NoneType"),
        (0, {}, TypeError, "dict"),
        (0, core.tensor([1.0, 2.0]), RuntimeError, "broadcast"),
        (0, core.zeros(2, 1, 4), RuntimeError, "broadcast"),
    ],
)
def test_bad_values_are_named(index: Any, value: Any, error: type[Exception], text: str) -> None:
    a, t = pair(3, 4)
    with pytest.raises(error, match=text):
        t[index] = value
    assert t.tolist() == a.tolist()


def test_elements_cannot_be_deleted() -> None:
    _, t = pair(3)
    with pytest.raises(TypeError, match="deleted"):
        del t[0]


def test_read_only_memory_is_not_written() -> None:
    a = np.zeros(3, np.float32)
    a.flags.writeable = False
    t = core.from_numpy(a)
    for index in (0, slice(None), [0], core.tensor([True, False, True])):
        with pytest.raises(RuntimeError, match="read-only"):
            t[index] = 1.0
    assert a.tolist() == [0, 0, 0]


@pytest.mark.parametrize("recorded", [False, True])
def test_iteration(recorded: bool) -> None:
    a, t = pair(3, 2)
    t.requires_grad_(recorded)
    assert [row.tolist() for row in t] == a.tolist()
    first, *_ = t
    assert first.data_ptr() == t.data_ptr()
    assert list(core.zeros(0, 2)) == []
    with pytest.raises(TypeError, match="0-d"):
        iter(core.tensor(1.0))


def test_length_and_membership() -> None:
    _, t = pair(3, 2)
    assert len(t) == 3
    with pytest.raises(TypeError, match="0-d"):
        len(core.tensor(1))
    assert 4 in t
    assert 99.0 not in t
    assert t[1] in t
    with pytest.raises(RuntimeError, match="not str"):
        "x" in t  # noqa: B015


def test_transposes() -> None:
    a, t = pair(2, 3, 4)
    assert t.T.tolist() == a.T.tolist()
    assert t.mT.tolist() == a.swapaxes(1, 2).tolist()
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        t[0, 0].mT


def test_reversed() -> None:
    a, t = pair(3, 2)
    assert reversed(t).tolist() == a[::-1].tolist()


def test_an_index_that_fails_in_the_middle_leaks_nothing() -> None:
    _, t = pair(3)

    class Bad:
        def __index__(self) -> int:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        t[Bad()]
    with pytest.raises(ZeroDivisionError):
        t[Bad() :]


def test_a_number_too_large_for_the_dtype_is_assigned_as_infinity() -> None:
    for dtype in (core.float16, core.bfloat16, core.float32):
        t = core.zeros(3, dtype=dtype)
        t[0] = 1e300
        t[core.tensor([False, True, False])] = -1e300
        t[core.tensor([2])] = 1e300
        assert t.tolist() == [float("inf"), float("-inf"), float("inf")]
    t = core.zeros(1, dtype=core.float64)
    t[0] = 1e300
    assert t.item() == 1e300
