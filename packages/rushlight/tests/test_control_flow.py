"""cond, while_loop and scan with gradients and transforms, and a language model that generates text without Python."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_export import Transformer

import rushlight as torch
from rushlight import nn
from rushlight._higher_order_ops import associative_scan, cond, scan, while_loop
from rushlight_graph import _run


def test_the_names_are_pytorchs() -> None:
    import rushlight._higher_order_ops.while_loop as module

    assert torch.cond is cond
    assert torch.while_loop is while_loop is module
    assert torch._higher_order_ops.scan is scan
    assert "while_loop" not in torch.__all__


def power(x: Any) -> Any:
    """Return x ** 8 if the sum is positive, else sin(x), computed with while_loop, scan and cond."""

    def positive(x: Any) -> Any:
        _, y = while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * y), (torch.tensor(0), x))
        return y

    y = torch.cond(x.sum() > 0, positive, torch.sin, (x,))
    return scan(lambda total, row: (total + row, total * row), y[0] * 0, y)


def plainly(x: Any) -> Any:
    y = x**8 if x.sum() > 0 else x.sin()
    sums = y.cumsum(0)
    return sums[-1], torch.cat([y[:1] * 0, sums[:-1] * y[1:]])


@pytest.mark.parametrize("sign", [1, -1])
def test_gradients(sign: int) -> None:
    x = (torch.rand(4, 3, dtype=torch.float64) * sign).requires_grad_()
    assert torch.autograd.gradcheck(power, x)
    wanted = torch.autograd.grad(sum(t.sum() for t in plainly(x)), x)[0]
    assert torch.allclose(torch.autograd.grad(sum(t.sum() for t in power(x)), x)[0], wanted)
    for transform in (torch.func.jacfwd, torch.func.jacrev):
        for got, other in zip(transform(power)(x), transform(plainly)(x), strict=True):
            assert torch.allclose(got, other)


def test_examples_of_vmap_choose_each_for_itself() -> None:
    xs = torch.randn(6, 4)
    shift = torch.randn(4)

    def one(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: (x + shift, x[0]), lambda x: (x * shift, x[1]), (x,))

    for got, wanted in zip(torch.vmap(one)(xs), zip(*map(one, xs), strict=True), strict=True):
        assert torch.equal(got, torch.stack(wanted))

    def shared(x: Any) -> Any:
        return torch.cond(shift.sum() > 0, lambda x: x.cos(), lambda x: x.sin(), (x,))

    assert torch.equal(torch.vmap(shared)(xs), torch.stack([shared(x) for x in xs]))

    def recurrent(x: Any) -> Any:
        return scan(lambda h, v: ((h + v).tanh(), h * v), torch.zeros(()), x)

    for got, wanted in zip(torch.vmap(recurrent)(xs), zip(*map(recurrent, xs), strict=True), strict=True):
        assert torch.equal(got, torch.stack(wanted))
    for function, message in (
        (lambda x: while_loop(lambda a: a.sum() < 3, lambda a: (a + 1,), (x,)), "vmap"),
        (lambda x: torch.cond(x.sum() > 0, lambda: x, lambda: x[0]), "the same dtype, shape and device"),
    ):
        with pytest.raises(RuntimeError, match=message):
            torch.vmap(function)(xs)


class Chooser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 2), nn.Sequential(nn.Linear(3, 2), nn.Tanh())

    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, self.left, self.right, (x,))


def test_programs_name_modules_and_have_gradients() -> None:
    model, x = Chooser(), torch.randn(4, 3)
    program = torch.export.export(model, (x,))
    assert "in right.0" in str(program)
    for sign in (1, -1):
        given = (x.abs() * sign).requires_grad_()
        got, wanted = program.module()(given), model(given)
        assert torch.equal(got, wanted)
        for a, b in zip(
            torch.autograd.grad(got.sum(), given), torch.autograd.grad(wanted.sum(), given), strict=True
        ):
            assert torch.equal(a, b)


class Penalised(nn.Linear):
    def forward(self, x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = torch.cond(x.sum() > 0, lambda: x + self.bias, lambda: x - self.bias)
        return torch.autograd.grad(y.sum(), x)[0]


def test_gradients_inside_of_a_program_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="computes a gradient through control flow"):
        torch.export.export(Penalised(3, 3), (torch.randn(3),))


class Generator(nn.Module):
    """Appends the most likely token until all sequences have ended, or the buffer is full."""

    def __init__(self, length: int = 12, end: int = 5) -> None:
        super().__init__()
        self.model = Transformer(length=length)
        self.length, self.end = length, end

    def forward(self, prompt: Any) -> Any:
        batch, given = prompt.shape
        tokens = torch.cat([prompt, torch.full((batch, self.length - given), self.end)], 1)
        ended = torch.zeros(batch, dtype=torch.bool)

        def goes_on(at: Any, tokens: Any, ended: Any) -> Any:
            return (at < self.length).logical_and(ended.all().logical_not())

        def step(at: Any, tokens: Any, ended: Any) -> Any:
            logits = self.model(tokens).index_select(1, at.reshape(1) - 1)[:, 0]
            made = torch.where(ended, self.end, logits.argmax(-1))
            return at + 1, tokens.index_copy(1, at.reshape(1), made[:, None]), ended | (made == self.end)

        at, tokens, _ = while_loop(goes_on, step, (torch.tensor(given), tokens, ended))
        return tokens, at


def generate(model: Generator, prompt: Any) -> tuple[Any, int]:
    """Generate the same tokens with a loop in Python, on growing sequences."""
    tokens = prompt
    while tokens.shape[1] < model.length and not (tokens[:, prompt.shape[1] :] == model.end).any(1).all():
        made = model.model(tokens)[:, -1].argmax(-1)
        made[(tokens[:, prompt.shape[1] :] == model.end).any(1)] = model.end
        tokens = torch.cat([tokens, made[:, None]], 1)
    return tokens, tokens.shape[1]


def test_a_language_model_generates_without_python(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = Generator().eval()
    with torch.no_grad():
        model.model.tokens.weight.mul_(20)  # makes the last token the most likely (tied weights)
    prompts = [torch.tensor(rows) for rows in ([[1, 2, 3], [4, 2, 5]], [[1, 2, 5], [3, 4, 5]])]
    with torch.no_grad():
        torch.export.save(torch.export.export(model, (prompts[0],)), tmp_path / "model.rl")
    lengths = []
    for prompt in prompts:
        with torch.no_grad():
            tokens, at = model(prompt)
            wanted, length = generate(model, prompt)
        assert (at.item(), tokens[:, :length].tolist()) == (length, wanted.tolist())
        lengths.append(length)
        np.save(tmp_path / "x.npy", prompt.numpy())
        command = [_run.program(), tmp_path / "model.rl", "--input", tmp_path / "x.npy"]
        command += ["--output", tmp_path / "tokens.npy", "--output", tmp_path / "at.npy"]
        done = subprocess.run(command, env=_run.environment(), capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert np.load(tmp_path / "tokens.npy").tolist() == tokens.tolist()
        assert np.load(tmp_path / "at.npy") == length
    assert lengths == [12, 4]


def test_cond_in_vmap_refuses_writes_to_operands() -> None:
    y = torch.tensor([[1.0, 2.0], [-1.0, -2.0]])
    kept = y.clone()
    with pytest.raises(RuntimeError, match="modifies an operand in place"):
        torch.vmap(lambda y: torch.cond(y.sum() > 0, lambda y: y.mul_(2), lambda y: y.clone(), (y,)))(y)
    assert torch.equal(y, kept)


def test_scan_keeps_results_that_the_next_step_overwrites() -> None:
    carry, rows = scan(lambda c, r: (c.add_(r), c), torch.zeros(()), torch.arange(3.0))
    assert carry.item() == 3
    assert rows.tolist() == [0, 1, 3]


def test_associative_scan_names_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="shapes of its arguments"):
        associative_scan(lambda a, b: (a + b).sum(), torch.ones(4, 2), 0)
    with pytest.raises(ValueError, match="combine_mode"):
        associative_scan(torch.add, torch.ones(4), 0, combine_mode="x")


def decayed(left: Any, right: Any) -> Any:
    return {"a": left["a"] * right["a"], "b": right["a"] * left["b"] + right["b"]}


@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_of_a_length_that_changes(reverse: bool, tmp_path: Path) -> None:
    class Scan(nn.Module):
        def forward(self, gates: Any, inputs: Any) -> Any:
            return associative_scan(decayed, {"a": gates, "b": inputs}, 1, reverse)["b"]

    length, width = torch.export.Dim("length", min=1), torch.export.Dim("width")
    shapes = ({1: length, 2: width}, {1: length, 2: width})
    example = torch.rand(2, 5, 3), torch.randn(2, 5, 3)
    program = torch.export.export(Scan(), example, dynamic_shapes=shapes)
    assert str(program).count(" = while_loop(") == 2
    torch.export.save(program, tmp_path / "scan.rl")
    run = torch.export.load(tmp_path / "scan.rl").module()
    for n in (1, 2, 3, 6, 7, 8, 9, 31):
        given = torch.rand(2, n, 4), torch.randn(2, n, 4)
        assert torch.equal(run(*given), Scan()(*given)), n
    fixed = torch.export.export(Scan(), example)
    assert "while_loop" not in str(fixed)
    assert torch.equal(fixed.module()(*example), Scan()(*example))


def test_a_tensor_given_twice() -> None:
    x = torch.tensor([1.0, 2.0])

    def branches(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda a, b: a + b, lambda a, b: a - b, (x, x))

    def loop(x: Any) -> Any:
        return while_loop(lambda a, b, c: c.abs().sum() < 20, lambda a, b, c: (b, a + c, a + b), (x, x, x))

    def rows(x: Any) -> Any:
        return scan(lambda a, r: ([a[0] + r[0], a[1] * r[1]], a[1]), [x[0], x[0]], [x, x])

    for function in (branches, loop, rows):

        class Twice(nn.Module):
            def forward(self, x: Any, function: Any = function) -> Any:
                return function(x)

        run = torch.export.export(Twice(), (x,)).module()
        for given in (x, -x, x * 3):
            got, wanted = (torch.utils._pytree.tree_flatten(f(given))[0] for f in (run, function))
            assert all(map(torch.equal, got, wanted))


def test_cond_of_vmap_in_a_program() -> None:
    class Choosing(nn.Module):
        def forward(self, xs: Any) -> Any:
            return torch.vmap(lambda x: torch.cond(x.sum() > 0, lambda x: x.exp(), lambda x: x - 1, (x,)))(xs)

    run = torch.export.export(Choosing(), (torch.randn(4, 3),)).module()
    for _ in range(2):
        xs = torch.randn(4, 3)
        assert torch.equal(run(xs), Choosing()(xs))
        assert torch.equal(run(xs), torch.stack([x.exp() if x.sum() > 0 else x - 1 for x in xs]))
