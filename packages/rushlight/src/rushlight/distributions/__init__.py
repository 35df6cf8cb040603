"""Probability distributions, implemented in rushlight_nn.distributions. The modules have PyTorch's names."""

import rushlight_nn.distributions as _package
from rushlight_nn.distributions import *  # noqa: F403

__all__ = list(_package.__all__)

_MODULES = (
    "bernoulli",
    "beta",
    "binomial",
    "categorical",
    "cauchy",
    "chi2",
    "constraint_registry",
    "constraints",
    "continuous_bernoulli",
    "dirichlet",
    "distribution",
    "exp_family",
    "exponential",
    "fishersnedecor",
    "gamma",
    "generalized_pareto",
    "geometric",
    "gumbel",
    "half_cauchy",
    "half_normal",
    "independent",
    "inverse_gamma",
    "kl",
    "kumaraswamy",
    "laplace",
    "lkj_cholesky",
    "log_normal",
    "logistic_normal",
    "lowrank_multivariate_normal",
    "mixture_same_family",
    "multinomial",
    "multivariate_normal",
    "negative_binomial",
    "normal",
    "one_hot_categorical",
    "pareto",
    "poisson",
    "relaxed_bernoulli",
    "relaxed_categorical",
    "studentT",
    "transformed_distribution",
    "transforms",
    "uniform",
    "utils",
    "von_mises",
    "weibull",
    "wishart",
)

TYPE_CHECKING = False  # with `__getattr__`, type checkers would accept any name
if TYPE_CHECKING:
    from rushlight.distributions import bernoulli as bernoulli
    from rushlight.distributions import beta as beta
    from rushlight.distributions import binomial as binomial
    from rushlight.distributions import categorical as categorical
    from rushlight.distributions import cauchy as cauchy
    from rushlight.distributions import chi2 as chi2
    from rushlight.distributions import constraint_registry as constraint_registry
    from rushlight.distributions import constraints as constraints
    from rushlight.distributions import continuous_bernoulli as continuous_bernoulli
    from rushlight.distributions import dirichlet as dirichlet
    from rushlight.distributions import distribution as distribution
    from rushlight.distributions import exp_family as exp_family
    from rushlight.distributions import exponential as exponential
    from rushlight.distributions import fishersnedecor as fishersnedecor
    from rushlight.distributions import gamma as gamma
    from rushlight.distributions import generalized_pareto as generalized_pareto
    from rushlight.distributions import geometric as geometric
    from rushlight.distributions import gumbel as gumbel
    from rushlight.distributions import half_cauchy as half_cauchy
    from rushlight.distributions import half_normal as half_normal
    from rushlight.distributions import independent as independent
    from rushlight.distributions import inverse_gamma as inverse_gamma
    from rushlight.distributions import kl as kl
    from rushlight.distributions import kumaraswamy as kumaraswamy
    from rushlight.distributions import laplace as laplace
    from rushlight.distributions import lkj_cholesky as lkj_cholesky
    from rushlight.distributions import log_normal as log_normal
    from rushlight.distributions import logistic_normal as logistic_normal
    from rushlight.distributions import lowrank_multivariate_normal as lowrank_multivariate_normal
    from rushlight.distributions import mixture_same_family as mixture_same_family
    from rushlight.distributions import multinomial as multinomial
    from rushlight.distributions import multivariate_normal as multivariate_normal
    from rushlight.distributions import negative_binomial as negative_binomial
    from rushlight.distributions import normal as normal
    from rushlight.distributions import one_hot_categorical as one_hot_categorical
    from rushlight.distributions import pareto as pareto
    from rushlight.distributions import poisson as poisson
    from rushlight.distributions import relaxed_bernoulli as relaxed_bernoulli
    from rushlight.distributions import relaxed_categorical as relaxed_categorical
    from rushlight.distributions import studentT as studentT
    from rushlight.distributions import transformed_distribution as transformed_distribution
    from rushlight.distributions import transforms as transforms
    from rushlight.distributions import uniform as uniform
    from rushlight.distributions import utils as utils
    from rushlight.distributions import von_mises as von_mises
    from rushlight.distributions import weibull as weibull
    from rushlight.distributions import wishart as wishart
else:

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            from importlib import import_module

            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
