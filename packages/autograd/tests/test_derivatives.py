"""Every formula against differences: reverse, forward and second order, over the samples of the operators' entries."""

from __future__ import annotations

from pathlib import Path

import pytest

import rushlight_core as core
from rushlight_autograd import gradcheck, gradgradcheck
from rushlight_core.codegen.derivatives import load_derivatives
from rushlight_core.codegen.loader import load_ops
from rushlight_testing.samples import samples_of

OPS = load_ops(Path(core.__file__).parent / "ops")
DERIVATIVES = load_derivatives(Path(__file__).parents[1] / "derivatives", OPS)
MOST_ELEMENTS = 24  # differences cost two calls for each

# The sample of embedding with a padding_idx is left out: by definition its gradient is not what differences give.
# Piecewise constant or linear operators whose samples may lie on a kink are sampled away from zero by the language.
CASES = [
    (d, sample.text)
    for d in DERIVATIVES
    if "hidden" not in d.op.variants and not d.op.is_inplace and not d.op.random
    for sample in d.op.samples
    if "special" not in sample.text and not (d.op.base == "embedding" and sample.text.endswith(", 1"))
]


def _function(name: str):
    return getattr(core, name, None) or getattr(core.Tensor, name)


@pytest.mark.parametrize(("derivative", "text"), CASES, ids=lambda v: v if isinstance(v, str) else v.op.name)
def test_formula(derivative, text) -> None:
    function = _function(derivative.op.base)
    checked = 0
    for sample in samples_of(text, core, "float64"):
        # Only arguments that have a formula: the weights of classes, say, are constants.
        known = {name for names in derivative.grads for name in names}
        differentiable = [
            x for a, x in zip(derivative.op.schema.arguments, sample.args, strict=False) if a.name in known
        ]
        tensors = [x for x in differentiable if isinstance(x, core.Tensor) and x.dtype == core.float64]
        tensors += [
            y
            for x in differentiable
            if isinstance(x, (tuple, list))
            for y in x
            if isinstance(y, core.Tensor) and y.dtype == core.float64
        ]
        if not tensors or sum(x.numel() for x in tensors) > MOST_ELEMENTS:
            continue

        def call(*leaves, sample=sample, tensors=tensors):
            again = dict(zip(map(id, tensors), leaves, strict=True))

            def put(x):
                return type(x)(put(y) for y in x) if isinstance(x, (tuple, list)) else again.get(id(x), x)

            return function(*(put(x) for x in sample.args), **sample.kwargs)

        inputs = [x.detach().clone().requires_grad_() for x in tensors]
        out = call(*inputs)
        outputs = out if isinstance(out, (tuple, list)) else (out,)
        if not any(isinstance(y, core.Tensor) and y.requires_grad for y in outputs):
            continue
        if any(bool(core.isnan(y.detach()).any()) for y in outputs if y.is_floating_point()):
            continue  # the variance of one element
        checked += 1
        gradcheck(call, inputs, check_forward_ad=bool(derivative.jvp))
        gradgradcheck(call, inputs)
    if not checked:
        pytest.skip("no floating-point sample that is small enough")


def test_every_differentiable_kernel_has_a_formula() -> None:
    """What is neither differentiable through its parts nor declared not to be must have an entry."""
    known = {d.op.name for d in DERIVATIVES}
    missing = [
        op.name
        for op in OPS
        if op.kind in ("pointwise", "reduce", "view", "custom")
        and op.differentiable
        and op.result != "Bool"
        and op.name not in known
        and op.name != "as_strided"  # by hand: src/record.cpp
        and any(a.type.is_tensor for a in op.schema.arguments)
        and not op.writes
        and not any(a.write for a in op.schema.arguments)
    ]
    assert not missing


def test_embedding_pads() -> None:
    """The row of padding_idx is read as any other and gets no gradient: PyTorch's definition, which no difference shows."""
    weight = core.ones(5, 3, dtype=core.float64).requires_grad_()
    rows = core.embedding(weight, core.tensor([[0, 1], [1, 4]]), 1)
    rows.sum().backward()
    assert rows.detach().sum().item() == 12
    assert weight.grad.sum(1).tolist() == [3, 0, 0, 0, 3]


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
