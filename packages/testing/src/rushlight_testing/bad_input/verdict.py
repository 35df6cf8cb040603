"""Judge calls with bad input: a call must raise an error of a class in `TYPED`, or return a correct result.

A call that raises an error must not change its arguments."""

from __future__ import annotations

import functools
import re
from typing import Any

from rushlight_core.codegen.docstrings import raised
from rushlight_core.codegen.loader import load_ops
from rushlight_core.codegen.python_signatures import hidden
from rushlight_testing.bad_input.cases import NOTHING, Call, Case, call

TYPED = (ValueError, TypeError, IndexError, RuntimeError, MemoryError, OverflowError, BufferError)
# Larger results are not checked. Only views can be so large.
LARGE = 1 << 16
# Parts of errors that every operator can raise, so that docstrings do not name them.
GENERAL = (
    "share one memory location",
    "is read-only",
    "dimensions, but the result would have",
    "a tensor has at most",
    "more than a tensor can have",
    "overflows a 64-bit integer",
    "must be on one device",
    "on meta, the operands are on",
    "listed twice in",
    "a meta tensor",
    "out of meta tensor",
)


def judge(op: Any, library: Any, case: Case) -> str | None:
    """Run one case, and check that the call is correct, or raises an error and changes no argument.

    The message of the error must name the operator, and the operator's docstring must name the error's class.

    Args:
        op: the operator's YAML entry, a `rushlight_core.codegen.model.Op`.
        library: the module whose operators are called.
        case: a case of the operator.

    Returns:
        A sentence that describes what is wrong, or None.

    Example:
        >>> from rushlight_testing.bad_input import cases_of
        >>> from rushlight_testing.operators import operators
        >>> op = next(op for op in operators() if op.name == "add")
        >>> judge(op, torch, next(cases_of(op, torch))) is None
        True
    """
    try:
        given = case.make()
    except Exception as error:
        return f"cannot be made: {type(error).__name__}: {error}"
    tensors = [*flat(list(given.arguments.values()), library), *flat(given.out, library)]
    before = [_State(t, library) for t in tensors]
    library.manual_seed(0)
    try:
        result = call(op, library, given)
    except TYPED as error:
        changed = _changed(before)
        if changed:
            return f"failed, but changed {changed}: {type(error).__name__}: {error}"
        return _unnamed(op, error) or _undocumented(op, error)
    except Exception as error:
        return f"raised {type(error).__name__}, which is not a typed error: {error}"
    written = {id(t) for t in flat(given.out, library)}
    for name in written_names(op, given):
        written |= {id(t) for t in flat(given.arguments.get(name), library)}
    # Tensors that share memory with a written tensor change with it.
    storages = {t.untyped_storage().data_ptr() for t in tensors if id(t) in written}
    changed = _changed([s for s in before if s.storage not in storages and id(s.tensor) not in written])
    if changed:
        return f"changed {changed}, which it does not write"
    for one in flat(result, library):
        fault = _touch(one, library, read="empty" not in op.base)
        if fault:
            return fault
    return _compared(op, library, given, result) if given.safe is not None else None


def _undocumented(op: Any, error: Exception) -> str | None:
    """Return a description of an error whose class the operator's docstring does not name, or None.

    For a private operator, return None.
    """
    if isinstance(error, (TypeError, MemoryError, OverflowError)) or any(t in str(error) for t in GENERAL):
        return None
    classes = _documented_classes().get(op.base)
    name = type(error).__name__.lstrip("_")  # the class linalg.LinAlgError has PyTorch's name _LinAlgError
    if classes is None or name in classes:
        return None
    return f"raised {name}, which its documentation does not name: {error}"


@functools.cache
def _documented_classes() -> dict[str, set[str]]:
    """Return, for each public operator, the names of the error classes in its docstring."""
    groups: dict[str, list[Any]] = {}
    for op in load_ops():
        if not hidden(op) and not op.base.startswith("_"):
            groups.setdefault(op.base, []).append(op)
    return {
        name: {
            word
            for inplace in (False, True)
            for key in raised(group, inplace)
            for word in re.findall(r"\w+", key)
        }
        for name, group in groups.items()
    }


def written_names(op: Any, given: Call) -> set[str]:
    """Return the names of the arguments that a call modifies in place, other than `out`."""
    names = {a.name for a in op.schema.arguments if a.write} | set(op.writes)
    if given.inplace or op.is_inplace:
        names.add(op.schema.arguments[0].name)
    return names


class _State:
    """The state of a tensor before a call."""

    def __init__(self, tensor: Any, library: Any) -> None:
        self.tensor, self.library = tensor, library
        self.storage = tensor.untyped_storage().data_ptr() if tensor.device.type == "cpu" else None
        self.was = self.look()

    def look(self) -> tuple[Any, ...]:
        t = self.tensor
        return (
            ("shape", tuple(t.shape)),
            ("strides", tuple(t.stride())),
            ("offset", t.storage_offset()),
            ("dtype", t.dtype),
            ("version", t._version),
            ("values", bits(t, self.library)),
        )


def _changed(states: list[_State]) -> str:
    for i, state in enumerate(states):
        for (what, was), (_, now) in zip(state.was, state.look(), strict=True):
            if was != now:
                shown = "" if what == "values" else f" from {was} to {now}"
                return f"the {what} of tensor {i}{shown}"
    return ""


def bits(t: Any, library: Any) -> bytes | None:
    """Return the bytes of the elements, or None for large tensors and tensors that are not on the CPU."""
    if t.device.type != "cpu" or t.numel() > LARGE:
        return None
    if not t.numel():
        return b""
    t = t.detach()
    if t.dtype == library.bfloat16:
        t = t.contiguous().view(library.int16)
    return t.numpy().tobytes()


def _unnamed(op: Any, error: Exception) -> str | None:
    """Return a description of the error if its message does not name the operator, and None if the message names it."""
    if isinstance(error, MemoryError):
        return None
    text = str(error)
    base = op.base.strip("_")
    module, _, rest = base.partition("_")  # the public name of linalg_inv is linalg.inv
    names = (base, f"{module}.{rest}", op.body, *op.synonyms)
    if any(name and name in text for name in names):
        return None
    return f"does not name the operator: {type(error).__name__}: {text}"


def _touch(result: Any, library: Any, read: bool) -> str | None:
    """Return a description of what is wrong with the memory of a result, or None.

    Check that the elements of the result lie within its storage. Also read the whole result, so that a memory checker
    detects accesses to invalid memory.
    """
    if result.device.type != "cpu":
        return None
    if str(result.layout) != "torch.strided":  # a sparse tensor: read its parts
        result = result.to_dense()
    reach = result.storage_offset()
    if result.numel():
        reach += sum((n - 1) * s for n, s in zip(result.shape, result.stride(), strict=True)) + 1
        have = result.untyped_storage().nbytes() // result.element_size()
        if reach > have or result.storage_offset() < 0 or min(result.shape, default=0) < 0:
            return (
                f"gave a view of {reach} elements of a storage that has {have}: shape {tuple(result.shape)}"
            )
    count = 1
    for n in result.shape:
        count *= n
    if count != result.numel():
        return f"gave shape {tuple(result.shape)} with numel() {result.numel()}"
    if read and result.numel() <= LARGE:
        result.clone()
    return None


def _compared(op: Any, library: Any, given: Call, result: Any) -> str | None:
    """Compare the result with that of a call with `given.safe`, dense copies of the arguments.

    Return a description of the difference, or None."""
    if op.random or any(a.type.name == "Generator?" for a in op.schema.arguments):
        return None
    if "empty" in op.base or "resize" in op.base:
        return None  # new elements are not initialised
    safe = Call(given.safe or {}, inplace=given.inplace)
    try:
        wanted = call(op, library, safe)
    except TYPED as error:
        if given.out is not NOTHING or given.inplace:
            return None  # the second call raised for other tensors, so the results cannot be compared
        return f"works, but not on dense copies: {type(error).__name__}: {error}"
    for got, want in zip(flat(result, library), flat(wanted, library), strict=True):
        if got.shape != want.shape:
            return f"shape {tuple(got.shape)}, but {tuple(want.shape)} on dense copies"
        if not _close(got, want, library):
            return f"other values than on dense copies: {_start(got)}, not {_start(want)}"
    return None


def _close(a: Any, b: Any, library: Any) -> bool:
    if a.device.type != "cpu" or a.numel() > LARGE or bits(a, library) == bits(b, library):
        return True
    if a.dtype != b.dtype:
        # The result was converted to the dtype of out=.
        b = b.to(a.dtype)
    if not (a.is_floating_point() or a.is_complex()):
        return bits(a, library) == bits(b, library)
    coarse = 1e-2 if a.dtype in (library.float16, library.bfloat16) else 1e-4
    # Elements in which large terms cancel have the rounding errors of these terms.
    finite = b.abs()[b.isfinite()]
    largest = max(1.0, finite.max().item()) if finite.numel() else 1.0
    return bool(library.isclose(a, b, rtol=coarse, atol=coarse * largest, equal_nan=True).all().item())


def _start(t: Any) -> str:
    return repr(t.reshape(-1)[:4].tolist())


def flat(value: Any, library: Any) -> list[Any]:
    """Return the tensors in a result or an argument.

    Example:
        >>> len(flat([torch.ones(2), (torch.ones(3), 1)], torch))
        2
    """
    if isinstance(value, library.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for one in value for t in flat(one, library)]
    return []
