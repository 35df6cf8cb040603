"""The default random generator."""

from __future__ import annotations

from . import _C

TYPE_CHECKING = False  # typing takes longer to import than this package
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ._C import Generator, Tensor


def manual_seed(seed: int) -> Generator:
    """Seed the generators of all devices, and return the default generator.

    A negative seed is interpreted as the unsigned 64-bit integer with the same bits.

    Raises:
        ValueError: the seed has more than 64 bits.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> a = torch.rand(3)
        >>> _ = torch.manual_seed(0)
        >>> torch.equal(a, torch.rand(3))
        True
    """
    return _C.default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default generator from the system's entropy, and return the seed.

    Example:
        >>> isinstance(torch.seed(), int)
        True
    """
    return _C.default_generator.seed()


def initial_seed() -> int:
    """Return the seed with which the default generator was last seeded.

    Example:
        >>> _ = torch.manual_seed(7)
        >>> torch.initial_seed()
        7
    """
    return _C.default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the default generator, for `set_rng_state`.

    Shape:
        - Output: (number of bytes), uint8.

    Example:
        >>> state = torch.get_rng_state()
        >>> a = torch.rand(3)
        >>> torch.set_rng_state(state)
        >>> torch.equal(a, torch.rand(3))
        True
    """
    return _C.default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator to a state that `get_rng_state` returned.

    Args:
        new_state: the state.

    Shape:
        - State: (number of bytes), uint8.

    Example:
        >>> torch.set_rng_state(torch.get_rng_state())
    """
    _C.default_generator.set_state(new_state)


class stream:  # noqa: N801
    """Choose how the CPU generates random numbers: by rushlight's generator, or exactly as PyTorch does.

    The choice takes effect immediately, for the default generator and for every `Generator` that is created
    afterwards. The default generator starts again from its initial seed. A `with` statement restores the
    former choice at the end of the block. The environment variable `RUSHLIGHT_RANDOM` selects the stream at
    the start of the process.

    Args:
        name: `"philox"` (the default) or `"torch"`. With `"philox"`, each number depends only on the seed, the preceding
            calls and the position of the element. Many threads can thus draw at the same time, and all devices draw the same
            numbers. With `"torch"`, the functions `rand`, `randn`, `randint`, `randperm`, `normal`, `uniform_`, `bernoulli`,
            `multinomial`, `exponential_`, `cauchy_`, `log_normal_`, `geometric_`, dropout and `nn.init` draw the same
            numbers as PyTorch's CPU generator (MT19937) for the same seed and the same calls. These functions run on one
            thread. Other functions (`poisson`, `binomial`, gamma samples) and other devices use `"philox"`.

    `set_rng_state` accepts states of both streams, and switches to the stream to which the state belongs. States of the
    stream `"torch"` can be exchanged with PyTorch: PyTorch accepts them, and `set_rng_state` accepts the states that PyTorch
    saved.

    Raises:
        ValueError: `name` is neither "philox" nor "torch".

    Example:
        >>> with torch.random.stream("torch"):
        ...     _ = torch.manual_seed(0)
        ...     torch.rand(2)
        tensor([0.4963, 0.7682])
    """

    def __init__(self, name: str) -> None:
        self._before = _C.random_stream()
        _C.set_random_stream(name)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _C.set_random_stream(self._before)


def get_stream() -> str:
    """Return the name of the random stream that the CPU uses: `"philox"` or `"torch"`.

    Example:
        >>> torch.random.get_stream() in ("philox", "torch")
        True
    """
    return _C.random_stream()


class fork_rng:  # noqa: N801
    """A context manager that restores the state of the default generator at the end of the block.

    Args:
        devices: must be None or empty, because all devices use the default generator.
        enabled: whether the context manager has an effect.
        device_type: the type of device, "cuda" by default.
        _caller, _devices_kw: ignored; PyTorch uses them in a warning.

    Raises:
        RuntimeError: `devices` is not empty.

    Example:
        >>> state = torch.get_rng_state()
        >>> with torch.random.fork_rng():
        ...     _ = torch.rand(10)
        >>> torch.equal(state, torch.get_rng_state())
        True
    """

    def __init__(
        self,
        devices: Iterable[Any] | None = None,
        enabled: bool = True,
        _caller: str = "fork_rng",
        _devices_kw: str = "devices",
        device_type: str | None = None,
    ) -> None:
        if enabled and devices is not None and any(True for _ in devices):
            raise RuntimeError(
                f"fork_rng(devices): must be empty, because devices of type {device_type or 'cuda'!r} have no generator"
            )
        self._enabled = enabled
        self._state: Tensor | None = None

    def __enter__(self) -> None:
        if self._enabled:
            self._state = get_rng_state()

    def __exit__(self, *exception: object) -> None:
        if self._state is not None:
            set_rng_state(self._state)
