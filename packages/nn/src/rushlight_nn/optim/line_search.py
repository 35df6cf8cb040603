"""A line search for a step length that satisfies the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable

from rushlight_core import Tensor

Evaluate = Callable[[float], "tuple[float, Tensor]"]
# A step length, and the value, the gradient and the slope along the direction at this length.
Point = tuple[float, float, Tensor, float]


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Return the minimizer within `bounds` of the cubic through two points with given slopes (Nocedal and Wright, 3.59)."""
    (x1, f1, _, g1), (x2, f2, _, g2) = a, b
    low, high = bounds or (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    if x1 <= x2:
        least = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        least = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(least, low), high)


def strong_wolfe(
    evaluate: Evaluate,
    length: float,
    direction: Tensor,
    value: float,
    gradient: Tensor,
    slope: float,
    lower: float = 1e-4,
    flatter: float = 0.9,
    tolerance: float = 1e-9,
    most: int = 25,
) -> tuple[float, Tensor, float, int]:
    """Find a step length that satisfies the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and 3.6).

    The search is along `direction`, and begins at a point with the given `value`, `gradient` and `slope`.

    Args:
        evaluate: a function that returns the value and the gradient at a step length.
        length: the first step length to try.
        lower: the constant of the sufficient decrease condition.
        flatter: the constant of the curvature condition.
        tolerance: the search ends when the length of the bracket times the largest absolute value in `direction` is below
            this number.
        most: the largest number of evaluations after the first one.

    Returns:
        the value and gradient at the step length that was found, this step length, and the number of evaluations.
    """
    size = float(direction.abs().max())
    origin: Point = (0.0, value, gradient.clone(), slope)

    def at(t: float) -> Point:
        found, where = evaluate(t)
        return t, found, where.clone(), float(where.dot(direction))

    def low_enough(point: Point) -> bool:
        return point[1] <= value + lower * point[0] * slope

    previous, point = origin, at(length)
    count, tries = 1, 0
    bracket: list[Point] | None = None
    while tries < most:
        if not low_enough(point) or (tries > 1 and point[1] >= previous[1]):
            bracket = [previous, point]
            break
        if abs(point[3]) <= -flatter * slope:
            return point[1], point[2], point[0], count
        if point[3] >= 0:
            bracket = [previous, point]
            break
        shortest, longest = point[0] + 0.01 * (point[0] - previous[0]), point[0] * 10
        longer = cubic_minimum(previous, point, (shortest, longest))
        previous, point = point, at(longer)
        count += 1
        tries += 1
    if bracket is None:
        bracket = [origin, point]
    bracket.sort(key=lambda p: p[1])  # the end with the smaller value first
    stuck = False
    while tries < most:
        best, other = bracket
        left, right = min(best[0], other[0]), max(best[0], other[0])
        if (right - left) * size < tolerance:
            break
        t = cubic_minimum(best, other)
        # If the minimum is outside the bracket, or near an end twice in a row, use the point a tenth of the bracket away
        # from that end.
        if min(right - t, t - left) / (right - left) < 0.1:
            if stuck or t >= right or t <= left:
                t = (
                    right - 0.1 * (right - left)
                    if abs(t - right) < abs(t - left)
                    else left + 0.1 * (right - left)
                )
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = at(t)
        count += 1
        tries += 1
        if not low_enough(point) or point[1] >= best[1]:
            bracket = [best, point] if best[1] <= point[1] else [point, best]
            continue
        if abs(point[3]) <= -flatter * slope:
            return point[1], point[2], point[0], count
        bracket = [point, best if point[3] * (other[0] - best[0]) >= 0 else other]
    best = bracket[0]
    return best[1], best[2], best[0], count
