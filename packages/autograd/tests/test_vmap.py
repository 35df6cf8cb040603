"""Compare vmap of every operator with a loop over the examples, and test the interface of vmap."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, NamedTuple

import pytest
from vmap_samples import CASES, HIDDEN, OPS, Call, calls, of_size_one, variants

import rushlight_core as core
from rushlight_autograd.batching import debug_unwrap, slow_path_taken, vmap, warn_of_slow_path
from rushlight_autograd.transforms import grad, jvp, vjp
from rushlight_autograd.tree import flatten
from rushlight_core import Tensor, pytree
from rushlight_core.codegen.model import Op

# Operators that are computed example by example, always or for some arguments. vmap of these operators is slow, so
# docs/function-transforms.md lists them.
SLOW = {
    *(
        "_embedding_bag",
        "_sampled_products",
        "bucketize",
        "bucketize.number",
        "ctc_loss",
        "embedding",
        "histc",
        "index_fill_",
        "isin",
        "istft",
    ),
    *(
        "linalg_tensorinv",
        "linalg_tensorsolve",
        "masked_scatter_",
        "nonzero_static",
        "put_",
        "searchsorted.number",
    ),
}
# Operators whose result has a shape that depends on values.
SHAPELESS = {"argwhere", "bincount", "masked_select", "nonzero", "nonzero.as_tuple", "where.indices"}
SHAPELESS |= {"repeat_interleave.tensor", "repeat_interleave.repeats"}
# Operators that vmap accepts although a single example raises an error. The result is the operator's result for a
# broadcast tensor.
LENIENT = {
    # Weights and biases without dimensions are broadcast to the channels.
    *(
        "convolution",
        "conv1d",
        "conv1d.padding",
        "conv_transpose1d",
        "conv2d",
        "conv2d.padding",
        "conv_transpose2d",
    ),
    *("conv3d", "conv3d.padding", "conv_transpose3d", "linear", "gru_cell", "gru"),
    *("batch_norm", "layer_norm", "rms_norm", "group_norm"),
    *("native_batch_norm", "native_layer_norm", "native_group_norm"),
    # The addend is broadcast with all examples.
    *("addbmm", "addmm", "baddbmm"),
    # A missing dimension is treated as a dimension of size 1.
    *("fill_.tensor", "fill.tensor", "nll_loss", "cross_entropy_loss", "linalg_lu_solve", "linalg_ldl_solve"),
    *("linalg_solve_triangular", "put", "searchsorted", "_resample", "expand"),
    # The memory format of one example is ignored.
    "contiguous",
}
# Operators whose dtypes vmap promotes although a single example with two dtypes raises an error.
PROMOTED = {"heaviside", "isclose", "scaled_dot_product_attention", "lstm_cell", "lstm"}
# Results that are the same for all examples.
CONSTANTS: set[str] = set()
ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)
ROWS = 3


def _tolerance(dtype: Any) -> dict[str, float]:
    if dtype in (core.float64, core.complex128):
        return {"rtol": 1e-7, "atol": 1e-9}
    return {"rtol": 2e-3, "atol": 1e-4}


def _assert_same(got: list[Tensor], want: list[Tensor], where: str) -> None:
    assert len(got) == len(want), where
    for a, b in zip(got, want, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), where
        wide = core.complex128 if a.dtype.is_complex else core.float64
        close = core.allclose(a.to(wide), b.to(wide), equal_nan=True, **_tolerance(a.dtype))
        assert close, f"{where}:\n{a}\n{b}"


class Batch(NamedTuple):
    """Tensors of a call, some with a row for each example, and the results of a loop over the examples."""

    rows: list[list[Tensor] | None]
    want: list[Tensor]


def _by_loop(call: Call, which: set[int]) -> Batch | None:
    """Run a loop over the examples. Return None if the operator raises an error or returns no tensors."""
    rows = [variants(x, ROWS) if i in which else None for i, x in enumerate(call.tensors)]
    results = []
    for b in range(ROWS):
        given = [x if r is None else r[b] for x, r in zip(call.tensors, rows, strict=True)]
        try:
            results.append(flatten(call.function(*given))[0])
        except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
            return None
    if not all(isinstance(y, Tensor) for y in results[0]):
        return None
    try:
        return Batch(rows, [core.stack(list(column)) for column in zip(*results, strict=True)])
    except (RuntimeError, ValueError):
        return None  # the shapes depend on values


def _batched(call: Call, batch: Batch, dim: int) -> list[Tensor]:
    given = [x if r is None else core.stack(r, dim) for x, r in zip(call.tensors, batch.rows, strict=True)]
    dims = tuple(None if r is None else dim for r in batch.rows)
    return flatten(vmap(call.function, dims)(*given))[0]


@pytest.mark.parametrize(("op", "text"), CASES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_operator(op, text) -> None:
    """Batch all tensors along the first and the last dimension, each tensor alone, and in two nested levels."""
    slow_path_taken(True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls(op, text):
            count = len(call.tensors)
            for which in [set(range(count)), *({i} for i in range(count) if count > 1)]:
                batch = _by_loop(call, which) if count else None
                if batch is None:
                    continue
                where = f"{op.name}({text}), batched {sorted(which)}"
                try:
                    got = _batched(call, batch, 0)
                except RuntimeError as error:
                    if not _may_refuse(op, which, count, str(error)):
                        raise
                    continue
                _assert_same(got, batch.want, where)
                if op.name != "as_strided":  # as_strided depends on the strides
                    _assert_same(_batched(call, batch, -1), batch.want, f"{where}, at the end")
                if which == set(range(count)):
                    _nested(call, batch, where)
    taken = set(slow_path_taken(True))
    # The slow path is allowed for tensors without dimensions, and for one sample whose target has a dimension.
    rare = text.startswith(("t(), ", "t(3), t(1, "))
    slow = SLOW | {"index_add_", "index_select", "masked_select", "nll_loss"} if rare else SLOW
    assert taken <= slow, f"{op.name} takes the slow path through {sorted(taken - slow)}"


@pytest.mark.parametrize("op", [*OPS, *HIDDEN], ids=lambda op: op.name)
def test_results_of_batched_tensors_are_batched(op: Op) -> None:
    """This applies even if the results do not depend on the values, because each example may write to its result.

    It also applies to the operators that formulas call, and to dimensions of size 1.
    """
    unbatched = []
    for sample in op.samples:
        for call in [c for one in calls(op, sample.text) for c in (one, of_size_one(one))]:

            def observed(*given: Tensor, call: Call = call, text: str = sample.text) -> Any:
                results = call.function(*given)
                tensors = [t for t in flatten(results)[0] if isinstance(t, Tensor)]
                unbatched.extend(text for t in tensors if debug_unwrap(t, recurse=False) is t)
                return results

            with warnings.catch_warnings(), contextlib.suppress(*ERRORS):
                warnings.simplefilter("ignore")
                vmap(observed)(*(core.stack([x, x]) for x in call.tensors))
    assert bool(unbatched) == (op.name in CONSTANTS), f"{op.name}: {unbatched}"


def _with_one_of(tensors: list[Tensor], position: int) -> list[Tensor]:
    """Return the tensors with one of them converted from float64 to float32."""
    return [
        x.float() if i == position and x.dtype == core.float64 else x.clone() for i, x in enumerate(tensors)
    ]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_dtypes_that_one_example_refuses(op: Op) -> None:
    """An addition inside a rule must not promote dtypes for which the operator itself raises an error."""
    taken = []
    for sample in op.samples:
        for call in calls(op, sample.text):
            for position in range(len(call.tensors) if len(call.tensors) > 1 else 0):
                mixed = _with_one_of(call.tensors, position)
                try:
                    call.function(*mixed)
                except ERRORS as error:
                    if "dtype" not in str(error):
                        continue
                else:
                    continue
                with warnings.catch_warnings(), contextlib.suppress(*ERRORS):
                    warnings.simplefilter("ignore")
                    vmap(call.function)(*(core.stack([x, x]) for x in mixed))
                    taken.append((sample.text, position))
    assert bool(taken) == (op.name in PROMOTED), taken


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_shapes_that_one_example_refuses(op: Op) -> None:
    """Make one dimension of a tensor longer by one. A rule must not ignore the surplus if the operator raises an error."""
    taken = []
    for sample in op.samples:
        for call in calls(op, sample.text):
            for position, dim in [(i, d) for i, x in enumerate(call.tensors) for d in range(x.dim())]:
                x = call.tensors[position]
                longer = [*call.tensors]
                longer[position] = core.cat([x, x.narrow(dim, 0, 1)], dim) if x.size(dim) else x
                with warnings.catch_warnings(), contextlib.suppress(*ERRORS):
                    warnings.simplefilter("ignore")
                    try:
                        call.function(*(y.clone() for y in longer))
                    except ERRORS:
                        vmap(call.function)(*(core.stack([y, y]) for y in longer))
                        taken.append((sample.text, position, dim))
    assert not taken


VIEWS = [op for op in OPS if op.kind == "view" or op.view == "always"]


@pytest.mark.parametrize("op", VIEWS, ids=lambda op: op.name)
def test_a_write_to_a_view_of_a_part_is_seen(op: Op) -> None:
    """A write to a view changes the tensor, also if the parts of the examples are not adjacent in memory."""
    for sample in op.samples:
        for call in calls(op, sample.text):
            if len(call.tensors) != 1 or call.tensors[0].dim() == 0:
                continue
            x = call.tensors[0]

            def written(base: Tensor, call: Call = call, n: int = x.size(0)) -> Tensor:
                views = flatten(call.function(base.narrow(0, base.size(0) - n, n)))[0]
                views[0].fill_(0)
                return base

            base = core.cat([x, x], 0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    want = written(base.clone())
                except ERRORS:
                    continue
                got = vmap(written)(core.stack([base, base]))
            assert core.equal(got, core.stack([want, want])), sample.text


@pytest.mark.parametrize("op", VIEWS, ids=lambda op: op.name)
def test_a_write_to_a_view_is_seen_whatever_the_stride_of_size_one(op: Op) -> None:
    """The stride of a dimension of size 1 has no effect, so the view must not be a copy."""
    for sample in op.samples:
        for call in calls(op, sample.text):
            if len(call.tensors) != 1 or call.tensors[0].dim() == 0:
                continue
            x = call.tensors[0]

            def written(base: Tensor, call: Call = call) -> Tensor:
                flatten(call.function(base))[0][0].fill_(0)
                return base

            for dim in range(x.dim()):
                one = x.narrow(dim, 0, 1) if x.size(dim) else x
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        want = written(_with_unit_strides(one.clone()))
                    except ERRORS:
                        continue
                    got = vmap(written)(_with_unit_strides(core.stack([one, one])))
                assert core.equal(got, core.stack([want, want])), sample.text


def _with_unit_strides(x: Tensor) -> Tensor:
    """Return a view with stride 1 in the dimensions of size 1."""
    return x.as_strided(x.shape, [1 if n == 1 else s for n, s in zip(x.shape, x.stride(), strict=True)])


def _may_refuse(op: Op, which: set[int], count: int, text: str) -> bool:
    """Return whether an error is expected: the shape depends on values, or all examples write to one tensor."""
    if op.name in SHAPELESS:
        return "depends on values" in text
    writes = op.name == "batch_norm" or (op.base.endswith("_") and which != set(range(count)))
    return writes and "inside vmap" in text


def _nested(call: Call, batch: Batch, where: str) -> None:
    """Check two levels, of which the outer batches some tensors and the inner batches the others."""
    rows = [core.stack(r) for r in batch.rows if r is not None]
    outer = [0 if i % 2 == 0 else None for i in range(len(rows))]
    inner = [None if d == 0 else 0 for d in outer]
    if None not in outer:  # a single tensor is batched in both levels
        twice = core.stack([rows[0], rows[0]])
        got = flatten(vmap(vmap(call.function))(twice))[0]
        _assert_same([g[1] for g in got], batch.want, f"{where}, nested")
        return
    try:
        want = [
            [
                flatten(call.function(*(x[a] if d == 0 else x[b] for x, d in zip(rows, outer, strict=True))))[
                    0
                ]
                for b in range(ROWS)
            ]
            for a in range(ROWS)
        ]
    except (RuntimeError, ValueError, IndexError):
        return
    try:
        got = flatten(vmap(vmap(call.function, tuple(inner)), tuple(outer))(*rows))[0]
    except RuntimeError as error:
        if not ("inside vmap" in str(error) or "depends on values" in str(error)):
            raise
        return
    stacked = [
        core.stack([core.stack([want[a][b][k] for b in range(ROWS)]) for a in range(ROWS)])
        for k in range(len(want[0][0]))
    ]
    _assert_same(got, stacked, f"{where}, nested")


# --- the interface of vmap ---

X = core.arange(12.0).view(4, 3) / 7


def _other_ranks(x: Tensor) -> list[Tensor]:
    """Return the tensor without dimensions, with one dimension fewer, and with one dimension more."""
    made = [x.unsqueeze(0)]
    if x.dim() and x.numel():
        made += [x.reshape(-1)[0], x[0]]
    return made


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_wrong_ranks_raise(op: Op) -> None:
    """If an operator raises an error for an example, it raises an error for a batch, whichever tensors are batched."""
    accepted = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in op.samples[:4]:
            for call in calls(op, sample.text):
                accepted += _accepted_ranks(call)
    if op.name not in LENIENT:
        assert not accepted


def _accepted_ranks(call: Call) -> list[str]:
    """Return the wrong ranks for which a single example raises an error and vmap does not."""
    accepted, positions = [], range(len(call.tensors))
    wrong = [
        ([*call.tensors[:i], other, *call.tensors[i + 1 :]], [set(positions), {i}])
        for i, x in enumerate(call.tensors)
        for other in _other_ranks(x)
    ]
    # Remove a dimension of all tensors, so that their shapes fit each other.
    if all(x.dim() and x.numel() for x in call.tensors):
        wrong.append(([x[0] for x in call.tensors], [set(positions), *({i} for i in positions)]))
    for given, ways in wrong:
        try:
            call.function(*given)
        except ERRORS:
            pass
        else:
            continue
        for which in ways:
            dims = tuple(0 if k in which else None for k in positions)
            rows = [core.stack([y, y]) if k in which else y for k, y in enumerate(given)]
            try:
                vmap(call.function, dims)(*rows)
            except ERRORS:
                continue
            accepted.append(f"shapes {[tuple(x.shape) for x in given]}, batched {sorted(which)}")
    return accepted


def _with_other_values(x: Tensor) -> list[Tensor]:
    """Return copies of the tensor whose last element is a value that operators may refuse."""
    if not x.numel() or x.dtype == core.bool:
        return []
    values = [-1, 0, 40] if not x.dtype.is_floating_point else [-1.0, 0.0, 1.5, float("nan"), float("inf")]
    copies = []
    for value in values:
        if value < 0 and not x.dtype.is_signed:
            continue
        copies.append(x.clone())
        copies[-1][(-1,) * x.dim()] = value
    return copies


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_wrong_values_raise(op: Op) -> None:
    """If an operator raises an error for the elements of the last example, it raises an error for the batch."""
    accepted = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in op.samples[:4]:
            for call in calls(op, sample.text):
                accepted += _accepted_values(call)
    assert not accepted


def _accepted_values(call: Call) -> list[str]:
    """Return the values for which a single example raises an error and vmap does not."""
    accepted, positions = [], range(len(call.tensors))
    for i, x in enumerate(call.tensors):
        for other in _with_other_values(x):
            given = [*call.tensors[:i], other, *call.tensors[i + 1 :]]
            try:
                call.function(*given)
            except ERRORS as error:
                text = str(error)
            else:
                continue
            for which in (set(positions), {i}):
                dims = tuple(0 if k in which else None for k in positions)
                rows = [
                    core.stack([good, bad]) if k in which else bad
                    for k, (good, bad) in enumerate(zip(call.tensors, given, strict=True))
                ]
                try:
                    vmap(call.function, dims)(*rows)
                except ERRORS:
                    continue
                accepted.append(
                    f"argument {i} ends with {other.flatten()[-1]}, batched {sorted(which)}: {text}"
                )
    return accepted


def test_an_index_of_another_examples_table_raises() -> None:
    tables, indices = core.arange(12.0).reshape(2, 3, 2), core.tensor([[3], [0]])
    with pytest.raises(IndexError, match="out of range"):
        vmap(lambda table, index: core.embedding(table, index))(tables, indices)


def test_residuals_of_examples_without_full_rank() -> None:
    """The residuals are empty if one of the examples does not have full rank, as for a batch of matrices."""
    full, deficient = core.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]), core.ones(3, 2)
    b = core.arange(6.0).view(2, 3, 1)
    for matrices in (core.stack([full, full]), core.stack([full, deficient])):
        got = vmap(lambda A, B: core.linalg.lstsq(A, B).residuals)(matrices, b)
        want = core.linalg.lstsq(matrices, b).residuals
        assert got.numel() == want.numel()
        if want.numel():
            assert core.allclose(got, want)


def test_where_examples_lie() -> None:
    weights = core.tensor([1.0, 2.0, 3.0])
    assert vmap(core.dot, (0, None))(X, weights).tolist() == pytest.approx((X @ weights).tolist())
    assert vmap(core.dot, (1, None))(X.t(), weights).tolist() == pytest.approx((X @ weights).tolist())
    assert vmap(lambda x: x * 2, out_dims=1)(X).tolist() == (X.t() * 2).tolist()
    assert vmap(lambda x: x * 2, out_dims=-1)(X).tolist() == (X.t() * 2).tolist()
    pair = vmap(lambda x: (x, {"sum": x.sum()}), out_dims=(1, 0))(X)
    assert pair[0].shape == (3, 4)
    assert pair[1]["sum"].tolist() == pytest.approx(X.sum(1).tolist())
    assert vmap(lambda x: weights, out_dims=None)(X) is weights
    assert vmap(lambda x: (x, "name"), out_dims=(0, None))(X)[1] == "name"
    assert vmap(lambda x, k: x * k)(X, 2).tolist() == (X * 2).tolist()
    assert vmap(lambda x: weights)(X).tolist() == [[1, 2, 3]] * 4


def test_containers_and_keywords() -> None:
    def f(state, k, *, shift):
        return state["a"] * k + state["b"][0] + shift

    got = vmap(f, ({"a": 0, "b": None}, None))({"a": X, "b": [core.ones(3)]}, 2, shift=X)
    assert core.allclose(got, X * 3 + 1)
    got = vmap(lambda pair: pair[0] + pair[1], ((0, None),))((X, core.ones(3)))
    assert got.tolist() == (X + 1).tolist()


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_chunks(chunk: int) -> None:
    f = vmap(lambda x: (x.sum(), x, x), out_dims=(0, 1, -1), chunk_size=chunk)
    total, rows, last = f(X)
    assert total.tolist() == pytest.approx(X.sum(1).tolist())
    assert rows.tolist() == last.tolist() == X.t().tolist()
    planes = vmap(lambda x: x, out_dims=-2, chunk_size=chunk)(core.arange(24).reshape(4, 3, 2))
    assert planes.tolist() == core.arange(24).reshape(4, 3, 2).transpose(0, 1).tolist()


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_random_numbers_of_chunks(chunk: int) -> None:
    """With randomness="same", all chunks have the same numbers; with "different", each example has different numbers."""

    def noise(x: core.Tensor) -> core.Tensor:
        return core.rand(3) + 0 * x

    core.manual_seed(0)
    same = vmap(noise, randomness="same", chunk_size=chunk)(X)
    core.manual_seed(0)
    assert same.tolist() == [core.rand(3).tolist()] * 4
    different = vmap(noise, randomness="different", chunk_size=chunk)(X)
    assert len({tuple(row) for row in different.tolist()}) == 4


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: vmap(lambda x: x, "0")(X), "in_dims must be an int or a tuple, got str"),
        (lambda: vmap(lambda x: x, (0, 0))(X), "nested like the positional arguments"),
        (lambda: vmap(lambda x: x, 2)(X), r"dimension 2 is out of range for an argument of shape \(4, 3\)"),
        (lambda: vmap(lambda x, y: x, (0, 0))(X, X[:3]), "must have the same size, got 4 and 3"),
        (lambda: vmap(lambda x, y: x, (0, 0))(X, 3), "an argument of type int"),
        (lambda: vmap(lambda x: x, (None,))(X), "no argument is a Tensor to be batched"),
        (lambda: vmap(lambda: X)(), "called without arguments"),
        (lambda: vmap(lambda x: 3.0)(X), "must return only Tensors, got float"),
        (lambda: vmap(lambda x: x, out_dims=(0, 0))(X), "out_dims must be nested like the result"),
        (
            lambda: vmap(lambda x: x, out_dims=3)(X),
            r"dimension 3 is out of range for a result whose examples have shape \(3,\)",
        ),
        (lambda: vmap(lambda x: x, out_dims="a")(X), "must hold ints and None"),
        (lambda: vmap(lambda x: x, out_dims=None)(X), "differs between the examples"),
        (lambda: vmap(lambda x: x, chunk_size=0), "chunk_size"),
    ],
)
def test_wrong_arguments(call, text) -> None:
    with pytest.raises((ValueError, IndexError), match=text):
        call()


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x if x.sum() > 0 else -x, r"bool\(\): inside vmap.*\n.*torch.where"),
        (lambda x: x * x[0].item(), r"item\(\): inside vmap"),
        (lambda x: core.tensor(x.tolist()), r"tolist\(\): inside vmap"),
        (lambda x: core.tensor(x.numpy()), r"numpy\(\): inside vmap"),
        (lambda x: x + x.data_ptr(), r"data_ptr\(\): inside vmap"),
        (lambda x: x[x > 0], "depends on values"),
        (lambda x: x.nonzero(), "depends on values"),
        (lambda x: core.zeros(3).add_(x), "add_: inside vmap each example would write"),
        (lambda x: core.sin(x, out=core.zeros(3)), "out= is not possible"),
        (lambda x: x + core.rand(3), "randomness='error'"),
        (lambda x: core.equal(x, x), "equal"),
    ],
)
def test_what_has_no_meaning_inside(function, text) -> None:
    with pytest.raises(RuntimeError, match=text):
        vmap(function)(X)


def test_no_examples() -> None:
    none = core.zeros(0, 3)
    assert vmap(lambda x: x.sum())(none).shape == (0,)
    assert vmap(lambda x: core.conv1d(x.view(1, 1, 3), core.ones(2, 1, 2)))(none).shape == (0, 1, 2, 2)
    assert vmap(lambda x: core.max_pool1d(x.view(1, 1, 3), 2))(none).shape == (0, 1, 1, 1)
    assert vmap(grad(lambda x: (x**2).sum()))(none).shape == (0, 3)
    with pytest.raises(NotImplementedError, match="the batch is empty"):
        vmap(lambda x: core.histc(x))(none)


def test_memory_is_not_an_examples() -> None:
    for change in (lambda x: x.resize_(2), lambda x: x.set_(core.ones(2))):
        with pytest.raises(NotImplementedError, match="not possible inside vmap"):
            vmap(change)(X)


def test_randomness() -> None:
    zeros = core.zeros(4, 3)
    for draw in (lambda x: x + core.rand(3), lambda x: core.rand_like(x), lambda x: x.clone().uniform_(),
                 lambda x: core.randperm(50)[:3] + x, lambda x: core.bernoulli(x + 0.5)):  # fmt: skip
        rows = vmap(draw, randomness="same")(zeros).tolist()
        assert all(row == rows[0] for row in rows)
    different = vmap(lambda x: x + core.rand(3), randomness="different")(zeros).tolist()
    assert len({tuple(row) for row in different}) == 4
    with pytest.raises(RuntimeError, match="must be 'error'"):
        vmap(lambda x: x, randomness="none")


def test_in_place_on_what_is_batched() -> None:
    def f(x):
        y = core.zeros_like(x)
        y += x
        y[0] = 5
        y[1:].mul_(2)
        return y

    want = X * 2
    want[:, 0] = 5
    before = X.clone()
    assert vmap(f)(X).tolist() == want.tolist()
    assert X.tolist() == before.tolist()


def test_a_batched_tensor_shows_its_level() -> None:
    shown = []

    def f(x):
        shown.append(repr(x))
        return x

    vmap(vmap(f))(core.ones(1, 2))
    assert shown[0].startswith("BatchedTensor(lvl=2, bdim=0, value=\n    BatchedTensor(lvl=1, bdim=0, value=")
    assert "tensor([[1., 1.]])" in shown[0]


def test_what_is_behind_a_batched_tensor() -> None:
    seen = []
    vmap(vmap(lambda x: (seen.append((debug_unwrap(x).shape, debug_unwrap(x, recurse=False).shape)), x)[1]))(
        X
    )
    assert seen == [((4, 3), (3,))]
    assert debug_unwrap(X) is X


def test_a_tensor_that_has_escaped() -> None:
    kept = []
    vmap(lambda x: (kept.append(x), x)[1])(X)
    with pytest.raises(RuntimeError, match="after the call of vmap that created it had returned"):
        kept[0] + 1


def test_the_slow_path_is_told_once() -> None:
    slow_path_taken(True)
    before = warn_of_slow_path(True)
    try:
        with pytest.warns(UserWarning, match="vmap: histc has no batching rule"):
            vmap(lambda x: core.histc(x, 3))(X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            vmap(lambda x: core.histc(x, 3))(X)
        assert slow_path_taken() == ["histc"]
    finally:
        warn_of_slow_path(before)
        slow_path_taken(True)


def test_dtypes_are_those_of_an_example() -> None:
    """In type promotion, a tensor without dimensions has less weight than one with dimensions, also if it is batched."""
    scalars = core.ones(4, dtype=core.float64)
    assert vmap(core.add)(X, scalars).dtype is core.float32
    assert vmap(core.add, (0, None))(scalars, core.tensor(1.0)).dtype is core.float64
    assert (
        vmap(core.add, (0, None))(scalars.float(), core.tensor(1.0, dtype=core.float64)).dtype is core.float64
    )
    assert vmap(core.mul)(core.ones(4, 2, dtype=core.int64), core.ones(4)).dtype is core.float32
    wide = core.ones(4, dtype=core.complex128)
    for x, dtype in ((X, core.complex64), (X.double(), core.complex128), (X.to(core.int64), core.complex128)):
        assert vmap(core.mul)(x, wide).dtype is vmap(core.mul, (0, None))(x, wide[0]).dtype is dtype
        assert core.mul(x[0], wide[0]).dtype is dtype


FLOATS_OF_INTEGERS = [
    op
    for op in OPS
    if (op.kind == "pointwise" and op.result == "floating") or "_polynomial_" in op.name
    if sum(a.type.is_tensor for a in op.schema.arguments) == 2
]


@pytest.mark.parametrize("op", FLOATS_OF_INTEGERS, ids=lambda op: op.name)
def test_integers_without_dimensions_keep_their_values(op: Op) -> None:
    """The common dtype of the integers, uint8, does not represent -1, but the operator computes in float32."""
    name = op.name.removeprefix("special_")
    function = getattr(core if name == op.name else core.special, name)
    x, n = core.tensor([[1], [2]], dtype=core.uint8), core.tensor([-1, -2])
    for a, b in ((x, n), (n, x)):
        want = core.stack([function(a[i], b[i]) for i in range(2)])
        got = vmap(function)(a, b)
        assert got.dtype is want.dtype is core.float32
        assert core.allclose(got, want, equal_nan=True)


# --- together with derivatives ---


def test_gradients_of_each_example() -> None:
    weight = core.randn(2, 3)

    def loss(w, x):
        return (w @ x).sin().sum()

    want = core.stack([grad(loss)(weight, x) for x in X])
    for start in (weight, weight.clone().requires_grad_()):
        got = vmap(grad(loss), (None, 0))(start, X)
        assert core.allclose(got, want, atol=1e-6)
    got = vmap(lambda x: grad(lambda w: loss(w, x))(weight))(X)  # `weight` is used by the closure
    assert core.allclose(got, want, atol=1e-6)


def test_parameters_outside_get_the_sum() -> None:
    weight = core.randn(3).requires_grad_()
    vmap(lambda x: (weight * x).sum())(X).sum().backward()
    assert weight.grad.tolist() == pytest.approx(X.sum(0).tolist())
    total = grad(lambda w: vmap(lambda x: (w * x * w).sum())(X).sum())(weight)
    assert total.tolist() == pytest.approx((2 * weight * X.sum(0)).tolist(), rel=1e-5)


def test_requires_grad_inside() -> None:
    def f(x):
        x = x * 1
        x.requires_grad_()
        y = (x**3).sum()
        from rushlight_autograd import grad as gradient

        return gradient(y, x)[0]

    assert core.allclose(vmap(f)(X), 3 * X**2)
    assert not X.requires_grad


def test_forward_mode_inside_and_outside() -> None:
    v = core.ones(3)
    assert core.allclose(vmap(lambda x: jvp(core.sin, (x,), (v,))[1])(X), X.cos())
    assert core.allclose(vmap(lambda v: jvp(core.sin, (X[1],), (v,))[1])(X), X[1].cos() * X)
    assert core.allclose(jvp(vmap(core.sin), (X,), (core.ones_like(X),))[1], X.cos())
    second = vmap(lambda x: jvp(lambda x: jvp(core.sin, (x,), (v,))[1], (x,), (v,))[1])(X)
    assert core.allclose(second, -X.sin())


def test_results_require_grad_as_those_of_an_example() -> None:
    """Composites with a derivative of their own are recorded inside of vmap."""
    rows = core.full((2, 3), 0.5, requires_grad=True)
    loss = vmap(lambda p: core.binary_cross_entropy(p, core.ones(3)))
    assert loss(rows).requires_grad
    slopes = vmap(grad(lambda p: core.binary_cross_entropy(p, core.ones(3))))(rows.detach())
    assert core.allclose(slopes, core.full((2, 3), -2 / 3))
    points = core.randn(2, 4, 3, requires_grad=True)
    assert vmap(lambda x: core.cdist(x, x.sin()))(points).requires_grad
    assert vmap(lambda x: core.linalg.vector_norm(x, 3))(points).requires_grad


def test_derivatives_of_sparse_elements() -> None:
    pattern = core.eye(3).to_sparse()
    rows = core.randn(2, 3, 3)
    got = vmap(grad(lambda x: (core._sparse_mask_values(x, pattern) ** 2).sum()))(rows)
    assert core.allclose(got, 2 * rows * core.eye(3))


def test_results_that_are_views_may_be_written_after_they_are_saved() -> None:
    """The result of indexing is a view inside of vmap, because dimensions are moved."""

    def f(x: Tensor) -> Tensor:
        y = x[..., core.tensor([0, 2])]
        y.tanh_()
        y.div_(2.0)
        return y.sum()

    x = core.randn(4, 2, 3)
    assert core.allclose(vmap(grad(f))(x), core.stack([grad(f)(row) for row in x]))


def test_vjp_over_vectors() -> None:
    _, back = vjp(lambda x: x.sin().cumsum(0), X[1])
    (rows,) = vmap(back)(core.eye(3))
    assert core.allclose(rows, core.stack([back(e)[0] for e in core.eye(3)]))


def test_results_with_names() -> None:
    found = vmap(lambda x: x.max(0))(X)
    assert type(found) is type(X.max(1))
    assert found.values.tolist() == X.max(1).values.tolist()
    assert found.indices.tolist() == X.max(1).indices.tolist()


def test_registered_containers() -> None:
    """All functions that take containers share one registry of container types."""

    class Pair:
        def __init__(self, a, b) -> None:
            self.a, self.b = a, b

    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))
    x = core.arange(6.0).view(2, 3)
    made = vmap(lambda p: Pair(p.a + p.b, p.a.sum()))(Pair(x, x * 2))
    assert isinstance(made, Pair)
    assert core.equal(made.a, x * 3)
    assert core.equal(made.b, x.sum(1))
    made = vmap(lambda p: p.a * p.b, in_dims=(Pair(0, None),))(Pair(x, x[0]))
    assert core.equal(made, x * x[0])
    slopes = grad(lambda p: (p.a * p.a * p.b).sum())(Pair(x, x))
    assert core.equal(slopes.b, x * x)
    with pytest.raises(ValueError, match="in_dims"):
        vmap(lambda p: p.a, in_dims=([0, 0],))(Pair(x, x))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_distances_of_rows_without_elements(p: float) -> None:
    found = vmap(lambda rows: core.pdist(rows, p))(core.ones(2, 3, 0))
    assert core.equal(found, core.zeros(2, 3))
    rows = core.ones(3, 0, requires_grad=True)
    assert grad(lambda r: core.pdist(r, p).sum())(rows).shape == (3, 0)


def test_windows_of_numbers() -> None:
    assert vmap(lambda x: x.unfold(0, 1, 1))(core.ones(2)).shape == (2, 1)


def test_cat_of_nothing_promotes() -> None:
    """cat skips an empty vector, but its dtype takes part in type promotion."""
    numbers = core.ones(2, 3, dtype=core.int64)
    for joined in (
        vmap(lambda x: core.cat([core.ones(0), x]))(numbers),
        vmap(lambda nothing, x: core.cat([nothing, x]))(core.ones(2, 0), numbers),
        vmap(lambda nothing: core.cat([nothing, nothing]))(core.ones(2, 0)),
    ):
        assert joined.dtype == core.float32
        assert joined.shape[0] == 2


WRITES_TO_A_COPY = {
    "scatter.value": lambda x, i: core.scatter(x, 0, i, 1.5),
    "scatter": lambda x, i: core.scatter(x, 0, i, core.ones(2)),
    "scatter.value_reduced": lambda x, i: core.scatter(x, 0, i, 1.5, reduce="add"),
    "scatter_add": lambda x, i: core.scatter_add(x, 0, i, core.ones(2)),
    "scatter_reduce": lambda x, i: core.scatter_reduce(x, 0, i, core.ones(2), "amax"),
    "index_fill": lambda x, i: core.index_fill(x, 0, i, 1.5),
    "index_add": lambda x, i: core.index_add(x, 0, i, core.ones(2)),
    "index_copy": lambda x, i: core.index_copy(x, 0, i, core.ones(2)),
    "index_put": lambda x, i: core.index_put(x, (i,), core.tensor(1.5)),
    "put": lambda x, i: core.put(x, i, core.ones(2)),
}


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize("name", WRITES_TO_A_COPY)
def test_copies_that_are_written_are_batched_in_all_levels(name: str) -> None:
    """Each tensor may be batched in any of two levels, or in none."""
    call = WRITES_TO_A_COPY[name]
    x = core.arange(24.0).view(2, 3, 4)
    index = (core.arange(6).view(2, 3, 1) + core.tensor([0, 2])) % 4
    for in_outer in ((0, 0), (0, None), (None, 0)):
        for in_inner in ((0, 0), (0, None), (None, 0)):
            parts = [
                t[tuple(slice(None) if dims[k] == 0 else 0 for dims in (in_outer, in_inner))]
                for k, t in enumerate((x, index))
            ]
            found = vmap(vmap(call, in_dims=in_inner), in_dims=in_outer)(*parts)
            one = [
                [[t[a if in_outer[k] == 0 else 0, b if in_inner[k] == 0 else 0] for k, t in enumerate((x, index))]
                 for b in range(3)] for a in range(2)
            ]  # fmt: skip
            wanted = core.stack([core.stack([call(*pair) for pair in row]) for row in one])
            assert core.equal(found, wanted), (in_outer, in_inner)
