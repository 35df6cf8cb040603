"""Random numbers on GPUs. All devices draw from the same random stream."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import initial_seed

from ._devices import _is_usable, _need, device_count

TYPE_CHECKING = False  # typing takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def manual_seed(seed: int) -> None:
    """Seed the random number generator of the GPU. All devices share one random stream, so this function also seeds the CPU.

    Does nothing if there is no GPU.

    Example:
        >>> torch.cuda.manual_seed(0)
    """
    if _is_usable():
        core.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the random number generators of all GPUs; see `manual_seed`.

    Example:
        >>> torch.cuda.manual_seed_all(0)
    """
    manual_seed(seed)


def seed() -> None:
    """Seed the random number generator of the GPU from the system's entropy; see `manual_seed`.

    Example:
        >>> torch.cuda.seed()
    """
    if _is_usable():
        core.seed()


seed_all = seed


def get_rng_state(device: Any = "cuda") -> core.Tensor:
    """Return the state of the random stream, which all devices share.

    Args:
        device: has no effect.

    Shape:
        - Output: (N,), of dtype uint8.

    Raises:
        RuntimeError: there is no GPU.

    Example::

        state = torch.cuda.get_rng_state()
        first = torch.rand(3, device="cuda")
        torch.cuda.set_rng_state(state)
        torch.equal(first, torch.rand(3, device="cuda"))  # True
    """
    _need("get_rng_state")
    return core.get_rng_state()


def set_rng_state(new_state: core.Tensor, device: Any = "cuda") -> None:
    """Restore a state that `get_rng_state` returned.

    Args:
        new_state: the state.
        device: has no effect.

    Shape:
        - `new_state`: (N,), of dtype uint8.

    Raises:
        RuntimeError: there is no GPU, or the tensor is not the state of a random stream.

    Example::

        state = torch.cuda.get_rng_state()
        torch.cuda.set_rng_state(state)
    """
    _need("set_rng_state")
    core.set_rng_state(new_state)


def get_rng_state_all() -> list[core.Tensor]:
    """Return a list with the state of the random stream for each GPU. The list is empty if there is no GPU.

    Shape:
        - Outputs: (N,), of dtype uint8.

    Example:
        >>> len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()
        True
    """
    return [core.get_rng_state() for _ in range(device_count())]


def set_rng_state_all(new_states: Iterable[core.Tensor]) -> None:
    """Restore the states that `get_rng_state_all` returned.

    Shape:
        - `new_states`: tensors of shape (N,), of dtype uint8.

    Raises:
        RuntimeError: `new_states` is not empty, but there is no GPU.

    Example:
        >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
    for state in new_states:
        set_rng_state(state)
