from __future__ import annotations

import subprocess
import sys

import pytest


def imported_by(statement):
    """Return the modules that `statement` imports and that core has not imported already."""
    code = (
        f"import sys, rushlight_core; old = set(sys.modules); {statement}; print(*(set(sys.modules) - old))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement", ["import rushlight_nn", "import rushlight_nn.optim, rushlight_nn.utils"]
)
def test_importing_is_light(statement):
    roots = {name.partition(".")[0] for name in imported_by(statement)}
    assert not roots & {
        "numpy",
        "scipy",
        "safetensors",
        "json",
        "typing",
        "re",
        "inspect",
        "dataclasses",
        "typing_extensions",
    }
    siblings = {
        "rushlight",
        "rushlight_autograd",
        "rushlight_data",
        "rushlight_multiprocessing",
        "rushlight_profiler",
    }
    assert not roots & siblings


def test_parts_are_loaded_when_used():
    import rushlight_nn

    assert rushlight_nn.optim.SGD is rushlight_nn.optim.sgd.SGD
    assert rushlight_nn.optim.lr_scheduler.StepLR.__name__ == "StepLR"
    assert rushlight_nn.utils.clip_grad_norm_
    assert rushlight_nn.serialization.save
    with pytest.raises(AttributeError, match="nonsense"):
        _ = rushlight_nn.nonsense


def test_every_listed_name_exists():
    import rushlight_nn
    import rushlight_nn.functional

    for module in (
        rushlight_nn,
        rushlight_nn.functional,
        rushlight_nn.optim,
        rushlight_nn.optim.lr_scheduler,
    ):
        assert all(hasattr(module, name) for name in module.__all__)
