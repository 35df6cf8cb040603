"""What the kits share."""

from __future__ import annotations

from typing import Any


class Contract:
    """Base of the kits. A subclass adds tests, and takes none away: a kit that each implementation could weaken in silence
    would hold none to anything."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__[1:]:
            for name in set(vars(cls)) & set(vars(base)):
                if name.startswith("test") and issubclass(base, Contract):
                    raise TypeError(
                        f"{cls.__name__}.{name}: a test of the kit {base.__name__} cannot be replaced"
                    )
