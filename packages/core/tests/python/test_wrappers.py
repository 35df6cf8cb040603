"""Python objects and the C++ tensors that they wrap: identity, attributes, cycles, threads."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import rushlight_core as core


class Sub(core.Tensor):
    __torch_function__ = core._C._disabled_torch_function_impl


@pytest.fixture
def holder() -> core.Tensor:
    """Return a tensor; C++ holds another tensor as its grad."""
    return core.zeros(2)


def test_identity(holder: core.Tensor) -> None:
    g = core.ones(2)
    holder.grad = g
    assert holder.grad is g
    del g
    assert holder.grad is holder.grad
    assert holder.detach() is not holder


def test_attributes_survive_the_wrapper(holder: core.Tensor) -> None:
    g = core.ones(2)
    g.note = "kept"  # type: ignore[attr-defined]
    holder.grad = g
    del g
    gc.collect()
    assert holder.grad.note == "kept"
    assert holder.grad.tolist() == [1, 1]
    assert vars(holder.grad) == {"note": "kept"}


def test_a_subclass_survives_the_wrapper(holder: core.Tensor) -> None:
    holder.grad = core.ones(2).as_subclass(Sub)
    gc.collect()
    assert type(holder.grad) is Sub
    assert holder.grad is holder.grad


def test_weak_references(holder: core.Tensor) -> None:
    g = core.ones(2)
    alive = weakref.ref(g)
    holder.grad = g
    del g
    assert alive() is holder.grad
    holder.grad = None
    assert alive() is None

    died = []
    t = core.ones(1)
    weakref.finalize(t, died.append, True)
    del t
    assert died == [True]


def test_a_weak_reference_gives_out_a_tensor_that_only_c_holds(holder: core.Tensor) -> None:
    holder.grad = core.ones(2)
    alive = weakref.ref(holder.grad)
    gc.collect()
    given = alive()
    assert given is not None
    assert (given + 1).tolist() == [2, 2]
    assert holder.grad is given
    del given
    assert alive() is holder.grad

    given = alive()
    holder.grad = None  # the object that was returned keeps the tensor alive
    gc.collect()
    assert given is not None
    assert (given + 1).tolist() == [2, 2]
    given.mark = 1  # type: ignore[attr-defined]
    assert alive() is given
    del given
    assert alive() is None


def test_a_finalizer_may_look_at_the_tensor(holder: core.Tensor) -> None:
    seen = []

    class Loud(core.Tensor):
        __torch_function__ = core._C._disabled_torch_function_impl

        def __del__(self) -> None:
            seen.append(self.tolist())

    holder.grad = core.ones(2).as_subclass(Loud)
    gc.collect()
    holder.grad = None
    gc.collect()
    assert seen == [[1, 1]]


@pytest.mark.parametrize("kind", [core.Tensor, Sub])
def test_cycles_are_collected(kind: type) -> None:
    t = core.ones(2).as_subclass(kind) if kind is Sub else core.ones(2)
    t.me = [t]  # type: ignore[attr-defined]
    alive = weakref.ref(t)
    del t
    gc.collect()
    assert alive() is None


def test_cycles_through_the_grad_are_collected() -> None:
    t = core.ones(2)
    t.grad = core.ones(2)
    t.grad.owner = t  # type: ignore[attr-defined]
    alive = weakref.ref(t)
    del t
    gc.collect()
    assert alive() is None


def test_a_held_cycle_is_not_collected(holder: core.Tensor) -> None:
    g = core.ones(2)
    g.me = g  # type: ignore[attr-defined]
    holder.grad = g
    del g
    gc.collect()
    assert holder.grad.me is holder.grad
    assert holder.grad.tolist() == [1, 1]


def test_iterators_are_collected() -> None:
    t = core.ones(2)
    t.rows = iter(t)  # type: ignore[attr-defined]
    alive = weakref.ref(t)
    del t
    gc.collect()
    assert alive() is None


def test_nothing_is_left_behind() -> None:
    """Many operations of each kind do not increase the memory in use."""

    def work() -> None:
        a = np.zeros(100, np.float32)
        for _ in range(20):
            t = core.from_numpy(a)
            u = core.tensor([1.0, 2.0])
            u.x = u  # type: ignore[attr-defined]
            [row for row in u]  # noqa: C416
            repr(u), u[0], u[None], u[:1], u.numpy(), memoryview(u), u.tolist(), t + u[0]
            np.from_dlpack(t), core.from_dlpack(a), u.as_subclass(Sub) + 1, u.untyped_storage()
            for bad in ("x", 9, 1.5):
                with pytest.raises(TypeError if bad == "x" else IndexError):
                    u[bad]
            with pytest.raises(TypeError):
                core.add(u, "x")
            with pytest.raises(ValueError):
                core.tensor([[1], [1, 2]])
        gc.collect()

    work()
    before = core.memory_stats()["allocated_bytes"]
    counts = len(gc.get_objects())
    for _ in range(3):
        work()
    assert core.memory_stats()["allocated_bytes"] <= before
    assert len(gc.get_objects()) <= counts + 20


def test_threads_make_and_drop_tensors() -> None:
    shared: list[Any] = [core.arange(10.0)]
    errors: list[BaseException] = []
    go = threading.Barrier(4)

    def run(seed: int) -> None:
        try:
            go.wait()
            for i in range(300):
                t = shared[0][seed:]
                t.tag = i  # type: ignore[attr-defined]
                weakref.ref(t)
                holder = core.zeros(t.shape)
                holder.grad = t.detach()
                holder.grad.tag = i  # type: ignore[attr-defined]
                assert holder.grad.tag == i
                core.from_numpy(np.arange(3.0)).numpy()
                shared[0] = core.arange(10.0) + 0
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_attributes() -> None:
    t = core.ones(1)
    t.a = 1  # type: ignore[attr-defined]
    assert t.__dict__ == {"a": 1}
    del t.a  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        t.a  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        t.shape = 3  # type: ignore[misc, assignment]


def test_the_type_can_be_extended() -> None:
    """The provider of gradients adds its methods in this way."""
    core.Tensor.shout = lambda self: "!" * self.numel()  # type: ignore[attr-defined]
    try:
        assert core.ones(3).shout() == "!!!"  # type: ignore[attr-defined]
    finally:
        del core.Tensor.shout  # type: ignore[attr-defined]


def test_numpys_names_of_arguments_are_taken() -> None:
    x = core.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert core.sum(x=x, axis=0, keepdims=True).tolist() == [[4.0, 6.0]]
    assert core.add(x1=x, x2=x).tolist() == (2 * x).tolist()
    assert x.sum(axis=1).tolist() == core.sum(a=x, axis=1).tolist() == [3.0, 7.0]
    assert core.split(tensor=x, split_size_or_sections=1)[0].tolist() == [[1.0, 2.0]]
    assert x.copy_(other=x) is x
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        core.sum(x, axes=0)


def test_sizes_as_separate_arguments() -> None:
    x = core.arange(8.0).reshape(2, 4)
    assert x[0].broadcast_to(2, 4).shape == (2, 4)
    assert [y.shape[1] for y in x.hsplit(1, 3)] == [1, 2, 1]
    assert core.where(x > 5)[1].tolist() == [2, 3]


def test_results_of_creation_and_random_go_into_out() -> None:
    out = core.empty(0)
    assert core.arange(3.0, out=out) is out
    assert out.tolist() == [0.0, 1.0, 2.0]
    assert core.rand(2, 3, out=out).shape == (2, 3)
    index = core.empty(0, dtype=core.int64)
    core.nonzero(core.tensor([0, 5]), out=index)
    assert index.tolist() == [[1]]
    assert core.norm(core.tensor([3.0, 4.0]), out=core.empty(())).item() == 5.0
