"""Generators that a dataset uses are found wherever it holds them."""

from __future__ import annotations

import collections
import functools
import random
import types
import warnings

import numpy as np
import pytest

import rushlight_core as core
from rushlight_data import DataLoader, Dataset
from rushlight_data.held_generators import warn_of_generators

helper = types.ModuleType("helper_of_the_user")
helper.rng = np.random.default_rng(0)
RNG = random.Random(0)
DATA_RNG = np.random.default_rng(0)


def uses_global():
    return RNG.random()


def uses_attribute_of_module():
    return helper.rng.random()


class Slotted:
    __slots__ = ("rng",)

    def __init__(self, rng):
        self.rng = rng


class ListWithAttributes(list):
    pass


def made(rng):
    """Return objects that hold a generator, and how the warning names it."""

    def positional(a, b=1, g=rng):
        return g

    def keyword(*, g=rng):
        return g

    with_attributes = ListWithAttributes()
    with_attributes.rng = rng

    class OfClass:
        held = rng

    class OfMethod:
        def draw(self):
            return rng.random()

        @staticmethod
        def static():
            return None

    class OfProperty:
        @property
        def value(self):
            return rng.random()

    def nested():
        return [rng.random() for _ in range(2)]

    return {
        "closure": (lambda: rng.random(), "the variable rng of dataset.what"),
        "nested function": (nested, "the variable rng of dataset.what"),
        "partial": (functools.partial(print, rng), "dataset.what.args[0]"),
        "keyword of a partial": (functools.partial(print, end=rng), "dataset.what.keywords['end']"),
        "bound method": (rng.random, "dataset.what.__self__"),
        "default": (positional, "the default of g of dataset.what"),
        "keyword default": (keyword, "the default of g of dataset.what"),
        "slot": (Slotted(rng), "dataset.what.rng"),
        "class attribute": (OfClass(), "dataset.what.held"),
        "method": (OfMethod(), "the variable rng of dataset.what.draw"),
        "property": (OfProperty(), "the variable rng of dataset.what.value"),
        "deque": (collections.deque([1, rng]), "dataset.what[1]"),
        "set": ({rng}, "an element of dataset.what"),
        "subclass of dict": (collections.OrderedDict(a=rng), "dataset.what['a']"),
        "subclass of list": (with_attributes, "dataset.what.rng"),
        "global": (uses_global, "the variable RNG of dataset.what"),
        "attribute of a module": (uses_attribute_of_module, "the variable helper.rng of dataset.what"),
    }


class Rows(Dataset):
    def __init__(self, what):
        self.rows = [[i] for i in range(20_000)]  # many objects before the generator
        self.what = what
        self.noise = DATA_RNG.random(3)  # workers do not call this method

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return i


@pytest.mark.parametrize("make", [random.Random, np.random.default_rng, np.random.RandomState], ids=str)
@pytest.mark.parametrize("where", made(RNG))
def test_generator_is_found(where, make):
    what, path = made(make(0))[where]
    with pytest.warns(UserWarning, match="draws the same numbers as the other workers") as caught:
        warn_of_generators(Rows(what))
    text = str(caught[0].message)
    assert f"each worker has a copy of {path} (" in text
    assert "DATA_RNG" not in text


def test_generators_that_the_loader_seeds_are_not_found():
    def seeded():
        return random.random(), np.random.rand(), core.rand(3), random.SystemRandom().random()

    for what in (seeded, random.random, np.random.rand, functools.partial(random.choice, [1]), random, np):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_generators(Rows(what))


def test_loader_warns_of_a_closure(processes):
    what, path = made(random.Random(0))["closure"]
    loader = DataLoader(Rows(what), num_workers=2, transport=processes)
    with pytest.warns(UserWarning, match=path):
        iter(loader)
