"""Tools for tests of rushlight and of programs that use it: `assert_close`, `make_tensor`, samples of operators."""

from rushlight_testing.comparison import assert_allclose, assert_close, default_tolerances
from rushlight_testing.creation import make_tensor
from rushlight_testing.samples import Sample, samples_of

__all__ = ["Sample", "assert_allclose", "assert_close", "default_tolerances", "make_tensor", "samples_of"]
