# ruff: noqa: PT009
"""`torch.testing._internal.common_utils`, which libraries use in their tests, and `assert_allclose`."""

from __future__ import annotations

import random
import unittest
import warnings
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rushlight as torch
import rushlight_core as core
from rushlight.testing import assert_allclose
from rushlight.testing._internal import common_utils
from rushlight.testing._internal.common_utils import (
    TestCase as TorchTestCase,
)
from rushlight.testing._internal.common_utils import (
    freeze_rng_state,
    instantiate_parametrized_tests,
    parametrize,
    set_default_dtype,
    subtest,
)

EQUAL: list[tuple[Any, Any]] = [
    (torch.ones(3), torch.ones(3) + 1e-7),
    (torch.tensor([1.0, torch.nan]), torch.tensor([1.0, torch.nan])),
    (torch.tensor(2.0), 2),
    (3, torch.tensor([3])),
    (np.array([1.0, 2.0]), torch.tensor([1.0, 2.0], dtype=torch.float64)),
    ({"a": [torch.ones(2), 1.0]}, {"a": [torch.ones(2), 1.0 + 1e-9]}),
    ("text", "text"),
    ({1, 2}, {2, 1}),
    (None, None),
    (torch.Size([2, 3]), (2, 3)),
    (1, 1.0),
    (True, 1),
    (torch.ones(2), [1.0, 1.0]),
    ((1, 1), torch.ones(2)),
    (torch.arange(2), range(2)),
    (torch.ones(2, 2), [[1, 1], [1, 1]]),
    (torch.ones(2, dtype=torch.float64), [torch.tensor(1.0), torch.tensor(1.0)]),
    (range(2), [0, 1]),
    (torch.tensor([True]), [1]),
]
DIFFERENT: list[tuple[Any, Any]] = [
    (torch.ones(3), torch.ones(3) + 1e-3),
    (torch.ones(3), torch.ones(3, dtype=torch.float64)),
    (torch.ones(3), torch.ones(1, 3)),
    (torch.tensor(2.0), 3),
    ([1, 2], [1, 2, 3]),
    ({"a": 1}, {"b": 1}),
    ("text", "other"),
    (torch.ones(1), None),
    (1, 2.0),
    (True, False),
    (torch.ones(2), [2.0, 1.0]),
    (torch.ones(2), range(2)),
    (torch.ones(2), [1.0, 1.0, 1.0]),
]


@pytest.mark.parametrize("pair", EQUAL, ids=repr)
def test_what_is_equal(pair: tuple[Any, Any]) -> None:
    TorchTestCase().assertEqual(*pair)
    with pytest.raises(AssertionError):
        TorchTestCase().assertNotEqual(*pair)


@pytest.mark.parametrize("pair", DIFFERENT, ids=repr)
def test_what_is_not(pair: tuple[Any, Any]) -> None:
    TorchTestCase().assertNotEqual(*pair)
    with pytest.raises((AssertionError, TypeError)):
        TorchTestCase().assertEqual(*pair)


def test_options_of_the_comparison() -> None:
    case = TorchTestCase()
    x = torch.ones(3)
    case.assertEqual(x, x + 0.01, atol=0.02, rtol=0)
    case.assertEqual(x, x.double(), exact_dtype=False)
    with pytest.raises(AssertionError, match="with words of mine"):
        case.assertEqual(x, x + 1, "with words of mine")
    with pytest.raises(AssertionError, match=r"^made$"):
        case.assertEqual(x, x + 1, lambda text: "made")
    with pytest.raises(ValueError, match="pass both or neither"):
        case.assertEqual(x, x, atol=1.0)
    nan = torch.tensor([torch.nan])
    with pytest.raises(AssertionError):
        case.assertEqual(nan, nan, equal_nan=False)
    sparse = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,))
    case.assertEqual(sparse, sparse.coalesce())
    with pytest.raises(AssertionError, match="is_coalesced"):
        case.assertEqual(sparse, sparse.coalesce(), exact_is_coalesced=True)

    class Loose(TorchTestCase):
        precision = 0.1

    Loose().assertEqual(x, x + 0.05)


def test_every_test_begins_with_the_same_seed() -> None:
    drawn = []
    for _ in range(2):
        TorchTestCase().setUp()
        drawn.append((torch.rand(1).item(), float(np.random.rand()), random.random()))
    assert drawn[0] == drawn[1]


def test_blocks() -> None:
    torch.manual_seed(0)
    first = torch.rand(2)
    torch.manual_seed(0)
    with freeze_rng_state():
        torch.rand(5)
    assert torch.equal(torch.rand(2), first)
    with set_default_dtype(torch.float64):
        assert torch.ones(1).dtype == torch.float64
    assert torch.ones(1).dtype == torch.float32


def test_tests_with_arguments() -> None:
    ran = []

    @instantiate_parametrized_tests
    class Cases(TorchTestCase):
        @parametrize("a, b", [(1, 2), subtest((3, 4), name="named", decorators=[unittest.skip("no")])])
        @parametrize("dtype", [torch.float32, torch.int64])
        def test_pair(self, a: int, b: int, dtype: Any) -> None:
            ran.append((a, b, dtype))

        @parametrize("x", [0.5], name_fn=lambda x: f"half_{x < 1}")
        def test_named(self, x: float) -> None:
            ran.append(x)

    names = [name for name in dir(Cases) if name.startswith("test_")]
    assert names == [
        "test_named_half_True",
        "test_pair_a_1_b_2_dtype_float32",
        "test_pair_a_1_b_2_dtype_int64",
        "test_pair_named_dtype_float32",
        "test_pair_named_dtype_int64",
    ]
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Cases).run(result)
    assert (result.testsRun, len(result.skipped), result.wasSuccessful()) == (5, 2, True)
    assert ran == [0.5, (1, 2, torch.float32), (1, 2, torch.int64)]
    with pytest.raises(RuntimeError, match="2 values"):
        list(parametrize("a, b, c", [(1, 2)]).tests())


def test_assert_allclose_converts_and_warns() -> None:
    with pytest.warns(FutureWarning, match="assert_close"):
        assert_allclose(torch.ones(2), [1.0, 1.0])
    with pytest.warns(FutureWarning):
        assert_allclose(torch.ones(2), torch.ones(2, dtype=torch.float64) + 1e-6)
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="differ"):
        assert_allclose(torch.ones(2), torch.ones(2) + 1e-3)
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match=r"^mine$"):
        assert_allclose(1.0, 2.0, msg="mine")


def test_texts_and_warnings() -> None:
    case = TorchTestCase()
    case.assertExpectedInline(torch.ones(2), "tensor([1., 1.])")
    case.assertExpectedInline("a\n# b\n\nc", "a\nc", ignore_comments=True, ignore_empty_lines=True)
    with pytest.raises(AssertionError):
        case.assertExpectedInline("a\n# b", "a")
    with case.assertWarnsOnceRegex(UserWarning, "old"):
        warnings.warn("old, use new", UserWarning, stacklevel=1)
    for message in ("new", None):
        with pytest.raises(AssertionError), case.assertWarnsOnceRegex(UserWarning, "old"):
            if message:
                warnings.warn(message, UserWarning, stacklevel=1)
    case.assertNotWarn(lambda: None)
    with pytest.raises(AssertionError, match="silence is required"):
        case.assertNotWarn(lambda: warnings.warn("loud", stacklevel=1), "silence is required")


def test_nodes_of_models() -> None:
    def node(kind: str, **attributes: bytes) -> Any:
        listed = [SimpleNamespace(name=key, s=value) for key, value in attributes.items()]
        return SimpleNamespace(
            op_type=kind, domain="org.pytorch.aten" if kind == "ATen" else "", attribute=listed
        )

    model = SimpleNamespace(graph=SimpleNamespace(node=[node("Add"), node("ATen", operator=b"sum")]))
    TorchTestCase().assertAtenOp(model, "sum")
    with pytest.raises(AssertionError):
        TorchTestCase().assertAtenOp(model, "sum", "dim")
    with pytest.raises(AssertionError):
        TorchTestCase().assertAtenOp(model, "add")


def test_skipped_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tests(TorchTestCase):
        @common_utils.slowTest
        def test_slow(self) -> None:
            raise AssertionError

        @common_utils.skipIfNoLapack
        def test_solve(self) -> None:
            self.assertEqual(torch.linalg.eigvals(torch.eye(2)).real, [1, 1])

    found = unittest.defaultTestLoader.loadTestsFromTestCase(Tests)
    result = unittest.TestResult()
    assert common_utils.load_tests(unittest.defaultTestLoader, found, None) is found
    found.run(result)
    assert [test.id().rpartition(".")[2] for test, _ in result.skipped] == ["test_slow"]
    assert result.wasSuccessful()
    assert common_utils.TEST_WITH_ROCM is False

    def no_library(matrix: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("there is no LAPACK library")

    monkeypatch.setattr(core.linalg, "eigvals", no_library)
    with pytest.raises(unittest.SkipTest, match="no LAPACK"):
        Tests("test_solve").test_solve()


def test_errors_of_process_groups() -> None:
    assert issubclass(torch.distributed.DistStoreError, torch.distributed.DistError)
    assert issubclass(torch.distributed.DistError, RuntimeError)
    assert torch.distributed.default_pg_timeout == timedelta(minutes=30)
