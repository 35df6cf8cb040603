"""Gradients of sparse tensors, and gradients that are sparse."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight_autograd
import rushlight_core as core
from rushlight_autograd import forward_ad, grad, gradcheck, gradgradcheck
from rushlight_autograd.batching import vmap
from rushlight_core import sparse

WHERE = [[0, 2, 2, 1], [1, 0, 3, 2]]  # distinct indices, not sorted


def values() -> core.Tensor:
    return core.tensor([0.5, -1.5, 2.0, 0.7], dtype=core.float64, requires_grad=True)


def matrix(v: core.Tensor, layout: str = "coo") -> core.Tensor:
    s = core.sparse_coo_tensor(WHERE, v, (3, 4))
    if layout == "coo":
        return s
    return s.to_sparse(
        layout=getattr(core, f"sparse_{layout}"), blocksize=(1, 2) if layout[0] == "b" else None
    )


def other(*shape: int) -> core.Tensor:
    numbers = (core.arange(float(core.Size(shape).numel()), dtype=core.float64) * 0.37).sin()
    return numbers.reshape(shape).requires_grad_()


FUNCTIONS = {
    "to_dense": lambda s: s.to_dense(),
    "values": lambda s: s.coalesce().values() if s.is_sparse else s.values(),
    "mul": lambda s: (s * 3).to_dense(),
    "square": lambda s: (s * s).to_dense(),
    "add": lambda s: (s + s.t().t()).to_dense(),
    "sum": lambda s: s.sum(),
    "sum_rows": lambda s: sparse.sum(s, 1).to_dense(),
    "softmax": lambda s: sparse.softmax(s, 1).to_dense(),
    "log_softmax": lambda s: sparse.log_softmax(s, 0).to_dense(),
    "index_select": lambda s: s.index_select(0, core.tensor([2, 0, 2])).to_dense(),
    "select": lambda s: s[2].to_dense(),
    "cat": lambda s: core.cat([s, s * 2], 1).to_dense(),
    "stack": lambda s: core.stack([s, s * 2], 1).to_dense(),
    "unbind": lambda s: s.unbind(1)[1].to_dense(),
    "unsqueeze": lambda s: s.unsqueeze(1).to_dense(),
    "narrow_copy": lambda s: s.narrow_copy(0, 1, 2).to_dense(),
    "sum_keepdim": lambda s: s.sum(1, keepdim=True).to_dense(),
    "square_of_matrix": lambda s: (s @ s.t()).to_dense(),
    "sin": lambda s: s.sin().to_dense(),
    "norm": lambda s: s.norm(),
    "clone": lambda s: s.clone().to_dense(),
    "float32": lambda s: s.to(core.complex128).to_dense(),
}


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_values(name: str, layout: str) -> None:
    function = FUNCTIONS[name]
    assert gradcheck(lambda v: function(matrix(v, layout)), [values()])
    assert gradgradcheck(lambda v: function(matrix(v, layout)), [values()])


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_gradcheck_of_sparse_inputs(layout: str) -> None:
    s = matrix(values().detach(), layout).requires_grad_()
    d = other(4, 2)
    assert gradcheck(lambda s, d: s @ d, (s, d), masked=True)
    assert gradcheck(lambda s: s * s, s, masked=True)  # a sparse result
    assert gradgradcheck(lambda s, d: ((s * s) @ d).sin(), (s, d), masked=True)
    with pytest.raises(NotImplementedError, match="must be True for sparse inputs"):
        gradcheck(lambda s: s.to_dense(), s)
    with pytest.raises(RuntimeError, match="derivative"):
        gradcheck(lambda s: s.detach().to_dense() + 0 * s.to_dense(), s, masked=True)
    assert gradcheck(lambda d: d.sin(), d, masked=True)


WITH_DENSE = {
    "mm": (lambda s, d: s @ d, (4, 5)),
    "mm_from_left": (lambda s, d: d @ s, (2, 3)),
    "mv": (lambda s, d: s @ d, (4,)),
    "bmm": (lambda s, d: core.bmm(core.stack([s, s * 2]), d), (2, 4, 3)),
    "mm_mean": (lambda s, d: sparse.mm(s, d, "mean"), (4, 5)),
    "mm_amax": (lambda s, d: sparse.mm(s, d, "amax"), (4, 5)),
    "mm_amin": (lambda s, d: sparse.mm(s, d, "amin"), (4, 5)),
    "addmm": (lambda s, d: core.addmm(d[:3], s, d[:4], beta=2, alpha=3), (4, 5)),
    "mul": (lambda s, d: (s * d).to_dense(), (3, 4)),
    "mul_row": (lambda s, d: (s * d).to_dense(), (4,)),
    "div": (lambda s, d: (s / (d + 3)).to_dense(), (3, 4)),
    "add": (lambda s, d: d + s, (3, 4)),
    "scale": (lambda s, d: (s * d).to_dense(), ()),
    "sparse_mask": (lambda s, d: d.sparse_mask(s).to_dense(), (3, 4)),
    "sampled": (lambda s, d: sparse.sampled_addmm(s, d[:3], d.t(), beta=2).to_dense(), (4, 3)),
}


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("name", WITH_DENSE)
def test_gradients_of_both(name: str, layout: str) -> None:
    function, shape = WITH_DENSE[name]

    def run(v: core.Tensor, d: core.Tensor) -> core.Tensor:
        return function(matrix(v, layout), d)

    given = [values(), other(*shape)]
    if name == "sparse_mask":  # the values of the mask are not used
        assert gradcheck(lambda d: run(given[0].detach(), d), given[1:])
        return
    assert gradcheck(run, given)
    assert gradgradcheck(run, given)


def test_repeated_indices() -> None:
    assert gradcheck(
        lambda v: core.sparse_coo_tensor([[1, 0, 1, 1]], v, (3,)).coalesce().values() ** 2, [values()]
    )
    assert gradcheck(lambda v: core.sparse_coo_tensor([[1, 0, 1, 1]], v, (3,)).pow(2).to_dense(), [values()])


def test_sparse_mm_in_double_and_forward_mode() -> None:
    with forward_ad.dual_level():
        v = forward_ad.make_dual(values().detach(), core.ones(4, dtype=core.float64))
        d = forward_ad.make_dual(other(4, 2).detach(), core.ones(4, 2, dtype=core.float64))
        product = forward_ad.unpack_dual(matrix(v) @ d)
        s, ones = matrix(values().detach()), core.ones(4, 2, dtype=core.float64)
        wanted = s @ ones + matrix(core.ones(4, dtype=core.float64)) @ other(4, 2).detach()
        assert core.allclose(product.tangent, wanted)


# --- sparse tensors as variables ---


def test_a_sparse_leaf() -> None:
    s = matrix(values().detach()).coalesce().requires_grad_()
    assert s.is_leaf
    d = other(4, 5)
    (s @ d).sum().backward()
    assert s.grad.is_sparse
    assert s.grad.indices().tolist() == s.indices().tolist()
    assert core.allclose(
        s.grad.to_dense(), (core.ones(3, 5, dtype=core.float64) @ d.t() * (s.to_dense() != 0)).detach()
    )
    before = s.grad.to_dense()
    (s @ d).sum().backward()
    assert core.allclose(s.grad.to_dense(), before * 2)
    assert s.grad._nnz() == 4
    (g,) = grad((s * s).sum(), [s])
    assert core.allclose(g.to_dense(), 2 * s.to_dense().detach())
    assert (s * 2).grad_fn is not None
    assert s.detach().requires_grad is False


def test_in_place_operators_are_not_recorded() -> None:
    s = matrix(values())
    for write in (lambda: s.mul_(2), lambda: s.zero_(), lambda: s.add_(s)):
        with pytest.raises(NotImplementedError, match="written in place"):
            write()
    plain = core.zeros(3, 4, dtype=core.float64)
    plain.add_(s)
    v = values()
    dense = core.zeros(3, 4, dtype=core.float64).add_(matrix(v))
    (dense * dense).sum().backward()
    assert core.allclose(v.grad, 2 * v.detach())


def test_hooks_and_custom_functions() -> None:
    class Double(rushlight_autograd.Function):
        @staticmethod
        def forward(ctx, s):
            return s * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    seen = []
    v = values()
    s = matrix(v)
    s.register_hook(lambda g: seen.append(g.is_sparse))
    Double.apply(s).to_dense().sum().backward()
    assert seen == [True]
    assert v.grad.tolist() == [2.0] * 4


# --- row-sparse gradients ---


def table() -> core.Tensor:
    return core.arange(12.0).reshape(4, 3).requires_grad_()


def look_up(weight: core.Tensor, rows: list, padding: int = -1) -> core.Tensor:
    return core.embedding(weight, core.tensor(rows), padding, False, True)


def test_the_gradient_of_a_table() -> None:
    w = table()
    look_up(w, [[1, 1], [2, 3]], 3).sum().backward()
    assert w.grad.is_sparse
    assert w.grad._indices().tolist() == [[1, 1, 2]]
    assert w.grad._values().tolist() == [[1.0] * 3] * 3
    assert w.grad.shape == (4, 3)
    assert w.grad.coalesce().values().tolist() == [[2.0] * 3, [1.0] * 3]


def test_accumulation() -> None:
    w, u = table(), table()
    for _ in range(2):
        look_up(w, [1, 2]).pow(2).sum().backward()
        core.embedding(u, core.tensor([1, 2])).pow(2).sum().backward()
    assert w.grad.is_sparse
    assert core.equal(w.grad.to_dense(), u.grad)
    # Within one pass, add sparse and sparse, and sparse and dense.
    for both in (
        lambda t: look_up(t, [1]).sum() + look_up(t, [2, 1]).pow(2).sum(),
        lambda t: look_up(t, [1]).sum() + (t * t).sum(),
        lambda t: (t * t).sum() + look_up(t, [1]).sum(),
    ):
        w, u = table(), table()
        both(w).backward()
        (u.grad,) = grad(both(u), [u])
        assert core.equal(w.grad.to_dense(), u.grad.to_dense())
    # Accumulate over several passes.
    w = table()
    look_up(w, [1]).sum().backward()
    (w * 2).sum().backward()
    assert not w.grad.is_sparse
    look_up(w, [2]).sum().backward()
    assert w.grad.tolist() == [[2.0] * 3, [3.0] * 3, [3.0] * 3, [2.0] * 3]


def test_the_gradient_shares_no_memory_with_others() -> None:
    w = table()
    rows = look_up(w, [1, 2])
    rows.retain_grad()
    (rows * 2).sum().backward()
    w.grad.mul_(5)
    assert rows.grad.tolist() == [[2.0] * 3] * 2


def test_hooks_see_and_replace_sparse_gradients() -> None:
    w = table()
    w.register_hook(lambda g: g * 2)
    after = []
    w.register_post_accumulate_grad_hook(lambda t: after.append(t.grad.is_sparse))
    look_up(w, [1]).sum().backward()
    assert w.grad._values().tolist() == [[2.0] * 3]
    assert after == [True]


def test_a_table_that_is_computed() -> None:
    w = table()
    look_up(w * 2, [1, 1]).sum().backward()
    assert w.grad.to_dense().tolist() == [[0.0] * 3, [4.0] * 3, [0.0] * 3, [0.0] * 3]


def test_double_backward_of_a_table() -> None:
    w = table()
    (g,) = grad(look_up(w, [1, 2]).pow(3).sum(), [w], create_graph=True)
    assert g.is_sparse
    (second,) = grad(g.coalesce().values().sum(), [w])
    assert core.allclose(second.to_dense()[1:3], 6 * w.detach()[1:3])


def test_scaling_by_frequency_is_refused() -> None:
    w = table()
    out = core.embedding(w, core.tensor([1]), -1, True, True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
        out.sum().backward()


def test_anomaly_mode_finds_nan_in_sparse_gradients() -> None:
    w = table()
    with rushlight_autograd.detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
        (look_up(w, [1]) * float("nan")).sum().backward()
    with rushlight_autograd.detect_anomaly():
        look_up(w, [1]).sum().backward()


def test_vmap_and_sparse() -> None:
    s = matrix(values().detach())
    with pytest.raises(RuntimeError):
        vmap(lambda v: core.sparse_coo_tensor(WHERE, v, (3, 4)).to_dense())(core.ones(2, 4))
    batch = core.ones(2, 4, dtype=core.float64)
    rows = core.stack([s @ x for x in batch])
    assert core.allclose(vmap(lambda x: s @ x)(batch), rows)


REPEATED = core.tensor([[0, 0, 1, 0], [1, 1, 2, 0]])  # (0, 1) occurs twice
WEIGHTS = core.arange(6.0, dtype=core.float64).reshape(2, 3) - 2


def mask() -> core.Tensor:
    return core.sparse_coo_tensor([[0], [1]], [2.0], (2, 3), dtype=core.float64).coalesce()


@pytest.mark.parametrize(
    ("of_sparse", "of_dense"),
    [
        (lambda s: (s.to_dense() * WEIGHTS).sum(), lambda d: (d * WEIGHTS).sum()),
        (lambda s: (s * s).to_dense().sum(), lambda d: (d * d).sum()),
        (lambda s: (s.coalesce() * s).to_dense().sum(), lambda d: (d * d).sum()),
        (
            lambda s: s.sparse_mask(mask()).to_dense().sum() + s.to_dense().sum(),
            lambda d: d[0, 1] + d.sum(),
        ),
        (
            lambda s: (mask() * s).to_dense().sum() + (s * 3).to_dense().sum(),
            lambda d: 2 * d[0, 1] + 3 * d.sum(),
        ),
        (lambda s: ((s + s) @ WEIGHTS.t()).sin().sum(), lambda d: ((d + d) @ WEIGHTS.t()).sin().sum()),
        (lambda s: (s.t().to_dense() * WEIGHTS.t()).sum() ** 2, lambda d: (d * WEIGHTS).sum() ** 2),
    ],
)
def test_gradients_of_repeated_indices(of_sparse: Any, of_dense: Any) -> None:
    """They are those of the dense tensor: of the values, and of the sparse tensor itself."""
    v = core.tensor([1.0, 2, 3, 4], dtype=core.float64, requires_grad=True)
    s = core.sparse_coo_tensor(REPEATED, v, (2, 3))
    d = s.detach().to_dense().requires_grad_()
    (want,) = grad(of_dense(d), [d], create_graph=True)
    leaf = s.detach().requires_grad_()
    (got,) = grad(of_sparse(leaf), [leaf])
    assert core.allclose(got.to_dense(), want.detach() * (leaf.detach().to_dense() != 0))
    (of_values,) = grad(of_sparse(s), [v], create_graph=True)
    at = tuple(REPEATED)
    assert core.allclose(of_values, want[at])
    if of_values.requires_grad:
        (second,) = grad(of_values.square().sum(), [v])
        (second_of_dense,) = grad(want[at].square().sum(), [d])
        assert core.allclose(second, second_of_dense[at])


def test_a_step_along_the_gradient_of_a_sparse_leaf() -> None:
    s = core.sparse_coo_tensor(REPEATED, core.ones(4, dtype=core.float64), (2, 3)).requires_grad_()
    for _ in range(2):
        (s.to_dense() * WEIGHTS).sum().backward()
    assert s.grad.to_dense().tolist() == [[-4.0, -2.0, 0.0], [0.0, 0.0, 6.0]]


def test_a_hook_that_coalesces_changes_nothing() -> None:
    v = core.ones(4, dtype=core.float64, requires_grad=True)
    s = core.sparse_coo_tensor(REPEATED, v, (2, 3))
    s.register_hook(lambda g: g.coalesce())
    (s.to_dense() * WEIGHTS).sum().backward()
    assert v.grad.tolist() == [-1.0, -1.0, 3.0, -2.0]
