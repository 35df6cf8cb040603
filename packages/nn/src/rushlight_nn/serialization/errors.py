"""Exceptions of `load`."""

from __future__ import annotations

from pickle import UnpicklingError

# Note [What a file may take]
# Objects are larger in memory than in a file. Of a list of numbers below 2**16 an element takes 9 bytes for 2 or 3 in
# a pickle, of larger numbers 41 for 5, an element of a set up to 150 for 5 and its list, an empty list 90 for 6, a
# dictionary of one item 260 for 11, a set of five small numbers 900 for 27: in PyTorch's protocol 2, which numbers
# every container in 5 bytes, no list, tuple, dictionary or set takes more than 34 times its instructions, and in JSON
# more than 32 times its text unless brackets merely enclose brackets; the most that `save` writes is a deque, of 780
# bytes for 15. A file may take RATIO times its size. What takes more is refused: instructions that copy a container
# again and again, and containers that the file does not number, as every writer does.
RATIO = 56


class FormatError(Exception):
    """The error of an invalid file, with a description; `load` converts it to a :class:`CheckpointError`."""


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
    """The memory that reading a file may use, so that a small file cannot allocate a large amount.

    Readers charge the memory of objects before they create them. The bytes of tensors take as much memory as they do in the
    file, and are not charged. See Note [What a file may take].

    Args:
        size: the size of the file, in bytes.
    """

    left: int

    def __init__(self, size: int) -> None:
        self.size = size
        self.left = RATIO * size + (8 << 20)

    def charge(self, nbytes: int) -> None:
        """Subtract `nbytes` from the remaining memory.

        Raises:
            FormatError: less than `nbytes` remains.
        """
        self.left -= nbytes
        if self.left < 0:
            raise FormatError(f"its objects need much more memory than the {self.size} bytes of the file")
