"""`utils.benchmark.Fuzzer`: the drawn values are within their limits, and are determined by the seed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.benchmark import (
    FuzzedParameter,
    FuzzedSparseTensor,
    FuzzedTensor,
    Fuzzer,
    ParameterAlias,
)


def drawn(count: int, *arguments: Any, **options: Any) -> list[Any]:
    state = np.random.RandomState(0)
    parameter = FuzzedParameter("n", *arguments, **options)
    return [parameter.sample(state) for _ in range(count)]


def test_distributions() -> None:
    uniform = Counter(drawn(3000, 1, 3, "uniform"))
    assert set(uniform) == {1, 2, 3}
    assert all(type(value) is int and abs(count - 1000) < 150 for value, count in uniform.items())
    decades = drawn(3000, 1, 9999, "loguniform")
    assert {type(value) for value in decades} == {int}
    assert 1 <= min(decades) <= max(decades) <= 9999
    found = Counter(len(str(value)) for value in decades)
    assert all(abs(found[digits] - 750) < 150 for digits in (1, 2, 3, 4))
    real = drawn(1000, 0.5, 2, "uniform")
    assert 0.5 <= min(real) < 0.6 < 1.9 < max(real) <= 2
    assert min(drawn(100, 0.5, 2.0, "loguniform")) >= 0.5
    choices = Counter(drawn(2000, distribution={"a": 0.9, (1, 2): 0.1}))
    assert set(choices) == {"a", (1, 2)}
    assert abs(choices["a"] - 1800) < 100


@pytest.mark.parametrize(
    "arguments",
    [
        (1, 2, None), (1, 2, "normal"), (None, 2, "uniform"), (3, 2, "uniform"), (0, 2, "loguniform"),
        (1, 2, {1: 1.0}), (None, None, {1: 0.5}), (None, None, {1: 1.5, 2: -0.5}), (None, None, {}),
    ],
)  # fmt: skip
def test_distributions_that_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="FuzzedParameter"):
        FuzzedParameter("n", *arguments)


def fuzzer(seed: int | None = 3, **options: Any) -> Fuzzer:
    sizes = [FuzzedParameter(f"k{i}", 1, 64, "loguniform") for i in range(3)]
    steps = [FuzzedParameter(f"step{i}", distribution={1: 0.5, 2: 0.5}) for i in range(3)]
    dim = FuzzedParameter("dim", distribution={1: 0.2, 2: 0.4, 3: 0.4}, strict=True)
    tensor = FuzzedTensor(
        "x", ("k0", "k1", "k2"), ("step0", "step1", "step2"), dim_parameter="dim", min_elements=4, max_elements=4096,
        max_allocation_bytes=2**15, **options,
    )  # fmt: skip
    return Fuzzer([dim, sizes, steps], [tensor], [lambda k0, **others: k0 != 5], seed)


def test_tensors_within_limits() -> None:
    made = fuzzer()
    assert made.rejection_rate == 0
    taken = list(made.take(100))
    assert 0.2 < made.rejection_rate < 0.9
    layouts = set()
    for tensors, properties, parameters in taken:
        x, of_x = tensors["x"], properties["x"]
        dim = parameters["dim"]
        assert tuple(x.shape) == tuple(parameters[f"k{i}"] for i in range(dim))
        assert of_x["steps"] == tuple(parameters[f"step{i}"] for i in range(dim))
        assert 4 <= x.numel() == of_x["numel"] <= 4096
        assert x.untyped_storage().nbytes() <= 2**15
        assert of_x["is_contiguous"] == x.is_contiguous()
        assert of_x["dtype"] == "torch.float32"
        assert parameters["k0"] != 5
        layouts.add((dim, tuple(of_x["order"])))
    assert {(1, (0,)), (2, (0, 1)), (2, (1, 0)), (3, (0, 1, 2)), (3, (2, 0, 1))} <= layouts
    # A strict parameter keeps its probabilities although many sets with three dimensions are refused.
    assert 25 < sum(parameters["dim"] == 3 for _, _, parameters in taken) < 55


def test_seeds_and_constructors() -> None:
    first, again, other = (list(fuzzer(seed).take(5)) for seed in (3, 3, None))
    for (tensors, _, parameters), (same, _, same_parameters) in zip(first, again, strict=True):
        assert parameters == same_parameters
        assert torch.equal(tensors["x"], same["x"])
    assert [parameters for _, _, parameters in first] != [parameters for _, _, parameters in other]
    ((tensors, _, _),) = fuzzer(dtype=torch.int8).take(1)
    assert tensors["x"].dtype == torch.int8
    assert tensors["x"].min() >= 1
    seen: list[Any] = []

    def make(size: tuple[int, ...], dtype: torch.dtype, **parameters: Any) -> torch.Tensor:
        seen.append(parameters)
        return torch.full(size, 7.0, dtype=dtype)

    ((tensors, _, parameters),) = fuzzer(tensor_constructor=make).take(1)
    assert tensors["x"].unique().tolist() == [7.0]
    assert seen == [parameters]
    always = fuzzer(probability_contiguous=1.0)
    assert all((of["x"]["order"] == np.arange(len(of["x"]["order"]))).all() for _, of, _ in always.take(20))


def test_aliases() -> None:
    n = FuzzedParameter("n", 2, 9, "uniform")
    m = FuzzedParameter("m", distribution={1: 0.5, ParameterAlias("n"): 0.5})
    made = Fuzzer([n, m], [FuzzedTensor("x", ("n",)), FuzzedTensor("y", ("m",))], seed=1)
    found = Counter(parameters["m"] == parameters["n"] for _, _, parameters in made.take(60))
    assert min(found[True], found[False]) > 15
    round_and_round = [FuzzedParameter(a, distribution={ParameterAlias(b): 1.0}) for a, b in ("ab", "ba")]
    with pytest.raises(ValueError, match="a -> b -> a"):
        next(Fuzzer(round_and_round, []).take(1))


def test_sparse_tensors() -> None:
    parameters = [
        FuzzedParameter("n", 4, 20, "uniform"),
        FuzzedParameter("density", distribution={0.1: 0.5, 0.5: 0.5}),
        FuzzedParameter("sparse", distribution={1: 0.5, 2: 0.5}),
        FuzzedParameter("coalesced", distribution={True: 0.5, False: 0.5}),
    ]
    tensor = FuzzedSparseTensor(
        "s", ("n", "n"), density="density", sparse_dim="sparse", coalesced="coalesced", max_elements=256
    )
    kinds = set()
    for tensors, properties, drawn in Fuzzer(parameters, [tensor], seed=0).take(40):
        s, of_s = tensors["s"], properties["s"]
        assert s.layout == torch.sparse_coo
        assert tuple(s.shape) == (drawn["n"], drawn["n"]) == tuple(of_s["shape"])
        assert s.sparse_dim() == drawn["sparse"] == of_s["sparse_dim"]
        assert of_s["is_hybrid"] == (drawn["sparse"] == 1)
        positions = drawn["n"] ** drawn["sparse"]
        assert s._nnz() <= np.ceil(positions * drawn["density"]) <= s._nnz() * 3
        assert s.is_coalesced() == of_s["is_coalesced"] == (drawn["coalesced"] or s._nnz() < 2)
        kinds.add((drawn["sparse"], s.is_coalesced()))
    assert len(kinds) == 4


def test_what_cannot_be_satisfied() -> None:
    n = FuzzedParameter("n", 1, 4, "uniform")
    with pytest.raises(ValueError, match="none of 1000"):
        next(Fuzzer([n], [], [lambda n: n > 4]).take(1))
    with pytest.raises(ValueError, match="these occur twice: n"):
        Fuzzer([n, n], [])
    with pytest.raises(ValueError, match="steps"):
        FuzzedTensor("x", ("n",), (1, 2))
    with pytest.raises(ValueError, match="from 0 to 1"):
        FuzzedTensor("x", ("n",), probability_contiguous=2)
