"""The steps of optimizers as functions of lists: parameters, their gradients, and each part of their states.

PyTorch has them in the modules of the optimizers (`torch.optim.adam.adam`) and in `torch.optim._functional`. Parameters
and states are updated in place, and every tensor of `state_steps` is advanced by one. The settings are those of the
optimizer of the same name. `foreach`, `fused` and `has_complex` are accepted and not needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ._batches import as_real
from ._each import EachParameter
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


def _each(
    kind: type[EachParameter],
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    states: Mapping[str, Sequence[Tensor]],
    settings: dict[str, Any],
) -> None:
    """Take a step of an optimizer that updates one parameter after the other."""
    optimizer = kind.__new__(kind)  # for its rules: it has no parameters
    optimizer.defaults = settings
    group = {**settings, "params": params}
    with core.no_grad():
        for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
            given = {key: values[i] for key, values in states.items() if len(values)}
            state: dict[str, Any] = dict(given)
            optimizer._update_one(group, param, grad, state)
            for key, value in given.items():
                if state[key] is not value:  # a number that replaces the given one
                    value.copy_(state[key])


def _kinds(params: Sequence[Tensor]) -> list[list[int]]:
    """The positions of parameters by device and dtype: a fused step takes one kind."""
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
    """Take a step of :class:`Adam`."""
    refuse(
        "adam",
        differentiable=differentiable,
        grad_scale=grad_scale is not None,
        found_inf=found_inf is not None,
    )
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
    """Take a step of :class:`AdamW`."""
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
    """Take a step of :class:`SGD`. A buffer that is None is made, and replaces the None in `momentum_buffer_list`."""
    refuse("sgd", grad_scale=grad_scale is not None, found_inf=found_inf is not None)
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
    """Take a step of :class:`SparseAdam`. The caller has advanced `state_steps`, which are plain numbers."""
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
    """Take a step of :class:`Adagrad`."""
    refuse(
        "adagrad",
        differentiable=differentiable,
        grad_scale=grad_scale is not None,
        found_inf=found_inf is not None,
    )
    if weight_decay and any(grad.is_sparse for grad in grads):
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    settings = {
        "lr": lr,
        "weight_decay": weight_decay,
        "lr_decay": lr_decay,
        "eps": eps,
        "maximize": maximize,
    }
    _each(Adagrad, params, grads, {"step": state_steps, "sum": state_sums}, settings)


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
    """Take a step of :class:`Adadelta`."""
    refuse("adadelta", capturable=capturable, differentiable=differentiable)
    states = {"step": state_steps, "square_avg": square_avgs, "acc_delta": acc_deltas}
    settings = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
    _each(Adadelta, params, grads, states, settings)


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
    """Take a step of :class:`Adamax`."""
    refuse("adamax", capturable=capturable, differentiable=differentiable)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_inf": exp_infs}
    settings = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
    }  # fmt: skip
    _each(Adamax, params, grads, states, settings)


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
    """Take a step of :class:`NAdam`."""
    refuse("nadam", capturable=capturable, differentiable=differentiable)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "mu_product": mu_products}
    settings = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
        "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
    }  # fmt: skip
    _each(NAdam, params, grads, states, settings)


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
    """Take a step of :class:`RAdam`."""
    refuse("radam", capturable=capturable, differentiable=differentiable)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    settings = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay,
        "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
    }  # fmt: skip
    _each(RAdam, params, grads, states, settings)


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
    """Take a step of :class:`RMSprop`. `grad_avgs` is used if `centered`, `momentum_buffer_list` with a momentum."""
    refuse("rmsprop", capturable=capturable, differentiable=differentiable)
    states = {
        "step": state_steps, "square_avg": square_avgs, "grad_avg": grad_avgs if centered else [],
        "momentum_buffer": momentum_buffer_list if momentum > 0 else [],
    }  # fmt: skip
    settings = {
        "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
        "centered": centered, "maximize": maximize,
    }  # fmt: skip
    _each(RMSprop, params, grads, states, settings)


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
    """Take a step of :class:`Rprop`."""
    refuse("rprop", capturable=capturable, differentiable=differentiable)
    states = {"step": state_steps, "prev": prevs, "step_size": step_sizes}
    settings = {
        "etas": (etaminus, etaplus), "step_sizes": (step_size_min, step_size_max), "maximize": maximize,
    }  # fmt: skip
    _each(Rprop, params, grads, states, settings)


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
    """Take a step of :class:`ASGD`."""
    refuse("asgd", capturable=capturable, differentiable=differentiable)
    states = {"step": state_steps, "ax": axs, "mu": mus, "eta": etas}
    settings = {
        "lambd": lambd, "lr": lr, "t0": t0, "alpha": alpha, "weight_decay": weight_decay, "maximize": maximize,
    }  # fmt: skip
    _each(ASGD, params, grads, states, settings)
