"""Dynamic sizes: the class `Dim`, and the sizes with which a function is captured."""

from __future__ import annotations

import inspect
import itertools
import math
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor, pytree
from rushlight_graph import thresholds, trees

#: The number of captures from which a program with dynamic sizes is built. Note [Fitting] in fitting.h requires
#: five.
CAPTURES = 6
_thread = threading.local()
_MOST = 2**31 - 1
# Note [Sizes of captures]
# Quotients of sizes such as n // 4 + 1, -(-n // 4) and (n - 1) // 4 + 1 are equal for most n. They differ next to multiples
# of the divisor. So the sizes of the captures include a multiple of a power of two and its neighbours, and a multiple of 15
# and its successor. The power of two is larger for larger examples. In a narrow range, the captures have the nearest sizes,
# or all sizes.
#
# These sizes are near the example, and expressions of another form can be equal there: the padding to a multiple of 128 is
# 384 - n for all n from 257 to 384. So `far_captures` follow, with a smaller size of every dimension, and with a larger
# size of one dimension at a time, which limits the memory that they need. A condition often concerns the smallest size of
# a range, such as a length of 2, which `far_captures` include, too. For sizes of 0 and 1 and in narrow ranges, many
# expressions are equal, so `corner_captures` combine these sizes with those of other dimensions.
#
# If a program contains quotients, or no expression explains an integer, `_FURTHER` captures follow, because a few captures
# do not determine a divisor, a shift, a factor and an offset. Their sizes are `_EDGES`, which are multiples of common
# divisors and their neighbours, and random sizes, which may be smaller than the example. While several quotients still agree
# for all captures, captures with sizes for which they differ follow, at most `DECIDING_CAPTURES`.
#
# At the end, the program is captured with sizes that had no part in finding the expressions: small sizes, whose distances
# grow, and a few random ones. Slices of small tensors are often clipped. If a capture contradicts an expression, the
# expressions are determined again, with the new captures, and confirmed by other sizes.
DECIDING_CAPTURES = 24
#: How often the expressions are confirmed before `export` raises an error.
CONFIRMATIONS = 4
_FURTHER = 18
_EDGES = (32, 33, 31, 28, 29, 27, 64, 63)
_FAR = 133
_CONFIRMING = 12
_CORNERS = 60
_FURTHER_RANGE = 70
_POWERS = ((64, 64), (32, 32), (0, 16))  # the smallest example, and the power of two
# The largest size of captures is at least this, so that quotients of small sizes by larger divisors are not constant.
_SMALL_END = 65


class Dim:
    """A named size in the arguments of a program. The size may differ between calls.

    `Dim("n")` represents sizes of two or more, `2 * Dim("n")` represents even sizes, and `Dim("n") + 1` represents sizes
    that are one larger than those of `Dim("n")`.

    Args:
        name: an identifier. Dimensions with the same name have the same size.
        min: the smallest size, 2 by default, because Python and operators often treat sizes of 0 and 1 specially. The
            program is also captured with size 1 if `min` is 1, and with sizes 0 and 1 if `min` is 0.
        max: the largest size.

    Raises:
        ValueError: `name` is not an identifier, or 0 <= min <= max does not hold.

    Example:
        >>> n = torch.export.Dim("n", max=64)
        >>> program = torch.export.export(nn.ReLU(), (torch.ones(4, 2),), dynamic_shapes={"input": {0: n}})
        >>> program.module()(torch.ones(7, 2)).shape
        torch.Size([7, 2])
    """

    #: Marks a size that does not change, like None.
    STATIC: _Static
    #: Marks a size that changes and has no name.
    DYNAMIC: _Unnamed

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"Dim(name): must be an identifier, got {name!r}")
        self.name = name
        self.min: int = 2 if min is None else min
        self.max: int = _MOST if max is None else max
        if not 0 <= self.min <= self.max <= _MOST:
            raise ValueError(
                f"Dim({name!r}): must have 0 <= min <= max, got min={self.min} and max={self.max}"
            )

    def __mul__(self, scale: int) -> Derived:
        return Derived(self) * scale

    __rmul__ = __mul__

    def __add__(self, offset: int) -> Derived:
        return Derived(self) + offset

    __radd__ = __add__

    def __sub__(self, offset: int) -> Derived:
        return Derived(self) + -offset

    def __repr__(self) -> str:
        return f"Dim({self.name!r}, min={self.min}, max={self.max})"


@dataclass(frozen=True)
class Derived:
    """The size `scale * dim + offset`, for a `Dim`."""

    dim: Dim
    scale: int = 1
    offset: int = 0

    def __mul__(self, scale: int) -> Derived:
        if not isinstance(scale, int) or scale < 1:
            raise ValueError(f"Dim: can be multiplied only by a positive integer, got {scale!r}")
        return Derived(self.dim, self.scale * scale, self.offset * scale)

    __rmul__ = __mul__

    def __add__(self, offset: int) -> Derived:
        if not isinstance(offset, int):
            raise ValueError(f"Dim: only an integer can be added, got {offset!r}")
        return Derived(self.dim, self.scale, self.offset + offset)

    __radd__ = __add__

    def __sub__(self, offset: int) -> Derived:
        return self + -offset


def captures_sizes() -> bool:
    """Return whether the calling thread is capturing a program with dynamic sizes."""
    return getattr(_thread, "captures_sizes", False)


@contextmanager
def capturing_sizes() -> Iterator[None]:
    """Return a context manager inside which `captures_sizes()` is True on the calling thread."""
    _thread.captures_sizes = True
    try:
        yield
    finally:
        _thread.captures_sizes = False


class _Static:
    def __repr__(self) -> str:
        return "Dim.STATIC"


class _Unnamed:
    def __repr__(self) -> str:
        return "Dim.DYNAMIC"


Dim.STATIC = _Static()
Dim.DYNAMIC = _Unnamed()


@dataclass
class Size:
    """A dynamic size, and the dimensions of arguments that depend on it."""

    dim: Dim
    example: int
    #: Input, dimension, scale and offset.
    occurrences: list[tuple[int, int, int, int]] = field(default_factory=list)

    def values(self, number: int) -> list[int]:
        """Return the value of this size in each capture, beginning with the example's value.

        The order of the other values depends on `number`, the index of this size among all dynamic sizes."""
        low, high = self.dim.min, self.dim.max
        apart = next(filter(lambda steps: self.example + steps[-1] <= high, _steps(self.example)), None)
        apart = apart or self._all_steps()
        orders = list(itertools.permutations(apart))
        steps = [0, *orders[29 * number % len(orders)]]
        found = [self.example + step for step in steps]
        special = [size for size in range(low, 2) if size not in found]
        large = [step for step in reversed(apart) if self.example + step >= 2]
        for step, size in zip(large, special, strict=False):
            found[steps.index(step)] = size
        return found

    def _all_steps(self) -> tuple[int, ...]:
        """Return the differences from the example to the nearest other sizes in a narrow range.

        If there are fewer sizes than captures, several captures have the same size. Every size is captured then, so
        an expression that fits the captures is right."""
        low, high = max(self.dim.min, self.example - CAPTURES), min(self.dim.max, self.example + CAPTURES)
        steps = [size - self.example for size in range(low, high + 1) if size != self.example]
        steps.sort(key=lambda step: (abs(step), -step))
        repeated = itertools.cycle([*steps, 0]) if len(steps) < CAPTURES - 1 else steps
        return tuple(itertools.islice(repeated, CAPTURES - 1))

    def further_values(self, number: int) -> list[int]:
        """Return the value of this size in each of `_FURTHER` more captures; see Note [Sizes of captures].

        The values are those of `_EDGES` that are in the range, and random values, which may be smaller than
        the example's value. The values depend only on this size and on `number`, its index among all dynamic
        sizes."""
        low = max(self.dim.min, min(2, self.dim.max))
        high = min(self.dim.max, self.example + max(_FURTHER_RANGE, self.example))
        sizes = list(range(low, high + 1))
        chance = random.Random(self.example + number)
        edges = [size for size in _EDGES if low <= size <= high]
        edges = edges[number:] + edges[:number]  # dimensions must not have the same sizes in all captures
        others = _FURTHER - len(edges)
        return [
            *edges,
            *chance.sample(sizes, min(others, len(sizes))),
            *chance.choices(sizes, k=max(0, others - len(sizes))),
        ]

    def far_values(self) -> tuple[int, int]:
        """Return a value well below and a value well above the example's value, if the range allows it."""
        return max(self.dim.min, min(self.example, 2), self.example // 3), min(
            self.dim.max, self.example + _FAR
        )


def far_captures(sizes: Sequence[Size]) -> list[list[tuple[int, ...]]]:
    """Return groups of alternatives for additional captures, with sizes far from the example's sizes.

    An alternative is a tuple with a value for each dynamic size. Of each group, only one alternative is
    captured: the first for which the function does not raise an exception. The first group contains one
    alternative, whose sizes are all small. Then follow groups of two alternatives, in which the same size is
    large. The other sizes are small in the first alternative, and equal the example's sizes in the second.
    In each of the last groups, one size has its smallest value, but at least 2.
    """
    small = tuple(size.far_values()[0] for size in sizes)
    example = tuple(size.example for size in sizes)
    groups = [[small]]
    for number, size in enumerate(sizes):
        large = size.far_values()[1]
        groups.append([(*others[:number], large, *others[number + 1 :]) for others in (small, example)])
    for number, size in enumerate(sizes):
        least = max(size.dim.min, min(2, size.dim.max))
        groups.append([(*example[:number], least, *example[number + 1 :])])
    return groups


def corner_captures(sizes: Sequence[Size]) -> list[tuple[int, ...]]:
    """Return combinations of sizes in which a size is 0 or 1, or any size of a narrow range.

    Other sizes equal those of the example, or have their smallest value. There are at most `_CORNERS`
    combinations, because each of several sizes may have many values."""
    choices, special = [], []
    for size in sizes:
        low, high = size.dim.min, size.dim.max
        narrow = high - low < CAPTURES
        chosen = set(range(low, high + 1 if narrow else 2))
        special.append(chosen)
        choices.append(sorted(chosen | {size.example, max(low, min(2, high))}))
    found = [
        values
        for values in itertools.product(*choices)
        if any(value in chosen for value, chosen in zip(values, special, strict=True))
    ]
    return found if len(found) <= _CORNERS else random.Random(len(found)).sample(found, _CORNERS)


def confirming_captures(
    sizes: Sequence[Size], tensors: Sequence[Tensor], attempt: int
) -> list[tuple[int, ...]]:
    """Return the sizes of captures that test whether a program's expressions, such as `n // 4`, are right.

    In each capture, one size differs from the example: it is near the minimum, random, or large. Sizes are
    left out if the arguments would be very large. The sizes depend on the number `attempt`.
    """
    example = tuple(size.example for size in sizes)
    found = []
    for number, size in enumerate(sizes):
        least, most = max(size.dim.min, min(2, size.dim.max)), min(size.dim.max, size.example + _FAR)
        step = 1 + attempt
        values: list[int] = []
        while least + step <= most and len(values) < _CONFIRMING:
            values.append(least + step)
            step += max(1, step // 3)
        chance = random.Random(1000 * attempt + 10 * size.example + number)
        values += [chance.randint(least, most) for _ in range(_CONFIRMING // 4)]
        farther = range(most, min(size.dim.max, 4 * most) + 1)
        values += [
            value
            for value in chance.sample(farther, min(_CONFIRMING // 4, len(farther)))
            if _elements(tensors, size, value) <= thresholds.MOST_ELEMENTS
        ]
        found += [(*example[:number], value, *example[number + 1 :]) for value in values]
    return found


def captures_at(
    numbers: Sequence[int], sizes: Sequence[Size], tensors: Sequence[Tensor]
) -> list[tuple[int, ...]]:
    """Return the sizes of captures for a model whose code may compare sizes with `numbers`, as `n < 5` does.

    For each of the numbers, one size in turn equals the number, is one smaller or larger, or is much larger.
    The other sizes equal those of the example. Sizes are left out if the arguments would be very large. See
    Note [Sizes that code compares] in `thresholds`.
    """
    example = tuple(size.example for size in sizes)
    found: dict[tuple[int, ...], None] = {}
    most_elements = max(thresholds.MOST_ELEMENTS, 16 * sum(tensor.numel() for tensor in tensors))
    for number, size in enumerate(sizes):
        least, most = size.dim.min, size.dim.max
        places = {(scale, offset) for _, _, scale, offset in size.occurrences}
        at = {(limit - offset) // scale for limit in numbers for scale, offset in places}
        at = set(sorted(value for value in at if value + 1 >= max(least, 2))[: thresholds.MOST_THRESHOLDS])
        # Beyond a threshold, an integer may be constant. Quotients by large divisors are not constant for the larger sizes.
        near = {other for value in at for other in (value - 1, value, value + 1, 2 * value + 3)}
        for value in sorted(value for value in near if max(least, 2) <= value <= most):
            run = (*example[:number], value, *example[number + 1 :])
            if _elements(tensors, size, value) <= most_elements:
                found[run] = None
    return list(found)


def _elements(tensors: Sequence[Tensor], size: Size, value: int) -> float:
    """Return the number of elements that the arguments would have if `size` were `value`."""
    return sum(
        tensor.numel()
        * math.prod(
            (scale * value + offset) / max(tensor.shape[dim], 1)
            for input_, dim, scale, offset in size.occurrences
            if input_ == position
        )
        for position, tensor in enumerate(tensors)
    )


def _steps(example: int) -> Iterator[tuple[int, ...]]:
    """Yield choices for the values of a size in the captures after the first, as differences from `example`.

    The first choice that fits into the range of the size is used; see Note [Sizes of captures]."""
    for least, power in _POWERS:
        if example >= least:
            first = (example + 1) // power * power + power
            second = -(-(first + 2) // 15) * 15
            last = max(second + 1, _SMALL_END)
            yield tuple(size - example for size in (first - 1, first, first + 1, second, last))
    yield tuple(range(1, CAPTURES))


def sizes_of(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any
) -> list[Size]:
    """Return the sizes that `dynamic_shapes` declares as dynamic. It is a tree like the arguments."""
    given = trees.Flattening("export")
    given.arguments(args, kwargs)
    inputs = {id(tensor): number for number, (_, tensor) in enumerate(given.tensors)}
    found: dict[str, Size] = {}
    unnamed = itertools.count()

    def mark(tensor: Tensor, dim: int, wanted: Any, path: str) -> None:
        if wanted is None or isinstance(wanted, _Static):
            return
        if isinstance(wanted, int) and not isinstance(wanted, bool):
            if tensor.shape[dim] != wanted:
                raise ValueError(
                    f"export(dynamic_shapes): dimension {dim} of {path} is {tensor.shape[dim]}, not {wanted}"
                )
            return
        if isinstance(wanted, _Unnamed):
            wanted = Dim(f"s{next(unnamed)}")
        derived = Derived(wanted) if isinstance(wanted, Dim) else wanted
        if not isinstance(derived, Derived):
            raise TypeError(
                f"export(dynamic_shapes): dimension {dim} of {path} must be a Dim, an int or None, got {wanted!r}"
            )
        example, rest = divmod(tensor.shape[dim] - derived.offset, derived.scale)
        name = derived.dim.name
        size = found.setdefault(name, Size(derived.dim, example))
        if rest or not derived.dim.min <= example <= derived.dim.max:
            hint = f"\nhint: pass an example with a larger size, or declare Dim({name!r}, min={example})"
            raise ValueError(
                f"export(dynamic_shapes): dimension {dim} of {path} is {tensor.shape[dim]}, which is not"
                f" {derived.scale}*{name}{derived.offset:+} for {name} from {derived.dim.min} to {derived.dim.max}"
                + (hint if not rest and 1 <= example < derived.dim.min else "")
            )
        if (size.dim.min, size.dim.max) != (derived.dim.min, derived.dim.max):
            raise ValueError(
                f"export(dynamic_shapes): each Dim named '{name}' must have the same range, got {size.dim!r} and "
                f"{derived.dim!r} ({path})"
            )
        if size.example != example:
            raise ValueError(
                f"export(dynamic_shapes): '{name}' must have one size, got {size.example} and {example} ({path})"
            )
        size.occurrences.append((inputs[id(tensor)], dim, derived.scale, derived.offset))

    def walk(value: Any, wanted: Any, path: str) -> None:
        if wanted is None:
            return
        if isinstance(value, Tensor):
            if isinstance(wanted, Mapping):
                pairs = list(wanted.items())
            elif isinstance(wanted, (tuple, list)) and len(wanted) == value.ndim:
                pairs = list(enumerate(wanted))
            else:
                raise TypeError(
                    f"export(dynamic_shapes): {path} needs a dict, or one entry for each of its {value.ndim} dimensions"
                )
            for dim, one in pairs:
                if not isinstance(dim, int) or not -value.ndim <= dim < value.ndim:
                    raise ValueError(f"export(dynamic_shapes): {path} has no dimension {dim!r}")
                mark(value, dim % value.ndim, one, path)
        elif type(value) in pytree._IN_FILES:
            parts = trees.named_parts(value)
            walk(parts if isinstance(wanted, Mapping) else list(parts.values()), wanted, path)
        elif isinstance(value, Mapping) and isinstance(wanted, Mapping) and set(wanted) <= set(value):
            for key, part in wanted.items():
                walk(value[key], part, f"{path}.{key}")
        elif (
            isinstance(value, (tuple, list))
            and isinstance(wanted, (tuple, list))
            and len(value) == len(wanted)
        ):
            for number, (one, part) in enumerate(zip(value, wanted, strict=True)):
                walk(one, part, f"{path}.{number}")
        else:
            raise TypeError(f"export(dynamic_shapes): {path} has a different structure from the argument")

    if isinstance(dynamic_shapes, Mapping):
        named = _by_name(function, args, kwargs)
        if unknown := set(dynamic_shapes) - set(named):
            raise ValueError(f"export(dynamic_shapes): there is no argument {sorted(unknown)[0]!r}")
        for name, wanted in dynamic_shapes.items():
            walk(named[name], wanted, name)
    else:
        everything = [*args, *kwargs.values()]
        if not isinstance(dynamic_shapes, (tuple, list)) or len(dynamic_shapes) != len(everything):
            raise TypeError("export(dynamic_shapes): must be a dict, or have one entry for each argument")
        for number, (value, wanted) in enumerate(zip(everything, dynamic_shapes, strict=True)):
            walk(value, wanted, f"argument {number}")
    return list(found.values())


def _by_name(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    bound = inspect.signature(getattr(function, "forward", function)).bind(*args, **kwargs).arguments
    kinds = inspect.signature(getattr(function, "forward", function)).parameters
    named: dict[str, Any] = {}
    for name, value in bound.items():
        named.update(value if kinds[name].kind is inspect.Parameter.VAR_KEYWORD else {name: value})
    return named


def resized(tensors: Sequence[Tensor], sizes: Sequence[Size], values: Sequence[int]) -> dict[int, Tensor]:
    """Return tensors in which the dynamic sizes have the given values, with the examples' elements.

    The result is a dict from the id of each example tensor to the new tensor."""
    result: dict[int, Tensor] = {}
    for number, tensor in enumerate(tensors):
        made = tensor
        for size, value in zip(sizes, values, strict=True):
            for position, dim, scale, offset in size.occurrences:
                if position == number:
                    new = scale * value + offset
                    if tensor.shape[dim] == 0:
                        raise ValueError(
                            "export(dynamic_shapes): a dynamic dimension must not have size 0 in the example"
                        )
                    made = made.index_select(dim, core.arange(new) % tensor.shape[dim])
        result[id(tensor)] = (
            made.detach().requires_grad_(tensor.requires_grad) if made is not tensor else tensor
        )
    return result


def replaced(tree: Any, by_id: Mapping[int, Tensor]) -> Any:
    """Return a copy of the tree in which each tensor is replaced by `by_id[id(tensor)]`."""
    if isinstance(tree, Tensor):
        return by_id[id(tree)]
    if type(tree) in pytree._IN_FILES:
        return trees.with_parts(tree, [replaced(part, by_id) for part in trees.node_of(tree)[0]])
    if type(tree) in (tuple, list):
        return type(tree)(replaced(part, by_id) for part in tree)
    if isinstance(tree, dict):
        return type(tree)((key, replaced(part, by_id)) for key, part in tree.items())
    if trees.fields_of(tree) is not None:
        return trees.named_tuple(type(tree), [replaced(part, by_id) for part in tree])
    return tree
