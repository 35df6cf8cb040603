"""Generate invalid calls of an operator, such as programs make by mistake or attackers make on purpose.

The calls are generated from the signature and the samples of the operator's YAML entry. Each argument in turn is replaced by
values that have its type but may not be valid, while the other arguments remain unchanged. In further calls, the tensors
that the operator writes, including `out`, share memory with inputs, or have elements that share memory.
"""

# Lambdas that keep a loop variable as a default: their types are not inferred.
# mypy: disable-error-code="misc"
from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rushlight_testing.samples import Sample, arguments_of, samples_of

INT32, INT64 = 2**31, 2**63
INTEGERS = (0, -1, INT32 - 1, -INT32, INT32, 2**32, INT64 - 1, -INT64)
LIMITS = (0, -1, INT64 - 1, -INT64)
NUMBERS = (math.nan, math.inf, -math.inf, -0.0, 0, -1, 1e308, 5e-324, INT64 - 1, -INT64, True, 1j)
DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
MOST_DIMENSIONS = 64
# The results of these operators depend on the strides.
LOOK_AT_STRIDES = ("as_strided", "as_strided_copy", "as_strided_scatter", "as_strided_")
NOTHING: Any = object()


@dataclass
class Call:
    """A call, with its arguments by name. No other object refers to the tensors.

    Attributes:
        arguments: the values by name.
        out: the value passed as `out`; `NOTHING` if it is not passed.
        inplace: whether the in-place form is called.
        safe: the same arguments as dense tensors that share no memory, or None. A call with `safe` must return the same
            result as a call with `arguments`.

    Example:
        >>> from rushlight_testing.operators import operators
        >>> op = next(op for op in operators() if op.name == "add")
        >>> case = next(cases_of(op, torch))
        >>> sorted(case.make().arguments)
        ['alpha', 'input', 'other']
    """

    arguments: dict[str, Any]
    out: Any = NOTHING
    inplace: bool = False
    # The same arguments as dense tensors that share no memory. If both calls succeed, their results must agree.
    safe: dict[str, Any] | None = None


@dataclass(frozen=True)
class Case:
    """An invalid call of an operator.

    Attributes:
        text: the name of the case, which is unique among the cases of the operator.
        make: a function that returns the call, with new tensors each time.

    Example:
        >>> from rushlight_testing.operators import operators
        >>> op = next(op for op in operators() if op.name == "add")
        >>> next(cases_of(op, torch)).text
        '0: input=empty(0)'
    """

    text: str
    make: Callable[[], Call]


def cases_of(op: Any, library: Any) -> Iterator[Case]:
    """Yield all cases of an operator, always in the same order.

    Args:
        op: the operator's YAML entry, a `rushlight_core.codegen.model.Op`.
        library: the module whose functions create the tensors.

    Example:
        >>> from rushlight_testing.operators import operators
        >>> op = next(op for op in operators() if op.name == "add")
        >>> len(list(cases_of(op, torch))) > 100
        True
    """
    maker = _Maker(op, library)
    for number, bound in enumerate(maker.starts()):
        for case in maker.cases(bound, thorough=number == 0):
            yield Case(f"{number}: {case.text}", case.make)


class _Maker:
    def __init__(self, op: Any, library: Any) -> None:
        self.op = op
        self.library = library
        self.types = {a.name: a for a in op.schema.arguments}

    # --- the arguments from which cases are derived ---

    def starts(self) -> list[dict[str, Any]]:
        """Return the arguments of one or two samples, from which the cases are derived.

        These are the first sample in which no tensor is empty, and the sample with the most arguments.
        """
        found: list[tuple[bool, int, int, dict[str, Any]]] = []
        for text in self.op.samples:
            for sample in samples_of(text.text, self.library):
                bound = arguments_of(self.op, sample)
                filled = all(t.numel() for t in self.tensors(bound))
                given = len(sample.args) + len(sample.kwargs)
                found.append((not filled, len(found), given, bound))
        if not found:
            return [arguments_of(self.op, self.made_up())]
        first = min(found, key=lambda f: f[:2])
        fullest = max(found, key=lambda f: (not f[0], f[2], f[1]))
        return [found[number][3] for number in dict.fromkeys([first[1], fullest[1]])]

    def made_up(self) -> Sample:
        """Return arguments for an operator that has no samples, chosen by their types."""
        make: dict[str, Any] = {
            "Tensor": lambda: self.library.ones(3, 4),
            "Tensor[]": lambda: [self.library.ones(3, 4), self.library.ones(3, 4)],
            "Tensor?[]": lambda: [self.library.tensor([0, 1])],
            "TensorOrScalar": lambda: self.library.ones(3, 4),
            "Scalar": lambda: 1,
            "int": lambda: 1,
            "int[]": lambda: [2, 3],
            "bool": lambda: False,
            "float": lambda: 0.5,
            "str": lambda: "mean",
            "dtype": lambda: self.library.float32,
        }
        required = [a for a in self.op.schema.arguments if a.required]
        kwargs = {
            a.name: make[a.type.name.removesuffix("?")]() if not a.type.optional else None for a in required
        }
        return Sample("made up", (), kwargs)

    def tensors(self, value: Any) -> Iterator[Any]:
        if isinstance(value, self.library.Tensor):
            yield value
        elif isinstance(value, dict):
            for one in value.values():
                yield from self.tensors(one)
        elif isinstance(value, (list, tuple)):
            for one in value:
                yield from self.tensors(one)

    def copy(self, value: Any) -> Any:
        """Return copies of tensors, and other objects unchanged."""
        if isinstance(value, self.library.Tensor):
            return value.clone()
        if isinstance(value, (list, tuple)):
            return [self.copy(one) for one in value] if next(self.tensors(value), None) is not None else value
        return value

    def fresh(self, bound: dict[str, Any]) -> dict[str, Any]:
        return {name: self.copy(value) for name, value in bound.items()}

    # --- the cases ---

    def cases(self, bound: dict[str, Any], thorough: bool) -> Iterator[Case]:
        for name, value in bound.items():
            yield from self.single(bound, name, value)
        if thorough:
            yield from self.pairs_of_integers(bound)
            yield from self.pairs_of_dtypes(bound)
        if "inplace" in self.op.variants or self.op.is_inplace:
            yield from self.written_inputs(bound)
        if "out" in self.op.variants:
            yield from self.outputs(bound)

    def single(self, bound: dict[str, Any], name: str, value: Any) -> Iterator[Case]:
        """Yield calls in which the argument `name` is replaced by values that may be invalid."""
        kind = self.types[name].type.name
        plain = kind.removesuffix("?")
        if isinstance(value, self.library.Tensor):
            yield from self.replaced_tensor(bound, name, value)
        elif plain in ("Tensor[]", "Tensor?[]") and isinstance(value, (list, tuple)):
            yield from self.replaced_list(bound, name, list(value))
        elif plain in ("TensorOrScalar", "Scalar", "float"):
            yield from self.constants(bound, name, (*NUMBERS, None, "1"))
        elif plain == "int":
            yield from self.constants(bound, name, (*INTEGERS, INT64, True, 0.5, None))
        elif plain == "int[]":
            yield from self.constants(bound, name, self.lists_of_integers(value))
        elif plain == "bool":
            yield from self.constants(bound, name, (False, True, None, 2))
        elif plain == "str":
            yield from self.constants(bound, name, ("", "no such thing", "\0", "none", "sum", 1, None))
        elif plain == "dtype":
            yield from self.constants(bound, name, [getattr(self.library, dtype) for dtype in DTYPES])
        elif plain == "device":
            yield from self.constants(bound, name, ("meta", "cpu:7", "no such device", "cuda:-1", -1))
        elif plain == "Tensor":  # an optional tensor that the sample does not pass
            for shape in ((3,), (3, 4), (0,), ()):
                yield self.case(bound, name, f"ones{shape}", lambda s=shape: self.library.ones(s))

    def case(self, bound: dict[str, Any], name: str, text: str, make: Callable[[], Any], **more: Any) -> Case:
        return Case(f"{name}={text}", lambda: Call({**self.fresh(bound), name: make()}, **more))

    def constants(self, bound: dict[str, Any], name: str, values: Any) -> Iterator[Case]:
        for value in values:
            yield self.case(bound, name, _short(value), lambda v=value: v)

    def lists_of_integers(self, value: Any) -> Iterator[Any]:
        """Yield lists in which one value or all values are replaced, and lists that are too short or too long."""
        given = [value] if isinstance(value, int) else list(value or [])
        for integer in INTEGERS:
            for i in range(len(given)):
                yield [*given[:i], integer, *given[i + 1 :]]
            yield integer
            yield [integer] * max(len(given), 2)
        yield []
        yield given[:-1]
        yield given + given[-1:]
        yield given * 2
        for count in (MOST_DIMENSIONS, MOST_DIMENSIONS + 1, 130):
            yield [1] * count
            yield list(range(count))
            yield (given or [1]) + [0] * count
        yield None

    # --- tensors ---

    def replaced_tensor(self, bound: dict[str, Any], name: str, value: Any) -> Iterator[Case]:
        for text, make in self.shapes(value):
            yield self.case(bound, name, text, make)
        for dtype in DTYPES:
            yield self.case(bound, name, dtype, lambda d=dtype: self.cast(value, d))
        for text, make in self.fillings(value):
            yield self.case(bound, name, text, make)
        for text, make in self.layouts(value):
            yield Case(f"{name}={text}", lambda m=make: self.laid_out(bound, name, m))
        yield from self.constants(bound, name, (None, 1.5, "tensor", [], [1.0, 2.0]))
        yield self.case(
            bound, name, "meta", lambda: self.library.empty(value.shape, dtype=value.dtype, device="meta")
        )

    def laid_out(self, bound: dict[str, Any], name: str, make: Callable[[], Any]) -> Call:
        tensor = make()
        arguments = {**self.fresh(bound), name: tensor}
        safe = None if self.op.base in LOOK_AT_STRIDES else arguments | {name: dense(tensor)}
        return Call(arguments, safe=safe)

    def shapes(self, x: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield tensors that are empty, or that have a wrong number of dimensions or mismatched or extreme sizes."""
        shape, n = tuple(x.shape), x.dim()
        yield "empty(0)", lambda: x.new_empty((0,))
        yield "scalar", lambda: x.new_ones(())
        for d in range(n):
            yield f"size {d} is 0", lambda d=d: x.new_empty((*shape[:d], 0, *shape[d + 1 :]))
            yield f"size {d} is 1", lambda d=d: x.narrow(d, 0, min(1, shape[d])).clone()
            yield f"size {d} grows", lambda d=d: self.library.cat([x, x.narrow(d, 0, min(1, shape[d]))], d)
            yield f"without dimension {d}", lambda d=d: x.select(d, 0).clone() if shape[d] else x.sum(d)
        yield "one dimension more in front", lambda: x.clone().unsqueeze(0)
        yield "one dimension more behind", lambda: x.clone().unsqueeze(-1)
        yield "two dimensions more in front", lambda: x.clone().view((1, 1, *shape))
        ones = (1,) * (MOST_DIMENSIONS - n)
        yield "64 dimensions", lambda: x.clone().contiguous().view((*ones, *shape))
        yield "64 dimensions behind", lambda: x.clone().contiguous().view((*shape, *ones))
        yield "64 dimensions of 1", lambda: x.new_ones((1,) * MOST_DIMENSIONS)
        yield "63 dimensions", lambda: x.new_ones((1,) * (MOST_DIMENSIONS - 1))
        huge = 2 ** (56 // max(n - 1, 1)) + 1
        for d in range(min(n, 5)):
            # The tensor is empty, but the product of its other sizes nearly overflows, and overflows with one more
            # factor.
            yield (
                f"size {d} is 0, the rest huge",
                lambda d=d: x.new_empty(tuple(0 if i == d else huge for i in range(n))),
            )
        if n > 1:
            yield "size 0 is 0, the last 2**50", lambda: x.new_empty((0, *shape[1:-1], 2**50))

    def cast(self, x: Any, dtype: str) -> Any:
        return x.to(getattr(self.library, dtype), copy=True)  # a copy, because some calls write to it

    def fillings(self, x: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield tensors of the same shape with NaN, invalid indices, or the limits of the dtype's range."""
        if x.is_floating_point() or x.is_complex():
            values: tuple[Any, ...] = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1e38, -1e38, 1e-45)
        elif x.dtype == self.library.bool:
            values = (False, True)
        else:
            limits = self.library.iinfo(x.dtype)
            values = (
                0,
                1,
                limits.max,
                limits.min,
                max(-1, limits.min),
                min(max(x.shape, default=1), limits.max),
                4,
            )
        for value in values:
            yield f"full of {value}", lambda v=value: self.library.full_like(x, v)
        if x.numel() > 1:
            for value in values:
                yield f"ends in {value}", lambda v=value: self.ending_in(x, v)

    def ending_in(self, x: Any, value: Any) -> Any:
        """Return a copy of a tensor with another value as the last element."""
        copy = x.clone(memory_format=self.library.contiguous_format)
        copy.view(-1)[-1] = value
        return copy

    def layouts(self, x: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield tensors of the same shape in other layouts: broadcast, transposed, with gaps, an offset or overlaps."""
        shape, n = tuple(x.shape), x.dim()
        if x.numel() == 0:
            return
        for d in range(n):
            yield f"broadcast along {d}", lambda d=d: x.narrow(d, 0, 1).clone().expand(shape)
        yield "broadcast", lambda: x.contiguous().view(-1)[0].clone().expand(shape)
        if n > 1:
            order = (
                self.library.contiguous_format
            )  # always a copy, because a call must not write to the sample
            yield (
                "transposed in memory",
                lambda: x.transpose(0, -1).clone(memory_format=order).transpose(0, -1),
            )
            yield "overlapping rows", lambda: self.overlapping(x)
        if n > 0:
            yield "with gaps", lambda: self.library.stack([x, x], -1).select(-1, 1)
            yield (
                "every other row",
                lambda: (
                    self.library.cat([x, x], 0)[1::2].expand(shape)
                    if shape[0] == 1
                    else (self.library.stack([x, x], 1).flatten(0, 1)[::2])
                ),
            )
        yield "with an offset", lambda: self.library.cat([x.reshape(-1)[:1], x.reshape(-1)])[1:].view(shape)
        if n > 0 and 1 in shape:
            d = shape.index(1)
            stride = tuple(2**58 if i == d else s for i, s in enumerate(x.stride()))
            yield "an absurd stride where the size is 1", lambda: x.clone().as_strided(shape, stride)

    def overlapping(self, x: Any) -> Any:
        """Return a tensor in which each row begins one element after the beginning of the previous row."""
        shape = tuple(x.shape)
        flat = x.reshape(-1).clone()
        strides, reach = [1] * len(shape), sum(s - 1 for s in shape) + 1
        return flat[:reach].as_strided(shape, strides)

    def replaced_list(self, bound: dict[str, Any], name: str, value: list[Any]) -> Iterator[Case]:
        """Yield lists of tensors that are empty or long, contain other objects, or have one of their tensors replaced."""
        yield from self.constants(bound, name, ([], [None], None, [1.5], ["x"]))
        yield self.case(bound, name, "with None", lambda: [*self.copy(value), None])
        yield self.case(
            bound, name, "300 times the first", lambda: [self.copy(value[0])] * 300 if value else []
        )
        yield self.case(bound, name, "without the last", lambda: self.copy(value)[:-1])
        for i, x in enumerate(value[:2]):
            if not isinstance(x, self.library.Tensor):
                continue

            def put(make: Callable[[], Any], i: int = i) -> Callable[[], Any]:
                return lambda: [*self.copy(value[:i]), make(), *self.copy(value[i + 1 :])]

            casts = [(dtype, lambda d=dtype, x=x: self.cast(x, d)) for dtype in DTYPES]
            meta = [("meta", lambda x=x: self.library.empty(x.shape, dtype=x.dtype, device="meta"))]
            for text, make in [*self.shapes(x), *self.fillings(x), *casts, *self.layouts(x), *meta]:
                yield self.case(bound, name, f"[{i}] {text}", put(make))

    # --- several arguments ---

    def pairs_of_integers(self, bound: dict[str, Any]) -> Iterator[Case]:
        names = [n for n in bound if self.types[n].type.name.removesuffix("?") in ("int", "int[]")]
        for a, b in itertools.combinations(names, 2):
            for x, y in itertools.product(LIMITS, LIMITS):
                values = {n: self.filled(bound, n, v) for n, v in ((a, x), (b, y))}
                text = ", ".join(f"{n}={_short(v)}" for n, v in values.items())
                yield Case(text, lambda v=values: Call({**self.fresh(bound), **v}))

    def filled(self, bound: dict[str, Any], name: str, value: int) -> Any:
        if not self.types[name].type.name.startswith("int[]"):
            return value
        given = bound[name]
        return [value] * (len(given) if isinstance(given, (list, tuple)) else 1)

    def pairs_of_dtypes(self, bound: dict[str, Any]) -> Iterator[Case]:
        names = [n for n, v in bound.items() if isinstance(v, self.library.Tensor)][:2]
        for dtypes in itertools.product(DTYPES, DTYPES) if len(names) == 2 else ():
            changed = dict(zip(names, dtypes, strict=True))
            text = ", ".join(f"{n} is {d}" for n, d in changed.items())
            yield Case(text, lambda c=changed: self.of_dtypes(bound, c))

    def of_dtypes(self, bound: dict[str, Any], dtypes: dict[str, str]) -> Call:
        arguments = self.fresh(bound) | {n: self.cast(bound[n], d) for n, d in dtypes.items()}
        safe = None
        if self.op.kind == "pointwise" and not self.op.bool_inputs and not self.op.check:
            with contextlib.suppress(RuntimeError):  # int64 and uint64 have no common dtype
                common = self.library.result_type(*(arguments[n] for n in dtypes))
                if common not in (self.library.float16, self.library.bfloat16):  # these round wider values
                    safe = arguments | {n: arguments[n].to(common) for n in dtypes}
        return Call(arguments, safe=safe)

    # --- written arguments ---

    def written_inputs(self, bound: dict[str, Any]) -> Iterator[Case]:
        """Yield calls of the in-place form on read-only memory, and on memory that other operands share."""
        name = next(iter(bound))
        target = bound[name]
        if not isinstance(target, self.library.Tensor):
            return
        for text, make in [*self.layouts(target), *self.shapes(target), *self.read_only(target)]:
            yield Case(f"in place, {name}={text}", lambda m=make: self.in_place(bound, name, m()))
        for dtype in DTYPES:
            yield Case(f"in place, {dtype}", lambda d=dtype: self.in_place(bound, name, self.cast(target, d)))
        others = [n for n, v in bound.items() if n != name and isinstance(v, self.library.Tensor)]
        for other in others:
            for text, make in self.aliases(target, bound[other]):
                yield Case(
                    f"in place, {other} is {text}", lambda o=other, m=make: self.aliased(bound, name, o, m)
                )

    def in_place(self, bound: dict[str, Any], name: str, target: Any) -> Call:
        arguments = {**self.fresh(bound), name: target}
        return Call(arguments, inplace=True, safe=arguments | {name: dense(target)})

    def aliased(self, bound: dict[str, Any], name: str, other: str, make: Callable[[], Any]) -> Call:
        target, alias = make()
        arguments = {**self.fresh(bound), name: target, other: alias}
        return Call(arguments, inplace=True, safe=arguments | {name: dense(target), other: dense(alias)})

    def aliases(self, written: Any, read: Any) -> Iterator[tuple[str, Callable[[], tuple[Any, Any]]]]:
        """Yield pairs of tensors that share memory and have the shapes of the two given tensors."""
        if written.dtype != read.dtype or not written.numel() or not read.numel():
            return
        size = max(written.numel(), read.numel())

        def view_at(x: Any, buffer: Any, offset: int) -> Any:
            return buffer[offset : offset + x.numel()].view(tuple(x.shape))

        def memory() -> Any:
            flat = self.library.cat([read.reshape(-1), written.reshape(-1)])
            return (
                flat[: size + 4].clone()
                if flat.numel() >= size + 4
                else self.library.cat([flat] * 8)[: size + 4]
            )

        for text, of_written, of_read in (
            ("the same memory", 0, 0),
            ("one element before", 1, 0),
            ("one element behind", 0, 1),
            ("two elements before", 2, 0),
        ):
            yield (
                text,
                lambda w=of_written, r=of_read: (lambda b: (view_at(written, b, w), view_at(read, b, r)))(
                    memory()
                ),
            )
        if written.dim() > 1 and tuple(written.shape) == tuple(read.shape)[::-1]:
            yield (
                "its transpose",
                lambda: (
                    lambda b: (
                        view_at(written, b, 0),
                        view_at(written, b, 0).permute(*range(written.dim() - 1, -1, -1)),
                    )
                )(memory()),
            )

    def read_only(self, x: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
        if x.dtype == self.library.bfloat16:
            return

        def make() -> Any:
            array = x.numpy().copy()
            array.flags.writeable = False
            return self.library.from_numpy(array)

        yield "read-only", make

    def outputs(self, bound: dict[str, Any]) -> Iterator[Case]:
        """Yield values of `out`: tensors of other dtypes and shapes, tensors that overlap with inputs, and other objects."""
        try:
            results = call(self.op, self.library, Call(self.fresh(bound)))
        except Exception:
            return
        single = isinstance(results, self.library.Tensor)
        wanted = [results] if single else list(results)
        if not all(isinstance(r, self.library.Tensor) for r in wanted):
            return

        def outs(make: Callable[[Any], Any]) -> Any:
            made = [make(r) for r in wanted]
            return made[0] if single else tuple(made)

        def case(text: str, make: Callable[[Any], Any], **named: Any) -> Case:
            return Case(
                f"out is {text}",
                lambda: Call(self.fresh(bound), out=outs(make), safe=self.fresh(bound) | named),
            )

        has_dtype = self.op.computes_in_out and bound.get("dtype", NOTHING) is None
        for text in DTYPES:
            dtype = getattr(self.library, text)
            named = {"dtype": dtype} if has_dtype else {}
            yield case(text, lambda r, d=dtype: self.library.zeros(r.shape, dtype=d), **named)
        first = wanted[0]
        for text, _ in self.shapes(first):
            yield case(text, lambda r, t=text: dict(self.shapes(r)).get(t, lambda: r.clone())())
        for text, _ in self.layouts(first):
            yield case(text, lambda r, t=text: dict(self.layouts(r)).get(t, lambda: r.clone())())
        for text, _ in self.read_only(first):
            yield case(text, lambda r: next(self.read_only(r))[1]())
        yield case("a part of a larger one", lambda r: self.library.zeros((2, *r.shape), dtype=r.dtype)[1])
        yield case("meta", lambda r: self.library.empty(r.shape, dtype=r.dtype, device="meta"))
        for strange in (1.5, "out", [], [None], (None, None)):
            yield Case(f"out={strange!r}", lambda s=strange: Call(self.fresh(bound), out=s))
        if not single:
            yield Case(
                "out= one tensor for all", lambda: Call(self.fresh(bound), out=(first.clone(),) * len(wanted))
            )

            def last_is_wrong() -> Any:
                array = self.library.zeros((7, 5, 3), dtype=wanted[-1].dtype)[:, 1:, ::2]
                return Call(self.fresh(bound), out=(*(r.clone() for r in wanted[:-1]), array))

            yield Case("out= the last is a view of another shape", last_is_wrong)
            return
        for name, value in bound.items():
            if isinstance(value, self.library.Tensor):
                yield Case(f"out is {name} itself", lambda n=name: self.out_is(bound, n))
                for text, make in self.aliases(first, value):
                    yield Case(
                        f"out and {name} are {text}", lambda n=name, m=make: self.out_aliased(bound, n, m)
                    )

    def out_is(self, bound: dict[str, Any], name: str) -> Call:
        arguments = self.fresh(bound)
        return Call(arguments, out=arguments[name], safe=self.fresh(bound))

    def out_aliased(self, bound: dict[str, Any], name: str, make: Callable[[], Any]) -> Call:
        out, alias = make()
        arguments = {**self.fresh(bound), name: alias}
        return Call(arguments, out=out, safe=arguments | {name: dense(alias)})


def dense(x: Any) -> Any:
    """Return a contiguous copy."""
    return x.clone().contiguous() if x.is_contiguous() else x.contiguous()


def call(op: Any, library: Any, given: Call) -> Any:
    """Call an operator through its public function or, if it has none, by the operator's name.

    Args:
        op: the operator's YAML entry.
        library: the module whose operators are called.
        given: the call.

    Returns:
        The result of the operator.

    Example:
        >>> from rushlight_testing.operators import operators
        >>> op = next(op for op in operators() if op.name == "add")
        >>> call(op, torch, Call({"input": torch.ones(2), "other": 1, "alpha": 1}))
        tensor([2., 2.])
    """
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for a in op.schema.arguments:
        value = given.arguments[a.name]
        if a.keyword_only:
            if value is not a.default:
                keywords[a.name] = value
        else:
            positional.append(value)
    if given.out is not NOTHING:
        keywords["out"] = given.out
    name = op.base + ("_" if given.inplace and not op.is_inplace else "")
    if "hidden" in op.variants:
        values = [given.arguments[a.name] for a in op.schema.arguments]
        return library._C._call_boxed(op.name, *values)
    if "function" in op.variants and hasattr(library, name):
        return getattr(library, name)(*positional, **keywords)
    return getattr(library.Tensor, name)(*positional, **keywords)


def _short(value: Any) -> str:
    names = {INT64 - 1: "int64 max", -INT64: "int64 min", INT32 - 1: "int32 max", -INT32: "int32 min"}
    if isinstance(value, (list, tuple)):
        parts = [_short(one) for one in value]
        if len(parts) > 8:
            parts = [*parts[:3], "…", f"{len(parts)} in all"]
        return "[" + ", ".join(parts) + "]"
    if type(value) is int:
        return names.get(value, repr(value))
    return repr(value)
