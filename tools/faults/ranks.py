"""Faults of ranks that compute together. Rank 0 is the program; rank 1 is forked."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from faults.registry import fault

SECONDS = 5  # the timeout of the group


def _two(lib: Any, program: Callable[[Any, int], Any]) -> bool:
    """Run a program on two ranks and return the result of rank 0."""
    folder = tempfile.mkdtemp()
    rank = 1 if (child := os.fork()) == 0 else 0
    try:
        lib.dist.init_process_group(
            lib.backend, init_method=f"file://{folder}/meet", rank=rank, world_size=2,
            timeout=timedelta(seconds=SECONDS),
        )  # fmt: skip
        lib.torch.set_num_threads(1)
        lib.dist.barrier()
        lib.report["begun"] = time.monotonic()
        return bool(program(lib, rank))
    finally:
        if rank == 1:
            os._exit(0)
        lib.report["ended"] = time.monotonic()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raises() -> None:
    raise ValueError


def _late() -> None:
    time.sleep(1000)


def _calls(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def program(lib: Any, rank: int) -> bool:
        first(lib) if rank == 0 else second(lib)
        return False

    return lambda lib: _two(lib, program)


def _reduce(lib: Any) -> None:
    lib.dist.all_reduce(lib.torch.ones(1000))


COLLECTIVES: dict[str, Callable[[Any], Any]] = {
    "all_reduce": _reduce,
    "broadcast": lambda lib: lib.dist.broadcast(lib.torch.ones(1000), 1),
    "barrier": lambda lib: lib.dist.barrier(),
    "all_gather": lambda lib: lib.dist.all_gather([lib.torch.ones(4), lib.torch.ones(4)], lib.torch.ones(4)),
    "recv": lambda lib: lib.dist.recv(lib.torch.ones(4), 1),
    "a large send": lambda lib: lib.dist.send(lib.torch.ones(8 << 20), 1),
}
for _name, _call in COLLECTIVES.items():
    fault(f"rank 1 in {_name}", "is killed", r"rank 1\b|\[1\]")(_calls(_call, lambda lib: _dies()))
for _name in ("all_reduce", "recv"):
    fault(f"rank 1 in {_name}", "raises and ends", r"rank 1\b|\[1\]")(
        _calls(COLLECTIVES[_name], lambda lib: _raises())
    )
    fault(f"rank 1 in {_name}", "does not come", r"timed out.*\b1\b|\b1\b.*timed out|imed out|imeout")(
        _calls(COLLECTIVES[_name], lambda lib: _late())
    )
fault("rank 1 in all_reduce", "leaves the group", r"rank 1\b")(
    _calls(_reduce, lambda lib: lib.dist.destroy_process_group())
)


def _pair(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Make ranks disagree: rank 1 does not end before rank 0 has detected the difference."""

    def wait(lib: Any) -> None:
        with contextlib.suppress(Exception):
            second(lib)
        time.sleep(1000)

    return _calls(first, wait)


BOTH = r"rank 0.*rank 1|ranks disagree"
DISAGREE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "on the size": (_reduce, lambda lib: lib.dist.all_reduce(lib.torch.ones(999))),
    "on the dtype": (_reduce, lambda lib: lib.dist.all_reduce(lib.torch.ones(1000, dtype=lib.torch.float64))),
    "on the reduction": (_reduce, lambda lib: lib.dist.all_reduce(lib.torch.ones(1000), lib.dist.ReduceOp.MAX)),
    "on the root": (
        lambda lib: lib.dist.broadcast(lib.torch.ones(4), 0), lambda lib: lib.dist.broadcast(lib.torch.ones(4), 1),
    ),
    "on the operation": (_reduce, lambda lib: lib.dist.barrier()),
    "on the size of a message": (
        lambda lib: lib.dist.recv(lib.torch.ones(4), 1), lambda lib: lib.dist.send(lib.torch.ones(5), 0),
    ),
    "on the dtype of a message": (
        lambda lib: lib.dist.recv(lib.torch.ones(4), 1),
        lambda lib: lib.dist.send(lib.torch.ones(4, dtype=lib.torch.int32), 0),
    ),
}  # fmt: skip
for _name, (_first, _second) in DISAGREE.items():
    fault("ranks disagree", _name, BOTH)(_pair(_first, _second))


@fault("ranks", "an object of rank 1 cannot be pickled", "pickle")
def _object(lib: Any) -> bool:
    def program(lib: Any, rank: int) -> bool:
        lib.dist.all_gather_object([None, None], threading.Lock() if rank else 1)
        return False

    return _two(lib, program)


def _wrapped(lib: Any, rank: int, how: str) -> bool:
    parallel = lib.nn.parallel.DistributedDataParallel
    width = 3 if how == "has other parameters" and rank else 2
    model = lib.nn.Sequential(lib.nn.Linear(2, width), lib.nn.Linear(width, 1), lib.nn.Linear(1, 1))
    model = parallel(model)
    for _ in range(2):
        x = lib.torch.ones(1, 2, requires_grad=True)
        if rank and how == "is killed in backward":
            x.register_hook(lambda grad: _dies())
        if rank and how == "raises in backward":
            x.register_hook(lambda grad: _raises())
        model(x).sum().backward()
    return False


for _how, _names in {
    "has other parameters": r"rank 1|rank 0", "is killed in backward": r"rank 1\b", "raises in backward": r"rank 1\b",
}.items():  # fmt: skip
    fault("a wrapped module, where rank 1", _how, _names)(
        partial(lambda lib, how: _two(lib, partial(_wrapped, how=how)), how=_how)
    )


@fault("a wrapped module, where rank 1", "does not use a parameter", "gradient|reduction|unused|used")
def _unused(lib: Any) -> bool:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = lib.nn.Linear(2, 2), lib.nn.Linear(2, 2)

        def forward(self, x: Any, both: bool) -> Any:
            return self.b(self.a(x)) if both else self.a(x)

    def program(lib: Any, rank: int) -> bool:
        model = lib.nn.parallel.DistributedDataParallel(Net())
        for _ in range(3):
            model(lib.torch.ones(1, 2), rank == 0).sum().backward()
        return False

    return _two(lib, program)
