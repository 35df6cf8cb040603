"""Calls that draw random numbers, by name. Both libraries must draw the same numbers in the stream "torch".

If PyTorch is installed, `python random_stream_cases.py` writes its numbers to reference/random_stream.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "reference" / "random_stream.json"
FLOATING = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "bool")
RECORDED_SIZES = ((0,), (1,), (7,), (16,), (33,))
SIZES = (*RECORDED_SIZES, (15,), (17,), (32,), (1000,), (3, 5), (4, 4, 4))
# On Intel processors, PyTorch's builds with MKL draw these numbers from another generator.
NOT_ON_INTEL = ("exponential", "bernoulli_", "Bernoulli", "dropout", "multinomial", "gumbel", "Exponential")

Cases = dict[str, Callable[[], Any]]


def all_cases(torch: Any) -> Cases:
    """Return the calls of `torch`, which is either library, whose numbers must be equal bit for bit."""
    cases: Cases = {}
    for size in SIZES:
        cases |= floating_cases(torch, size) | integer_cases(torch, size)
    return cases | strided_cases(torch) | other_cases(torch) | initial_parameters(torch)


def recorded_cases(torch: Any) -> Cases:
    """Return the calls whose numbers are recorded."""
    cases: Cases = {}
    for size in RECORDED_SIZES:
        cases |= floating_cases(torch, size) | integer_cases(torch, size)
    return cases | other_cases(torch)


def floating_cases(torch: Any, size: tuple[int, ...]) -> Cases:
    cases: Cases = {}
    for name in FLOATING:
        dtype = getattr(torch, name)

        def empty(dtype: Any = dtype) -> Any:
            return torch.empty(size, dtype=dtype)

        def full(value: float, dtype: Any = dtype) -> Any:
            return torch.full(size, value, dtype=dtype)

        calls: Cases = {
            "rand": lambda dtype=dtype: torch.rand(size, dtype=dtype),
            "randn": lambda dtype=dtype: torch.randn(size, dtype=dtype),
            "rand_like": lambda empty=empty: torch.rand_like(empty()),
            "uniform_": lambda empty=empty: empty().uniform_(-0.3, 0.7),
            "normal_": lambda empty=empty: empty().normal_(0.3, 1.7),
            "normal of tensors": lambda full=full: torch.normal(full(1.0), full(2.0)),
            "exponential_": lambda empty=empty: empty().exponential_(1.3),
            "cauchy_": lambda empty=empty: empty().cauchy_(0.2, 1.3),
            "log_normal_": lambda empty=empty: empty().log_normal_(0.2, 0.3),
            "geometric_": lambda empty=empty: empty().geometric_(0.3),
            "bernoulli_": lambda empty=empty: empty().bernoulli_(0.3),
            "bernoulli": lambda full=full: torch.bernoulli(full(0.4)),
            "bernoulli of tensors": lambda empty=empty, full=full: empty().bernoulli_(full(0.4)),
            "dropout": lambda full=full: torch.nn.functional.dropout(full(1.0), 0.3),
            "random_": lambda empty=empty: empty().random_(),
        }
        cases |= {f"{call} {name} {size}": function for call, function in calls.items()}
    cases[f"randn complex64 {size}"] = lambda: torch.randn(size, dtype=torch.complex64)
    cases[f"rand complex128 {size}"] = lambda: torch.rand(size, dtype=torch.complex128)
    return cases


def integer_cases(torch: Any, size: tuple[int, ...]) -> Cases:
    cases: Cases = {}
    for name in INTEGERS:
        dtype, end = getattr(torch, name), 2 if name == "bool" else 100
        calls: Cases = {
            "random_": lambda dtype=dtype: torch.empty(size, dtype=dtype).random_(),
            "randint": lambda dtype=dtype, end=end: torch.randint(0, end, size, dtype=dtype),
            "random_ to 2": lambda dtype=dtype: torch.empty(size, dtype=dtype).random_(0, 2),
            "bernoulli_": lambda dtype=dtype: torch.empty(size, dtype=dtype).bernoulli_(0.3),
        }
        cases |= {f"{call} {name} {size}": function for call, function in calls.items()}
    return cases


def strided_cases(torch: Any) -> Cases:
    """Return calls for tensors that are not row-major, whose elements are drawn in the order of their memory."""
    cases: Cases = {}
    for name in FLOATING:
        dtype = getattr(torch, name)
        layouts: Cases = {
            "transposed": lambda dtype=dtype: torch.zeros(8, 6, dtype=dtype).t(),
            "with gaps": lambda dtype=dtype: torch.zeros(4, 8, 6, dtype=dtype)[:, ::2],
            "permuted": lambda dtype=dtype: torch.zeros(3, 4, 5, dtype=dtype).permute(1, 2, 0),
            "column": lambda dtype=dtype: torch.zeros(40, 2, dtype=dtype)[:, 0],
            "channels_last": lambda dtype=dtype: torch.zeros(2, 3, 4, 5, dtype=dtype).contiguous(
                memory_format=torch.channels_last
            ),
        }
        for layout, make in layouts.items():
            calls: Cases = {
                "uniform_": lambda make=make: make().uniform_(),
                "normal_": lambda make=make: make().normal_(),
                "exponential_": lambda make=make: make().exponential_(),
                "bernoulli_": lambda make=make: make().bernoulli_(0.4),
                "bernoulli": lambda make=make: torch.bernoulli(make() + 0.4),
                "dropout": lambda make=make: torch.nn.functional.dropout(make() + 1, 0.3),
                "randn_like": lambda make=make: torch.randn_like(make()),
            }
            cases |= {f"{call} {name} {layout}": function for call, function in calls.items()}
    return cases


def own_generator(torch: Any, make: Callable[[Any], Any]) -> list[Any]:
    """Return two orders of a sampler with its own generator, and the numbers that the generator draws afterwards."""
    generator = torch.Generator().manual_seed(7)
    sampler = make(generator)
    orders = [torch.tensor(list(sampler)) for _ in range(2)]
    return [*orders, torch.rand(2, generator=generator)]


def other_cases(torch: Any) -> Cases:
    cases: Cases = {}
    for n in (0, 1, 2, 10, 100):
        cases[f"randperm {n}"] = lambda n=n: torch.randperm(n)
    for low, high in ((0, 2**28 - 1), (0, 2**28), (-5, 2**40), (-(2**63), 2**63 - 1)):
        cases[f"randint {low} {high}"] = lambda low=low, high=high: torch.randint(low, high, (9,))
    cases["random_ of all integers"] = lambda: torch.empty(5, dtype=torch.int64).random_(-(2**63), None)
    for name in FLOATING:
        dtype = getattr(torch, name)
        weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 2.0, 3.0]], dtype=dtype)
        for count in (1, 2, 3):
            cases[f"multinomial {name} {count}"] = lambda w=weights, n=count: torch.multinomial(w, n)
        for count in (1, 2, 30):
            cases[f"multinomial of all {name} {count}"] = lambda w=weights, n=count: torch.multinomial(
                w, n, True
            )
        # In half types, many quotients of a weight and a random number are equal.
        for n, count in ((33, 11), (33, 33), (100, 1), (100, 50), (300, 2), (300, 4), (300, 100)):
            many = torch.tensor([1.0 + i % 4 for i in range(n)], dtype=dtype)
            cases[f"multinomial {name} {count} of {n}"] = lambda w=many, n=count: torch.multinomial(w, n)
    functional = torch.nn.functional
    cases |= {
        "numbers that are kept": lambda: [torch.randn(3), torch.rand(2), torch.randn(2), torch.randn(20)],
        "own generator": lambda: torch.rand(5, generator=torch.Generator().manual_seed(9)),
        "dropout1d": lambda: functional.dropout1d(torch.ones(2, 3, 4), 0.3),
        "dropout2d": lambda: functional.dropout2d(torch.ones(2, 3, 4, 5), 0.3),
        "dropout alpha": lambda: functional.alpha_dropout(torch.ones(2, 3, 4), 0.3, True),
        "dropout in place": lambda: functional.dropout(torch.ones(4, 5), 0.3, inplace=True),
    }
    data, items = torch.utils.data, list(range(10))
    cases |= {
        "RandomSampler": lambda: torch.tensor(list(data.RandomSampler(items))),
        "RandomSampler with replacement": lambda: torch.tensor(list(data.RandomSampler(items, True, 20))),
        "RandomSampler of three passes": lambda: torch.tensor(list(data.RandomSampler(items, False, 25))),
        "RandomSampler with its generator": lambda: own_generator(
            torch, lambda g: data.RandomSampler(items, num_samples=15, generator=g)
        ),
        "RandomSampler with replacement and its generator": lambda: own_generator(
            torch, lambda g: data.RandomSampler(items, True, 40, generator=g)
        ),
        "SubsetRandomSampler": lambda: [
            torch.tensor(list(data.SubsetRandomSampler([3, 1, 4, 15, 9]))) for _ in range(2)
        ],
        "SubsetRandomSampler with its generator": lambda: own_generator(
            torch, lambda g: data.SubsetRandomSampler(items, generator=g)
        ),
        "WeightedRandomSampler": lambda: [
            torch.tensor(list(data.WeightedRandomSampler([0.1, 0.9, 0.4, 0.7, 3.0, 0.6], n, replacement)))
            for n, replacement in ((5, True), (6, False), (1, True))
        ],
        "WeightedRandomSampler with its generator": lambda: own_generator(
            torch, lambda g: data.WeightedRandomSampler([1.0, 2.0, 3.0], 9, generator=g)
        ),
        "DataLoader with a WeightedRandomSampler": lambda: torch.cat(
            [
                batch
                for _ in range(2)
                for batch in data.DataLoader(items, 3, sampler=data.WeightedRandomSampler([1.0, 2.0] * 5, 10))
            ]
        ),
        "DataLoader": lambda: torch.cat(
            [batch for _ in range(2) for batch in data.DataLoader(items, 3, True)]
        ),
        "random_split": lambda: torch.tensor(list(data.random_split(items, [5, 5])[0])),
    }
    for name in ("float32", "float64", "bfloat16"):
        dtype = getattr(torch, name)
        for layout, change in {"plain": lambda x: x, "transposed": lambda x: x.t()}.items():
            cases[f"rrelu {name} {layout}"] = lambda dtype=dtype, change=change: functional.rrelu(
                change(torch.arange(-8, 7).to(dtype).reshape(3, 5) / 2), 0.1, 0.6, True
            )
    cases["rrelu and what follows"] = lambda: [
        functional.rrelu(torch.tensor([-1.0, 0.0, 1.0, float("nan"), -2.0]), training=True),
        torch.nn.RReLU(0.2, 0.2)(torch.full((3,), -1.0)),
        torch.rand(2),
    ]
    init, samples = torch.nn.init, torch.distributions
    for name in (
        "uniform_",
        "normal_",
        "trunc_normal_",
        "xavier_uniform_",
        "xavier_normal_",
        "kaiming_uniform_",
    ):
        for size in ((4, 3), (6, 20), (8, 3, 3, 3)):
            cases[f"init.{name} {size}"] = lambda name=name, size=size: getattr(init, name)(torch.empty(size))
    cases["init.trunc_normal_ of a tail"] = lambda: init.trunc_normal_(torch.empty(30), 0.0, 1.0, 2.5, 3.0)
    cases["init.sparse_"] = lambda: init.sparse_(torch.empty(10, 5), 0.3)
    for name, made in {
        "Normal": lambda: samples.Normal(0.0, 1.0),
        "Uniform": lambda: samples.Uniform(0.0, 1.0),
        "Categorical": lambda: samples.Categorical(torch.tensor([0.2, 0.3, 0.5])),
        "Bernoulli": lambda: samples.Bernoulli(torch.tensor(0.4)),
        "Exponential": lambda: samples.Exponential(torch.tensor(2.0)),
        "Cauchy": lambda: samples.Cauchy(0.0, 1.0),
        "Geometric": lambda: samples.Geometric(torch.tensor(0.3)),
    }.items():
        cases[f"distributions.{name}"] = lambda made=made: made().sample((6,))
    return cases


def initial_parameters(torch: Any) -> Cases:
    nn = torch.nn
    modules: Cases = {
        "Linear": lambda: nn.Linear(7, 5),
        "Conv2d": lambda: nn.Conv2d(4, 8, 3, groups=2),
        "ConvTranspose2d": lambda: nn.ConvTranspose2d(4, 8, 3),
        "Embedding": lambda: nn.Embedding(10, 7, padding_idx=2),
        "EmbeddingBag": lambda: nn.EmbeddingBag(10, 7),
        "LSTM": lambda: nn.LSTM(5, 6, 2, bidirectional=True),
        "GRUCell": lambda: nn.GRUCell(5, 6),
        "MultiheadAttention": lambda: nn.MultiheadAttention(8, 2, kdim=4, vdim=6),
        "Transformer": lambda: nn.Transformer(8, 2, 2, 2, 16),
        "Bilinear": lambda: nn.Bilinear(3, 4, 5),
        "AdaptiveLogSoftmaxWithLoss": lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10]),
    }
    return {f"nn.{name}": lambda make=make: list(make().parameters()) for name, make in modules.items()}


def drawn(torch: Any, call: Callable[[], Any], seed: int) -> list[Any]:
    """Return the numbers of a call, and three numbers drawn after it, as NumPy arrays. Half-precision becomes float32."""
    torch.manual_seed(seed)
    result = call()
    tensors = [*(result if isinstance(result, list) else [result]), torch.rand(3)]
    arrays = []
    for tensor in tensors:
        tensor = tensor.detach()
        if tensor.is_complex():
            tensor = torch.view_as_real(tensor)
        if tensor.dtype in (torch.float16, torch.bfloat16):
            tensor = tensor.float()
        arrays.append(tensor.contiguous().numpy())
    return arrays


if __name__ == "__main__":
    import torch

    values = {
        name: [array.ravel().tolist() for array in drawn(torch, call, 5)]
        for name, call in recorded_cases(torch).items()
    }
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items())
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
