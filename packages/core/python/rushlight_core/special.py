"""Special functions: `rushlight.special`, under the names that PyTorch and SciPy give them.

Each is an operator of core. Integers are computed in the default dtype, float16 and bfloat16 as float32, hard functions of
any dtype as float64. Orthogonal polynomials, `airy_ai`, `spherical_bessel_j0` and the modified Bessel functions of the
second kind are not there.
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
from ._C import special_bessel_j0 as bessel_j0
from ._C import special_bessel_j1 as bessel_j1
from ._C import special_bessel_y0 as bessel_y0
from ._C import special_bessel_y1 as bessel_y1
from ._C import special_entr as entr
from ._C import special_erfcx as erfcx
from ._C import special_i0e as i0e
from ._C import special_i1 as i1
from ._C import special_i1 as modified_bessel_i1
from ._C import special_i1e as i1e
from ._C import special_log_ndtr as log_ndtr
from ._C import special_ndtr as ndtr
from ._C import special_ndtri as ndtri
from ._C import special_xlog1py as xlog1py
from ._C import special_zeta as zeta
from ._C import xlogy as xlogy

__all__ = [
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
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
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
    "zeta",
]
