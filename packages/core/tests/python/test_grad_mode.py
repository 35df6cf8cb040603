"""no_grad and similar modes, for blocks and for every kind of function."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rushlight_core as core


def on() -> bool:
    return core.is_grad_enabled()


def test_blocks_nest_and_restore() -> None:
    with core.no_grad():
        assert not on()
        with core.enable_grad():
            assert on()
        assert not on()
    assert on()


def test_an_exception_restores_too() -> None:
    with pytest.raises(KeyError), core.no_grad():
        raise KeyError
    assert on()


def test_set_grad_enabled_acts_at_once() -> None:
    core.set_grad_enabled(False)
    assert not on()
    with core.set_grad_enabled(True):
        assert on()
    assert not on()
    core.set_grad_enabled(True)


@pytest.mark.parametrize(
    "decorator",
    [
        lambda: core.no_grad,
        lambda: core.no_grad(),
        lambda: core.inference_mode,
        lambda: core.inference_mode(),
        lambda: core.set_grad_enabled(False),
    ],
)
def test_functions_are_decorated(decorator: Callable[[], Any]) -> None:
    def inner(x: int, *, y: int = 0) -> tuple[bool, int]:
        """The text."""
        return on(), x + y

    outer = decorator()(inner)
    assert on()
    assert outer(1, y=2) == (False, 3)
    assert on()
    assert (outer.__name__, outer.__doc__, outer.__wrapped__) == ("inner", "The text.", inner)


def test_recursion_restores_in_the_right_order() -> None:
    seen = []

    @core.no_grad()
    def walk(n: int) -> None:
        seen.append(on())
        if n:
            with core.enable_grad():
                walk(n - 1)
                assert on()

    walk(3)
    assert seen == [False] * 4
    assert on()


def test_generators_keep_the_mode_only_while_they_run() -> None:
    seen: list[object] = []

    @core.no_grad()
    def numbers() -> Iterator[int]:
        try:
            sent = yield 1
            seen.append((sent, on()))
            try:
                yield 2
            except ValueError:
                seen.append(("thrown", on()))
            yield 3
        finally:
            seen.append(("closed", on()))

    g = numbers()
    assert next(g) == 1
    assert on()
    assert g.send("hello") == 2  # type: ignore[attr-defined]
    assert g.throw(ValueError) == 3  # type: ignore[attr-defined]
    assert on()
    g.close()  # type: ignore[attr-defined]
    assert seen == [("hello", False), ("thrown", False), ("closed", False)]
    assert on()


def test_a_generator_returns_its_value() -> None:
    @core.no_grad()
    def inner() -> Iterator[int]:
        yield 1
        return 5

    def outer() -> Iterator[int]:
        result = yield from inner()
        yield result  # type: ignore[misc]

    assert list(outer()) == [1, 5]


def test_coroutines_do_not_leak_into_each_other() -> None:
    seen = []

    @core.no_grad()
    async def quiet() -> str:
        seen.append(on())
        await asyncio.sleep(0)
        seen.append(on())
        return "done"

    async def loud() -> None:
        for _ in range(3):
            assert on()
            await asyncio.sleep(0)

    async def both() -> list[object]:
        return await asyncio.gather(quiet(), loud(), quiet())

    assert asyncio.run(both()) == ["done", None, "done"]
    assert seen == [False] * 4


def test_the_mode_is_the_thread_s() -> None:
    seen = []
    with core.no_grad():
        thread = threading.Thread(target=lambda: seen.append(on()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_mode() -> None:
    with core.inference_mode():
        t = core.tensor([1.0])
        assert core.is_inference_mode_enabled()
        assert not on()
        assert t.is_inference()
        with core.inference_mode(False):
            assert on()
            assert not core.is_inference_mode_enabled()
            assert not core.tensor([1.0]).is_inference()
        assert not on()
        x = core.ones(2, requires_grad=True)
        for mode in (core.enable_grad(), core.set_grad_enabled(True)):
            with mode:
                assert not on()
                assert not (x * 2).requires_grad
                assert not x.view(-1).requires_grad
    assert on()
    with pytest.raises(RuntimeError, match="inference_mode"):
        t.requires_grad_()


def test_classes_and_nonsense_are_refused() -> None:
    with pytest.raises(TypeError, match="class cannot be decorated"):

        @core.no_grad()
        class Model:
            pass

    with pytest.raises(TypeError):
        core.no_grad(3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="only functions"):
        core.no_grad()(3)  # type: ignore[type-var]


def test_backward_names_its_package_where_that_is_not_imported() -> None:
    if type(core.Tensor.backward).__name__ != "method_descriptor":
        pytest.skip("a provider of gradients is imported")
    with pytest.raises(RuntimeError, match="pip install rushlight-autograd"):
        core.tensor(1.0, requires_grad=True).backward()
