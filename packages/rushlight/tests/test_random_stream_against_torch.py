"""Random numbers of the stream "torch" equal PyTorch's bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from random_stream_cases import NOT_ON_INTEL, all_cases, drawn  # noqa: E402

import rushlight  # noqa: E402

OURS, THEIRS = all_cases(rushlight), all_cases(torch)
INTEL = "GenuineIntel" in Path("/proc/cpuinfo").read_text()


@pytest.fixture(autouse=True)
def stream():
    with rushlight.random.stream("torch"):
        yield


@pytest.mark.parametrize("name", OURS)
def test_numbers_are_equal(name):
    if INTEL and any(word in name for word in NOT_ON_INTEL):
        pytest.skip("PyTorch draws these from MKL's generator on processors of Intel")
    for seed in (0, 5, 2**40 + 3):
        for ours, theirs in zip(
            drawn(rushlight, OURS[name], seed), drawn(torch, THEIRS[name], seed), strict=True
        ):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


def test_states_are_exchanged():
    rushlight.manual_seed(11)
    torch.manual_seed(11)
    for steps in range(3):
        assert rushlight.randn(5).tolist() == torch.randn(5).tolist()
        state = torch.get_rng_state()
        expected = torch.randn(steps + 3).tolist()
        rushlight.set_rng_state(rushlight.from_numpy(state.numpy()))
        torch.set_rng_state(torch.from_numpy(rushlight.get_rng_state().numpy()))
        assert torch.randn(steps + 3).tolist() == expected
        assert rushlight.randn(steps + 3).tolist() == expected
