"""Simplified programs have fewer nodes, and the same results, writes and random numbers."""

from __future__ import annotations

import random
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core._control_flow import while_loop
from rushlight_graph._C import Capture, Program

X = core.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
MASK = core.tril(core.ones(3, 3))
WEIGHT = core.arange(9.0).reshape(3, 3)
HALF = core.full((2, 3), 0.5)


def simplified(function: Any, *tensors: Any, state: Any = ()) -> tuple[Program, list[str]]:
    """Return the simplified program, after comparing it with the original program, and its operators."""
    region = Capture([(f"x{i}", "constant", t) for i, t in enumerate(tensors)], list(state))
    region.start()
    try:
        result = function(*tensors)
    finally:
        region.stop()
    before = region.finish(list(result) if isinstance(result, tuple) else [result], {})
    after = Program.from_bytes(before.simplified().to_bytes())
    for _ in range(2):
        given = [t.clone() for t in tensors], [t.clone() for t in tensors]
        core.manual_seed(1)
        wanted, drawn = before.run(given[0]), core.rand(2)
        core.manual_seed(1)
        got = after.run(given[1])
        assert core.equal(core.rand(2), drawn)
        for a, b in zip([*wanted, *given[0]], [*got, *given[1]], strict=True):
            assert a.dtype == b.dtype
            assert core.equal(a, b)
    lines = [line.split(" = ")[1].split("(")[0] for line in after.text().splitlines() if " = " in line]
    return after, [name for name in lines if name not in ("parameter", "buffer", "constant")]


def parts_of(x: Any) -> Any:
    """Return two equal views of equal tensors, the first of which is written."""
    v, w = (x + 1)[:1], (x + 1)[:1]
    v.mul_(2)
    return v, w


def transposed(x: Any) -> Any:
    v, w = (x + 1).t(), (x + 1).t()
    v.mul_(2)
    return v * 1, w.reshape(-1)


def joined(x: Any) -> Any:
    v, w = core.cat([x, x])[:3], core.cat([x, x])[:3]
    v.mul_(2)
    return v, w.reshape(-1)


PROGRAMS = {
    "equal views, one of which is written": (parts_of, None),
    "equal views, one is written and one is reshaped": (
        lambda x: (v := (x + 1)[:1], w := (x + 1)[:1].reshape(-1), v.mul_(2), (v, w))[-1],
        None,
    ),
    "equal views, one is written and one is contiguous": (
        lambda x: (p := parts_of(x), (p[0], p[1].contiguous()))[-1],
        None,
    ),
    "equal transposed tensors, one of which is written": (transposed, None),
    "an equal result that is returned, and a view that is written": (
        lambda x: (a := x + 1, b := x + 1, c := (x + 1)[:1], c.mul_(2), (a, b[:1] * 3, c))[-1],
        None,
    ),
    "equal parts of joined tensors, one of which is written": (joined, None),
    "what nobody uses": (lambda x: (x.exp(), x + 1)[1], ["add"]),
    "a chain that nobody uses": (lambda x: (x.exp().log().sin(), x + 1)[1], ["add"]),
    "an unused part of a list": (lambda x: x.split(1)[0] + 1, ["split", "add"]),
    "a write to a result": (lambda x: (y := x + 1, y.mul_(2))[0], ["add", "mul_"]),
    "a write through a view": (lambda x: (y := x + 1, y[0].mul_(2))[0], ["add", "select", "mul_"]),
    "a write to what nobody uses": (lambda x: ((x + 1).mul_(2), x * 3)[1], ["mul"]),
    "a write to an input": (lambda x: (x.mul_(2), core.ones(2))[1], ["mul_", "ones"]),
    "random numbers that nobody uses": (lambda x: (core.rand(3), x + 1)[1], ["rand", "add"]),
    "one call twice": (lambda x: x.exp() + x.exp(), ["exp", "add"]),
    "two calls twice": (lambda x: x.exp().sum(0) + x.exp().sum(0), ["exp", "sum", "add"]),
    "calls with other numbers": (
        lambda x: (x + 1) * (x + 1.0) * (x + 2),
        ["add", "add", "mul", "add", "mul"],
    ),
    "one call twice, and a write": (lambda x: x.exp() + x.exp().mul_(2), ["exp", "mul", "add"]),
    "one call twice, and a write between": (
        lambda x: x.exp() + x.add_(1).exp(),
        ["exp", "add_", "exp", "add"],
    ),
    "one call as two results": (lambda x: (x.exp(), x.exp()), ["exp", "exp"]),
    "random numbers of a constant": (lambda x: x + core.bernoulli(HALF), ["bernoulli", "add"]),
    "one call as two results, and used": (
        lambda x: (a := x.exp(), b := x.exp(), a + b),
        ["exp", "exp", "add"],
    ),
    "random numbers twice": (lambda x: core.rand(2) + core.rand(2), ["rand", "rand", "add"]),
    "a constant's": (lambda x: x.masked_fill(MASK[:2] == 0, -1.0), ["masked_fill"]),
    "a constant's view": (lambda x: x @ WEIGHT.t(), ["t", "matmul"]),
    "a constant's that is larger": (lambda x: x @ core.outer(WEIGHT[0], WEIGHT[0]), None),
    "a number's": (lambda x: x + core.zeros(3), ["zeros", "add"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_the_same_with_fewer_nodes(name: str) -> None:
    function, wanted = PROGRAMS[name]
    _, found = simplified(function, X.clone())
    assert wanted is None or found == wanted


def test_constants_that_are_not_used_any_more_are_left_out() -> None:
    program, found = simplified(lambda x: x * (MASK * 2).sum(), X)
    assert found == ["mul"]
    ((name, kind, tensor),) = program.constants()
    assert (name, kind, tensor.item()) == ("folded_1", "constant", 12)


def test_state_is_no_constant() -> None:
    count = core.zeros(3)

    def function(x: Any) -> Any:
        before = count * 2
        count.add_(1)
        return x + before

    program, found = simplified(function, X, state=[("count", "buffer", count)])
    assert found == ["mul", "add_", "add"]
    assert [name for name, _, _ in program.constants()] == ["count"]


def test_simplified_sizes_still_change(function_module: Any) -> None:
    from rushlight_graph import Dim, export

    module = function_module(lambda x: x.exp().reshape(-1) + x.exp().reshape(-1) * core.zeros(x.shape[0] * 3))
    program = export(module, (core.ones(4, 3),), dynamic_shapes={"x": {0: Dim("n")}}).simplify()
    assert str(program).count("exp(") == 1
    x = core.randn(9, 3)
    assert core.equal(program.module()(x), module(x))


# --- batch norms --------------------------------------------------------------------------------------------

IMAGES = core.sin(core.arange(2 * 3 * 6 * 5.0)).reshape(2, 3, 6, 5)
FILTERS = core.cos(core.arange(4 * 3 * 3 * 3.0)).reshape(4, 3, 3, 3)
CHANNELS_LAST = FILTERS.permute(0, 2, 3, 1).clone().permute(0, 3, 1, 2)
ONE_CHANNEL = FILTERS[:, :1].clone()
SCALE, SHIFT, MEAN = (
    core.tensor(v) for v in ([1.0, -2.0, 0.5, 3.0], [0.1, 0.2, 0.3, 0.4], [1.0, 2.0, -1.0, 0.0])
)
VARIANCE = core.tensor([0.5, 1.0, 2.0, 4.0])


def normed(x: Any, scale: Any = SCALE, shift: Any = SHIFT, training: bool = False, mean: Any = MEAN) -> Any:
    return core.batch_norm(x, scale, shift, mean, VARIANCE, training, 0.1, 1e-5)


def folded(function: Any, *tensors: Any) -> tuple[list[str], Program, Program]:
    """Return the operators after the folding, and the programs before and after it."""
    region = Capture([(f"x{i}", "constant", t) for i, t in enumerate(tensors)], [])
    region.start()
    try:
        result = function(*tensors)
    finally:
        region.stop()
    before = region.finish(list(result) if isinstance(result, tuple) else [result], {})
    after = Program.from_bytes(before.simplified(True).to_bytes())
    lines = [line.split(" = ")[1].split("(")[0] for line in after.text().splitlines() if " = " in line]
    return [name for name in lines if name != "constant"], before, after


FOLDED = {
    "without a bias": lambda x: normed(core.conv2d(x, FILTERS)).relu_(),
    "with a bias": lambda x: normed(core.conv2d(x, FILTERS, SHIFT, stride=2)).relu_(),
    "without scale and shift": lambda x: normed(core.conv2d(x, FILTERS, padding=1), None, None).relu_(),
    "padding by name": lambda x: normed(core.conv2d(x, FILTERS, padding="same")).relu_(),
    "groups": lambda x: normed(core.conv2d(x[:, :2], ONE_CHANNEL, groups=2)).relu_(),
    "channels last": lambda x: normed(core.conv2d(x, CHANNELS_LAST)).relu_(),
}


@pytest.mark.parametrize("name", FOLDED)
def test_batch_norms_are_folded_into_convolutions(name: str) -> None:
    names, before, after = folded(FOLDED[name], IMAGES)
    assert "batch_norm" in before.text()
    assert [each for each in names if each.startswith("conv")]
    assert "batch_norm" not in names
    (wanted,), (got,) = before.run([IMAGES]), after.run([IMAGES])
    assert wanted.max() > 1
    assert core.allclose(got, wanted, rtol=1e-5, atol=1e-5)
    assert not any(".weight" in name for name, _, _ in after.constants())


def test_two_batch_norms_are_folded_with_names_of_their_own() -> None:
    weight = FILTERS[:, :1].clone().sum(1, True).expand(4, 4, 3, 3).clone()
    names, before, after = folded(
        lambda x: normed(core.conv2d(normed(core.conv2d(x, FILTERS)), weight)), IMAGES
    )
    assert names == ["conv2d", "conv2d"]
    assert len({name for name, _, _ in after.constants()}) == 4
    assert core.allclose(after.run([IMAGES])[0], before.run([IMAGES])[0], rtol=1e-4, atol=1e-4)


def both(x: Any) -> Any:
    y = core.conv2d(x, FILTERS)
    return normed(y), y


def added(x: Any) -> Any:
    y = core.conv2d(x, FILTERS)
    return normed(y) + y


def written(x: Any) -> Any:
    y = core.conv2d(x, FILTERS)
    y.mul_(2)
    return normed(y)


KEPT = {
    "the result is used again": (added, [IMAGES]),
    "the result is a result of the program": (both, [IMAGES]),
    "the result is written": (written, [IMAGES]),
    "the filters are an input": (lambda x, w: normed(core.conv2d(x, w)), [IMAGES, FILTERS]),
    "the mean is an input": (lambda x, m: normed(core.conv2d(x, FILTERS), mean=m), [IMAGES, MEAN.clone()]),
    "no convolution": (lambda x: normed(x * 2), [core.cat([IMAGES, IMAGES[:, :1]], 1)]),
    "no batch": (
        lambda x: normed(core.conv2d(x[0, :, :6, :6], FILTERS)),
        [core.rand(1, IMAGES.shape[1], 6, 6)],
    ),
    "half precision": (lambda x: normed(core.conv2d(x.half(), FILTERS.half())), [IMAGES]),
}


@pytest.mark.parametrize("name", KEPT)
def test_other_batch_norms_stay(name: str) -> None:
    function, tensors = KEPT[name]
    names, before, after = folded(function, *tensors)
    assert names.count("batch_norm") == 1
    for got, wanted in zip(after.run(tensors), before.run(tensors), strict=True):
        assert core.equal(got, wanted)


def test_batch_norms_in_training_stay() -> None:
    mean, variance = MEAN.clone(), VARIANCE.clone()
    region = Capture(
        [("x", "constant", IMAGES)], [("mean", "buffer", mean), ("variance", "buffer", variance)]
    )
    region.start()
    try:
        result = core.batch_norm(core.conv2d(IMAGES, FILTERS), SCALE, SHIFT, mean, variance, True, 0.1, 1e-5)
    finally:
        region.stop()
    assert "batch_norm" in region.finish([result], {}).simplified(True).text()


def test_batch_norms_are_kept_unless_they_are_to_be_folded() -> None:
    region = Capture([("x", "constant", IMAGES)], [])
    region.start()
    try:
        result = normed(core.conv2d(IMAGES, FILTERS))
    finally:
        region.stop()
    assert "batch_norm" in region.finish([result], {}).simplified().text()


def transposed(x: Any) -> Any:
    """Write to a result of contiguous, which is a copy of this argument and a view of others."""
    y = x.contiguous()
    before = x + 1
    y.add_(1)
    return before, x + 1


VIEWS = {
    "contiguous": transposed,
    "reshape": lambda x: (x + 1, x.reshape(-1).add_(1), x + 1),
    "flatten": lambda x: (x + 1, x.flatten().add_(1), x + 1),
    "to": lambda x: (x + 1, x.to(core.float32).add_(1), x + 1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_writes_to_what_is_a_view_in_some_runs_are_kept(name: str) -> None:
    """The strides of arguments, which decide whether there is a copy, may differ from those of the capture."""
    # If the example is contiguous, contiguous returns it, and later uses cannot be told apart.
    examples = [X.t().contiguous().t()] if name == "contiguous" else [X, X.t().contiguous().t()]
    for example in examples:
        region = Capture([("x", "constant", example)], [])
        region.start()
        try:
            results = list(VIEWS[name](example))
        finally:
            region.stop()
        program = region.finish(results, {}).simplified()
        for strided in (X.clone(), X.t().contiguous().t()):
            expected = strided.clone() if strided.is_contiguous() else strided.t().clone().t()
            wanted = VIEWS[name](expected)
            got = program.run([strided])
            assert core.equal(strided, expected)
            for one, other in zip(got, wanted, strict=True):
                assert core.equal(one, other)


def test_writes_are_kept_if_inputs_share_memory() -> None:
    x, y = X.clone(), X.clone()
    region = Capture([("x", "constant", x), ("y", "constant", y)], [])
    region.start()
    try:
        results = [y + 1, x.add_(1), y + 1]
    finally:
        region.stop()
    shared = core.zeros(3, 3)
    before, _, after = region.finish(results, {}).simplified().run([shared[:2], shared[1:]])
    assert after.sum() - before.sum() == 3


def test_results_keep_separate_memory() -> None:
    region = Capture([("x", "constant", X)], [])
    region.start()
    try:
        results = [X * 2, (X * 2).view(-1), (X * 2).view(-1)]
    finally:
        region.stop()
    results = region.finish(results, {}).simplified().run([X])
    for zeroed, result in enumerate(results, 1):
        result.zero_()
        assert sum(not bool(other.any()) for other in results) == zeroed


def hidden_write(x: Any) -> Any:
    y = x * 2
    y.add_(1)
    return y.view(-1).relu_().view(3, 2).mul_(x.t())


FUNCTIONAL = {
    "calls that become equal": (lambda x: (x + 1).mul_(2) + (x + 1).mul_(2), ["add", "mul_", "add"]),
    "views that become equal": (
        lambda x: (x + 1)[0].mul_(2) + (x + 1)[0].mul_(2), ["add", "select", "mul_", "add"],
    ),
    "constants": (lambda x: x + WEIGHT.exp().mul_(2).sum(0), ["add"]),
    "a filled tensor": (lambda x: core.zeros_like(WEIGHT).fill_(3)[:2] * x, None),
    "an index": (
        lambda x: x + (WEIGHT + 1).index_fill_(0, core.tensor([0]), 5.0)[:2],
        ["slice", "add"],
    ),
    "an argument that is used later": (
        lambda x: (y := x.exp(), (x.exp().mul_(2) + y) * y)[1], ["exp", "mul", "add", "mul"],
    ),
    "views": (hidden_write, ["mul", "add_", "view", "relu_", "view", "t", "mul_"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_writes_that_nothing_else_sees_do_not_prevent_other_passes(name: str) -> None:
    """The calls are replaced by functional calls, and restored where the memory is not used otherwise."""
    function, wanted = FUNCTIONAL[name]
    _, names = simplified(function, X.clone())
    assert wanted is None or names == wanted


def test_writes_in_loops_do_not_prevent_other_passes() -> None:
    def loop(x: Any) -> Any:
        return while_loop(
            lambda y: y.sum() < 100, lambda y: ((y + 1).mul_(2) + (y + 1).mul_(2),), (x.abs(),)
        )[0]

    region = Capture([("x", "constant", X)], [])
    region.start()
    try:
        result = loop(X)
    finally:
        region.stop()
    before = region.finish([result], {})
    after = before.simplified()
    assert before.text().count("mul_(") == 2
    assert after.text().count("mul_(") == 1
    assert core.equal(after.run([X])[0], before.run([X])[0])


def to_input(x: Any) -> Any:
    return x.add_(1)


def to_view_of_input(x: Any) -> Any:
    return x[0].add_(1)


def base_is_returned(x: Any) -> Any:
    y = x + 1
    y[0].mul_(2)
    return y


def both_are_returned(x: Any) -> Any:
    y = x + 1
    v = y.view(-1)
    y.mul_(2)
    return y, v


def other_dtype(x: Any) -> Any:
    return (x + 1).lt_(0)  # lt returns bools


def of_itself(x: Any) -> Any:
    y = core.cat([x, x[:1]])
    return y.mul_(y.t())


def strides_are_used(x: Any) -> Any:
    return (x + 1)[:, :2].mul_(2).as_strided((2,), (3,))


@pytest.mark.parametrize(
    "function",
    [
        to_input,
        to_view_of_input,
        base_is_returned,
        both_are_returned,
        other_dtype,
        of_itself,
        strides_are_used,
    ],
)
def test_other_writes_stay(function: Any) -> None:
    assert "# writes" in simplified(function, X.clone())[0].text()


COUNTING = {
    "nonzero": lambda x: x.sum() / (x > 0).nonzero().shape[0],
    "masked_select": lambda x: x * x.masked_select(x > 0).numel(),
    "an index": lambda x: x + x[x > 0].shape[0],
    "unique": lambda x: x + len(core.unique(x > 0, return_counts=True)[0]),
    "repeat_interleave": lambda x: x + core.repeat_interleave((x[0] > 0).long()).shape[0],
    "a chain": lambda x: x + (x > 0).nonzero().float().sum(1).exp().shape[0],
    "an in-place call": lambda x: x + x[x > 0].add_(1).shape[0],
}


@pytest.mark.parametrize("name", COUNTING)
def test_a_number_that_follows_from_values_is_checked(name: str) -> None:
    """A program contains the number of the capture, so it raises an error for tensors with another number."""
    function = COUNTING[name]
    program = simplified(function, X)[0]
    assert core.equal(program.run([X.flip(0)])[0], function(X.flip(0)))
    for other in (core.ones(2, 3), core.arange(6.0).reshape(2, 3)):
        if core.equal(function(X) - X, function(other) - other):
            continue
        with pytest.raises(RuntimeError, match="when the program was captured"):
            program.run([other])


def test_calls_whose_sizes_follow_from_sizes_are_removed() -> None:
    """The pass keeps a call only if it cannot tell its sizes without values."""

    def function(x: Any) -> Any:
        unused = [
            x.exp(),
            x @ WEIGHT,
            x.sort(1)[0],
            core.cat([x, x]),
            x[0],
            x[core.tensor([0, 1])],
            x.topk(2),
        ]
        unused += [
            core.conv1d(x[None], core.ones(1, 2, 1)),
            x.softmax(0),
            x.cumsum(1),
            core.einsum("ij,ij", x, x),
        ]
        return x + len(unused)

    assert simplified(function, X)[1] == ["add"]


def random_program(chance: random.Random) -> Any:
    """Return a function of two tensors with views, copies and in-place calls, in which equal calls are frequent."""
    steps: list[Any] = [
        lambda v, u: v + 1.5,
        lambda v, u: v.mul_(1.25),
        lambda v, u: v.add_(u) if v.shape == u.shape else v,
        lambda v, u: v.copy_(u) if v.shape == u.shape else v,
        lambda v, u: v.fill_(2),
        lambda v, u: v.t() if v.dim() == 2 else v,
        lambda v, u: v[:1] if v.dim() else v,
        lambda v, u: v[0] if v.dim() > 1 else v,
        lambda v, u: v.reshape(-1),
        lambda v, u: v.contiguous(),
        lambda v, u: core.cat([v, v])[: v.shape[0]] if v.dim() else v,
        lambda v, u: core.stack([v, v])[0],
        lambda v, u: v.unsqueeze(0) if v.dim() < 3 else v,
        lambda v, u: v.detach(),
        lambda v, u: core.where(v > 0, v, v * 2),
        lambda v, u: core.rand(2, 3),
    ]
    count = chance.randint(2, 8)
    chosen = [(chance.choice(steps), chance.random(), chance.random()) for _ in range(count)]
    results = chance.randint(1, 3)

    def function(x: Any, y: Any) -> Any:
        values = [x, y, *((x + 1)[:1] for _ in range(3)), *((x + 1).t() for _ in range(3))]
        for step, first, second in chosen:
            values.append(step(values[int(first * len(values))], values[int(second * len(values))]))
        return tuple(values[-results:])

    return function


def test_random_programs_do_the_same() -> None:
    for seed in range(400):
        simplified(random_program(random.Random(seed)), X.clone(), X + 7)
