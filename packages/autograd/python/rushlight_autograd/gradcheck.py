"""gradcheck: analytical derivatives against differences, reverse, forward and second order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight_core as core
from rushlight_autograd.backward import grad
from rushlight_autograd.forward_ad import dual_level, make_dual, unpack_dual
from rushlight_core import Tensor


class GradcheckError(RuntimeError):
    """A derivative that differs from differences of the function."""


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _outputs(func: Callable[..., Any], inputs: Sequence[Any]) -> list[Tensor]:
    return [y for y in _tuple(func(*inputs)) if isinstance(y, Tensor) and y.is_floating_point()]


def _checked(inputs: Sequence[Any]) -> list[int]:
    return [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]


def _numerical(
    func: Callable[..., Any], inputs: list[Any], which: int, eps: float
) -> list[list[list[float]]]:
    """d output / d element, by central differences: for each output a list over elements of a list over values."""
    with core.no_grad():
        copies = [x.detach().clone() if isinstance(x, Tensor) else x for x in inputs]
        flat = copies[which].contiguous().view(-1)
        shape = tuple(inputs[which].shape)
        columns: list[list[list[float]]] = []
        for e in range(flat.numel()):
            sides = []
            for step in (eps, -eps):
                moved = flat.clone()
                moved.select(0, e).fill_(moved.select(0, e).item() + step)
                copies[which] = moved.view(shape)
                sides.append([y.detach().contiguous().view(-1).tolist() for y in _outputs(func, copies)])
            copies[which] = flat.view(shape)
            columns.append(
                [
                    [(a - b) / (2 * eps) for a, b in zip(hi, lo, strict=True)]
                    for hi, lo in zip(*sides, strict=True)
                ]
            )
    n_outputs = len(columns[0]) if columns else 0
    return [[column[k] for column in columns] for k in range(n_outputs)]


def _compare(kind: str, got: float, want: float, atol: float, rtol: float, where: str) -> None:
    if not abs(got - want) <= atol + rtol * abs(want):
        raise GradcheckError(f"{kind} derivative of {where} is {got}, differences give {want}")


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_batched_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compares the gradients of `func` at `inputs` (float64 tensors with requires_grad) with central differences.

    Raises GradcheckError, or returns False where `raise_exception` is off. `check_forward_ad` does the same for
    forward mode. `fast_mode`, `masked`, `check_batched_grad` and `nondet_tol` are accepted as PyTorch accepts them.
    """
    args = list(_tuple(inputs))
    which = _checked(args)
    if not which:
        raise ValueError("gradcheck(inputs): at least one Tensor must require grad")
    for i in which:
        if args[i].dtype != core.float64:
            raise ValueError(f"gradcheck(inputs): input {i} is {args[i].dtype}; differences need float64")
    try:
        for i in which:
            numerical = _numerical(func, args, i, eps)
            if check_backward_ad:
                _check_reverse(func, args, i, numerical, atol, rtol)
            if check_forward_ad:
                _check_forward(func, args, i, numerical, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_reverse(
    func: Callable[..., Any],
    args: list[Any],
    i: int,
    numerical: list[list[list[float]]],
    atol: float,
    rtol: float,
) -> None:
    outputs = _outputs(func, args)
    for k, y in enumerate(outputs):
        if not y.requires_grad:
            if any(abs(v) > atol for column in numerical[k] for v in column) if numerical else False:
                raise GradcheckError(f"output {k} depends on input {i} but does not require grad")
            continue
        for o in range(y.numel()):
            seed = core.zeros(y.numel(), dtype=y.dtype)
            seed.select(0, o).fill_(1.0)
            (g,) = grad(y, [args[i]], seed.view(tuple(y.shape)), retain_graph=True, allow_unused=True)
            if g is not None and g.shape != args[i].shape:
                raise GradcheckError(
                    f"gradient of input {i} has shape {tuple(g.shape)}, not {tuple(args[i].shape)}"
                )
            values = [0.0] * args[i].numel() if g is None else g.detach().contiguous().view(-1).tolist()
            for e, got in enumerate(values):
                _compare(
                    "reverse", got, numerical[k][e][o], atol, rtol, f"output {k}[{o}] for input {i}[{e}]"
                )


def _check_forward(
    func: Callable[..., Any],
    args: list[Any],
    i: int,
    numerical: list[list[list[float]]],
    atol: float,
    rtol: float,
) -> None:
    for e in range(args[i].numel()):
        direction = core.zeros(args[i].numel(), dtype=args[i].dtype)
        direction.select(0, e).fill_(1.0)
        with dual_level():
            duals = list(args)
            duals[i] = make_dual(args[i].detach(), direction.view(tuple(args[i].shape)))
            tangents = [unpack_dual(y).tangent for y in _outputs(func, duals)]
        for k, tangent in enumerate(tangents):
            want = numerical[k][e]
            got = [0.0] * len(want) if tangent is None else tangent.contiguous().view(-1).tolist()
            for o, value in enumerate(got):
                _compare("forward", value, want[o], atol, rtol, f"output {k}[{o}] for input {i}[{e}]")


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    """gradcheck of the gradients of `func`: second derivatives, also for the incoming gradients."""
    args = list(_tuple(inputs))
    which = _checked(args)
    with core.no_grad():
        shapes = [tuple(y.shape) for y in _outputs(func, args)]
    if grad_outputs is None:
        grad_outputs = [
            core.linspace(0.5, 1.5, _numel(shape), dtype=core.float64).view(shape).requires_grad_()
            for shape in shapes
        ]
    seeds = list(_tuple(grad_outputs))

    def gradients(*values: Any) -> tuple[Tensor, ...]:
        with core.enable_grad():
            inner = list(values[: len(args)])
            for i in which:
                if not inner[i].requires_grad:
                    inner[i] = inner[i].detach().requires_grad_()
            outputs = _outputs(func, inner)
            pairs = [(y, s) for y, s in zip(outputs, values[len(args) :], strict=True) if y.requires_grad]
            result = grad(
                [y for y, _ in pairs],
                [inner[i] for i in which],
                [s for _, s in pairs],
                create_graph=True,
                allow_unused=True,
                materialize_grads=True,
            )
        return tuple(g for g in result if g is not None)

    return gradcheck(
        gradients, [*args, *seeds], eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception
    )


def _numel(shape: tuple[int, ...]) -> int:
    n = 1
    for s in shape:
        n *= s
    return n
