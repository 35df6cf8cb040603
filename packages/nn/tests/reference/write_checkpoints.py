"""Writes the files of `checkpoints/` with PyTorch: python write_checkpoints.py.

Tests read these files without PyTorch, and the fuzzer starts from them. `expected` returns the contents of values.pt.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import pathlib
import sys
import warnings

import numpy as np
import torch
from torch import nn, optim

HERE = pathlib.Path(__file__).parent / "checkpoints"
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
DTYPES += ["complex64", "complex128"]
NEW_DTYPES = ["uint16", "uint32", "uint64"]
FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]


def values(dtypes: list[str]) -> dict[str, object]:
    base = torch.arange(12.0).reshape(3, 4)
    return {
        "dtypes": {name: torch.tensor([0, 1, 1]).to(getattr(torch, name)) for name in dtypes},
        "base": base,
        "transposed": base.t(),
        "row": base[1],
        "number": torch.tensor(3.5),
        "empty": torch.empty(0, 3),
        "expanded": torch.ones(1).expand(4),
        "meta": torch.empty(2, 3, device="meta"),
        "parameter": nn.Parameter(torch.ones(2)),
        "frozen": nn.Parameter(torch.ones(2), requires_grad=False),
        "buffer": nn.Buffer(torch.ones(1)),
        "leaf": torch.ones(2, requires_grad=True),
        "plain": [None, True, False, 0, 255, 256, 65536, -1, 2**40, -(2**70), 2.5, "é", (1, (2,)), ()],
        "set": {1, "a"},
        "bytes": b"a\xff",
        "bytearray": bytearray(b"b"),
        "complex": 1 + 2j,
        "ordered": collections.OrderedDict(a=1),
        "counter": collections.Counter("aab"),
        "dtype": torch.bfloat16,
        "device": torch.device("cuda", 1),
        "size": torch.Size([2, 3]),
    }


def float8() -> dict[str, object]:
    """All codes of each format, and a view of some."""
    codes = {name: torch.arange(256, dtype=torch.uint8).view(getattr(torch, name)) for name in FLOAT8}
    return codes | {"row": codes["float8_e5m2"].view(16, 16)[1]}


def more() -> dict[str, object]:
    """Return values that PyTorch itself reads only with weights_only=False."""
    zone = datetime.timezone(datetime.timedelta(hours=2), "X")
    return {
        "defaultdict": collections.defaultdict(list, {"a": [1]}),
        "frozenset": frozenset([1]),
        "namespace": argparse.Namespace(lr=0.5, name="x"),
        "path": pathlib.PurePosixPath("a/b"),
        "datetime": datetime.datetime(2020, 1, 2, 3, 4, 5, 6, zone),
        "date": datetime.date(2021, 2, 3),
        "time": datetime.time(1, 2, 3, 4),
        "timedelta": datetime.timedelta(1, 2, 3),
        "array": np.arange(6, dtype=np.int16).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "swapped": np.arange(3, dtype=">i4"),
        "scalar": np.float32(1.5),
        "deque": collections.deque([1, 2], 5),
    }


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight


def conjugated() -> dict[str, object]:
    base = torch.tensor([1 + 2j, 3 - 4j, 5j])
    return {
        "view": base.conj(),
        "base": base,
        "row": base[1:].conj(),
        "parameter": nn.Parameter(base.conj()),
        "expanded": base[:1].conj().expand(4),
        # The imaginary part of a conjugated tensor has the negative bit.
        "negative": torch.tensor([1 + 2j, 3 - 4j, 5j]).conj().imag,
    }


def quantized() -> dict[str, object]:
    scales, zeros = torch.ones(2), torch.zeros(2, dtype=torch.int64)
    return {
        "tensor": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
        "channels": torch.quantize_per_channel(torch.ones(3, 2), scales, zeros, 1, torch.qint32),
    }


def training() -> dict[str, object]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 2))
    optimizer = optim.AdamW(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.MultiStepLR(optimizer, [1, 3])
    for _ in range(2):
        model(torch.randn(4, 2, 4, 4)).square().sum().backward()
        optimizer.step()
        scheduler.step()
    found = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    return {name: value.state_dict() for name, value in found.items()} | {"tied": Tied().state_dict()}


def main() -> None:
    warnings.simplefilter("ignore")
    HERE.mkdir(exist_ok=True)
    torch.save(values(DTYPES + NEW_DTYPES), HERE / "values.pt")
    torch.save(values(DTYPES), HERE / "values_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(float8(), HERE / "float8.pt")
    torch.save(more(), HERE / "more.pt")
    torch.save(training(), HERE / "training.pt")
    torch.save(training(), HERE / "training_legacy.pt", _use_new_zipfile_serialization=False)
    for make in (conjugated, quantized):
        torch.save(make(), HERE / f"{make.__name__}.pt")
        torch.save(make(), HERE / f"{make.__name__}_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(nn.Sequential(nn.Linear(1, 1)), HERE / "module.pt")
    torch.jit.save(torch.jit.script(nn.Linear(1, 1)), HERE / "script.pt")
    torch.save(torch.eye(2).to_sparse(), HERE / "sparse.pt")


if __name__ == "__main__":
    sys.exit(main())
