"""Makes programs: call after call, each tried in one library, so that most of them are valid."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fuzz.execute import SIGNS, Machine, is_tensor, name_of
from fuzz.operators import Array, Operator
from fuzz.program import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    Call,
    Input,
    Named,
    Program,
    Ref,
    example,
    family,
    mapped,
)

DTYPES = {
    "float32": 36, "float64": 26, "int64": 12, "bool": 7, "int32": 4, "float16": 3, "bfloat16": 3, "uint8": 3,
    "complex64": 3, "complex128": 2, "int8": 1, "int16": 1,
}  # fmt: skip
MODES = {"plain": 36, "backward": 32, "backward2": 5, "jvp": 14, "vmap": 13}
SIZES = {0: 6, 1: 20, 2: 36, 3: 26, 4: 8, 5: 4}
RANKS = {0: 14, 1: 30, 2: 34, 3: 17, 4: 5}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne", "pow", "clamp")
# Operators whose results, or whose derivatives, are determined for matrices of full rank, or without equal singular values.
FULL_RANK = {
    "geqrf", "inverse", "linalg_cond", "linalg_inv", "linalg_inv_ex", "linalg_ldl_factor", "linalg_ldl_factor_ex",
    "linalg_lstsq", "linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "linalg_pinv", "linalg_qr", "linalg_slogdet",
    "linalg_solve", "linalg_solve_ex", "linalg_svd", "logdet", "lu", "pinverse", "qr", "slogdet", "svd",
}  # fmt: skip
APART = {
    "linalg_cond", "linalg_eig", "linalg_eigh", "linalg_eigvals", "linalg_eigvalsh", "linalg_matrix_norm", "linalg_norm",
    "linalg_svd", "linalg_svdvals", "norm", "nuclear_norm", "svd",
}  # fmt: skip
# Operators of linear algebra that take infinities and NaN as arithmetic does.
ARITHMETIC = {
    "linalg_cross",
    "linalg_diagonal",
    "linalg_matmul",
    "linalg_norm",
    "linalg_vecdot",
    "linalg_vector_norm",
    "norm",
}
# Operators that choose elements by their order: which of equal ones gets the derivative is not determined.
ORDERED = {"kthvalue", "median", "mode", "msort", "nanmedian", "nanquantile", "quantile", "sort", "topk"}
NO_RESULT_WITH_OUT = {"split_copy", "unbind_copy", "split_with_sizes_copy"}  # PyTorch's return None
MOST_DEGREE = 50  # of a polynomial; PyTorch's formulas lose their digits with it
NUMBERS: tuple[Any, ...] = (0, 1, -1, 2, 3, 0.5, -2.5, 1.0, True, False)
MOST_ELEMENTS = 400  # of a result
TRIES = 80
BATCH = 2


def _weighted(rng: random.Random, table: dict[Any, int]) -> Any:
    return rng.choices(list(table), list(table.values()))[0]


def _spelled(value: Any) -> list[str]:
    """The variables of an argument as they are written: `v3[1]`."""
    found: list[str] = []
    mapped(value, lambda v: found.append(v.name) if isinstance(v, Ref) else None)
    return found


def _takes_all(index: Any, shape: tuple[int, ...]) -> bool:
    """Whether an index of slices gives a view of all elements in the same shape."""
    parts = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(part, slice) or part is Ellipsis for part in parts):
        return False
    return np.empty(shape)[parts].shape == shape


def _place(t: Any) -> int:
    """What tensors that share memory have in common."""
    return t.untyped_storage().data_ptr() if hasattr(t, "untyped_storage") else id(t)


def _is_singular(x: np.ndarray) -> bool:
    """Whether any of these matrices is, or nearly so."""
    if x.ndim < 2 or not x.size or not np.isfinite(x).all():
        return False
    singular = np.linalg.svd(x.astype(complex), compute_uv=False)
    return bool((singular[..., -1] < 1e-3 * singular.max(axis=-1, initial=1e-30)).any())


def _has_equal_pivots(x: np.ndarray) -> bool:
    """Whether rows of any of these matrices could be chosen otherwise when they are eliminated."""
    if x.ndim < 2 or not x.size or not np.isfinite(x).all():
        return False
    for matrix in x.reshape(-1, *x.shape[-2:]).astype(complex):
        for k in range(min(matrix.shape) - 1):
            column = abs(matrix[k:, k])
            first = int(np.argmax(column))
            if (column > column[first] * 0.999).sum() > 1:
                return True
            matrix[[k, k + first]] = matrix[[k + first, k]]
            if not matrix[k, k]:
                return True
            matrix[k + 1 :] -= np.outer(matrix[k + 1 :, k], matrix[k]) / matrix[k, k]
    return False


def _has_equal_values(x: np.ndarray) -> bool:
    """Whether two singular values of any of these matrices are equal, or one is 0, or nearly so."""
    singular = np.linalg.svd(x.astype(complex), compute_uv=False)
    gaps = np.abs(np.diff(singular, axis=-1, append=0))
    return bool((gaps < 1e-3 * singular.max(axis=-1, initial=1e-30)[..., None]).any())


@dataclass
class _Draft:
    """A program while it grows."""

    mode: str
    inputs: list[Input] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)  # what was computed so far
    made: int = 0  # names of inputs that were given away

    def tensors(self) -> dict[str, Any]:
        return {n: t for n, t in self.variables.items() if is_tensor(t)}


class Generator:
    """Programs over these operators; `machine` tries the calls.

    With `extremes` some tensors have infinities, NaN, negative zeros, large and tiny numbers, and the ends of the range of
    integers.
    """

    def __init__(self, operators: list[Operator], machine: Machine, extremes: bool = False) -> None:
        self.operators, self.extremes = operators, extremes
        self.views = [op for op in operators if op.view and (op.function or op.method)]
        self.inplace = [op for op in operators if op.inplace]
        self.functions = [op for op in operators if op.function or op.method]
        self.machine = machine

    def program(self, seed: int, number: int) -> Program:
        """The program of that number: it depends on nothing else."""
        self.rng = random.Random(f"{seed}:{number}")
        self.draft = _Draft(_weighted(self.rng, MODES))
        for _ in range(self.rng.randint(1, 2)):
            self._add(self._fresh(self._shape()))
        wanted = self.rng.randint(3, 12)
        for _ in range(TRIES):
            if len(self.draft.calls) >= wanted or not self._extend():
                break
        inputs, calls = self.draft.inputs, self.draft.calls
        used = {name for call in calls for name in Program((), (call,)).refs()}
        inputs = [one for one in inputs if one.name in used] or inputs[:1]
        if self.draft.mode == "vmap":
            inputs = [self._batched(one) for one in inputs]
            if not any(one.batched for one in inputs):
                inputs[0] = self._batched(inputs[0], always=True)
        return Program(tuple(inputs), tuple(calls), self.draft.mode)

    def is_defined(self, program: Program) -> bool:
        """Whether every call up to one that fails has a result that both libraries promise."""
        inputs = [example(one) for one in program.inputs]
        variables = self.machine.start(replace(program, inputs=tuple(inputs)))
        self.draft = _Draft(program.mode, inputs, [], variables)
        for call in program.calls:
            if self._overlaps(call, variables) or self._is_undefined(call, variables):
                return False
            try:
                self.machine.bind(call, self.machine.apply(call, variables), variables)
            except Exception:
                return True
            self.draft.calls.append(call)
        return True

    # --- tensors ---

    def _shape(self) -> tuple[int, ...]:
        return tuple(_weighted(self.rng, SIZES) for _ in range(_weighted(self.rng, RANKS)))

    def _values(self, dtype: str, count: int) -> tuple[Any, ...]:
        rng = self.rng
        if dtype == "bool":
            return tuple(rng.random() < 0.5 for _ in range(count))
        if dtype in INTEGERS:
            low = 0 if dtype == "uint8" else -3
            choices: list[Any] = list(range(low, 6))
            if self.extremes and rng.random() < 0.05:
                bits = 8 if dtype == "uint8" else int(dtype[3:])
                top = 2**bits - 1 if dtype == "uint8" else 2 ** (bits - 1) - 1
                choices += [top, top - 1, 0 if dtype == "uint8" else -top - 1]
            return tuple(rng.choice(choices) for _ in range(count))
        if dtype in COMPLEX:
            parts = [self._values("float32", count) for _ in range(2)]
            return tuple(complex(a, b) for a, b in zip(*parts, strict=True))
        kind = rng.random()
        if kind < 0.45:
            return tuple(round(rng.uniform(-3, 3), 3) for _ in range(count))
        choices = [0.0, 1.0, -1.0, 2.0, 0.5, -0.5, 3.0, 1.5, -2.0, 0.25]
        if self.extremes and kind > 0.93:
            choices += [float("inf"), float("-inf"), float("nan"), -0.0, 1e4, 1e-6]
        return tuple(rng.choice(choices) for _ in range(count))

    def _fresh(self, shape: tuple[int, ...], dtype: str = "") -> Array:
        dtype = dtype or _weighted(self.rng, DTYPES)
        count = 1
        for n in shape:
            count *= n
        return Array(dtype, shape, self._values(dtype, count))

    def _input(self, array: Array) -> Input:
        """The array as an input that is not yet part of the program."""
        grows = array.dtype in (*FLOATS, *COMPLEX) and self.draft.mode in ("backward", "backward2", "jvp")
        self.draft.made += 1
        name = f"x{self.draft.made - 1}"
        return Input(name, array.dtype, array.shape, array.values, grows and self.rng.random() < 0.75)

    def _add(self, array: Array) -> Ref:
        one = self._input(array)
        self._adopt([one])
        return Ref(one.name)

    def _adopt(self, inputs: list[Input]) -> None:
        self.draft.inputs += inputs
        started = self.machine.start(Program(tuple(inputs), (), self.draft.mode))
        self.draft.variables.update(started)

    def _batched(self, one: Input, always: bool = False) -> Input:
        """An input with examples before its dimensions: its values, then the same ones in another order."""
        if not always and self.rng.random() < 0.2:
            return one
        values = one.values + one.values[1:] + one.values[:1]
        return replace(one, shape=(BATCH, *one.shape), values=values, batched=True)

    def _recast(self, array: Array, dtype: str) -> Array:
        """The array's values in another dtype, as far as it holds them."""

        def cast(value: Any) -> Any:
            if dtype in COMPLEX:
                return complex(value)
            real = value.real if isinstance(value, complex) else value
            if dtype == "bool":
                return bool(real == real and real > 0.5)
            if dtype in INTEGERS:
                whole = int(real) if abs(real) < 100 else 0  # infinities and NaN too
                return max(whole, 0) if dtype == "uint8" else whole
            return float(real)

        return Array(dtype, array.shape, tuple(cast(v) for v in array.values))

    def _reshaped(self, array: Array, shape: tuple[int, ...]) -> Array:
        count = 1
        for n in shape:
            count *= n
        values = array.values or self._values(array.dtype, 4)
        return Array(array.dtype, shape, tuple(values[i % len(values)] for i in range(count)))

    def _narrowed(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts with this one."""
        kind = self.rng.random()
        if kind < 0.55:
            return shape
        kept = shape[self.rng.randint(0, len(shape)) :]
        return tuple(1 if self.rng.random() < 0.3 else n for n in kept)

    def _mutated(self, array: Array) -> Array:
        kind = self.rng.random()
        if kind < 0.75:
            return array
        if kind < 0.85:
            return self._reshaped(array, ())
        shape = list(array.shape)
        if kind < 0.95 and shape:
            shape[self.rng.randrange(len(shape))] = self.rng.choice((0, 1, 2))
        elif shape and kind < 0.975:
            del shape[0]
        else:
            shape.insert(0, self.rng.choice((1, 2)))
        return self._reshaped(array, tuple(shape))

    def _pick(self, fits: Callable[[Any], bool] = lambda t: True) -> str:
        """A variable, a late one rather than an early one; empty where none fits."""
        names = [n for n, t in self.draft.tensors().items() if fits(t)]
        if not names:
            return ""
        return self.rng.choices(names, range(1, len(names) + 1))[0]

    # --- calls ---

    def _extend(self) -> bool:
        """Try one more call; false where the program ends here."""
        draft, rng = self.draft, self.rng
        before, state = draft.made, len(draft.inputs)
        made: list[Input] = []
        kind = rng.random()
        if kind < 0.12:
            call = self._index(made)
        elif kind < 0.18:
            call = self._assign(made)
        elif kind < 0.25:
            call = self._sign(made)
        elif kind < 0.28:
            call = self._convert()
        elif kind < 0.40:
            call = self._operator(self.views, made)
        elif kind < 0.52 and self.inplace:
            call = self._operator(self.inplace, made, "inplace")
        else:
            call = self._operator(self.functions, made)
        if call is None:
            draft.made = before
            return True
        self._adopt(made)
        variables = dict(draft.variables)
        if self._overlaps(call, variables) or self._is_undefined(call, variables):
            self._forget(state)
            draft.made = before
            return True
        try:
            results = self.machine.bind(call, self.machine.apply(call, variables), variables)
        except Exception:
            if call.writes or rng.random() < 0.03:
                # What was written by a call that failed is not known; a few programs end with an error.
                if rng.random() < 0.3:
                    draft.calls.append(call)
                return False
            self._forget(state)
            draft.made = before
            return True
        tensors = [r for r in results if is_tensor(r)]
        if sum(t.numel() for t in tensors) > MOST_ELEMENTS or len(results) > 12 or self._is_lost(tensors):
            self._forget(state)
            draft.made = before
            return not call.writes
        draft.calls.append(call)
        draft.variables = variables
        return True

    def _overlaps(self, call: Call, variables: dict[str, Any]) -> bool:
        """Whether what a call reads shares memory with what it writes: the result is defined in rushlight only."""

        def places(value: Any) -> list[int]:
            tensors = [variables[name] for name in _spelled(value) if is_tensor(variables.get(name))]
            return [
                t.untyped_storage().data_ptr() for t in tensors if hasattr(t, "untyped_storage") and t.numel()
            ]

        if call.path == "[]=":
            return bool(set(places(call.args[:1])) & set(places(call.args[1:])))
        if "out" in call.kwargs:
            outs = places(call.kwargs["out"])
            rest = places((call.args, {n: v for n, v in call.kwargs.items() if n != "out"}))
            return len(set(outs)) < len(outs) or bool(set(outs) & set(rest))
        if call.writes and self.draft.mode == "jvp":
            # In PyTorch the tangent of what is written is written before it is read again.
            return bool(set(places(call.args[:1])) & set(places((call.args[1:], call.kwargs))))
        return False

    def _is_undefined(self, call: Call, variables: dict[str, Any]) -> bool:
        """Whether a call has no result that both libraries promise."""
        given: list[Any] = []
        mapped((call.args, call.kwargs), given.append)
        tensors = [
            variables[v.name] for v in given if isinstance(v, Ref) and is_tensor(variables.get(v.name))
        ]
        if family(call.op) in ("searchsorted", "bucketize") and tensors:
            if self.draft.mode == "vmap":
                return True  # the second example has the elements of the first in another order
            # Of a sequence that is not in order, whichever of the two it is.
            values = [self.machine.record(t).array.astype(float) for t in tensors]
            return any(v.ndim and not np.all(np.diff(v, axis=-1) >= 0) for v in values)
        if any(name_of(t.dtype) in ("float16", "bfloat16") for t in tensors):
            # With complex numbers PyTorch computes in complex32, which is not here.
            if any(isinstance(v, complex) for v in given) or any(
                name_of(t.dtype) in COMPLEX for t in tensors
            ):
                return True
        if call.op in ("setitem", "index_put", "index_put_") and self.draft.mode == "vmap":
            # Which of several elements is written last.
            return any(name_of(t.dtype) == "int64" and t.numel() > 1 for t in tensors[1:])
        if family(call.op) in COMPARISONS and any(name_of(t.dtype) == "uint8" for t in tensors):
            # PyTorch takes -1 for 255, and what does not fit is refused here.
            return any(isinstance(v, (int, float)) and not isinstance(v, bool) and v < 0 for v in given)
        if family(call.op) in COMPARISONS and any(
            name_of(t.dtype) in ("float16", "bfloat16") for t in tensors
        ):
            return any(not t.shape for t in tensors)  # PyTorch rounds the other, where that is a number
        if call.writes and tensors and name_of(tensors[0].dtype) not in (*FLOATS, *COMPLEX):
            # In PyTorch integers then require grad.
            return any(t.requires_grad for t in tensors[1:])
        if call.op == "detach_" and self.draft.mode != "plain" and tensors:
            # What becomes of the views of a leaf.
            return sum(_place(t) == _place(tensors[0]) for t in self.draft.tensors().values()) > 1
        if call.writes and tensors and self._is_seen_otherwise(tensors[0]):
            return True
        if call.op == "movedim" and self.draft.mode == "jvp":
            return any(t.dim() == 0 for t in tensors)  # as a view of all: see _index
        return self._is_beyond(family(call.op), tensors, given)

    def _is_seen_otherwise(self, written: Any) -> bool:
        """Whether another variable's memory changes with what is written, in PyTorch only.

        There `conj` is a view, and a write to what `unsafe_chunk` and its kin give is not followed.
        """

        def marks(t: Any) -> tuple[bool, bool]:
            return (t.is_conj(), t.is_neg()) if hasattr(t, "is_conj") else (False, False)

        shared = {n: t for n, t in self.draft.tensors().items() if t.numel() and _place(t) == _place(written)}
        parts = {call.result for call in self.draft.calls if call.op.startswith("unsafe_")}
        if parts and not written.numel():
            return True  # no memory tells whether it is such a part
        shared |= {n: t for n, t in self.draft.tensors().items() if t is written}
        if any(t.dtype != written.dtype for t in shared.values()) and self._has_nan(written):
            return True  # of NaN there are many
        return any(n.partition("[")[0] in parts or marks(t) != marks(written) for n, t in shared.items())

    def _has_nan(self, t: Any) -> bool:
        array = self.machine.record(t).array
        return array.dtype.kind in "fc" and bool(np.isnan(array).any())

    def _is_beyond(self, op: str, tensors: list[Any], given: list[Any]) -> bool:
        """Whether tensors are beyond what an operator, or PyTorch's, is defined for."""
        values = [self.machine.record(t).array for t in tensors]
        if self.draft.mode not in ("plain", "vmap") and self._has_no_derivative(op, values):
            return True
        if op in ("median", "nanmedian") and tensors and hasattr(tensors[0], "stride"):
            # PyTorch gives memory that nobody wrote.
            return any(
                step == 0 and n > 1 for step, n in zip(tensors[0].stride(), tensors[0].shape, strict=True)
            )
        if op.startswith(("max_pool", "adaptive_max_pool", "fractional_max_pool")):
            return any(np.isnan(v).sum() > 1 for v in values if v.dtype.kind == "f")  # which NaN is chosen
        if op in ("digamma", "special_digamma", "special_psi", "polygamma"):
            near = [abs(v - np.round(v)) for v in values if v.dtype.kind == "f"]
            return any(((d > 0) & (d < 1e-4)).any() for d in near)  # PyTorch loses its digits beside a pole
        if op in ("logit", "special_logit"):
            return any(isinstance(v, (int, float)) and v > 0.5 for v in given)  # limits that cross
        if op == "multilabel_margin_loss":
            return not all(v.size for v in values)  # the same
        if op in (
            "trapezoid",
            "cumulative_trapezoid",
        ):  # PyTorch adds neighbours as they are, and does not align places
            if len(values) > 1 and values[1].ndim > values[0].ndim:
                return True
            return any(
                v.dtype.kind in "iu" and (abs(v.astype(float)) > np.iinfo(v.dtype).max / 2).any()
                for v in values
            )
        if op == "histc":
            return any(
                name_of(t.dtype) in ("float16", "bfloat16") for t in tensors
            )  # elements at the limits of bins
        if op in ("atan2", "margin_ranking_loss", "soft_margin_loss"):
            return any(v.dtype == np.uint8 for v in values)  # PyTorch negates it
        if op in ("igamma", "igammac", "special_gammainc", "special_gammaincc"):
            return not all((v >= 0).all() for v in values if v.dtype.kind != "c")
        if op.startswith("grid_sampler"):
            return not all(np.isfinite(v).all() for v in values)
        if "_polynomial_" in op:
            degrees = [*values[1:], *(np.array(v) for v in given[1:] if isinstance(v, (int, float)))]
            return any(not (np.abs(d) <= MOST_DEGREE).all() for d in degrees)
        if op in ("linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "lu") and _has_equal_pivots(
            values[0]
        ):
            return True
        if op in ("linalg_matrix_rank", "matrix_rank"):
            limits = [v for v in given if isinstance(v, (int, float)) and not isinstance(v, bool)]
            if any(v <= 0 for v in limits) or any((v <= 0).any() for v in values[1:]):
                return True  # singular values of 0 are counted as they are rounded
        if op in ("qr", "linalg_qr", "geqrf") and any(((v == 0) & np.signbit(v.real)).any() for v in values):
            return True  # the sign of a zero decides about those of the result
        algebra = op.startswith(("linalg_", "cholesky", "orgqr", "ormqr")) or op in FULL_RANK | APART
        if algebra and op not in ARITHMETIC and not all(np.isfinite(v).all() for v in values):
            return True
        return op in FULL_RANK and bool(values) and _is_singular(values[0])

    def _has_no_derivative(self, op: str, values: list[np.ndarray]) -> bool:
        """Whether an operator has no derivative there, or another one in every library."""
        if not values:
            return False
        x = values[0]
        if op in ORDERED:
            return len(np.unique(x)) < x.size  # which of equal elements is chosen
        if op in ("std", "std_mean"):
            return bool(x.std(axis=None) < 1e-6 * (1 + abs(x).max(initial=0))) if x.size else False
        if op == "copysign":
            return not (np.isfinite(x) & (x != 0)).all()  # PyTorch divides by it
        if op == "polar":
            return not (np.isfinite(x) & (x > 0)).all()  # the same, and takes it for positive
        if op in ("det", "linalg_det"):
            return _is_singular(x)  # PyTorch's is 0
        if op in ("fmax", "fmin"):
            # In PyTorch the derivative of forward mode at a tie is another.
            return len(values) > 1 and bool(np.isin(x, values[1]).any())
        if op in ("logit", "special_logit"):
            return not ((x > 0) & (x < 1)).all()
        if op == "prelu":
            return not x.all()  # in PyTorch that of forward mode is another
        if op == "special_log_ndtr":
            return bool((x < -100).any())  # PyTorch loses its digits
        if op == "block_diag":
            return any(v.shape == (0,) for v in values)  # PyTorch takes the wrong part
        if op not in APART or x.ndim < 2 or not x.size or not np.isfinite(x).all():
            return False
        # A norm may be told which dimensions are those of the matrices.
        pairs = itertools.combinations(range(x.ndim), 2) if "norm" in op else [(x.ndim - 2, x.ndim - 1)]
        return any(_has_equal_values(np.moveaxis(x, pair, (-2, -1))) for pair in pairs)

    def _forget(self, inputs: int) -> None:
        for one in self.draft.inputs[inputs:]:
            del self.draft.variables[one.name]
        del self.draft.inputs[inputs:]

    def _is_lost(self, tensors: list[Any]) -> bool:
        """Whether nothing finite is left that later calls could compute with; now and then that is kept."""
        if self.rng.random() < 0.2:
            return False
        for t in tensors:
            if name_of(t.dtype) in (*FLOATS, *COMPLEX) and t.numel():
                record = self.machine.record(t)
                if not (abs(record.array.astype(complex)) < 1e6).any():
                    return True
        return False

    def _name(self) -> str:
        return f"v{len(self.draft.calls)}"

    def _operator(self, table: list[Operator], made: list[Input], form: str = "") -> Call | None:
        rng = self.rng
        if not table:
            return None
        op = rng.choice(table)
        args, kwargs = rng.choice(op.templates)
        forms = [f for f in ("function", "method") if getattr(op, f)]
        form = form or rng.choice(forms)
        if op.has_out and form == "function" and rng.random() < 0.15:
            form = "out"
        args, kwargs = self._fill(op, args, kwargs, made, form == "inplace")
        if form in ("method", "inplace") and not (args and isinstance(args[0], Ref)):
            return None
        base = op.name.partition(".")[0]
        if form == "out" and base in NO_RESULT_WITH_OUT:
            return None
        if form == "out":
            call = Call(base + ".out", op.function, self._name(), args, kwargs)
            return self._with_out(call, made)
        if form == "function":
            return Call(base, op.function, self._name(), args, kwargs)
        name = getattr(op, form)
        return Call(name, "." + name, self._name(), args, kwargs)

    def _fill(
        self, op: Operator, args: Any, kwargs: Any, made: list[Input], written: bool
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A template with variables and inputs of its own in the place of its arrays."""
        rng = self.rng
        arrays: list[Array] = []
        mapped((args, kwargs), lambda v: arrays.append(v) if isinstance(v, Array) else None)
        # One place gets a variable, which shape the others follow that were like it.
        place = 0 if written or rng.random() < 0.75 else rng.randrange(max(1, len(arrays)))
        chosen = self._pick() if rng.random() < 0.85 else ""
        shape = arrays[place].shape if arrays else ()
        actual = tuple(self.draft.variables[chosen].shape) if chosen else shape
        rank = len(actual)
        dtype = _weighted(rng, DTYPES)
        seen = -1

        def change(value: Any) -> Any:
            nonlocal seen
            if isinstance(value, Array):
                seen += 1
                if seen == place and chosen:
                    return Ref(chosen)
                return self._tensor(value, value.shape == shape and bool(chosen), actual, dtype, made)
            if isinstance(value, bool) or value is None:
                return (not value) if value is not None and rng.random() < 0.1 else value
            if isinstance(value, int) and rng.random() < 0.15:
                return rng.randint(-max(rank, 1), max(rank, 2))
            if isinstance(value, float) and rng.random() < 0.15:
                return rng.choice(NUMBERS)
            if isinstance(value, Named) and rng.random() < 0.3:
                return Named(_weighted(rng, DTYPES))
            return value

        args = tuple(mapped(args, change))
        kwargs = {n: mapped(v, change) for n, v in kwargs.items() if rng.random() < 0.85}
        return args, kwargs

    def _tensor(
        self, array: Array, follows: bool, actual: tuple[int, ...], dtype: str, made: list[Input]
    ) -> Ref:
        """A variable or a new input for an array of a template."""
        rng = self.rng
        if follows:
            array = self._reshaped(array, self._narrowed(actual))
        if array.dtype in FLOATS:
            array = self._recast(array, dtype if rng.random() < 0.7 else _weighted(rng, DTYPES))
            if rng.random() < 0.4:
                array = Array(array.dtype, array.shape, self._values(array.dtype, len(array.values)))
        elif rng.random() < 0.1:
            array = self._recast(array, _weighted(rng, DTYPES))
        array = self._mutated(array)
        if rng.random() < 0.4:
            other = self._pick(lambda t: tuple(t.shape) == array.shape and name_of(t.dtype) == array.dtype)
            if other:
                return Ref(other)
        one = self._input(array)
        made.append(one)
        return Ref(one.name)

    def _with_out(self, call: Call, made: list[Input]) -> Call | None:
        """The call with `out=`: tensors that fit, or nearly."""
        variables = {**self.draft.variables, **self.machine.start(Program(tuple(made), (), self.draft.mode))}
        try:
            result = self.machine.apply(call, variables)
        except Exception:
            return None
        rng, outs = self.rng, []
        results = result if isinstance(result, (tuple, list)) and not is_tensor(result) else [result]
        if not all(is_tensor(r) for r in results):
            return None
        for r in results:
            shape, dtype = tuple(int(n) for n in r.shape), name_of(r.dtype)
            like = self._pick(lambda t, s=shape, d=dtype: tuple(t.shape) == s and name_of(t.dtype) == d)  # type: ignore[misc]
            if like and rng.random() < 0.6:
                outs.append(Ref(like))
                continue
            if rng.random() < 0.15:
                dtype = _weighted(rng, DTYPES)
            if dtype not in DTYPES:
                return None
            kind = rng.random()
            shape = (0,) if kind < 0.2 else (*shape, 2) if kind < 0.25 else shape
            one = replace(self._input(self._fresh(shape, dtype)), requires_grad=False)
            made.append(one)
            outs.append(Ref(one.name))
        out = tuple(outs) if results is result else outs[0]
        return replace(call, kwargs={**call.kwargs, "out": out})

    def _index_of(self, shape: tuple[int, ...], made: list[Input]) -> Any:
        """An index of a tensor of this shape."""
        rng = self.rng
        parts: list[Any] = []
        for n in shape[: rng.randint(0, len(shape))]:
            kind = rng.random()
            if kind < 0.3 and n:
                parts.append(rng.randint(-n, n - 1))
            elif kind < 0.7:
                first, last = (rng.choice((None, rng.randint(-n - 1, n + 1))) for _ in range(2))
                parts.append(slice(first, last, rng.choice((None, None, 1, 2))))
            elif kind < 0.8 and n:
                parts.append([rng.randint(-n, n - 1) for _ in range(rng.randint(1, 3))])
            elif kind < 0.9 and n:
                length = _weighted(rng, SIZES)
                array = Array("int64", (length,), tuple(rng.randint(-n, n - 1) for _ in range(length)))
                made.append(self._input(array))
                parts.append(Ref(made[-1].name))
            elif kind < 0.96:
                made.append(self._input(self._fresh((n,), "bool")))
                parts.append(Ref(made[-1].name))
            else:
                parts.append(None)
        if rng.random() < 0.15:
            parts.insert(rng.randint(0, len(parts)), Ellipsis)
        if not parts and rng.random() < 0.5:
            made.append(self._input(self._fresh(shape, "bool")))
            return Ref(made[-1].name)
        return parts[0] if len(parts) == 1 else tuple(parts)

    def _index(self, made: list[Input]) -> Call | None:
        name = self._pick()
        if not name:
            return None
        shape = tuple(self.draft.variables[name].shape)
        index = self._index_of(shape, made)
        if self.draft.mode == "jvp" and _takes_all(index, shape):
            return None  # of a write to such a view PyTorch's base has no tangent
        return Call("getitem", "[]", self._name(), (Ref(name), index))

    def _assign(self, made: list[Input]) -> Call | None:
        name = self._pick()
        if not name:
            return None
        rng = self.rng
        index = self._index_of(tuple(self.draft.variables[name].shape), made)
        call = Call("getitem", "[]", self._name(), (Ref(name), index))
        variables = {**self.draft.variables, **self.machine.start(Program(tuple(made), (), self.draft.mode))}
        try:
            part = self.machine.apply(call, variables)
        except Exception:
            return None
        value: Any = rng.choice(NUMBERS)
        if rng.random() < 0.7:
            shape = self._narrowed(tuple(int(n) for n in part.shape))
            other = self._pick(lambda t: tuple(t.shape) == shape)
            if not other or rng.random() < 0.5:
                dtype = name_of(part.dtype) if rng.random() < 0.7 else ""
                made.append(self._input(self._fresh(shape, dtype if dtype in DTYPES else "")))
                other = made[-1].name
            value = Ref(other)
        return Call("setitem", "[]=", self._name(), (Ref(name), index, value))

    def _sign(self, made: list[Input]) -> Call | None:
        rng = self.rng
        name, sign = self._pick(), rng.choice(tuple(SIGNS))
        if not name:
            return None
        shape = tuple(int(n) for n in self.draft.variables[name].shape)
        kind = rng.random()
        other: Any = rng.choice(NUMBERS)
        if kind < 0.35:
            picked = self._pick()
            other = Ref(picked) if picked else other
        elif kind < 0.7:
            made.append(self._input(self._fresh(self._narrowed(shape))))
            other = Ref(made[-1].name)
        sides = (Ref(name), other) if rng.random() < 0.7 else (other, Ref(name))
        return Call(SIGNS[sign][0], sign, self._name(), sides)

    def _convert(self) -> Call | None:
        name = self._pick()
        if not name:
            return None
        if self.rng.random() < 0.3:
            return Call("clone", ".clone", self._name(), (Ref(name),))
        return Call("to", ".to", self._name(), (Ref(name), Named(_weighted(self.rng, DTYPES))))
