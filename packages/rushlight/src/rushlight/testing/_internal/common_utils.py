# ruff: noqa: N801, PT009
"""`TestCase` and the test helpers of PyTorch, for libraries whose tests use them."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import random
import re
import sys
import unittest
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Number
from typing import Any

import numpy as np

import rushlight_core as core
from rushlight import cuda
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight_testing import assert_close, default_tolerances, make_tensor

__all__ = [
    "IS_LINUX", "IS_MACOS", "IS_WINDOWS", "TEST_CUDA", "TEST_NUMPY", "TEST_SCIPY", "TEST_WITH_ROCM", "TEST_WITH_SLOW",
    "TestCase", "freeze_rng_state", "gradcheck", "gradgradcheck", "instantiate_parametrized_tests", "load_tests",
    "make_tensor", "parametrize", "run_tests", "set_default_dtype", "skipIfNoLapack", "slowTest", "subtest",
]  # fmt: skip

IS_LINUX = sys.platform == "linux"
IS_MACOS = sys.platform == "darwin"
IS_WINDOWS = sys.platform == "win32"
TEST_CUDA = cuda.is_available()
TEST_NUMPY = True
TEST_WITH_ROCM = False
TEST_WITH_SLOW = os.environ.get("PYTORCH_TEST_WITH_SLOW", "0") == "1"
TEST_SCIPY = importlib.util.find_spec("scipy") is not None


def run_tests(argv: list[str] | None = None) -> None:
    """Run the tests of the main program with `unittest`.

    Args:
        argv: arguments of the command line; by default the arguments of the process.

    Example::

        if __name__ == "__main__":
            run_tests()
    """
    unittest.main(argv=argv)


def load_tests(
    loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None
) -> unittest.TestSuite:
    """Return `tests`. If a test module imports this function, `unittest` calls it to load the tests.

    Args:
        loader, pattern: have no effect.
        tests: the tests that were found.

    Example:
        >>> load_tests(unittest.TestLoader(), unittest.TestSuite(), None).countTestCases()
        0
    """
    return tests


def slowTest(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that runs a test only if the environment variable `PYTORCH_TEST_WITH_SLOW` is 1.

    Example:
        >>> class TestSlow(TestCase):
        ...     @slowTest
        ...     def test_slow(self): ...
    """
    test = unittest.skipUnless(TEST_WITH_SLOW, "slow: PYTORCH_TEST_WITH_SLOW=1 runs it")(fn)
    vars(test)["slow_test"] = True
    return test


def skipIfNoLapack(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that skips a test if no LAPACK library is found.

    Raises:
        SkipTest: no LAPACK library is found (raised when the test runs).

    Example:
        >>> class TestSolve(TestCase):
        ...     @skipIfNoLapack
        ...     def test_solve(self):
        ...         self.assertEqual(torch.linalg.solve(torch.eye(2), torch.ones(2)), torch.ones(2))
    """

    @functools.wraps(fn)
    def test(*args: Any, **kwargs: Any) -> Any:
        try:
            core.linalg.eigvals(core.ones(1, 1))
        except RuntimeError as error:
            raise unittest.SkipTest(f"no LAPACK: {error}") from None
        return fn(*args, **kwargs)

    return test


class TestCase(unittest.TestCase):
    """A test case whose `assertEqual` compares tensors. Each test starts with the same seed.

    `assertEqual` raises AssertionError if values differ. In all comparisons of tensors and numbers, the absolute tolerance
    is at least the attribute `precision`, and the relative tolerance is at least the attribute `rel_tol`.

    Example:
        >>> class TestAdd(TestCase):
        ...     def test_add(self):
        ...         self.assertEqual(torch.ones(2) + 1, torch.tensor([2.0, 2.0]))
        >>> TestAdd("test_add").run().wasSuccessful()
        True
    """

    precision: float = 0
    rel_tol: float = 0

    def setUp(self) -> None:
        """Seed the generators of rushlight, NumPy and Python."""
        core.manual_seed(1234)
        np.random.seed(1234)
        random.seed(1234)

    def assertEqual(
        self,
        x: Any,
        y: Any,
        msg: str | Callable[[str], str] | None = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
        equal_nan: bool = True,
        exact_dtype: bool = True,
        exact_device: bool = False,
        exact_layout: bool = False,
        exact_stride: bool = False,
        exact_is_coalesced: bool = False,
    ) -> None:
        """Compare tensors, numbers, arrays and their containers within tolerances, and other objects by `==`.

        Args:
            x, y: the values to compare. A tensor may be compared with a list, tuple or range of numbers, and a tensor of one
                element with a number; the dtype of the tensor is ignored in these comparisons. Numbers are compared by
                value, not by type.
            msg: a text that is added to the error's text, or a function that receives the error's text and
                returns the text to use instead.
            atol, rtol: tolerances; pass both or neither. By default, the dtypes determine the tolerances.
            equal_nan: whether NaN equals NaN.
            exact_dtype, exact_device, exact_layout, exact_stride, exact_is_coalesced: whether these
                properties must be equal, too.
        """
        if (atol is None) != (rtol is None):
            raise ValueError(f"assertEqual(atol, rtol): pass both or neither, got {atol} and {rtol}")
        report = msg if callable(msg) or msg is None else lambda text: f"{text}\n{msg}"
        options = {
            "equal_nan": equal_nan, "check_dtype": exact_dtype, "check_device": exact_device,
            "check_layout": exact_layout, "check_stride": exact_stride, "msg": report,
        }  # fmt: skip

        def compare(a: Any, b: Any) -> None:
            if isinstance(a, Mapping) and isinstance(b, Mapping):
                super(TestCase, self).assertEqual(set(a), set(b), msg if isinstance(msg, str) else None)
                for key in a:
                    compare(a[key], b[key])
            elif isinstance(a, _SEQUENCES) and isinstance(b, _SEQUENCES):
                super(TestCase, self).assertEqual(len(a), len(b), msg if isinstance(msg, str) else None)
                for one, other in zip(a, b, strict=True):
                    compare(one, other)
            elif a is None or b is None:
                super(TestCase, self).assertIs(a, b, msg if isinstance(msg, str) else None)
            elif isinstance(a, _TENSORS) or isinstance(b, _TENSORS) or _are_numbers(a, b):
                self._compare_tensors(a, b, rtol, atol, exact_is_coalesced, options)
            else:
                super(TestCase, self).assertEqual(a, b, msg if isinstance(msg, str) else None)

        compare(x, y)

    def _compare_tensors(
        self, a: Any, b: Any, rtol: float | None, atol: float | None, coalesced: bool, options: dict[str, Any]
    ) -> None:
        if isinstance(a, _SEQUENCES) or isinstance(b, _SEQUENCES):
            options = {**options, "check_dtype": False}
            a, b = (core.tensor(value) if isinstance(value, _SEQUENCES) else value for value in (a, b))
        if _are_numbers(a, b):
            options = {**options, "check_dtype": False}
        if isinstance(a, Number) != isinstance(b, Number):  # compare only the values
            options = {**options, "check_dtype": False}
            a, b = (core.as_tensor(value).reshape(()) if _size(value) == 1 else value for value in (a, b))
        if coalesced and isinstance(a, core.Tensor) and a.is_sparse and a.is_coalesced() != b.is_coalesced():
            self.fail(f"is_coalesced() is {a.is_coalesced()} and {b.is_coalesced()}")
        if rtol is None or atol is None:
            rtol, atol = default_tolerances(*(core.as_tensor(value).dtype for value in (a, b)))
        assert_close(a, b, rtol=max(rtol, self.rel_tol), atol=max(atol, self.precision), **options)

    def assertNotEqual(  # type: ignore[override]  # PyTorch's names of the arguments
        self, x: Any, y: Any, msg: str | None = None, **options: Any
    ) -> None:
        """Fail if `assertEqual` would pass."""
        try:
            self.assertEqual(x, y, **options)
        except AssertionError:
            return
        raise AssertionError(self._formatMessage(msg, f"{x!r} and {y!r} are equal"))

    def assertExpectedInline(
        self,
        actual: Any,
        expect: str,
        skip: int = 0,
        ignore_comments: bool = False,
        ignore_empty_lines: bool = False,
    ) -> None:
        """Compare a text with the expected text, line by line.

        Args:
            actual: a string, or an object that is converted with `str`.
            expect: the expected text.
            skip: has no effect, because the source of the test is not rewritten.
            ignore_comments: leave out lines that begin with `#`.
            ignore_empty_lines: leave out empty lines.
        """

        def kept(text: str) -> str:
            lines = text.split("\n")
            if ignore_comments:
                lines = [line for line in lines if not line.strip().startswith("#")]
            if ignore_empty_lines:
                lines = [line for line in lines if line.strip()]
            return "\n".join(lines)

        self.assertMultiLineEqual(kept(expect), kept(str(actual)))

    @contextmanager
    def assertWarnsOnceRegex(self, category: type[Warning], regex: str = "") -> Iterator[None]:
        """Context manager that fails unless its block issues the expected warnings.

        One warning must have the class `category`, and one warning, possibly the same, must match `regex`.

        Args:
            category: the class of the warning.
            regex: a regular expression that the beginning of a warning's text must match.
        """
        with _all_warnings() as caught:
            yield
        self.assertIn(category, [type(one.message) for one in caught], "no such warning")
        texts = [str(one.message) for one in caught]
        self.assertTrue(any(re.match(regex, text) for text in texts), f"{regex!r} matches none of {texts}")

    def assertNotWarn(self, callable: Callable[[], Any], msg: str = "") -> None:
        """Call a function, and fail if it issues a warning.

        Args:
            callable: the function.
            msg: the text of the error.
        """
        with _all_warnings() as caught:
            callable()
        self.assertEqual([str(one.message) for one in caught], [], msg or None)

    def assertAtenOp(self, onnx_model: Any, operator: str, overload_name: str = "") -> None:
        """Fail unless an ONNX model contains a node of the type `ATen` that calls a given operator of PyTorch.

        Args:
            onnx_model: the model.
            operator: the operator's name.
            overload_name: the name of its overload.
        """
        found = [
            {attribute.name: attribute.s.decode() for attribute in node.attribute}
            for node in onnx_model.graph.node
            if (node.op_type, node.domain) == ("ATen", "org.pytorch.aten")
        ]
        names = [(one.get("operator"), one.get("overload_name", "")) for one in found]
        self.assertIn((operator, overload_name), names)


_TENSORS = (core.Tensor, np.ndarray, np.generic)
_SEQUENCES = (list, tuple, range)


@contextmanager
def _all_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect all warnings of a block, including those that are normally shown only once."""
    before = core.is_warn_always_enabled()
    core.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield caught
    finally:
        core.set_warn_always(before)


def _are_numbers(a: Any, b: Any) -> bool:
    return isinstance(a, Number) and isinstance(b, Number)


def _size(value: Any) -> int:
    """Return the number of elements of a tensor or array, or 1 for a number."""
    return value.numel() if isinstance(value, core.Tensor) else np.size(value)


@contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Context manager that restores the state of the default generator after its block.

    Example:
        >>> with freeze_rng_state():
        ...     first = torch.rand(2)
        >>> torch.equal(first, torch.rand(2))
        True
    """
    state = core.get_rng_state()
    try:
        yield
    finally:
        core.set_rng_state(state)


@contextmanager
def set_default_dtype(dtype: core.dtype) -> Iterator[None]:
    """Context manager that sets the default dtype within its block.

    Example:
        >>> with set_default_dtype(torch.float64):
        ...     torch.ones(2).dtype
        torch.float64
    """
    before = core.get_default_dtype()
    core.set_default_dtype(dtype)
    try:
        yield
    finally:
        core.set_default_dtype(before)


class subtest:
    """The arguments of one test for `parametrize`, with a name and decorators.

    Args:
        arg_values: the values of the arguments.
        name: the suffix of the test's name; by default, the suffix is derived from the values.
        decorators: decorators of the test.

    Example:
        >>> subtest((1, 2), name="ascending").name
        'ascending'
    """

    def __init__(
        self, arg_values: Any, name: str | None = None, decorators: Iterable[Callable[..., Any]] = ()
    ) -> None:
        self.arg_values = arg_values
        self.name = name
        self.decorators = list(decorators)


class parametrize:
    """Decorator that stores the arguments for a test.

    `instantiate_parametrized_tests` makes a test for each of `arg_values`.

    Args:
        arg_str: the names of the arguments, separated by commas.
        arg_values: one element for each test: a value, a tuple with a value for each name, or a `subtest`.
        name_fn: a function that takes the values of a test and returns the suffix of the test's name.

    Raises:
        RuntimeError: an element of `arg_values` does not have one value for each name.

    Example:
        >>> @instantiate_parametrized_tests
        ... class TestPower(TestCase):
        ...     @parametrize("n", [2, 3])
        ...     def test_power(self, n):
        ...         self.assertEqual(torch.ones(2) ** n, torch.ones(2))
        >>> sorted(name for name in vars(TestPower) if name.startswith("test"))
        ['test_power_n_2', 'test_power_n_3']
    """

    def __init__(
        self, arg_str: str, arg_values: Iterable[Any], name_fn: Callable[..., str] | None = None
    ) -> None:
        self.names = [name.strip() for name in arg_str.split(",") if name.strip()]
        self.values = list(arg_values)
        self.name_fn = name_fn

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        function.__dict__.setdefault("_parametrized", []).insert(0, self)
        return function

    def tests(self) -> Iterator[tuple[str, dict[str, Any], list[Callable[..., Any]]]]:
        """Yield the name, the arguments and the decorators of each test."""
        for value in self.values:
            case = value if isinstance(value, subtest) else subtest(value)
            values = [case.arg_values] if len(self.names) == 1 else list(case.arg_values)
            if len(values) != len(self.names):
                raise RuntimeError(
                    f"parametrize: needs values for {', '.join(self.names)}, got {len(values)} values"
                )
            name = case.name
            if name is None and self.name_fn is not None:
                name = self.name_fn(*values)
            if name is None:
                parts = (f"{key}_{_text(value)}" for key, value in zip(self.names, values, strict=True))
                name = "_".join(parts)
            yield name, dict(zip(self.names, values, strict=True)), case.decorators


def _text(value: Any) -> str:
    plain = isinstance(value, (core.dtype, core.device, Number, str))
    text = str(value).removeprefix("torch.") if plain else type(value).__name__
    return "".join(letter if letter.isalnum() else "_" for letter in text)


def instantiate_parametrized_tests(generic_cls: type) -> type:
    """Replace each test that `parametrize` decorates by one test for each combination of argument values.

    Args:
        generic_cls: the class of the tests, which is changed and returned.

    Raises:
        RuntimeError: two tests get the same name.

    Example:
        >>> @instantiate_parametrized_tests
        ... class TestSum(TestCase):
        ...     @parametrize("n", [1, 2])
        ...     @parametrize("dtype", [torch.float32, torch.int64])
        ...     def test_sum(self, n, dtype):
        ...         self.assertEqual(torch.ones(n, dtype=dtype).sum().item(), n)
        >>> len([name for name in vars(TestSum) if name.startswith("test")])
        4
    """
    for name, function in list(vars(generic_cls).items()):
        marks = getattr(function, "_parametrized", None)
        if not marks:
            continue
        delattr(generic_cls, name)
        for parts in itertools.product(*(mark.tests() for mark in marks)):
            full = "_".join([name, *(part[0] for part in parts)])
            if hasattr(generic_cls, full):
                raise RuntimeError(f"instantiate_parametrized_tests: two tests are called {full}")
            setattr(generic_cls, full, _with_arguments(function, full, parts))
    return generic_cls


def _with_arguments(function: Callable[..., Any], name: str, parts: Iterable[Any]) -> Callable[..., Any]:
    arguments = {key: value for part in parts for key, value in part[1].items()}

    @functools.wraps(function)
    def test(self: Any) -> Any:
        return function(self, **arguments)

    test.__name__ = name
    result: Callable[..., Any] = test
    for part in parts:
        for decorator in part[2]:
            result = decorator(result)
    return result
