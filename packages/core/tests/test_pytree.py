"""Dataclasses as containers of trees."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from rushlight_core import pytree


def batch_class() -> Any:
    @dataclasses.dataclass
    class Batch:
        images: Any
        labels: Any = None
        count: int = 0
        made: int = dataclasses.field(init=False, default=3)

    return Batch


def test_the_fields_of_a_dataclass_are_parts() -> None:
    batch = batch_class()
    assert pytree.tree_leaves(batch(1)) == [batch(1)]
    pytree.register_dataclass(batch)
    value = batch([1, 2], None, 5)
    leaves, spec = pytree.tree_flatten(value)
    assert leaves == [1, 2, 5]
    assert pytree.tree_unflatten([3, 4, 6], spec) == batch([3, 4], None, 6)
    assert pytree.tree_map(lambda x: x + 1, batch(1, 2)) == batch(2, 3, 1)
    paths = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(value)[0]]
    assert paths == [".images[0]", ".images[1]", ".count"]
    assert spec != pytree.tree_structure(batch([1, 2], 0, 5))


def test_fields_may_be_left_out() -> None:
    batch = batch_class()
    pytree.register_dataclass(batch, field_names=["images"], drop_field_names=["labels", "count"])
    assert pytree.tree_map(lambda x: x + 1, batch(1, 2, 7)) == batch(2)


def test_wrong_classes_and_fields_are_refused() -> None:
    for wrong in (int, batch_class()(1)):
        with pytest.raises(TypeError, match="must be a dataclass"):
            pytree.register_dataclass(wrong)
    for options, name in (
        ({"field_names": ["images"]}, "count"),
        ({"field_names": ["images", "labels", "count", "made"]}, "made"),
        ({"drop_field_names": ["other"]}, "other"),
        ({"field_names": ["images", "labels", "count"], "drop_field_names": ["labels"]}, "labels"),
    ):
        with pytest.raises(ValueError, match=f"each field of Batch once; '{name}' is missing"):
            pytree.register_dataclass(batch_class(), **options)  # type: ignore[arg-type]
    batch = batch_class()
    pytree.register_dataclass(batch)
    with pytest.raises(ValueError, match="registered already"):
        pytree.register_dataclass(batch)
