"""The stream "torch": numbers compared with those that PyTorch drew, states, and functions that change the stream."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from random_stream_cases import RECORDED, drawn, recorded_cases

import rushlight as torch

CASES = recorded_cases(torch)


@pytest.fixture
def torch_stream():
    with torch.random.stream("torch"):
        yield
    assert torch.random.get_stream() == "philox"


@pytest.fixture(scope="module")
def recorded():
    return json.loads(RECORDED.read_text())


def test_every_case_is_recorded(recorded):
    assert sorted(recorded) == sorted(CASES)


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_that_pytorch_drew(torch_stream, recorded, name):
    arrays = drawn(torch, CASES[name], 5)
    assert len(arrays) == len(recorded[name])
    for array, expected in zip(arrays, recorded[name], strict=True):
        # Logarithms and cosines of the C library may differ in the last bit between machines.
        np.testing.assert_allclose(
            array.ravel(), np.array(expected, dtype=array.dtype), rtol=1e-6, atol=1e-12
        )


@pytest.mark.parametrize("seed", [0, 5489, 2**32 - 1])
def test_words_are_those_of_the_mersenne_twister(torch_stream, seed):
    """NumPy's legacy generator is seeded in the same way. The state is renewed after every 624 words."""
    words = np.random.RandomState(seed)._bit_generator.random_raw(3 * 624)
    torch.manual_seed(seed)
    drawn = torch.empty(words.size, dtype=torch.int64).random_(0, 2**20)
    np.testing.assert_array_equal(drawn.numpy(), words % 2**20)


def test_a_stream_is_undone_at_the_end_of_with():
    torch.manual_seed(3)
    before = torch.rand(4)
    with torch.random.stream("torch") as nothing:
        assert nothing is None
        assert torch.random.get_stream() == torch.default_generator.stream == "torch"
        torch.manual_seed(0)
        assert torch.allclose(torch.rand(2), torch.tensor([0.4963, 0.7682]), atol=1e-4)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(4), before)


def test_a_new_stream_starts_from_the_initial_seed():
    torch.manual_seed(0)
    torch.rand(5)
    with torch.random.stream("torch"):
        first = torch.rand(3)
        torch.manual_seed(0)
        assert torch.equal(torch.rand(3), first)


def test_generators_keep_the_stream_that_they_were_made_in():
    philox = torch.Generator()
    with torch.random.stream("torch"):
        assert philox.stream == "philox"
        twister = torch.Generator().manual_seed(1)
    assert twister.stream == "torch"
    with torch.random.stream("torch"):
        torch.manual_seed(1)
        expected = torch.randn(20)
    assert torch.equal(torch.randn(20, generator=twister), expected)


@pytest.mark.parametrize("name", ["mersenne", "", "Torch"])
def test_an_unknown_stream_is_refused(name):
    with pytest.raises(ValueError, match=r"must be 'philox' or 'torch'"):
        torch.random.stream(name)
    assert torch.random.get_stream() == "philox"
    with pytest.raises(TypeError, match="must be a str"):
        torch.random.stream(3)


def test_a_state_brings_its_stream():
    generator = torch.Generator().manual_seed(2)
    philox = generator.get_state()
    with torch.random.stream("torch"):
        other = torch.Generator().manual_seed(2)
        torch.randn(3, generator=other)  # one normal number is cached for the next call
        twister = other.get_state()
        expected = torch.randn(5, generator=other), torch.poisson(torch.full((9,), 3.0), generator=other)
    assert (philox.numel(), twister.numel()) == (24, 5056)
    generator.set_state(twister)
    assert generator.stream == "torch"
    assert torch.equal(torch.randn(5, generator=generator), expected[0])
    # Numbers that PyTorch's stream does not define are also continued from the saved state.
    assert torch.equal(torch.poisson(torch.full((9,), 3.0), generator=generator), expected[1])
    generator.set_state(philox)
    assert generator.stream == "philox"


def test_generators_are_copied_with_their_stream(torch_stream):
    generator = torch.Generator().manual_seed(4)
    torch.randn(1, generator=generator)
    copies = [generator.clone_state(), copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))]
    expected = torch.randn(3, generator=generator)
    for other in copies:
        assert other.stream == "torch"
        assert torch.equal(torch.randn(3, generator=other), expected)


@pytest.mark.parametrize("offset", [8, 12, 16, 28, 5040])
def test_a_damaged_state_is_refused(torch_stream, offset):
    generator = torch.Generator().manual_seed(4)
    state = generator.get_state()
    state[offset : offset + 4] = 255
    with pytest.raises(RuntimeError, match="not a state of PyTorch's CPU generator"):
        generator.set_state(state)
    assert torch.equal(
        torch.rand(3, generator=generator), torch.rand(3, generator=torch.Generator().manual_seed(4))
    )


def test_fork_rng_restores_the_stream():
    with torch.random.fork_rng():
        torch.random.stream("torch")
        torch.manual_seed(1)
    assert torch.default_generator.stream == "philox"
    torch.random.stream("philox")


def test_a_forked_process_draws_the_same(torch_stream):
    program = """
        import os, threading, rushlight as torch
        torch.random.stream("torch")
        stop = threading.Event()
        def draw():
            generator = torch.Generator()
            while not stop.is_set():
                torch.rand(1000, generator=generator)
        thread = threading.Thread(target=draw)
        thread.start()
        for _ in range(20):
            torch.manual_seed(7)
            child = os.fork()
            if child == 0:
                ok = torch.rand(2).tolist() == torch.rand(2, generator=torch.Generator().manual_seed(7)).tolist()
                os._exit(0 if ok else 1)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        thread.join()
    """
    lines = "\n".join(line[8:] for line in program.splitlines())
    subprocess.run([sys.executable, "-W", "ignore", "-c", lines], check=True, timeout=120)


@pytest.mark.parametrize(("value", "outcome"), [("torch", "torch"), ("philox", "philox"), ("mt", None)])
def test_the_environment_chooses_a_stream(value, outcome):
    program = "import rushlight as t; print(t.random.get_stream(), t.default_generator.stream)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"RUSHLIGHT_RANDOM": value, "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
    )
    if outcome is None:
        assert done.returncode != 0
        assert 'RUSHLIGHT_RANDOM: must be "philox" or "torch", got "mt"' in done.stderr
    else:
        assert done.stdout.split() == [outcome, outcome], done.stderr


def test_bernoulli_refuses_what_is_no_probability(torch_stream):
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        torch.bernoulli(torch.tensor([0.5, 1.5]))
    with pytest.raises(RuntimeError, match="without replacement"):
        torch.multinomial(torch.tensor([0.0, 1.0]), 2)
