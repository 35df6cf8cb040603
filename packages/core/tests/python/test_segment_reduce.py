"""Reductions of segments, compared with results of PyTorch."""

from __future__ import annotations

import pytest

import rushlight_core as core

NAN, INF = float("nan"), float("inf")
# torch.segment_reduce(torch.tensor([1, 2, 3, 4]), reduce, lengths=torch.tensor([1, 0, 3])), without and with initial=2.
VALUES = {
    "sum": ([1.0, 0.0, 9.0], [3.0, 2.0, 11.0]),
    "mean": ([1.0, NAN, 3.0], [3.0, 2.0, 11 / 3]),
    "max": ([1.0, -INF, 4.0], [2.0, 2.0, 4.0]),
    "min": ([1.0, INF, 2.0], [1.0, 2.0, 2.0]),
    "prod": ([1.0, 1.0, 24.0], [2.0, 2.0, 48.0]),
}


@pytest.mark.parametrize("reduce", VALUES)
def test_values(reduce: str) -> None:
    data = core.tensor([1.0, 2.0, 3.0, 4.0])
    for wanted, initial in zip(VALUES[reduce], (None, 2.0), strict=True):
        by_lengths = core.segment_reduce(data, reduce, lengths=core.tensor([1, 0, 3]), initial=initial)
        by_offsets = core.segment_reduce(data, reduce, offsets=core.tensor([0, 1, 1, 4]), initial=initial)
        assert core.allclose(by_lengths, core.tensor(wanted), equal_nan=True)
        assert core.allclose(by_offsets, core.tensor(wanted), equal_nan=True)


def test_rows_and_another_axis() -> None:
    data = core.arange(12.0).reshape(4, 3)
    assert core.segment_reduce(data, "sum", lengths=core.tensor([3, 1])).tolist() == [
        [9, 12, 15],
        [9, 10, 11],
    ]
    lengths = core.tensor([[1, 2], [3, 0], [0, 3], [2, 1]])
    assert core.segment_reduce(data, "sum", lengths=lengths, axis=1).tolist() == [
        [0, 3],
        [12, 0],
        [0, 21],
        [19, 11],
    ]


def test_bad_arguments() -> None:
    data = core.ones(4)
    for arguments, text in [
        ({"lengths": core.tensor([1, 2])}, "must sum to"),
        ({"lengths": core.tensor([5, -1])}, "negative"),
        ({"lengths": core.tensor([1.0, 3.0])}, "int64 or int32"),
        ({"offsets": core.tensor([1, 4])}, "begin with 0 and end with"),
        ({}, "exactly one of them must be given"),
        ({"lengths": core.tensor([[4]])}, "must have the shape"),
        ({"indices": core.tensor([0])}, "not supported yet"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            core.segment_reduce(data, "sum", **arguments)
    with pytest.raises(RuntimeError, match="reduce"):
        core.segment_reduce(data, "median", lengths=core.tensor([4]))
    offsets = core.tensor([1, 3])
    assert core.segment_reduce(data, "sum", offsets=offsets, unsafe=True).tolist() == [2.0]


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("reduce", VALUES)
@pytest.mark.parametrize(("shape", "segments"), [((0,), 2), ((0, 3), 0), ((2, 0, 3), 1), ((0, 2, 3), 1)])
def test_data_without_elements(shape: tuple[int, ...], segments: int, reduce: str, unsafe: bool) -> None:
    axis = len(shape) // 3
    front, rest = shape[:axis], shape[axis + 1 :]
    for given, count in (("lengths", segments), ("offsets", segments + 1)):
        marks = {given: core.zeros(*front, count, dtype=core.int64)}
        y = core.segment_reduce(core.zeros(shape), reduce, axis=axis, unsafe=unsafe, initial=2.0, **marks)
        assert core.equal(y, core.full((*front, segments, *rest), 2.0))
