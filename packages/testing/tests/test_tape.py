"""The autograd kit with the pure-Python tape, which uses the same stage, state and formulas as rushlight-autograd.

A process has only one provider of gradients, which is the tape in this folder. Tests that need rushlight-autograd are
in that package.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import rushlight_core as core
from rushlight_core.codegen.derivatives import load_derivatives
from rushlight_core.codegen.formulas import HELPERS
from rushlight_core.codegen.loader import load_ops
from rushlight_core.seams import stages
from rushlight_testing import samples_of, tape
from rushlight_testing.conformance import AutogradContract
from rushlight_testing.conformance.autograd import check_gradients
from rushlight_testing.tape import formulas

pytestmark = pytest.mark.swap

FORMULAS = Path(__file__).parents[2] / "autograd" / "derivatives"
OPS = load_ops()
DERIVATIVES = load_derivatives(FORMULAS, OPS)


@pytest.fixture(scope="module", autouse=True)
def _attached() -> None:
    tape.attach(FORMULAS)


class TestTape(AutogradContract):
    backward = staticmethod(tape.backward)
    grad = staticmethod(tape.grad)


CASES = [
    pytest.param(d, sample.text, id=f"{d.op.name}({sample.text})")
    for d in DERIVATIVES
    if d.grads and "function" in d.op.variants and not d.op.is_inplace and not d.op.random
    for sample in d.op.samples
    if "special" not in sample.text and not (d.op.base == "embedding" and sample.text.endswith(", 1"))
]


@pytest.mark.parametrize(("derivative", "text"), CASES)
def test_every_formula_can_be_evaluated(derivative, text: str) -> None:
    """Evaluate the formulas that autograd compiles, and compare first derivatives with differences."""
    function = getattr(core, derivative.op.base)
    known = {n for names, f in derivative.grads.items() if "_no_gradient" not in f.text for n in names}
    names = [a.name for a in derivative.op.schema.arguments]
    checked = False
    for sample in samples_of(text, core, "float64"):
        which = [
            i
            for i, (name, x) in enumerate(zip(names, sample.args, strict=False))
            if name in known and isinstance(x, core.Tensor) and x.dtype == core.float64
        ]
        if not which or sum(sample.args[i].numel() for i in which) > 16:
            continue

        def call(*leaves, sample=sample, which=which):
            args = list(sample.args)
            for i, leaf in zip(which, leaves, strict=True):
                args[i] = leaf
            made = function(*args, **sample.kwargs)
            return made[0] if isinstance(made, tuple) else made

        inputs = [sample.args[i].detach().clone().requires_grad_() for i in which]
        out = call(*inputs)
        if not out.requires_grad or bool(core.isnan(out.detach()).any()):
            continue
        check_gradients(call, inputs, tape.grad, second=False)
        checked = True
    if not checked:
        pytest.skip("no floating-point sample that is small enough")


def test_gradients_on_another_device(toy_device: Path) -> None:
    """Two second implementations together: the operators that the tape records run on the toy device."""
    core.devices.load_backend(toy_device)
    x = core.tensor([1.0, 2.0, 3.0], device="toy", requires_grad=True)
    y = core.tensor(2.0, device="toy", requires_grad=True)
    (x * x * y + x).sum().backward()
    assert x.grad.device == x.device
    assert x.grad.cpu().tolist() == [5.0, 9.0, 13.0]
    assert y.grad.item() == 14.0


def test_every_helper_of_formulas_is_there() -> None:
    assert formulas._HELPERS.keys() == HELPERS.keys()


def test_a_process_has_one_provider() -> None:
    with pytest.raises(RuntimeError, match="one"):
        tape.attach(FORMULAS)
    with pytest.raises(RuntimeError, match="already has a provider"):
        stages.provide_stage("autograd", lambda name, args, rest: None)
    with pytest.raises(ValueError, match="name of a stage"):
        stages.provide_stage("nonsense", lambda name, args, rest: None)


def test_a_wrong_formula_is_noticed() -> None:
    def wrong(*args, **kwargs):
        return tuple(g * 2 for g in tape.grad(*args, **kwargs))

    x = core.tensor([1.0, 2.0], dtype=core.float64).requires_grad_()
    with pytest.raises(AssertionError, match="differences give"):
        check_gradients(lambda x: x * x, [x], wrong)


def test_a_kit_cannot_be_weakened() -> None:
    with pytest.raises(TypeError, match="cannot be replaced"):

        class Weak(AutogradContract):
            def test_second_derivative(self) -> None:
                pass
