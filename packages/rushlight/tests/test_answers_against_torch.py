"""Calls with unusual arguments have the same result as in PyTorch, or an error of the same class, if it is installed.

Intended differences are listed in docs/differences.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")

CALLS = """
~torch.ones(2)
~torch.tensor(1j)
~torch.tensor([True, False])
torch.bitwise_not(torch.ones(2))
float(torch.tensor(1 + 2j))
float(torch.tensor(3 + 0j))
int(torch.tensor(1 + 2j))
int(torch.tensor([3 + 0j]))
float(torch.ones(2))
[d.to_real() for d in (torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.int8, torch.bool)]
[d.to_complex() for d in (torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)]
torch.int64.to_complex()
torch.bool.to_complex()
F.rms_norm(torch.tensor(1.0), (1,))
F.rms_norm(torch.tensor(1.0), ())
F.rms_norm(torch.ones(3), (2,))
F.layer_norm(torch.tensor(1.0), (1,))
F.mse_loss(torch.tensor([True]), torch.tensor([False]))
F.mse_loss(torch.tensor([0.5, 2.0]), torch.tensor([True, False]))
F.mse_loss(torch.tensor([True, False]), torch.tensor([0.5, 2.0]), reduction="none")
F.mse_loss(torch.tensor([0.5, 2.0]), torch.tensor([1, 3]))
torch.zeros(2, dtype=torch.float64, out=torch.ones(2))
torch.zeros(2, dtype=torch.float32, out=torch.ones(2))
torch.zeros(2, out=torch.ones(2, dtype=torch.float64))
torch.zeros(2, out=torch.ones(2), requires_grad=True).requires_grad
torch.zeros(2, out=torch.ones(2), device="meta")
torch.zeros(2, out=torch.ones(2, dtype=torch.int64), requires_grad=True)
torch.arange(3, dtype=torch.int64, out=torch.ones(3))
torch.sum(torch.ones(2), 0, dtype=torch.float64, out=torch.ones(()))
torch.sum(torch.ones(2), 0, out=torch.ones((), dtype=torch.float64))
torch.cumsum(torch.ones(2), 0, dtype=torch.float64, out=torch.ones(2))
torch.softmax(torch.ones(2), 0, dtype=torch.float64, out=torch.ones(2))
torch.squeeze(torch.ones(1, 2), (0, 0))
torch.squeeze_copy(torch.ones(1, 2), (0, -2))
torch.ones(1, 2).squeeze_((0, 0))
torch.flip(torch.ones(1, 2), (0, -2))
torch.special.shifted_chebyshev_polynomial_t(torch.tensor([2**62, -(2**63)]), 1)
torch.autograd.grad(torch.ones(2, requires_grad=True).sum(), [])
torch.autograd.backward(torch.ones(2, requires_grad=True).sum(), inputs=[])
torch.optim.Adam([parameter()], lr=torch.tensor([1.0, 2.0]))
torch.optim.SGD([parameter()], lr=torch.tensor([1.0, 2.0]))
torch.optim.LBFGS([parameter()], lr=torch.tensor([1.0, 2.0]))
torch.optim.Muon([nn.Parameter(torch.ones(2, 2))], lr=torch.tensor([1.0, 2.0]))
nn.utils.vector_to_parameters([1.0], [parameter()])
nn.utils.vector_to_parameters(torch.ones(2), [parameter()])
nn.utils.vector_to_parameters(torch.ones(3), 3)
nn.ModuleDict().update([1])
nn.ModuleDict().update(1)
nn.ModuleDict().update([("a",)])
nn.ModuleDict().update(["ab"])
nn.ModuleDict().update([("a", 1)])
nn.ParameterDict().update([1])
nn.ParameterDict().update([("a", 1, 2)])
torch.utils.data.DataLoader([1], num_workers=1, multiprocessing_context="bad")
torch.utils.data.DataLoader([1], num_workers=1, multiprocessing_context=3)
torch.utils.data.DataLoader([1], multiprocessing_context="fork")
torch.func.functional_call(linear(), {"nope": torch.ones(1)}, torch.ones(1, 2))
torch.func.functional_call(linear(), {"in_features": torch.ones(1)}, torch.ones(1, 2))
torch.func.functional_call(linear(), {"child.weight": torch.ones(1)}, torch.ones(1, 2))
torch.func.functional_call(linear(), {"nope": 3}, torch.ones(1, 2))
torch.func.functional_call(linear(), {"": torch.ones(1)}, torch.ones(1, 2))
torch.func.functional_call(linear(), {"nope": torch.ones(1)}, torch.ones(1, 2), strict=True)
hooked("register_backward_hook", "register_full_backward_hook")
hooked("register_full_backward_hook", "register_backward_hook")
hooked("register_full_backward_hook", "register_full_backward_hook")
hooked("register_backward_hook", "register_full_backward_pre_hook")
rates("torch.optim.swa_utils.SWALR(o, 0.1, anneal_epochs=4, anneal_strategy='linear')", None, 2, 7, 0, None)
rates("torch.optim.swa_utils.SWALR(o, 0.1, anneal_epochs=3)", 2, None, 0, None)
rates("S.StepLR(o, 2)", None, 5, None)
rates("S.MultiplicativeLR(o, lambda e: 0.5)", 2, None, 0)
rates("S.LambdaLR(o, lambda e: 1 / (e + 1))", 2, None, 0)
rates("S.CosineAnnealingLR(o, 10)", None, 3, None)
rates("S.SequentialLR(o, [S.ConstantLR(o), S.ExponentialLR(o, 0.9)], [2])", 1)
rates("S.ChainedScheduler([S.ConstantLR(o), S.ExponentialLR(o, 0.9)])", 1)
""".strip().splitlines()


def _helpers(library: Any) -> dict[str, Any]:
    nn = library.nn

    def parameter() -> Any:
        return nn.Parameter(library.ones(3))

    def linear() -> Any:
        layer = nn.Linear(2, 2)
        with library.no_grad():
            layer.weight.fill_(2.0)
            layer.bias.fill_(1.0)
        return layer

    def hooked(*names: str) -> None:
        module = nn.Linear(2, 2)
        for name in names:
            getattr(module, name)(lambda *_: None)

    def rates(make: str, *epochs: int | None) -> list[Any]:
        optimizer = library.optim.SGD([parameter()], lr=1.0)
        names = {"torch": library, "S": library.optim.lr_scheduler, "o": optimizer}
        scheduler, found = eval(make, names), []
        for epoch in epochs:
            optimizer.step()
            scheduler.step() if epoch is None else scheduler.step(epoch)
            found.append((round(scheduler.get_last_lr()[0], 6), scheduler.last_epoch))
        return found

    return {"torch": library, "nn": nn, "F": nn.functional, **{
        f.__name__: f for f in (parameter, linear, hooked, rates)
    }}  # fmt: skip


def _answer(library: Any, call: str) -> Any:
    """Return the result of the call as plain Python objects, or the class of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _plain(eval(call, _helpers(library)), library)
        except Exception as error:
            builtin = (k for k in type(error).__mro__ if k.__module__ == "builtins")
            return next(builtin)


def _plain(value: Any, library: Any) -> Any:
    if isinstance(value, library.Tensor):
        return str(value.dtype), tuple(value.shape), [f"{number:.5g}" for number in value.flatten().tolist()]
    if isinstance(value, (tuple, list)):
        return [_plain(v, library) for v in value]
    return str(value) if isinstance(value, library.dtype) else value


@pytest.mark.parametrize("call", CALLS)
def test_the_answer_is_that_of_pytorch(call: str) -> None:
    assert _answer(rushlight, call) == _answer(torch, call)


# --- states of optimizers ---

OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "SGD": lambda o, p: o.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda o, p: o.Adam(p),
    "Adam amsgrad": lambda o, p: o.Adam(p, amsgrad=True),
    "AdamW": lambda o, p: o.AdamW(p),
    "NAdam": lambda o, p: o.NAdam(p),
    "RAdam": lambda o, p: o.RAdam(p),
    "Adamax": lambda o, p: o.Adamax(p),
    "Adadelta": lambda o, p: o.Adadelta(p),
    "Adagrad": lambda o, p: o.Adagrad(p),
    "RMSprop": lambda o, p: o.RMSprop(p, momentum=0.9, centered=True),
    "Rprop": lambda o, p: o.Rprop(p),
    "ASGD": lambda o, p: o.ASGD(p),
    "LBFGS": lambda o, p: o.LBFGS(p),
    "LBFGS strong_wolfe": lambda o, p: o.LBFGS(p, line_search_fn="strong_wolfe"),
    "Adafactor": lambda o, p: o.Adafactor(p),
    "Muon": lambda o, p: o.Muon(p),
}


def _state(library: Any, make: Callable[[Any, Any], Any]) -> Any:
    """Return the names in an optimizer's state and in its groups after two steps."""
    parameters = [library.nn.Parameter(library.ones(2, 3)) for _ in range(2)]
    optimizer = make(library.optim, parameters)

    def loss() -> Any:
        optimizer.zero_grad()
        total = sum((p * p).sum() for p in parameters)
        total.backward()
        return total

    for _ in range(2):
        optimizer.step(loss)
    state = optimizer.state_dict()
    return {k: sorted(v) for k, v in state["state"].items()}, [sorted(g) for g in state["param_groups"]]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_state_of_an_optimizer_has_the_names_of_pytorch(name: str) -> None:
    assert _state(rushlight, OPTIMIZERS[name]) == _state(torch, OPTIMIZERS[name])
