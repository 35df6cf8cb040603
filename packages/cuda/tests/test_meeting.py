"""Reads, writes and sums by index tensors on the plug-in, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch
import rushlight_core as core
from rushlight.nn import functional

pytestmark = pytest.mark.usefixtures("driver")

FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = ["bool", "uint8", "int16", "int64", "uint32", *FLOATS, "complex64"]
LAYOUTS = {
    "dense": lambda x: x,
    "transposed": lambda x: x.transpose(0, -1).contiguous().transpose(0, -1),
    "every second": lambda x: torch.stack([x, x], -1)[..., 0],
}


def example(dtype: str, *shape: int) -> torch.Tensor:
    n = torch.Size(shape).numel()
    x = (torch.arange(n) * 7 % 23).reshape(shape)
    kind = getattr(torch, dtype)
    return ((x - 11) / 7).to(kind) if kind.is_floating_point or kind.is_complex else x.to(kind)


def numbers(below: int, *shape: int) -> torch.Tensor:
    n = torch.Size(shape).numel()
    return (torch.arange(n) * 5 % 7 % below).reshape(shape)


def same(device: torch.Tensor, host: torch.Tensor) -> None:
    assert device.device.type == "cuda"
    assert device.dtype == host.dtype
    torch.testing.assert_close(device.cpu(), host, rtol=0, atol=0, equal_nan=True)


def both(call, x: torch.Tensor) -> None:
    """Compare the result of `call(at, x)`, and x itself, on both devices. `at` moves a tensor to x's device."""
    device, host = x.cuda(), x.clone()
    made, wanted = call(lambda t: t.cuda(), device), call(lambda t: t, host)
    same(device, host)
    same(made, wanted)


@pytest.mark.parametrize("dim", range(3))
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_at_repeated_indices(dtype, layout, dim):
    with_layout = LAYOUTS[layout]
    x, src = example(dtype, 5, 6, 4), example(dtype, 7, 6, 4).flip(0)
    index = numbers(x.shape[dim], 4, 5, 3)
    both(lambda at, t: with_layout(t).scatter_add(dim, at(index), at(src)), x)
    both(lambda at, t: t.scatter_add_(dim, at(with_layout(index)), at(with_layout(src))), x)
    index = numbers(x.shape[dim], 6)
    source = example(dtype, *(6 if d == dim else n for d, n in enumerate(x.shape)))
    both(lambda at, t: t.index_add_(dim, at(index), at(with_layout(source))), x)
    both(
        lambda at, t: with_layout(t).index_add(dim, at(index.int()), at(source), alpha=dtype == "bool" or 2),
        x,
    )
    both(lambda at, t: t.index_copy_(dim, at(index), at(with_layout(source))), x)
    slices = index.reshape([6 if d == dim else 1 for d in range(3)]).expand(source.shape)
    both(lambda at, t: t.scatter_add_(dim, at(slices), at(source)), x)


@pytest.mark.parametrize(
    "index", [numbers(5, 9, 6), numbers(5, 9, 1).expand(9, 6)], ids=["elements", "slices"]
)
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_of_what_meets(dtype, reduce, include_self, index):
    if (dtype == "bool" and reduce == "mean") or (dtype == "complex64" and reduce in ("amax", "amin")):
        pytest.skip("not defined")
    x, src = example(dtype, 5, 6), example(dtype, 9, 6)
    if dtype in FLOATS:
        src[3, 2] = float("nan")
    both(lambda at, t: t.scatter_reduce_(0, at(index), at(src), reduce, include_self=include_self), x)
    both(
        lambda at, t: t.t().scatter_reduce(1, at(index.t()), at(src.t()), reduce, include_self=include_self),
        x,
    )
    if reduce != "sum":
        both(
            lambda at, t: t.index_reduce_(0, at(numbers(5, 9)), at(src), reduce, include_self=include_self), x
        )


INDICES = {
    "first": lambda at: (at(torch.tensor([2, -1, 2, 0])),),
    "second": lambda at: (slice(None), at(torch.tensor([[1, 1], [-2, 0]]))),
    "two": lambda at: (at(torch.tensor([0, 1, 0])), at(torch.tensor([[3], [3]]))),
    "apart": lambda at: (at(torch.tensor([1, 0, 1])), slice(None), at(torch.tensor([2, 2, 2]))),
    "all": lambda at: (at(torch.tensor([1, 1])), at(torch.tensor([0, 0])), at(torch.tensor([-1, -1]))),
    "narrow": lambda at: (at(torch.tensor([1, 0], dtype=torch.int32)),),
    "numbers of no dimensions": lambda at: (at(torch.tensor(1)), slice(None), at(torch.tensor(2))),
    "none": lambda at: (at(torch.zeros(0, dtype=torch.int64)),),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("which", INDICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reading_and_writing_by_indices(dtype, which, layout):
    with_layout, indices = LAYOUTS[layout], INDICES[which]
    x = example(dtype, 3, 4, 5)
    both(lambda at, t: with_layout(t)[indices(at)], x)
    shape = x[indices(lambda t: t)].shape
    values = example(dtype, *shape)
    given = [None if isinstance(i, slice) else i for i in indices(lambda t: t)]
    for value in (values, values[..., :1], values.flatten()[:1].reshape(()) if values.numel() else values):
        for accumulate in (False, True):

            def write(at, t, value=value, accumulate=accumulate):
                here = [None if i is None else at(i) for i in given]
                return with_layout(t).index_put(here, at(value), accumulate)

            both(write, x)
    both(
        lambda at, t: t.index_put_(
            [None if i is None else at(i) for i in given], at(values), accumulate=True
        ),
        x,
    )


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_the_flattened_tensor(dtype, layout, accumulate):
    with_layout, x, index = LAYOUTS[layout], example(dtype, 4, 5), torch.tensor([[3, -1], [3, 7]])
    both(lambda at, t: with_layout(t).take(at(index)), x)
    both(lambda at, t: with_layout(t).put(at(index), at(example(dtype, 2, 2)), accumulate), x)
    both(lambda at, t: t.t().put_(at(index), at(with_layout(example(dtype, 2, 2))), accumulate), x)


def test_values_may_be_what_is_written():
    x = torch.arange(6.0)
    index = torch.tensor([5, 4, 3, 2, 1, 0])
    both(lambda at, t: t.index_add_(0, at(index), t), x)
    both(lambda at, t: t.index_copy_(0, at(index), t), x)
    both(lambda at, t: t.scatter_add_(0, at(index), t), x)
    both(lambda at, t: t.index_put_([at(index)], t, accumulate=True), x)
    both(lambda at, t: t.put_(at(index), t), x)
    both(lambda at, t: t.index_add_(0, t, t), index)


def test_nothing_and_no_dimensions():
    nothing, one = torch.zeros(0, dtype=torch.int64), torch.tensor([0])
    both(lambda at, t: t.scatter_add_(0, at(nothing), at(torch.zeros(0))), torch.ones(3))
    both(lambda at, t: t.index_add_(0, at(nothing), at(torch.zeros(0))), torch.ones(3))
    both(lambda at, t: t.scatter_add_(0, at(one), at(torch.tensor([2.0]))), torch.tensor(1.0))
    both(lambda at, t: t.index_add_(0, at(one), at(torch.tensor(2.0))), torch.tensor(1.0))
    both(lambda at, t: t.index_copy_(0, at(one), at(torch.tensor(2.0))), torch.tensor(1.0))
    both(lambda at, t: t.index_add_(1, at(one), at(torch.zeros(0, 1))), torch.ones(0, 3))
    both(lambda at, t: t.take(at(one.reshape(1, 1))), torch.tensor(4.0))
    both(lambda at, t: t[at(nothing)], torch.ones(3, 2))
    both(lambda at, t: t[at(torch.tensor([0]))], torch.ones(3, 0))


BAD = {
    "index": lambda t, i: t[i],
    "index_put_": lambda t, i: t.index_put_([i], torch.tensor(1.0).cuda()),
    "accumulate": lambda t, i: t.index_put_([i], torch.tensor(1.0).cuda(), accumulate=True),
    "take": lambda t, i: t.take(i),
    "put_": lambda t, i: t.put_(i, torch.ones(2).cuda()),
    "scatter_add_": lambda t, i: t.scatter_add_(0, i, torch.ones(2).cuda()),
    "scatter_reduce_": lambda t, i: t.scatter_reduce_(0, i, torch.ones(2).cuda(), "amax"),
    "index_add_": lambda t, i: t.index_add_(0, i, torch.ones(2).cuda()),
    "index_copy_": lambda t, i: t.index_copy_(0, i, torch.ones(2).cuda()),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("bad", [4, -5, 1 << 40])
def test_an_index_out_of_range_writes_nothing(name, bad):
    x = torch.zeros(4).cuda()
    with pytest.raises(IndexError, match="range"):
        BAD[name](x, torch.tensor([bad, bad]).cuda())
        torch.cuda.synchronize()
    same(x, torch.zeros(4))
    same(x + 1, torch.ones(4))


@pytest.mark.parametrize("name", BAD)
def test_an_index_of_nothing_is_out_of_range(name):
    with pytest.raises(IndexError, match="range"):
        BAD[name](torch.zeros(0).cuda(), torch.tensor([0, 0]).cuda())


def test_an_index_is_looked_at_where_nothing_is_read():
    with pytest.raises(IndexError, match="range"):
        torch.ones(3, 0).cuda()[torch.tensor([7]).cuda()]
        torch.cuda.synchronize()


@pytest.mark.parametrize("n", [2047, 2048, 20_000])
def test_many_elements(n):
    index = torch.arange(n) * 7919 % n
    both(lambda at, t: t.scatter_add_(0, at(index), at(torch.arange(n))), torch.zeros(n, dtype=torch.int64))
    few = index % 3
    both(lambda at, t: t.index_add_(0, at(few), at(torch.arange(n) / 8)), torch.zeros(3))
    both(lambda at, t: t.index_copy_(0, at(few), at(torch.arange(n))), torch.zeros(3, dtype=torch.int64))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}])
def test_gradients_of_tables(options, dtype):
    kind = getattr(torch, dtype)
    seen = []
    for device in ("cpu", "cuda"):
        table = example(dtype, 6, 5).to(device).requires_grad_()
        index = torch.tensor([[1, 2, 2], [5, 1, 2], [1, 1, 4]]).to(device)
        y = functional.embedding(index, table, **options)
        y.backward(example(dtype, *y.shape).to(device))
        seen.append(table.grad)
    tolerance = {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 1e-6)
    torch.testing.assert_close(seen[1].cpu(), seen[0], rtol=tolerance, atol=tolerance)
    assert seen[1].dtype == kind


@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize("divisor", [1.0, 3.0])
@pytest.mark.parametrize("dtype", FLOATS)
def test_bags(dtype, divisor, padding):
    table, index = example(dtype, 6, 5), torch.tensor([1, 2, 2, 5, 1, 2, 1, 2])
    bags = torch.tensor([0, 0, 0, 2, 4, 4, 4, 5])
    both(lambda at, t: core._embedding_bag(t, at(index), at(bags), 7, divisor, padding, False), table)
    both(lambda at, t: core._embedding_bag(t, at(index[:0]), at(bags[:0]), 2, divisor, -1, False), table)
    both(
        lambda at, t: core._embedding_bag(t.t(), at(index.int() % 5), at(bags), 7, divisor, -1, False), table
    )


BAGS = [([0, 3], [0, 0], IndexError), ([0, 1], [0, 2], IndexError), ([0, 1], [1, 0], RuntimeError)]


@pytest.mark.parametrize(("index", "bags", "error"), BAGS)
def test_bad_rows_and_bags(index, bags, error):
    table = torch.ones(3, 2).cuda()
    with pytest.raises(error, match=r"range|ascending"):
        core._embedding_bag(table, torch.tensor(index).cuda(), torch.tensor(bags).cuda(), 2, 1.0, -1, False)
        torch.cuda.synchronize()
    same(table + 1, torch.full((3, 2), 2.0))


def test_sums_are_the_same_in_every_run():
    index = (torch.arange(5000) * 7919 % 5000 % 7).cuda()
    values = (torch.arange(5000) * 37 % 101 / 7).cuda()
    first = torch.zeros(7).cuda().index_add_(0, index, values)
    same(torch.zeros(7).cuda().index_add_(0, index, values), first.cpu())
    torch.use_deterministic_algorithms(True)
    try:
        same(torch.zeros(7).cuda().index_put_([index], values, accumulate=True), first.cpu())
    finally:
        torch.use_deterministic_algorithms(False)
