"""Random operators: equal values for equal seeds, and correct moments, ranges and errors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import rushlight_core as core

DRAWS: dict[str, Callable[[], Any]] = {
    "rand": lambda: core.rand(3, 5),
    "randn": lambda: core.randn(3, 5, dtype=core.float64),
    "randint": lambda: core.randint(2, 9, (3, 5)),
    "randperm": lambda: core.randperm(20),
    "bernoulli_": lambda: core.empty(3, 5).bernoulli_(0.4),
    "exponential_": lambda: core.empty(3, 5).exponential_(2.0),
    "geometric_": lambda: core.empty(3, 25).geometric_(0.1),
    "cauchy_": lambda: core.empty(3, 5).cauchy_(),
    "log_normal_": lambda: core.empty(3, 5).log_normal_(),
    "multinomial": lambda: core.multinomial(core.tensor([0.2, 0.3, 0.5]), 8, True),
    "poisson": lambda: core.poisson(core.full((3, 25), 3.5)),
    "dropout": lambda: core.dropout(core.ones(50), 0.5, True),
    "half": lambda: core.rand(7, dtype=core.float16),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_values_and_the_next_call_others(name: str) -> None:
    core.manual_seed(7)
    first, second = DRAWS[name](), DRAWS[name]()
    core.manual_seed(7)
    assert core.equal(DRAWS[name](), first)
    assert core.equal(DRAWS[name](), second)
    assert not core.equal(first, second)


def test_a_generator_of_ones_own_leaves_the_default_one_alone() -> None:
    own = core.Generator()
    own.manual_seed(7)
    core.manual_seed(7)
    expected = core.rand(4)
    core.manual_seed(9)
    state = core.get_rng_state()
    assert core.equal(core.rand(4, generator=own), expected)
    assert core.equal(core.get_rng_state(), state)


def test_a_generator_is_copied_and_pickled_with_its_state() -> None:
    own = core.Generator().manual_seed(7)
    core.rand(3, generator=own)
    copies = [own.clone_state(), copy.deepcopy(own), pickle.loads(pickle.dumps(own))]
    expected = core.rand(4, generator=own)
    for other in copies:
        assert other.initial_seed() == 7
        assert core.equal(core.rand(4, generator=other), expected)


def test_seeds_have_64_bits() -> None:
    own = core.Generator()
    assert own.manual_seed(-1).initial_seed() == 2**64 - 1
    assert own.manual_seed(-(2**63)).initial_seed() == 2**63
    for bad in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="64 bits"):
            own.manual_seed(bad)
        with pytest.raises(ValueError, match="64 bits"):
            core.manual_seed(bad)
    with pytest.raises(TypeError):
        own.manual_seed(3.7)  # type: ignore[arg-type]
    assert own.initial_seed() == 2**63


def test_values_do_not_depend_on_strides_or_threads() -> None:
    core.manual_seed(1)
    dense = core.rand(40, 30)
    core.manual_seed(1)
    assert core.equal(core.empty(30, 40).t().uniform_(), dense)
    threads = core.get_num_threads()
    try:
        core.manual_seed(2)
        many = core.randn(200_000)
        core.set_num_threads(1)
        core.manual_seed(2)
        assert core.equal(core.randn(200_000), many)
    finally:
        core.set_num_threads(threads)


def test_moments() -> None:
    core.manual_seed(3)
    n = 100_000
    uniform, normal, exponential = core.rand(n), core.randn(n), core.empty(n).exponential_(2.0)
    assert abs(uniform.mean().item() - 0.5) < 0.01
    assert abs(uniform.var().item() - 1 / 12) < 0.002
    assert abs(normal.mean().item()) < 0.02
    assert abs(normal.std().item() - 1) < 0.02
    assert abs(exponential.mean().item() - 0.5) < 0.01
    assert abs(core.full((n,), 0.3).bernoulli().mean().item() - 0.3) < 0.01
    drawn = core.multinomial(core.tensor([1.0, 2.0, 0.0, 1.0]), n, True)
    for value, share in enumerate((0.25, 0.5, 0.0, 0.25)):
        assert abs((drawn == value).float().mean().item() - share) < 0.01


def test_distributions_without_moments_or_with_heavy_tails() -> None:
    core.manual_seed(5)
    n = 100_000
    cauchy, positive = core.empty(n).cauchy_(1.0, 2.0), core.empty(n).log_normal_(0.5, 0.25)
    assert abs((cauchy < 1).float().mean().item() - 0.5) < 0.01
    assert abs(((cauchy - 1).abs() < 2).float().mean().item() - 0.5) < 0.01
    assert abs(positive.log().mean().item() - 0.5) < 0.01
    assert abs(positive.log().std().item() - 0.25) < 0.01
    for dtype in (core.float32, core.float64, core.int64, core.uint8):
        trials = core.empty(n, dtype=dtype).geometric_(0.3)
        assert trials.min().item() == 1
        assert abs(trials.double().mean().item() - 1 / 0.3) < 0.05
    assert core.empty(1000, dtype=core.int8).geometric_(1e-6).max().item() == 127


def test_ranges() -> None:
    values = core.randint(-2, 3, (1000,))
    assert values.min().item() == -2
    assert values.max().item() == 2
    assert sorted(core.randperm(50).tolist()) == list(range(50))
    assert core.rand(10_000).max().item() < 1
    whole = core.randint(-(2**63), 2**63 - 1, (100,))
    assert whole.min().item() < 0 < whole.max().item()


def test_multinomial_without_replacement_draws_each_once() -> None:
    rows = core.multinomial(core.rand(20, 6) + 0.1, 6)
    for row in rows.tolist():
        assert sorted(row) == list(range(6))
    assert core.multinomial(core.tensor([0.0, 1.0, 0.0, 2.0]), 2).sort().values.tolist() == [1, 3]


def test_dropout_keeps_the_mean_and_is_the_identity_outside_of_training() -> None:
    x = core.ones(10_000)
    dropped = core.dropout(x, 0.25, True)
    assert abs(dropped.mean().item() - 1) < 0.03
    kept = dropped[dropped != 0]
    assert core.allclose(kept, core.full_like(kept, 4 / 3))
    assert core.dropout(x, 0.5, False) is x
    assert core.dropout(x, 1.0, True).abs().sum().item() == 0


@pytest.mark.parametrize("p", [0.1, 0.001, 0.999])
def test_dropout_drops_with_its_probability(p: float) -> None:
    n = 1 << 24
    core.manual_seed(11)
    dropped = n - core.dropout(core.ones(n), p, True).count_nonzero().item()
    assert abs(dropped - n * p) < 5 * (n * p * (1 - p)) ** 0.5


def test_dropout_is_the_same_for_any_number_of_threads() -> None:
    x, threads = core.ones(300_001), core.get_num_threads()
    results = []
    try:
        for count in (1, 2):
            core.set_num_threads(count)
            core.manual_seed(5)
            results.append(core.dropout(x, 0.3, True))
    finally:
        core.set_num_threads(threads)
    assert core.equal(*results)


def test_on_meta_shapes_only() -> None:
    assert core.rand(3, 4, device="meta").shape == (3, 4)
    assert core.randperm(5, device="meta").device.type == "meta"


def test_fork_rng_leaves_no_trace() -> None:
    core.manual_seed(3)
    wanted = core.rand(4)
    core.manual_seed(3)
    with core.fork_rng():
        core.manual_seed(7)
        core.rand(9)
    assert core.equal(core.rand(4), wanted)
    with core.fork_rng(enabled=False):
        core.manual_seed(3)
    assert core.equal(core.rand(4), wanted)
    with pytest.raises(RuntimeError, match="fork_rng"):
        core.fork_rng(devices=[0])


def test_small_poisson_variables_are_quantiles_of_uniform_values() -> None:
    stats = pytest.importorskip("scipy.stats")
    rates = core.tensor([0.0, 1e-3, 0.5, 3.0, 9.9], dtype=core.float64).repeat(400)
    core.manual_seed(3)
    uniform = core.rand(rates.numel(), dtype=core.float64)
    core.manual_seed(3)
    values = core.poisson(rates)
    assert (values.numpy() == stats.poisson.ppf(uniform.numpy(), rates.numpy()).clip(0)).all()
    for dtype in (core.float16, core.bfloat16, core.float32):
        small = core.tensor([0.0, 2.0, 9.0], dtype=dtype)
        assert core.poisson(small).dtype is dtype


@pytest.mark.parametrize("rate", [10.0, 40.0, 1e3, 1e6, 1e12])
def test_large_poisson_variables(rate: float) -> None:
    np, stats = pytest.importorskip("numpy"), pytest.importorskip("scipy.stats")
    core.manual_seed(3)
    n = 20_000
    values = core.poisson(core.full((n,), rate, dtype=core.float64)).numpy()
    known = stats.poisson(rate)
    drawn, counts = np.unique(values, return_counts=True)
    assert abs(np.cumsum(counts) / n - known.cdf(drawn)).max() * np.sqrt(n) < 1.9
    assert abs(values.mean() - rate) < 4 * np.sqrt(rate / n)
    assert abs(values.var() / rate - 1) < 0.06


def test_poisson_refuses_what_is_no_expected_number() -> None:
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(RuntimeError, match="poisson"):
            core.poisson(core.tensor([1.0, bad]))


@pytest.mark.parametrize("dtype", [core.float16, core.bfloat16, core.float32, core.float64])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (2, 3), (-3, -2), (-1, 0), (1000, 1001)])
def test_uniform_numbers_are_below_the_end(dtype: Any, low: float, high: float) -> None:
    x = core.empty(200_000, dtype=dtype).uniform_(low, high)
    assert x.min() >= low
    assert x.max() < high
    assert abs(x.double().mean() - (low + high) / 2) < 0.01 * (high - low) + core.finfo(dtype).eps * abs(high)


def test_uniform_numbers_of_an_empty_interval() -> None:
    assert core.empty(3, dtype=core.bfloat16).uniform_(2, 2).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (core.float32, -3e38, 3e38),
        (core.float32, float("-inf"), 0),
        (core.float32, 0, float("inf")),
        (core.float32, float("nan"), 1),
        (core.float16, 0, 1e5),
        (core.float16, -65504, 65504),
        (core.float64, -1e308, 1e308),
    ],
)
def test_uniform_numbers_beyond_the_dtype_are_refused(dtype: Any, low: float, high: float) -> None:
    x = core.zeros(3, dtype=dtype)
    with pytest.raises(RuntimeError, match=r"uniform_\(from, to\)"):
        x.uniform_(low, high)
    assert not bool(x.any())


LIMITS = {
    core.bool: (0, 1),
    core.uint8: (0, 255),
    core.int8: (-128, 127),
    core.int16: (-(2**15), 2**15 - 1),
    core.int32: (-(2**31), 2**31 - 1),
    core.float16: (-65504, 65504),
}


@pytest.mark.parametrize("dtype", LIMITS)
def test_random_integers_are_numbers_of_the_dtype(dtype: Any) -> None:
    least, most = LIMITS[dtype]
    assert core.randint(least, most + 1, (5,), dtype=dtype).dtype == dtype
    for low, high in ((least, most + 2), (least - 1, most)):
        with pytest.raises(RuntimeError, match="cannot represent all integers"):
            core.randint(low, high, (5,), dtype=dtype)
        with pytest.raises(RuntimeError, match="cannot represent all integers"):
            core.zeros(5, dtype=dtype).random_(low, high)


@pytest.mark.parametrize(
    ("dtype", "most"), [(core.uint8, 256), (core.int8, 128), (core.float16, 2049), (core.bfloat16, 257)]
)
def test_permutations_are_numbers_of_the_dtype(dtype: Any, most: int) -> None:
    assert core.equal(core.randperm(most, dtype=dtype).long().sort().values, core.arange(most))
    with pytest.raises(RuntimeError, match="represents only integers below"):
        core.randperm(most + 1, dtype=dtype)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (core.bfloat16, 0, 300),
        (core.bfloat16, -300, 0),
        (core.float16, 0, 2052),
        (core.float16, -4099, -4000),
        (core.float16, 0, 65504),
        (core.float32, 2**25, 2**25 + 8),
        (core.float64, 2**54, 2**54 + 64),
    ],
)
def test_rounded_integers_are_in_the_range(dtype: Any, low: int, high: int) -> None:
    x = core.randint(low, high, (50_000,), dtype=dtype).double()
    assert x.min() >= low
    assert x.max() < high
    assert len(x.unique()) > 1
