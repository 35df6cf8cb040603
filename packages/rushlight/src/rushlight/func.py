"""Transforms of functions: those of rushlight_autograd, and modules as functions of their parameters, of rushlight_nn."""

from rushlight_autograd.batching import debug_unwrap as debug_unwrap
from rushlight_autograd.batching import slow_path_taken as slow_path_taken
from rushlight_autograd.batching import vmap as vmap
from rushlight_autograd.batching import warn_of_slow_path as warn_of_slow_path
from rushlight_autograd.jacobians import hessian as hessian
from rushlight_autograd.jacobians import jacfwd as jacfwd
from rushlight_autograd.jacobians import jacrev as jacrev
from rushlight_autograd.transforms import grad as grad
from rushlight_autograd.transforms import grad_and_value as grad_and_value
from rushlight_autograd.transforms import jvp as jvp
from rushlight_autograd.transforms import linearize as linearize
from rushlight_autograd.transforms import vjp as vjp
from rushlight_nn.utils.stateless import functional_call as functional_call
from rushlight_nn.utils.stateless import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from rushlight_nn.utils.stateless import stack_module_state as stack_module_state

__all__ = [
    "debug_unwrap",
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "slow_path_taken",
    "stack_module_state",
    "vjp",
    "vmap",
    "warn_of_slow_path",
]
