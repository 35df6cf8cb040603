"""Random parameters and tensors for measurements of operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

import rushlight
from rushlight import Tensor, dtype

__all__ = ["FuzzedParameter", "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_MOST_TRIES = 1000


class FuzzedParameter:
    """A parameter whose value is drawn at random for each set of tensors.

    Args:
        name: the name by which tensors and constraints refer to the parameter.
        minval, maxval: the bounds, both inclusive. Values are integers if both bounds are integers.
        distribution: "loguniform" or "uniform", which require bounds, or a dictionary from values to their
            probabilities, without bounds.
        strict: whether to keep the value when parameters are drawn again because they violate a constraint or a limit of a
            tensor. If False, the value is also drawn again, so that limits on the sizes of tensors make large values rarer.

    Raises:
        ValueError: the distribution is unknown, bounds are missing or superfluous, or probabilities do not sum to 1.

    Example::

        FuzzedParameter("n", 1, 1024, distribution="loguniform")
        FuzzedParameter("transposed", distribution={True: 0.5, False: 0.5})
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        self._name = name
        self._minval, self._maxval = minval, maxval
        self._distribution = distribution
        self.strict: bool = strict
        if isinstance(distribution, dict):
            if minval is not None or maxval is not None:
                self._refuse("minval and maxval must be None if the distribution is a dictionary")
            probabilities = list(distribution.values())
            if min(probabilities, default=-1.0) < 0 or abs(sum(probabilities) - 1) > 1e-6:
                self._refuse(f"probabilities must not be negative, and must sum to 1, got {probabilities}")
        elif distribution not in ("uniform", "loguniform"):
            self._refuse(f"must be 'uniform', 'loguniform' or a dictionary, got {distribution!r}")
        elif minval is None or maxval is None or not minval <= maxval:
            self._refuse(f"needs minval and maxval, got {minval} and {maxval}")
        elif distribution == "loguniform" and minval <= 0:
            self._refuse(f"minval must be positive for 'loguniform', got {minval}")

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(f"FuzzedParameter({self._name!r}, distribution): {why}")

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    def sample(self, state: np.random.RandomState) -> Any:
        """Draw a value."""
        if isinstance(self._distribution, dict):
            values = list(self._distribution)
            return values[state.choice(len(values), p=list(self._distribution.values()))]
        low, high = self._minval, self._maxval
        assert low is not None
        assert high is not None
        whole = isinstance(low, int) and isinstance(high, int)
        if self._distribution == "uniform":
            return (
                int(state.randint(int(low), int(high) + 1, dtype=np.int64))
                if whole
                else float(state.uniform(low, high))
            )
        drawn = 2 ** state.uniform(math.log2(low), math.log2(high + 1 if whole else high))
        return min(max(int(drawn) if whole else drawn, low), high)


class ParameterAlias:
    """A key of a distribution that stands for the value of another parameter.

    An alias may refer to another alias.

    Example::

        FuzzedParameter("m", distribution={1: 0.5, ParameterAlias("n"): 0.5})  # broadcasts, or is as large as n
    """

    def __init__(self, alias_to: str) -> None:
        self.alias_to: str = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedTensor:
    """A tensor of random shape, layout and values.

    Args:
        name: the name of the tensor.
        size: the sizes, as integers or names of parameters.
        steps: a step k for each size. The tensor consists of every k-th element of a larger tensor.
        probability_contiguous: the probability that the tensor is laid out in row-major order. In all other
            cases, another order of the dimensions is drawn at random.
        min_elements, max_elements: limits on the number of elements.
        max_allocation_bytes: the largest memory of the tensor in bytes, including the elements that `steps`
            skips.
        dim_parameter: the name of the parameter whose value is the number of dimensions, n. The sizes of the tensor are the
            first n sizes in `size`; if `size` is shorter, the other sizes are 1.
        roll_parameter: has no effect, as in PyTorch.
        dtype: the dtype.
        cuda: whether to create the tensor on a GPU.
        tensor_constructor: a function that makes tensors, called with `size`, `dtype` and all parameters. By default, values
            are uniform from 0 to 1, or integers from 1 to 126.

    Raises:
        ValueError: `steps` and `size` differ in length, or `probability_contiguous` is not between 0 and 1.

    Example::

        FuzzedTensor("x", size=("n", "m", 3), max_elements=2**20)
    """

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: dtype = rushlight.float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Tensor] | None = None,
    ) -> None:
        if steps is not None and len(steps) != len(size):
            raise ValueError(f"FuzzedTensor({name!r}, steps): must have one step for each size, got {steps}")
        if not 0 <= probability_contiguous <= 1:
            raise ValueError(
                f"FuzzedTensor({name!r}, probability_contiguous): must be from 0 to 1, got {probability_contiguous}"
            )
        self._name = name
        self._size, self._steps = size, steps
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter = dim_parameter
        self._dtype, self._cuda = dtype, cuda
        self._tensor_constructor = tensor_constructor

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Sequence[int], dtype: dtype, **kwargs: Any) -> Tensor:
        """Make a tensor of uniform values from 0 to 1, or of integers from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return rushlight.rand(size, dtype=dtype)
        return rushlight.randint(1, 127, size, dtype=dtype)

    def _make_tensor(
        self, params: dict[str, Any], state: np.random.RandomState
    ) -> tuple[Tensor, dict[str, Any]]:
        size, steps, allocated = self._get_size_and_steps(params)
        tensor = (self._tensor_constructor or self.default_tensor_constructor)(
            size=allocated, dtype=self._dtype, **params
        )
        if self._cuda:
            tensor = tensor.cuda()
        order = np.arange(len(size))
        if len(size) > 1 and state.rand() > self._probability_contiguous:
            while (order == np.arange(len(size))).all():
                order = state.permutation(len(size))
            tensor = tensor.permute(order.tolist()).contiguous().permute(np.argsort(order).tolist())
        tensor = tensor[tuple(slice(0, n * step, step) for n, step in zip(size, steps, strict=True))]
        return tensor, {
            "numel": tensor.numel(),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }

    def _get_size_and_steps(
        self, params: dict[str, Any]
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        dim = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]

        def numbers(values: tuple[str | int, ...]) -> tuple[int, ...]:
            found = tuple(params[value] if isinstance(value, str) else value for value in values[:dim])
            return found + (1,) * (dim - len(found))

        size, steps = numbers(self._size), numbers(self._steps or ())
        return size, steps, tuple(n * step for n, step in zip(size, steps, strict=True))

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Return whether the number of elements and the memory are within the tensor's limits for these parameters."""
        size, _, allocated = self._get_size_and_steps(params)
        elements, nbytes = math.prod(size), math.prod(allocated) * self._dtype.itemsize
        return (
            (self._min_elements is None or elements >= self._min_elements)
            and (self._max_elements is None or elements <= self._max_elements)
            and (self._max_allocation_bytes is None or nbytes <= self._max_allocation_bytes)
        )


class FuzzedSparseTensor(FuzzedTensor):
    """A sparse tensor (COO) of random shape, with random positions and values.

    Args:
        name: the name of the tensor.
        size: the sizes, as integers or names of parameters.
        min_elements, max_elements: limits on the number of elements, zeros included.
        dim_parameter: as for :class:`FuzzedTensor`.
        sparse_dim: the name of the parameter whose value is the number of sparse dimensions.
        nnz: has no effect, as in PyTorch, because `density` determines the number of values.
        density: the name of the parameter whose value is the fraction of positions that have a value. The fraction is
            smaller in a coalesced tensor if a position was drawn several times.
        coalesced: the name of the parameter that says whether positions are sorted and distinct.
        dtype: the dtype.
        cuda: whether to create the tensor on a GPU.

    Example::

        FuzzedSparseTensor("s", size=("n", "n"), density="density")
    """

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        min_elements: int | None = None,
        max_elements: int | None = None,
        dim_parameter: str | None = None,
        sparse_dim: str | None = None,
        nnz: str | None = None,
        density: str | None = None,
        coalesced: str | None = None,
        dtype: dtype = rushlight.float32,
        cuda: bool = False,
    ) -> None:
        super().__init__(
            name, size, min_elements=min_elements, max_elements=max_elements, dim_parameter=dim_parameter,
            dtype=dtype, cuda=cuda,
        )  # fmt: skip
        self._density_parameter = density
        self._coalesced_parameter = coalesced
        self._sparse_dim_parameter = sparse_dim

    @staticmethod
    def sparse_tensor_constructor(
        size: Sequence[int], dtype: dtype, sparse_dim: int, nnz: int, is_coalesced: bool
    ) -> Tensor:
        """Make a sparse tensor with values at `nnz` random positions, some of which may be equal.

        If `is_coalesced` is true, coalesce the tensor: sort the positions, and add up the values of equal positions.
        """
        values = FuzzedTensor.default_tensor_constructor([nnz, *size[sparse_dim:]], dtype)
        sizes = rushlight.tensor(size[:sparse_dim], dtype=rushlight.float64)
        indices = (rushlight.rand(sparse_dim, nnz, dtype=rushlight.float64) * sizes.unsqueeze(1)).long()
        made = rushlight.sparse_coo_tensor(indices, values, tuple(size))
        return made.coalesce() if is_coalesced else made

    def _make_tensor(
        self, params: dict[str, Any], state: np.random.RandomState
    ) -> tuple[Tensor, dict[str, Any]]:
        size, _, _ = self._get_size_and_steps(params)
        dims = params[self._sparse_dim_parameter] if self._sparse_dim_parameter else len(size)
        density = params[self._density_parameter] if self._density_parameter else 0.1
        coalesced = params[self._coalesced_parameter] if self._coalesced_parameter else True
        dims = min(dims, len(size))
        nnz = math.ceil(math.prod(size[:dims]) * density)
        tensor = self.sparse_tensor_constructor(size, self._dtype, dims, nnz, bool(coalesced))
        if self._cuda:
            tensor = tensor.cuda()
        return tensor, {
            "numel": tensor.numel(),
            "shape": tensor.shape,
            "is_coalesced": tensor.is_coalesced(),
            "density": density,
            "sparsity": 1 - density,
            "sparse_dim": dims,
            "dense_dim": len(size) - dims,
            "is_hybrid": dims < len(size),
            "dtype": str(self._dtype),
        }


class Fuzzer:
    """Draws parameters, such as sizes, until they satisfy all constraints, and makes tensors from them.

    Args:
        parameters: parameters, or lists of parameters.
        tensors: tensors, or lists of tensors.
        constraints: functions that are called with all parameters by name. If one of them returns False, the parameters are
            drawn again.
        seed: the seed of all drawn values, including the elements of tensors; by default, a seed from the operating system.

    Raises:
        ValueError: two parameters or tensors have the same name.

    Example::

        fuzzer = Fuzzer(
            [FuzzedParameter("n", 1, 1024, "loguniform")],
            [FuzzedTensor("x", ("n", "n"), max_elements=2**16)],
        )
        for tensors, properties, parameters in fuzzer.take(10):
            print(Timer("x.sum()", globals=tensors, sub_label=str(parameters["n"])).blocked_autorange())
    """

    def __init__(
        self,
        parameters: Sequence[FuzzedParameter | Iterable[FuzzedParameter]],
        tensors: Sequence[FuzzedTensor | Iterable[FuzzedTensor]],
        constraints: Sequence[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:
        if seed is None:
            seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64))
        self._seed: int = seed
        self._parameters: list[FuzzedParameter] = _flat(parameters, FuzzedParameter)
        self._tensors: list[FuzzedTensor] = _flat(tensors, FuzzedTensor)
        self._constraints = list(constraints or ())
        self._generated = self._accepted = 0
        names = [each.name for each in self._parameters] + [each.name for each in self._tensors]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"Fuzzer(parameters, tensors): names must differ, but these occur twice: {', '.join(doubled)}"
            )

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], dict[str, dict[str, Any]], dict[str, Any]]]:
        """Yield `n` tuples (tensors, properties, parameters). Each item of a tuple is a dict whose keys are names.

        Raises:
            ValueError: a thousand sets of parameters in a row violated a constraint or a limit of a tensor.
        """
        state = np.random.RandomState(self._seed)
        rushlight.manual_seed(int(state.randint(0, 2**32 - 1, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {each.name: each._make_tensor(params, state) for each in self._tensors}
            tensors = {name: tensor for name, (tensor, _) in made.items()}
            yield tensors, {name: properties for name, (_, properties) in made.items()}, params

    @property
    def rejection_rate(self) -> float:
        """The fraction of the drawn sets of parameters that violated a constraint or a limit of a tensor."""
        return 1 - self._accepted / self._generated if self._generated else 0.0

    def _generate(self, state: np.random.RandomState) -> dict[str, Any]:
        kept = {each.name: each.sample(state) for each in self._parameters if each.strict}
        for _ in range(_MOST_TRIES):
            drawn = {
                each.name: kept[each.name] if each.strict else each.sample(state) for each in self._parameters
            }
            params = _without_aliases(drawn)
            self._generated += 1
            if all(allowed(**params) for allowed in self._constraints) and all(
                each.satisfies_constraints(params) for each in self._tensors
            ):
                self._accepted += 1
                return params
        raise ValueError(f"Fuzzer: none of {_MOST_TRIES} sets of parameters satisfied all constraints")


def _flat(items: Iterable[Any], kind: type) -> list[Any]:
    return [each for item in items for each in ([item] if isinstance(item, kind) else item)]


def _without_aliases(drawn: dict[str, Any]) -> dict[str, Any]:
    """Return the values, with aliases replaced by the values to which they refer."""
    found = {}
    for name, value in drawn.items():
        seen = [name]
        while isinstance(value, ParameterAlias):
            if value.alias_to in seen or value.alias_to not in drawn:
                raise ValueError(
                    f"Fuzzer: the alias {name!r} leads to no value: {' -> '.join([*seen, value.alias_to])}"
                )
            seen.append(value.alias_to)
            value = drawn[value.alias_to]
        found[name] = value
    return found
