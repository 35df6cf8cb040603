"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._batches import as_real, batches
from ._lists import check_lists, group_by_kind
from .optimizer import Optimizer, check_settings, refuse

_fused_sgd_ = operator("_fused_sgd_")


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum.

    Each step is ``p = p - lr · b``. Without momentum, b is the gradient. With momentum, b is the gradient in the first step,
    and ``b = momentum · b + (1 - dampening) · gradient`` in later steps.

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        momentum: the factor by which the b of the previous step is multiplied.
        dampening: the fraction by which the gradient is reduced when it is added to b.
        weight_decay: the L2 penalty; weight_decay · parameter is added to the gradient.
        nesterov: use gradient + momentum · b instead of b in the step (Sutskever et al. 2013).
        maximize: maximise the objective instead of minimising it.
        foreach, fused: accepted and ignored; a step always calls one fused operator for all parameters.
        differentiable: not supported.

    Raises:
        ValueError: `lr`, `momentum` or `weight_decay` is negative, or `nesterov` is selected without momentum or with
            dampening.

    Example:
        >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> (w * w).sum().backward()  # the gradient is 2 w
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.8000, 1.6000])
        >>> optimizer.zero_grad()
    """

    _step_count: int = 0
    _later_options = {**Optimizer._later_options, "nesterov": False}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        refuse("SGD", differentiable=differentiable)
        check_settings("SGD", lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"SGD(nesterov): got momentum {momentum} and dampening {dampening}, "
                "nesterov requires a positive momentum and zero dampening"
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Args:
            closure: a function that computes the gradients and returns the loss, which `step` returns.
        """
        loss = None if closure is None else self._evaluate(closure)
        with core.no_grad():
            for group in self.param_groups:
                for params, grads in batches(group["params"]):
                    try:
                        self._step_fused(group, params, grads)
                    except NotImplementedError:
                        # The operator has not written anything. Sparse gradients are checked for only here, so that
                        # steps with dense gradients do not pay for the check.
                        if not any(map(self._is_sparse, params)):
                            raise
                        self._step_each(group, params)
        self._step_count += 1
        return loss

    def _step_fused(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        if group["momentum"] == 0:
            _update(group, params, grads, [], False)
        else:
            self._step_with_momentum(group, params, grads)

    def _is_sparse(self, param: Any) -> bool:
        """Return whether the gradient or the momentum buffer of `param` is sparse."""
        buffer = self.state[param].get("momentum_buffer") if param in self.state else None
        return param.grad.is_sparse or (buffer is not None and buffer.is_sparse)

    def _step_each(self, group: dict[str, Any], params: list[Any]) -> None:
        """Update parameters with sparse gradients, at a cost proportional to the number of rows in the gradients."""
        plain = [param for param in params if not self._is_sparse(param)]
        if plain:
            self._step_fused(group, plain, [param.grad for param in plain])
        for param in params:
            if self._is_sparse(param):
                # Without momentum, there is no state, so no entry is added.
                _update_sparse(group, param, param.grad, self.state[param] if group["momentum"] else {})

    def _step_with_momentum(self, group: dict[str, Any], params: list[Any], grads: list[Any]) -> None:
        state = self.state
        buffers = [state[param].get("momentum_buffer") for param in params]
        new = [i for i, buffer in enumerate(buffers) if buffer is None]
        if new:
            # Two calls of the operator follow. Check for sparse gradients before the first call writes.
            if any(map(self._is_sparse, params)):
                self._step_each(group, params)
                return
            # In the first step of a parameter, b is the gradient without dampening, which requires a separate call.
            for i in new:
                buffers[i] = core.empty_like(params[i])
            some, their_grads, fresh = _at(new, params, grads, buffers)
            _update(group, some, their_grads, fresh, True)
            # The buffers are stored after the call, because a call that raises an error does not fill them.
            for param, buffer in zip(some, fresh, strict=True):
                state[param]["momentum_buffer"] = buffer
            if len(new) == len(params):
                return
            old = sorted(set(range(len(params))) - set(new))
            params, grads, buffers = _at(old, params, grads, buffers)
        _update(group, params, grads, buffers, False)


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """Take a step of :class:`SGD` in place, with the state given as lists.

    Args:
        params: the parameters.
        d_p_list: the gradients of the parameters.
        momentum_buffer_list: the momentum buffers; an entry of None is replaced by a new tensor.
        The other arguments are the same as for :class:`SGD`; `foreach`, `fused` and `has_sparse_grad` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter.

    Raises:
        RuntimeError: a parameter requires a gradient and the call is outside of `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import sgd
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> sgd(
        ...     params, grads, [None],
        ...     weight_decay=0.0, momentum=0.9, lr=0.1, dampening=0.0, nesterov=False, maximize=False,
        ... )
        >>> params
        [tensor([0.8000])]
    """
    refuse("sgd", grad_scale=grad_scale is not None, found_inf=found_inf is not None)
    check_lists("sgd", params)
    group = {
        "weight_decay": weight_decay, "momentum": momentum, "lr": lr, "dampening": dampening, "nesterov": nesterov,
        "maximize": maximize,
    }  # fmt: skip
    buffers = momentum_buffer_list
    with core.no_grad():
        dense = []
        for i, grad in enumerate(d_p_list):
            if not grad.is_sparse:
                dense.append(i)
                continue
            state = {"momentum_buffer": buffers[i]} if momentum else {}
            _update_sparse(group, params[i], grad, state)
            if momentum:
                buffers[i] = state["momentum_buffer"]
        for positions in group_by_kind([params[i] for i in dense]):
            chosen = [dense[i] for i in positions]
            for fresh in (True, False) if momentum else (False,):
                part = [i for i in chosen if not momentum or (buffers[i] is None) == fresh]
                if not part:
                    continue
                if fresh:
                    chosen = [i for i in chosen if i not in part]
                    for i in part:
                        buffers[i] = core.empty_like(params[i])
                own = [buffers[i] for i in part] if momentum else []
                _update(group, [params[i] for i in part], [d_p_list[i] for i in part], own, fresh)


def _at(positions: list[int], *lists: list[Any]) -> Any:
    return [[values[i] for i in positions] for values in lists]


def _update(
    group: dict[str, Any], params: list[Any], grads: list[Any], buffers: list[Any], first: bool
) -> None:
    _fused_sgd_(
        *as_real(params, grads, buffers),
        weight_decay=group["weight_decay"],
        momentum=group["momentum"],
        lr=float(group["lr"]),
        dampening=group["dampening"],
        nesterov=group["nesterov"],
        maximize=group["maximize"],
        is_first_step=first,
    )


def _update_sparse(group: dict[str, Any], param: Any, grad: Any, state: dict[str, Any]) -> None:
    grad = -grad if group["maximize"] else grad
    if group["weight_decay"] != 0:
        grad = grad.add(param, alpha=group["weight_decay"])
    if group["momentum"] != 0:
        buffer = state.get("momentum_buffer")
        if buffer is None:
            buffer = grad.clone()
        else:
            buffer = (buffer * group["momentum"]).add(grad, alpha=1 - group["dampening"])
        state["momentum_buffer"] = buffer = buffer.coalesce() if buffer.is_sparse else buffer
        grad = grad.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
    param.add_(grad, alpha=-float(group["lr"]))
