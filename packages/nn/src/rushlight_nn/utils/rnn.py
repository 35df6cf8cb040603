"""Sequences of different lengths in one tensor, either padded or packed without padding."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from itertools import pairwise

import rushlight_core as core
from rushlight_core import Tensor

TYPE_CHECKING = False  # see Note [No typing at run time]
if TYPE_CHECKING:
    from typing import Any, NamedTuple

    class _Fields(NamedTuple):
        data: Tensor
        batch_sizes: Tensor
        sorted_indices: Tensor | None
        unsorted_indices: Tensor | None
else:
    _Fields = namedtuple("_Fields", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Fields):
    """Packed sequences of different lengths, as returned by :func:`pack_padded_sequence`.

    Attributes:
        data: the first elements of all sequences, longest sequence first, then the second elements, and so on.
        batch_sizes: the batch size at each step, an int64 tensor on the CPU.
        sorted_indices: the indices that sort the sequences by decreasing length; None if the sequences were
            not reordered.
        unsorted_indices: the inverse permutation of `sorted_indices`.

    Shape:
        - `data`: (total, *); `batch_sizes`: (T); `sorted_indices` and `unsorted_indices`: (N).

    Raises:
        ValueError: `batch_sizes` is not on the CPU.

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                f"PackedSequence(batch_sizes): got a tensor on {batch_sizes.device}, needs the CPU"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __reduce__(self) -> Any:
        return type(self), tuple(self)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the packed sequence with `data` converted or moved as by `Tensor.to`.

        The indices are moved to the same device.
        """
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        orders = (None if t is None else t.to(data.device) for t in self[2:])
        return type(self)(data, self.batch_sizes, *orders)

    def _converted(self, dtype: Any) -> PackedSequence:
        return self.to(dtype)

    def double(self) -> PackedSequence:
        return self._converted(core.float64)

    def float(self) -> PackedSequence:
        return self._converted(core.float32)

    def half(self) -> PackedSequence:
        return self._converted(core.float16)

    def long(self) -> PackedSequence:
        return self._converted(core.int64)

    def int(self) -> PackedSequence:
        return self._converted(core.int32)

    def short(self) -> PackedSequence:
        return self._converted(core.int16)

    def char(self) -> PackedSequence:
        return self._converted(core.int8)

    def byte(self) -> PackedSequence:
        return self._converted(core.uint8)

    def is_pinned(self) -> bool:
        return self.data.is_pinned()

    def pin_memory(self) -> PackedSequence:
        """Return the packed sequence with `data` and the indices in pinned memory."""
        orders = (None if t is None else t.pin_memory() for t in self[2:])
        return type(self)(self.data.pin_memory(), self.batch_sizes, *orders)

    def cpu(self) -> PackedSequence:
        return self.to("cpu")

    def cuda(self, device: Any = "cuda") -> PackedSequence:
        return self.to(device)

    @property
    def is_cuda(self) -> bool:
        return self.data.device.type == "cuda"


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a permutation, or None if `permutation` is None.

    Args:
        permutation: the numbers from 0 to N - 1 in some order.

    Shape:
        - Input and output: (N).

    Example:
        >>> nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    positions = core.arange(permutation.numel(), device=permutation.device)
    return core.zeros_like(permutation).scatter(0, permutation, positions)


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences of different lengths.

    Args:
        input: the padded sequences.
        lengths: the length of each sequence, from 1 to T; a list, or a tensor on the CPU.
        batch_first: whether the batch is the first dimension of the input instead of the second.
        enforce_sorted: whether the sequences must be sorted by decreasing length. If False, any order is
            accepted, and the function sorts the sequences.

    Shape:
        - Input: (T, N, *), or (N, T, *) with `batch_first`.
        - Lengths: (N).
        - Output: a :class:`PackedSequence` with `data` (sum of the lengths, *).

    Raises:
        RuntimeError: the lengths do not fit the input, or `enforce_sorted` is set and the lengths are not sorted.

    Example:
        >>> padded = torch.tensor([[1, 2, 3], [4, 5, 0]])
        >>> nn.utils.rnn.pack_padded_sequence(padded, [3, 2], batch_first=True).data
        tensor([1, 4, 2, 5, 3])
    """
    device = lengths.device if isinstance(lengths, Tensor) else "cpu"
    lengths = core.as_tensor(lengths, dtype=core.int64, device=device)
    if lengths.device.type != "cpu" or lengths.dim() != 1:
        raise RuntimeError(
            f"pack_padded_sequence(lengths): needs a list or a tensor of one dimension on the CPU, got shape "
            f"{tuple(lengths.shape)} on {lengths.device}"
        )
    order = None
    if not enforce_sorted:
        order = lengths.argsort(descending=True)
        lengths = lengths[order]
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    counts = lengths.tolist()
    time, batch = input.shape[:2]
    if len(counts) != batch:
        raise RuntimeError(
            f"pack_padded_sequence(lengths): got {len(counts)} lengths, needs one for each of {batch} sequences"
        )
    if not counts or min(counts) < 1 or max(counts) > time:
        raise RuntimeError(
            f"pack_padded_sequence(lengths): got {counts}, needs lengths from 1 to {time}, the length of the input"
        )
    if any(a < b for a, b in pairwise(counts)):
        raise RuntimeError(
            "pack_padded_sequence(lengths): got unsorted lengths, needs non-increasing lengths with enforce_sorted=True\n"
            "hint: pass enforce_sorted=False to sort the sequences"
        )
    sizes = []
    live = batch
    for step in range(counts[0]):
        while counts[live - 1] <= step:
            live -= 1
        sizes.append(live)
    data = core.cat([input[step, :size] for step, size in enumerate(sizes)])
    return PackedSequence(data, core.tensor(sizes, dtype=core.int64, device="cpu"), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return packed sequences as one padded tensor, and their lengths: the inverse of :func:`pack_padded_sequence`.

    Args:
        sequence: the packed sequences.
        batch_first: whether to return the batch as the first dimension instead of the second.
        padding_value: the value with which shorter sequences are padded.
        total_length: the length T of the output; by default the length of the longest sequence.

    Shape:
        - Output: (T, N, *), or (N, T, *) with `batch_first`. Lengths: (N), int64.

    Raises:
        ValueError: `total_length` is too small.

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
        >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2, 3],
                [4, 5, 0]]), tensor([3, 2]))
    """
    data, batch_sizes, _, original = sequence
    sizes = batch_sizes.tolist()
    time = len(sizes)
    if total_length is not None:
        if total_length < time:
            raise ValueError(
                f"pad_packed_sequence(total_length): got {total_length}, needs at least {time}, "
                "the length of the longest sequence"
            )
        time = total_length
    batch = sizes[0]
    # The row of `data` for each step of each sequence. Padding is read from a row that is added at the end.
    table = core.full((time, batch), data.shape[0], dtype=core.int64, device="cpu")
    start = 0
    for step, size in enumerate(sizes):
        table[step, :size] = core.arange(start, start + size, device="cpu")
        start += size
    padding = core.full((1, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    padded = core.cat([data, padding]).index_select(0, table.reshape(-1).to(data.device))
    padded = padded.reshape(time, batch, *data.shape[1:])
    lengths = (table < data.shape[0]).sum(0)
    if original is not None:
        padded = padded.index_select(1, original)
        lengths = lengths[original.to("cpu")]
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Pad sequences of different lengths to one length, and stack them.

    Args:
        sequences: the tensors. They are converted to the dtype and the device of the first one.
        batch_first: whether to return the batch as the first dimension instead of the second.
        padding_value: the value with which shorter sequences are padded.
        padding_side: the side on which sequences are padded, "right" or "left".

    Shape:
        - Inputs: (L_i, *); all dimensions after the first have the same sizes in all inputs.
        - Output: (T, N, *), or (N, T, *) with `batch_first`, where T is the largest L_i.

    Raises:
        RuntimeError: `sequences` is empty or not iterable, sizes after the first differ, or `padding_side` is unknown.

    Example:
        >>> nn.utils.rnn.pad_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])], batch_first=True)
        tensor([[1, 2, 3],
                [4, 0, 0]])
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"pad_sequence(padding_side): got {padding_side!r}, needs 'left' or 'right'")
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence(sequences): got {type(sequences).__name__}, needs tensors")
    parts = list(sequences)
    if not parts:
        raise RuntimeError("pad_sequence(sequences): got no tensors, needs at least one")
    rest = parts[0].shape[1:]
    for part in parts:
        if part.shape[1:] != rest:
            raise RuntimeError(
                f"pad_sequence(sequences): shapes {tuple(parts[0].shape)} and {tuple(part.shape)} differ "
                "in a dimension other than the first"
            )
    time = max(part.shape[0] for part in parts)
    padded = []
    for part in parts:
        part = part.to(parts[0].device, parts[0].dtype)
        missing = time - part.shape[0]
        if missing:
            padding = core.full((missing, *rest), padding_value, dtype=part.dtype, device=part.device)
            part = core.cat([padding, part] if padding_side == "left" else [part, padding])
        padded.append(part)
    return core.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences of a padded tensor as a list: the inverse of :func:`pad_sequence`.

    Args:
        padded_sequences: the padded tensor.
        lengths: the lengths of the sequences.
        batch_first: whether the batch is the first dimension of the input instead of the second.

    Shape:
        - Input: (T, N, *), or (N, T, *) with `batch_first`. Lengths: (N).
        - Outputs: (L_i, *).

    Example:
        >>> nn.utils.rnn.unpad_sequence(torch.tensor([[1, 2, 3], [4, 0, 0]]), torch.tensor([3, 1]), batch_first=True)
        [tensor([1, 2, 3]), tensor([4])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(padded_sequences.unbind(0), lengths.tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths.

    Args:
        sequences: the tensors.
        enforce_sorted: whether the sequences must be sorted by decreasing length. If False, any order is
            accepted, and the function sorts the sequences.

    Shape:
        - Inputs: (L_i, *); all dimensions after the first have the same sizes in all inputs.
        - Output: a :class:`PackedSequence` with `data` (sum of the lengths, *).

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([torch.randn(4, 10), torch.randn(2, 10)])
        >>> output, hidden = nn.GRU(10, 20)(packed)
        >>> output.data.shape, hidden.shape
        (torch.Size([6, 20]), torch.Size([1, 2, 20]))
    """
    lengths = core.tensor([part.shape[0] for part in sequences], dtype=core.int64, device="cpu")
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return packed sequences as a list of tensors: the inverse of :func:`pack_sequence`.

    Args:
        packed_sequences: the packed sequences.

    Shape:
        - Outputs: (L_i, *).

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
        >>> nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2, 3]), tensor([4])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]
