"""The default random generator, by functions."""

from rushlight_core import default_generator as default_generator
from rushlight_core import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from rushlight_core._random import get_stream, stream
from rushlight_data.random_streams import thread_safe_generator

__all__ = [
    "fork_rng",
    "get_rng_state",
    "get_stream",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "stream",
    "thread_safe_generator",
]
