"""The default random generator, by functions."""

from rushlight_core import default_generator as default_generator
from rushlight_core import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from rushlight_data.random_streams import thread_safe_generator

__all__ = [
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]
