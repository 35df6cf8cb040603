"""Exceptions of `load`."""

from __future__ import annotations

from pickle import UnpicklingError


class FormatError(Exception):
    """Raised with a description of what is wrong with a file; `load` makes a :class:`CheckpointError` of it."""


class CheckpointError(RuntimeError, UnpicklingError):
    """The error of a file that is not a checkpoint, is truncated, was altered, or contains more than data.

    Its attribute `path` names the file.

    Example:
        >>> _ = open("broken.pt", "w").write("nonsense")
        >>> torch.load("broken.pt")
        Traceback (most recent call last):
            ...
        rushlight_nn.serialization.errors.CheckpointError: ...
    """

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"load({path!r}): {what}")
        self.path = path


class Budget:
    """The memory that reading a file may take: a small file must not be able to allocate a lot.

    Readers charge an estimate before they make an object. Tensors' bytes are in the file, one for one.

    Args:
        size: of the file, in bytes.
    """

    left: int

    def __init__(self, size: int) -> None:
        self.size = size
        self.left = 8 * size + (10 << 20)

    def charge(self, nbytes: int) -> None:
        """Take `nbytes` from what is left.

        Raises:
            FormatError: there is less.
        """
        self.left -= nbytes
        if self.left < 0:
            raise FormatError(f"its objects need much more memory than the {self.size} bytes of the file")
