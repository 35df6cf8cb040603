"""jacrev, jacfwd, hessian, batched gradients of all operators, and Functions inside of vmap."""

from __future__ import annotations

import warnings

import pytest
from vmap_samples import CASES, calls

import rushlight_core as core
from rushlight_autograd import Function, functional
from rushlight_autograd import grad as gradient
from rushlight_autograd.batching import slow_path_taken, vmap
from rushlight_autograd.jacobians import hessian, jacfwd, jacrev
from rushlight_autograd.transforms import grad, jvp, vjp
from rushlight_core import Tensor

D = core.float64
# Kernels of gradients that are computed example by example.
SLOW = {"_ctc_loss_backward", "embedding_dense_backward", "_embedding_bag", "_sampled_products", "_sparse_mm"}


@pytest.mark.parametrize(("op", "text"), CASES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_gradients_for_many_vectors(op, text) -> None:
    """Compare vmap of a vjp with a loop over the vectors. This tests the batching rules of the operators in formulas."""
    slow_path_taken(True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls(op, text):
            which = [i for i, x in enumerate(call.tensors) if x.is_floating_point() and x.dtype is D]
            if which and op.differentiable:
                _compare(op, call, which)
    taken = set(slow_path_taken(True))
    # The slow path is allowed for tensors without dimensions, and for one sample whose target has a dimension.
    rare = text.startswith(("t(), ", "t(3), t(1, "))
    slow = SLOW | {"index_add_", "index_select", "masked_select", "nll_loss"} if rare else SLOW
    assert taken <= slow, f"the gradient of {op.name} takes the slow path through {sorted(taken - slow)}"


def _compare(op, call, which) -> None:
    def function(*leaves: Tensor):
        given = list(call.tensors)
        for i, x in zip(which, leaves, strict=True):
            given[i] = x
        y = call.function(*given)
        results = y if isinstance(y, (tuple, list)) else (y,)
        return [r for r in results if isinstance(r, Tensor) and r.dtype is D and r.requires_grad]

    try:
        outputs, back = vjp(function, *(call.tensors[i] for i in which))
    except (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError):
        return
    if not outputs:
        return
    vectors = [core.stack([core.ones_like(y) * (1 + k) + y.detach() * k for k in range(3)]) for y in outputs]
    try:
        want = [back([v[k] for v in vectors]) for k in range(3)]
    except (RuntimeError, NotImplementedError):
        return  # no derivative
    got = vmap(back)(vectors)
    for i, g in enumerate(got):
        expected = core.stack([w[i] for w in want])
        assert g.shape == expected.shape
        assert core.allclose(g, expected, rtol=1e-7, atol=1e-9, equal_nan=True), (
            f"{op.name}: input {i}\n{g}\n{expected}"
        )


def _x(*values: float) -> Tensor:
    return core.tensor(values, dtype=D)


X = _x(0.3, 0.7, 1.1)


def _cube(x: Tensor) -> Tensor:
    return (x**3).sum() * x[0]


def _matrix() -> Tensor:
    a, b, c = X.tolist()
    s = a**3 + b**3 + c**3
    diagonal = 6 * X * a + _x(6 * a * a, 0, 0)
    off = 3 * X**2 * _x(0, 1, 1)
    result = core.diag(diagonal)
    result[0] += off
    result[:, 0] += off
    assert s > 0
    return result


@pytest.mark.parametrize("outer", [jacrev, jacfwd])
@pytest.mark.parametrize("inner", [jacrev, jacfwd, grad])
def test_second_derivatives(outer, inner) -> None:
    result = outer(inner(_cube))(X)
    assert core.allclose(result, _matrix())
    assert not result.requires_grad
    assert core.allclose(hessian(_cube)(X), result)


@pytest.mark.parametrize("transform", [jacrev, jacfwd])
@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_jacobians(transform, chunk) -> None:
    def f(x, state):
        return {"sum": x.sum(), "product": x.view(3, 1) * state["w"]}

    state = {"w": _x(1, 2)}
    got = transform(f, argnums=(0, 1), chunk_size=chunk)(X, state)
    assert got["sum"][0].tolist() == [1, 1, 1]
    assert got["sum"][1]["w"].tolist() == [0, 0]
    by_x = core.zeros(3, 2, 3, dtype=D)
    by_w = core.zeros(3, 2, 2, dtype=D)
    for i in range(3):
        for j in range(2):
            by_x[i, j, i] = state["w"][j]
            by_w[i, j, j] = X[i]
    assert core.allclose(got["product"][0], by_x)
    assert core.allclose(got["product"][1]["w"], by_w)
    result, aux = transform(lambda x: (x * 2, x + 1), has_aux=True)(X)
    assert core.allclose(result, 2 * core.eye(3, dtype=D))
    assert core.allclose(aux, X + 1)


INDEX = core.tensor([0, 2])
WRITES = {
    "index_add": lambda x: core.zeros(4, dtype=D).index_add(0, core.tensor([0, 1, 0]), x),
    "scatter": lambda x: core.zeros(4, dtype=D).scatter(0, core.tensor([3, 1, 0]), x),
    "index_put": lambda x: core.zeros(4, dtype=D).index_put((core.tensor([3, 1, 0]),), x),
    "masked_scatter": lambda x: core.zeros(4, dtype=D).masked_scatter(
        core.tensor([True, False, True, True]), x
    ),
    "put": lambda x: core.zeros(4, dtype=D).put(core.tensor([3, 1, 0]), x),
    "fill": lambda x: core.fill(core.zeros(4, dtype=D), x[1]),
    "index": lambda x: x[INDEX] ** 2,
    "mask": lambda x: x[core.tensor([True, False, True])] ** 2,
    "sort": lambda x: x.sort()[0] ** 2,
    "buffer": lambda x: _filled(core.zeros(2, 3, dtype=D), x),
    "assigned": lambda x: _filled((x * 1).expand(2, 3).clone(), x),
    "scaled": lambda x: _scaled(x * 1, x),
}


def _filled(buffer: Tensor, x: Tensor) -> Tensor:
    buffer[0] = x * x
    buffer[1, 1:] = x[0] * x[:2]
    return buffer


def _scaled(y: Tensor, x: Tensor) -> Tensor:
    y[:2].mul_(x[1:])
    return y


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize("name", WRITES)
def test_jacobians_of_functions_that_write(name: str) -> None:
    """The tangents of a tensor that is written are batched, although the tensor itself is not."""
    f = WRITES[name]

    def total(x: Tensor) -> Tensor:
        y = f(x)
        return (y**3).sum()

    first = jacrev(f)(X)
    assert core.allclose(jacfwd(f)(X), first)
    second = core.stack([vjp(grad(total), X)[1](e)[0] for e in core.eye(3, dtype=D)])
    assert core.allclose(core.stack([jvp(grad(total), (X,), (e,))[1] for e in core.eye(3, dtype=D)]), second)
    for found in (hessian(total), jacrev(jacrev(total)), jacrev(jacfwd(total)), jacfwd(jacfwd(total))):
        assert core.allclose(found(X), second)
    wanted = functional.jacobian(f, X, strategy="forward-mode", vectorize=True)
    assert core.allclose(wanted, first)


def test_gradients_that_are_not_batched_are_added() -> None:
    """A gradient of zeros that does not depend on the vectors is added to a batched gradient."""
    found = jacrev(grad(lambda x: (x.cumprod(0) ** 2).sum()))(_x(1, 2).view(1, 2))
    assert core.equal(found.view(2, 2), 2 * core.eye(2, dtype=D))


def test_jacobians_of_each_example() -> None:
    rows = core.stack([X, 2 * X])
    for transform in (jacrev, jacfwd, hessian):
        got = vmap(transform(_cube))(rows)
        assert core.allclose(got, core.stack([transform(_cube)(x) for x in rows]))
    assert core.allclose(jacfwd(jacfwd(jacfwd(_cube)))(X), jacrev(jacrev(jacrev(_cube)))(X))


def test_a_jacobian_goes_on_into_the_graph() -> None:
    w = X.clone().requires_grad_()
    jacrev(lambda x: x * w)(X).sum().backward()
    assert w.grad.tolist() == [1, 1, 1]
    w.grad = None
    jacfwd(lambda x: x * w)(X).sum().backward()
    assert w.grad.tolist() == [1, 1, 1]


def test_products_with_the_hessian() -> None:
    v = _x(1, 2, 3)
    want = _matrix() @ v
    assert core.allclose(jvp(grad(_cube), (X,), (v,))[1], want)
    assert core.allclose(vjp(grad(_cube), X)[1](v)[0], want)
    assert core.allclose(grad(lambda x: (grad(_cube)(x) * v).sum())(X), want)


def test_the_function_runs_once() -> None:
    runs = []

    def f(x):
        runs.append(1)
        return x.sin()

    jacrev(f)(X)
    jacfwd(f)(X)
    functional.jacobian(f, X, vectorize=True)
    assert len(runs) == 3


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_functional_jacobian(strategy: str) -> None:
    def f(a, b):
        return a * b.sum(), (a * b).sum()

    for inputs, function in (((X, X + 1), f), (X, core.sin)):
        plain = functional.jacobian(function, inputs, strategy=strategy)
        batched = functional.jacobian(function, inputs, strategy=strategy, vectorize=True)
        _assert_alike(plain, batched)
    twice = functional.hessian(_cube, X, vectorize=True, outer_jacobian_strategy=strategy)
    assert core.allclose(twice, _matrix())
    with pytest.raises(RuntimeError, match="mutually exclusive"):
        functional.jacobian(core.sin, X, vectorize=True, strict=True)
    x = X.clone().requires_grad_()
    functional.jacobian(_cube, x, create_graph=True, vectorize=True, strategy=strategy).sum().backward()
    assert core.allclose(x.grad, _matrix().sum(0))


def _assert_alike(a, b) -> None:
    if isinstance(a, tuple):
        for one, other in zip(a, b, strict=True):
            _assert_alike(one, other)
    else:
        assert core.allclose(a, b)


def test_batched_gradients() -> None:
    x = X.clone().requires_grad_()
    y = x.sin()
    (rows,) = gradient(y, x, core.eye(3, dtype=D), is_grads_batched=True, retain_graph=True)
    assert core.allclose(rows, core.diag(X.cos()))
    (rows,) = gradient(y, x, core.eye(3, dtype=D), is_grads_batched=True, create_graph=True)
    rows.sum().backward()
    assert core.allclose(x.grad, -X.sin())
    with pytest.raises(RuntimeError, match="the same first dimension"):
        gradient(x.sum(), x, core.tensor(1.0, dtype=D), is_grads_batched=True)


# --- Functions ---


class Cube(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, w):
        return x**3 * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        assert len(ctx.needs_input_grad) == 2
        return g * 3 * x**2 * w, g * x**3


class Scale(Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None

    @staticmethod
    def vmap(info, in_dims, x, k):
        assert in_dims == (0, None)
        assert (info.batch_size, info.randomness) == (3, "error")
        return Scale.apply(x, k), 0


def test_functions_inside_of_vmap() -> None:
    rows, w = core.stack([X, X * 2]), _x(1, 2, 3).requires_grad_()
    got = vmap(Cube.apply, (0, None))(rows, w)
    assert core.allclose(got, rows**3 * w)
    got.sum().backward()
    assert core.allclose(w.grad, (rows**3).sum(0))
    assert core.allclose(
        vmap(grad(lambda x: Cube.apply(x, w.detach()).sum()))(rows), 3 * rows**2 * w.detach()
    )
    twice = vmap(vmap(Cube.apply))(rows.view(2, 3, 1), core.stack([X, X]).view(2, 3, 1))
    assert core.allclose(twice.view(2, 3), rows**3 * X)
    second = vmap(grad(lambda x: grad(lambda x: Cube.apply(x, w.detach()).sum())(x).sum()))(rows)
    assert core.allclose(second, 6 * rows * w.detach())
    assert core.allclose(vmap(lambda x: Scale.apply(x, 3))(X), X * 3)


def test_functions_that_say_nothing_of_batches() -> None:
    class Plain(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(RuntimeError, match=r"Plain: cannot be used inside vmap.*\n.*generate_vmap_rule"):
        vmap(Plain.apply)(X)

    class Both(Scale):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match="must have only one of them"):
        vmap(lambda x: Both.apply(x, 2))(X)


def test_gradcheck_of_batches() -> None:
    from rushlight_autograd import GradcheckError, gradcheck

    x = X.clone().requires_grad_()
    assert gradcheck(lambda x: x.sin().cumsum(0), [x], check_batched_grad=True)

    class Wrong(Function):
        """The gradient is right for one vector, and twice as large for several vectors."""

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * (4 if g._is_batched() else 2)

    assert gradcheck(Wrong.apply, [x])
    with pytest.raises(GradcheckError, match="batched reverse"):
        gradcheck(Wrong.apply, [x], check_batched_grad=True)


def test_gradcheck_of_batches_of_tangents() -> None:
    from rushlight_autograd import GradcheckError, gradcheck
    from rushlight_autograd.forward_ad import unpack_dual

    x = X.clone().requires_grad_()
    both = {"check_forward_ad": True, "check_batched_forward_grad": True}
    assert gradcheck(lambda x: (x.sin().cumsum(0), core.ones(2)), [x], **both)
    z = core.complex(X, X.cos()).requires_grad_()
    assert gradcheck(lambda z: z * z.conj(), [z], **both)

    def wrong(x):
        """The tangent is right for one vector, and twice as large for several vectors."""
        tangent = unpack_dual(x).tangent
        return x * (4 if tangent is not None and tangent._is_batched() else 2)

    assert gradcheck(wrong, [x], check_forward_ad=True)
    with pytest.raises(GradcheckError, match="batched forward"):
        gradcheck(wrong, [x], **both)
    with pytest.raises(ValueError, match="requires check_forward_ad=True"):
        gradcheck(wrong, [x], check_batched_forward_grad=True)
    with pytest.raises(ValueError, match="requires check_backward_ad=True"):
        gradcheck(wrong, [x], check_batched_grad=True, check_backward_ad=False)


@pytest.mark.parametrize("dtype", [core.bfloat16, core.float16, core.float32])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_jacobians_of_losses_have_the_dtype_of_their_input(dtype, smoothing: float, weighted: bool) -> None:
    x, target = core.rand(4, 3).to(dtype), core.tensor([0, 2, 1, 2])
    weight = core.tensor([1.0, 2.0, 0.5]).to(dtype) if weighted else None
    jacobian = jacrev(lambda x: core.cross_entropy_loss(x, target, weight, 1, -100, smoothing))(x)
    assert jacobian.dtype == dtype
    (expected,) = gradient(core.cross_entropy_loss(x.requires_grad_(), target, weight, 1, -100, smoothing), x)
    assert core.allclose(jacobian.float(), expected.float(), rtol=0.02, atol=1e-3)


@pytest.mark.parametrize("transform", [jacrev, jacfwd])
def test_complex_jacobians_are_refused(transform) -> None:
    """The matrix of a function such as conj is real and twice as large; forward and reverse mode would disagree."""
    with pytest.raises(RuntimeError, match="arguments that argnums selects must be real"):
        transform(core.conj)(core.ones(2, dtype=core.complex64))
    with pytest.raises(RuntimeError, match="output of func must be real"):
        transform(lambda x: x * 1j)(core.ones(2))
    with pytest.raises(RuntimeError, match="must be real"):
        hessian(lambda z: z.abs().sum())(core.ones(2, dtype=core.complex64))
    beside = transform(lambda x, z: (x * z).abs())(core.ones(2), core.tensor([3 + 4j, 1j]))
    assert core.allclose(beside, core.tensor([[5.0, 0.0], [0.0, 1.0]]))


@pytest.mark.parametrize("transform", [jacrev, jacfwd])
@pytest.mark.parametrize("output", [(), [], {}, None, 1.0])
def test_jacobians_of_functions_that_return_no_tensor(transform, output) -> None:
    with pytest.raises(RuntimeError, match="output of func must contain"):
        transform(lambda x: output)(core.ones(2))
