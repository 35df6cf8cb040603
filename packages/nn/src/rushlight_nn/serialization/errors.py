"""Exceptions of `load`."""

from __future__ import annotations

from pickle import UnpicklingError

# Note [What a file may take]
# Objects are larger in memory than in a file. Objects in a pickle have these sizes in bytes:
#
#     object                                                memory  file
#     a number below 2**16 in a list                             9  2 or 3
#     a larger number in a list                                 41  5
#     an element of a set, including its temporary list        150  5
#     an empty list                                             90  6
#     a dictionary of one item                                 260  11
#     a set of five small numbers                              900  27
#
# The sizes of containers include 5 bytes for the instruction that stores them in the memo, which PyTorch writes for
# every container. With this instruction, no list, tuple, dictionary or set takes more than 34 times the size of its
# instructions. JSON takes at most 32 times the size of the text, unless brackets enclose only brackets. Among the
# objects that `save` writes, a deque has the largest ratio: 780 bytes of memory for 15 bytes of the file. Reading a file
# may therefore take RATIO times the size of the file. A file that takes more is refused. Such a file copies a container
# again and again, or has containers that are not stored in the memo, which no writer produces.
#
# Small files may take more in proportion: objects may always take FREE bytes. The documentation promises 16 MB in addition
# to RATIO times the size of the file. The rest of the 16 MB, 8 MiB, is for memory that is not counted: the buffers, the
# stack and the tables of the readers.
RATIO = 56
FREE = 8 << 20


class FormatError(Exception):
    """The error that describes why a file is invalid; `load` converts it to a :class:`CheckpointError`."""


class CheckpointError(RuntimeError, UnpicklingError):
    """Raised if a file is not a checkpoint, is truncated or damaged, or uses a class or function not allowed.

    The attribute `path` of the error is the path of the file.

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


class EmptyFileError(CheckpointError, EOFError):
    """Raised if a file is empty.

    Example:
        >>> open("empty.pt", "w").close()
        >>> torch.load("empty.pt")
        Traceback (most recent call last):
            ...
        rushlight_nn.serialization.errors.EmptyFileError: ...
    """


class Budget:
    """A limit on the memory that reading a file may use, so that a small file cannot allocate much memory.

    Readers subtract the memory of objects from the remaining memory before they create the objects. The bytes of tensors are
    not subtracted, because they take only as much memory as they take in the file. See Note [What a file may take].

    Args:
        size: the size of the file, in bytes.
    """

    left: int

    def __init__(self, size: int) -> None:
        self.size = size
        self.left = RATIO * size + FREE

    def charge(self, nbytes: int) -> None:
        """Subtract `nbytes` from the remaining memory.

        Raises:
            FormatError: less than `nbytes` remains.
        """
        self.left -= nbytes
        if self.left < 0:
            raise FormatError(
                f"the objects in the file need much more memory than the {self.size} bytes of the file"
            )
