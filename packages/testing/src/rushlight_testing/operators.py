"""Read the entries of operators (`packages/core/ops/*.yaml`), and call operators by their entries.

`call(op, sample)` calls the public function of an operator, and `boxed` calls an operator by its name. The tests that are
generated for every operator use these functions, and the samples that `rushlight_testing.variants` derives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import rushlight_core as core
import rushlight_core._C as _C
from rushlight_core.codegen.loader import load_ops
from rushlight_core.codegen.model import Op
from rushlight_testing import laws
from rushlight_testing.samples import Sample, arguments_of, samples_of

__all__ = [
    "TOLERANCES",
    "TYPED_ERRORS",
    "all_samples",
    "assert_same",
    "boxed",
    "call",
    "dtype_name",
    "flat",
    "inplace",
    "is_random",
    "law_holds",
    "map_tensors",
    "operators",
    "tensors_in",
    "to_numpy",
]

TYPED_ERRORS = (RuntimeError, ValueError, TypeError, IndexError, MemoryError)
# Tolerances, relative and absolute, for results that are computed in another order.
TOLERANCES = {
    "float64": 1e-9,
    "float32": 3e-5,
    "complex128": 1e-9,
    "complex64": 3e-5,
    "float16": 1e-2,
    "bfloat16": 6e-2,
}


@cache
def operators() -> list[Op]:
    """Return the YAML entries of all operators, in the order of the files.

    The first call reads the files, and later calls return the same list.

    Example:
        >>> len(operators()) > 600
        True
        >>> next(op for op in operators() if op.name == "add").kind
        'pointwise'
    """
    return load_ops()


def is_random(op: Op) -> bool:
    """Return whether an operator uses random numbers.

    Args:
        op: the operator's YAML entry.

    Example:
        >>> op = next(op for op in operators() if op.name == "rand")
        >>> is_random(op)
        True
    """
    return op.random or "Generator?" in [a.type.name for a in op.schema.arguments]


# Arguments of operators that draw random numbers, by name.
_NUMBERS = {"low": 2, "high": 9, "range": 5, "to": 6, "from": 1, "n": 6, "num_samples": 2, "columns": 4}
_TENSORS = {"count": 3.0, "std": 0.5}


def random_sample(op: Op) -> Sample:
    """Return keyword arguments for which an operator draws random numbers. The entries of such operators have no samples.

    Args:
        op: the operator's YAML entry.

    Example:
        >>> op = next(op for op in operators() if op.name == "rand")
        >>> random_sample(op).kwargs
        {'size': (3, 4)}
    """
    made: dict[str, Any] = {}
    for a in op.schema.arguments:
        if a.type.is_tensor:
            made[a.name] = core.full((3, 4), _TENSORS.get(a.name, 0.25))
        elif a.name == "size":
            made[a.name] = (3, 4)
        elif a.name in ("training", "train"):
            made[a.name] = True
        elif a.required:
            made[a.name] = _NUMBERS.get(a.name, 0.5)
    return Sample("arguments of a random operator", (), made)


def all_samples(op: Op, dtype: str = "float32") -> Iterator[Sample]:
    """Yield the samples in the YAML entry of an operator, each with new tensors.

    Args:
        op: the operator's YAML entry.
        dtype: the name of the dtype of tensors whose dtype the sample does not specify.

    Example:
        >>> op = next(op for op in operators() if op.name == "add")
        >>> sample = next(all_samples(op))
        >>> [tuple(t.shape) for t in sample.args]
        [(3, 4), (3, 4)]
    """
    for text in op.samples:
        yield from samples_of(text.text, core, dtype)


def boxed(op: Op, sample: Sample, name: str | None = None, extra: tuple[Any, ...] = ()) -> Any:
    """Call an operator by its name, with positional arguments in the order of its signature.

    Args:
        op: the operator's YAML entry.
        sample: the arguments.
        name: the name of a form of the operator, such as "add_"; by default the name in the entry.
        extra: additional arguments, which follow the arguments of the sample.

    Example:
        >>> op = next(op for op in operators() if op.name == "add")
        >>> boxed(op, Sample("", (torch.ones(2), torch.ones(2))))
        tensor([2., 2.])
    """
    bound = arguments_of(op, sample)
    values = []
    for a in op.schema.arguments:
        value = bound[a.name]
        values.append(list(value) if isinstance(value, tuple) else value)
    return _C._call_boxed(name or op.name, *values, *extra)


def call(op: Op, sample: Sample, **more: Any) -> Any:
    """Call an operator through its public function or method, or by its name if it has neither.

    Args:
        op: the operator's YAML entry.
        sample: the arguments.
        more: additional keyword arguments, which are ignored if the operator is called by its name.

    Example:
        >>> op = next(op for op in operators() if op.name == "add")
        >>> call(op, Sample("", (torch.ones(2), torch.ones(2))), alpha=3)
        tensor([4., 4.])
    """
    if "function" in op.variants:
        return getattr(core, op.base)(*sample.args, **sample.kwargs, **more)
    if "method" in op.variants:
        return getattr(core.Tensor, op.base)(*sample.args, **sample.kwargs, **more)
    return boxed(op, sample)


def inplace(op: Op, sample: Sample) -> Any:
    """Call the in-place form of an operator through its public method or function, or by its name if it has neither.

    The in-place form writes its result to the first argument.

    Args:
        op: the operator's YAML entry.
        sample: the arguments.

    Example:
        >>> op = next(op for op in operators() if op.name == "add")
        >>> x = torch.ones(2)
        >>> inplace(op, Sample("", (x, x.clone()))) is x
        True
        >>> x
        tensor([2., 2.])
    """
    base, dot, overload = op.name.partition(".")
    name = base + "_"
    if "hidden" in op.variants:
        return boxed(op, sample, name + dot + overload)
    method = getattr(core.Tensor, name, None) or getattr(core, name)
    return method(*sample.args, **sample.kwargs)


def flat(results: Any) -> list[Any]:
    """Return results as a flat list, with the items of tuples and lists in order.

    Example:
        >>> flat((1, [2, (3,)]))
        [1, 2, 3]
    """
    if isinstance(results, (tuple, list)):
        return [one for r in results for one in flat(r)]
    return [results]


def map_tensors(f: Callable[[Any], Any], value: Any) -> Any:
    """Return a copy of `value` in which every tensor `t` is replaced by `f(t)`.

    Args:
        f: a function that takes a tensor and returns its replacement.
        value: a tensor, a sample, nested lists and tuples, or any other object, which is returned unchanged.

    Example:
        >>> map_tensors(lambda t: t.shape, (torch.ones(2), [torch.ones(3), 4]))
        (torch.Size([2]), [torch.Size([3]), 4])
    """
    if isinstance(value, Sample):
        kwargs = {name: map_tensors(f, v) for name, v in value.kwargs.items()}
        return replace(value, args=tuple(map_tensors(f, v) for v in value.args), kwargs=kwargs)
    if isinstance(value, core.Tensor):
        return f(value)
    if type(value) in (list, tuple):
        return type(value)(map_tensors(f, v) for v in value)
    return value


def tensors_in(value: Any) -> list[Any]:
    """Return the tensors in arguments or results.

    Example:
        >>> len(tensors_in((torch.ones(2), [torch.ones(3), 4])))
        2
    """
    found: list[Any] = []
    map_tensors(found.append, value)
    return found


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype, such as "float32".

    Example:
        >>> dtype_name(torch.float32)
        'float32'
    """
    return str(dtype).rsplit(".", 1)[-1]


def to_numpy(value: Any, wide: bool) -> Any:
    """Convert tensors to NumPy arrays, and return other objects unchanged.

    Args:
        value: a tensor, a list or tuple of tensors, or any other object.
        wide: whether to convert to the widest dtype of the category, such as float64.

    Example:
        >>> to_numpy(torch.ones(2), wide=True)
        array([1., 1.])
    """
    if isinstance(value, (list, tuple)) and any(isinstance(v, core.Tensor) for v in value):
        return [to_numpy(v, wide) for v in value]
    if not isinstance(value, core.Tensor):
        return value
    if value.dtype in (core.float16, core.bfloat16) or (wide and value.is_floating_point()):
        return value.to(core.float64).numpy()
    if value.is_complex():
        return value.to(core.complex128).numpy() if wide else value.numpy()
    return value.to(core.int64).numpy() if wide and value.dtype != core.bool else np.asarray(value.numpy())


def law_holds(op: Op, text: str, sample: Sample, results: Any) -> bool:
    """Return whether an expression under the key `law` of an operator's entry is true for the results of a sample.

    Args:
        op: the operator's entry.
        text: the expression, which may use the operator's arguments and `result`.
        sample: the arguments.
        results: the results that the operator returned for the sample.

    Example:
        >>> svd = next(op for op in operators() if op.name == "linalg_svd")
        >>> sample = next(all_samples(svd))
        >>> all(law_holds(svd, law, sample, call(svd, sample)) for law in svd.law)
        True
    """
    names = {name: getattr(laws, name) for name in dir(laws) if not name.startswith("_")}
    names |= {"np": np, "torch": core}
    names |= {name: to_numpy(value, wide=False) for name, value in arguments_of(op, sample).items()}
    several = isinstance(results, (tuple, list))
    names["result"] = (
        tuple(to_numpy(r, wide=False) for r in results) if several else to_numpy(results, wide=False)
    )
    return bool(eval(text, names))


def assert_same(a: Any, b: Any, text: str) -> None:
    """Raise AssertionError unless results have the same shapes and dtypes, and values that are equal up to rounding.

    Args:
        a: the first results: tensors, numbers, and tuples and lists of these.
        b: the second results.
        text: the beginning of the error message.

    Example:
        >>> assert_same(torch.ones(2), torch.ones(2) + 1e-7, "ones")
        >>> assert_same(torch.ones(2), torch.ones(3), "ones")
        Traceback (most recent call last):
        AssertionError: ones: torch.float32 torch.Size([2]), torch.float32 torch.Size([3])
    """
    left, right = flat(a), flat(b)
    assert len(left) == len(right), f"{text}: {len(left)} results and {len(right)}"
    for x, y in zip(left, right, strict=True):
        if isinstance(x, core.Tensor) and isinstance(y, core.Tensor):
            assert (x.dtype, x.shape) == (y.dtype, y.shape), (
                f"{text}: {x.dtype} {x.shape}, {y.dtype} {y.shape}"
            )
            tolerance = TOLERANCES.get(dtype_name(x.dtype), 0.0)
            np.testing.assert_allclose(
                to_numpy(x, wide=True),
                to_numpy(y, wide=True),
                rtol=tolerance,
                atol=tolerance,
                equal_nan=True,
                err_msg=text,
            )
        else:
            assert x == y or (x != x and y != y), f"{text}: {x} and {y}"
