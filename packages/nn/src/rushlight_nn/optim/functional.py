"""Functions that take a step of an optimizer, given lists of parameters, gradients and states.

In PyTorch, these functions are in the modules of the optimizers (`torch.optim.adam.adam`) and in
`torch.optim._functional`. Parameters and states are updated in place, and every tensor in `state_steps` is
incremented by one. The other arguments have the same meaning as for the optimizer of the same name.
`foreach`, `fused` and `has_complex` are accepted and ignored. Steps are not recorded in the graph, so
parameters that require gradients must be updated under `no_grad`.
"""

from __future__ import annotations

from .adadelta import adadelta
from .adagrad import adagrad
from .adam import adam, adamw
from .adamax import adamax
from .asgd import asgd
from .nadam import nadam
from .radam import radam
from .rmsprop import rmsprop
from .rprop import rprop
from .sgd import sgd
from .sparse_adam import sparse_adam

__all__ = [
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd", "sparse_adam",
]  # fmt: skip
