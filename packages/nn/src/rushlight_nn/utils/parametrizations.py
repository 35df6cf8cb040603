"""Parametrizations of weights: orthogonal matrices, weight normalisation and spectral normalisation."""

from __future__ import annotations

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ..functional import normalize
from ..layers.conv_transpose import _TransposedConvolution
from ..module import Module
from .norms import norm_except, power_iteration, rows_of
from .parametrize import register_parametrization

_MAPS = ("matrix_exp", "cayley", "householder")


def _adjoint(matrix: Tensor) -> Tensor:
    return matrix.mT.conj() if matrix.is_complex() else matrix.mT


def _make_orthogonal(matrix: Tensor) -> Tensor:
    """Return the orthogonal factor of a tall or square matrix, with signs such that an orthogonal matrix is unchanged."""
    factors, tau = core.geqrf(matrix)
    signs = factors.diagonal(dim1=-2, dim2=-1).sgn()
    return core.linalg.householder_product(factors, tau) * signs.unsqueeze(-2)


def _is_orthogonal(matrix: Tensor) -> bool:
    size = matrix.shape[-1]
    identity = core.eye(size, dtype=matrix.dtype, device=matrix.device)
    tolerance = 10 * size * core.finfo(matrix.dtype).eps
    return bool(((_adjoint(matrix) @ matrix - identity).abs() <= tolerance).all())


class _Orthogonal(Module):
    """A module that maps a matrix to one with orthonormal columns, or orthonormal rows if there are fewer rows than columns.

    The result is multiplied by `base`, so that the initial matrix can be any orthogonal matrix.
    """

    base: Any

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError(
                "orthogonal(orthogonal_map): got 'householder' for a complex tensor, needs 'matrix_exp' or 'cayley'"
            )
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        n, k = X.shape[-2:]
        transposed = n < k
        if transposed:
            X, n, k = X.mT, k, n
        if self.orthogonal_map == "householder":
            reflections = X.tril(-1)
            tau = 2.0 / (1.0 + (reflections * reflections).sum(-2))
            Q = core.linalg.householder_product(reflections, tau)
            # `right_inverse` stores signs on the diagonal. Use only their signs, because weight decay changes magnitudes.
            Q = Q * X.detach().diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
        else:
            X = X.tril()
            if n != k:
                X = core.cat([X, X.new_zeros((*X.shape[:-2], n, n - k))], -1)
            skew = X - _adjoint(X)
            if self.orthogonal_map == "matrix_exp":
                Q = core.linalg.matrix_exp(skew)
            else:
                identity = core.eye(n, dtype=X.dtype, device=X.device)
                Q = core.linalg.solve(identity - 0.5 * skew, identity + 0.5 * skew)
            Q = Q if n == k else Q[..., :k]
        if self.use_trivialization and self.base is not None:
            Q = self.base @ Q
        return Q.mT if transposed else Q

    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"orthogonal: the assigned tensor must have shape {tuple(self.shape)}, got {tuple(Q.shape)}"
            )
        given = Q
        n, k = Q.shape[-2:]
        transposed = n < k
        if transposed:
            Q, n, k = Q.mT, k, n
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    f"orthogonal: cannot assign to the weight with orthogonal_map={self.orthogonal_map!r} and"
                    " use_trivialization=False"
                )
            factors, tau = core.geqrf(Q)
            signs = factors.diagonal(dim1=-2, dim2=-1).sgn()
            # If tau is zero, the factor is the identity here but a reflection in `forward`, so flip the sign.
            signs = core.where(tau == 0, -signs, signs)
            matrix = factors.clone()
            matrix.diagonal(dim1=-2, dim2=-1).copy_(signs)
            return matrix.mT if transposed else matrix
        if n == k:
            Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        else:  # add arbitrary columns to get a square matrix
            more = core.randn((*Q.shape[:-2], n, n - k), dtype=Q.dtype, device=Q.device)
            Q = _make_orthogonal(core.cat([Q, more], -1))
        self.base = Q
        # With -1 on the diagonal, every map gives the identity.
        start = core.zeros_like(given)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Parametrize a matrix, or a batch of matrices, so that it stays orthogonal, or unitary if it is complex.

    A matrix with more columns than rows gets orthonormal rows, and any other matrix gets orthonormal columns (Lezcano-Casado
    2019).

    Args:
        module: the module, which is returned.
        name: the name of the parameter or buffer.
        orthogonal_map: "matrix_exp" or "cayley" for the matrix exponential or the Cayley map of a skew-symmetric matrix, or
            "householder" for a product of reflections. The default is "matrix_exp" for square and complex matrices, and
            "householder" for all other matrices.
        use_trivialization: whether to store an orthogonal matrix in a buffer, and to multiply the result of
            the map by it. If True, the parametrized tensor initially equals the orthogonal factor of the
            original tensor, and orthogonal tensors can be assigned to it. If False, both are possible only
            with "householder".

    Shape:
        - Tensor: (*, rows, columns).

    Raises:
        ValueError: the tensor or the map does not exist, the tensor has fewer than two dimensions, or "householder" is
            selected for a complex tensor.

    Example:
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(5, 3))
        >>> torch.allclose(layer.weight @ layer.weight.T, torch.eye(3), atol=1e-4)
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"orthogonal(name): {type(module).__name__} has no parameter or buffer {name!r}")
    if weight.dim() < 2:
        raise ValueError(
            f"orthogonal(name): {name!r} has {weight.dim()} dimensions, needs a matrix or a batch of them"
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f"orthogonal(orthogonal_map): got {orthogonal_map!r}, needs one of {', '.join(_MAPS)}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrize a weight by its norm and its direction: ``w = g · v / |v|`` (Salimans and Kingma 2016).

    The state dictionary contains g as `parametrizations.weight.original0` and v as `parametrizations.weight.original1`. A
    state dictionary with `weight_g` and `weight_v`, from the older `nn.utils.weight_norm`, can also be loaded.

    Args:
        module: the module, which is returned.
        name: the name of the parameter or buffer.
        dim: the tensor has a separate norm for each index of this dimension; None selects one norm for the whole tensor.

    Shape:
        - Tensor: (*); g has the same number of dimensions, all of size 1 except `dim`.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(20, 40))
        >>> [(name, tuple(value.shape)) for name, value in layer.state_dict().items() if "original" in name]
        [('parametrizations.weight.original0', (40, 1)), ('parametrizations.weight.original1', (40, 20))]
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(_RenameOlder(name))
    return module


class _RenameOlder:
    """A pre-hook of `load_state_dict` that renames the keys `name_g` and `name_v` of the older `weight_norm`.

    The hook is an instance of a class, not a closure, so that modules can be copied.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        older = [f"{prefix}{self.name}_{part}" for part in "gv"]
        if all(key in state_dict for key in older):
            for i, key in enumerate(older):
                state_dict[f"{prefix}parametrizations.{self.name}.original{i}"] = state_dict.pop(key)


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(
                f"spectral_norm(dim): got {dim}, out of range for a tensor of {weight.dim()} dimensions"
            )
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm(n_power_iterations): got {n_power_iterations}, needs at least 1")
        self.dim = dim if dim >= 0 else dim + weight.dim()
        self.eps = eps
        if weight.dim() > 1:  # a vector is divided by its norm, without power iteration
            self.n_power_iterations = n_power_iterations
            with core.no_grad():
                matrix = rows_of(weight.detach(), self.dim)
                u, v = (
                    normalize(core.randn(size, dtype=matrix.dtype, device=matrix.device), dim=0, eps=eps)
                    for size in matrix.shape
                )
                u, v = power_iteration(matrix, u, v, 15, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = rows_of(weight, self.dim)
        if not self.training:
            u, v = self._u.clone(), self._v.clone()  # the buffers may change before backward
        else:
            u, v = power_iteration(matrix.detach(), self._u, self._v, self.n_power_iterations, self.eps)
            with core.no_grad():
                self._u.copy_(u)
                self._v.copy_(v)
        return weight / core.vdot(u, core.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value  # an assigned tensor is expected to have spectral norm one


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Parametrize a weight so that its largest singular value is one (Miyato et al. 2018).

    The largest singular value is estimated by power iteration, which continues in every forward pass in training mode.

    Args:
        module: the module, which is returned.
        name: the name of the parameter or buffer.
        n_power_iterations: number of power iterations in each forward pass.
        eps: lower limit of the norms by which vectors are divided.
        dim: the dimension that forms the rows of the matrix; the other dimensions form the columns. The
            default is 1 for transposed convolutions, and 0 for other modules.

    Shape:
        - Tensor: (*), any shape.

    Raises:
        ValueError: the tensor does not exist, or `n_power_iterations` is not positive.
        IndexError: `dim` is out of range.

    Example:
        >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(20, 40))
        >>> round(torch.linalg.matrix_norm(layer.weight, 2).item(), 1)
        1.0
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"spectral_norm(name): {type(module).__name__} has no parameter or buffer {name!r}")
    if dim is None:
        dim = 1 if isinstance(module, _TransposedConvolution) else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
