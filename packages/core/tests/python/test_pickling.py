"""pickle, copy and deepcopy: values, geometry, sharing, classes."""

from __future__ import annotations

import copy
import pickle
from types import ModuleType
from typing import Any

import pytest

import rushlight_core as core


class Tagged(core.Tensor):
    tag: str


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "made",
    [
        lambda: core.arange(6).view(2, 3),
        lambda: core.arange(6.0).view(2, 3).t()[1:],
        lambda: core.zeros(0),
        lambda: core.tensor(True),
        lambda: core.zeros(2, 3, dtype=core.bfloat16),
        lambda: core.zeros(1).expand(4),
        lambda: core.tensor([1.0], requires_grad=True),
    ],
)
def test_round_trip(made: Any, protocol: int) -> None:
    t = made()
    back = pickle.loads(pickle.dumps(t, protocol))
    assert type(back) is core.Tensor
    assert back.dtype is t.dtype
    assert back.shape == t.shape
    assert back.stride() == t.stride()
    assert back.requires_grad == t.requires_grad
    assert back.tolist() == t.tolist()
    if t.numel():
        assert back.data_ptr() != t.data_ptr()
        assert back.untyped_storage().resizable()


@pytest.mark.parametrize("protocol", [2, 5])
def test_sharing_survives_inside_one_pickle(protocol: int) -> None:
    base = core.zeros(4)
    a, b = pickle.loads(pickle.dumps((base, base[1:]), protocol))
    b[0] = 7
    assert a.tolist() == [0, 7, 0, 0]
    assert base.tolist() == [0, 0, 0, 0]


def test_buffers_out_of_band() -> None:
    t = core.arange(1000.0)
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps([t, t[:10]], protocol=5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    assert len(data) < 1000
    memory = bytearray(buffers[0].raw())
    del buffers
    whole, part = pickle.loads(data, buffers=[memoryview(memory)])
    part[0] = 5
    assert whole[0].item() == 5
    assert core.frombuffer(memory, dtype=core.float32)[0].item() == 5  # no copy was made


def test_meta_tensors() -> None:
    back = pickle.loads(pickle.dumps(core.zeros(2, 3, device="meta")))
    assert (back.device.type, tuple(back.shape)) == ("meta", (2, 3))


def test_classes_and_attributes() -> None:
    t = core.tensor([1.0, 2.0]).as_subclass(Tagged)
    t.tag = "x"
    plain = core.tensor([1.0])
    plain.note = [1]  # type: ignore[attr-defined]
    for duplicate in (lambda o: pickle.loads(pickle.dumps(o)), copy.copy, copy.deepcopy):
        back, other = duplicate(t), duplicate(plain)
        assert (type(back), back.tag, back.tolist()) == (Tagged, "x", [1.0, 2.0])
        assert (type(other), other.note) == (core.Tensor, [1])


def test_small_objects() -> None:
    values = [
        core.float32,
        core.bfloat16,
        core.bool,
        core.device("cpu"),
        core.device("cuda", 1),
        core.Size([2, 3]),
    ]
    back = pickle.loads(pickle.dumps(values))
    assert back == values
    assert back[0] is core.float32
    assert type(back[-1]) is core.Size
    assert copy.deepcopy(values) == values


def test_copy_shares_memory() -> None:
    t = core.zeros(3)
    shallow = copy.copy(t)
    assert shallow is not t
    assert shallow.data_ptr() == t.data_ptr()


def test_deepcopy() -> None:
    base = core.arange(6.0)
    base.friend = base  # type: ignore[attr-defined]
    a, b, again = copy.deepcopy([base, base.view(2, 3)[1], base])
    assert again is a
    assert a.friend is a
    b[0] = 9
    assert a.tolist() == [0, 1, 2, 9, 4, 5]
    assert base[3].item() == 3


def test_deepcopy_takes_leaf_state_along() -> None:
    t = core.tensor([1.0, 2.0], requires_grad=True)
    t.grad = core.tensor([3.0, 4.0])
    made = copy.deepcopy(t)
    assert made.requires_grad
    assert made.is_leaf
    assert made.grad.tolist() == [3, 4]
    assert made.grad.data_ptr() != t.grad.data_ptr()


def test_truncated_pickles_raise() -> None:
    data = pickle.dumps(core.arange(10))
    for cut in range(1, len(data), 7):
        with pytest.raises(
            (pickle.UnpicklingError, EOFError, ValueError, RuntimeError, TypeError, AttributeError)
        ):
            pickle.loads(data[:-cut])


def test_a_geometry_that_leaves_its_memory_is_refused() -> None:
    storage = core.zeros(4).untyped_storage()
    for size, stride, offset in (
        ((5,), (1,), 0),
        ((2,), (4,), 0),
        ((4,), (1,), 1),
        ((1,), (1,), -1),
        ((2,), (-1,), 1),
    ):
        with pytest.raises(RuntimeError):
            core._C._tensor_over(storage, core.float32, size, stride, offset)


@pytest.mark.parametrize("name", [name for name in core.__all__ if name != "default_generator"])
def test_names_stay_the_same_objects(name: str) -> None:
    """Functions, classes and constants are pickled and copied by reference, also those that are loaded on first use."""
    value = getattr(core, name)
    assert name in dir(core)
    if isinstance(value, ModuleType):
        return
    assert copy.copy(value) is value
    assert copy.deepcopy(value) is value
    back = pickle.loads(pickle.dumps(value))
    assert back is value or (isinstance(value, float) and repr(back) == repr(value))
