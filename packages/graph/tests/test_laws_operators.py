"""Law: for every operator, a program of one call gives bit for bit the results of the call, also after save and load."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_graph._C import Capture, Program
from rushlight_testing import Sample
from rushlight_testing.operators import (
    TYPED_ERRORS,
    all_samples,
    boxed,
    flat,
    map_tensors,
    operators,
    tensors_in,
)

# Operators that return a Python number that is computed from values.
READ_VALUES = {"allclose", "equal"}
# Operators that change the shape of a tensor in place, which is an error for inputs and constants of a program.
CHANGE_SHAPES = {
    "squeeze_",
    "swapaxes_",
    "swapdims_",
    "t_",
    "transpose_",
    "unsqueeze_",
    "set_",
    "resize_",
    "resize_as_",
}
OPS = [op for op in operators() if op.samples and op.base not in READ_VALUES]


def copied(sample: Sample) -> Sample:
    """Return a copy of the sample with the same strides. A tensor that occurs twice is copied once."""
    copies: dict[int, Any] = {}
    return map_tensors(lambda t: copies.setdefault(id(t), t.clone()), sample)


def distinct(tensors: list[Any]) -> list[Any]:
    return list({id(t): t for t in tensors}.values())


def bits(values: list[Any]) -> list[tuple[Any, ...]]:
    return [(t.dtype, tuple(t.shape), t.contiguous().flatten().view(core.uint8).tolist()) for t in values]


def run(op: Op, sample: Sample) -> Any:
    return boxed(op, copied(sample) if op.base in CHANGE_SHAPES else sample)


def captured(op: Op, sample: Sample) -> Program:
    inputs = distinct(tensors_in(sample))
    region = Capture([(f"x{i}", "constant", t) for i, t in enumerate(inputs)], [])
    region.start()
    try:
        result = run(op, sample)
    finally:
        region.stop()
    outputs = [t for t in flat(result) if isinstance(t, core.Tensor)]
    return region.finish(outputs, {})


def works(op: Op, sample: Sample) -> bool:
    """Return whether the operator accepts the sample by position. Some samples are accepted only by the Python binding."""
    try:
        boxed(op, copied(sample))
    except TYPED_ERRORS:
        return False
    return True


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_programs_do_what_the_call_does(op: Op) -> None:
    samples = [s for s in all_samples(op) if works(op, s) and not any_generator(s)]
    if not samples:
        pytest.skip("no sample is a call by position")
    for sample in samples:
        given = copied(sample)
        before = bits(tensors_in(given))
        core.manual_seed(3)
        program = captured(op, given)
        assert bits(tensors_in(given)) == before, f"{sample.text}: the capture left its inputs changed"
        loaded = Program.from_bytes(program.to_bytes())
        for one in (program, loaded):
            eager, ours = copied(sample), copied(sample)
            core.manual_seed(3)
            expected = [t for t in flat(run(op, eager)) if isinstance(t, core.Tensor)]
            core.manual_seed(3)
            got = one.run(distinct(tensors_in(ours)))
            assert bits(got) == bits(expected), sample.text
            assert bits(tensors_in(ours)) == bits(tensors_in(eager)), f"{sample.text}: what it writes"


def any_generator(sample: Sample) -> bool:
    values = [*sample.args, *sample.kwargs.values()]
    return any(isinstance(v, core.Generator) for v in values)


def test_every_operator_with_samples_is_tried() -> None:
    assert not [
        op.name for op in OPS if not any(works(op, s) and not any_generator(s) for s in all_samples(op))
    ]


# Calls of operators whose entries have no samples, because they draw random numbers, write their argument, or return
# uninitialised memory. The argument `x` has shape (2, 3); `i` is the index [1, 0].
CALLS = {
    "rand": lambda x, i: core.rand(2, 3) + x,
    "rand_like": lambda x, i: core.rand_like(x),
    "randn": lambda x, i: core.randn(2, 3),
    "randn_like": lambda x, i: core.randn_like(x),
    "randint": lambda x, i: core.randint(0, 9, (2, 3)),
    "randint below a number": lambda x, i: core.randint(9, (2, 3)),
    "randint_like": lambda x, i: core.randint_like(x, 9) + core.randint_like(x, -5, 5),
    "randperm": lambda x, i: core.randperm(5),
    "bernoulli": lambda x, i: core.bernoulli(core.sigmoid(x)),
    "bernoulli of a number": lambda x, i: core.bernoulli(x, 0.25),
    "multinomial": lambda x, i: core.multinomial(core.sigmoid(x), 2),
    "poisson": lambda x, i: core.poisson(core.exp(x)),
    "binomial": lambda x, i: core.binomial(core.full((2, 3), 7.0), core.sigmoid(x)),
    "normal": lambda x, i: core.normal(x, core.exp(x)),
    "normal of numbers": lambda x, i: core.normal(x, 2.0) + core.normal(1.0, core.exp(x)),
    "normal of a size": lambda x, i: core.normal(1.0, 2.0, (2, 3)),
    "uniform_": lambda x, i: core.zeros_like(x).uniform_(),
    "normal_": lambda x, i: x.normal_(1.0, 2.0),
    "exponential_": lambda x, i: core.zeros_like(x).exponential_(2.0),
    "geometric_": lambda x, i: core.zeros_like(x).geometric_(0.25),
    "cauchy_": lambda x, i: core.zeros_like(x).cauchy_(),
    "log_normal_": lambda x, i: core.zeros_like(x).log_normal_(),
    "bernoulli_": lambda x, i: core.zeros_like(x).bernoulli_(0.25),
    "bernoulli_ of a tensor": lambda x, i: core.zeros_like(x).bernoulli_(core.sigmoid(x)),
    "random_": lambda x, i: core.zeros_like(i).random_() + core.zeros_like(i).random_(9),
    "random_ from a number": lambda x, i: core.zeros_like(x).random_(-5, 5),
    "random draws that depend on one another": lambda x, i: core.rand(2) + core.rand(2),
    "empty": lambda x, i: core.empty(2, 3).copy_(x),
    "empty_like": lambda x, i: core.empty_like(x).copy_(x),
    "empty_strided": lambda x, i: core.empty_strided((2, 3), (1, 2)).copy_(x),
    "empty_permuted": lambda x, i: core.empty_permuted((2, 3), (1, 0)).copy_(x),
    "new_empty": lambda x, i: x.new_empty((2, 3)).copy_(x),
    "new_empty_strided": lambda x, i: x.new_empty_strided((2, 3), (1, 2)).copy_(x),
    "index_put_": lambda x, i: x.clone().index_put_((i,), core.zeros(3)),
    "assignment to a part": lambda x, i: assigned(x.clone(), i),
    "index_add_": lambda x, i: x.index_add_(0, i, core.ones(2, 3)),
    "index_copy_": lambda x, i: x.index_copy_(0, i, core.ones(2, 3)),
    "index_fill_": lambda x, i: x.index_fill_(1, i, 7.0),
    "index_fill_ of a tensor": lambda x, i: x.index_fill_(1, i, core.tensor(7.0)),
    "index_reduce_": lambda x, i: x.index_reduce_(0, i, core.ones(2, 3), "amax"),
    "put_": lambda x, i: x.put_(i, core.ones(2)),
    "scatter_": lambda x, i: core.zeros(2, 3).scatter_(0, i.expand(3, 2).t(), x),
    "scatter_ of a number": lambda x, i: x.scatter_(0, i.expand(3, 2).t(), 7.0),
    "scatter_ with a reduction": lambda x, i: x.scatter_(
        0, i.expand(3, 2).t(), core.ones(2, 3), reduce="add"
    ),
    "scatter_ of a number with a reduction": lambda x, i: x.scatter_(
        0, i.expand(3, 2).t(), 7.0, reduce="multiply"
    ),
    "scatter_add_": lambda x, i: x.scatter_add_(0, i.expand(3, 2).t(), core.ones(2, 3)),
    "scatter_reduce_": lambda x, i: x.scatter_reduce_(0, i.expand(3, 2).t(), core.ones(2, 3), "amax"),
    "masked_scatter_": lambda x, i: x.masked_scatter_(x > 0, core.ones(6)),
    "float_power_": lambda x, i: x.double().float_power_(2),
    "polygamma_": lambda x, i: core.exp(x).polygamma_(1),
    "as_strided_copy": lambda x, i: core.as_strided_copy(x, (2, 2), (1, 1)),
    "view_as_complex_copy": lambda x, i: core.view_as_complex_copy(x[:, :2].contiguous()),
    "out=": lambda x, i: core.exp(x, out=core.empty(2, 3)),
}


def assigned(x: Any, i: Any) -> Any:
    x[:, 1] = 5.0
    x[i] += 1
    x[x > 1] = -1.0
    return x


def arguments() -> tuple[Any, Any]:
    return core.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, 0.5]]), core.tensor([1, 0])


def captured_call(name: str, x: Any, i: Any) -> Program:
    region = Capture([("x", "constant", x), ("i", "constant", i)], [])
    region.start()
    try:
        result = CALLS[name](x, i)
    finally:
        region.stop()
    return region.finish([result], {})


@pytest.mark.parametrize("name", CALLS)
def test_programs_do_what_python_calls(name: str) -> None:
    x, i = arguments()
    before, state = bits([x, i]), core.get_rng_state()
    program = Program.from_bytes(captured_call(name, x, i).to_bytes())
    assert bits([x, i]) == before
    assert core.get_rng_state().tolist() == state.tolist(), "random numbers of the capture were used up"
    for seed in (1, 2):
        eager, ours = x.clone(), x.clone()
        core.manual_seed(seed)
        expected = CALLS[name](eager, i)
        core.manual_seed(seed)
        assert bits(program.run([ours, i])) == bits([expected])
        assert bits([ours]) == bits([eager])


def test_at_least_95_percent_of_all_entries_are_tried() -> None:
    tried = {op.name for op in OPS}
    for name in CALLS:
        graph = json.loads(captured_call(name, *arguments()).graph())
        tried.update(overload for overload, _ in graph["operators"])
    everything = {op.name for op in operators()}
    missing = sorted(everything - tried)
    assert len(missing) <= 0.05 * len(everything), missing
