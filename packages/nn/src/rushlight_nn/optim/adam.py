"""Adam and AdamW.

Note [Shared step counters] The fused operators take one step counter per parameter: a 0-d float32 tensor on the parameter's
device. `_update` increments the counters before it calls the operator. Parameters that were always updated in the same calls
share one counter, which is incremented only once. If one of these parameters is not updated in the same call as the others,
because it has no gradient or was moved to another group, it gets a copy of the counter before the counter is incremented.
`_update` skips the search for parameters that need a copy if the operator was called with the same list of
counters in the previous step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._batches import as_real, batches
from ._lists import check_lists, group_by_kind
from ._states import check_betas
from .optimizer import Optimizer, check_settings, refuse

_fused_adam_ = operator("_fused_adam_")
_fused_adamw_ = operator("_fused_adamw_")


class Adam(Optimizer):
    """Adam: steps along the mean of the gradients, divided by their root mean square (Kingma and Ba 2015).

    Each step is ``p = p - lr · m̂ / (sqrt(v̂) + eps)``. Here m̂ and v̂ are the bias-corrected running means of
    the gradient and of its square.

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        betas: the decay rates of the running means of the gradient and of its square.
        eps: added to the denominator for numerical stability.
        weight_decay: the L2 penalty; weight_decay · parameter is added to the gradient; see `decoupled_weight_decay`.
        amsgrad: divide by the square root of the largest v̂ of all steps so far (Reddi et al. 2018).
        maximize: maximise the objective instead of minimising it.
        foreach, fused: accepted and ignored; a step always calls one fused operator for all parameters.
        capturable: needed only if `lr` is a tensor and `foreach` is True. Steps can always be recorded in a CUDA graph,
            because the step counters are on the devices of the parameters.
        differentiable: not supported.
        decoupled_weight_decay: subtract lr · weight_decay · parameter from the parameter, as :class:`AdamW`
            does, instead of changing the gradient.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> model = nn.Linear(3, 1)
        >>> optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        >>> x, y = torch.randn(64, 3), torch.zeros(64, 1)
        >>> losses = []
        >>> for step in range(30):
        ...     loss = F.mse_loss(model(x), y)
        ...     optimizer.zero_grad()
        ...     loss.backward()
        ...     optimizer.step()
        ...     losses.append(loss.item())
        >>> losses[-1] < losses[0]
        True
    """

    _step_count: int = 0
    # For each call in the last step, the ids of its counters and the counters, under the first id as the key; see
    # Note [Shared step counters].
    _calls: dict[int, tuple[list[int], list[Tensor]]] = {}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        name = type(self).__name__
        refuse(name, differentiable=differentiable)
        check_settings(name, lr=lr, eps=eps, weight_decay=weight_decay)
        if foreach and not capturable and isinstance(lr, core.Tensor):
            raise ValueError(f"{name}(lr): a tensor with foreach=True requires capturable=True")
        check_betas(name, betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Args:
            closure: a function that computes the gradients and returns the loss, which `step` returns.
        """
        loss = None if closure is None else self._evaluate(closure)
        calls, self._calls = self._calls, {}
        with core.no_grad():
            for group in self.param_groups:
                for params, grads in batches(group["params"]):
                    self._update(group, params, grads, calls)
        self._step_count += 1
        return loss

    def _update(
        self, group: dict[str, Any], params: list[Any], grads: list[Any], calls: dict[int, Any]
    ) -> None:
        amsgrad = group["amsgrad"]
        states = self._states(params, amsgrad)
        steps = [state["step"] for state in states]
        ids = list(map(id, steps))
        counters = dict(zip(ids, steps, strict=True))
        if ids[0] not in calls or calls[ids[0]][0] != ids:
            self._part_counters(states, counters)
        self._calls[ids[0]] = ids, steps
        for counter in counters.values():
            counter.add_(1)
        beta1, beta2 = group["betas"]
        update = _fused_adamw_ if group["decoupled_weight_decay"] else _fused_adam_
        try:
            update(
                *as_real(
                    params,
                    grads,
                    [state["exp_avg"] for state in states],
                    [state["exp_avg_sq"] for state in states],
                    [state["max_exp_avg_sq"] for state in states] if amsgrad else [],
                ),
                steps,
                lr=float(group["lr"]),
                beta1=beta1,
                beta2=beta2,
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=amsgrad,
                maximize=group["maximize"],
            )
        except Exception as error:
            for counter in counters.values():
                counter.sub_(1)  # the operator checks its arguments before it writes, so nothing was updated
            if any(grad.is_sparse for grad in grads):
                raise RuntimeError(
                    f"{type(self).__name__} does not support sparse gradients, please consider SparseAdam instead"
                ) from error
            raise

    def _states(self, params: list[Any], amsgrad: bool) -> list[dict[str, Any]]:
        """Return the states of `params`, and create the states that do not exist yet."""
        state = self.state
        states = [state[param] for param in params]
        counter = None
        for param, own in zip(params, states, strict=True):
            if not own:
                if counter is None:
                    counter = core.zeros((), dtype=core.float32, device=param.device)
                own["step"] = counter
                own["exp_avg"] = core.zeros_like(param)
                own["exp_avg_sq"] = core.zeros_like(param)
            if amsgrad and "max_exp_avg_sq" not in own:
                own["max_exp_avg_sq"] = core.zeros_like(param)
        return states

    def _part_counters(self, states: list[dict[str, Any]], counters: dict[int, Any]) -> None:
        """Give all parameters whose states are not in `states` copies of the counters that they share.

        `counters` contains the counters of `states`; see Note [Shared step counters].
        """
        inside = set(map(id, states))
        copies: dict[int, Tensor] = {}
        for own in self.state.values():
            if isinstance(own, dict) and id(own) not in inside:
                shared = id(own.get("step"))
                if shared in counters:
                    if shared not in copies:
                        copies[shared] = counters[shared].clone()
                    own["step"] = copies[shared]

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the parameter groups as a dict. Indices replace the parameters.

        Shared step counters are copied, so that each parameter has its own counter: PyTorch, which can load
        this state, increments the counters separately. Other tensors are not copied.
        """
        result = super().state_dict()
        seen: set[int] = set()
        for own in result["state"].values():
            step = own.get("step") if isinstance(own, dict) else None
            if isinstance(step, Tensor) and id(step) in seen:
                own["step"] = step.clone()
            seen.add(id(step))
        return result

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            self._share_counters(group["params"])

    def _share_counters(self, params: list[Any]) -> None:
        """Replace equal step counters, which may be plain numbers, by one shared counter."""
        shared: dict[Any, Any] = {}
        for param in params:
            own = self.state.get(param)
            if own and "step" in own:
                count = float(own["step"])
                key = (count, param.device, param.dtype)
                if key not in shared:
                    shared[key] = core.full((), count, dtype=core.float32, device=param.device)
                own["step"] = shared[key]


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019).

    Each step begins with ``p = (1 - lr · weight_decay) · p`` and continues as in :class:`Adam`.

    Args:
        params: tensors or parameter groups.
        lr: learning rate.
        betas: the decay rates of the running means of the gradient and of its square.
        eps: added to the denominator for numerical stability.
        weight_decay: the weight decay coefficient.
        amsgrad: divide by the square root of the largest mean square of all steps so far (Reddi et al. 2018).
        maximize: maximise the objective instead of minimising it.
        foreach, fused: accepted and ignored; a step always calls one fused operator for all parameters.
        capturable: needed only if `lr` is a tensor and `foreach` is True. Steps can always be recorded in a CUDA graph,
            because the step counters are on the devices of the parameters.
        differentiable: not supported.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8))
        >>> decayed = [p for p in model.parameters() if p.dim() > 1]
        >>> others = [p for p in model.parameters() if p.dim() <= 1]
        >>> groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        >>> optimizer = torch.optim.AdamW(groups, lr=1e-3)
        >>> [group["weight_decay"] for group in optimizer.param_groups]
        [0.1, 0.0]
    """

    _later_options = {**Adam._later_options, "decoupled_weight_decay": True}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Take a step of :class:`Adam` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        exp_avgs: running means of the gradients.
        exp_avg_sqs: running means of the squared gradients.
        max_exp_avg_sqs: the maxima of `exp_avg_sqs` over all steps; empty without `amsgrad`.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`Adam`; `foreach`, `fused` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        RuntimeError: a gradient is sparse.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import adam
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> adam(
        ...     params, grads, [torch.zeros(1)], [torch.zeros(1)], [], [torch.tensor(0.0)],
        ...     amsgrad=False, beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0.0, eps=1e-8, maximize=False,
        ... )
        >>> params
        [tensor([0.9000])]
    """
    refuse(
        "adam",
        differentiable=differentiable,
        grad_scale=grad_scale is not None,
        found_inf=found_inf is not None,
    )
    check_lists("adam", params, state_steps)
    if any(grad.is_sparse for grad in grads):
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")
    update = _fused_adamw_ if decoupled_weight_decay else _fused_adam_
    with core.no_grad():
        for step in {id(step): step for step in state_steps}.values():
            step.add_(1)
        for kind in group_by_kind(params):
            parts = [[values[i] for i in kind] for values in (params, grads, exp_avgs, exp_avg_sqs)]
            largest = [max_exp_avg_sqs[i] for i in kind] if amsgrad else []
            steps = [state_steps[i] for i in kind]
            update(
                *as_real(*parts, largest), steps, lr=float(lr), beta1=beta1, beta2=beta2, weight_decay=weight_decay,
                eps=eps, amsgrad=amsgrad, maximize=maximize,
            )  # fmt: skip


def adamw(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    amsgrad: bool,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Take a step of :class:`AdamW` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        exp_avgs: running means of the gradients.
        exp_avg_sqs: running means of the squared gradients.
        max_exp_avg_sqs: the maxima of `exp_avg_sqs` over all steps; empty without `amsgrad`.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`AdamW`; `foreach`, `fused` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        RuntimeError: a gradient is sparse.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import adamw
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> adamw(
        ...     params, grads, [torch.zeros(1)], [torch.zeros(1)], [], [torch.tensor(0.0)],
        ...     amsgrad=False, beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0.1, eps=1e-8, maximize=False,
        ... )
        >>> params
        [tensor([0.8900])]
    """
    check_lists("adamw", params, state_steps)
    adam(
        params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach, capturable, differentiable, fused,
        grad_scale, found_inf, has_complex, True, amsgrad=amsgrad, beta1=beta1, beta2=beta2, lr=lr,
        weight_decay=weight_decay, eps=eps, maximize=maximize,
    )  # fmt: skip
