"""The base class of the conformance kits."""

from __future__ import annotations

from typing import Any


class Contract:
    """The base class of the conformance kits, which are classes of tests.

    An implementation is tested by a subclass of a kit. The subclass can add tests, but cannot override the tests of the kit,
    so all implementations are tested in the same way.

    Raises:
        TypeError: a subclass defines a test with the same name as a test of the kit.

    Example:
        >>> class Kit(Contract):
        ...     def test_one(self):
        ...         assert 1 + 1 == 2
        >>> class TestMine(Kit):
        ...     def test_one(self):
        ...         pass
        Traceback (most recent call last):
        TypeError: TestMine.test_one: a test of the kit Kit cannot be replaced
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__[1:]:
            for name in set(vars(cls)) & set(vars(base)):
                if name.startswith("test") and issubclass(base, Contract):
                    raise TypeError(
                        f"{cls.__name__}.{name}: a test of the kit {base.__name__} cannot be replaced"
                    )
