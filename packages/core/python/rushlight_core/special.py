"""Special functions with the names of PyTorch and SciPy: `rushlight.special`.

Each function is an operator of core. Integers are converted to the default dtype. For float16 and bfloat16, a
function computes in float32. Functions that need more precision compute in float64 for all dtypes.
"""

from __future__ import annotations

from ._C import digamma as digamma
from ._C import digamma as psi
from ._C import erf as erf
from ._C import erfc as erfc
from ._C import erfinv as erfinv
from ._C import exp2 as exp2
from ._C import expm1 as expm1
from ._C import i0 as i0
from ._C import i0 as modified_bessel_i0
from ._C import igamma as gammainc
from ._C import igammac as gammaincc
from ._C import lgamma as gammaln
from ._C import log1p as log1p
from ._C import log_softmax as log_softmax
from ._C import logit as logit
from ._C import logsumexp as logsumexp
from ._C import mvlgamma as multigammaln
from ._C import polygamma as polygamma
from ._C import round as round
from ._C import sigmoid as expit
from ._C import sinc as sinc
from ._C import softmax as softmax
from ._C import special_airy_ai as airy_ai
from ._C import special_bessel_j0 as bessel_j0
from ._C import special_bessel_j1 as bessel_j1
from ._C import special_bessel_y0 as bessel_y0
from ._C import special_bessel_y1 as bessel_y1
from ._C import special_chebyshev_polynomial_t as chebyshev_polynomial_t
from ._C import special_chebyshev_polynomial_u as chebyshev_polynomial_u
from ._C import special_chebyshev_polynomial_v as chebyshev_polynomial_v
from ._C import special_chebyshev_polynomial_w as chebyshev_polynomial_w
from ._C import special_entr as entr
from ._C import special_erfcx as erfcx
from ._C import special_hermite_polynomial_h as hermite_polynomial_h
from ._C import special_hermite_polynomial_he as hermite_polynomial_he
from ._C import special_i0e as i0e
from ._C import special_i1 as i1
from ._C import special_i1 as modified_bessel_i1
from ._C import special_i1e as i1e
from ._C import special_laguerre_polynomial_l as laguerre_polynomial_l
from ._C import special_legendre_polynomial_p as legendre_polynomial_p
from ._C import special_log_ndtr as log_ndtr
from ._C import special_modified_bessel_k0 as modified_bessel_k0
from ._C import special_modified_bessel_k1 as modified_bessel_k1
from ._C import special_ndtr as ndtr
from ._C import special_ndtri as ndtri
from ._C import special_scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from ._C import special_scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from ._C import special_shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t
from ._C import special_shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u
from ._C import special_shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v
from ._C import special_shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w
from ._C import special_spherical_bessel_j0 as spherical_bessel_j0
from ._C import special_xlog1py as xlog1py
from ._C import special_zeta as zeta
from ._C import xlogy as xlogy

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]
