"""Schedules, compared with their formulas."""

from __future__ import annotations

import copy
import math

import pytest

import rushlight_core as core
from rushlight_nn import Parameter, optim
from rushlight_nn.optim import lr_scheduler

EPOCHS = 13


def optimizer(lr=0.8, **options):
    return optim.SGD([Parameter(core.ones(1))], lr=lr, **options)


def rates(make, epochs=EPOCHS, opt=None):
    opt = optimizer() if opt is None else opt
    scheduler = make(opt)
    result = []
    for _ in range(epochs):
        result.append(opt.param_groups[0]["lr"])
        assert scheduler.get_last_lr() == [result[-1]]
        opt.step()
        scheduler.step()
    return result


def cosine(epoch, period, low=0.0):
    return low + (0.8 - low) * (1 + math.cos(math.pi * epoch / period)) / 2


FORMULAS = {
    "lambda": (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (e + 1)), lambda e: 0.8 / (e + 1)),
    "multiplicative": (lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.5), lambda e: 0.8 * 0.5**e),
    "step": (lambda o: lr_scheduler.StepLR(o, 3, 0.5), lambda e: 0.8 * 0.5 ** (e // 3)),
    "multistep": (
        lambda o: lr_scheduler.MultiStepLR(o, [2, 5, 5], 0.5),
        lambda e: 0.8 * 0.5 ** ((e >= 2) + 2 * (e >= 5)),
    ),
    "constant": (lambda o: lr_scheduler.ConstantLR(o, 0.25, 4), lambda e: 0.8 * (0.25 if e < 4 else 1)),
    "linear": (
        lambda o: lr_scheduler.LinearLR(o, 0.5, 1.0, 4),
        lambda e: 0.8 * (0.5 + 0.5 * min(e, 4) / 4),
    ),
    "exponential": (lambda o: lr_scheduler.ExponentialLR(o, 0.9), lambda e: 0.8 * 0.9**e),
    "polynomial": (lambda o: lr_scheduler.PolynomialLR(o, 6, 2.0), lambda e: 0.8 * (1 - min(e, 6) / 6) ** 2),
    "cosine": (lambda o: lr_scheduler.CosineAnnealingLR(o, 5, 0.1), lambda e: cosine(e, 5, 0.1)),
    "restarts": (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2),
        lambda e: cosine(e, 3) if e < 3 else cosine(e - 3, 6) if e < 9 else cosine(e - 9, 12),
    ),
    "sequential": (
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.LinearLR(o, 0.5, 1.0, 4), lr_scheduler.ExponentialLR(o, 0.9)], [4]
        ),
        lambda e: 0.8 * (0.5 + 0.5 * e / 4) if e < 4 else 0.8 * 0.9 ** (e - 4),
    ),
    "chained": (
        lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.ExponentialLR(o, 0.9), lr_scheduler.StepLR(o, 3, 0.5)]
        ),
        lambda e: 0.8 * 0.9**e * 0.5 ** (e // 3),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_schedules(name):
    make, formula = FORMULAS[name]
    assert rates(make) == pytest.approx([formula(e) for e in range(EPOCHS)], rel=1e-9)


@pytest.mark.parametrize("name", FORMULAS)
def test_going_on_from_a_state(name):
    make, formula = FORMULAS[name]
    first = optimizer()
    scheduler = make(first)
    for _ in range(5):
        first.step()
        scheduler.step()
    second = optimizer()
    other = make(second)
    second.load_state_dict(first.state_dict())
    other.load_state_dict(copy.deepcopy(scheduler.state_dict()))
    result = []
    for _ in range(5):
        result.append(second.param_groups[0]["lr"])
        second.step()
        other.step()
    assert result == pytest.approx([formula(e) for e in range(5, 10)], rel=1e-9)


@pytest.mark.parametrize("three_phase", [False, True])
@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_one_cycle(strategy, three_phase):
    opt = optim.Adam([Parameter(core.ones(1))], lr=1.0)
    scheduler = lr_scheduler.OneCycleLR(
        opt, 0.8, total_steps=20, pct_start=0.25, anneal_strategy=strategy, three_phase=three_phase
    )
    lrs, betas = [], []
    for i in range(20):
        lrs.append(opt.param_groups[0]["lr"])
        betas.append(opt.param_groups[0]["betas"])
        opt.step()
        if i < 19:
            scheduler.step()
    low, end = 0.8 / 25, 0.8 / 25 / 1e4
    assert lrs[0] == pytest.approx(low)
    assert lrs[4] == max(lrs) == pytest.approx(0.8)
    assert lrs[-1] == pytest.approx(end)
    assert lrs == sorted(lrs[:5]) + sorted(lrs[5:], reverse=True)
    assert betas[0] == pytest.approx((0.95, 0.999))
    assert betas[4][0] == pytest.approx(0.85)
    assert betas[-1][0] == pytest.approx(0.95)
    if three_phase:
        assert lrs[8] == pytest.approx(low)
    middle = lrs[2]
    part = (1 - math.cos(math.pi / 2)) / 2 if strategy == "cos" else 0.5
    assert middle == pytest.approx(low + (0.8 - low) * part)
    scheduler.step()
    with pytest.raises(ValueError, match="schedule has only 20 steps"):
        scheduler.step()


def test_one_cycle_arguments():
    for options in (
        {},
        {"total_steps": 0},
        {"total_steps": 5, "pct_start": 2.0},
        {"total_steps": 5, "anneal_strategy": "up"},
        {"total_steps": 5, "max_lr": [0.1, 0.2]},
    ):
        with pytest.raises(ValueError, match="OneCycleLR"):
            lr_scheduler.OneCycleLR(optimizer(), **{"max_lr": 1.0, **options})


def test_plateau():
    opt = optimizer()
    scheduler = lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=2, cooldown=1, min_lr=0.15)
    seen = []
    for loss in [5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3]:
        scheduler.step(core.tensor(float(loss)))
        seen.append(opt.param_groups[0]["lr"])
    # two epochs without improvement are tolerated, and the third halves the rate; one epoch of cooldown follows
    assert seen == pytest.approx([0.8] * 4 + [0.4] * 4 + [0.2] * 4 + [0.15] * 3)
    assert scheduler.best == 3.0
    assert scheduler.get_last_lr() == pytest.approx([0.15])


@pytest.mark.parametrize(
    ("mode", "threshold_mode", "value", "better"),
    [
        ("min", "rel", 0.89, True),
        ("min", "rel", 0.91, False),
        ("max", "rel", 1.11, True),
        ("max", "rel", 1.09, False),
        ("min", "abs", 0.89, True),
        ("max", "abs", 1.09, False),
    ],
)
def test_plateau_thresholds(mode, threshold_mode, value, better):
    scheduler = lr_scheduler.ReduceLROnPlateau(
        optimizer(), mode, threshold=0.1, threshold_mode=threshold_mode
    )
    assert scheduler.is_better(value, 1.0) is better


def test_every_group_has_its_rate():
    ps = [Parameter(core.ones(1)) for _ in range(2)]
    opt = optim.SGD([{"params": ps[0], "lr": 0.4}, {"params": ps[1]}], lr=0.8)
    scheduler = lr_scheduler.LambdaLR(opt, [lambda e: 0.5**e, lambda e: 1.0])
    opt.step()
    scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([0.2, 0.8])
    with pytest.raises(ValueError, match="1 values, needs one for each of 2 parameter groups"):
        lr_scheduler.LambdaLR(opt, [lambda e: 1.0])


def test_rates_that_are_tensors_change_in_place():
    rate = core.tensor(0.8, dtype=core.float64)
    opt = optim.SGD([Parameter(core.ones(1))], lr=rate)
    scheduler = lr_scheduler.ExponentialLR(opt, 0.5)
    opt.step()
    scheduler.step()
    assert opt.param_groups[0]["lr"] is rate
    assert float(rate) == pytest.approx(0.4)


def test_limits_that_are_tensors_are_read_once():
    """Later changes of the tensors do not change the schedule."""
    high, low = core.tensor(0.8), core.tensor(0.1)
    one_cycle = lr_scheduler.OneCycleLR(
        optim.SGD([Parameter(core.ones(1))], lr=0.1, momentum=0.9), high, total_steps=10
    )
    cyclic = lr_scheduler.CyclicLR(
        optim.SGD([Parameter(core.ones(1))], lr=0.1, momentum=0.9), low, [high], step_size_up=2
    )
    averaging = optim.swa_utils.SWALR(optim.SGD([Parameter(core.ones(1))], lr=0.1), low)
    high.mul_(0.5)
    low.mul_(0.5)
    assert one_cycle.optimizer.param_groups[0]["max_lr"] == pytest.approx(0.8)
    assert cyclic.max_lrs == pytest.approx([0.8])
    assert cyclic.base_lrs == pytest.approx([0.1])
    assert averaging.optimizer.param_groups[0]["swa_lr"] == pytest.approx(0.1)


def test_stepping_too_early_is_noticed():
    opt = optimizer()
    scheduler = lr_scheduler.StepLR(opt, 3)
    with pytest.warns(UserWarning, match="before the optimizer's first step"):
        scheduler.step()


def test_going_on_from_an_epoch():
    opt = optimizer()
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.StepLR(opt, 3, last_epoch=4)
    opt.param_groups[0]["initial_lr"] = 0.8
    scheduler = lr_scheduler.StepLR(opt, 3, 0.5, last_epoch=2)
    assert scheduler.last_epoch == 3
    opt.step()
    with pytest.warns(DeprecationWarning, match="argument is deprecated"):
        scheduler.step(7)
    assert scheduler.get_last_lr() == pytest.approx([0.2])


def constant_and_exponential(opt):
    return [lr_scheduler.ConstantLR(opt, 0.1, 2), lr_scheduler.ExponentialLR(opt, 0.5)]


COMBINATIONS = {
    "chained": (lambda o: lr_scheduler.ChainedScheduler(constant_and_exponential(o)), [0.1, 0.05, 0.25]),
    "sequential": (lambda o: lr_scheduler.SequentialLR(o, constant_and_exponential(o), [1]), [0.1, 1.0, 0.5]),
}


@pytest.mark.parametrize("name", COMBINATIONS)
def test_combined_schedules_are_parts_of_a_sequence(name):
    make, part = COMBINATIONS[name]

    def first(opt):
        return lr_scheduler.SequentialLR(opt, [make(opt), lr_scheduler.ExponentialLR(opt, 0.5)], [3])

    def second(opt):
        return lr_scheduler.SequentialLR(opt, [lr_scheduler.ExponentialLR(opt, 0.5), make(opt)], [3])

    assert rates(first, 6, optimizer(lr=1.0)) == pytest.approx([*part, 1.0, 0.5, 0.25])
    assert rates(second, 6, optimizer(lr=1.0)) == pytest.approx([1.0, 0.5, 0.25, *part])


def test_a_sequence_begins_with_the_schedule_of_epoch_0():
    def make(opt):
        return lr_scheduler.SequentialLR(opt, constant_and_exponential(opt)[::-1], [0])

    assert rates(make, 4, optimizer(lr=1.0)) == pytest.approx([0.1, 0.1, 1.0, 1.0])


def test_only_schedules_without_a_metric_are_combined():
    def sequential(opt, part):
        return lr_scheduler.SequentialLR(opt, [lr_scheduler.ExponentialLR(opt, 0.5), part], [3])

    def chained(opt, part):
        return lr_scheduler.ChainedScheduler([lr_scheduler.ExponentialLR(opt, 0.5), part])

    for combine in (sequential, chained):
        opt = optimizer()
        with pytest.raises(ValueError, match="entry 1 is a ReduceLROnPlateau"):
            combine(opt, lr_scheduler.ReduceLROnPlateau(opt))
        with pytest.raises(TypeError, match="entry 1 must be a scheduler, got float"):
            combine(opt, 0.5)
    with pytest.raises(TypeError, match="entry 0 must be a scheduler, got float"):
        lr_scheduler.ChainedScheduler([0.5])


def test_linear_schedules_without_epochs_or_to_zero():
    def keeps(opt):
        return lr_scheduler.LinearLR(opt, 0.5, 1.0, total_iters=0)

    def vanishes(opt):
        return lr_scheduler.LinearLR(opt, 0.5, 0.0, total_iters=2)

    assert rates(keeps, 4, optimizer(lr=1.0)) == [0.5] * 4
    assert rates(vanishes, 5, optimizer(lr=1.0)) == pytest.approx([0.5, 0.25, 0.0, 0.0, 0.0])


def test_only_optimizers():
    with pytest.raises(TypeError, match="got str, needs an Optimizer"):
        lr_scheduler.ExponentialLR("adam", 0.9)
    with pytest.raises(TypeError, match="got str, needs an Optimizer"):
        lr_scheduler.ReduceLROnPlateau("adam")
    with pytest.raises(NotImplementedError, match="get_lr"):
        lr_scheduler.LRScheduler(optimizer())
    for call in (
        lambda o: lr_scheduler.LinearLR(o, 0.0),
        lambda o: lr_scheduler.ConstantLR(o, 2.0),
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0),
        lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0),
        lambda o: lr_scheduler.ReduceLROnPlateau(o, mode="best"),
        lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 1)], [1]),
        lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(optimizer(), 1)], o),
    ):
        with pytest.raises(ValueError):
            call(optimizer())


def test_cyclic_heights() -> None:
    one = optimizer()
    scheduler = lr_scheduler.CyclicLR(one, 1.0, 3.0, 2, mode="exp_range", gamma=0.5, cycle_momentum=False)
    rates = []
    for _ in range(5):
        rates.append(one.param_groups[0]["lr"])
        one.step()
        scheduler.step()
    assert rates == [1.0, 1.0 + 0.5, 1.0 + 2 * 0.25, 1.0 + 0.125, 1.0]
    state = scheduler.state_dict()
    other = lr_scheduler.CyclicLR(optimizer(), 1.0, 3.0, 2, mode="exp_range", gamma=0.5, cycle_momentum=False)
    other.load_state_dict(state)
    assert other.get_lr() == scheduler.get_lr()
    for options in ({"mode": "sideways"}, {"step_size_up": 0}, {"base_lr": [1.0, 2.0]}):
        with pytest.raises(ValueError, match="CyclicLR"):
            lr_scheduler.CyclicLR(
                optimizer(), **{"base_lr": 1.0, "max_lr": 2.0, "cycle_momentum": False, **options}
            )


def test_combined_schedules_take_no_epoch():
    opt = optimizer()
    parts = [lr_scheduler.ConstantLR(opt), lr_scheduler.ExponentialLR(opt, 0.9)]
    for scheduler in (lr_scheduler.ChainedScheduler(parts), lr_scheduler.SequentialLR(opt, parts, [2])):
        with pytest.raises(TypeError, match="positional argument"):
            scheduler.step(3)


@pytest.mark.filterwarnings("ignore:LRScheduler.step")
def test_epochs_that_are_named():
    opt = optimizer(lr=1.0)
    average = optim.swa_utils.SWALR(opt, 0.1, anneal_epochs=4, anneal_strategy="linear")
    found = []
    for epoch in (None, 2, 7, 0):
        opt.step()
        average.step() if epoch is None else average.step(epoch)
        found.append((round(average.get_last_lr()[0], 6), average.last_epoch))
    assert found == [(0.775, 1), (0.55, 2), (0.325, 7), (0.1, 0)]

    opt = optimizer(lr=1.0)
    times = lr_scheduler.MultiplicativeLR(opt, lambda epoch: 0.5)
    for epoch in (2, 0):
        opt.step()
        times.step(epoch)
    assert times.get_last_lr() == [0.25]


def rates_of(optimizer, scheduler, epochs, changes=()):
    """Return the rate of each epoch. `changes` maps epochs to rates that the program sets at the end of the epoch."""
    rates = []
    for epoch in range(epochs):
        rates.append(round(optimizer.param_groups[0]["lr"], 6))
        optimizer.step()
        scheduler.step()
        if epoch in dict(changes):
            optimizer.param_groups[0]["lr"] = dict(changes)[epoch]
    return rates


def plain_optimizer():
    return optim.SGD([core.ones(1, requires_grad=True)], lr=0.1)


# The expected rates are those of PyTorch 2.13.
def test_relative_schedules_continue_from_the_current_rate():
    optimizer = plain_optimizer()
    swa = lambda: optim.swa_utils.SWALR(optimizer, 0.05, 2)  # noqa: E731
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, 4)
    scheduler = lr_scheduler.SequentialLR(optimizer, [cosine, swa()], [3])
    assert rates_of(optimizer, scheduler, 6) == [0.1, 0.085355, 0.05, 0.05, 0.05, 0.05]
    optimizer = plain_optimizer()
    halved = lr_scheduler.ExponentialLR(optimizer, 0.5)
    multiplied = lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.9)
    scheduler = lr_scheduler.SequentialLR(optimizer, [halved, multiplied], [3])
    assert rates_of(optimizer, scheduler, 5) == [0.1, 0.05, 0.025, 0.0225, 0.02025]


def test_a_first_schedule_applies_no_factor_when_it_is_created():
    optimizer = plain_optimizer()
    multiplied = lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.9)
    halved = lr_scheduler.ExponentialLR(optimizer, 0.5)
    scheduler = lr_scheduler.SequentialLR(optimizer, [multiplied, halved], [3])
    assert rates_of(optimizer, scheduler, 5) == [0.1, 0.09, 0.081, 0.1, 0.05]


def test_a_cosine_rises_from_the_current_rate():
    """After its minimum, the schedule keeps changes that others have made to the rate."""
    optimizer = plain_optimizer()
    parts = [lr_scheduler.CosineAnnealingLR(optimizer, 2, 0.01), lr_scheduler.ExponentialLR(optimizer, 0.5)]
    chained = lr_scheduler.ChainedScheduler(parts)
    assert rates_of(optimizer, chained, 6) == [0.1, 0.0275, 0.005, 0.025, 0.02, 0.0075]
    optimizer = plain_optimizer()
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, 2, 0.01)
    assert rates_of(optimizer, cosine, 6, {1: 0.05}) == [0.1, 0.055, 0.05, 0.095, 0.18, 0.095]


def test_a_plateau_has_no_initial_rate():
    optimizer = plain_optimizer()
    lr_scheduler.ReduceLROnPlateau(optimizer)
    optimizer.param_groups[0]["lr"] = 0.02
    assert lr_scheduler.StepLR(optimizer, 1, 0.5).base_lrs == [0.02]
