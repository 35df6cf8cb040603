"""Statistics of repeated timings: medians, spread, bootstrap intervals, geometric means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A figure with the bounds of its 95 % bootstrap confidence interval."""

    value: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Summary:
    """Location and dispersion of one series of timings, in the unit of the samples.

    spread is half the distance between the quartiles over the median: 0.05 means that half of the blocks lie within about 5
    % of the median.
    """

    median: float
    minimum: float
    spread: float
    count: int

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def summarize(samples: Sequence[float] | Samples) -> Summary:
    """Return the median, minimum and relative spread of a non-empty series."""
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0:
        raise ValueError("summarize(samples): no samples")
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    spread = (high - low) / 2 / median if median > 0 else float("nan")
    return Summary(float(median), float(values.min()), float(spread), int(values.size))


def resampled(
    samples: Samples,
    statistic: Callable[[Samples], Samples],
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Samples:
    """Return the bootstrap distribution of a statistic (Efron 1979): shape (resamples,).

    statistic reduces the last axis. Whole samples are drawn with replacement, so that values measured in
    the same round stay together when the samples are ratios.
    """
    picks = rng.integers(0, samples.size, size=(resamples, samples.size))
    return statistic(samples[picks])


def _median(values: Samples) -> Samples:
    return np.asarray(np.median(values, axis=-1))


def interval(distribution: Samples) -> tuple[float, float]:
    """Return the central 95 % of a bootstrap distribution (the percentile method)."""
    low, high = np.quantile(distribution, [0.025, 0.975])
    return float(low), float(high)


def ratios(subject: Sequence[float], peer: Sequence[float]) -> Samples:
    """Return subject / peer for each round. Both come from the same round, so a slowdown of both cancels."""
    top, bottom = np.asarray(subject, dtype=np.float64), np.asarray(peer, dtype=np.float64)
    if top.shape != bottom.shape:
        raise ValueError(
            f"ratios(subject, peer): must have the same number of rounds, got {top.size} and {bottom.size}"
        )
    if not (bottom > 0).all():
        raise ValueError(
            "ratios(subject, peer): the peer's time must be positive in every round\n"
            "hint: use longer blocks, since these are too short for the clock"
        )
    return top / bottom


def median_ratio(paired: Samples, seed: int = 0) -> Estimate:
    """Return the median of the paired ratios with its confidence interval, which is deterministic."""
    distribution = resampled(paired, _median, np.random.default_rng(seed))
    return Estimate(float(np.median(paired)), *interval(distribution))


def geometric_mean(rows: Sequence[Samples], seed: int = 0) -> Estimate:
    """Return the geometric mean over rows of their median ratios; each row's rounds are resampled independently."""
    if not rows:
        raise ValueError("geometric_mean(rows): no rows")
    rng = np.random.default_rng(seed)
    logs = np.array([np.log(resampled(paired, _median, rng)) for paired in rows])
    value = float(np.exp(np.mean([np.log(np.median(paired)) for paired in rows])))
    return Estimate(value, *interval(np.exp(logs.mean(axis=0))))


def verdict(ratio: Estimate, target: float | None) -> str:
    """Return "met" or "not met", followed by a question mark if the target is inside the confidence interval."""
    if target is None:
        return ""
    answer = "met" if ratio.value <= target else "not met"
    return answer + ("?" if ratio.low <= target < ratio.high else "")
