"""A program that imports all names, for type checkers. `nox -s types` checks it with mypy; pytest does not run it."""

# ruff: noqa: F403, F405
from typing import assert_type

from rushlight import *

x = ones(2)
assert_type(x, Tensor)
assert_type(sin(x), Tensor)
assert_type(nn.Linear(2, 2)(x), Tensor)
histogram(x, 2)
unique(x)
gradient(x)
vmap(sin)(x)
no_such_operator(x)  # type: ignore[name-defined]
