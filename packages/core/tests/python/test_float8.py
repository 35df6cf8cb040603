"""The float8 dtypes: stored, copied, viewed and converted, and refused by every other operator."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight_core as rl

# Of each format: bits of the exponent and of the mantissa, the bias, and what is beyond the largest number.
FORMATS: dict[str, tuple[int, int, int, str]] = {
    "float8_e4m3fn": (4, 3, 7, "saturates"),
    "float8_e5m2": (5, 2, 15, "infinity"),
    "float8_e4m3fnuz": (4, 3, 8, "nan"),
    "float8_e5m2fnuz": (5, 2, 16, "nan"),
}
POWERS = "float8_e8m0fnu"
NAMES = [*FORMATS, POWERS]
each_format = pytest.mark.parametrize("name", NAMES)
NAN, INFINITY = math.nan, math.inf


def codes(x: rl.Tensor) -> Any:
    return x.view(rl.uint8).numpy()


def all_codes(name: str) -> rl.Tensor:
    return rl.arange(256, dtype=rl.uint8).view(getattr(rl, name))


def value(name: str, code: int) -> float:
    """The number that a code stands for, by the definition of the format."""
    if name == POWERS:
        return NAN if code == 255 else 2.0 ** (code - 127)
    exponent_bits, mantissa_bits, bias, beyond = FORMATS[name]
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = (code & 0x7F) >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
    if beyond == "nan" and code == 0x80:
        return NAN
    if beyond == "saturates" and code & 0x7F == 0x7F:
        return NAN
    if beyond == "infinity" and exponent == (1 << exponent_bits) - 1:
        return NAN if mantissa else sign * INFINITY
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa * 2.0**-mantissa_bits) * 2.0 ** (exponent - bias)


def nearest(name: str, numbers: Any) -> Any:
    """The codes of numbers, which are float32, by search among the values of all codes."""
    with np.errstate(invalid="ignore"):
        x = np.asarray(numbers, np.float64)
    values = np.array([value(name, code) for code in range(256)])
    if name == POWERS:
        magnitude = np.abs(x)
        found = np.searchsorted(values[:255], magnitude)  # the first power that is not smaller
        below, above = np.maximum(found - 1, 0), np.minimum(found, 254)
        # A tie goes to the larger power: between them lies no number of even mantissa.
        result = np.where(magnitude - values[below] < values[above] - magnitude, below, above)
        result[(magnitude > values[0]) & (magnitude < values[1])] = 1  # as in PyTorch: always up
        result[magnitude >= 1.5 * 2.0**127] = 255
        return np.where(np.isfinite(x), result, 255).astype(np.uint8)
    _, mantissa_bits, _, beyond = FORMATS[name]
    most = np.nanmax(values[:128][np.isfinite(values[:128])])
    count = int(np.sum(np.isfinite(values[:128])))
    # As if there were numbers beyond the largest: one step above it decides what is rounded to it.
    step = 2.0 ** (np.floor(np.log2(most)) - mantissa_bits)
    steps = np.append(values[:count], most + step)
    magnitude = np.minimum(np.abs(x), steps[-1])
    above = np.clip(np.searchsorted(steps, magnitude), 1, count)
    below = above - 1
    low, high = magnitude - steps[below], steps[above] - magnitude
    code = np.where(low < high, below, np.where(low > high, above, below + (below & 1)))
    code = np.where(magnitude == 0, 0, code)
    over, sign = code == count, np.where(np.signbit(x), 0x80, 0)
    if beyond == "nan":
        code = np.where(over | np.isnan(x), 0x80, np.where(code == 0, 0, code | sign))
    else:
        largest = count if beyond == "infinity" else count - 1
        code = np.where(np.isnan(x), 0x7F, np.where(over, largest, code)) | sign
    return code.astype(np.uint8)


def inputs() -> Any:
    """All float16 and bfloat16 numbers, and float32 numbers at, below and above every value and every tie."""
    halves = np.arange(1 << 16, dtype=np.uint16)
    wide = [halves.view(np.float16).astype(np.float32), (halves.astype(np.uint32) << 16).view(np.float32)]
    for name in NAMES:
        values = np.array([value(name, code) for code in range(256)])
        values = np.unique(np.abs(values[np.isfinite(values)])).astype(np.float64)
        ties = np.concatenate(
            [(values[1:] + values[:-1]) / 2, values, [1.5 * values[-1], 1.0625 * values[-1]]]
        )
        around = ties.astype(np.float32)
        bits = around.view(np.uint32)
        for near in (bits, bits + np.uint32(1), np.maximum(bits, 1) - np.uint32(1)):
            wide += [near.view(np.float32), -near.view(np.float32)]
    random = np.random.default_rng(0).integers(0, 1 << 32, 20000, dtype=np.uint32).view(np.float32)
    return np.concatenate([*wide, random])


INPUTS = inputs()


@each_format
def test_every_code_has_the_value_of_the_definition(name: str) -> None:
    expected = np.array([value(name, code) for code in range(256)], np.float32)
    found = all_codes(name).to(rl.float32).numpy()
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])
    for code in range(0, 256, 5):
        np.testing.assert_equal(all_codes(name)[code].item(), float(expected[code]))
    np.testing.assert_equal(all_codes(name).tolist(), expected.astype(np.float64).tolist())


@each_format
def test_numbers_are_rounded_to_nearest_and_ties_to_even(name: str) -> None:
    found, expected = codes(rl.from_numpy(INPUTS).to(getattr(rl, name))), nearest(name, INPUTS)
    wrong = np.flatnonzero((found != expected) & ~np.isnan(INPUTS))
    assert wrong.size == 0, (INPUTS[wrong[:5]], found[wrong[:5]], expected[wrong[:5]])
    assert all(math.isnan(value(name, code)) for code in found[np.isnan(INPUTS)])


@each_format
def test_every_code_survives_wider_dtypes(name: str) -> None:
    dtype = getattr(rl, name)
    x = all_codes(name)
    for wide in (rl.float32, rl.float64, rl.bfloat16, rl.complex64, rl.complex128):
        back = codes(x.to(wide).to(dtype))
        same = np.isnan(x.float().numpy()) | (back == codes(x))
        assert same.all(), (wide, np.flatnonzero(~same))
        np.testing.assert_array_equal(
            np.isnan(x.float().numpy()), np.isnan(x.to(wide).to(dtype).float().numpy())
        )


@each_format
@pytest.mark.parametrize(
    "other", ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
)
def test_integers_go_through_float32(name: str, other: str) -> None:
    dtype, whole = getattr(rl, name), getattr(rl, other)
    info = (0, 1) if other == "bool" else (rl.iinfo(whole).min, min(rl.iinfo(whole).max, 2**62))
    given = sorted({*range(max(info[0], -300), min(info[1], 300) + 1), *info})
    x = rl.tensor(given, dtype=whole)
    np.testing.assert_array_equal(codes(x.to(dtype)), codes(x.to(rl.float32).to(dtype)))
    y = rl.tensor([0.0, 1.0, 2.0, 16.0, 3.5, 1.75]).to(dtype)
    assert y.to(whole).tolist() == y.float().to(whole).tolist()


@each_format
@pytest.mark.parametrize("other", ["float16", "bfloat16", "float64", "complex64", "complex128", *NAMES])
def test_other_floats_go_through_float32(name: str, other: str) -> None:
    source = rl.from_numpy(INPUTS[::7].copy()).to(getattr(rl, other))
    found = source.to(getattr(rl, name))
    single = source.real.to(rl.float32) if source.is_complex() else source.to(rl.float32)
    np.testing.assert_array_equal(codes(found), codes(single.to(getattr(rl, name))))


@pytest.mark.parametrize(
    ("name", "numbers", "expected"),
    [
        ("float8_e4m3fn", [448.0, 464.0, 1e9, INFINITY, -INFINITY], [448.0, 448.0, 448.0, 448.0, -448.0]),
        (
            "float8_e5m2",
            [57344.0, 61439.0, 61440.0, -1e9, INFINITY],
            [57344.0, 57344.0, INFINITY, -INFINITY, INFINITY],
        ),
        ("float8_e4m3fnuz", [240.0, 247.0, 248.0, INFINITY, -1e9], [240.0, 240.0, NAN, NAN, NAN]),
        ("float8_e5m2fnuz", [57344.0, 61439.0, 61440.0, INFINITY], [57344.0, 57344.0, NAN, NAN]),
        (
            "float8_e8m0fnu",
            [3.0, -2.0, 0.0, 2.0**127, 3e38, INFINITY],
            [4.0, 2.0, 2.0**-127, 2.0**127, NAN, NAN],
        ),
        ("float8_e4m3fn", [2.0**-9, 2.0**-10, 1.5 * 2.0**-9, -(2.0**-11)], [2.0**-9, 0.0, 2.0**-8, -0.0]),
        ("float8_e4m3fnuz", [-0.0, -(2.0**-30)], [0.0, 0.0]),
    ],
)
def test_the_ends_of_the_range(name: str, numbers: list[float], expected: list[float]) -> None:
    dtype = getattr(rl, name)
    np.testing.assert_equal(rl.tensor(numbers).to(dtype).tolist(), expected)
    np.testing.assert_equal(rl.tensor(numbers, dtype=dtype).tolist(), expected)
    np.testing.assert_equal([rl.full((1,), n, dtype=dtype).item() for n in numbers], expected)
    signs = np.signbit(rl.tensor(numbers, dtype=dtype).tolist())
    np.testing.assert_array_equal(signs[~np.isnan(expected)], np.signbit(expected)[~np.isnan(expected)])


@each_format
def test_creation(name: str) -> None:
    dtype = getattr(rl, name)
    least = value(name, 0)
    assert rl.empty(2, 3, dtype=dtype).shape == (2, 3)
    assert rl.zeros(2, dtype=dtype).tolist() == [least, least]
    assert rl.ones(2, dtype=dtype).tolist() == [1.0, 1.0]
    assert rl.full((2,), 2, dtype=dtype).tolist() == [2.0, 2.0]
    assert rl.tensor([1, 2.0, True], dtype=dtype).tolist() == [1.0, 2.0, 1.0]
    assert rl.eye(2, dtype=dtype).tolist() == [[1.0, least], [least, 1.0]]
    x = rl.ones(2, dtype=dtype)
    assert x.new_full((1,), 4.0).dtype is dtype is rl.zeros_like(x).dtype
    assert rl.full_like(x, 0.5).tolist() == [0.5, 0.5]
    assert x.new_tensor([1.0]).dtype is dtype
    assert rl.asarray([1.0], dtype=dtype).dtype is dtype
    assert rl.frombuffer(bytearray(b"\x40\x40"), dtype=dtype).tolist() == [value(name, 0x40)] * 2
    assert rl.empty(2, dtype=dtype, device="meta").dtype is dtype
    with pytest.raises(TypeError, match="a complex number cannot be converted"):
        rl.tensor(1j, dtype=dtype)


@each_format
def test_properties(name: str) -> None:
    dtype = getattr(rl, name)
    assert repr(dtype) == f"torch.{name}"
    assert (dtype.itemsize, dtype.is_floating_point, dtype.is_complex) == (1, True, False)
    assert dtype.is_signed == (name != POWERS)
    assert dtype.to_real() is dtype
    with pytest.raises(RuntimeError, match=f"no complex dtype corresponds to {name}"):
        dtype.to_complex()
    x = rl.ones(3, dtype=dtype)
    assert (x.element_size(), x.nbytes, x.is_floating_point(), x.is_signed()) == (1, 3, True, name != POWERS)
    assert x.type() == f"torch.F{name[1:]}Tensor"
    with pytest.raises(TypeError, match="other than float8"):
        rl.set_default_dtype(dtype)


@pytest.mark.parametrize(
    ("name", "least", "most", "eps", "normal"),
    [
        ("float8_e4m3fn", -448.0, 448.0, 0.125, 2.0**-6),
        ("float8_e5m2", -57344.0, 57344.0, 0.25, 2.0**-14),
        ("float8_e4m3fnuz", -240.0, 240.0, 0.125, 2.0**-7),
        ("float8_e5m2fnuz", -57344.0, 57344.0, 0.125, 2.0**-15),
        ("float8_e8m0fnu", 2.0**-127, 2.0**127, 1.0, 2.0**-127),
    ],
)
def test_finfo(name: str, least: float, most: float, eps: float, normal: float) -> None:
    info = rl.finfo(getattr(rl, name))
    assert (info.bits, info.dtype, info.resolution) == (8, name, 1.0)
    assert (info.min, info.max, info.eps) == (least, most, eps)
    assert info.tiny == info.smallest_normal == normal
    finite = [v for v in map(float, all_codes(name).tolist()) if math.isfinite(v)]
    assert (min(finite), max(finite)) == (least, most)


@each_format
def test_views_and_copies_move_codes(name: str) -> None:
    dtype = getattr(rl, name)
    x = all_codes(name).view(16, 16)
    base = x.view(rl.uint8)
    assert base.dtype is rl.uint8
    assert x.view(rl.int8).view(dtype).dtype is dtype
    moves: list[Callable[[Any], Any]] = [
        lambda t: t.clone(),
        lambda t: t.t().contiguous(),
        lambda t: t[3:11:2, ::3].clone(),
        lambda t: t.reshape(4, 64).permute(1, 0).reshape(-1),
        lambda t: rl.cat([t, t.t()]),
        lambda t: rl.stack([t, t]),
        lambda t: t[None].expand(2, 16, 16).contiguous(),
        lambda t: t[rl.tensor([3, 1]), 1:],
        lambda t: t.index_select(1, rl.tensor([0, 5])),
        lambda t: t[t.view(rl.uint8) > 99],
        lambda t: rl.where(rl.eye(16, dtype=rl.bool)[..., None] > 0, t, t)[:1],
        lambda t: t.flip(0),
        lambda t: t.roll(3, 1),
        lambda t: t.repeat(2, 1),
        lambda t: t.gather(1, rl.zeros(16, 2, dtype=rl.int64)),
        lambda t: rl.cat(t.split([1, 15])),
        lambda t: copy.deepcopy(t),
        lambda t: rl.empty_like(t).copy_(t),
    ]
    for number, move in enumerate(moves):
        made = move(x)
        assert made.dtype is dtype, number
        numbers = ~np.isnan(made.float().numpy())  # `where` converts, and a NaN may get other digits
        wanted = move(base) if number != 10 else move(base.view(rl.int8)).view(rl.uint8)
        np.testing.assert_array_equal(codes(made)[numbers], wanted.numpy()[numbers], str(number))
    view = x[1]
    view.fill_(2.0)
    assert x[1, 5].item() == 2.0
    x[2, :] = rl.ones(16)
    assert x[2].tolist() == [1.0] * 16
    x[3, 0] = 4.0
    assert x[3, 0].item() == 4.0
    x.zero_()
    assert base.unique().tolist() == [0]


@each_format
def test_comparisons_are_those_of_the_numbers(name: str) -> None:
    dtype = getattr(rl, name)
    x = all_codes(name)
    single = x.float()
    y = x.roll(1)
    assert (x == x).tolist() == (single == single).tolist()
    assert (x != y).tolist() == (single != y.float()).tolist()
    assert x.isnan().tolist() == single.isnan().tolist()
    assert x.isinf().tolist() == single.isinf().tolist()
    assert x.isfinite().tolist() == single.isfinite().tolist()
    assert rl.equal(x[:64], x[:64].clone())
    assert not rl.equal(x, x)  # NaN
    assert x[:3].any().item() == single[:3].any().item()
    assert x[:3].all().item() == single[:3].all().item()
    assert rl.tensor([1.0, 2.0], dtype=dtype).eq(1).tolist() == [True, False]
    # A number is not rounded to the dtype.
    assert (rl.ones(1, dtype=dtype) == 1.001).tolist() == [False]
    mask = rl.tensor([True, False])
    chosen = rl.where(mask, rl.ones(2, dtype=dtype), rl.full((2,), 4, dtype=dtype))
    assert (chosen.dtype, chosen.tolist()) == (dtype, [1.0, 4.0])
    if name != POWERS:
        assert rl.tensor([-2.0, 0.5]).to(dtype).abs().tolist() == [2.0, 0.5]


ARITHMETIC: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + x,
    "sub": lambda x: x - 1,
    "mul": lambda x: 2 * x,
    "add_": lambda x: x.add_(1),
    "neg": lambda x: -x,
    "lt": lambda x: x < x,
    "exp": lambda x: x.exp(),
    "sum": lambda x: x.sum(),
    "max": lambda x: x.max(),
    "argmax": lambda x: x.argmax(),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(),
    "mm": lambda x: x[None] @ x[None].t(),
    "softmax": lambda x: x.softmax(0),
    "uniform_": lambda x: x.uniform_(),
    "clamp": lambda x: x.clamp(0, 1),
    "nonzero": lambda x: x.nonzero(),
    "std": lambda x: x.std(),
    "out": lambda x: rl.add(rl.ones(2), 1, out=x),
}


@each_format
@pytest.mark.parametrize("operator", list(ARITHMETIC))
def test_arithmetic_raises(name: str, operator: str) -> None:
    x = rl.ones(2, dtype=getattr(rl, name))
    with pytest.raises(NotImplementedError, match=rf"not defined for dtype {name}\nhint: convert"):
        ARITHMETIC[operator](x)
    assert x.tolist() == [1.0, 1.0]


@each_format
def test_promotion_raises(name: str) -> None:
    dtype = getattr(rl, name)
    x = rl.ones(2, dtype=dtype)
    message = f"Promotion for Float8 Types is not supported, attempted to promote {name} and float32"
    for promoted in (
        lambda: rl.promote_types(dtype, rl.float32),
        lambda: rl.result_type(x, rl.ones(2)),
        lambda: x + rl.ones(2),
        lambda: x == rl.ones(2),
        lambda: rl.cat([x, rl.ones(2)]),
    ):
        with pytest.raises(RuntimeError, match=message):
            promoted()
    assert rl.promote_types(dtype, dtype) is dtype
    assert rl.result_type(x, 1.5) is dtype
    assert rl.can_cast(dtype, rl.float32)
    assert rl.can_cast(rl.float32, dtype)
    assert not rl.can_cast(dtype, rl.int32)


@each_format
def test_random_and_ranges(name: str) -> None:
    dtype = getattr(rl, name)
    for make in (
        lambda: rl.rand(2, dtype=dtype),
        lambda: rl.randn(2, dtype=dtype),
        lambda: rl.randint(3, (2,), dtype=dtype),
        lambda: rl.randperm(2, dtype=dtype),
    ):
        with pytest.raises(NotImplementedError, match=f"not defined for dtype {name}"):
            make()
    assert rl.arange(1, 4, dtype=dtype).tolist() == rl.arange(1, 4).to(dtype).tolist()


@each_format
def test_printing(name: str) -> None:
    dtype = getattr(rl, name)
    assert repr(rl.tensor([1.0, 0.5], dtype=dtype)) == f"tensor([1.0000, 0.5000], dtype=torch.{name})"
    assert repr(rl.tensor(2.0, dtype=dtype)) == f"tensor(2., dtype=torch.{name})"
    assert repr(rl.empty(0, dtype=dtype)) == f"tensor([], dtype=torch.{name})"
    assert "..." in repr(rl.ones(2000, dtype=dtype))
    assert f"{rl.tensor(2.0, dtype=dtype):.2f}" == "2.00"


@each_format
def test_numpy_has_no_such_dtype(name: str) -> None:
    x = rl.ones(2, dtype=getattr(rl, name))
    for convert in (lambda: x.numpy(), lambda: np.asarray(x)):
        with pytest.raises(TypeError, match=name):
            convert()
    assert x.view(rl.uint8).numpy().shape == (2,)


@each_format
def test_dlpack(name: str) -> None:
    x = all_codes(name)
    y = rl.from_dlpack(x)
    assert (y.dtype, y.data_ptr()) == (x.dtype, x.data_ptr())


@each_format
def test_pickles_and_deep_copies(name: str) -> None:
    dtype = getattr(rl, name)
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    x = all_codes(name)[3:77:2]
    for made in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert made.dtype is dtype
        np.testing.assert_array_equal(codes(made), codes(x))


def test_strict_mode() -> None:
    with rl.strict():
        assert (rl.ones(2, dtype=rl.float8_e5m2) == 1).all()
