"""The statistics, compared with values that can be computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import stats


def test_summary_of_known_series() -> None:
    summary = stats.summarize([5.0, 1.0, 4.0, 2.0, 3.0])
    assert (summary.median, summary.minimum, summary.count) == (3.0, 1.0, 5)
    assert summary.spread == pytest.approx((4.0 - 2.0) / 2 / 3.0)


def test_summary_needs_samples() -> None:
    with pytest.raises(ValueError, match="no samples"):
        stats.summarize([])


def test_median_ignores_interrupted_rounds() -> None:
    # Two of seven rounds are hit on one side only; the middle one is not.
    paired = stats.ratios([2.0, 2.0, 90.0, 2.0, 2.0, 2.0, 2.0], [10.0, 10.0, 10.0, 10.0, 400.0, 10.0, 10.0])
    assert stats.median_ratio(paired).value == pytest.approx(0.2)


def test_paired_ratios_cancel_what_slows_both() -> None:
    drift = np.linspace(1.0, 3.0, 50)
    estimate = stats.median_ratio(stats.ratios(list(30 * drift), list(100 * drift)))
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((0.3, 0.3, 0.3))


def test_ratios_refuse_what_they_cannot_pair() -> None:
    with pytest.raises(ValueError, match="the same number of rounds, got 2 and 3"):
        stats.ratios([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="must be positive"):
        stats.ratios([1.0, 2.0], [1.0, 0.0])


def test_interval_is_reproducible_and_narrows_with_rounds() -> None:
    rng = np.random.default_rng(7)
    few, many = rng.normal(1.0, 0.1, 20), rng.normal(1.0, 0.1, 2000)
    assert stats.median_ratio(few) == stats.median_ratio(few)
    narrow, wide = stats.median_ratio(many), stats.median_ratio(few)
    assert narrow.high - narrow.low < (wide.high - wide.low) / 3


def test_interval_covers_the_true_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    hits = 0
    for seed in range(200):
        estimate = stats.median_ratio(rng.lognormal(0.0, 0.2, 60), seed=seed)
        hits += estimate.low <= 1.0 <= estimate.high
    # 95 % of 200 is 190 with a standard deviation of 3; the percentile method runs a little low.
    assert 178 <= hits <= 200


def test_geometric_mean_of_ratios() -> None:
    rows = [np.full(10, 0.25), np.full(10, 1.0), np.full(10, 0.5)]
    estimate = stats.geometric_mean(rows)
    assert estimate.value == pytest.approx(math.pow(0.125, 1 / 3))
    assert estimate.low == pytest.approx(estimate.high)
    with pytest.raises(ValueError, match="no rows"):
        stats.geometric_mean([])


@pytest.mark.parametrize(
    ("low", "value", "high", "answer"),
    [
        (0.1, 0.2, 0.29, "met"),
        (0.1, 0.2, 0.35, "met?"),
        (0.25, 0.32, 0.35, "not met?"),
        (0.31, 0.32, 0.35, "not met"),
        (0.3, 0.3, 0.3, "met"),
    ],
)
def test_verdict_says_when_it_is_unsure(low: float, value: float, high: float, answer: str) -> None:
    assert stats.verdict(stats.Estimate(value, low, high), 0.3) == answer


def test_no_target_no_verdict() -> None:
    assert stats.verdict(stats.Estimate(1.0, 1.0, 1.0), None) == ""
