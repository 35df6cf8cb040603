"""The device on which tensors are made if no device is given."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import rushlight_core as core


def test_block() -> None:
    with core.device("meta") as device:
        assert str(device) == "meta"
        made = [
            core.empty(2),
            core.zeros(2, 3),
            core.rand(4),
            core.arange(3),
            core.full((2,), 1.0),
            core.eye(3),
        ]
        made += [core.tensor([1.0, 2.0]), core.as_tensor([1]), core.asarray([1]), core.tensor(np.ones(2))]
        made += [core.linspace(0, 1, 5), core.randperm(4), core.zeros(2, device=None), core.tensor(3)]
        assert {t.device.type for t in made} == {"meta"}
        assert core.zeros(2, device="cpu").device.type == "cpu"
        assert core.tensor([1], device="cpu").tolist() == [1]
        assert core.from_numpy(np.ones(2)).device.type == "cpu"
        with core.device("cpu"):
            assert core.ones(2).tolist() == [1, 1]
        assert core.ones(2).device.type == "meta"
    assert core.ones(2).device.type == "cpu"


def test_what_follows_a_tensor() -> None:
    x = core.arange(4.0)
    with core.device("meta"):
        assert core.zeros_like(x).tolist() == [0, 0, 0, 0]
        assert x.new_ones(2).tolist() == [1, 1]
        # Operators make temporary tensors themselves.
        assert x.sort(descending=True).indices.tolist() == [3, 2, 1, 0]
        assert core.fft.fft(x)[0].item() == 6
        assert x.var().item() == pytest.approx(5 / 3)
        assert x[core.tensor([0, 2], device="cpu")].tolist() == [0, 2]


def test_setting() -> None:
    assert core.get_default_device() == core.device("cpu")
    core.set_default_device("meta")
    try:
        assert core.get_default_device() == core.device("meta")
        assert core.ones(2).device.type == "meta"
        found = []
        thread = threading.Thread(target=lambda: found.append(core.ones(2).device.type))
        thread.start()
        thread.join()
        assert found == ["cpu"]
    finally:
        core.set_default_device(None)
    assert core.ones(2).device.type == "cpu"


def test_errors() -> None:
    with pytest.raises(TypeError, match="set_default_device"):
        core.set_default_device(3.5)
    with pytest.raises(RuntimeError, match="not in a `with device:` block"):
        core.device("cpu").__exit__(None, None, None)
    with pytest.raises(ZeroDivisionError), core.device("meta"):
        1 / 0
    assert core.ones(1).device.type == "cpu"
