"""Find random generators that a dataset holds: every worker would have a copy in the same state."""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Iterator
from typing import Any

import rushlight_core as core

from .dataset import _draws_random
from .random_streams import imported_numpy

_LIMIT = 10_000


def warn_of_generators(dataset: Any) -> None:
    """Warn if a dataset holds generators, which draw the same numbers in every worker."""
    if not _draws_random(dataset):
        return
    paths = [f"{path} ({type(found).__name__})" for path, found in _find(dataset)]
    if paths:
        warnings.warn(
            f"DataLoader(dataset): each worker has a copy of {', '.join(paths)} and draws the same numbers as "
            "the other workers\n"
            "In __getitem__, use random, numpy.random or the default generator of rushlight, which the loader seeds "
            "for each batch, or create the generator in worker_init_fn from get_worker_info().seed. Set "
            "draws_random = False in a dataset that draws no random numbers.",
            stacklevel=4,
        )


def _find(dataset: Any) -> Iterator[tuple[str, Any]]:
    kinds: tuple[type, ...] = (random.Random, core.Generator)
    # Generators that the loader itself seeds, or that have no state.
    exempt = [random._inst, core.default_generator]
    numpy = imported_numpy()
    if numpy is not None:
        kinds = (*kinds, numpy.random.RandomState, numpy.random.Generator)
        exempt.append(numpy.random.mtrand._rand)
    seen: set[int] = set()
    stack = [("dataset", dataset)]
    while stack and len(seen) < _LIMIT:
        path, obj = stack.pop()
        if id(obj) in seen:
            continue
        seen.add(id(obj))
        # The class is read by type(), because the attribute `__class__` of a proxy is another class.
        kind = type(obj)
        if issubclass(kind, kinds):
            if kind is not random.SystemRandom and not any(obj is one for one in exempt):
                yield path, obj
            continue
        parts: list[tuple[str, Any]] = []
        if kind is dict:
            parts = [(f"{path}[{key!r}]", value) for key, value in obj.items()]
        elif kind in (list, tuple):
            parts = [(f"{path}[{i}]", value) for i, value in enumerate(obj[:_LIMIT])]
        elif not issubclass(kind, type):
            with contextlib.suppress(Exception):
                parts = [(f"{path}.{name}", value) for name, value in vars(obj).items()]
        stack += reversed(parts)
