"""Recognize calls whose results one of the libraries does not define. Such calls are not generated."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz.execute import Machine, is_tensor, name_of
from fuzz.program import COMPLEX, FLOATS, INTEGERS, Call, Input, Named, Ref, family, mapped

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne", "pow", "clamp")
# Operators whose results or derivatives are determined only for matrices of full rank (FULL_RANK), or only for matrices
# without equal singular values (APART).
FULL_RANK = {
    "geqrf", "inverse", "linalg_cond", "linalg_inv", "linalg_inv_ex", "linalg_ldl_factor", "linalg_ldl_factor_ex",
    "linalg_lstsq", "linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "linalg_pinv", "linalg_qr", "linalg_slogdet",
    "linalg_solve", "linalg_solve_ex", "linalg_svd", "logdet", "lu", "pinverse", "qr", "slogdet", "svd",
}  # fmt: skip
APART = {
    "linalg_cond", "linalg_eig", "linalg_eigh", "linalg_eigvals", "linalg_eigvalsh", "linalg_matrix_norm", "linalg_norm",
    "linalg_svd", "linalg_svdvals", "norm", "nuclear_norm", "svd",
}  # fmt: skip
# Operators that invert a triangular matrix, and the position of this matrix among their tensors.
TRIANGULAR = {
    "cholesky_inverse": 0, "cholesky_solve": 1, "linalg_lu_solve": 0, "linalg_solve_triangular": 0, "lu_solve": 1,
    "triangular_solve": 1,
}  # fmt: skip
LU = ("linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "lu")
# Operators of linear algebra that handle infinities and NaN like arithmetic.
ARITHMETIC = {
    "linalg_cross",
    "linalg_diagonal",
    "linalg_matmul",
    "linalg_norm",
    "linalg_vecdot",
    "linalg_vector_norm",
    "norm",
}
# Complex functions that jump at the negative real numbers: the sign of a zero imaginary part chooses the side.
CUT = {
    "acosh",
    "angle",
    "float_power",
    "log",
    "log10",
    "log2",
    "logcumsumexp",
    "logsumexp",
    "pow",
    "sqrt",
    "rsqrt",
}
# Operators that choose elements by their order: which of equal ones gets the derivative is not determined.
ORDERED = {"kthvalue", "median", "mode", "msort", "nanmedian", "nanquantile", "quantile", "sort", "topk"}
# Operators that change a tensor's sizes and strides in place.
GEOMETRY_IN_PLACE = (
    "t_",
    "transpose_",
    "swapaxes_",
    "swapdims_",
    "squeeze_",
    "unsqueeze_",
    "as_strided_",
    "resize_",
)
# Operators that return their argument itself if no broadcasting, difference or copy is needed. The other library may return
# a view or a copy, since the result of an earlier call may have other strides there.
RETURNED_AS_IT_IS = {"broadcast_tensors", "contiguous", "diff"}
VIEWS_IF_POSSIBLE = {"contiguous", "flatten", "ravel", "reshape", "reshape_as"}
# Operators that convert tensors, and the integer dtype of the result; empty if an argument gives the dtype.
CONVERSIONS = {
    "to": "", "type_as": "", "int": "int32", "long": "int64", "short": "int16", "char": "int8", "byte": "uint8",
}  # fmt: skip
RECURRENT = {"gru", "lstm", "rnn_relu", "rnn_tanh"}
CELLS = {"gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"}
# Operators that sum products. With large numbers, the order of the terms decides whether the result is infinite or NaN.
SUMS = RECURRENT | CELLS | {
    "addbmm", "addmm", "addmv", "baddbmm", "bilinear", "bmm", "chain_matmul", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution", "dot", "einsum", "inner", "linalg_matmul",
    "linalg_multi_dot", "linalg_vecdot", "linear", "matmul", "mm", "mv", "scaled_dot_product_attention", "tensordot", "vdot",
}  # fmt: skip
MOST_IN_CELLS = 1e6  # largest input; beside larger terms, others lose their digits
MOST_FACTORS = 400  # of a power; with more, every number except 0 and 1 overflows or underflows
MOST_DEGREE = 50  # of a polynomial; PyTorch's formulas lose digits with higher degrees


def _spelled(value: Any) -> list[str]:
    """Return the variables of an argument with their indices, such as `v3[1]`."""
    found: list[str] = []
    mapped(value, lambda v: found.append(v.name) if isinstance(v, Ref) else None)
    return found


def _address(t: Any) -> int:
    """Return a number that is equal for tensors with the same memory."""
    return t.untyped_storage().data_ptr() if hasattr(t, "untyped_storage") else id(t)


def _is_laid_out_otherwise(t: Any) -> bool:
    """Return whether PyTorch chose strides for this result that are not contiguous; rushlight may choose other strides."""
    if not hasattr(t, "is_contiguous"):
        return False
    return not (t if t._base is None else t._base).is_contiguous()


def shares_memory(t: Any) -> bool:
    """Return whether some elements of a tensor have the same memory."""
    if not hasattr(t, "stride") or not t.numel():
        return False
    offsets = sum(
        (np.arange(n) * step).reshape(-1, *(1,) * (t.dim() - 1 - d))
        for d, (n, step) in enumerate(zip(t.shape, t.stride(), strict=True))
    )
    return len(np.unique(offsets)) < t.numel()


def _has_norm_at(x: np.ndarray, given: list[Any]) -> bool:
    """Return whether the norm of a slice is nearly renorm's largest norm, so that rounding decides if it exceeds it."""
    p, dim, most, *_ = [*(v for v in given if isinstance(v, (int, float))), 0, x.ndim, 0]
    if not x.size or not -x.ndim <= dim < x.ndim or p <= 0:
        return False  # there is no norm, or the call raises
    rows = abs(np.moveaxis(x, int(dim), 0).reshape(x.shape[int(dim)], -1)).astype(float)
    with np.errstate(all="ignore"):
        norms = rows.max(axis=1, initial=0) if np.isinf(p) else (rows**p).sum(axis=1) ** (1 / p)
        return bool((abs(norms - most) <= 1e-5 * most).any())


def _has_negative_zero_on_cut(x: np.ndarray) -> bool:
    """Return whether a complex number is real and negative, with an imaginary part of -0.0."""
    if x.dtype.kind != "c":
        return False
    return bool(((x.real < 0) & (x.imag == 0) & np.signbit(x.imag)).any())


def _has_finite_sums(x: np.ndarray) -> bool:
    """Return whether all sums of terms of a Fourier transform are finite, in any order."""
    if x.dtype.kind not in "fc":
        return True
    return bool(2 * abs(x.astype(np.complex128)).sum() < np.finfo(x.dtype).max)


def _is_normal(x: np.ndarray) -> bool:
    """Return whether all numbers are finite, and none is subnormal, so that none has lost digits."""
    if x.dtype.kind not in "fc":
        return True
    size = np.maximum(abs(x.real), abs(x.imag)) if x.dtype.kind == "c" else abs(x)
    return bool((np.isfinite(x) & ((x == 0) | (size >= np.finfo(x.dtype).tiny))).all())


def _is_singular(x: np.ndarray) -> bool:
    """Return whether any of these matrices is singular or nearly so."""
    if x.ndim < 2 or not x.size or not np.isfinite(x).all():
        return False
    singular = np.linalg.svd(x.astype(complex), compute_uv=False)
    return bool((singular[..., -1] < 1e-3 * singular.max(axis=-1, initial=1e-30)).any())


def _hermitian(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the Hermitian matrices with the lower triangle of `x`, and those with the upper triangle."""
    found = []
    for part, rest in ((np.tril(x), np.tril(x, -1)), (np.triu(x), np.triu(x, 1))):
        found.append(part + rest.conj().swapaxes(-1, -2))
    return found[0], found[1]


def _triangles(x: np.ndarray) -> list[np.ndarray]:
    """Return both triangles of square matrices; an empty list for others, which are not factors."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        return []
    ones = np.eye(x.shape[-1], dtype=x.dtype)
    return [np.tril(x), np.triu(x), np.tril(x, -1) + ones]


def _has_equal_pivots(x: np.ndarray) -> bool:
    """Return whether the choice of pivot rows is not unique for any of these matrices."""
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


def _has_free_signs(x: np.ndarray) -> bool:
    """Return whether a column is almost 0 below the diagonal, so that rounding decides if it is reflected."""
    if x.ndim < 2 or not x.size or not np.isfinite(x).all():
        return False
    for matrix in x.reshape(-1, *x.shape[-2:]).astype(complex):
        rounded = False
        for k in range(min(len(matrix) - 1, matrix.shape[1])):
            column = matrix[k:, k].copy()
            below = np.linalg.norm(column[1:])
            # The sign of a pivot that should be 0 also changes the signs of the result.
            if rounded and min(below, abs(column[0])) < 1e-5 * abs(matrix).max():
                return True
            if below == 0:
                continue
            rounded = True
            column[0] += np.linalg.norm(column) * (column[0] / abs(column[0]) if column[0] else 1)
            column /= np.linalg.norm(column)
            matrix[k:] -= 2 * np.outer(column, column.conj() @ matrix[k:])
        # A complex last row is reflected unless its pivot is real.
        if x.dtype.kind == "c" and rounded and matrix.shape[1] >= len(matrix):
            if abs(matrix[-1, len(matrix) - 1].imag) < 1e-5 * abs(matrix).max():
                return True
    return False


def _has_value_at(x: np.ndarray, limit: float) -> bool:
    """Return whether a singular value is close to the limit, or to `limit` times the largest one."""
    if x.ndim < 2 or not x.size or not np.isfinite(x).all():
        return False
    singular = np.linalg.svd(x.astype(complex), compute_uv=False)
    limits = np.stack([np.full_like(singular, limit), limit * singular[..., :1] + 0 * singular])
    return bool((abs(singular - limits) < 1e-3 * singular[..., :1]).any())


def _has_equal_values(x: np.ndarray) -> bool:
    """Return whether two singular values of a matrix are nearly equal, or one is nearly 0."""
    singular = np.linalg.svd(x.astype(complex), compute_uv=False)
    gaps = np.abs(np.diff(singular, axis=-1, append=0))
    return bool((gaps < 1e-3 * singular.max(axis=-1, initial=1e-30)[..., None]).any())


def _overflows(values: list[np.ndarray], dtypes: list[str]) -> bool:
    """Return whether sums of products of the tensors' finite numbers may exceed the range of the smallest dtype."""
    most = min(
        (6e4 if d == "float16" else 3e38 for d in dtypes if d not in ("float64", "complex128")), default=1e308
    )
    logarithms = [0.0]
    for v in values:
        finite = abs(v[np.isfinite(v)]) if v.dtype.kind in "fc" else abs(v.astype(float))
        logarithms.append(
            math.log10(max(1.0, float(finite.max(initial=0)) * max(1, v.shape[-1] if v.ndim else 1)))
        )
    return sum(logarithms) > math.log10(most)


@dataclass
class Draft:
    """A program that is being generated."""

    mode: str
    inputs: list[Input] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)  # the values of inputs and results so far
    made: int = 0  # number of names of inputs that have been used

    def tensors(self) -> dict[str, Any]:
        return {n: t for n, t in self.variables.items() if is_tensor(t)}


class Undefined:
    """Judges the next call of a draft."""

    def __init__(self, machine: Machine, draft: Draft) -> None:
        self.machine, self.draft = machine, draft

    def overlaps(self, call: Call, variables: dict[str, Any]) -> bool:
        """Return whether a call reads memory that it writes, for which only rushlight defines the result."""

        def addresses(value: Any) -> list[int]:
            tensors = [variables[name] for name in _spelled(value) if is_tensor(variables.get(name))]
            return [
                t.untyped_storage().data_ptr() for t in tensors if hasattr(t, "untyped_storage") and t.numel()
            ]

        if call.path == "[]=":
            return bool(set(addresses(call.args[:1])) & set(addresses(call.args[1:])))
        if "out" in call.kwargs:
            outs = addresses(call.kwargs["out"])
            rest = addresses((call.args, {n: v for n, v in call.kwargs.items() if n != "out"}))
            return len(set(outs)) < len(outs) or bool(set(outs) & set(rest))
        if call.writes and self.draft.mode == "jvp":
            # PyTorch writes the tangent of the written tensor before it reads this tangent as an argument.
            return bool(set(addresses(call.args[:1])) & set(addresses((call.args[1:], call.kwargs))))
        return False

    def is_undefined(self, call: Call, variables: dict[str, Any]) -> bool:
        """Return whether one of the libraries does not define the result of a call."""
        given: list[Any] = []
        mapped((call.args, call.kwargs), given.append)
        tensors = [
            variables[v.name] for v in given if isinstance(v, Ref) and is_tensor(variables.get(v.name))
        ]
        checks = (
            self._depends_on_order,
            self._is_rounded_otherwise,
            self._has_no_integers,
            self._sees_memory,
            self._writes_otherwise,
        )
        if any(check(call, tensors, given) for check in checks):
            return True
        if call.op in RECURRENT and self._reads_beyond_weights(call, variables):
            return True
        return self.is_beyond(family(call.op), tensors, given)

    def _depends_on_order(self, call: Call, tensors: list[Any], given: list[Any]) -> bool:
        """Return whether a sequence that must be sorted is not, or several values are written to the same element."""
        if family(call.op) in ("searchsorted", "bucketize") and tensors:
            if self.draft.mode == "vmap":
                return True  # the second example has the elements of the first in another order
            # Either of the two tensors may be the sorted sequence, so both are checked.
            values = [self.machine.record(t).array.astype(float) for t in tensors]
            return any(v.ndim and not np.all(np.diff(v, axis=-1) >= 0) for v in values)
        if call.op in ("setitem", "index_put", "index_put_") and self.draft.mode == "vmap":
            return any(name_of(t.dtype) == "int64" and t.numel() > 1 for t in tensors[1:])
        if family(call.op) == "index_put" and any(
            name_of(t.dtype) in ("bool", "uint8") and not t.shape for t in tensors[1:]
        ):
            return True  # PyTorch takes a mask without dimensions for an integer
        if call.op in ("put", "put_") and len(tensors) > 1:
            index = self.machine.record(tensors[1]).array
            return len(np.unique(index)) < index.size
        return False

    def _is_rounded_otherwise(self, call: Call, tensors: list[Any], given: list[Any]) -> bool:
        """Return whether PyTorch converts a number to another dtype than rushlight."""
        numbers = [v for v in given if isinstance(v, (int, float, complex)) and not isinstance(v, bool)]
        dtypes = {name_of(t.dtype) for t in tensors}
        halves = bool(dtypes & {"float16", "bfloat16"})
        if halves and (dtypes & {*COMPLEX} or any(isinstance(v, complex) for v in numbers)):
            return True  # with complex numbers PyTorch computes in complex32, which rushlight lacks
        if family(call.op) not in COMPARISONS:
            return False
        if halves and any(not t.shape for t in tensors):
            return True  # PyTorch rounds the other argument if it is a number
        # PyTorch converts -1 to 255; rushlight refuses numbers that do not fit.
        return "uint8" in dtypes and any(not isinstance(v, complex) and v < 0 for v in numbers)

    def _has_no_integers(self, call: Call, tensors: list[Any], given: list[Any]) -> bool:
        """Return whether floats are converted to an integer dtype that cannot hold them, or NaN is viewed as bytes."""
        if not tensors:
            return False
        named = [v.name for v in given if isinstance(v, Named)]
        others = [name_of(t.dtype) for t in tensors[1:]]
        if call.op in CONVERSIONS:
            dtype = CONVERSIONS[call.op] or next(iter([*named, *others]), "")
            return self._is_beyond_integers(tensors[0], dtype)
        if family(call.op) == "fill":
            return any(self._is_beyond_integers(t, name_of(tensors[0].dtype)) for t in tensors[1:])
        if call.op in ("view", "view_copy", "view_copy.out") and named:
            return self._has_nan(tensors[0])  # NaN has many bit patterns
        return any(self._is_beyond_integers(t, dtype) for t in tensors for dtype in named)

    def _sees_memory(self, call: Call, tensors: list[Any], given: list[Any]) -> bool:
        """Return whether a view depends on the order of the memory, which may be another in the other library."""
        regroups = family(call.op) in ("view", "view_copy") and any(isinstance(v, Named) for v in given)
        if (call.op in VIEWS_IF_POSSIBLE or regroups) and tensors and _is_laid_out_otherwise(tensors[0]):
            return True
        if call.op in GEOMETRY_IN_PLACE and any(c.op in RETURNED_AS_IT_IS for c in self.draft.calls):
            return True
        if family(call.op).startswith("as_strided"):
            # A later write through the view would change other elements.
            if tensors and _is_laid_out_otherwise(tensors[0]):
                return True
            columns = {c.result for c in self.draft.calls if c.op in ("nonzero", "where")}
            # In PyTorch each of these tensors is a column of one matrix.
            if any(name.partition("[")[0] in columns and "[" in name for name in _spelled(call.args[:1])):
                return True
        # PyTorch's result is a view of all elements: see Generator._index.
        return call.op == "movedim" and self.draft.mode == "jvp" and any(t.dim() == 0 for t in tensors)

    def _writes_otherwise(self, call: Call, tensors: list[Any], given: list[Any]) -> bool:
        """Return whether the values that an in-place call writes, or other variables that it changes, are not defined."""
        if not call.writes or not tensors:
            return False
        written = name_of(tensors[0].dtype)
        if written not in (*FLOATS, *COMPLEX) and any(
            # PyTorch would make an integer tensor that requires grad.
            t.requires_grad or self._is_beyond_integers(t, written)
            for t in tensors[1:]
        ):
            return True
        if call.op == "detach_" and self.draft.mode != "plain":
            # The libraries treat the other views of the memory differently when one of them becomes a leaf.
            if sum(_address(t) == _address(tensors[0]) for t in self.draft.tensors().values()) > 1:
                return True
        if self._is_seen_otherwise(tensors[0]):
            return True
        # Overwritten elements have a gradient of 0, which is multiplied by a derivative at a pole or outside of the domain.
        return self.draft.mode not in ("plain", "vmap") and not self._is_finite(tensors[0])

    def has_nan_bytes(self, variables: dict[str, Any]) -> bool:
        """Return whether a tensor has NaN, and another variable views its memory in another dtype."""
        tensors = [t for t in variables.values() if is_tensor(t) and t.numel()]
        floats = [t for t in tensors if name_of(t.dtype) in (*FLOATS, *COMPLEX)]
        return any(
            _address(t) == _address(other) and t.dtype != other.dtype and self._has_nan(t)
            for t in floats
            for other in tensors
            if other is not t
        )

    def _reads_beyond_weights(self, call: Call, variables: dict[str, Any]) -> bool:
        """Return whether the arguments of a recurrent layer do not fit together; PyTorch then reads other memory or crashes.

        All weights of a layer without projections have the same number of rows, and the number of packed rows is the sum of
        the batch sizes.
        """

        def tensors(value: Any) -> list[Any]:
            return [variables[name] for name in _spelled(value) if is_tensor(variables.get(name))]

        lists = [value for value in call.args if isinstance(value, (list, tuple))]
        if not lists:
            return False
        states = tensors(lists[0]) if len(lists) > 1 else []
        rows = {tuple(t.shape[:1]) for t in tensors(lists[-1])}
        if rows & {(), (0,)} or len(rows) > 1 or len({tuple(t.shape) for t in states}) > 1:
            return True
        given = tensors(call.args[:2])
        packed = (
            len(given) > 1 and isinstance(call.args[2], (Ref, list, tuple)) and call.args[2] is not lists[-1]
        )
        if not packed:
            return False
        data, sizes = given[:2]
        if name_of(sizes.dtype) != "int64" or not data.shape or not sizes.shape or not sizes.numel():
            return True
        return int(self.machine.record(sizes).array.sum()) != data.shape[0]

    def _is_seen_otherwise(self, written: Any) -> bool:
        """Return whether a write changes another variable in PyTorch only.

        In PyTorch, `conj` is a view, and writes to results of `unsafe_chunk` and similar functions are not tracked.
        """

        def marks(t: Any) -> tuple[bool, bool]:
            return (t.is_conj(), t.is_neg()) if hasattr(t, "is_conj") else (False, False)

        shared = {
            n: t for n, t in self.draft.tensors().items() if t.numel() and _address(t) == _address(written)
        }
        parts = {call.result for call in self.draft.calls if call.op.startswith("unsafe_")}
        if parts and not written.numel():
            return True  # without memory, it cannot be determined whether the tensor is such a part
        if any(marks(written)) and not written.numel():
            return True  # without memory, it cannot be determined whether the tensor is a view in rushlight
        shared |= {n: t for n, t in self.draft.tensors().items() if t is written}
        others = [name_of(t.dtype) for t in shared.values() if t.dtype != written.dtype]
        if others and self._has_nan(written):
            return True  # NaN has many bit patterns
        if "bool" in others:
            return True  # bytes other than 0 and 1 are not bools
        return any(n.partition("[")[0] in parts or marks(t) != marks(written) for n, t in shared.items())

    def _is_beyond_integers(self, t: Any, dtype: str) -> bool:
        """Return whether a float tensor has numbers that an integer dtype cannot hold; C++ does not define the result."""
        array = self.machine.record(t).array
        if array.dtype.kind not in "fc" or dtype not in INTEGERS:
            return False
        ends, real = np.iinfo(dtype), array.real.astype(float)
        return not ((real >= ends.min) & (real <= ends.max)).all()

    def _is_finite(self, t: Any) -> bool:
        return bool(np.isfinite(self.machine.record(t).array).all())

    def _has_nan(self, t: Any) -> bool:
        array = self.machine.record(t).array
        return array.dtype.kind in "fc" and bool(np.isnan(array).any())

    def is_beyond(self, op: str, tensors: list[Any], given: list[Any]) -> bool:
        """Return whether tensors are outside the domain of an operator or of PyTorch's implementation."""
        values = [self.machine.record(t).array for t in tensors]
        if self.draft.mode not in ("plain", "vmap") and self._has_no_derivative(op, values):
            return True
        if op in CUT and any(map(_has_negative_zero_on_cut, values[:1])):
            return True
        if op in ("median", "nanmedian") and tensors and hasattr(tensors[0], "stride"):
            # PyTorch returns uninitialised memory.
            return any(
                step == 0 and n > 1 for step, n in zip(tensors[0].stride(), tensors[0].shape, strict=True)
            )
        if op in ("diagonal_scatter", "select_scatter", "slice_scatter") and tensors:
            return shares_memory(tensors[0])  # then elements of PyTorch's result share memory, too
        if op.startswith("renorm") and self.draft.mode not in ("plain", "vmap"):
            return _has_norm_at(values[0], given)
        if op.startswith("fractional_max_pool"):
            return any(np.isnan(v).sum() > 1 for v in values if v.dtype.kind == "f")  # any NaN may be chosen
        poles = {"digamma": 1, "special_digamma": 1, "special_psi": 1, "polygamma": 1}
        if self.draft.mode not in ("plain", "vmap"):  # their derivatives are sums of digamma
            poles |= {"lgamma": 1, "special_gammaln": 1, "mvlgamma": 2, "special_multigammaln": 2}
        if op in poles:
            near = [abs(v - np.round(v * poles[op]) / poles[op]) for v in values if v.dtype.kind == "f"]
            return any(((d > 0) & (d < 1e-4)).any() for d in near)  # PyTorch loses digits near a pole
        if op in ("logit", "special_logit"):
            return any(isinstance(v, (int, float)) and v > 0.5 for v in given)  # the limits cross
        if op in ("sinc", "special_sinc"):
            # sinc of an integer is 0 in rushlight and nearly 0 in PyTorch; a later operator may have a kink or a pole at 0.
            return any(((v == np.round(v)) & (v != 0)).any() for v in values[:1] if v.dtype.kind == "f")
        if op == "corrcoef" and values and values[0].size:
            # Rounding of the mean decides whether the deviation of equal numbers is 0.
            x = np.atleast_1d(values[0]).astype(complex)
            if (x.std(axis=-1) <= 1e-6 * abs(x).max(axis=-1)).any():
                return True
        if op == "cov":
            return len(values) > 1 and values[0].shape[-1:] in ((), (1,))  # PyTorch writes to its input
        if op == "lu_unpack" and len(values) > 1:
            # PyTorch reads beyond pivots of another shape.
            return values[1].shape[:-1] != values[0].shape[:-2] or not values[1].size
        if op == "native_batch_norm":
            # PyTorch reads running statistics even if they are missing, and accepts some inputs without channels.
            return (len(values) < 3 and any(v is False for v in given)) or any(v.ndim < 2 for v in values[:1])
        if op == "multilabel_margin_loss":
            return not all(v.size for v in values)  # PyTorch reads missing elements
        if op in (
            "trapezoid",
            "cumulative_trapezoid",
        ):  # PyTorch adds neighbours without conversion, and does not align the dimensions of coordinates
            if len(values) > 1 and values[1].ndim > values[0].ndim:
                return True
            return any(
                v.dtype.kind in "iu" and (abs(v.astype(float)) > np.iinfo(v.dtype).max / 2).any()
                for v in values
            )
        if op == "histc":
            # PyTorch rounds halves at the edges of bins, and the product of a large number and the number of bins overflows.
            names = [name_of(t.dtype) for t in tensors]
            return "float16" in names or "bfloat16" in names or _overflows([*values, np.array([1e5])], names)
        if op in ("atan2", "margin_ranking_loss", "soft_margin_loss"):
            return any(v.dtype == np.uint8 for v in values)  # PyTorch negates uint8, which wraps around
        if op in ("igamma", "igammac", "special_gammainc", "special_gammaincc"):
            if self.draft.mode not in ("plain", "vmap") and values and not (values[0] > 0).all():
                return True  # the derivative with respect to the first argument is NaN at 0
            return not all((v >= 0).all() for v in values if v.dtype.kind != "c")
        if op in ("signbit", "copysign"):
            return any(map(self._has_nan, tensors))  # the sign of NaN is not determined
        if op.startswith("grid_sampler"):
            return not all(np.isfinite(v).all() for v in values)
        if "_polynomial_" in op:
            # The degree is the second argument. The first argument may be a number.
            first = bool(given) and isinstance(given[0], Ref)
            degrees = [*values[first:], *(np.array(v) for v in given[1:] if isinstance(v, (int, float)))]
            return any(not (np.abs(d) <= MOST_DEGREE).all() for d in degrees)
        if op in SUMS and _overflows(values, [name_of(t.dtype) for t in tensors]):
            return True
        if (
            op == "scaled_dot_product_attention"
            and len(values) > 1
            and all(v.dtype.kind == "f" for v in values[:2])
        ):
            # The difference between two large scores has lost most of its digits.
            largest = [float(abs(v[np.isfinite(v)]).max(initial=0)) for v in values[:2]]
            return largest[0] * largest[1] * (values[0].shape[-1] if values[0].ndim else 1) > 1e3
        if op in RECURRENT | CELLS and any((abs(v.astype(complex)) > MOST_IN_CELLS).any() for v in values):
            return True
        if op in ("matrix_exp", "linalg_matrix_exp") and values and values[0].dtype.kind in "fc":
            # The exponential of large numbers has angles that have lost most of their digits.
            x = values[0]
            return bool(abs(x).max(initial=0) * np.finfo(x.dtype).eps > 1e-3)
        if op in LU and _has_equal_pivots(values[0]):
            return True
        square = bool(values) and values[0].ndim > 1 and values[0].shape[-2] == values[0].shape[-1]
        if op.startswith("linalg_ldl_factor") and square:
            lower = np.tril(values[0])  # the operator does not read elements above the diagonal
            if _is_singular(lower + np.tril(lower, -1).swapaxes(-1, -2)):
                return True
        if op in ("linalg_matrix_power", "matrix_power") and values:
            power = next((v for v in given if isinstance(v, int)), 1)
            if power < 0 and _is_singular(values[0]):
                return True
            if not np.isfinite(values[0]).all():
                return True  # the order of computation decides which products are infinite, and which NaN
            dtypes = [name_of(t.dtype) for t in tensors[:1]]
            return _overflows(values[:1] * min(abs(power), MOST_FACTORS), dtypes)
        if op in ("cholesky", "linalg_cholesky") and square:
            # If an eigenvalue is 0, rounding decides whether the matrix has a factor.
            return any(map(_is_singular, _hermitian(values[0])))
        if op in ("linalg_tensorinv", "linalg_tensorsolve") and values:
            # Check the matrix into which the operator reshapes the tensor.
            side = math.isqrt(values[0].size)
            if not all(map(_is_normal, values)):
                return True
            return side * side == values[0].size and _is_singular(values[0].reshape(side, side))
        if op in ("linalg_matrix_rank", "matrix_rank"):
            # A bool is a limit if it is the second positional argument.
            limits = [v for v in given if isinstance(v, (int, float)) and not isinstance(v, bool)]
            limits += [float(v) for v in given[1:2] if isinstance(v, bool)]
            limits += [float(v) for one in values[1:] for v in one.reshape(-1).real]
            if any(limit <= 0 or _has_value_at(values[0], limit) for limit in limits):
                return True  # rounding decides whether singular values of 0, or at the limit, are counted
        if op in ("qr", "linalg_qr", "geqrf") and any(
            ((v.real == 0) & np.signbit(v.real)).any() for v in values
        ):
            return True  # the sign of a zero changes signs of the result
        if op in ("qr", "linalg_qr", "geqrf") and any(map(_has_free_signs, values)):
            return True
        algebra = op.startswith(("linalg_", "cholesky", "orgqr", "ormqr")) or op in FULL_RANK | APART
        if algebra and op not in ARITHMETIC and not all(map(_is_normal, values)):
            return True
        if op.startswith(("fft_", "stft", "istft")) and not all(map(_has_finite_sums, values)):
            return True  # the order of terms decides which sums are infinite, and which NaN
        if op in ("qr", "linalg_qr", *LU) and values and values[0].ndim > 1:
            # The derivative for a wide matrix requires that the first columns are independent.
            return _is_singular(values[0][..., : values[0].shape[-2]])
        return op in FULL_RANK and bool(values) and _is_singular(values[0])

    def _has_no_derivative(self, op: str, values: list[np.ndarray]) -> bool:
        """Return whether an operator has no unique derivative at these values."""
        if not values:
            return False
        x = values[0]
        if op in ORDERED:
            return len(np.unique(x)) < x.size  # the choice among equal elements is not determined
        if op in ("std", "std_mean"):
            return bool(x.std(axis=None) < 1e-6 * (1 + abs(x).max(initial=0))) if x.size else False
        if op == "corrcoef" and x.ndim == 2 and x.shape[0] > 1 and x.shape[1] > 1:
            with np.errstate(all="ignore"):
                found = abs(np.corrcoef(x)[np.triu_indices(len(x), 1)])
            return not (found < 1 - 1e-5).all()  # rounding decides whether a correlation of 1 is clipped
        if op in ("cholesky", "linalg_cholesky", "linalg_cholesky_ex"):
            return _is_singular(x)  # the formula divides by the diagonal of the factor, which is nearly 0
        if op in TRIANGULAR and len(values) > TRIANGULAR[op]:
            return any(map(_is_singular, _triangles(values[TRIANGULAR[op]])))
        if op in ("logsumexp", "logcumsumexp"):
            return bool((abs(x) > 1e6).any())  # PyTorch's formula uses a difference that has lost its digits
        if op == "ctc_loss" and len(values) == 2:
            return True  # the lengths are lists, so that the next check is not possible
        if op == "ctc_loss" and len(values) == 4 and values[2].shape == values[3].shape:
            # PyTorch returns NaN if the input is too short for the labels and the blanks between equal labels.
            return bool((2 * values[3] - 1 > values[2]).any())
        if op == "hardshrink":
            return bool(np.isnan(x).any())  # PyTorch's vectorised and scalar code give different results
        if op == "copysign":
            return not (np.isfinite(x) & (x != 0)).all()  # PyTorch divides by the element
        if op == "polar":
            return not (np.isfinite(x) & (x > 0)).all()  # PyTorch divides by it, and assumes it positive
        if op in ("det", "linalg_det"):
            return _is_singular(x)  # PyTorch's derivative is 0
        if op in ("linalg_householder_product", "orgqr", "ormqr") and len(values) > 1:
            # PyTorch divides by the part of a reflection that remains without its vector, and loses digits.
            return bool(abs(values[1]).max(initial=0) * (1 + (abs(x) ** 2).sum()) > 1e4)
        if op in ("fmax", "fmin"):
            # At a tie, PyTorch's derivative in forward mode differs from its gradient.
            return len(values) > 1 and bool(np.isin(x, values[1]).any())
        if op in ("logit", "special_logit"):
            return not ((x > 0) & (x < 1)).all()
        if op == "prelu":
            return not x.all()  # at 0, PyTorch's derivative in forward mode differs from its gradient
        if op == "special_log_ndtr":
            return bool((x < -100).any())  # PyTorch loses digits
        if op == "block_diag":
            return any(v.shape == (0,) for v in values)  # PyTorch returns the wrong part of the gradient
        if op not in APART or x.ndim < 2 or not x.size or not np.isfinite(x).all():
            return False
        # The arguments of a norm may select any two dimensions as those of the matrices, so all pairs are checked.
        pairs = itertools.combinations(range(x.ndim), 2) if "norm" in op else [(x.ndim - 2, x.ndim - 1)]
        return any(_has_equal_values(np.moveaxis(x, pair, (-2, -1))) for pair in pairs)
