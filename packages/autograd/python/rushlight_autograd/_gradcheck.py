"""Compare first and second derivatives, in reverse and forward mode, with central differences: `gradcheck`.

Every element of the Jacobian is compared. In `fast_mode`, one product u' J v with fixed random directions u and v is
compared for each input. The fast mode calls the function only a few times, whatever the size of the tensors.
Complex numbers are checked as pairs of real numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import rushlight_core as core
from rushlight_autograd._backward import grad
from rushlight_autograd.batching import vmap
from rushlight_autograd.forward_ad import dual_level, make_dual, unpack_dual
from rushlight_core import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Raised if a derivative differs from finite differences of the function.

    Example:
        >>> class Wrong(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * 3
        >>> x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(Wrong.apply, (x,))
        Traceback (most recent call last):
            ...
        rushlight_autograd._gradcheck.GradcheckError: ...
    """


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
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of a function with central differences.

    `check_undefined_grad` and `check_grad_dtypes` have no effect, because `gradcheck` always makes these
    checks. While one output is checked, the gradients of the other outputs are undefined. The gradient of an
    input must have the dtype of the input.

    Args:
        func: a function of tensors that returns a tensor or several; integer and bool outputs are ignored.
        inputs: the tensors, some of which require grad; a warning is issued for an input that requires grad
            but is not float64 or complex128.
        eps: the step of the differences: `func` is evaluated at x + eps and x - eps for each element x.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise GradcheckError for a wrong derivative; otherwise return False.
        nondet_tol: the largest allowed difference between two evaluations of a gradient.
        check_undefined_grad, check_grad_dtypes: have no effect.
        check_batched_grad: also check that gradients computed in one pass, as in `vmap`, equal separate gradients.
        check_batched_forward_grad: also check that tangents computed in one pass equal separate tangents.
        check_forward_ad: also check forward mode.
        check_backward_ad: check reverse mode.
        fast_mode: compare one random linear combination of the elements of the Jacobian instead of each
            element.
        masked: accept sparse inputs, and vary only their stored values.

    Shape:
        - Inputs and outputs may have any shape.

    Raises:
        GradcheckError: a derivative is wrong.
        ValueError: no input requires grad, or the options contradict each other.

    Example:
        >>> x = torch.tensor([0.1, 0.5], dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(torch.sin, (x,))
        True
    """
    for batched, mode, plain in (
        ("check_batched_grad", "check_backward_ad", check_batched_grad and not check_backward_ad),
        (
            "check_batched_forward_grad",
            "check_forward_ad",
            check_batched_forward_grad and not check_forward_ad,
        ),
    ):
        if plain:
            raise ValueError(f"gradcheck({batched}): requires {mode}=True")
    func, args = _of_plain("gradcheck", func, inputs, masked)
    which = _checked(args)
    if not which:
        raise ValueError("gradcheck(inputs): at least one Tensor must require grad")
    for i in which:
        if args[i].dtype not in (core.float64, core.complex128):
            warnings.warn(
                f"gradcheck(inputs): input {i} is {args[i].dtype}; finite differences are too inexact unless all inputs "
                "are float64 or complex128",
                stacklevel=2,
            )
    func, args = _as_real(func, args, which)
    check = _Check(func, args, eps, atol, rtol)
    try:
        for i in which:
            directions = [check.random(args[i], i)] if fast_mode else _units(args[i])
            differences = [check.differences(i, v) for v in directions]
            if check_backward_ad and differences:
                check.reverse(i, directions, differences, fast_mode)
                check.repeats(i, nondet_tol)
                if check_batched_grad:
                    check.batched(i)
            if check_forward_ad:
                for v, along in zip(directions, differences, strict=True):
                    check.forward(i, v, along)
                if check_batched_forward_grad:
                    check.batched_forward(i)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare second derivatives of a function with central differences of the gradients.

    Args:
        func: a function of tensors that returns a tensor or several.
        inputs: the tensors, float64 or complex128, some of which require grad.
        grad_outputs: the gradients of the outputs; random tensors by default.
        gen_non_contig_grad_outputs: whether random `grad_outputs` are not contiguous.
        check_fwd_over_rev: check second derivatives by forward mode over reverse mode.
        check_rev_over_rev: check second derivatives by reverse mode over reverse mode.
        eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad,
        fast_mode, masked: as for :func:`gradcheck`.

    Shape:
        - `grad_outputs`: the shapes of the outputs.

    Raises:
        GradcheckError: a derivative is wrong.

    Example:
        >>> x = torch.tensor([0.1, 0.5], dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradgradcheck(torch.sin, (x,))
        True
    """
    func, args = _of_plain("gradgradcheck", func, inputs, masked)
    which = _checked(args)
    if grad_outputs is None:
        with core.no_grad():
            seeds = [_seed(y, gen_non_contig_grad_outputs) for y in _outputs(func, args)]
    else:
        seeds = list(_tuple(grad_outputs))

    def gradients(*values: Any) -> tuple[Tensor, ...]:
        with core.enable_grad():
            inner = list(values[: len(args)])
            for i in which:
                if not inner[i].requires_grad:
                    # A dual tensor is a new tensor already. Other tensors are detached, because finite differences
                    # change the argument in place.
                    inner[i] = (inner[i] if _is_dual(inner[i]) else inner[i].detach()).requires_grad_()
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
        gradients,
        [*args, *seeds],
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def _copied_unless_leaf(x: Any) -> Any:
    """Copy a tensor that does not require grad, because the function may change it; return other objects unchanged."""
    return x.detach().clone() if isinstance(x, Tensor) and not x.requires_grad else x


class _Check:
    def __init__(
        self, func: Callable[..., Any], args: list[Any], eps: float, atol: float, rtol: float
    ) -> None:
        self.func, self.args, self.eps, self.atol, self.rtol = func, args, eps, atol, rtol

    @staticmethod
    def random(like: Tensor, seed: int) -> Tensor:
        """Return a random direction whose elements have absolute values from 1/2 to 1.

        The elements are drawn from a separate generator, so the default generator does not change.
        """
        generator = core.Generator().manual_seed(seed)
        values = core.rand(tuple(like.shape), dtype=core.float64, generator=generator)
        return core.where(values < 0.5, values - 1.0, values)

    def differences(self, i: int, direction: Tensor) -> list[Tensor]:
        """Return the derivatives of the outputs along a direction of input i, from central differences.

        The values of the input are changed in place and restored, because the function may also use the same
        tensor in another way, for example as a parameter of a module.
        """
        sides = []
        before = self.args[i].detach().clone()
        try:
            for step in (self.eps, -self.eps):
                moved = [_copied_unless_leaf(x) for x in self.args]
                moved[i] = self.with_values(i, (before + step * direction).to(before.dtype))
                sides.append([y.detach().clone() for y in _outputs(self.func, moved)])
        finally:
            self.with_values(i, before)
        return [(a - b) / (2 * self.eps) for a, b in zip(*sides, strict=True)]

    def with_values(self, i: int, values: Tensor) -> Tensor:
        """Write `values` to input i and return the input, or return `values` if the input cannot be changed in place."""
        try:
            self.args[i].data.copy_(values)
        except RuntimeError:
            return values
        given: Tensor = self.args[i]
        return given

    def reverse(self, i: int, directions: list[Tensor], differences: list[list[Tensor]], fast: bool) -> None:
        for k, y in enumerate(_outputs(self.func, self.args)):
            if not y.requires_grad:
                if any(float(d[k].abs().amax()) > self.atol for d in differences if d[k].numel()):
                    raise GradcheckError(f"output {k} depends on input {i} but does not require grad")
                continue
            if fast:
                u = self.random(y, 1000 + k)
                got = (self.gradient(i, y, u) * directions[0]).sum().item()
                want = (u * differences[0][k]).sum().item()
                scale = (1 + u.numel() * directions[0].numel()) ** 0.5
                self.compare("reverse", got, want, f"output {k} for input {i}, in random directions", scale)
                continue
            for o, u in enumerate(_units(y)):
                row = self.gradient(i, y, u).reshape(-1).tolist()
                for e, got in enumerate(row):
                    want = differences[e][k].reshape(-1)[o].item()
                    self.compare("reverse", got, want, f"output {k}[{o}] for input {i}[{e}]")

    def gradient(self, i: int, y: Tensor, seed: Tensor) -> Tensor:
        x = self.args[i]
        (g,) = grad(y, [x], seed, retain_graph=True, allow_unused=True)
        if g is None:
            return core.zeros(tuple(x.shape), dtype=core.float64)
        if g.shape != x.shape or g.dtype != x.dtype:
            raise GradcheckError(
                f"gradient of input {i} is {g.dtype} of shape {tuple(g.shape)}, not {x.dtype} of {tuple(x.shape)}"
            )
        return g.detach()

    def repeats(self, i: int, tolerance: float) -> None:
        """Check that the gradient is the same when it is computed again."""
        taken = []
        for _ in range(2):
            outputs = [y for y in _outputs(self.func, self.args) if y.requires_grad]
            if not outputs:
                return
            taken.append([self.gradient(i, y, core.ones(tuple(y.shape), dtype=y.dtype)) for y in outputs])
        for first, second in zip(*taken, strict=True):
            if first.numel() and not bool(((first - second).abs() <= tolerance).all() | first.isnan().any()):
                raise GradcheckError(
                    f"the gradient of input {i} differs from run to run by {(first - second).abs().amax().item()};"
                    f" nondet_tol is {tolerance}"
                )

    def batched(self, i: int) -> None:
        """Check that two gradients from one batched pass, as in vmap, equal gradients that are computed separately."""
        for k, y in enumerate(_outputs(self.func, self.args)):
            if not y.requires_grad:
                continue
            seeds = [self.random(y, 2000 + 2 * k + n) for n in range(2)]
            want = core.stack([self.gradient(i, y, seed) for seed in seeds])
            (got,) = grad(
                y,
                [self.args[i]],
                core.stack(seeds),
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=True,
            )
            values = [0.0] * want.numel() if got is None else got.reshape(-1).tolist()
            for e, (a, b) in enumerate(zip(values, want.reshape(-1).tolist(), strict=True)):
                self.compare(
                    "batched reverse", a, b, f"output {k} for input {i}, element {e} of two gradients"
                )

    def forward(self, i: int, direction: Tensor, differences: list[Tensor]) -> None:
        with dual_level():
            duals = list(self.args)
            duals[i] = make_dual(self.args[i].detach(), direction)
            tangents = [unpack_dual(y).tangent for y in _outputs(self.func, duals)]
        for k, (tangent, want) in enumerate(zip(tangents, differences, strict=True)):
            if tangent is not None and tangent.shape != want.shape:
                raise GradcheckError(
                    f"tangent of output {k} has shape {tuple(tangent.shape)}, not {tuple(want.shape)}"
                )
            got = [0.0] * want.numel() if tangent is None else tangent.detach().reshape(-1).tolist()
            scale = (1 + direction.numel()) ** 0.5
            for o, (a, b) in enumerate(zip(got, want.reshape(-1).tolist(), strict=True)):
                self.compare("forward", a, b, f"output {k}[{o}] for input {i}", scale)

    def batched_forward(self, i: int) -> None:
        """Check that two tangents from one batched pass, as in vmap, equal tangents that are computed separately."""
        directions = [self.random(self.args[i], 3000 + n) for n in range(2)]

        def tangents(direction: Tensor) -> tuple[Tensor, ...]:
            with dual_level():
                duals = list(self.args)
                duals[i] = make_dual(self.args[i].detach(), direction)
                pairs = [unpack_dual(y) for y in _outputs(self.func, duals)]
                return tuple(core.zeros_like(y) if t is None else t for y, t in pairs)

        together = vmap(tangents)(core.stack(directions))
        apart = [tangents(direction) for direction in directions]
        for k, got in enumerate(together):
            want = core.stack([one[k] for one in apart])
            for e, (a, b) in enumerate(
                zip(got.detach().reshape(-1).tolist(), want.detach().reshape(-1).tolist(), strict=True)
            ):
                self.compare(
                    "batched forward", a, b, f"output {k} for input {i}, element {e} of two tangents"
                )

    def compare(self, kind: str, got: float, want: float, where: str, scale: float = 1.0) -> None:
        if not abs(got - want) <= self.atol * scale + self.rtol * abs(want):
            raise GradcheckError(f"{kind} derivative of {where} is {got}, but finite differences give {want}")


def _of_plain(
    name: str, func: Callable[..., Any], inputs: Any, masked: bool | None
) -> tuple[Callable[..., Any], list[Any]]:
    """Return `func` as a function of the values that its sparse inputs store, and that function's inputs.

    If no input is sparse, return `func` and its inputs unchanged.
    """
    args = list(_tuple(inputs))
    if all(x.layout is core.strided for x in args if isinstance(x, Tensor)):
        return func, args
    if not masked:
        raise NotImplementedError(
            f"{name}(masked): must be True for sparse inputs, since their gradients have the same indices as the inputs"
        )
    return core.sparse._of_values(func, args)


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _outputs(func: Callable[..., Any], inputs: Sequence[Any]) -> list[Tensor]:
    return [y for y in _tuple(func(*inputs)) if isinstance(y, Tensor) and _is_continuous(y)]


def _checked(inputs: Sequence[Any]) -> list[int]:
    return [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]


def _is_dual(x: Tensor) -> bool:
    return unpack_dual(x).tangent is not None


def _units(x: Tensor) -> list[Tensor]:
    """Return the unit vectors of an input, one for each element."""
    return list(core.eye(x.numel(), dtype=core.float64).reshape(x.numel(), *x.shape))


def _seed(like: Tensor, strided: bool) -> Tensor:
    values = core.linspace(0.5, 1.5, like.numel(), dtype=core.float64)
    if like.is_complex():
        values = core.complex(values, values.flip(0) - 2)
    if strided:
        values = core.stack([values, values], -1).select(-1, 0)
    return values.view(like.shape).requires_grad_()


def _is_continuous(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def _as_real(
    func: Callable[..., Any], args: list[Any], which: list[int]
) -> tuple[Callable[..., Any], list[Any]]:
    """Return `func` and its inputs, with complex inputs and outputs converted to real tensors by `view_as_real`."""
    complex_inputs = [i for i in which if args[i].is_complex()]

    def of_parts(*values: Any) -> tuple[Any, ...]:
        given = [core.view_as_complex(v) if i in complex_inputs else v for i, v in enumerate(values)]
        return tuple(core.view_as_real(y) if y.is_complex() else y for y in _outputs(func, given))

    parts = [
        core.view_as_real(x.detach()).clone().requires_grad_() if i in complex_inputs else x
        for i, x in enumerate(args)
    ]
    return of_parts, parts
