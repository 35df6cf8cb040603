"""Compare each derivative formula with finite differences, in reverse mode, forward mode and second order."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from autograd_samples import leaf

import rushlight_core as core
from rushlight_autograd import functional, grad, gradcheck, gradgradcheck
from rushlight_autograd.batching import vmap
from rushlight_autograd.forward_ad import dual_level, make_dual, unpack_dual
from rushlight_core.codegen.derivatives import load_derivatives
from rushlight_core.codegen.dtypes import dtypes_of
from rushlight_core.codegen.loader import load_ops
from rushlight_testing.samples import samples_of

OPS = load_ops()
DERIVATIVES = load_derivatives(Path(__file__).parents[1] / "derivatives", OPS)
MOST_ELEMENTS = 24  # larger Jacobians are checked in random directions

# Samples for which finite differences are not the derivative: quotients that are rounded to integers, casts that lose
# digits, and the row padding_idx of embedding, which has no gradient by definition.
WITHOUT = {(name, "pairs()") for name in ("floor_divide", "remainder", "fmod")}
WITHOUT |= {("div.rounded", "pairs(rounding_mode='floor')")}
WITHOUT |= {("embedding", "t(5, 3), t(2, 3, dtype=int32, low=0, high=4), 1")}
CONVERSIONS = {
    "to",
    "cfloat",
    "cdouble",
    "float",
    "double",
    "half",
    "bfloat16",
    "long",
    "int",
    "short",
    "bool",
}
WITHOUT |= {
    ("linalg_svd", text) for text in ("t(4, 2)", "t(2, 3, 4)")
}  # some columns are not determined by the matrix
# The singular values that these return have no gradient, as in PyTorch.
_BY_VALUES = (
    "t(4, 2), t(4, 3), driver='gelsd'",
    "t(4, 2), t(4, 3), driver='gelss'",
    "t(2, 4), t(2, 1), driver='gelsd'",
)
WITHOUT |= {("linalg_lstsq", text) for text in _BY_VALUES}
# The statistics that these return have no gradient, as in PyTorch.
WITHOUT |= {
    (op.name, sample.text)
    for op in OPS
    if op.name in ("native_batch_norm", "native_layer_norm")
    for sample in op.samples
}
# Operators that read one triangle of a symmetric matrix; their gradient is the gradient of a symmetric matrix.
SYMMETRIC = {"cholesky", "linalg_cholesky", "linalg_cholesky_ex", "linalg_eigh", "linalg_eigvalsh"}
# Complex eigenvectors and singular vectors have a free phase, which LAPACK chooses: absolute values are compared.
WITH_PHASE = {"linalg_eig", "linalg_eigh", "linalg_svd", "svd"}
ONCE = {"ctc_loss"}  # differentiable once, in reverse mode, as in PyTorch
# Differentiable once, in both modes, because there is no formula for the third derivative of a gamma variable.
ONCE_BOTH = {"_standard_gamma_grad"}
# Samples without a tensor that could be complex, and samples whose result is NaN.
OF_REAL_NUMBERS = {
    ("where", "t(3, dtype=bool), 1, 2."),
    ("sinc", "torch.tensor([0., 1., -2., 0.5, 1e-9, 100.5])"),
    ("mean", "t(3, 4, dtype=int64), dtype=float32"),
    ("square", "t(3, 4, dtype=bool_)"),
}
# Sums cross the branch cut of the complex logarithm, where finite differences are not derivatives.
BRANCH_CUTS = {("logcumsumexp", "t(2, 3, 40), 1")}
# Class weights have only a first derivative; in PyTorch they have none.
ONCE_IN_WEIGHT = {"nll_loss", "cross_entropy_loss"}
OF_REAL_NUMBERS |= {(name, text) for name in ("var", "std") for text in ("t(0)", "t(1)")}
BY_NAME = {d.op.name: d for d in DERIVATIVES}
CASES = [
    (op, sample.text)
    for op in OPS
    if (op.name in BY_NAME or op.kind == "composite")
    and op.differentiable
    and "hidden" not in op.variants
    and not op.random
    and op.base not in CONVERSIONS
    for sample in op.samples
    if "special" not in sample.text and (op.name, sample.text) not in WITHOUT
]


def _function(name: str):
    # The function `repeat` of the array API standard differs from the operator `repeat`.
    function = getattr(core, name, None) if name != "repeat" else None
    function = function or getattr(core.Tensor, name)
    if name in SYMMETRIC | WITH_PHASE | {"linalg_pinv"}:

        def of_matrix(A, *args, **kwargs):
            symmetric = name in SYMMETRIC or kwargs.get("hermitian")
            results = function((A + A.mH) / 2 if symmetric else A, *args, **kwargs)
            return tuple(x.abs() if x.is_complex() else x for x in results) if name in WITH_PHASE else results

        return of_matrix
    if not name.endswith("_"):
        return function
    return lambda input, *args, **kwargs: function(input.clone(), *args, **kwargs)  # leaves are read-only


@pytest.mark.parametrize(("op", "text"), CASES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_formula(op, text) -> None:
    """Check operators with a formula, and composites, which are differentiated through the operators that they call."""
    if not _check(op, text, "float64"):
        pytest.skip("no sample of float64")


@pytest.mark.parametrize(("op", "text"), CASES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_formula_of_complex_numbers(op, text) -> None:
    """Check formulas for complex128, if the operator is defined for complex numbers."""
    if (op.name, text) in BRANCH_CUTS:
        pytest.skip("crosses a branch cut")
    if not _check(op, text, "complex128"):
        loop = op.kind in ("pointwise", "reduce")
        declared = loop and "complex64" in dtypes_of(op.dtypes) and (op.name, text) not in OF_REAL_NUMBERS
        assert not declared, "declared for complex numbers, and the sample could not be checked"
        pytest.skip("not defined for complex128")


def _check(op, text, dtype) -> bool:
    """Check a sample and return whether that was possible."""
    function = _function(op.base)
    wanted = getattr(core, dtype)
    derivative = BY_NAME.get(op.name)
    forward = derivative is None or bool(derivative.jvp)
    checked = 0
    for sample in samples_of(text, core, dtype):
        # Differentiate only with respect to arguments that have a formula.
        known = set(derivative.wanted) if derivative else None
        differentiable = [
            x
            for a, x in zip(op.schema.arguments, sample.args, strict=False)
            if known is None or a.name in known
        ]
        tensors = [x for x in differentiable if isinstance(x, core.Tensor) and x.dtype == wanted]
        tensors += [
            y
            for x in differentiable
            if isinstance(x, (tuple, list))
            for y in x
            if isinstance(y, core.Tensor) and y.dtype == wanted
        ]
        if not tensors:
            continue
        fast = sum(x.numel() for x in tensors) > MOST_ELEMENTS

        def call(*leaves, sample=sample, tensors=tensors):
            again = dict(zip(map(id, tensors), leaves, strict=True))

            def put(x):
                return type(x)(put(y) for y in x) if isinstance(x, (tuple, list)) else again.get(id(x), x)

            return function(*(put(x) for x in sample.args), **sample.kwargs)

        inputs = [x.detach().clone().requires_grad_() for x in tensors]
        try:
            with core.no_grad():  # some operators are computed differently if nothing is recorded
                call(*inputs)
            out = call(*inputs)
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            if dtype == "float64":
                raise
            continue
        outputs = out if isinstance(out, (tuple, list)) else (out,)
        if not any(isinstance(y, core.Tensor) and y.requires_grad for y in outputs):
            continue
        if any(
            bool(core.isnan(y.detach()).any()) for y in outputs if y.is_floating_point() or y.is_complex()
        ):
            continue  # such as the variance of one element
        checked += 1
        gradcheck(call, inputs, check_forward_ad=forward and op.base not in ONCE, fast_mode=fast)
        if op.base in ONCE | ONCE_BOTH or (op.base in ONCE_IN_WEIGHT and len(inputs) > 1):
            continue
        gradgradcheck(call, inputs, check_fwd_over_rev=forward, fast_mode=fast)
    return checked > 0


def test_every_differentiable_kernel_has_a_formula() -> None:
    """A differentiable operator that is not a composite must have an entry in derivatives/*.yaml."""
    known = {d.op.name for d in DERIVATIVES}
    missing = [
        op.name
        for op in OPS
        if op.kind in ("pointwise", "reduce", "view", "custom")
        and op.differentiable
        and not op.gives_truth
        and op.name not in known
        and op.name != "as_strided"  # implemented in src/record.cpp
        and any(a.type.is_tensor for a in op.schema.arguments)
        and not op.writes
        and not any(a.write for a in op.schema.arguments)
    ]
    assert not missing


def test_embedding_pads() -> None:
    """The row of padding_idx is read like the others but gets no gradient, by PyTorch's definition."""
    weight = core.ones(5, 3, dtype=core.float64).requires_grad_()
    rows = core.embedding(weight, core.tensor([[0, 1], [1, 4]]), 1)
    rows.sum().backward()
    assert rows.detach().sum().item() == 12
    assert weight.grad.sum(1).tolist() == [3, 0, 0, 0, 3]


def test_what_has_no_derivative_says_so() -> None:
    x = core.tensor([1.5, 2.5], requires_grad=True)
    core.special.zeta(core.full((2,), 2.0), x).sum().backward()
    with pytest.raises(NotImplementedError, match=r"zeta.*input"):
        core.special.zeta(x, 2).sum().backward()


def test_incomplete_gamma_functions_at_zero() -> None:
    a = core.tensor([0.5, 1.0, 2.0], requires_grad=True)
    x = core.zeros(3, requires_grad=True)
    core.igamma(a, x).sum().backward()
    assert a.grad.tolist() == [0.0, 0.0, 0.0]
    assert x.grad.tolist() == [float("inf"), 1.0, 0.0]


def test_incomplete_gamma_of_an_infinite_shape_is_flat():
    x = core.tensor([0.0, 0.3, 7.5], dtype=core.float64, requires_grad=True)
    for function in (core.igamma, core.igammac):
        value = function(core.tensor(float("inf"), dtype=core.float64), x)
        (gradient,) = grad(value.sum(), x)
        assert gradient.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_nans_share_the_gradient_of_their_maximum(name: str) -> None:
    values = [float("nan"), 1.0, float("nan"), 2.0] if name != "nanmedian" else [float("nan"), float("nan")]
    x = core.tensor(values, requires_grad=True)
    getattr(core, name)(x).backward()
    assert x.grad.tolist() == [0.0 if v == v else 0.5 for v in values]


@pytest.mark.parametrize("largest", [True, False])
def test_the_gradient_of_an_extreme_that_is_not_a_number(largest: bool) -> None:
    """As in forward mode, it is NaN wherever the reduced elements have one, and does not hide it."""
    nan = float("nan")
    values, index = core.tensor([1.0, nan, 3.0, 3.0]), core.tensor([0, 0, 1, 1])
    name = "amax" if largest else "amin"
    reductions = {
        "dim": lambda x: getattr(x.view(2, 2), name)(1),
        "aminmax": lambda x: getattr(core.aminmax(x.view(2, 2), dim=1), name[1:]),
        "scatter": lambda x: core.zeros(2).scatter_reduce(0, index, x, name, include_self=False),
        "index": lambda x: core.zeros(2).index_reduce(0, index, x, name, include_self=False),
    }
    for what, function in reductions.items():
        x = values.clone().requires_grad_()
        function(x).sum().backward()
        assert core.allclose(x.grad, core.tensor([nan, nan, 0.5, 0.5]), equal_nan=True), what


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "median", "nanmedian"])
def test_an_infinite_gradient_reaches_only_what_was_chosen(name: str) -> None:
    """In forward mode, an infinite tangent of an element that was not chosen does not reach the result."""
    x = core.tensor([2.0, 1.0, 3.0, 2.0, 0.5], requires_grad=True)
    y = getattr(core, name)(x)
    chosen = [v == float(y) for v in x.tolist()]
    (slope,) = grad(y, [x], core.tensor(float("inf")))
    assert slope.tolist() == [float("inf") if c else 0.0 for c in chosen]
    with dual_level():
        tangent = core.tensor([1.0 if c else float("inf") for c in chosen])
        assert float(unpack_dual(getattr(core, name)(make_dual(x.detach(), tangent))).tangent) == 1.0


@pytest.mark.parametrize(
    ("values", "slopes"),
    [
        ([0.0, 1.0, float("inf"), 2.0], [1 + 1 / (1 + math.e), math.e / (1 + math.e), 2.0, 0.0]),
        ([float("-inf"), float("-inf"), 1.0], [0.0, 0.0, 1.0]),
        ([float("-inf"), 3.0, float("-inf")], [0.0, 2.0, 0.0]),
    ],
)
def test_running_sums_of_exponentials_at_infinity(values: list[float], slopes: list[float]) -> None:
    """The gradient of every sum that includes an infinite element goes to this element."""
    x = core.tensor(values, dtype=core.float64, requires_grad=True)
    core.logcumsumexp(x, 0).sum().backward()
    assert core.allclose(x.grad, core.tensor(slopes).double())
    with dual_level():
        ones = core.ones(len(values), dtype=core.float64)
        moved = unpack_dual(core.logcumsumexp(make_dual(x.detach(), ones), 0)).tangent
    assert core.isclose(moved.sum(), x.grad.sum())


@pytest.mark.parametrize(
    ("dtype", "least"), [(core.uint8, 0), (core.int8, -128), (core.int64, -(2**63))], ids=str
)
def test_the_least_integer_is_an_exponent(dtype: Any, least: int) -> None:
    """The exponent of the derivative, which is smaller by one, is not in the range of the dtype."""
    x = core.tensor([3.0, 1e30, 1.01], requires_grad=True)
    (x ** core.full((3,), least, dtype=dtype)).sum().backward()
    y = x.detach().clone().requires_grad_()
    (y ** core.full((3,), float(least))).sum().backward()
    assert x.grad.tolist() == y.grad.tolist()
    assert x.grad.isfinite().all()


def test_an_exponent_beyond_int64() -> None:
    x = core.tensor([0.5, 3.0], dtype=core.float64, requires_grad=True)
    (x ** core.tensor([2**63, 0], dtype=core.uint64)).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_the_next_number_is_as_far_as_its_neighbour() -> None:
    x = core.tensor([1.0, 2.0], requires_grad=True)
    core.nextafter(x, core.tensor([2.0, 2.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]  # as in PyTorch, for equal elements


def test_differences_of_complex_samples() -> None:
    x = core.tensor([1 + 1j, 2, 4j], requires_grad=True)
    (slopes,) = core.gradient(x)
    assert slopes.tolist() == [1 - 1j, -0.5 + 1.5j, -2 + 4j]
    slopes.backward(core.tensor([1j, 0, 0]))
    assert x.grad.tolist() == [-1j, 1j, 0]


@pytest.mark.parametrize("size", [1, 5])
def test_the_gradient_of_a_constant_line(size: int) -> None:
    x = core.full((2, size), 5.0, requires_grad=True)
    core.layer_norm(x, (size,)).backward(core.full((2, size), 1.5))
    assert x.grad.tolist() == [[0.0] * size] * 2


@pytest.mark.parametrize("name", ["remainder", "fmod"])
def test_quotients_are_rounded_once(name: str) -> None:
    """In bfloat16, 250.9 rounds to 251, so the quotient must not be rounded to bfloat16 before it is truncated."""
    x = core.arange(1.0, 251.0, dtype=core.bfloat16)
    y = core.full((250,), 1.0078125, dtype=core.bfloat16, requires_grad=True)
    getattr(core, name)(x, y).sum().backward()
    assert y.grad.tolist() == (-(x.double() / 1.0078125).floor()).tolist()


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_the_gradient_of_eigenvectors_is_symmetric(uplo: str) -> None:
    a = core.tensor(
        [[2.0, 0.3, -1.0], [0.3, 1.0, 0.5], [-1.0, 0.5, -3.0]], dtype=core.float64, requires_grad=True
    )
    values, vectors = core.linalg.eigh(a, uplo)
    (values.sum() + (vectors.abs() * core.arange(9.0).reshape(3, 3)).sum()).backward()
    assert core.allclose(a.grad, a.grad.mT)
    assert float(a.grad.abs().max()) > 0.1


def test_gradcheck_finds_a_wrong_formula() -> None:
    from rushlight_autograd import Function, GradcheckError

    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x  # lacks the factor 2

    x = core.tensor([1.0, 2.0], dtype=core.float64).requires_grad_()
    with pytest.raises(GradcheckError, match="differences give"):
        gradcheck(Wrong.apply, [x])
    assert not gradcheck(Wrong.apply, [x], raise_exception=False)
    assert not gradcheck(Wrong.apply, [x], raise_exception=False, fast_mode=True)


def test_gradcheck_changes_the_very_inputs() -> None:
    """The function may reach an input in another way, as a layer reaches its parameters."""
    weight = core.tensor([0.5, 2.0], dtype=core.float64, requires_grad=True)
    x = core.tensor([3.0, 4.0], dtype=core.float64, requires_grad=True)
    before = weight.tolist()
    assert gradcheck(lambda _: weight.exp() * x, (weight,))
    assert gradgradcheck(lambda _, y: (weight * y) ** 2, (weight, x))
    assert weight.tolist() == before
    spread = core.ones(1, dtype=core.float64).expand(3).requires_grad_()
    assert gradcheck(lambda y: y * 2, (spread,))  # elements that share memory cannot be changed in place


def test_gradcheck_finds_what_does_not_repeat() -> None:
    x = core.rand(50, dtype=core.float64).requires_grad_()

    def noisy(x):
        return x * (1 + 1e-13 * core.rand(50, dtype=core.float64))

    with pytest.raises(RuntimeError, match="nondet_tol"):
        gradcheck(noisy, [x])
    assert gradcheck(noisy, [x], nondet_tol=1e-10)


# --- where functions have kinks ---


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, float("inf"), -1.0, -float("inf")])
@pytest.mark.parametrize("values", [[0.0, 0.0, 0.0], [0.0, 3.0, -4.0]])
def test_norms_have_a_subgradient_at_zero(p: float, values: list[float]) -> None:
    x = core.tensor(values, dtype=core.float64, requires_grad=True)
    found = []
    for length in (
        core.linalg.vector_norm(x, p),
        core.norm(x, p),
        core.dist(x, core.zeros(3, dtype=x.dtype), p),
        core.pairwise_distance(x, core.zeros(3, dtype=x.dtype), p, 0.0),
    ):
        (slope,) = grad(length, x)
        found.append(slope.tolist())
        assert slope[0].item() == 0
        assert core.isfinite(slope).all()
    assert found == [found[0]] * 4
    _, tangent = functional.jvp(lambda x: core.linalg.vector_norm(x, p), x.detach(), core.ones_like(x))
    assert tangent.item() == pytest.approx(sum(found[0]))


@pytest.mark.parametrize(
    ("loss", "slopes"),
    [
        (lambda x: core.multi_margin_loss(x, core.tensor(1)), [0, 0]),
        (lambda x: core.multilabel_margin_loss(x, core.tensor([1, -1])), [0, 0]),
        (lambda x: core.hinge_embedding_loss(x[1:] + 1, core.tensor([-1])), [0, -1]),
        (lambda x: core.margin_ranking_loss(x[:1], x[1:], core.tensor([-1]), 1.0), [1, -1]),
    ],
)
def test_losses_at_the_margin_have_the_gradient_of_pytorch(loss: Any, slopes: list[float]) -> None:
    x = core.tensor([-1.0, 0.0], requires_grad=True)
    value = loss(x)
    assert value.item() == 0
    assert grad(value, x)[0].tolist() == slopes


@pytest.mark.parametrize("loss", [core.smooth_l1_loss, core.huber_loss])
def test_losses_are_straight_from_the_bend_on(loss: Any) -> None:
    x = core.tensor([1.0, -1.0, 0.5], requires_grad=True)
    (slope,) = grad(loss(x, core.zeros(3), 2), x, create_graph=True)
    assert slope.tolist() == [1, -1, 0.5]
    assert grad(slope.sum(), x)[0].tolist() == [0, 0, 1]


def test_bounds_that_cross_belong_to_max() -> None:
    x = core.tensor([-1.0, 0.5, 2.0, 4.0], requires_grad=True)
    low, high = (core.full((4,), v, requires_grad=True) for v in (3.0, 1.0))
    core.clamp(x, low, high).sum().backward()
    assert (x.grad.tolist(), low.grad.tolist(), high.grad.tolist()) == ([0] * 4, [0] * 4, [1] * 4)
    core.clamp(x, high, low).sum().backward()
    assert x.grad.tolist() == [0, 0, 1, 0]
    assert low.grad.tolist() == [0, 0, 0, 1]
    assert high.grad.tolist() == [2, 2, 1, 1]


# --- as_strided ---


def test_elements_that_share_memory_count_once() -> None:
    x = core.ones(3, dtype=core.float64, requires_grad=True)

    def f(x):
        return x.expand(4, 3).as_strided((2, 2), (0, 0))

    f(x).sum().backward()
    assert x.grad.tolist() == [4, 0, 0]
    gradcheck(f, [x], check_forward_ad=True)
    gradcheck(lambda x: x.as_strided((3, 2), (1, 1)).as_strided((4,), (1,)), [leaf(4)], check_forward_ad=True)


def test_what_lies_before_a_tensor_has_no_gradient() -> None:
    memory = core.arange(6, dtype=core.float64)
    x = memory[2:].requires_grad_()
    for offset, expected in ((0, [1, 0, 0, 0]), (3, [0, 1, 2, 1])):
        assert grad(x.as_strided((2, 2), (1, 1), offset).sum(), x)[0].tolist() == expected
    _, tangent = functional.jvp(lambda x: x.as_strided((2, 2), (1, 1), 1), x.detach(), x.detach())
    assert tangent.tolist() == [[0, 2], [2, 3]]


@pytest.mark.parametrize("dim", [0, 1, -3, 5])
@pytest.mark.parametrize("shapes", [[(0,)], [(0,), (0,)]])
def test_tensors_that_cat_ignores_have_gradients_for_any_dim(dim: int, shapes: list[tuple[int, ...]]) -> None:
    tensors = [core.zeros(shape, dtype=core.float64, requires_grad=True) for shape in shapes]
    assert [g.shape for g in grad(core.cat(tensors, dim).sum(), tensors)] == shapes
    batches = [core.zeros(2, *shape) for shape in shapes]
    assert vmap(lambda *given: core.cat(given, dim))(*batches).shape == (2, 0)


@pytest.mark.parametrize("targets", [[1, -100], [-100, -100]])
@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("weighted", [False, True])
def test_ignored_targets_have_no_gradient(
    targets: list[int], reduction: int, smoothing: float, weighted: bool
) -> None:
    """The gradient is the same if it is to be differentiated again, also if all targets are ignored."""
    x = core.tensor([[1.0, 2.0, 4.0], [3.0, -1.0, 0.0]], dtype=core.float64, requires_grad=True)
    weight = core.tensor([1.0, 2.0, 0.5], dtype=core.float64) if weighted else None
    loss = core.cross_entropy_loss(x, core.tensor(targets), weight, reduction, -100, smoothing).sum()
    once = grad(loss, x, retain_graph=True)[0]
    again = grad(loss, x, create_graph=True)[0]
    assert core.allclose(again, once, rtol=1e-12)
    assert once[1].tolist() == [0, 0, 0]
    assert grad((again**2).sum(), x)[0].isfinite().all()


# --- arguments without a formula ---

LOSSES = [
    lambda x, t, w, reduction: core.nll_loss(x, t, w, reduction, 1),
    lambda x, t, w, reduction: core.cross_entropy_loss(x, t, w, reduction, 1, 0.0),
    lambda x, t, w, reduction: core.cross_entropy_loss(x, t, w, reduction, 1, 0.1),
]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_weights_of_classes_have_gradients(loss, reduction: int) -> None:
    target = core.tensor([0, 2, 1, 2])
    gradcheck(lambda x, w: loss(x, target, w, reduction), [leaf(4, 3), leaf(3)], check_forward_ad=True)
    gradgradcheck(lambda w: loss(leaf(4, 3).detach() * 0 + 0.3, target, w, reduction), [leaf(3)])


def test_what_has_no_formula_raises_where_it_is_asked_for() -> None:
    x, mean, var = leaf(4, 3), leaf(3), leaf(3)
    y = core.batch_norm(x, None, None, mean, var, False, 0.1, 1e-5, False)
    assert grad(y.sum(), x, retain_graph=True)[0].shape == x.shape
    for argument in (mean, var):
        with pytest.raises(NotImplementedError, match=r"batch_norm.*running_(mean|var)"):
            grad(y.sum(), argument, retain_graph=True)
        with pytest.raises(NotImplementedError, match=r"batch_norm.*running_(mean|var)"):
            functional.jvp(
                lambda m: core.batch_norm(x.detach(), None, None, m, m.detach(), False, 0.1, 1e-5, False),
                argument.detach(),
                core.ones(3, dtype=core.float64),
            )


@pytest.mark.parametrize(
    "derivative", [d for d in DERIVATIVES if d.not_differentiable], ids=lambda d: d.op.name
)
def test_refusals_are_declared(derivative) -> None:
    for name in derivative.not_differentiable:
        assert "_no_gradient" in derivative.grads[(name,)].text
        assert name not in derivative.wanted


# --- grid_sampler ---


@pytest.mark.parametrize("padding", [1, 2])
@pytest.mark.parametrize("align", [False, True])
def test_points_at_the_limits_of_an_image_have_no_slope(padding: int, align: bool) -> None:
    """The derivative with respect to a position at the limit is 0: on one side, the sampled value is constant."""
    limit = 1.0 if align else 2 / 3
    image = core.arange(1, 10, dtype=core.float64).view(1, 1, 3, 3)
    points = [[limit, 0.1], [-limit, 0.1], [0.1, limit], [0.1, -limit]]
    grid = core.tensor([[points]], dtype=core.float64, requires_grad=True)
    core.grid_sampler(image, grid, 0, padding, align).sum().backward()
    across, along = (1.0, 3.0) if align else (1.5, 4.5)
    assert core.allclose(
        grid.grad[0, 0], core.tensor([[0, along], [0, along], [across, 0], [across, 0]]).double()
    )


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("align", [False, True])
def test_points_that_are_not_finite(mode: int, padding: int, align: bool) -> None:
    """Positions that are NaN or infinite give the same result with and without gradients: NaN or a pixel, by mode."""
    nan, inf = float("nan"), float("inf")
    x = core.arange(1, 10, dtype=core.float64).view(1, 1, 3, 3)
    points = [[nan, 0.0], [0.1, nan], [nan, nan], [inf, 0.0], [-inf, 0.2], [1e6, 0.3], [0.2, -0.3]]
    # For larger positions than 1e6, the result of a reflection depends on rounding errors, so results cannot be
    # compared.
    grid = core.tensor([[points]], dtype=core.float64)
    plain = core.grid_sampler(x, grid, mode, padding, align)
    recorded = core.grid_sampler(
        x.clone().requires_grad_(), grid.clone().requires_grad_(), mode, padding, align
    )
    assert core.allclose(recorded.detach(), plain, equal_nan=True)
    moved = grid.clone().requires_grad_()
    core.grid_sampler(x, moved, mode, padding, align).sum().backward()
    slopes = moved.grad.isnan().flatten(0, 2).all(1)
    assert slopes.tolist() == plain.flatten().isnan().tolist()
    values = plain.flatten().tolist()
    if mode == 2 or (mode == 0 and padding == 0):
        assert all(v != v for v in values[:5])
    elif mode == 1:
        assert values[:3] == ([0, 0, 0] if padding == 0 else [4, 2, 1])  # as in PyTorch
    assert all(v == v for v in values[5:])


@pytest.mark.parametrize("dim", [None, 1])
@pytest.mark.parametrize("values", [[1.5, 0.25, 0, 0, 2, 0.5], [0, 0, 0, 2, 3, 4], [1, 2, 0, 3, 4, 5]])
def test_products_of_zeros_have_their_higher_derivatives(dim: int | None, values: list[float]) -> None:
    """The derivatives of a product with zeros equal the derivatives of the factors multiplied one after the other."""

    def one_by_one(x: core.Tensor) -> core.Tensor:
        rows = [x.reshape(-1)] if dim is None else list(x)
        results = []
        for row in rows:
            result = row[0]
            for factor in row[1:]:
                result = result * factor
            results.append(result)
        return core.stack(results)

    def derivatives(f: Any) -> list[core.Tensor]:
        x = core.tensor(values, dtype=core.float64).reshape(2, 3).clone().requires_grad_()
        found, weights = [f(x)], core.arange(1, 7, dtype=core.float64).reshape(2, 3)
        for _ in range(3):
            of = found[-1] * (weights if found[-1].dim() == 2 else 1)
            found += grad(of.sum(), x, create_graph=True)
        return found[1:]

    product = derivatives(lambda x: x.prod() if dim is None else x.prod(dim))
    assert all(core.allclose(a, b) for a, b in zip(product, derivatives(one_by_one), strict=True))
    running = derivatives(
        lambda x: (x.reshape(-1).cumprod(0) if dim is None else x.cumprod(dim)).select(dim or 0, -1)
    )
    assert all(core.allclose(a, b) for a, b in zip(running, derivatives(one_by_one), strict=True))


@pytest.mark.parametrize(
    ("name", "slope"),
    [
        ("log_sigmoid", -math.exp(-40)),
        ("softplus", math.exp(-40)),
        ("silu", -38 * math.exp(-40)),
        ("logaddexp", math.exp(-40)),
        ("logaddexp2", math.log(2) * 2.0**-40),
    ],
)
def test_small_second_derivatives_keep_their_digits(name: str, slope: float) -> None:
    """If the first derivative rounds to 1, the second must not be computed as a difference from 1."""
    x = core.tensor([40.0, -40.0], dtype=core.float64, requires_grad=True)
    other = (core.zeros_like(x),) if name.startswith("logaddexp") else ()
    more = {"threshold": 100.0} if name == "softplus" else {}
    (first,) = grad(getattr(core, name)(x, *other, **more).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    assert second.tolist() == pytest.approx([slope, slope], rel=1e-10)


@pytest.mark.parametrize("dtype", [core.float16, core.bfloat16])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("rms_norm", ((4,), None, 1e-5)),
        ("layer_norm", ((4,), None, None, 1e-5)),
        ("group_norm", (1,)),
        ("batch_norm", (None, None, None, None, True, 0.1, 1e-5)),
    ],
)
def test_second_derivatives_of_norms_are_finite_where_all_is_zero(
    name: str, arguments: tuple[Any, ...], dtype: core.dtype
) -> None:
    """The third power of the scale, the square root of 1 / eps, overflows in float16."""
    x = core.zeros((1, 1, 4) if name != "rms_norm" else (1, 4), dtype=dtype, requires_grad=True)
    result = getattr(core, name)(x, *arguments)
    (first,) = grad((result * core.arange(1.0, 5.0)).sum(), x, create_graph=True)
    (second,) = grad((first * core.arange(1.0, 5.0)).sum(), x)
    assert first.dtype == second.dtype == dtype
    assert second.isfinite().all()


# The ends of the domains of functions whose slope there is infinite, and a number inside of the domain.
ENDS = {
    "asin": (-1, 1, 0),
    "acos": (-1, 1, 0),
    "atanh": (-1, 1, 0),
    "acosh": (1, 2),
    "erfinv": (-1, 1, 0),
    "logit": (0, 1, 0.5),
    "special_ndtri": (0, 1, 0.5),
    "special_entr": (0, 1),
    "sqrt": (0, 1),
    "rsqrt": (0, 1),
    "log": (0, 1),
    "log2": (0, 1),
    "log10": (0, 1),
    "log1p": (-1, 0),
    "digamma": (0, 1),
    "lgamma": (0, 1),
}


@pytest.mark.parametrize("dtype", [core.float32, core.float64])
@pytest.mark.parametrize("name", ENDS)
def test_higher_derivatives_at_the_ends_of_a_domain_are_limits(name: str, dtype: Any) -> None:
    def derivatives(x: Any) -> list[float]:
        x = x.detach().requires_grad_()
        y, found = getattr(core, name)(x), []
        for _ in range(3):
            (y,) = grad(y, x, create_graph=True)
            found.append(y.item())
        return found

    *ends, inside = (core.tensor(float(value), dtype=dtype) for value in ENDS[name])
    for end in ends:
        near = derivatives(core.nextafter(end, inside))
        assert derivatives(end) == [math.copysign(math.inf, value) for value in near]


def test_second_derivatives_of_cross_entropy_at_zero_and_one() -> None:
    p = core.tensor([0.0, 1.0, 1e-20, 0.25, 0.25], dtype=core.float64, requires_grad=True)
    target = core.tensor([0.0, 1.0, 0.0, 0.25, 1.0], dtype=core.float64)
    (slope,) = grad(core.binary_cross_entropy(p, target, reduction=2), p, create_graph=True)
    assert slope.tolist() == pytest.approx([0, 0, 1e-8, 0, -4])
    # The terms are target / p ** 2 and (1 - target) / (1 - p) ** 2, and those of the other target are 0.
    (bend,) = grad(slope.sum(), p)
    assert bend.tolist() == pytest.approx([1, 1, 1, 16 / 3, 16])


def test_logit_has_no_slope_where_it_has_no_value() -> None:
    x = core.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    assert str(grad(x.logit().sum(), x)[0].tolist()) == "[nan, 4.0, nan]"
    assert grad(x.logit(0.25).sum(), x)[0].tolist() == [0, 4, 0]


@pytest.mark.parametrize("dtype", [core.float32, core.float64])
def test_derivatives_of_log_ndtr_far_from_zero(dtype: core.dtype) -> None:
    """Derivatives underflow for large positive arguments, and are those of a parabola for large negative arguments."""
    x = core.tensor([5e4, 40.0, 0.0, -4.0, -5e4], dtype=dtype, requires_grad=True)
    (first,) = grad(core.special_log_ndtr(x).sum(), x, create_graph=True)
    (second,) = grad(first[:4].sum(), x)
    near = 1e-4 if dtype == core.float32 else 1e-8
    assert first.tolist() == pytest.approx([0, 0, 0.79788456080, 4.22560714449, 5e4], rel=near)
    assert second.tolist() == pytest.approx([0, 0, -0.63661977237, -0.95332716160, 0], rel=near)


@pytest.mark.parametrize("name", ["asin", "acos"])
def test_slopes_of_large_complex_numbers_are_small(name: str) -> None:
    """The square of the argument overflows in its real or imaginary part."""
    x = core.tensor([1e10 + 1e20j, 1e20 + 1e10j], dtype=core.complex64, requires_grad=True)
    (found,) = grad(getattr(core, name)(x).real.sum(), x)
    assert abs(found).tolist() == pytest.approx([0.0, 0.0], abs=1e-15)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_gradients_of_sampling_know_positions_beyond_half_precision(mode: int) -> None:
    """grid_sampler reads the same pixels with and without gradients, although float16 cannot represent all positions."""
    image = (core.arange(4096.0) % 7).half().reshape(1, 1, 1, 4096)
    grid = core.zeros(1, 1, 64, 2, dtype=core.float16)
    grid[..., 0] = core.linspace(0.5, 0.9, 64)
    plain = core.grid_sampler(image, grid, mode, 0, False)
    image.requires_grad_(), grid.requires_grad_()
    recorded = core.grid_sampler(image, grid, mode, 0, False)
    wide = [t.detach().float().requires_grad_() for t in (image, grid)]
    exact = core.grid_sampler(*wide, mode, 0, False)
    for found, expected in zip(
        (plain, recorded, *grad(recorded.sum(), [image, grid])),
        (exact, exact, *grad(exact.sum(), wide)),
        strict=True,
    ):
        assert core.allclose(found.float(), expected, rtol=2e-3, atol=2e-3)


def test_tangent_of_a_small_divisor_of_half_precision() -> None:
    """If the dividend has a larger dtype, the quotient and its tangent are computed in this dtype."""
    x, y = core.tensor([0.0, 2.0]), core.tensor([1e-6, 6e-5], dtype=core.float16)
    (tangent,) = functional.jvp(lambda y: (core.div(x, y),), (y,), (core.ones_like(y),))[1]
    assert tangent.tolist() == pytest.approx((-x.double() / y.double().square()).tolist(), rel=1e-5)


@pytest.mark.parametrize(
    ("factors", "wanted"),
    [
        ([-math.inf], [1]),
        ([math.inf, 2], [2, math.inf]),
        ([math.inf, 0], [0, math.inf]),
        ([math.inf, -math.inf, 2], [-math.inf, math.inf, -math.inf]),
    ],
)
@pytest.mark.parametrize("dim", [None, 0])
def test_gradient_of_a_product_with_infinite_factors(
    dim: int | None, factors: list[float], wanted: list[float]
) -> None:
    """The gradient of a factor is the product of the other factors."""
    x = core.tensor(factors, requires_grad=True)
    product = x.prod() if dim is None else x.prod(dim)
    product.backward()
    assert x.grad is not None
    assert x.grad.tolist() == wanted


def test_gradient_of_a_product_with_zeros_in_half_precision() -> None:
    """If two factors are zero, all gradients are 0, even if the product of the other factors overflows in float16."""
    x = core.tensor([0.0, 300.0, 0.0, 300.0], dtype=core.float16, requires_grad=True)
    assert grad(x.prod(), x)[0].tolist() == [0, 0, 0, 0]
    one = core.tensor([[0.0, 200.0, 300.0]], dtype=core.float16, requires_grad=True)
    assert grad(one.prod(1).sum() * 2**-4, one)[0].tolist() == [[3750, 0, 0]]


def test_a_power_of_zero_stops_a_gradient_that_is_not_finite() -> None:
    base = core.tensor([1.0, 3.0, 0.0], requires_grad=True)
    exponent = core.tensor([0.0, 2.0, 0.0])
    power = base**exponent
    (found,) = grad(power, base, core.tensor([-math.inf, 1.0, math.nan]))
    assert found.tolist() == [0.0, 6.0, 0.0]


@pytest.mark.parametrize("shape", [(4, 4), (4, 6)])
def test_gradients_of_qr_of_a_nearly_singular_matrix_keep_their_digits(shape: tuple[int, int]) -> None:
    """The last element of R's diagonal is 1e-3. The gradients do not depend on its inverse."""
    core.manual_seed(0)
    upper = core.triu(core.randn(*shape)) + 2 * core.eye(*shape)
    upper[3, 3] = 1e-3
    matrix = core.linalg.qr(core.randn(4, 4))[0] @ upper
    weights = [core.randn(4, 4), core.randn(*shape)]

    def gradients(x: core.Tensor) -> list[core.Tensor]:
        factors = core.linalg.qr(x)
        loss = sum((f * w).sum() for f, w in zip(factors, weights, strict=True))
        (first,) = grad(loss, x, create_graph=True)
        (second,) = grad((first * weights[1]).sum(), x)
        return [first.detach(), second]

    found = gradients(matrix.requires_grad_())
    exact = gradients(matrix.detach().double().requires_grad_())
    for got, wanted in zip(found, exact, strict=True):
        assert (got - wanted).abs().max() < 2e-5 * wanted.abs().max()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_gradients_of_determinants_in_a_batch_are_independent(value: float) -> None:
    """The gradient of a matrix that is not finite is NaN, and that of a singular matrix beside it is its cofactors."""
    matrices = core.tensor([[[value, 2.0], [4.0, 1.0]], [[2.0, 1.0], [4.0, 2.0]], [[1.0, 2.0], [3.0, 5.0]]])
    x = matrices.requires_grad_()
    (found,) = grad(core.linalg.det(x).sum(), x)
    assert found[0].isnan().any()
    assert core.allclose(found[1:], core.tensor([[[2.0, -4.0], [-1.0, 2.0]], [[5.0, -3.0], [-2.0, 1.0]]]))


def test_recorded_gradients_of_a_small_determinant_keep_their_digits() -> None:
    """The determinant and the inverse come from the same factors, so that their rounding errors cancel."""
    core.manual_seed(0)
    matrix = core.randn(4, 4)
    matrix[3] = matrix[:3].sum(0) * 0.5 + 1e-2 * core.randn(4)
    weights = core.randn(4, 4)

    def gradients(x: core.Tensor) -> list[core.Tensor]:
        (first,) = grad(core.linalg.det(x), x, create_graph=True)
        return [first.detach(), *grad((first * weights).sum(), x)]

    found = gradients(matrix.requires_grad_())
    exact = gradients(matrix.detach().double().requires_grad_())
    assert (found[0] - exact[0]).abs().max() < 1e-6 * exact[0].abs().max()
    assert (found[1] - exact[1]).abs().max() < 1e-4 * exact[1].abs().max()


@pytest.mark.parametrize("dtype", [core.float16, core.bfloat16, core.float32, core.float64])
@pytest.mark.parametrize("name", ["i1", "i1e"])
def test_bessel_functions_rise_by_half_at_tiny_numbers(name: str, dtype: core.dtype) -> None:
    """The results of subnormal numbers have no digits, so they must not be divided by their arguments."""
    tiny = [0.0, 5e-324, -1e-310, 1e-45, -3e-42, 1e-39, 1e-31, 1e-20]
    x = core.tensor(tiny, dtype=dtype, requires_grad=True)
    getattr(core.special, name)(x).sum().backward()
    assert x.grad.tolist() == [0.5] * len(tiny)
