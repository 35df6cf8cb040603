"""Programs of a forward pass, its gradients and an optimizer's step equal eager steps, also without Python."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F
from rushlight_graph import _run


class Step(nn.Module):
    """One training step, which is exported."""

    def __init__(self, model: nn.Module, optimizer: Any, loss: Callable[..., Any] = F.cross_entropy) -> None:
        super().__init__()
        self.model, self.optimizer, self.loss = model, optimizer, loss

    def forward(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = self.loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def bits(t: Any) -> bytes:
    return bytes(t.detach().contiguous().numpy().tobytes())


def same_state(step: nn.Module, state: dict[str, Any]) -> None:
    tensors = [*step.named_parameters(), *step.named_buffers()]
    for name, tensor in tensors:
        assert bits(tensor) == bits(state[name]), name


X, Y = torch.randn(6, 8), torch.arange(6) % 3
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.5),
    "Adadelta": lambda p: torch.optim.Adadelta(p),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01, momentum_decay=0.1),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.01, betas=(0.8, 0.9)),
    "Rprop": lambda p: torch.optim.Rprop(p),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.1, lambd=0.1, t0=5),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_eager_ones_bit_for_bit(name: str) -> None:
    torch.manual_seed(0)
    model = mlp()
    step = Step(model, OPTIMIZERS[name](model.parameters()))
    step(X, Y)
    before = [bits(p) for p in model.parameters()]
    program = torch.export.export(step, (X, Y))
    assert [bits(p) for p in model.parameters()] == before
    run = program.module()
    for i in range(20):
        x = torch.randn(6, 8)
        assert bits(run(x, Y)) == bits(step(x, Y)), i
    same_state(step, program.state_dict)


@pytest.mark.parametrize("name", ["momentum", "AdamW", "NAdam"])
def test_a_program_trains_without_python(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = mlp()
    step = Step(model, OPTIMIZERS[name](model.parameters()))
    step(X, Y)
    torch.export.save(torch.export.export(step, (X, Y)), tmp_path / "step.rl")
    np.save(tmp_path / "x.npy", X.numpy())
    np.save(tmp_path / "y.npy", Y.numpy())
    command = [
        _run.program(),
        tmp_path / "step.rl",
        "--input",
        tmp_path / "x.npy",
        "--input",
        tmp_path / "y.npy",
    ]
    command += ["--output", tmp_path / "loss.npy", "--times", "20", "--save", tmp_path / "later.rl"]
    done = subprocess.run(command, env=_run.environment(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    losses = [step(X, Y) for _ in range(20)]
    assert np.load(tmp_path / "loss.npy").tobytes() == bits(losses[-1])
    later = torch.export.load(tmp_path / "later.rl")
    same_state(step, later.state_dict)
    assert bits(later.module()(X, Y)) == bits(step(X, Y))  # training continues
    libraries = subprocess.run(
        ["ldd", _run.program()], capture_output=True, text=True, env=_run.environment()
    )
    if shutil.which("ldd"):
        assert "libpython" not in libraries.stdout
        assert "librushlight.so" in libraries.stdout


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])

    def forward(self, x: Any) -> Any:
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(x + self.norms[1](self.second(y)))


def test_batch_norm_dropout_and_a_residual_network() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), Residual(4), nn.MaxPool2d(2), nn.Dropout(0.3),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip
    step = Step(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    x = torch.randn(6, 1, 8, 8)
    step(x, Y)
    program = torch.export.export(step, (x, Y))
    run = program.module()
    for i in range(5):
        x = torch.randn(6, 1, 8, 8)
        torch.manual_seed(i)
        wanted = step(x, Y)
        torch.manual_seed(i)
        assert bits(run(x, Y)) == bits(wanted), i
    same_state(step, program.state_dict)
    simple = torch.export.export(step, (x, Y)).simplify().module()
    torch.manual_seed(9)
    wanted = step(x, Y)
    torch.manual_seed(9)
    assert bits(simple(x, Y)) == bits(wanted)


class Checkpointed(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.first, self.last = nn.Sequential(*layers), nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        return self.last(torch.utils.checkpoint.checkpoint(self.first, x, use_reentrant=False))


@pytest.mark.parametrize("rate", [0.0, 0.3], ids=["no random numbers", "random numbers"])
def test_checkpoints(rate: float) -> None:
    torch.manual_seed(0)
    drops = [nn.Dropout(rate)] if rate else []
    model = Checkpointed(nn.Linear(8, 16), *drops, nn.Tanh(), nn.Linear(16, 16), *drops)
    step = Step(model, torch.optim.Adam(model.parameters()))
    step(X, Y)
    program = torch.export.export(step, (X, Y))
    # A function without random numbers is computed again in the backward pass.
    assert (str(program).count(" = tanh(") == 2) == (rate == 0)
    run = program.module()
    for i in range(20):
        x = torch.randn(6, 8)
        torch.manual_seed(i)
        wanted = step(x, Y)
        torch.manual_seed(i)
        assert bits(run(x, Y)) == bits(wanted), i
    same_state(step, program.state_dict)


def test_checkpoints_of_functions_that_write_in_place() -> None:
    class Writing(nn.Module):
        def forward(self, x: Any) -> Any:
            y = F.dropout(x.exp(), 0.5)
            z = y.sin()
            y.mul_(2)
            return z * y

    model = Checkpointed(nn.Linear(8, 16), Writing())
    step = Step(model, torch.optim.Adam(model.parameters()))
    with pytest.raises(RuntimeError, match="modified in place"):
        torch.export.export(step, (X, Y))


def test_gradients_that_are_added_up() -> None:
    """Without zero_grad(), each run adds to the gradients of the previous run."""
    torch.manual_seed(0)
    model = mlp()

    class Accumulating(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any, y: Any) -> Any:
            F.cross_entropy(self.model(x), y).backward()
            return [p.grad.clone() for p in self.model.parameters()]

    step = Accumulating()
    run = torch.export.export(step, (X, Y)).module()
    assert all(p.grad is None for p in model.parameters())
    for _ in range(3):
        x = torch.randn(6, 8)
        for got, wanted in zip(run(x, Y), step(x, Y), strict=True):
            assert bits(got + 0.0) == bits(wanted + 0.0)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad_after_the_step(set_to_none: bool) -> None:
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    class After(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.optimizer = model, optimizer

        def forward(self, x: Any, y: Any) -> Any:
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none)
            return loss

    step = After()
    run = torch.export.export(step, (X, Y)).module()
    for _ in range(3):
        x = torch.randn(6, 8)
        assert bits(run(x, Y)) == bits(step(x, Y))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: torch.func.grad(lambda x: (x.sin() * x).sum())(x),
    "second": lambda x: torch.func.grad(lambda x: torch.func.grad(lambda x: (x**3).exp().sum())(x).sum())(x),
    "vmap": lambda x: torch.vmap(lambda row: row @ row + row.softmax(0).sum())(x),
    "of each example": lambda x: torch.vmap(torch.func.grad(lambda row: row.tanh().prod()))(x),
    "jvp": lambda x: torch.func.jvp(torch.tanh, (x,), (x * 2,)),
    "hessian": lambda x: torch.func.hessian(lambda row: (row.exp() * row.cumsum(0)).sum())(x[0]),
    "jacrev": lambda x: torch.func.jacrev(lambda row: row.softmax(0))(x[0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms(name: str) -> None:
    function = FUNCTIONS[name]

    class Transformed(nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    program = torch.export.export(Transformed(), (torch.randn(3, 4),))
    assert ("with its gradients" in str(program)) == (name != "grad")  # only grad needs none
    again = torch.export.ExportedProgram(type(program.program).from_bytes(program.program.to_bytes()))
    for _ in range(2):
        x = torch.randn(3, 4)
        wanted, got = function(x), again.module()(x)
        for a, b in zip(*((t if isinstance(t, tuple) else (t,)) for t in (got, wanted)), strict=True):
            assert bits(a) == bits(b)


def test_autocast() -> None:
    torch.manual_seed(0)
    model = mlp().eval()

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any) -> Any:
            with torch.autocast("cpu", torch.bfloat16):
                return self.model(x).softmax(1)

    program = torch.export.export(Mixed(), (X,))
    for _ in range(2):
        x = torch.randn(6, 8)
        assert bits(program.module()(x).float()) == bits(Mixed()(x).float())


def test_an_attack_by_the_gradient_of_an_input() -> None:
    torch.manual_seed(0)
    model = mlp()

    class Attack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any, y: Any) -> Any:
            x = x.detach().requires_grad_()
            loss = F.cross_entropy(self.model(x), y)
            return x + 0.1 * torch.autograd.grad(loss, x)[0].sign()

    run = torch.export.export(Attack(), (X, Y)).module()
    x = torch.randn(6, 8)
    assert bits(run(x, Y)) == bits(Attack()(x, Y))


def test_batches_of_any_size() -> None:
    torch.manual_seed(0)
    model = mlp()
    step = Step(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        lambda x, y: F.cross_entropy(x, y, reduction="sum"),
    )
    batch = torch.export.Dim("batch")
    program = torch.export.export(step, (X, Y), dynamic_shapes={"x": {0: batch}, "y": {0: batch}})
    run = program.module()
    for n in (2, 9):
        x, y = torch.randn(n, 8), torch.arange(n) % 3
        assert bits(run(x, y)) == bits(step(x, y))


def test_what_programs_cannot_follow() -> None:
    torch.manual_seed(0)
    model = mlp()
    step = Step(model, torch.optim.Adam(model.parameters()))
    with pytest.raises(NotImplementedError, match=r"creates its state for 'model\.0\.weight'"):
        torch.export.export(step, (X, Y))
    assert not step.optimizer.state
    assert step.optimizer._step_count == 0
    step(X, Y)

    class Decaying(Step):
        def forward(self, x: Any, y: Any) -> Any:
            self.optimizer.param_groups[0]["lr"] *= 0.9
            return super().forward(x, y)

    decaying = Decaying(model, step.optimizer)
    with pytest.raises(NotImplementedError, match="changes its setting 'lr'"):
        torch.export.export(decaying, (X, Y))
    assert step.optimizer.param_groups[0]["lr"] == 1e-3

    class Reading(Step):
        def forward(self, x: Any, y: Any) -> Any:
            loss = super().forward(x, y)
            return loss if loss.item() < 1 else -loss

    state = {key: bits(value) for key, value in step.optimizer.state[model[0].weight].items()}
    weights = [bits(p) for p in model.parameters()]
    with pytest.raises(RuntimeError, match=r"reads the values .*test_training_programs\.py"):
        torch.export.export(Reading(model, step.optimizer), (X, Y))
    assert [bits(p) for p in model.parameters()] == weights
    assert {key: bits(value) for key, value in step.optimizer.state[model[0].weight].items()} == state

    counting = Step(model, torch.optim.Adafactor(model.parameters()))
    counting(X, Y)
    with pytest.raises(RuntimeError, match="reads the values"):
        torch.export.export(counting, (X, Y))

    hidden = step.optimizer

    class Outside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any, y: Any) -> Any:
            F.cross_entropy(self.model(x), y).backward()
            hidden.step()

    with pytest.raises(RuntimeError, match="which is neither an input nor a parameter"):
        torch.export.export(Outside(), (X, Y))
    assert {key: bits(value) for key, value in step.optimizer.state[model[0].weight].items()} == state


# Losses for batches of any size, with composites that create indices, masks or sizes.
FOLLOWING: dict[str, Callable[..., Any]] = {
    "attention": lambda h, x: F.scaled_dot_product_attention(
        h[None], h[None], h[None], is_causal=True
    ).mean(),
    "block_diag": lambda h, x: torch.block_diag(h, h).mean(),
    "diagonal": lambda h, x: h.diag().sum(),
    "fftshift": lambda h, x: torch.fft.fftshift(h, 0)[0].mean(),
    "interpolate": lambda h, x: F.interpolate(h.t()[None], scale_factor=2, mode="linear")[..., 1].mean(),
    "mask": lambda h, x: torch.where(
        torch.ones(len(x), len(x), dtype=torch.bool).tril(), h @ h.t(), -1.0
    ).mean(),
    "median": lambda h, x: h.median(0).values.sum(),
    "reflection": lambda h, x: F.pad(h.t()[None], (1, 1), mode="reflect").mean(),
    "repeat_interleave": lambda h, x: h.repeat_interleave(2, 0)[1::3].mean(),
    "roll": lambda h, x: (h.roll(1, 0) * h).mean(),
    "subscript": lambda h, x: h[torch.arange(len(x)).flip(0)][1:].mean(),
    "tensor_split": lambda h, x: h.tensor_split(2)[0].mean(),
}


@pytest.mark.parametrize("name", FOLLOWING)
def test_steps_follow_a_size(name: str) -> None:
    class Training(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = mlp()
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

        def forward(self, x: Any) -> Any:
            self.optimizer.zero_grad()
            loss = FOLLOWING[name](self.model(x), x)
            loss.backward()
            self.optimizer.step()
            return loss

    eager = Training()
    program = torch.export.export(
        eager, (torch.randn(6, 8),), dynamic_shapes=({0: torch.export.Dim("n", min=4)},)
    )
    module = program.module()
    for size in (6, 9, 4, 12):
        x = torch.randn(size, 8)
        assert bits(module(x)) == bits(eager(x)), size


def test_indices_made_of_a_size_in_c_are_refused() -> None:
    class Pairs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x: Any) -> Any:
            loss = torch.combinations(x * self.weight).mean()
            loss.backward()
            return loss

    with pytest.raises(RuntimeError, match="cannot depend on a size"):
        torch.export.export(Pairs(), (torch.ones(6),), dynamic_shapes=({0: torch.export.Dim("n", min=4)},))
