"""Functions that take a step of an optimizer, given lists of parameters, gradients and states.

In PyTorch these functions are in the modules of the optimizers (`torch.optim.adam.adam`) and in `torch.optim._functional`.
Parameters and states are updated in place, and every tensor in `state_steps` is incremented by one. The other arguments have
the same meaning as for the optimizer of the same name. `foreach`, `fused` and `has_complex` are accepted and ignored. Steps
are not recorded in the graph, so parameters that require gradients must be updated in a block of `no_grad`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._batches import as_real
from ._counted import CountedSteps
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import _fused_adam_, _fused_adamw_
from .adamax import Adamax
from .asgd import ASGD
from .nadam import NAdam
from .optimizer import refuse
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import _update as _update_sgd
from .sgd import _update_sparse
from .sparse_adam import update_rows

__all__ = [
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd", "sparse_adam",
]  # fmt: skip


def _step(
    kind: type[CountedSteps],
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    states: Mapping[str, Sequence[Tensor]],
    settings: dict[str, Any],
) -> None:
    """Take a step of an optimizer whose operator increments the step counters."""
    optimizer = kind.__new__(kind)  # only its methods are used, so it needs no parameters
    owns: list[dict[str, Any]] = [
        {key: values[i] for key, values in states.items() if len(values)} for i in range(len(params))
    ]
    calls = [
        (
            settings,
            [params[i] for i in positions],
            [grads[i] for i in positions],
            [owns[i] for i in positions],
        )
        for positions in _kinds(params)
    ]
    with core.no_grad():
        if len(calls) > 1:
            for call in calls:
                optimizer._check_all(*call)
        for call in calls:
            optimizer._advance(*call)


def _check(function: str, params: Sequence[Tensor], state_steps: Sequence[Any] = ()) -> None:
    """Raise an error if a step counter is not a tensor, or if a parameter cannot be written in place."""
    for step in state_steps:
        if not isinstance(step, Tensor):
            raise RuntimeError(
                f"{function}(state_steps): must contain a list of singleton tensors, got {type(step).__name__}\n"
                "hint: pass tensors, such as torch.tensor(0.0); they are incremented in place"
            )
    if not core.is_grad_enabled():
        return
    hint = f"\nhint: call {function} in a block of torch.no_grad()"
    for param in params:
        if param.requires_grad and param.is_leaf:
            raise RuntimeError(
                f"{function}(params): a leaf that requires grad cannot be written in place while gradients are recorded"
                + hint
            )
        if param.requires_grad:
            raise NotImplementedError(
                f"{function}(params): the update of a tensor that was computed from other tensors cannot be recorded{hint}"
            )


def _kinds(params: Sequence[Tensor]) -> list[list[int]]:
    """Group the indices of parameters by device and dtype, because a fused step requires equal devices and dtypes."""
    found: dict[Any, list[int]] = {}
    for i, param in enumerate(params):
        found.setdefault((param.device, param.dtype), []).append(i)
    return list(found.values())


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
    _check("adam", params, state_steps)
    if any(grad.is_sparse for grad in grads):
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")
    update = _fused_adamw_ if decoupled_weight_decay else _fused_adam_
    with core.no_grad():
        for step in {id(step): step for step in state_steps}.values():
            step.add_(1)
        for kind in _kinds(params):
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
    _check("adamw", params, state_steps)
    adam(
        params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach, capturable, differentiable, fused,
        grad_scale, found_inf, has_complex, True, amsgrad=amsgrad, beta1=beta1, beta2=beta2, lr=lr,
        weight_decay=weight_decay, eps=eps, maximize=maximize,
    )  # fmt: skip


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
        momentum_buffer_list: the momentum buffers; None is replaced by a new tensor.
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
    _check("sgd", params)
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
        for positions in _kinds([params[i] for i in dense]):
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
                _update_sgd(group, [params[i] for i in part], [d_p_list[i] for i in part], own, fresh)


def sparse_adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """Take a step of :class:`SparseAdam` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the sparse gradients of the parameters.
        exp_avgs: running means of the gradients.
        exp_avg_sqs: running means of the squared gradients.
        state_steps: the number of steps of each parameter, an int that includes the current step.
        The other arguments are the same as for :class:`SparseAdam`.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter.

    Raises:
        RuntimeError: a parameter requires a gradient and the call is outside of `no_grad`.

    Example:
        >>> from rushlight_nn.optim.functional import sparse_adam
        >>> params, grads = [torch.ones(3)], [torch.tensor([0.0, 2.0, 0.0]).to_sparse()]
        >>> sparse_adam(
        ...     params, grads, [torch.zeros(3)], [torch.zeros(3)], [1],
        ...     eps=1e-8, beta1=0.9, beta2=0.999, lr=0.1, maximize=False,
        ... )
        >>> params
        [tensor([1.0000, 0.9000, 1.0000])]
    """
    _check("sparse_adam", params)
    group = {"betas": (beta1, beta2), "eps": eps, "lr": lr, "maximize": maximize}
    with core.no_grad():
        for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
            state = {"step": state_steps[i], "exp_avg": exp_avgs[i], "exp_avg_sq": exp_avg_sqs[i]}
            update_rows(group, param, grad, state)


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Take a step of :class:`Adagrad` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        state_sums: sums of squared gradients.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`Adagrad`; `foreach`, `fused` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        RuntimeError: a gradient is sparse and `weight_decay` is not zero.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import adagrad
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> adagrad(
        ...     params, grads, [torch.zeros(1)], [torch.tensor(0.0)],
        ...     lr=0.1, weight_decay=0.0, lr_decay=0.0, eps=1e-10, maximize=False,
        ... )
        >>> params
        [tensor([0.9000])]
    """
    refuse(
        "adagrad",
        differentiable=differentiable,
        grad_scale=grad_scale is not None,
        found_inf=found_inf is not None,
    )
    _check("adagrad", params, state_steps)
    if weight_decay and any(grad.is_sparse for grad in grads):
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    settings = {
        "lr": lr,
        "weight_decay": weight_decay,
        "lr_decay": lr_decay,
        "eps": eps,
        "maximize": maximize,
    }
    _step(Adagrad, params, grads, {"step": state_steps, "sum": state_sums}, settings)


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Take a step of :class:`Adadelta` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        square_avgs: running means of squared gradients.
        acc_deltas: running means of squared steps.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`Adadelta`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import adadelta
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> adadelta(
        ...     params, grads, [torch.zeros(1)], [torch.zeros(1)], [torch.tensor(0.0)],
        ...     lr=1.0, rho=0.9, eps=1e-2, weight_decay=0.0, maximize=False,
        ... )
        >>> params
        [tensor([0.6877])]
    """
    refuse("adadelta", differentiable=differentiable)
    _check("adadelta", params, state_steps)
    states = {"step": state_steps, "square_avg": square_avgs, "acc_delta": acc_deltas}
    settings = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
    _step(Adadelta, params, grads, states, settings)


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """Take a step of :class:`Adamax` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        exp_avgs: running means of the gradients.
        exp_infs: decaying maxima of the gradients' magnitudes.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`Adamax`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import adamax
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> adamax(
        ...     params, grads, [torch.zeros(1)], [torch.zeros(1)], [torch.tensor(0.0)],
        ...     eps=1e-8, beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0.0,
        ... )
        >>> params
        [tensor([0.9000])]
    """
    refuse("adamax", differentiable=differentiable)
    _check("adamax", params, state_steps)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_inf": exp_infs}
    settings = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
    }  # fmt: skip
    _step(Adamax, params, grads, states, settings)


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """Take a step of :class:`NAdam` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        exp_avgs: running means of the gradients.
        exp_avg_sqs: running means of the squared gradients.
        mu_products: the products of the momentum factors of all steps.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`NAdam`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import nadam
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> nadam(
        ...     params, grads, [torch.zeros(1)], [torch.zeros(1)], [torch.ones(())], [torch.tensor(0.0)],
        ...     beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0.0, momentum_decay=4e-3, eps=1e-8,
        ... )
        >>> params
        [tensor([0.8944])]
    """
    refuse("nadam", differentiable=differentiable)
    _check("nadam", params, state_steps)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "mu_product": mu_products}
    settings = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
        "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
    }  # fmt: skip
    _step(NAdam, params, grads, states, settings)


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """Take a step of :class:`RAdam` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        exp_avgs: running means of the gradients.
        exp_avg_sqs: running means of the squared gradients.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`RAdam`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import radam
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> radam(
        ...     params, grads, [torch.zeros(1)], [torch.zeros(1)], [torch.tensor(0.0)],
        ...     beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0.0, eps=1e-8,
        ... )
        >>> params
        [tensor([0.8000])]
    """
    refuse("radam", differentiable=differentiable)
    _check("radam", params, state_steps)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    settings = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay,
        "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
    }  # fmt: skip
    _step(RAdam, params, grads, states, settings)


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """Take a step of :class:`RMSprop` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        square_avgs: running means of squared gradients.
        grad_avgs: running means of gradients, if `centered`.
        momentum_buffer_list: the momentum buffers, if `momentum` is not zero.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`RMSprop`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import rmsprop
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> rmsprop(
        ...     params, grads, [torch.zeros(1)], [], [], [torch.tensor(0.0)],
        ...     lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False,
        ... )
        >>> params
        [tensor([0.9000])]
    """
    refuse("rmsprop", differentiable=differentiable)
    _check("rmsprop", params, state_steps)
    states = {
        "step": state_steps, "square_avg": square_avgs, "grad_avg": grad_avgs if centered else [],
        "momentum_buffer": momentum_buffer_list if momentum > 0 else [],
    }  # fmt: skip
    settings = {
        "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
        "centered": centered, "maximize": maximize,
    }  # fmt: skip
    _step(RMSprop, params, grads, states, settings)


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """Take a step of :class:`Rprop` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        prevs: the gradients of the previous step.
        step_sizes: lengths of the steps.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`Rprop`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import rprop
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> rprop(
        ...     params, grads, [torch.zeros(1)], [torch.tensor([0.1])], [torch.tensor(0.0)],
        ...     step_size_min=1e-6, step_size_max=50, etaminus=0.5, etaplus=1.2,
        ... )
        >>> params
        [tensor([0.9000])]
    """
    refuse("rprop", differentiable=differentiable)
    _check("rprop", params, state_steps)
    states = {"step": state_steps, "prev": prevs, "step_size": step_sizes}
    settings = {
        "etas": (etaminus, etaplus), "step_sizes": (step_size_min, step_size_max), "maximize": maximize,
    }  # fmt: skip
    _step(Rprop, params, grads, states, settings)


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """Take a step of :class:`ASGD` in place, with the state given as lists.

    Args:
        params: the parameters.
        grads: the gradients of the parameters.
        axs: running averages of the parameters.
        mus: for each parameter, the weight of its new value in the running average.
        etas: learning rates.
        state_steps: the number of steps of each parameter, float32; incremented by one.
        The other arguments are the same as for :class:`ASGD`; `foreach` and `has_complex` have no effect.

    Shape:
        - Parameters, gradients and states: (*), the same shape for each parameter; `state_steps`: ().

    Raises:
        RuntimeError: a step counter is not a tensor, or a parameter requires a gradient and the call is outside of
            `no_grad`.
        NotImplementedError: an unsupported option is selected.

    Example:
        >>> from rushlight_nn.optim.functional import asgd
        >>> params, grads = [torch.tensor([1.0])], [torch.tensor([2.0])]
        >>> asgd(
        ...     params, grads, [torch.zeros(1)], [torch.ones(())], [torch.tensor(0.1)], [torch.tensor(0.0)],
        ...     lambd=1e-4, lr=0.1, t0=1e6, alpha=0.75, weight_decay=0.0,
        ... )
        >>> params
        [tensor([0.8000])]
    """
    refuse("asgd", differentiable=differentiable)
    _check("asgd", params, state_steps)
    states = {"step": state_steps, "ax": axs, "mu": mus, "eta": etas}
    settings = {
        "lambd": lambd, "lr": lr, "t0": t0, "alpha": alpha, "weight_decay": weight_decay, "maximize": maximize,
    }  # fmt: skip
    _step(ASGD, params, grads, states, settings)
