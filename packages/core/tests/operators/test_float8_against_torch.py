"""The float8 dtypes beside PyTorch's: conversions bit for bit, texts, results and exchanges without a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight_core as core

torch = pytest.importorskip("torch")

NAMES = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
REALS = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
)
each_format = pytest.mark.parametrize("name", NAMES)


def bits(x: Any, library: Any) -> Any:
    return x.view(library.uint8).numpy()


def both(name: str, array: Any, dtype: str = "") -> tuple[Any, Any]:
    """The array as float8 of both libraries, by way of a dtype."""
    made = []
    for library in (core, torch):
        x = library.from_numpy(array.copy())
        x = (
            x.view(getattr(library, dtype))
            if dtype == "bfloat16"
            else x.to(getattr(library, dtype))
            if dtype
            else x
        )
        made.append(bits(x.to(getattr(library, name)), library))
    return made[0], made[1]


@each_format
def test_all_numbers_of_16_bits(name: str) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)
    for given, dtype in ((halves.view(np.float16), ""), (halves.view(np.int16), "bfloat16")):
        ours, theirs = both(name, given, dtype)
        np.testing.assert_array_equal(ours, theirs)


@each_format
def test_numbers_of_32_and_64_bits(name: str) -> None:
    upper = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    random = np.random.default_rng(1).integers(0, 1 << 32, 200_000, dtype=np.uint32)
    for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        ours, theirs = both(name, (upper | np.uint32(low)).view(np.float32))
        np.testing.assert_array_equal(ours, theirs)
    with np.errstate(all="ignore"):
        for array in (random.view(np.float32), random.view(np.float32).astype(np.float64) * (1 + 2.0**-40)):
            ours, theirs = both(name, array)
            np.testing.assert_array_equal(ours, theirs)


@each_format
@pytest.mark.parametrize("other", [name for name in REALS if not name.startswith(("float", "bfloat"))])
def test_integers(name: str, other: str) -> None:
    kind = np.dtype(other)
    random = np.random.default_rng(2).integers(0, 256, 4096, dtype=np.uint8)
    array = random > 99 if other == "bool" else random.view(kind)
    ours, theirs = both(name, array)
    np.testing.assert_array_equal(ours, theirs)


@each_format
@pytest.mark.parametrize("other", [*REALS, "complex64", "complex128", *NAMES])
def test_every_code_as_another_dtype(name: str, other: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    made = []
    for library in (core, torch):
        x = library.from_numpy(codes.copy()).view(getattr(library, name))
        if not other.startswith(("float", "bfloat", "complex")):
            # What a number beyond the range of an integer dtype becomes is not defined.
            x = x[(x.float().abs() < 100) & (x.float() >= 0)]
        y = x.to(getattr(library, other))
        made.append(bits(y, library) if other in NAMES else y.to(library.complex128).numpy())
    np.testing.assert_array_equal(made[0], made[1])
    if other not in NAMES:
        numbers = ~np.isnan(made[1])
        np.testing.assert_array_equal(np.signbit(made[0].real[numbers]), np.signbit(made[1].real[numbers]))


@each_format
@pytest.mark.parametrize(
    "numbers", [[1.0, 2.0, 0.5], [0.0], [3.0, 448.0, 0.001], [], [[1.0, 7.0], [2.0**-9, 240.0]], 0.25]
)
def test_texts_and_lists(name: str, numbers: Any) -> None:
    if name == "float8_e8m0fnu" and numbers == [0.0]:
        pytest.skip("PyTorch prints 2^-127 as 0, which is not a number of this format (docs/differences.md)")
    made = [
        (repr(x), repr(x.tolist()), x.type(), x.element_size(), x.is_signed())
        for library in (core, torch)
        for x in [library.tensor(numbers, dtype=getattr(library, name))]
    ]
    assert made[0] == made[1]


@each_format
def test_facts(name: str) -> None:
    ours, theirs = core.finfo(getattr(core, name)), torch.finfo(getattr(torch, name))
    for fact in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
        assert getattr(ours, fact) == getattr(theirs, fact), fact
    for fact in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(getattr(core, name), fact) == getattr(getattr(torch, name), fact), fact


CALLS: list[Callable[[Any, Any], Any]] = [
    lambda library, x: x == x.flip(0) if library is core else x == x[library.arange(5, -1, -1)],
    lambda library, x: x != 1,
    lambda library, x: x == 1.0,
    lambda library, x: x.isnan(),
    lambda library, x: x.any(),
    lambda library, x: x.all(),
    lambda library, x: library.cat([x, x]),
    lambda library, x: library.stack([x, x], 1),
    lambda library, x: x.view(2, 3).t().contiguous(),
    lambda library, x: x[library.tensor([0, 3])],
    lambda library, x: x[library.tensor([True, False, True, True, False, False])],
    lambda library, x: library.where(library.tensor([True, False]), x[:2], x[2:4]),
    lambda library, x: library.where(library.tensor([True, False]), x[:2], 2.3),
    lambda library, x: x.clone().fill_(1.3),
    lambda library, x: x.roll(2),
    lambda library, x: x.repeat(2),
    lambda library, x: library.constant_pad_nd(x, (1, 1), 1.0),
    lambda library, x: x.index_select(0, library.tensor([1])),
    lambda library, x: library.diag(x[:2]),
    lambda library, x: library.full_like(x, 5),
    lambda library, x: x.new_full((2,), 0.3),
    lambda library, x: x.view(library.int8),
    lambda library, x: library.eye(2, dtype=x.dtype),
]  # fmt: skip


@each_format
@pytest.mark.parametrize("call", CALLS)
def test_results(name: str, call: Callable[[Any, Any], Any]) -> None:
    made = []
    for library in (core, torch):
        x = library.tensor([1.25, 0.0, 3.0, float("nan"), 100.0, 1.0]).to(getattr(library, name))
        y = call(library, x)
        made.append((str(y.dtype), list(y.shape), bits(y, library).tolist()))
    assert made[0] == made[1]


@each_format
def test_exchange_by_dlpack(name: str) -> None:
    ours = core.arange(256, dtype=core.uint8).view(getattr(core, name))
    theirs = torch.from_dlpack(ours)
    assert (str(theirs.dtype), theirs.data_ptr()) == (f"torch.{name}", ours.data_ptr())
    back = core.from_dlpack(theirs)
    assert (back.dtype, back.data_ptr()) == (ours.dtype, ours.data_ptr())


@each_format
def test_promotion_is_refused_in_both(name: str) -> None:
    for library in (core, torch):
        x = library.ones(2, dtype=getattr(library, name))
        for other in (*REALS, "complex64", *NAMES):
            if other == name:
                continue
            with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
                library.promote_types(x.dtype, getattr(library, other))
        with pytest.raises(NotImplementedError):
            x + x


@each_format
def test_gradients_pass_through_a_conversion(name: str) -> None:
    pytest.importorskip("rushlight_autograd")
    made = []
    for library in (core, torch):
        x = library.tensor([0.3, 1.7, 100.0], requires_grad=True)
        (x.to(getattr(library, name)).to(library.float32) * library.tensor([1.1, 2.0, 0.3])).sum().backward()
        made.append(x.grad.tolist())
    assert made[0] == made[1]
