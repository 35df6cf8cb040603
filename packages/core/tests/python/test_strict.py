"""Strict mode: calls that it refuses, calls that it accepts, and where it applies."""

from __future__ import annotations

import threading

import pytest

import rushlight_core as core

A = core.ones(3, 4)
B = core.ones(4)


def test_ranks() -> None:
    with core.strict():
        with pytest.raises(
            RuntimeError, match=r"add\(input, other\): strict mode: shapes \(3, 4\) and \(4,\)"
        ) as error:
            A + B
        assert "other.unsqueeze(0)" in str(error.value)
        with pytest.raises(RuntimeError, match=r"lt\(input, other\)"):
            core.lt(B, A)
        with pytest.raises(RuntimeError, match=r"where\(condition, other\)"):
            core.where(A > 0, 1.0, B)
        assert (A + B.unsqueeze(0)).shape == (3, 4)
        assert (A + core.ones(3, 1)).shape == (3, 4)
    assert (A + B).shape == (3, 4)


def test_numbers_and_tensors_without_dimensions_go_with_every_shape() -> None:
    with core.strict():
        assert (2 * A + 1.5).sum().item() == 42
        assert (A + core.tensor(1.0)).shape == (3, 4)
        assert (core.arange(3) + 1).tolist() == [1, 2, 3]
        assert (core.arange(3) * 0.5).dtype == core.float32


@pytest.mark.parametrize(
    ("one", "other", "passes"),
    [
        ("int16", "float32", True),
        ("int32", "float32", False),
        ("int32", "float64", True),
        ("int64", "float64", False),
        ("float16", "float32", True),
        ("float16", "bfloat16", True),  # the result is float32
        ("bfloat16", "float64", True),
        ("uint8", "int8", True),  # the result is int16
        ("uint8", "int32", True),
        ("bool", "float16", True),
        ("int8", "float16", True),
        ("int16", "float16", False),
        ("int64", "int8", True),
    ],
)
def test_dtypes(one: str, other: str, passes: bool) -> None:
    x, y = (core.ones(2, dtype=getattr(core, name)) for name in (one, other))
    with core.strict():
        for a, b in ((x, y), (y, x)):
            if passes:
                assert (a + b).dtype == core.promote_types(a.dtype, b.dtype)
                continue
            with pytest.raises(
                RuntimeError,
                match=r"add\(\w+\): strict mode: not every value of dtype int\d+ is .* in float\d+",
            ):
                a + b


def test_a_tensor_without_dimensions_can_lose_digits() -> None:
    with (
        core.strict(),
        pytest.raises(
            RuntimeError, match=r"mul\(other\): strict mode: not every value .* float64 is .* in float32"
        ),
    ):
        A * core.tensor(0.1, dtype=core.float64)


def test_written_tensors() -> None:
    x = core.ones(2)
    with core.strict():
        x += core.ones(2)
        with pytest.raises(
            RuntimeError, match=r"add_: strict mode: a result of dtype float64 is written to .* float32"
        ):
            x += core.ones(2, dtype=core.float64)
        with pytest.raises(RuntimeError, match=r"add.out\(input, other\): strict mode: shapes"):
            core.add(A, B, out=core.empty(3, 4))
    assert x.tolist() == [2, 2]


def test_what_an_operator_is_made_of_may_broadcast() -> None:
    with core.strict():
        assert core.layer_norm(A, (4,), B, B).shape == (3, 4)
        assert core.var_mean(A, 1)[0].shape == (3,)
        assert core.addmm(B, A, core.ones(4, 4)).shape == (3, 4)


def test_composites_that_broadcast_are_checked() -> None:
    with core.strict(), pytest.raises(RuntimeError, match=r"max.other\(input, other\)"):
        core.max(A, B)


def test_scope() -> None:
    assert not core.is_strict_enabled()
    seen = []
    with core.strict():
        thread = threading.Thread(target=lambda: seen.append(core.is_strict_enabled()))
        thread.start()
        thread.join()
        with core.strict(False):
            assert (A + B).shape == (3, 4)
        assert core.is_strict_enabled()
        with core.no_grad():
            assert core.is_strict_enabled()
    assert seen == [False]
    assert not core.is_strict_enabled()

    @core.strict()
    def inside() -> bool:
        return core.is_strict_enabled()

    assert inside()
    with pytest.raises(ZeroDivisionError), core.strict():
        1 / 0
    assert not core.is_strict_enabled()
