"""Pointwise operators, reductions, indexing, products and views of random shapes and dtypes, compared with NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rushlight_core as core

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns about empty slices

# Every run uses the same examples.
bounded = settings(max_examples=150, deadline=None, derandomize=True, database=None)
few = settings(bounded, max_examples=60)

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *INTEGERS, *FLOATS)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


# --- pairs of a tensor and an array with the same elements and strides ---

Pair = tuple[Any, np.ndarray]


def values(draw: st.DrawFn, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return an array of small numbers, so that nothing overflows and sums are nearly exact."""
    source = np.random.default_rng(draw(st.integers(0, 2**16)))
    if dtype == "bool":
        return source.random(shape) < 0.5
    low = 0 if dtype.startswith("uint") else -6
    if dtype in INTEGERS:
        return source.integers(low, 7, shape).astype(dtype)
    made = source.integers(low, 7, shape) / 4
    return (made + 1j * source.integers(-6, 7, shape) / 4 if dtype in COMPLEX else made).astype(dtype)


@st.composite
def pairs(draw: st.DrawFn, shapes: Any = SHAPES, dtypes: Any = DTYPES) -> Pair:
    """Return a tensor and an equal array: dense, transposed, sliced, with an offset, or broadcast."""
    shape = draw(shapes)
    dtype = draw(st.sampled_from(dtypes))
    n = len(shape)
    order = draw(st.permutations(range(n)))
    steps = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    starts = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    repeated = draw(st.lists(st.booleans(), min_size=n, max_size=n)) if draw(st.booleans()) else [False] * n
    # The shape in memory: dimensions in another order, with gaps and preceding elements, or of size 1 to be broadcast.
    memory = [1 if repeated[d] else starts[d] + steps[d] * shape[d] for d in order]
    array = values(draw, tuple(memory), dtype)
    back = [order.index(d) for d in range(n)]
    cut = tuple(slice(None) if repeated[d] else slice(starts[d], None, steps[d]) for d in range(n))
    t = core.from_numpy(array.copy()) if array.ndim else core.tensor(array.item(), dtype=getattr(core, dtype))
    t = t.permute(back)[cut].expand(shape) if n else t
    a = np.broadcast_to(array.transpose(back)[cut], shape)
    assert tuple(t.shape) == a.shape == tuple(shape)
    return t, a


def same(got: Any, wanted: Any, coarse: float = 1e-5) -> None:
    wanted = np.asarray(wanted)
    assert tuple(got.shape) == wanted.shape
    np.testing.assert_allclose(got.numpy(), wanted, rtol=coarse, atol=coarse)


def dtype_name(t: Any) -> str:
    return str(t.dtype).rsplit(".", 1)[-1]


def outcome(call: Callable[[], Any], *errors: type[Exception]) -> Any:
    """Return the result of a call, or None if it raises one of `errors`."""
    try:
        return call()
    except errors:
        return None


# --- pointwise ---

TWO: dict[str, tuple[Callable[..., Any], str]] = {
    "add": (np.add, "all"),
    "sub": (np.subtract, "numbers"),
    "mul": (np.multiply, "all"),
    "maximum": (np.maximum, "all"),
    "minimum": (np.minimum, "all"),
    "eq": (np.equal, "all"),
    "lt": (np.less, "all"),
    "logical_xor": (np.logical_xor, "all"),
    "bitwise_and": (np.bitwise_and, "integers"),
    "bitwise_xor": (np.bitwise_xor, "integers"),
    "atan2": (np.arctan2, "floats"),
    "hypot": (np.hypot, "floats"),
}
OF = {"all": DTYPES, "numbers": (*INTEGERS, *FLOATS), "integers": ("bool", *INTEGERS), "floats": FLOATS}


@st.composite
def operands(draw: st.DrawFn, count: int, dtypes: Any) -> list[Pair]:
    """Return several pairs whose shapes broadcast."""
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=4, min_side=0, max_side=4))
    return [draw(pairs(st.just(shape), dtypes)) for shape in shapes.input_shapes]


@pytest.mark.parametrize("name", TWO)
@few
@given(st.data())
def test_two_operands(name: str, data: st.DataObject) -> None:
    reference, domain = TWO[name]
    (t, a), (u, b) = data.draw(operands(2, OF[domain]))
    common = str(core.result_type(t, u)).rsplit(".", 1)[-1]
    with np.errstate(all="ignore"):
        same(getattr(core, name)(t, u), reference(a.astype(common), b.astype(common)))


@bounded
@given(operands(3, DTYPES))
def test_where(given_: list[Pair]) -> None:
    (c, condition), (t, a), (u, b) = given_
    common = str(core.result_type(t, u)).rsplit(".", 1)[-1]
    same(core.where(c != 0, t, u), np.where(condition != 0, a.astype(common), b.astype(common)))


ONE: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "exp": np.exp,
    "floor": np.floor,
    "isfinite": np.isfinite,
    "logical_not": np.logical_not,
    "sign": np.sign,
    "square": np.square,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("name", ONE)
@few
@given(pairs(dtypes=(*FLOATS, "int32")))
def test_one_operand(name: str, pair: Pair) -> None:
    t, a = pair
    if name in ("exp", "tanh") and a.dtype.kind == "i":
        a = a.astype("float32")
    same(getattr(core, name)(t), ONE[name](a))


@bounded
@given(pairs(dtypes=COMPLEX), st.sampled_from(["conj", "real", "imag", "abs", "exp", "square"]))
def test_complex(pair: Pair, name: str) -> None:
    t, a = pair
    same(getattr(core, name)(t), getattr(np, name)(a))


@bounded
@given(st.data())
def test_in_place_on_a_part(data: st.DataObject) -> None:
    """x[i:] += x[j:] reads the former elements, even if both slices overlap."""
    n = data.draw(st.integers(1, 9))
    step, first, second = (data.draw(st.integers(1, 2)), *(data.draw(st.integers(0, 4)) for _ in range(2)))
    array = values(data.draw, (n * step + 4, 2), data.draw(st.sampled_from(("int64", "float32", "uint8"))))
    t = core.from_numpy(array.copy())
    to, source = slice(first, first + n * step, step), slice(second, second + n * step, step)
    wanted = array.copy()
    wanted[to] += array[source].copy()
    t[to] += t[source]
    same(t, wanted)
    wanted[to] = wanted[source][::-1].copy()
    t[to].copy_(t[source].flip(0))
    same(t, wanted)


# --- reductions ---

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "amax": np.amax,
    "amin": np.amin,
    "any": np.any,
    "all": np.all,
    "count_nonzero": np.count_nonzero,
    "logsumexp": lambda a, axis, keepdims: np.log(np.sum(np.exp(a), axis=axis, keepdims=keepdims)),
    "var": lambda a, axis, keepdims: np.var(a, axis=axis, keepdims=keepdims, ddof=1),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@few
@given(st.data())
def test_reductions(name: str, data: st.DataObject) -> None:
    t, a = data.draw(pairs(dtypes=FLOATS if name in ("mean", "logsumexp", "var") else DTYPES))
    dims = data.draw(
        st.lists(st.integers(0, max(a.ndim - 1, 0)), unique=True, min_size=1, max_size=max(a.ndim, 1))
    )
    if not a.ndim:
        return
    keepdim = data.draw(st.booleans())
    options = {} if name == "count_nonzero" else {"keepdim": keepdim}
    given_dims = [d - a.ndim if data.draw(st.booleans()) else d for d in dims]
    with np.errstate(all="ignore"):
        wanted = outcome(
            lambda: REDUCTIONS[name](a, axis=tuple(dims), keepdims=keepdim and bool(options)), ValueError
        )
    got = outcome(lambda: getattr(core, name)(t, given_dims, **options), IndexError, RuntimeError)
    if wanted is None or got is None:
        assert wanted is got is None or (name == "any" and got is not None), "one of both raised"
        return
    same(got, wanted, 1e-4)


@few
@given(st.data())
def test_running_sums_and_order(data: st.DataObject) -> None:
    t, a = data.draw(
        pairs(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5), (*FLOATS, "int32", "uint8"))
    )
    d = data.draw(st.integers(-a.ndim, a.ndim - 1))
    same(t.cumsum(d), np.cumsum(a, d))
    sorted_, indices = t.sort(d, stable=True)
    same(sorted_, np.sort(a, d, kind="stable"))
    same(indices, np.argsort(a, d, kind="stable"))
    if a.shape[d]:
        same(t.argmax(d), np.argmax(a, d))
        same(t.flip(d).roll(1, d), np.roll(np.flip(a, d), 1, d))
    same(t.diff(dim=d), np.diff(a, axis=d)) if a.dtype.kind != "u" else None


# --- products ---


@bounded
@given(st.data())
def test_matmul(data: st.DataObject) -> None:
    shapes = data.draw(
        hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=2, min_side=0, max_side=4)
    )
    dtype = data.draw(st.sampled_from([*FLOATS, "int64", "complex64"]))
    (t, a), (u, b) = (data.draw(pairs(st.just(shape), (dtype,))) for shape in shapes.input_shapes)
    same(t @ u, a @ b)


@few
@given(st.data())
def test_einsum(data: st.DataObject) -> None:
    sizes = {letter: data.draw(st.integers(0, 3)) for letter in "abcd"}
    terms = [
        data.draw(st.text("abcd", min_size=0, max_size=3).filter(lambda s: len(set(s)) == len(s)))
        for _ in "12"
    ]
    letters = sorted(set("".join(terms)))
    result = (
        "".join(data.draw(st.permutations(data.draw(st.lists(st.sampled_from(letters), unique=True)))))
        if letters
        else ""
    )
    equation = f"{','.join(terms)}->{result}"
    made = [data.draw(pairs(st.just(tuple(sizes[x] for x in term)), ("float64",))) for term in terms]
    same(core.einsum(equation, *(t for t, _ in made)), np.einsum(equation, *(a for _, a in made)))


# --- indices ---


@st.composite
def expressions(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return an index for a tensor and the same index for an array. Some indices are out of range."""
    ours: list[Any] = []
    theirs: list[Any] = []
    together = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    dims = list(shape)
    dots = False
    while dims and draw(st.booleans()):
        kind = draw(st.sampled_from(["int", "slice", "array", "mask", "none", "dots"]))
        n = dims[0]
        if kind == "dots":
            if dots:
                continue
            dots = True
            ours.append(...)
            theirs.append(...)
            for _ in range(draw(st.integers(0, len(dims)))):
                dims.pop(0)
        elif kind == "none":
            ours.append(None)
            theirs.append(None)
        elif kind == "int":
            i = draw(st.integers(-n - 1, n))
            ours.append(i)
            theirs.append(i)
            dims.pop(0)
        elif kind == "slice":
            ends = st.none() | st.integers(-n - 2, n + 2)
            s = slice(draw(ends), draw(ends), draw(st.none() | st.integers(1, 3)))
            ours.append(s)
            theirs.append(s)
            dims.pop(0)
        elif kind == "array":
            source = np.random.default_rng(draw(st.integers(0, 999)))
            array = source.integers(-n, n, together) if n else np.zeros(together, np.int64)
            ours.append(core.tensor(array.tolist(), dtype=core.int64).view(together))
            theirs.append(array)
            dims.pop(0)
        else:
            mask = np.random.default_rng(draw(st.integers(0, 999))).random(n) < 0.5
            if draw(st.booleans()) or together != (int(mask.sum()),):
                ours.append(core.tensor(mask.tolist(), dtype=core.bool))
                theirs.append(mask)
                dims.pop(0)
    return tuple(ours), tuple(theirs)


@settings(bounded, max_examples=250)
@given(st.data())
def test_indexing(data: st.DataObject) -> None:
    """Reading and writing by an index agree with NumPy."""
    t, a = data.draw(pairs(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)))
    ours, theirs = data.draw(expressions(a.shape))
    wanted = outcome(lambda: np.asarray(a[theirs]), IndexError)
    got = outcome(lambda: t[ours], IndexError)
    assert (wanted is None) == (got is None), f"{ours}: only one of both raised"
    if wanted is None:
        with pytest.raises(IndexError):
            t.clone()[ours] = 1
        return
    same(got, wanted)
    changed, target = a.copy(), t.clone()
    changed[theirs] = 1
    target[ours] = 1
    same(target, changed)


@few
@given(st.data())
def test_gather_and_scatter(data: st.DataObject) -> None:
    t, a = data.draw(
        pairs(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4), ("float64", "int32"))
    )
    d = data.draw(st.integers(-a.ndim, a.ndim - 1))
    shape = list(a.shape)
    shape[d] = data.draw(st.integers(0, 5))
    index = np.random.default_rng(data.draw(st.integers(0, 999))).integers(0, a.shape[d], shape)
    indices = core.from_numpy(index)
    same(t.gather(d, indices), np.take_along_axis(a, index, d))
    wanted = a.copy()
    grid = list(np.indices(index.shape, sparse=True))
    grid[d] = index
    np.add.at(wanted, tuple(grid), np.ones(index.shape, a.dtype))
    same(t.clone().scatter_add(d, indices, core.ones(shape, dtype=t.dtype)), wanted)
    rows = core.from_numpy(index.reshape(-1))
    same(t.index_select(d, rows), np.take(a, index.reshape(-1), d))


# --- views ---


def chain(draw: st.DrawFn, t: Any, a: np.ndarray) -> Pair:
    """Apply a few views, one after the other, to a tensor and an array."""
    for _ in range(draw(st.integers(1, 5))):
        n = a.ndim
        d = draw(st.integers(-n, n - 1)) if n else 0
        kind = draw(st.sampled_from(
            ["permute", "unsqueeze", "squeeze", "narrow", "select", "slice", "diagonal", "expand", "unfold", "view", "t"]
        ))  # fmt: skip
        if kind == "permute":
            order = draw(st.permutations(range(n)))
            t, a = t.permute(order), a.transpose(order)
        elif kind == "unsqueeze" and n < 6:
            at = draw(st.integers(-n - 1, n))
            t, a = t.unsqueeze(at), np.expand_dims(a, at)
        elif kind == "squeeze":
            t, a = t.squeeze(), a.squeeze()
        elif kind == "narrow" and n:
            start = draw(st.integers(0, a.shape[d]))
            length = draw(st.integers(0, a.shape[d] - start))
            t, a = t.narrow(d, start, length), a.swapaxes(0, d)[start : start + length].swapaxes(0, d)
        elif kind == "select" and n and a.shape[d]:
            i = draw(st.integers(-a.shape[d], a.shape[d] - 1))
            t, a = t.select(d, i), a.swapaxes(0, d)[i : i + 1 or None].swapaxes(0, d).squeeze(d)
        elif kind == "slice" and n:
            step = draw(st.integers(1, 3))
            t, a = t[::step], a[::step]
        elif kind == "diagonal" and n > 1:
            offset = draw(st.integers(-3, 3))
            t, a = t.diagonal(offset), a.diagonal(offset)
        elif kind == "expand" and math.prod(a.shape) < 200:
            shape = tuple(draw(st.integers(0, 3)) if size == 1 else size for size in a.shape)
            shape = (2, *shape) if draw(st.booleans()) and n < 6 else shape
            t, a = t.expand(shape), np.broadcast_to(a, shape)
        elif kind == "unfold" and n and a.shape[d]:
            size = draw(st.integers(1, a.shape[d]))
            step = draw(st.integers(1, 2))
            windows = np.lib.stride_tricks.sliding_window_view(a, size, d)
            t, a = t.unfold(d, size, step), windows.swapaxes(0, d % n)[::step].swapaxes(0, d % n)
        elif kind == "view":
            shape = (a.size,) if draw(st.booleans()) else (1, *a.shape, 1)[: n + 2]
            t, a = t.reshape(shape), a.reshape(shape)
        elif kind == "t" and n == 2:
            t, a = t.t(), a.T
    return t, a


@settings(bounded, max_examples=300)
@given(st.data())
def test_chains_of_views(data: st.DataObject) -> None:
    """Views have NumPy's elements, and kernels compute the same results for any strides."""
    t, a = chain(data.draw, *data.draw(pairs(dtypes=("int32", "float64"))))
    same(t, a)
    same(t.clone(), a)
    same(t.contiguous() * 2 + t, a * 3)
    same(t.sum(), a.sum())
    same(t.flatten(), a.reshape(-1))


@bounded
@given(st.data())
def test_writing_through_views(data: st.DataObject) -> None:
    """A write to a view changes only the base's elements in the view. Views with overlapping elements are refused."""
    array = values(
        data.draw, data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)), "int64"
    )
    base, copy = core.from_numpy(array.copy()), array.copy()
    positions = np.arange(array.size).reshape(array.shape)
    t, _ = chain(data.draw, base, copy) if False else (base, copy)
    seed = data.draw(st.integers(0, 2**16))

    def views(x: Any, order: Callable[..., Any], windows: Callable[..., Any]) -> Any:
        source = np.random.default_rng(seed)
        for _ in range(3):
            kind = source.integers(4)
            if kind == 0:
                x = order(x, list(source.permutation(x.ndim)))
            elif kind == 1 and x.ndim and x.shape[0]:
                x = x[int(source.integers(x.shape[0])) :]
            elif kind == 2 and x.ndim:
                x = x[:: int(source.integers(1, 3))]
            elif kind == 3 and x.ndim and x.shape[0] > 1:
                x = windows(x, 2, int(source.integers(1, 3)))
        return x

    def windows(x: Any, size: int, step: int) -> Any:
        return np.moveaxis(np.lib.stride_tricks.sliding_window_view(x, size, 0)[::step], -1, x.ndim)

    target = views(t, lambda x, p: x.permute(p), lambda x, size, step: x.unfold(0, size, step))
    touched = views(positions, np.transpose, windows).reshape(-1)
    if len(set(touched.tolist())) < len(touched):
        before = base.clone()
        with pytest.raises(RuntimeError, match="share one memory location"):
            target.add_(5)
        same(base, before.numpy())
        return
    target.add_(5)
    copy.reshape(-1)[touched] += 5
    same(base, copy)
