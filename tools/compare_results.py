"""Compare every sample of every operator with PyTorch: values, dtypes, shapes, gradients and errors (`nox -s compare`).

The samples are those of the operators' entries (packages/core/ops/*.yaml). PyTorch's function is found by the operator's
name; operators without such a function, including hidden ones, are skipped and counted. For random operators and
uninitialised memory, only shapes and dtypes are compared. In addition to float32, each sample is run in other dtypes. In
these dtypes it is not a difference if PyTorch refuses a call that rushlight accepts. In float16 and bfloat16 it is not a
difference if rushlight's result is near PyTorch's in float64, because some half-precision kernels of PyTorch sum in half
precision on some processors.

Intended differences are listed in compare_differences.yaml, with reasons. An entry that no longer differs is an error.
Samples of the kind `crash` end PyTorch's process or never return; they are not run.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import multiprocessing
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from known_differences import Known, covered, read

MEANT = Path(__file__).with_name("compare_differences.yaml")
KINDS = ("values", "dtype", "shape", "gradient", "error", "raises", "crash")
TIME_LIMIT = 300  # seconds for one operator; most take less than 0.1
OTHER_DTYPES = ("float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool")
TOLERANCES = {
    "float64": 1e-7,
    "float32": 1e-4,
    "float16": 1e-2,
    "bfloat16": 8e-2,
    "complex64": 1e-4,
    "complex128": 1e-7,
}
# The modules of PyTorch's functions that are not torch.<name>. The prefix of an operator's name chooses the module.
MODULES = {"linalg_": "linalg", "special_": "special", "fft_": "fft"}


@dataclass(frozen=True)
class Difference:
    """One difference from PyTorch."""

    op: str
    kind: str  # one of KINDS: error means different classes, raises that only one library raises
    dtype: str
    sample: str
    text: str


def sort_out(found: list[Difference], table: list[Known]) -> tuple[list[Difference], list[Known]]:
    """Return the unintended differences, and the outdated entries. The name of an operator covers all of its overloads."""
    left = [d for d in found if not covered(table, d, {d.op, d.op.partition(".")[0]})]
    return left, [entry for entry in table if not entry.met and entry.kind != "crash"]


# --- both libraries ---


class Peer:
    """One library: how it calls an operator, and how its results become NumPy's arrays."""

    def __init__(self, library: Any, is_torch: bool) -> None:
        self.library = library
        self.is_torch = is_torch

    def function(self, op: Any) -> Any:
        """Return the function that users call for an operator, or None if there is none."""
        if "hidden" in op.variants or op.base.startswith("_"):
            return None
        base, namespaces = op.base, [self.library]
        for prefix, module in MODULES.items():
            if base.startswith(prefix):
                base, namespaces = base.removeprefix(prefix), [getattr(self.library, module, None)]
        if self.is_torch:
            # Prefer the operator itself to the function of nn.functional, which has other arguments.
            namespaces += [self.library._C._nn, self.library.nn.functional]
        elif base != op.base:  # our functions are also found by their whole names
            namespaces, base = [self.library._C], op.base
        if "function" not in op.variants:
            namespaces = [self.library.Tensor]
        return next((getattr(namespace, base) for namespace in namespaces if hasattr(namespace, base)), None)

    def arguments(self, op: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the arguments of a sample as objects of this library."""
        if not self.is_torch:
            return args, kwargs
        if isinstance(kwargs.get("memory_format"), str):
            name = kwargs["memory_format"]
            kwargs = {**kwargs, "memory_format": getattr(self.library, name, name)}
        for i, a in enumerate(op.schema.arguments):
            if (
                a.varargs
                and a.type.name == "Tensor[]"
                and i < len(args)
                and isinstance(args[i], (list, tuple))
            ):
                args = (*args[:i], *args[i], *args[i + 1 :])
            # PyTorch's inner operators require this argument, although their schemas have a default.
            if (
                a.name == "reduction"
                and i >= len(args)
                and not a.required
                and not hasattr(self.library, op.base)
            ):
                kwargs = {"reduction": a.default, **kwargs}
        return args, kwargs

    def array(self, tensor: Any) -> Any:
        tensor = tensor.detach()
        if name_of(tensor.dtype) == "bfloat16":
            tensor = tensor.to(self.library.float32)
        if self.is_torch:  # PyTorch may only mark a tensor as conjugated, or as zero
            return tensor.numpy(force=True)
        return tensor.numpy()


def name_of(dtype: Any) -> str:
    return str(dtype).rsplit(".", 1)[-1]


def flat(results: Any) -> list[Any]:
    """Return results as a flat list; tuples, named tuples and lists are flattened."""
    if isinstance(results, (tuple, list)) and not hasattr(results, "numel"):
        return [one for r in results for one in flat(r)]
    return [results]


def _in_double(value: Any) -> Any:
    """Return arguments with their tensors of half precision in float64."""
    if isinstance(value, dict):
        return {k: _in_double(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)) and not hasattr(value, "numel"):
        return type(value)(_in_double(v) for v in value)
    return value.double() if name_of(getattr(value, "dtype", "")) in ("float16", "bfloat16") else value


def _is_empty(results: Any) -> bool:
    return all(hasattr(r, "numel") and r.numel() == 0 for r in flat(results))


def attempt(function: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, Exception | None]:
    try:
        return function(*args, **kwargs), None
    except Exception as error:
        return None, error


def like(a: Exception, b: Exception) -> bool:
    """Return whether a handler of one error catches the other. Each library has its own classes of the same names."""
    names = {type(error).__name__.lstrip("_") for error in (a, b)}
    return isinstance(a, type(b)) or isinstance(b, type(a)) or len(names) == 1


# --- one operator ---


class Comparison:
    """The samples of one operator in both libraries."""

    def __init__(self, op: Any, ours: Peer, theirs: Peer, samples_of: Any, table: list[Known]) -> None:
        self.op, self.ours, self.theirs, self.samples_of = op, ours, theirs, samples_of
        self.here, self.there = ours.function(op), theirs.function(op)
        self.random = op.random or any(a.type.name == "Generator?" for a in op.schema.arguments)
        self.any_values = self.random or "ninitialised" in op.doc
        self.crashes = {m.sample for m in table if m.kind == "crash" and m.op == op.name}
        self.calls = 0

    def differences(self) -> Iterator[Difference]:
        for text in self.op.samples:
            for dtype in ("float32", *OTHER_DTYPES):
                yield from self._results(text.text, dtype)
            if self.op.differentiable and not self.random:
                yield from self._gradients(text.text)
        for text in self.op.errors:
            if text.text not in self.crashes:
                yield from self._errors(text.text)

    def _pairs(self, text: str, dtype: str) -> Iterator[tuple[Any, Any]]:
        both = [self.samples_of(text, peer.library, dtype) for peer in (self.ours, self.theirs)]
        yield from zip(*both, strict=True)

    def _results(self, text: str, dtype: str) -> Iterator[Difference]:
        for mine, other in self._pairs(text, dtype):
            self.calls += 1
            a, refused = attempt(self.here, *self.ours.arguments(self.op, mine.args, mine.kwargs))
            b, refused_there = attempt(self.there, *self.theirs.arguments(self.op, other.args, other.kwargs))
            if refused or refused_there:
                if not refused_there and dtype != "float32" and _is_empty(b):
                    continue  # PyTorch refuses this dtype for tensors that have elements
                if bool(refused) != bool(refused_there) and (refused or dtype == "float32"):
                    who = f"only here: {refused}" if refused else f"only in PyTorch: {refused_there}"
                    yield self._said("raises", dtype, text, who)
                continue
            yield from self._compare(dtype, mine.text, flat(a), flat(b), other)

    def _compare(self, dtype: str, text: str, a: list[Any], b: list[Any], other: Any) -> Iterator[Difference]:
        if len(a) != len(b):
            yield self._said("shape", dtype, text, f"{len(a)} results, not {len(b)}")
            return
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            if not hasattr(y, "numel") or not hasattr(x, "numel"):
                if hasattr(x, "numel") or hasattr(y, "numel") or not (x == y or name_of(x) == name_of(y)):
                    yield self._said("values", dtype, text, f"{x!r}, not {y!r}")
                continue
            if name_of(x.dtype) != name_of(y.dtype):
                yield self._said("dtype", dtype, text, f"{name_of(x.dtype)}, not {name_of(y.dtype)}")
            elif tuple(x.shape) != tuple(y.shape):
                yield self._said("shape", dtype, text, f"{tuple(x.shape)}, not {tuple(y.shape)}")
            elif not self.any_values and (apart := self._apart(x, y)) and not self._is_exact(x, other, i):
                yield self._said("values", dtype, text, apart)

    def _is_exact(self, x: Any, other: Any, i: int) -> bool:
        """Return whether `x`, of half precision, is near PyTorch's result `i` in float64."""
        if self.op.is_inplace or name_of(x.dtype) not in ("float16", "bfloat16"):
            return False
        args, kwargs = self.theirs.arguments(self.op, _in_double(other.args), _in_double(other.kwargs))
        results, refused = attempt(self.there, args, kwargs)
        return not refused and not self._apart(x, flat(results)[i])

    def _apart(self, x: Any, y: Any) -> str:
        import numpy as np

        tolerance = TOLERANCES.get(name_of(x.dtype), 0.0)
        a, b = self.ours.array(x), self.theirs.array(y)
        with np.errstate(all="ignore"):
            near = np.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=a.dtype.kind in "fc")
        if near.all():
            return ""
        at = np.unravel_index(int(np.argmin(near)), near.shape)
        return f"{a[at]!r}, not {b[at]!r}, at {tuple(int(i) for i in at)}"

    def _gradients(self, text: str) -> Iterator[Difference]:
        for mine, other in self._pairs(text, "float64"):
            if mine.text in self.crashes:
                continue
            a, b = (self._gradient(peer, f, s) for peer, f, s in self._both(mine, other))
            if isinstance(b, str):  # PyTorch has no gradient
                continue
            if isinstance(a, str):
                yield self._said("gradient", "float64", mine.text, a)
                continue
            for k, (x, y) in enumerate(zip(a, b, strict=True)):
                if y is None and x is None:
                    continue
                if x is None or y is None:
                    known = y if x is None else x
                    apart = "" if not bool((known != 0).any()) else "none, where the other has one"
                elif tuple(x.shape) != tuple(y.shape):
                    apart = f"shape {tuple(x.shape)}, not {tuple(y.shape)}"
                else:
                    apart = self._apart(x, y)
                if apart:
                    yield self._said("gradient", "float64", mine.text, f"tensor {k}: {apart}")

    def _both(self, mine: Any, other: Any) -> list[tuple[Peer, Any, Any]]:
        return [(self.ours, self.here, mine), (self.theirs, self.there, other)]

    def _gradient(self, peer: Peer, function: Any, sample: Any) -> list[Any] | str:
        """Return the gradients by all floating-point tensors, or the reason why there are none."""
        leaves: list[Any] = []

        def leaf(value: Any) -> Any:
            if isinstance(value, (tuple, list)):
                return type(value)(leaf(v) for v in value)
            if hasattr(value, "requires_grad") and value.is_floating_point():
                leaves.append(value.detach().clone().requires_grad_())
                # An in-place operator must not write to a leaf.
                return leaves[-1].clone() if self.op.is_inplace else leaves[-1]
            return value

        args = [leaf(a) for a in sample.args]
        kwargs = {k: leaf(v) for k, v in sample.kwargs.items()}
        results, error = attempt(function, *peer.arguments(self.op, args, kwargs))
        if error:
            return f"raises {error}"
        found = [y for y in flat(results) if hasattr(y, "requires_grad") and y.requires_grad]
        if not leaves or not found:
            return "the result does not require grad"
        try:
            total = sum((y * self._weights(peer, y)).sum() for y in found)
            total.backward()
        except Exception as failed:
            return f"backward raises {failed}"
        return [x.grad for x in leaves]

    @staticmethod
    def _weights(peer: Peer, y: Any) -> Any:
        """Return the incoming gradients, which are different numbers for each element."""
        ramp = peer.library.arange(1, y.numel() + 1, dtype=peer.library.float64) / (y.numel() + 1)
        return ramp.reshape(y.shape).to(y.dtype)

    def _errors(self, text: str) -> Iterator[Difference]:
        for mine, other in self._pairs(text, "float32"):
            self.calls += 1
            _, a = attempt(self.here, *self.ours.arguments(self.op, mine.args, mine.kwargs))
            _, b = attempt(self.there, *self.theirs.arguments(self.op, other.args, other.kwargs))
            if a is None or b is None:
                who = "PyTorch does not raise" if b is None else "only PyTorch raises"
                yield self._said("raises", "float32", text, f"{who} ({a or b})")
            elif not like(a, b):
                classes = f"{type(a).__name__}, not {type(b).__name__}"
                yield self._said("error", "float32", text, f"{classes} ({str(b).splitlines()[0][:100]})")

    def _said(self, check: str, dtype: str, sample: str, text: str) -> Difference:
        return Difference(self.op.name, check, dtype, sample, text.splitlines()[0] if text else "")


# --- all operators ---


@dataclass
class Found:
    """The results of the comparison of some operators."""

    differences: list[Difference] = field(default_factory=list)
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    without: list[str] = field(default_factory=list)  # operators whose names PyTorch does not have

    def add(self, other: Found) -> None:
        self.differences += other.differences
        self.counts += other.counts
        self.without += other.without


def load() -> tuple[list[Any], list[Known]]:
    """Return the operators and the table of intended differences."""
    import yaml

    from rushlight_core.codegen.loader import load_ops

    table = read(yaml.safe_load(MEANT.read_text()), KINDS)
    return load_ops(), table


def compare_operators(ops: list[Any], table: list[Known]) -> Found:
    """Run the samples of these operators in both libraries."""
    import torch

    import rushlight  # noqa: F401  for its gradients
    import rushlight_core
    from rushlight_testing import samples_of

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rushlight_core.set_num_threads(1)
    ours, theirs = Peer(rushlight_core, False), Peer(torch, True)
    found = Found()
    for op in ops:
        faulthandler.dump_traceback_later(TIME_LIMIT, exit=True)
        comparison = Comparison(op, ours, theirs, samples_of, table)
        if comparison.there is None or comparison.here is None:
            if "hidden" in op.variants or op.base.startswith("_"):
                found.counts["hidden"] += 1
            else:
                found.counts["without counterpart"] += 1
                found.without.append(op.name)
            continue
        found.differences += comparison.differences()
        found.counts["operators"] += 1
        found.counts["calls"] += comparison.calls
    faulthandler.cancel_dump_traceback_later()
    return found


def in_processes(ops: list[Any], table: list[Known], processes: int) -> Found:
    """Return the results of the samples, run in several processes that take a few operators at a time.

    Raises:
        RuntimeError: a process ended unexpectedly, or was stopped after TIME_LIMIT; the message names the operators that it
            may have been running.
    """
    if processes == 1:
        return compare_operators(ops, table)
    size = max(1, len(ops) // (8 * processes))
    parts = [ops[i : i + size] for i in range(0, len(ops), size)]
    found = Found()
    # Start new processes, because a fork of a process with threads may hang.
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(compare_operators, part, table) for part in parts]
        for part, future in zip(parts, futures, strict=True):
            try:
                found.add(future.result())
            except BrokenProcessPool:
                names = ", ".join(op.name for op in part)
                raise RuntimeError(
                    f"a process ended while it ran one of these operators or a later one: {names}"
                ) from None
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="operators (all by default)")
    parser.add_argument("--processes", type=int, default=1, help="number of processes (1 by default)")
    options = parser.parse_args(arguments)
    ops, table = load()
    if options.names:
        ops = [op for op in ops if op.base in options.names or op.name in options.names]
    found = in_processes(ops, table, options.processes)
    for name in found.without:
        print(f"{name}: PyTorch has no function of this name")
    left, stale = sort_out(found.differences, table)
    if options.names:
        stale = [entry for entry in stale if entry.op in options.names]
    for d in left:
        print(f"{d.op}({d.sample}) {d.dtype} {d.kind}: {d.text}")
    for entry in stale:
        print(
            f"{entry.op} {entry.kind} {entry.sample}: does not differ any more; strike it out of {MEANT.name}"
        )
    print(", ".join(f"{n} {what}" for what, n in found.counts.items()))
    total = len(found.differences)
    print(f"{total} differences, {total - len(left)} of them intended; {len(stale)} outdated entries")
    return 1 if left or stale else 0


if __name__ == "__main__":
    sys.exit(main())
