"""rushlight with one mistake of each kind that the fuzzer must find, in rarely used operators."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import *  # noqa: F403


def __getattr__(name: str) -> Any:
    return getattr(rushlight, name)


def plant(name: str, wrong: Any, method: bool = True) -> None:
    """Replace a function and a method by `wrong`, whose first argument is the right function."""
    for namespace in (globals() if hasattr(rushlight, name) else None, rushlight.Tensor if method else None):
        if namespace is None:
            continue
        right = getattr(rushlight if namespace is not rushlight.Tensor else namespace, name)

        def planted(*args: Any, right: Any = right, **kwargs: Any) -> Any:
            return wrong(right, *args, **kwargs)

        if namespace is rushlight.Tensor:
            setattr(namespace, name, planted)
        else:
            namespace[name] = planted


def wrong_sign(right: Any, start: Any, end: Any, weight: Any, **kwargs: Any) -> Any:
    return right(start, end, -weight, **kwargs)


def wrong_dtype(right: Any, *args: Any, **kwargs: Any) -> Any:
    made = right(*args, **kwargs)
    return made if kwargs else made.to(rushlight.float64)


def wrong_alias(right: Any, *args: Any, **kwargs: Any) -> Any:
    return right(*args, **kwargs).clone()


def missed_version(right: Any, x: Any) -> Any:
    """Write to the memory of a tensor that needs no gradient, without a change of its version counter."""
    right(x if x.requires_grad else x.data)
    return x


def swapped_gradient(right: Any, y: Any, x: Any, **kwargs: Any) -> Any:
    """Return the right value, but swap the derivatives of the two arguments."""
    made = right(y, x, **kwargs)
    if kwargs or not (y.dtype == x.dtype == made.dtype):
        return made
    square = x * x + y * y
    slopes = (x / square).detach(), (-y / square).detach()
    return made.detach() + slopes[1] * (y - y.detach()) + slopes[0] * (x - x.detach())


def lost_factor(right: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """Return the right value, but half of the right gradient."""
    made = right(x, y, **kwargs)
    return made if kwargs or not made.requires_grad else (made + made.detach()) / 2


def needless_refusal(right: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    if not x.numel():
        raise RuntimeError("there are no elements")
    return right(x, *args, **kwargs)


def wrong_shape_of_nothing(right: Any, *args: Any, **kwargs: Any) -> Any:
    made = right(*args, **kwargs)
    return made if kwargs or made.numel() else made.unsqueeze(0)


def lost_gradient(right: Any, *args: Any, **kwargs: Any) -> Any:
    return right(*args, **kwargs).detach()


plant("lerp", wrong_sign)
plant("hypot", wrong_dtype)
plant("narrow", wrong_alias)
plant("square_", missed_version)
plant("atan2", swapped_gradient)
plant("xlogy", lost_factor)
plant("logaddexp", lost_gradient)
plant("flip", needless_refusal)
plant("roll", wrong_shape_of_nothing)
