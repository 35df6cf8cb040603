"""The operators that programs call, with arguments from the samples of the operators' entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fuzz.execute import is_tensor, name_of
from fuzz.program import Named

MOST_ELEMENTS = 64  # of a sample's tensor
# The prefix of an operator's name chooses the module.
MODULES = {"linalg_": "linalg", "special_": "special", "fft_": "fft"}
# Operators that return uninitialised memory or addresses, that change more than a tensor, or whose parts are not views in
# PyTorch.
LEFT_OUT = {
    "data_ptr", "set_", "resize_", "resize_as_", "share_memory_", "pin_memory", "requires_grad_", "retain_grad", "numpy",
    "empty_like", "new_empty", "is_pinned", "is_shared", "storage_offset", "stride", "is_contiguous", "from_file",
    "is_set_to", "hash_tensor", "dropout", "rrelu", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes",
}  # fmt: skip


class NotNeutralError(TypeError):
    """Raised for an argument that has a meaning in one library only."""


@dataclass(frozen=True)
class Array:
    """A tensor of a sample, as data that is independent of a library."""

    dtype: str
    shape: tuple[int, ...]
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Operator:
    """An overload: the paths and forms in which it is called, and its arguments."""

    name: str
    function: str = ""  # "torch.linalg.norm"; empty if there is only a method
    method: str = ""
    inplace: str = ""
    has_out: bool = False
    view: bool = False
    templates: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = ()
    options: tuple[
        tuple[str, str, int], ...
    ] = ()  # names, types and positions of the arguments that have defaults


def neutral(value: Any) -> Any:
    """Return an argument of a sample with its tensors as `Array`, its dtypes as `Named`.

    Raises:
        NotNeutralError: it has other objects of the library, or a tensor too large for a small program.
    """
    if is_tensor(value):
        if value.numel() > MOST_ELEMENTS:
            raise NotNeutralError("too many elements")
        flat = value.detach().reshape(-1).tolist()
        return Array(name_of(value.dtype), tuple(int(n) for n in value.shape), tuple(flat))
    if type(value) in (tuple, list):
        return type(value)([neutral(one) for one in value])
    if type(value) is dict:
        return {name: neutral(one) for name, one in value.items()}
    if value is None or value is Ellipsis or isinstance(value, (bool, int, float, complex, str)):
        return value
    if type(value).__name__ == "dtype":
        return Named(name_of(value))
    raise NotNeutralError(type(value).__name__)


def load(libraries: list[Any]) -> list[Operator]:
    """Return the operators that all these libraries have. The first makes the samples; it is rushlight.

    Operators whose results are random or uninitialized are left out.
    """
    from rushlight_core.codegen.loader import load_ops
    from rushlight_testing import samples_of

    found = []
    for op in load_ops():
        left_out = (
            op.base in LEFT_OUT
            or "hidden" in op.variants
            or op.base.startswith("_")
            or "ninitialised" in op.doc
        )
        if left_out or op.random or any(a.type.name == "Generator?" for a in op.schema.arguments):
            continue
        function = _function(op, libraries)
        method = op.base if "method" in op.variants and _all_have(libraries, "Tensor", op.base) else ""
        inplace = ""
        if op.is_inplace:
            inplace, method = method, ""
        elif "inplace" in op.variants and _all_have(libraries, "Tensor", op.base + "_"):
            inplace = op.base + "_"
        if not (function or method or inplace):
            continue
        templates = []
        for text in op.samples:
            for sample in samples_of(text.text, libraries[0]):
                try:
                    args, kwargs = neutral(sample.args), neutral(sample.kwargs)
                except NotNeutralError:
                    continue
                if function.startswith("torch.nn.functional."):
                    args, kwargs = _by_name(op, args, kwargs)
                templates.append((_spread(op, args), kwargs))
        if not templates:
            continue
        found.append(
            Operator(
                op.name, function, method, inplace, "out" in op.variants and bool(function), op.kind == "view",
                tuple(templates),
                tuple((a.name, a.type.name, i) for i, a in enumerate(op.schema.arguments) if not a.required),
            )
        )  # fmt: skip
    return found


def _all_have(libraries: list[Any], *names: str) -> bool:
    for found in libraries:
        for name in names:
            found = getattr(found, name, None)
            if found is None:
                return False
    return True


def _function(op: Any, libraries: list[Any]) -> str:
    """Return the path of the function for users; empty if a library lacks it."""
    if "function" not in op.variants and "nn" not in op.variants:
        return ""
    paths = [("nn", "functional", op.base), (op.base,)]
    for prefix, module in MODULES.items():
        if op.base.startswith(prefix):
            paths = [(module, op.base.removeprefix(prefix))]
    if any(a.name == "reduction" for a in op.schema.arguments):
        paths = paths[:1]  # PyTorch's operators require a number, with another default
    elif "nn" not in op.variants:
        paths.reverse()
    return next(("torch." + ".".join(names) for names in paths if _all_have(libraries, *names)), "")


def _by_name(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Pass a loss's arguments after its tensors by name: PyTorch's functions have `size_average` and `reduce` in between."""
    names = [a.name for a in op.schema.arguments]
    if "reduction" not in names:
        return args, kwargs
    first = next((i for i, a in enumerate(op.schema.arguments) if a.type.name != "Tensor"), len(names))
    return args[:first], {**dict(zip(names[first:], args[first:], strict=False)), **kwargs}


def _spread(op: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return tensors as separate arguments (`block_diag(a, b)`) instead of a list."""
    for i, a in enumerate(op.schema.arguments):
        if a.varargs and a.type.name == "Tensor[]" and i < len(args) and isinstance(args[i], (list, tuple)):
            return (*args[:i], *args[i], *args[i + 1 :])
    return args
