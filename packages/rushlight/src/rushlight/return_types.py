"""The named tuples of operators with several results: `torch.return_types.max` is the type of `torch.max(x, dim)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight_core as core

__all__ = ["all_return_types", "pytree_register_structseq"]

all_return_types: list[Any]

# An operator creates its type at its first call. These functions call each operator with the smallest operand.
_CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "aminmax": lambda vector, matrix: core.aminmax(vector),
    "cummax": lambda vector, matrix: core.cummax(vector, 0),
    "cummin": lambda vector, matrix: core.cummin(vector, 0),
    "frexp": lambda vector, matrix: core.frexp(vector),
    "geqrf": lambda vector, matrix: core.geqrf(matrix),
    "histogram": lambda vector, matrix: core.histogram(vector, 1),
    "histogramdd": lambda vector, matrix: core.histogramdd(matrix, [1]),
    "kthvalue": lambda vector, matrix: core.kthvalue(vector, 1),
    "linalg_cholesky_ex": lambda vector, matrix: core.linalg.cholesky_ex(matrix),
    "linalg_eig": lambda vector, matrix: core.linalg.eig(matrix),
    "linalg_eigh": lambda vector, matrix: core.linalg.eigh(matrix),
    "linalg_inv_ex": lambda vector, matrix: core.linalg.inv_ex(matrix),
    "linalg_ldl_factor": lambda vector, matrix: core.linalg.ldl_factor(matrix),
    "linalg_ldl_factor_ex": lambda vector, matrix: core.linalg.ldl_factor_ex(matrix),
    "linalg_lstsq": lambda vector, matrix: core.linalg.lstsq(matrix, matrix),
    "linalg_lu": lambda vector, matrix: core.linalg.lu(matrix),
    "linalg_lu_factor": lambda vector, matrix: core.linalg.lu_factor(matrix),
    "linalg_lu_factor_ex": lambda vector, matrix: core.linalg.lu_factor_ex(matrix),
    "linalg_qr": lambda vector, matrix: core.linalg.qr(matrix),
    "linalg_slogdet": lambda vector, matrix: core.linalg.slogdet(matrix),
    "linalg_solve_ex": lambda vector, matrix: core.linalg.solve_ex(matrix, matrix),
    "linalg_svd": lambda vector, matrix: core.linalg.svd(matrix),
    "lu_unpack": lambda vector, matrix: core.lu_unpack(*core.linalg.lu_factor(matrix)),
    "max": lambda vector, matrix: core.max(vector, 0),
    "median": lambda vector, matrix: core.median(vector, 0),
    "min": lambda vector, matrix: core.min(vector, 0),
    "mode": lambda vector, matrix: core.mode(vector, 0),
    "nanmedian": lambda vector, matrix: core.nanmedian(vector, 0),
    "qr": lambda vector, matrix: core.qr(matrix),
    "slogdet": lambda vector, matrix: core.slogdet(matrix),
    "sort": lambda vector, matrix: core.sort(vector),
    "svd": lambda vector, matrix: core.svd(matrix),
    "topk": lambda vector, matrix: core.topk(vector, 1),
    "triangular_solve": lambda vector, matrix: core.triangular_solve(matrix, matrix),
}


def pytree_register_structseq(cls: type) -> None:
    """No-op: `utils._pytree` flattens every named tuple of an operator.

    Example:
        >>> torch.return_types.pytree_register_structseq(torch.return_types.max)
    """


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        return [globals().get(each) or __getattr__(each) for each in _CALLS]
    if name not in _CALLS:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}: no operator returns such a named tuple"
        )
    found = globals()[name] = type(_CALLS[name](core.ones(1), core.ones(1, 1)))
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_CALLS})
