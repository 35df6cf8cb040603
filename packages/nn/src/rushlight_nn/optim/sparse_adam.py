"""Adam for gradients that are sparse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import sqrt

import rushlight_core as core
from rushlight_core import Tensor

from .._core import operator
from .._typing import Any
from ._lists import check_lists
from ._states import check_betas
from .optimizer import Optimizer, check_settings

_sparse_values = operator("_sparse_values")
_with_sparse_values = operator("_with_sparse_values")


class SparseAdam(Optimizer):
    """Adam for sparse gradients, for example of `nn.Embedding(sparse=True)`.

    The running means and the parameter are updated only at the indices that the sparse gradient contains.

    Args:
        params: dense tensors with sparse gradients, or parameter groups of them.
        lr: learning rate.
        betas: the decay rates of the running means of the gradient and of its square.
        eps: added to the denominator for numerical stability.
        maximize: maximise the objective instead of minimising it.

    Raises:
        ValueError: an argument is out of range, or a parameter is sparse or complex.
        RuntimeError: `step` finds a dense gradient.

    Example:
        >>> table = nn.Embedding(1000, 4, sparse=True)
        >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        >>> before = table.weight.detach().clone()
        >>> table(torch.tensor([3, 7])).sum().backward()
        >>> optimizer.step()
        >>> (table.weight != before).any(1).nonzero().flatten()  # the rows that changed
        tensor([3, 7])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_settings("SparseAdam", lr=lr, eps=eps)
        if not lr > 0 or not eps > 0:
            raise ValueError(f"SparseAdam(lr, eps): got {lr} and {eps}, needs numbers above 0")
        check_betas("SparseAdam", betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        for number, group in enumerate(self.param_groups):
            if any(param.is_sparse for param in group["params"]):
                raise ValueError(
                    f"SparseAdam requires dense parameter tensors: group {number} has a sparse one"
                )
            if any(param.is_complex() for param in group["params"]):
                raise ValueError(
                    f"SparseAdam does not support complex parameters: group {number} has a complex one"
                )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Args:
            closure: a function that computes the gradients and returns the loss, which `step` returns.

        Raises:
            RuntimeError: a gradient is dense.
        """
        loss = None if closure is None else self._evaluate(closure)
        with core.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    if not param.grad.is_sparse:
                        raise RuntimeError(
                            "SparseAdam does not support dense gradients, please consider Adam instead"
                        )
                    state = self.state[param]
                    if not state:
                        state["step"] = 0
                        state["exp_avg"], state["exp_avg_sq"] = core.zeros_like(param), core.zeros_like(param)
                    state["step"] += 1
                    update_rows(group, param, param.grad, state)
        return loss


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
    check_lists("sparse_adam", params)
    group = {"betas": (beta1, beta2), "eps": eps, "lr": lr, "maximize": maximize}
    with core.no_grad():
        for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
            state = {"step": state_steps[i], "exp_avg": exp_avgs[i], "exp_avg_sq": exp_avg_sqs[i]}
            update_rows(group, param, grad, state)


def update_rows(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    """Update `param` at the indices that its sparse gradient contains.

    The step count in the state already includes this step."""
    grad = grad.coalesce()
    first, second = group["betas"]
    values = _sparse_values(grad)
    if group["maximize"]:
        values = -values
    mean = _move(state["exp_avg"], grad, values, 1 - first)
    square = _move(state["exp_avg_sq"], grad, values * values, 1 - second)
    step = float(group["lr"]) * sqrt(1 - second ** state["step"]) / (1 - first ** state["step"])
    change = mean.div_(square.sqrt_().add_(group["eps"]))
    param.add_(_with_sparse_values(change, grad), alpha=-step)


def _move(average: Tensor, places: Tensor, values: Tensor, weight: float) -> Tensor:
    """Update the running mean `average` in place at the indices of the sparse tensor `places`.

    Each of these elements moves towards its element of `values` by the fraction `weight` of the distance.
    Return the updated elements.
    """
    before = _sparse_values(average.sparse_mask(places))
    change = (values - before).mul_(weight)
    average.add_(_with_sparse_values(change, places))
    return before.add_(change)
